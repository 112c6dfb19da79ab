#!/usr/bin/env bash
# Fuzzes the entries in Tests/Fuzz with libFuzzer: Tools/fuzz.sh SECONDS [ENTRY ...]
# SECONDS are shared by the entries; building is not counted. See Tests/Fuzz/README.md.
# An input that takes longer than ROSTRUM_FUZZ_TIMEOUT seconds (default 5) is a finding: use more on a busy machine.
set -euo pipefail
cd "$(dirname "$0")/.."

seconds=${1:?usage: Tools/fuzz.sh SECONDS [ENTRY ...]}
shift
entries=("$@")
if [ ${#entries[@]} -eq 0 ]; then
    for file in Tests/Fuzz/*Fuzz.swift; do entries+=("$(basename "$file" Fuzz.swift)"); done
fi
share=$((seconds / ${#entries[@]}))
[ "$share" -ge 1 ] || share=1

# Optimised, as a server runs, but with assertions. ROSTRUM_SANITIZERS=fuzzer,address finds misused raw memory too.
sanitizers=${ROSTRUM_SANITIZERS:-fuzzer}
export LSAN_OPTIONS="suppressions=$PWD/Tools/leak-sanitizer.txt:print_suppressions=0 ${LSAN_OPTIONS:-}"
build=.build/fuzz
options=(--scratch-path "$build/$sanitizers" --configuration release --target FuzzEntries -j 2
    -Xswiftc "-sanitize=$sanitizers" -Xswiftc -assert-config -Xswiftc Debug)
mkdir -p "$build"
swift build "${options[@]}" >"$build/build.log" 2>&1 || { tail -n 40 "$build/build.log"; exit 1; }
products=$(swift build "${options[@]}" --show-bin-path)
# What the last build made of Swift: a source that was renamed or removed leaves its object behind.
objects=$(grep -ho '"object": "[^"]*"' "$products"/*.build/output-file-map.json | cut -d '"' -f 4 |
    while read -r object; do [ ! -e "$object" ] || echo "$object"; done)
objects+=" $(find "$products" -path '*.build/*.o' ! -name '*.swift.o')"
codecs="-lvpx -lavformat -lavcodec -lavutil -lswresample -lyuv -lwebp -lturbojpeg -lopus -lqrencode -lseccomp $(pkg-config --libs pangocairo)"
web="-lwebsockets -luv -lz -lsrt-gnutls"
# shellcheck disable=SC2086
swiftc "-sanitize=$sanitizers" $objects -lssl -lcrypto -lsrtp2 -lusrsctp -lsqlite3 $web $codecs -o "$build/fuzz" >>"$build/build.log" 2>&1 || {
    grep -v 'Cannot export local symbol' "$build/build.log" | tail -n 40
    exit 1
}

# Each line of a .hex file below Tests/Fixtures is a seed; other files are one seed each.
write_seeds() {
    local pattern file line number=0
    pattern=$(sed -n 's|^// Seeds: ||p' "Tests/Fuzz/$1Fuzz.swift")
    [ -n "$pattern" ] || { echo "Tests/Fuzz/$1Fuzz.swift names no seeds (// Seeds: PATTERN)" >&2; exit 1; }
    mkdir -p "$2"
    for file in Tests/Fixtures/$pattern; do
        case $file in
        *.hex)
            while read -r line; do
                number=$((number + 1))
                # shellcheck disable=SC2059
                printf "$(sed 's/../\\x&/g' <<<"$line")" >"$2/$(basename "$file").$number"
            done < <(grep -v '^#' "$file")
            ;;
        *) cp "$file" "$2/" ;;
        esac
    done
}

failed=0
for entry in "${entries[@]}"; do
    corpus=$build/corpus/$entry seeds=$build/seeds/$entry crashers=Tests/Fixtures/Crashers/$entry
    rm -rf "$seeds"
    write_seeds "$entry" "$seeds"
    mkdir -p "$corpus" "$crashers"
    # Swift's own crash handler would end the process before libFuzzer could keep the input.
    if SWIFT_BACKTRACE=enable=no ROSTRUM_FUZZ_ENTRY=$entry "$build/fuzz" -max_total_time="$share" -max_len=8192 \
        -timeout="${ROSTRUM_FUZZ_TIMEOUT:-5}" -rss_limit_mb=2048 -report_slow_units=5 -print_final_stats=1 -artifact_prefix="$crashers/" \
        "$corpus" "$seeds" "$crashers" >"$build/$entry.log" 2>&1; then
        printf '%-12s %s runs, %s edges\n' "$entry" \
            "$(sed -n 's/^stat::number_of_executed_units: *//p' "$build/$entry.log")" \
            "$(grep -o 'cov: [0-9]*' "$build/$entry.log" | tail -n 1 | cut -d' ' -f2)"
    else
        printf '%-12s CRASHED; input in %s, log in %s\n' "$entry" "$crashers" "$build/$entry.log"
        grep -E 'Fatal error|ERROR:|SUMMARY|Test unit written' "$build/$entry.log" | head -n 5 || true
        failed=1
    fi
    rmdir --ignore-fail-on-non-empty "$crashers" Tests/Fixtures/Crashers
done
exit "$failed"
