"""The package: its parts make sense, it has what it needs, and what is in it runs as its unit runs it."""

from __future__ import annotations

import ctypes
import json
import os
import re
import shutil
import subprocess
import urllib.request
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from drivers.process import Process
from server import ROOT, Server, binary, free_port, unpacked

PARTS = ROOT / "Tools" / "package.d"
#: As `systemd-analyze security` counts: 10 is a service without any protection.
MOST_EXPOSED = 3.0


def run(*command: str | Path, **more: Any) -> str:
    result = subprocess.run(
        [str(word) for word in command], capture_output=True, text=True, check=False, **more)
    assert result.returncode == 0, f"{command}: {result.stdout}{result.stderr}"
    return result.stdout


def make_package(output: Path) -> Path:
    """Made of the program under test: a release build takes minutes."""
    return Path(run(
        ROOT / "Tools" / "package", "--program", binary(), "--compression", "none", "--output", output).strip())


@pytest.fixture(scope="module")
def package(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return make_package(tmp_path_factory.mktemp("package"))


@pytest.fixture(scope="module")
def root(package: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Where its files lie as if it had been installed there."""
    directory = tmp_path_factory.mktemp("root")
    run("dpkg-deb", "-x", package, directory)
    secret = directory / "etc/rostrum/secret"
    secret.write_text("0123456789abcdef0123456789abcdef\n")
    secret.chmod(0o600)
    return directory


def configuration(root: Path) -> dict[str, str]:
    """What has to be said otherwise where the package is not at its own place."""
    http = free_port(width=4)
    return {
        "ROSTRUM_CONFIG": str(root / "etc/rostrum/rostrum.toml"),
        "ROSTRUM_SECRET_FILE": str(root / "etc/rostrum/secret"),
        "ROSTRUM_DATA": str(root / "var/lib/rostrum"),
        "ROSTRUM_HTTP": f"127.0.0.1:{http}",
        "ROSTRUM_UDP": f"127.0.0.1:{http + 1}",
        "ROSTRUM_TCP": f"127.0.0.1:{http + 1}",
        "ROSTRUM_WORKERS": "2",
        # Behind all else that a test runs beside, the doctor's trial of it would get no time.
        "ROSTRUM_TRANSCODER_NICE": "0",
    }


def test_control_file(package: Path) -> None:
    fields = dict(
        line.split(": ", 1) for line in run("dpkg-deb", "-f", package).splitlines() if not line.startswith(" "))
    assert fields["Package"] == "rostrum"
    assert re.fullmatch(r"\d+\.\d+\.\d+(~git\d{14}\.[0-9a-f]{12})?", fields["Version"])
    depends = fields["Depends"]
    for needed in ("libssl3", "libwebsockets17", "libavcodec59", "libqrencode4", "libwebsockets-evlib-uv", "adduser"):
        assert re.search(rf"\b{needed}\b", depends), depends
    assert "-dev" not in depends
    listing = run("dpkg-deb", "-c", package)
    for path, mode in {
        "./usr/lib/rostrum/rostrum": "-rwxr-xr-x", "./usr/bin/rostrum": "lrwxrwxrwx",
        "./etc/rostrum/rostrum.toml": "-rw-r--r--", "./lib/systemd/system/rostrum.service": "-rw-r--r--",
    }.items():
        assert re.search(rf"^{mode} root/root .* {re.escape(path)}( |$)", listing, re.MULTILINE), listing
    assert run("dpkg-deb", "-I", package, "conffiles").split() == ["/etc/rostrum/rostrum.toml"]


def test_maintainer_scripts(package: Path, tmp_path: Path) -> None:
    run("dpkg-deb", "-e", package, tmp_path)
    for script in ("postinst", "prerm", "postrm"):
        assert os.access(tmp_path / script, os.X_OK)
        run("sh", "-n", tmp_path / script)
    run("sh", "-n", PARTS / "certbot-deploy-hook")


def test_bill_of_materials(package: Path) -> None:
    document = json.loads(package.with_suffix(".spdx.json").read_text())
    assert document["spdxVersion"] == "SPDX-2.3"
    versions = {part["name"]: part["versionInfo"] for part in document["packages"]}
    for name in ("rostrum", "swift-runtime", "libssl3", "libwebsockets-evlib-uv"):
        assert versions[name] not in ("", "NOASSERTION"), versions
    known = {part["SPDXID"] for part in document["packages"]} | {"SPDXRef-DOCUMENT"}
    for relation in document["relationships"]:
        assert {relation["spdxElementId"], relation["relatedSpdxElement"]} <= known


def test_configuration_file(root: Path) -> None:
    environment = {**os.environ, **configuration(root)}
    lines = run(root / "usr/bin/rostrum", "config", "show", env=environment).splitlines()
    shown = dict(re.split(r"\s+(?=# (?:line|default|/|--|ROSTRUM)|not set$)", line, maxsplit=1) for line in lines)
    path = root / "etc/rostrum/rostrum.toml"
    assert re.fullmatch(rf"# line \d+ of {re.escape(str(path))}", shown['key-id = "main"'])
    assert shown['viewers = "token"'].startswith("# line")
    assert shown["max-sessions = 20000"] == "# default"
    assert any(line.startswith('secret = "<secret>"') for line in lines)
    # Each setting is there, in a comment if it need not be said.
    known = {re.split(r"[ :]", line.removeprefix("# "), maxsplit=1)[0] for line in lines}
    told = set(re.findall(r"^(?:# )?([a-z-]+) = ", path.read_text(), re.MULTILINE))
    assert told == known


def test_unit_file() -> None:
    if shutil.which("systemd-analyze") is None:
        pytest.skip("systemd-analyze is not installed")
    text = run("systemd-analyze", "security", "--offline=true", "--no-pager", PARTS / "rostrum.service")
    found = re.search(r"Overall exposure level for \S+: ([\d.]+)", text)
    assert found and float(found[1]) <= MOST_EXPOSED, text


def allowed_calls() -> set[str]:
    """System calls that the unit allows, as systemd reads its filters."""
    sets: dict[str, set[str]] = {}
    name = ""
    for line in run("systemd-analyze", "syscall-filter", "--no-pager").splitlines():
        if line.startswith("@"):
            name = line.split()[0]
            sets[name] = set()
        elif (word := line.strip()) and not word.startswith("#"):
            sets[name].add(word)

    def members(word: str) -> set[str]:
        if not word.startswith("@"):
            return {word}
        return {call for part in sets.get(word, set()) for call in members(part)}

    allowed = members("@default")
    unit = (PARTS / "rostrum.service").read_text()
    for line in re.findall(r"^SystemCallFilter=(.*)$", unit, re.MULTILINE):
        calls = {call for word in line.removeprefix("~").split() for call in members(word)}
        allowed = allowed - calls if line.startswith("~") else allowed | calls
    return allowed


def under_unit_filter(calls: set[str]) -> Callable[[], None]:
    """Has the kernel refuse a child all other system calls, and memory that is written and run, as the unit does."""
    library = ctypes.CDLL("libseccomp.so.2", use_errno=True)
    library.seccomp_init.restype = ctypes.c_void_p
    allow, permission_denied, context = 0x7FFF0000, 0x00050001, ctypes.c_void_p
    numbers = [library.seccomp_syscall_resolve_name(call.encode()) for call in sorted(calls)]

    def restrict() -> None:
        prctl = ctypes.CDLL(None, use_errno=True).prctl
        assert prctl(38, 1, 0, 0, 0) == 0, "PR_SET_NO_NEW_PRIVS"
        made = context(library.seccomp_init(ctypes.c_uint32(permission_denied)))
        for number in numbers:
            if number >= 0:
                library.seccomp_rule_add(made, ctypes.c_uint32(allow), ctypes.c_int(number), ctypes.c_uint(0))
        assert library.seccomp_load(made) == 0

    return restrict


def test_transcoder_is_confined_within_the_unit(root: Path) -> None:
    """Landlock and seccomp of the transcoder's own are there though the unit filters system calls."""
    if shutil.which("systemd-analyze") is None:
        pytest.skip("systemd-analyze is not installed")
    calls = allowed_calls()
    assert "landlock_restrict_self" in calls and "mount" not in calls
    # Root's transcoder becomes nobody first; the unit's user has nothing to give up.
    if os.geteuid() == 0:
        calls |= {"setgroups", "setresgid", "setresuid"}
    result = subprocess.run(
        [str(root / "usr/bin/rostrum"), "doctor", "--json"], capture_output=True, text=True, check=False,
        env={**os.environ, **configuration(root)}, preexec_fn=under_unit_filter(calls))
    assert result.returncode in (0, 1), result.stderr
    verdicts = {check["subject"]: check for check in json.loads(result.stdout)["checks"]}
    assert verdicts["transcoder"]["verdict"] == "ok", verdicts
    assert verdicts["codecs"]["verdict"] == "ok", verdicts


def test_runs_from_where_it_was_unpacked(root: Path, logs: Path) -> None:
    environment = configuration(root)
    process = Process(
        [str(root / "usr/bin/rostrum"), "serve"], logs / "package.log", r"^ready http=(\S+)", 30, environment)
    try:
        for path, wanted in (("/readyz", b"ready"), ("/", b"<html"), ("/v1/openapi.json", b'"openapi"')):
            with urllib.request.urlopen(f"http://{process.ready[1]}{path}", timeout=30) as answer:
                assert wanted in answer.read()
        # Beside it the doctor knows whose the ports are.
        doctor = subprocess.run(
            [str(root / "usr/bin/rostrum"), "doctor"], capture_output=True, text=True, check=False,
            env={**os.environ, **environment})
        assert f"in use by the running server (process {process.pid})" in doctor.stdout, doctor.stdout
        assert "fail  udp" not in doctor.stdout
    finally:
        assert process.stop() == 0


# MARK: Graphs and alerts


def metrics_of(server: Server) -> dict[str, set[str]]:
    """Names of all series, and the names of their labels."""
    with urllib.request.urlopen(f"{server.origin}/metrics", timeout=30) as answer:
        text = answer.read().decode()
    series: dict[str, set[str]] = {}
    for line in text.splitlines():
        if line.startswith("# TYPE "):
            _, _, name, kind = line.split()
            names = [name] if kind != "histogram" else [f"{name}_{end}" for end in ("bucket", "sum", "count")]
            for each in names:
                series.setdefault(each, set())
        elif found := re.match(r"([a-z_]+)(?:\{(.*)\})? ", line):
            series.setdefault(found[1], set()).update(re.findall(r'(\w+)="', found[2] or ""))
    return series


def expressions() -> list[tuple[str, str]]:
    """Queries of the dashboard and the alerts, each with the text that names its labels."""
    dashboard = json.loads((PARTS / "dashboard.json").read_text())
    found = [
        (target["expr"], target["legendFormat"]) for panel in dashboard["panels"] for target in panel["targets"]]
    rules = re.split(r"^ +- alert: ", (PARTS / "alerts.yml").read_text(), flags=re.MULTILINE)[1:]
    for rule in rules:
        query = re.search(r"^ +expr: (.*)$", rule, re.MULTILINE)
        assert query, rule
        found.append((query[1], rule))
    return found


@pytest.fixture(scope="module")
def told_server(logs: Path, tmp_path_factory: pytest.TempPathFactory) -> Any:
    """With all that has numbers of its own."""
    server = Server(
        logs / "server-metrics.log", "--webhook", "http://127.0.0.1:9/hook", "--webhook-secret", "0123456789abcdef",
        "--data", str(tmp_path_factory.mktemp("data")))
    yield server
    server.stop()


def test_graphs_and_alerts_name_numbers_that_there_are(told_server: Server) -> None:
    series = metrics_of(told_server)
    queries = expressions()
    assert len(queries) > 30
    for query, words in queries:
        names = re.findall(r"\b(?:rostrum|process)_[a-z_]+", query)
        assert names, query
        for name in names:
            assert name in series, f"{name} of {query}"
        labels = set(re.findall(r"\{\{ ?(?:\$labels\.)?(\w+) ?\}\}", words))
        for group in re.findall(r"\bby \(([^)]*)\)", query):
            labels |= {label.strip() for label in group.split(",")}
        for label in labels:
            assert any(label in series[name] for name in names), f"{label} of {query}"


#: What trips each alert, as promtool writes series: a value each minute.
TROUBLE: dict[str, dict[str, str]] = {
    "RostrumDown": {},
    "RostrumRestarted": {"process_start_time_seconds": "100x2 200x2 300x30"},
    "RostrumCannotWrite": {"rostrum_store_failing": "1x30"},
    "RostrumDiskSlow": {"rostrum_store_writing_seconds": "6+60x30"},
    "RostrumWorkerBusy": {'rostrum_worker_load{worker="1"}': "0.95x30"},
    "RostrumForwardingLate": {
        'rostrum_forwarding_latency_seconds_bucket{le="0.05"}': "0+50x30",
        'rostrum_forwarding_latency_seconds_bucket{le="0.1"}': "0+100x30",
        'rostrum_forwarding_latency_seconds_bucket{le="+Inf"}': "0+100x30",
    },
    "RostrumDroppingPackets": {'rostrum_drops_total{reason="noise"}': "0+1200x30"},
    "RostrumJoinsSlow": {
        'rostrum_join_seconds_bucket{le="3"}': "0+50x30", 'rostrum_join_seconds_bucket{le="5"}': "0+100x30",
        'rostrum_join_seconds_bucket{le="+Inf"}': "0+100x30",
    },
    "RostrumTranscoderDying": {"rostrum_transcoder_restarts_total": "0+1x30"},
    "RostrumWebhooksWaiting": {"rostrum_webhooks_waiting": "200x30"},
    "RostrumCertificateExpiring": {"rostrum_certificate_not_after_timestamp_seconds": "86400x30"},
    "RostrumFilesRunningOut": {"process_open_fds": "60000x30", "process_max_fds": "65536x30"},
}


def series(samples: dict[str, str], job: str) -> list[dict[str, str]]:
    named = []
    for name, values in samples.items():
        metric, _, labels = name.removesuffix("}").partition("{")
        labels = ",".join(part for part in (f'job="{job}",instance="{job}:9090"', labels) if part)
        named.append({"series": f"{metric}{{{labels}}}", "values": values})
    return named


def test_alerts_wake_whom_they_should(tmp_path: Path) -> None:
    """Prometheus' own tool reads the rules and runs them: in trouble each one speaks alone, and else none does."""
    promtool = unpacked("usr/bin/promtool")
    run(promtool, "check", "rules", PARTS / "alerts.yml")
    names = re.findall(r"- alert: (\w+)", (PARTS / "alerts.yml").read_text())
    assert names == list(TROUBLE)
    # What programs beside the server say of themselves is no trouble of it.
    others = series({name: values for trouble in TROUBLE.values() for name, values in trouble.items()
                     if name.startswith("process_")}, "other")
    calm = {"rostrum_build_info": "1x30", "process_start_time_seconds": "100x30", "process_open_fds": "100x30",
            "process_max_fds": "65536x30",
            # In a month, by the tests' clock, which begins at 0.
            "rostrum_certificate_not_after_timestamp_seconds": "2592000x30"}
    cases = {"": (calm, others), **{
        name: ({**(calm if trouble else {}), **trouble}, others) for name, trouble in TROUBLE.items()}}
    tests = []
    for trouble, (samples, rest) in cases.items():
        expression = 'count by (alertname) (ALERTS{alertstate="firing"})'
        expected = [{"labels": f'{{alertname="{trouble}"}}', "value": 1}] if trouble else []
        tests.append({
            "interval": "1m", "name": trouble or "calm", "input_series": [*series(samples, "rostrum"), *rest],
            "promql_expr_test": [{"expr": expression, "eval_time": "16m", "exp_samples": expected}],
        })
    plan = tmp_path / "tests.yml"
    # JSON is YAML, too.
    plan.write_text(json.dumps(
        {"rule_files": [str(PARTS / "alerts.yml")], "evaluation_interval": "1m", "tests": tests}))
    run(promtool, "test", "rules", plan)


def test_queries_of_the_dashboard_are_prometheus(tmp_path: Path) -> None:
    rules = [{"record": f"panel{number}", "expr": query} for number, (query, _) in enumerate(expressions())]
    path = tmp_path / "rules.yml"
    path.write_text(json.dumps({"groups": [{"name": "dashboard", "rules": rules}]}))
    run(unpacked("usr/bin/promtool"), "check", "rules", path)


def test_numbers_are_named_as_prometheus_wants(told_server: Server) -> None:
    status, _, text = told_server.request("GET", "/metrics")
    assert status == 200
    found = subprocess.run(
        [unpacked("usr/bin/promtool"), "check", "metrics"], input=text, capture_output=True, check=False)
    assert found.returncode == 0, found.stdout + found.stderr
