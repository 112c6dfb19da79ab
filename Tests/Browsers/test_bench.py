"""sfu-bench, each of its commands for a moment, against Rostrum and against somebody else's server."""

from __future__ import annotations

import json
import os
import re
import shlex
import signal
import subprocess
import time
from collections.abc import Iterator
from html.parser import HTMLParser
from pathlib import Path
from typing import Any
from urllib.parse import quote

import pytest

from drivers import Browser, wait_until
from drivers.patience import patient
from feed import open_feed, wait_for_story
from other_server import OtherServer
from server import Server, binary, free_port
from srt_path import SRTPath

#: Measured; or void, which a busy machine may cause and which says nothing against the tool.
MEASURED, VOID = 0, 3
SHORT = ["--duration", "2s", "--warm-up", "500ms", "--quiet"]
PHASES = ["http", "ice", "dtls", "firstPacket", "firstFrame"]


def run(*arguments: str, seconds: float = 40) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [str(binary().with_name("sfu-bench")), *arguments], capture_output=True, text=True, timeout=patient(seconds),
        stdin=subprocess.DEVNULL)


def measure(command: str, server: str, stream: str, *arguments: str) -> dict[str, Any]:
    viewers = [] if command == "publish" else ["--decrypt-every", "1"]
    began = time.monotonic()
    result = run(command, server, "--stream", stream, *SHORT, *viewers, "--json", "-", *arguments)
    lasted = time.monotonic() - began
    assert result.returncode in (MEASURED, VOID), result.stdout[-2000:] + result.stderr
    report = json.loads(result.stdout[result.stdout.index("{"):]) | {"lasted": lasted}
    assert report["verdict"]["isVoid"] == (result.returncode == VOID)
    assert report["verdict"]["failures"] == []
    assert report["clients"]["failed"] == 0
    return report


def check_frames(report: dict[str, Any], a_second: int, least: float, most: float) -> None:
    """So many were sent in the time that was measured, which on a busy machine is longer than what was asked for."""
    expected = report["media"]["seconds"] * a_second
    assert least * expected <= report["publishing"]["frames"] <= most * expected, expected


def check_key_frame_requests(report: dict[str, Any]) -> None:
    """However many come, a publisher is asked at most once a second; how long they take to come is the machine's."""
    assert report["publishing"]["keyFrameRequests"] <= 1 + report["lasted"]


def check_viewers(report: dict[str, Any], viewers: int) -> None:
    """What every run with viewers must tell."""
    clients, media = report["clients"], report["media"]
    assert clients["viewers"] >= viewers
    assert clients["joined"] == clients["gotFirstFrame"] == clients["viewers"]
    assert [phase["name"] for phase in report["phases"]] == PHASES
    for phase in report["phases"]:
        values = phase["milliseconds"]
        assert 0 < values["p50"] <= values["p95"] <= values["p99"] <= values["maximum"]
    assert media["packets"] > 0 and media["packetsPerSecond"] > 0 and media["megabitsPerSecond"] > 0
    assert media["lost"] == media["reordered"] == media["duplicates"] == media["stalled"] == 0
    assert 0 < media["latency"]["p50"] <= media["latency"]["p99"] < 2_000
    assert 0 <= media["jitter"]["p50"] <= media["jitter"]["p99"]
    assert report["serverUse"]["cpuSeconds"] >= 0 and report["serverUse"]["residentBytes"] > 1_000_000
    assert report["generator"]["cpuSeconds"] > 0 and report["generator"]["threads"]
    assert report["series"] and report["latencyCurve"]


class Metrics(dict[str, float]):
    """The server's counters by name, summed over labels."""

    def __init__(self, server: Server) -> None:
        super().__init__()
        text = server.request("GET", "/metrics")[2].decode()
        for line in text.splitlines():
            if found := re.fullmatch(r"(\w+)(\{.*\})? ([-+.\deE]+)", line):
                for name in (found[1], found[1] + (found[2] or "")):
                    self[name] = self.get(name, 0.0) + float(found[3])
            else:
                assert line.startswith(("# HELP ", "# TYPE ")), line


