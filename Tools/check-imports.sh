#!/usr/bin/env bash
# Checks every target against the map (README.md): imports only from targets below it, C only where its handles are
# owned, no clocks or random numbers of its own where code must run in virtual time, no unbounded streams, and no
# closures in a mutex.
# usage: Tools/check-imports.sh [DIRECTORY with Sources]    (default: this checkout)
set -euo pipefail
case ${1:-} in
-h | --help)
    sed -n '2,5s/^# //p' "${BASH_SOURCE[0]}"
    exit 0
    ;;
-*)
    echo "check-imports: unknown option $1; see --help" >&2
    exit 2
    ;;
esac
cd "${1:-$(dirname "${BASH_SOURCE[0]}")/..}"

# What each target may import of this package. A target that is not listed is an error: give it its place.
declare -A below=(
    [Base]=""
    [Wire]="Base"
    [Crypto]="Base Wire COpenSSL CSRTP"
    [SCTP]="Base Wire CUSRSCTP"
    [Codecs]="Base Wire CCodecs CComposing CQREncode"
    [Peer]="Base Wire Crypto SCTP"
    [Forwarding]="Base Wire Crypto SCTP Peer"
    [Ingest]="Base Wire"
    [Restream]="Base Wire"
    [TURN]="Base Wire"
    [Stage]="Base"
    [StoryFeed]="Base"
    [Interaction]="Base"
    [HLS]="Base"
    [Net]="Base Wire Crypto Peer CLinux CSRT"
    [Store]="Base CSQLite"
    [Webhooks]="Base Crypto Store CCurl"
    [Transcoder]="Base Wire Codecs CLinux CMuxer CSandbox"
    [ClientPeer]="Base Wire Crypto SCTP Peer"
    [HTTP]="Base CWebSockets CZlib"
    [Recordings]="Base Wire Forwarding Store Transcoder"
    [Node]="Base Wire Crypto SCTP Peer Forwarding Ingest Restream TURN Stage StoryFeed Interaction HLS Net Store Transcoder Recordings"
    [Gateway]="Base Wire Crypto Restream Stage StoryFeed Interaction HLS Store HTTP Recordings Node"
    [rostrum]="Base Crypto Codecs Net HTTP Recordings Node Gateway Store StoryFeed Webhooks Transcoder"
    [RostrumClient]=""
    [RostrumClientHeadless]="Base Wire Crypto Peer Net ClientPeer HTTP RostrumClient"
    [headless-recorder]="Base Net Transcoder RostrumClient RostrumClientHeadless"
    [headless-speaker]="Codecs RostrumClient RostrumClientHeadless"
    [sfu-bench]="Base Wire Crypto Codecs Peer Restream TURN ClientPeer Net RostrumClient CCurl CMuxer"
)
# What single files may import beyond that, and why.
declare -A exceptions=(
    # What workers, sockets and the transcoder count, by its names.
    [Sources/Gateway/Ingest/MetricsOfIngest.swift]="Net"
    [Sources/Gateway/Operators/OperatorStatistics.swift]="Forwarding Net"
    [Sources/Gateway/Service/MetricsOfNode.swift]="Forwarding Net"
    [Sources/Gateway/Service/MetricsOfNode+Delivery.swift]="Forwarding"
    [Sources/Gateway/Service/MetricsOfNode+Feed.swift]="Forwarding"
    [Sources/Gateway/Service/MetricsOfNode+Machine.swift]="Forwarding Net"
    [Sources/Gateway/Service/MetricsOfNode+TCP.swift]="Net"
    [Sources/Gateway/Service/MetricsOfCompositions.swift]="Transcoder"
    [Sources/Gateway/Service/MetricsOfRenditions.swift]="Transcoder"
    [Sources/Gateway/Service/MetricsOfTranscoder.swift]="Transcoder"
    [Sources/Gateway/Service/MetricsOfTURN.swift]="Net TURN"
    # The clock by which the time from a request to its media is measured.
    [Sources/Gateway/Routes/AnswerTimes.swift]="Net"
    [Sources/Gateway/Routes/GatewayHandler+Sessions.swift]="Net"
    # For app developers to read: it is served with the guide, and is no part of the target.
    [Sources/Gateway/Web/assets/docs/examples/Follow.swift]="RostrumClient"
    # Drawn here, where nothing is decoded: what a phone's camera reads.
    [Sources/Gateway/Routes/GatewayHandler+QRCodes.swift]="Codecs"
)
# Protocol and domain code: time, random numbers, files and sockets are given to it.
pure="Base Wire Peer Forwarding Ingest Restream TURN Stage StoryFeed Interaction HLS"
# For apps on other systems, too: Foundation, and nothing of Linux.
portable="RostrumClient"
# What other targets may use of the system; pure ones only Synchronization, for rings between threads.
system="Foundation FoundationEssentials FoundationNetworking Dispatch Glibc Synchronization"