class WellFormed(HTMLParser):
    """Fails where tags do not match."""

    def __init__(self) -> None:
        super().__init__()
        self.open: list[str] = []
        self.seen: list[str] = []

    def handle_starttag(self, tag: str, attributes: object) -> None:
        self.seen.append(tag)
        if tag != "meta":
            self.open.append(tag)

    def handle_startendtag(self, tag: str, attributes: object) -> None:
        self.seen.append(tag)

    def handle_endtag(self, tag: str) -> None:
        assert self.open.pop() == tag


def test_load_agrees_with_what_the_server_counts(own_server: Server, stream: str, tmp_path: Path) -> None:
    # Its own: what others did a moment ago is counted once a second.
    server = own_server
    before = Metrics(server)
    page = tmp_path / "report.html"
    report = measure("load", server.origin, stream, "--viewers", "5", "--html", str(page))
    check_viewers(report, 5)
    publishing = report["publishing"]
    check_frames(report, 30, least=0.92, most=1.16)
    assert publishing["packets"] > 300
    check_key_frame_requests(report)
    assert report["serverUse"]["microsecondsPerPacket"] > 0
    assert report["serverUse"]["residentBytesPerViewer"] is not None

    def moved(name: str) -> float:
        return after.get(name, 0.0) - before.get(name, 0.0)

    after = wait_for_quiet(server)
    sent = moved("rostrum_rtp_packets_sent_total")
    # The server counts the whole run, the tool the two seconds it measured: no more came in any other second.
    assert report["media"]["packets"] <= sent
    assert report["media"]["packetsPerSecond"] > sent / report["lasted"] / 1.5
    assert moved("rostrum_key_frame_requests_total") >= publishing["keyFrameRequests"]
    for role, count in (("publisher", 1), ("viewer", 5)):
        for phase in ("answered", "ice", "dtls", "first_media"):
            assert moved(f'rostrum_join_seconds_count{{role="{role}",phase="{phase}"}}') == count, (role, phase)
    # What a viewer is given of the past leaves by a timer, and is no forwarding.
    assert moved("rostrum_forwarding_latency_seconds_count") >= report["media"]["packets"]
    for reason in ("no_route", "undecodable", "unauthentic", "replay", "codec_not_negotiated", "oversize"):
        assert moved(f'rostrum_drops_total{{worker="0",reason="{reason}"}}') == 0, reason
    assert after["rostrum_slots"] == after["rostrum_slots_attached"] == 0

    parser = WellFormed()
    parser.feed(page.read_text())
    assert parser.open == []
    assert parser.seen.count("svg") >= 6 and "table" in parser.seen


def wait_for_quiet(server: Server) -> Metrics:
    """Metrics once all sessions are gone: counters are copied out once a second."""
    wait_until(lambda: Metrics(server)["rostrum_sessions"] == 0, 10, "all sessions have ended")
    return Metrics(server)


def test_publish_and_play_apart(server: Server, stream: str) -> None:
    publisher = subprocess.Popen(
        # For longer than what follows may take: it is interrupted.
        [str(binary().with_name("sfu-bench")), "publish", server.origin, "--stream", stream, "--duration", "10m",
         "--warm-up", "0", "--json", "-"], stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, stdin=subprocess.DEVNULL)
    try:
        assert publisher.stderr is not None
        assert "1 publishing to" in publisher.stderr.readline()
        # The second three join a group of pictures older than the server keeps, and so have to ask.
        for duration in ("16s", "2s"):
            report = measure("play", server.origin, stream, "--viewers", "3", "--nack", "--duration", duration)
            check_viewers(report, 3)
            assert report.get("publishing") is None
    finally:
        # Interrupted, it reports what it measured until then.
        publisher.send_signal(2)
        output, _ = publisher.communicate(timeout=patient(15))
    published = json.loads(output[output.index("{"):])
    assert published["publishing"]["packets"] > 0 and published["publishing"]["keyFrameRequests"] >= 1


def test_join_storm(server: Server, stream: str) -> None:
    report = measure("join-storm", server.origin, stream, "--viewers", "10", "--playing", "2")
    check_viewers(report, 12)
    assert report["joins"]["handshakes"] == 10 and report["joins"]["perSecond"] > 0
    assert report["earlier"]["packets"] > 0 and report["earlier"]["lost"] == 0
    assert report["serverUse"]["cpuMillisecondsPerJoin"] >= 0
    check_key_frame_requests(report)


def test_handshakes_alone(server: Server, stream: str) -> None:
    report = measure("join-storm", server.origin, stream, "--viewers", "40", "--playing", "2", "--handshakes-only")
    assert report["clients"]["joined"] == report["clients"]["viewers"] == 42
    assert report["joins"]["handshakes"] == 40 and report["joins"]["perSecond"] > 0
    assert [phase["name"] for phase in report["phases"]] == ["http", "dtls"]
    assert report["earlier"]["packets"] > 0 and report["earlier"]["lost"] == 0
    # Not told where what the server spends on those who play meanwhile hides it, as on a busy machine.
    assert report["serverUse"].get("microsecondsPerHandshake", 0) >= 0


def test_churn(server: Server, stream: str) -> None:
    report = measure("churn", server.origin, stream, "--viewers", "4", "--join-rate", "5", "--gro")
    check_viewers(report, 10)
    assert report["joins"]["handshakes"] >= 5
    check_key_frame_requests(report)


def restarting(server: Server, log: Path, how: str) -> tuple[str, Path]:
    """A shell's command that ends the server and starts it again, and where that writes the new one's process."""
    arguments = Path(f"/proc/{server.pid}/cmdline").read_bytes().rstrip(b"\0").split(b"\0")
    line = " ".join(shlex.quote(argument.decode()) for argument in arguments)
    pid, written = server.pid, log.with_suffix(".pid")
    # Whoever has ended is still there until its parent, this test, asks for its status.
    gone = f"[ ! -e /proc/{pid} ] || grep -q '^State:.Z' /proc/{pid}/status"
    return f"kill -{how} {pid}; until {gone}; do sleep 0.05; done; {line} >>{shlex.quote(str(log))} 2>&1 & echo $! >{written}", written


@pytest.mark.parametrize("how", ["TERM", "KILL"])
def test_restart(logs: Path, stream: str, how: str) -> None:
    """Who publishes and who watches come back by themselves, whether the server said goodbye or not."""
    log = logs / f"server-restart-{how}.log"
    server = Server(log)
    command, written = restarting(server, log, how)
    many = ["restart", server.origin, "--stream", stream, *SHORT, "--duration", "1s", "--bitrate", "300k", "--json", "-"]
    pid = 0
    try:
        result = run(*many, "--streams", "3", "--viewers", "7", "--command", command)
        pid = int(written.read_text())
        assert result.returncode in (MEASURED, VOID), result.stdout[-2000:] + result.stderr
        report = json.loads(result.stdout)
        restart, clients = report["restart"], report["clients"]
        assert report["verdict"]["failures"] == [] and clients["failed"] == 0
        assert restart["isCommanded"] and restart["commandStatus"] == 0 and restart["notReady"] > 0
        for group, count in (("publishers", 3), ("viewers", 21)):
            assert restart[group]["count"] == restart[group]["back"] == clients[group] == count
            assert restart[group]["kept"] == 0 and restart[group]["attempts"]["p50"] >= 1
            assert restart[group]["asked"]["p50"] <= restart[group]["media"]["p50"] < 15_000
        assert 0 < restart["viewers"]["firstPacket"]["p50"] <= restart["viewers"]["media"]["p50"]
        assert clients["gotFirstFrame"] == 21 and report["media"]["packets"] > 0 and report["media"]["stalled"] == 0
        assert report["serverUse"]["source"] == f"process {pid}"
        assert "restart the server now" not in result.stderr
        lost = run(*many, "--viewers", "2", "--command", f"kill -KILL {pid}", "--restart-timeout", "1s")
        assert lost.returncode == 1 and "was not ready again" in lost.stderr, lost.stderr
    finally:
        if pid and Path(f"/proc/{pid}").exists():
            os.kill(pid, signal.SIGKILL)
        server.stop()