# Not to be named in pure targets: clocks, sleep, random numbers without `using:`, threads, tasks, output.
impure='ContinuousClock|SuspendingClock|DispatchTime|clock_gettime|gettimeofday|Date\(\)|SystemRandomNumberGenerator'
impure+='|\.shuffled\(\)|\.randomElement\(\)|\bUUID\(|\bTask[. ]*[{(]|Task\.sleep|\bThread\b'
impure+='|\bprint\(|\breadLine\('
# Not to be asked in Node and Recordings, which are given their clock and may be given another: but for the default of
# that parameter.
clocks='MonotonicClock|Moment\.now|ContinuousClock|SuspendingClock|DispatchTime|clock_gettime|gettimeofday|Date\(\)'
clock_default='now: @escaping @Sendable \(\) -> Moment = \{ Moment\.now\(\) \}'

failures=0
complain() {
    echo "$1" >&2
    failures=$((failures + 1))
}

contains() {
    case " $1 " in *" $2 "*) return 0 ;; *) return 1 ;; esac
}

# Lines of code of some Swift files as FILE:NUMBER:TEXT, without comments.
code_lines() {
    grep -HnE '' "$@" | sed -E 's#^([^:]*:[0-9]+:)[[:space:]]*//.*#\1#; s#([^:"])//.*#\1#'
}

import_line='^[^:]*:[0-9]+:[[:space:]]*(@[A-Za-z_]+(\([a-z]+\))? +)*((package|internal|private|fileprivate|public) +)?import '
import_module='s/.*import +((struct|class|enum|protocol|func|var|let|typealias|actor) +)?([A-Za-z_0-9]+).*/\3/'

for directory in Sources/*/; do
    directory=${directory%/}
    target=$(basename "$directory")
    mapfile -t files < <(find "$directory" -name '*.swift' | sort)
    [ ${#files[@]} -gt 0 ] || continue # a C target
    if [ -z "${below[$target]+known}" ]; then
        complain "$directory: target $target is not on the map in Tools/check-imports.sh; add it"
        continue
    fi
    lines=$(code_lines "${files[@]}")
    allowed="${below[$target]} Synchronization"
    if contains "$portable" "$target"; then
        allowed+=" Foundation FoundationNetworking"
    elif ! contains "$pure" "$target"; then
        allowed+=" $system"
    fi
    while IFS= read -r line; do
        [ -n "$line" ] || continue
        module=$(sed -E "$import_module" <<<"$line")
        contains "$allowed ${exceptions[${line%%:*}]:-}" "$module" ||
            complain "${line%:*}: $target may not import $module"
    done < <(grep -E "$import_line" <<<"$lines" || true)
    if contains "Node Recordings" "$target"; then
        while IFS= read -r line; do
            [ -z "$line" ] || complain "$line   <- a clock that was not passed in"
        done < <(grep -E "$clocks" <<<"$lines" | grep -vE "$clock_default" || true)
    fi
    contains "$pure" "$target" || continue
    while IFS= read -r line; do
        [ -z "$line" ] || complain "$line   <- clock, randomness or I/O in a pure target"
    done < <(
        grep -E "$impure" <<<"$lines" || true
        grep -E '\.random\(in:' <<<"$lines" | grep -v 'using:' || true
    )
done

# Queues between threads and tasks are bounded everywhere.
while IFS= read -r place; do
    [ -z "$place" ] || complain "$place: a stream needs a bounded bufferingPolicy"
done < <(
    find Sources -name '*.swift' -exec awk '
        /makeStream\(|Async(Throwing)?Stream(<[^>]*>)?( \{|\([a-z])/ && !/\{ get \}/ {
            if (open > 0) print call
            call = FILENAME ":" FNR; open = 2
        }
        open > 0 && /bufferingPolicy: \.buffering(Oldest|Newest)\(/ { open = 0 }
        /bufferingPolicy: \.unbounded/ { print FILENAME ":" FNR }
        open > 0 && --open == 0 { print call }' {} \;
)

# A closure in a mutex gets deeper at each access, until the stack ends: SharedAction holds one in a structure.
while IFS= read -r place; do
    [ -z "$place" ] || complain "$place   <- a closure in a mutex grows at each access: use SharedAction"
done < <(grep -rnE --include='*.swift' 'Mutex<[^=]*\)( async)?( throws(\([A-Za-z.]+\))?)? -> ' Sources | grep -vE '^[^:]*:[0-9]+: *//' || true)

if [ "$failures" -gt 0 ]; then
    echo "check-imports: $failures violations" >&2
    exit 1
fi