def test_ramp(server: Server, stream: str) -> None:
    report = measure(
        "load", server.origin, stream, "--ramp", "2", "--ramp-max", "4", "--duration", "1s", "--srtp", "cm")
    levels = report["ramp"]["levels"]
    assert [level["viewersPerStream"] for level in levels] in ([2, 4], [2])
    # A machine that others use may end it early; then it says why.
    assert report["ramp"].get("maximum") == 4 or levels[-1]["limit"]


def test_interact(server: Server) -> None:
    """All that an audience does, and each of them is told all of it."""
    result = run(
        "interact", server.origin, *SHORT, "--quiet-time", "0", "--viewers", "30", "--hearts", "9", "--comments", "20", "--gifts",
        "80", "--votes", "40", "--json", "-")
    assert result.returncode in (MEASURED, VOID), result.stdout[-2000:] + result.stderr
    report = json.loads(result.stdout)
    assert report["verdict"]["failures"] == [] and report["connected"] == report["viewers"] == 30
    assert report["hearts"]["sent"] == report["hearts"]["counted"] > 100
    assert report["comments"]["accepted"] == report["comments"]["sent"] == report["comments"]["told"] + report["comments"]["more"] > 10
    assert 0 < report["comments"]["arrived"]["p50"] <= report["comments"]["seen"]["maximum"]
    assert report["gifts"]["acknowledged"] > 40 and report["gifts"]["repeated"] > 0
    assert report["votes"]["acknowledged"] == report["votes"]["counted"] > 10
    assert report["busy"]["serverCores"] > 0 and report["busy"]["residentBytesAfter"] > 1_000_000


FEED = ["--viewers", "4", "--bitrate", "300k", "--key-frame-every", "2s", "--swipe-rate", "8", "--duration", "4s"]


@pytest.mark.parametrize("preload", ["eager", "on-swipe"])
def test_feed(server: Server, stream: str, tmp_path: Path, preload: str) -> None:
    page = tmp_path / "report.html"
    report = measure("feed", server.origin, stream, *FEED, "--streams", "5", "--preload", preload, "--html", str(page))
    check_viewers(report, 4)
    swiping = report["swiping"]
    assert swiping["preload"] == preload
    assert 16 <= swiping["swipes"] <= 48 and swiping["refused"] == swiping["moved"] == 0
    # Seen in what came, not in what the server says.
    assert swiping["mostAttached"] == 2 and swiping["momentsOverTwo"] == swiping["strays"] == 0
    assert swiping["brokenStarts"] == 0
    # None where every viewer comes early enough to be given the group of pictures from its start.
    assert swiping["keyFrameRequestsAtMost"] <= 4
    measured = 0
    for way in ("preloaded", "cold"):
        delays = swiping[way]
        for kind in ("packet", "frame", "audio"):
            if values := delays.get(kind):
                assert 0 < values["p50"] <= values["p95"] <= values["maximum"] < 2_000
        measured += (delays.get("frame") or {"count": 0})["count"]
    assert measured >= swiping["swipes"] - swiping["unfinished"] - 4
    assert swiping["preloaded"]["frame"]["count"] > 0
    assert "focus to complete frame" in page.read_text()


def test_feed_of_live_streams(server: Server, stream: str) -> None:
    publisher = subprocess.Popen(
        [str(binary().with_name("sfu-bench")), "publish", server.origin, "--stream", stream, "--streams", "3", "--duration",
         "10m", "--bitrate", "300k"], stdout=subprocess.DEVNULL, stderr=subprocess.PIPE, text=True,
        stdin=subprocess.DEVNULL)
    try:
        assert publisher.stderr is not None
        assert "3 publishing to" in publisher.stderr.readline()
        names = ",".join(f"{stream}-{number}" for number in (1, 2, 3))
        report = measure("feed", server.origin, stream, *FEED, "--streams", names)
        assert report.get("publishing") is None
        assert report["clients"]["gotFirstFrame"] == 4 and report["clients"]["publishers"] == 0
        assert report["swiping"]["swipes"] > 10 and report["swiping"]["mostAttached"] == 2
        assert report["swiping"]["brokenStarts"] == 0 and report["swiping"]["cold"]["frame"]["count"] > 0
    finally:
        publisher.send_signal(2)
        publisher.wait(patient(15))


@pytest.fixture(scope="module")
def film(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Path]:
    """A second of a test picture and a tone, in each of the formats."""
    place = tmp_path_factory.mktemp("film")
    files = {"ivf": place / "film.ivf", "webm": place / "film.webm", "ogg": place / "sound.ogg"}
    picture = ["-f", "lavfi", "-i", "testsrc=size=160x120:rate=20:duration=1"]
    tone = ["-f", "lavfi", "-i", "sine=frequency=440:sample_rate=48000:duration=1"]
    vp8 = ["-c:v", "libvpx", "-deadline", "realtime", "-b:v", "200k", "-g", "20"]
    opus = ["-c:a", "libopus", "-b:a", "32k"]
    for arguments in (
        picture + vp8 + [str(files["ivf"])], picture + tone + vp8 + opus + [str(files["webm"])],
        tone + opus + [str(files["ogg"])],
    ):
        subprocess.run(["ffmpeg", "-v", "error", "-y", *arguments], check=True, stdin=subprocess.DEVNULL)
    return files


@pytest.mark.parametrize("kind", ["ivf", "webm"])
def test_recordings(server: Server, stream: str, film: dict[str, Path], kind: str) -> None:
    sound = ["--audio-file", str(film["ogg"])] if kind == "ivf" else []
    report = measure(
        "load", server.origin, stream, "--viewers", "2", "--file", str(film[kind]), *sound, "--duration", "1s")
    assert report["clients"]["gotFirstFrame"] == 2
    assert report["media"]["packets"] > 0 and report["media"]["lost"] == 0
    # Recordings stay as they are: no time stamps in them.
    assert report["media"].get("latency") is None
    check_frames(report, 20, least=0.75, most=1.3)


@pytest.mark.parametrize("kind", ["rtmp", "srt"])
def test_a_film_is_watched_by_hls(logs: Path, stream: str, kind: str) -> None:
    server = Server(
        logs / f"server-film-{stream}.log", f"--{kind}", f"127.0.0.1:{free_port()}", "--max-hls", "1")
    publisher = subprocess.Popen(
        [str(binary().with_name("sfu-bench")), "publish", server.origin, "--protocol", kind, "--stream", stream,
         "--duration", "10m", "--warm-up", "0", "--json", "-"], stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True,
        stdin=subprocess.DEVNULL)
    try:
        assert publisher.stderr is not None
        assert "1 publishing to" in publisher.stderr.readline()
        # Where the machine stood still while it was measured, once more.
        for _ in range(5):
            result = run(
                "play", server.origin, "--protocol", "hls", "--stream", stream, *SHORT, "--viewers", "5",
                "--connect-timeout", "30s", "--json", "-", seconds=60)
            report = json.loads(result.stdout[result.stdout.index("{"):])
            if report.get("latency") and not report["verdict"]["failures"]:
                break
        assert report["verdict"]["failures"] == [] and result.returncode in (MEASURED, VOID), report
        assert report["started"] == report["viewers"] == 5 and report["start"]["count"] == 5
        # No player can show what it does not have, and this one stays 1.5 s behind the end.
        assert 500 < report["latency"]["p50"] <= report["latency"]["p95"] <= report["latency"]["maximum"]
        assert 0 < report["arrival"]["p50"] < report["latency"]["maximum"]
        assert report["pictures"]["marked"] > report["pictures"]["foreign"] == 0
        requests = report["requests"]
        assert requests["media"] > 0 and requests["playlists"] > 0 and 0 < requests["perSecondAndViewer"] < 50
        assert report["megabitsPerSecond"] > 0 and report["stalls"]["seconds"] >= 0
    finally:
        publisher.send_signal(2)
        output, _ = publisher.communicate(timeout=patient(15))
        assert server.stop() == 0
    published = json.loads(output[output.index("{"):])
    assert published["live"] == published["publishers"] == 1 and published["lost"] == 0
    assert published["frames"] > published["keyFrames"] > 0 and published["megabitsPerSecond"] > 0
    if kind == "srt":
        # Each picture is a packet at least.
        assert published["packets"] >= published["frames"] and published["roundTrip"]["p50"] >= 0, published
        # This machine loses nothing, but may stand still.
        assert published["packetsLost"] + published["packetsDropped"] <= 0.02 * published["packets"], published


def test_what_a_film_by_srt_loses_is_sent_again(logs: Path, stream: str) -> None:
    port = free_port()
    server = Server(logs / f"server-lossy-film-{stream}.log", "--srt", f"127.0.0.1:{port}")
    headers = {"Authorization": f"Bearer {server.token(stream)}"}
    key = json.loads(server.request("GET", f"/v1/streams/{stream}/ingest", headers=headers)[2])["srt"]["streamId"]
    film = ["publish", server.origin, "--protocol", "srt", *SHORT]
    try:
        with SRTPath(port, 0.05, 0.02) as path:
            address = f"srt://127.0.0.1:{path.port}?latency=1000&streamid={quote(key, safe='')}"
            result = run(*film, "--duration", "6s", "--json", "-", "--srt", address)
        assert result.returncode in (MEASURED, VOID), result.stderr
        report = json.loads(result.stdout[result.stdout.index("{"):])
        assert report["live"] == 1 and report["verdict"]["failures"] == []
        # The server asks for what it misses more than once, and counts it once.
        metrics = server.metrics()
        missed, again, late = (
            metrics[f"rostrum_srt_packets_{name}_total"] for name in ("lost", "retransmitted", "dropped"))
        assert 0.01 * report["packets"] < missed <= report["packetsLost"], (report, missed)
        # The last of it may be on its way.
        assert 0.9 * missed <= again + late and again <= report["packetsRetransmitted"], (report, missed, again, late)
        # A machine that stands still for a second sends some of it too late.
        assert report["packetsDropped"] < 0.1 * report["packets"] and report["roundTrip"]["p50"] > 30, report
        # Who is not let in is told why.
        refused = run(*film, "--srt", f"srt://127.0.0.1:{port}?streamid=publish:{stream}:x")
        assert refused.returncode == 1 and "the server does not know the key" in refused.stderr, refused.stderr
    finally:
        assert server.stop() == 0


@pytest.fixture
def other() -> Iterator[OtherServer]:
    server = OtherServer(token="secret")
    yield server
    server.close()


def test_another_server(other: OtherServer, film: dict[str, Path]) -> None:
    token = ["--token", "secret", "--duration", "2s"]
    report = measure("play", other.origin, "s1", "--viewers", "1", *token)
    assert report["clients"]["gotFirstFrame"] == 1 and report["media"]["packets"] > 0
    assert [phase["name"] for phase in report["phases"]] == PHASES
    published = measure("publish", other.origin, "s1", "--file", str(film["webm"]), *token)
    assert published["publishing"]["packets"] > 0
    assert other.redirected == 1
    assert other.frames > 10 and other.samples > 48_000, "it decoded picture and sound"
    assert other.deleted == 1, "the publisher's session was ended by DELETE at the absolute Location"


@pytest.mark.parametrize(("arguments", "status", "words"), [
    (["load", "http://127.0.0.1:9"], 1, "no answer: 127.0.0.1:9"),
    (["load", "{origin}", "--token", "nonsense"], 1, "HTTP 401"),
    (["play", "{origin}", "--whep", "/nothing/{{stream}}"], 1, "HTTP 404"),
    (["play", "{origin}", "--stream", "nobody"], 1, "HTTP 409"),
    (["play", "{origin}", "--protocol", "hls", "--stream", "nobody", "--connect-timeout", "1s"], 1, "HTTP 404"),
    (["publish", "{origin}", "--protocol", "rtmp"], 1, "does not accept RTMP"),
    (["publish", "{origin}", "--protocol", "srt"], 1, "does not accept SRT"),
    (["play", "--protocol", "rtmp"], 2, "whep or hls"),
    (["load", "{origin}", "--file", __file__], 2, "neither an IVF nor a WebM file"),
    (["load", "http://192.0.2.1:8080"], 2, "--i-own-this-server"),
    (["interact", "--viewers", "3", "--comments", "9"], 2, "one per second at most"),
    (["interact", "{origin}", "--token", "x"], 1, "many people"),
    (["restart", "{origin}", "--viewers", "1", "--warm-up", "0", "--command", "exit 3"], 1, "exited with status 3"),
    (["restart", "{origin}", "--ready", "/nothing"], 1, "give another one with --ready"),
    (["feed", "--streams", "ann,ann"], 2, "two or more streams such as a,b,c"),
    (["load", "--viewer", "3"], 2, "did you mean --viewers?"),
    ([], 2, "no command given"),
])
def test_errors_say_what_is_wrong(server: Server, arguments: list[str], status: int, words: str) -> None:
    result = run(*(argument.format(origin=server.origin) for argument in arguments))
    assert result.returncode == status, result.stdout + result.stderr
    assert words in result.stderr
    assert len(result.stderr.splitlines()) <= 3, result.stderr


@pytest.mark.parametrize("command", ["", "publish", "play", "load", "join-storm", "churn", "restart", "feed", "sync", "interact", "demo"])
def test_help(command: str) -> None:
    result = run(*filter(None, [command, "--help"]))
    assert result.returncode == 0 and result.stderr == ""
    assert "usage: sfu-bench" in result.stdout
    assert all(len(line) <= 110 for line in result.stdout.splitlines())


SHOWS = {"aurora", "harbour", "city"}


def feed_of(server: Server) -> dict[str, dict[str, Any]]:
    """What is in the feed, by stream."""
    return {item["id"]: item for item in server.json("/v1/feed?limit=100")["items"]}


def test_demo(chromium: Browser, server: Server) -> None:
    """What a newcomer sees first: stories that move, with people who talk."""
    demo = subprocess.Popen(
        [str(binary().with_name("sfu-bench")), "demo", server.origin], stderr=subprocess.PIPE, text=True,
        stdin=subprocess.DEVNULL)
    try:
        assert demo.stderr is not None
        assert "drawing" in demo.stderr.readline()
        said = demo.stderr.readline()
        assert said.startswith("live: ") and said.count(" · ") == 2, said
        # The feed hears of streams a moment later.
        stories = wait_until(
            lambda: (all_ := feed_of(server)).keys() >= SHOWS and all(all_[show]["title"] for show in SHOWS) and all_, 10,
            "all of them are in the feed")
        for show in SHOWS:
            assert stories[show]["title"] in said and stories[show]["hostName"]
        page = open_feed(chromium, server, path="/?stream=harbour")
        wait_for_story(page, "harbour", seconds=patient(30))
        page.wait_for("() => document.querySelector('.comments li') !== null", seconds=30, what="somebody writes")
        page.close()
    finally:
        demo.send_signal(15)
        demo.communicate(timeout=patient(15))
    assert demo.returncode == 0
    wait_until(lambda: not feed_of(server).keys() & SHOWS, 10, "none of them is in the feed")
