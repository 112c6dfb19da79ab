"""Encoders by SRT: what they send in MPEG-TS is seen and heard in a browser, and what is not let in is told why."""

from __future__ import annotations

import json
import os
import random
import re
import subprocess
import time
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack
from pathlib import Path

import pytest

import udp
from drivers import Browser, wait_until
from drivers.patience import patient
from media import check_no_complaints, wait_for_frames, wait_for_sound, wait_for_state, watch
from rtmp import PLAIN, Encoder
from server import Server, free_port
from srt_call import Call, Refused, refusal
from srt_path import SRTPath

PASSPHRASE = "a-passphrase-of-ours"


class SRTServer(Server):
    def __init__(self, log: Path, *arguments: str) -> None:
        self.srt_port = free_port()
        super().__init__(log, "--srt", f"127.0.0.1:{self.srt_port}", *arguments)

    def ingest(self, stream: str) -> dict:
        status, _, body = self.request(
            "GET", f"/v1/streams/{stream}/ingest", headers={"Authorization": f"Bearer {self.token(stream)}"})
        assert status == 200, (status, body)
        return json.loads(body)

    def url(self, stream: str) -> str:
        return self.ingest(stream)["srt"]["url"]

    def called(self, stream_id: str, port: int | None = None) -> str:
        # As it is: the ffmpeg of Debian 12 decodes nothing of it.
        return f"srt://127.0.0.1:{port or self.srt_port}?streamid={stream_id}"

    def streams(self) -> set[str]:
        return {stream["id"] for stream in self.json("/v1/streams")["streams"] if stream["state"] == "live"}

    def lines(self, *words: str) -> list[str]:
        return [line for line in self.log.read_text().splitlines() if all(word in line for word in words)]


@pytest.fixture(scope="module")
def srt_server(logs: Path) -> Iterator[SRTServer]:
    server = SRTServer(logs / "server-srt.log")
    yield server
    assert server.is_running, "the server died"
    assert server.stop() == 0


@pytest.fixture
def log(logs: Path, stream: str) -> Path:
    return logs / f"ffmpeg-srt-{stream}.log"


#: By itself an encoder gives up a server that has not let it in within three seconds; in milliseconds and microseconds.
PATIENTLY = f"&connect_timeout={round(patient(3) * 1e3)}&timeout={round(patient(4) * 1e6)}"


def publish(url: str, log: Path, video: tuple[str, ...] = PLAIN, **options: object) -> Encoder:
    return Encoder(url + PATIENTLY, log, video=video, container="mpegts", **options)


def test_an_encoder_is_seen_and_heard(
    chromium: Browser, srt_server: SRTServer, stream: str, log: Path
) -> None:
    with publish(srt_server.url(stream), log, sample_rate=44_100) as encoder:
        with watch(chromium, srt_server, stream) as page:
            wait_for_state(page, "live")
            seen = wait_for_frames(page)
            assert (seen.width, seen.height) == (640, 360)
            wait_for_sound(page)
            check_no_complaints(page)
        wait_until(lambda: [encoder for encoder in srt_server.ingest(stream)["encoders"] if encoder["link"]], 10,
                   "the link was measured")
        told, = srt_server.ingest(stream)["encoders"]
        assert told["protocol"] == "srt" and not told["video"]["converted"] and told["link"]["latency"] >= 120
        assert encoder.is_running
    wait_until(lambda: srt_server.lines("srt.ended", stream, "by-publisher"), 10, "its end is known")


@pytest.mark.parametrize("name", ["chromium", "firefox"])
def test_b_frames_are_made_anew(
    request: pytest.FixtureRequest, srt_server: SRTServer, stream: str, log: Path, name: str
) -> None:
    browser: Browser = request.getfixturevalue(name)
    defaults = ("-c:v", "libx264", "-preset", "ultrafast", "-bf", "2", "-g", "30")
    with publish(srt_server.url(stream), log, video=defaults):
        with watch(browser, srt_server, stream) as page:
            assert wait_for_frames(page).video_codec == "VP8"
            wait_for_sound(page)
    assert srt_server.lines("srt.b-frames", stream)


def test_who_is_not_let_in_is_told_why(srt_server: SRTServer, stream: str, log: Path) -> None:
    token = srt_server.token(stream)
    for stream_id, code, words in [
        ("", 1400, "streamid must be"),
        (stream, 1400, "missing the key"),
        (f"publish:{stream}:abc", 1401, "malformed"),
        (f"publish:{stream}:{srt_server.token('elsewhere')}", 1401, "doesn't allow"),
        (f"publish:{stream}:{srt_server.token(stream, 'viewer')}", 1401, "doesn't allow"),
        (f"#!::r=live/{stream},s={token}", 1405, "played over SRT"),
        (f"publish:../../{stream}:{token}", 1400, "streamid must be"),
        (f"publish:{stream}\x1b[31m:{token}", 1400, "streamid must be"),
        ("x" * 512, 1400, "missing the key"),
    ]:
        count = len(srt_server.lines("srt.refused", words))
        assert refusal(srt_server.srt_port, stream_id) == code, stream_id
        wait_until(lambda: len(srt_server.lines("srt.refused", words)) > count, 10, f"{stream_id!r} is in the log")
    assert token not in srt_server.log.read_text() and "\x1b" not in srt_server.log.read_text()
    # All ways to say the same.
    for count, stream_id in enumerate([f"#!::r=live/{stream},m=publish,s={token}", f"{stream}?key={token}"], 1):
        with publish(srt_server.called(stream_id), log):
            # The stream may be live from the one before.
            wait_until(
                lambda: len(srt_server.lines("srt.publishing", stream)) == count, 20, f"{stream_id} is let in")
            wait_until(lambda: stream in srt_server.streams(), 20, "the stream is live")
        # Until then it is one of those that an address may have, in the next test, too.
        wait_until(lambda: len(srt_server.lines("srt.ended", stream)) == count, 10, "its end is known")


def test_strangers_cannot_fill_it(srt_server: SRTServer, stream: str, log: Path) -> None:
    stream_id = srt_server.ingest(stream)["srt"]["streamId"].encode()
    with publish(srt_server.url(stream), log) as encoder, ExitStack() as stack:
        wait_until(lambda: stream in srt_server.streams(), 20, "the stream is live")
        # Loopback is one address, of which there may be 64, and the encoder is one of them. The others call side by side:
        # of whom nothing comes is kept for ten seconds, and on a busy machine one after the other would take longer.
        began = time.monotonic()

        def call(_: int) -> int | None:
            """The code of a rejection; None where there is room."""
            try:
                stack.enter_context(Call(srt_server.srt_port, stream_id))
                return None
            except Refused as refused:
                return refused.code

        with ThreadPoolExecutor(8) as callers:
            assert set(callers.map(call, range(63))) == {None}

            def is_full() -> bool:
                codes = set(callers.map(call, range(8)))
                assert codes <= {None, 1402}
                # Where all this took long the first of them have made room, which SRT does after five silent seconds.
                assert codes == {1402} or time.monotonic() - began > 5, "there is room for more"
                return codes == {1402}
            wait_until(is_full, 30, "there is no room for another one")
        assert encoder.is_running and stream in srt_server.streams()


def test_the_latest_publisher_takes_over_and_the_host_ends_it(
    chromium: Browser, srt_server: SRTServer, stream: str, log: Path
) -> None:
    url, stream_id = (srt_server.ingest(stream)["srt"][name] for name in ("url", "streamId"))
    with publish(url, log) as first, watch(chromium, srt_server, stream) as page:
        wait_for_frames(page)
        with publish(url, log.with_suffix(".2.log"), size="320x180") as second:
            assert first.wait() != 0
            page.wait_for("() => document.getElementById('video').videoWidth === 320", what="the other is seen")
            status, _, body = srt_server.request(
                "DELETE", f"/v1/streams/{stream}/links", headers={"Authorization": f"Bearer {srt_server.token(stream)}"})
            assert status == 200, body

            def is_refused() -> bool:
                try:
                    with Call(srt_server.srt_port, stream_id.encode()) as call:
                        wait_until(lambda: not call.send(bytes(1316)), 10, "the server hangs up")
                except Refused as refused:
                    assert refused.code == 1401
                    return True
                return False
            # By the node. Before there is a connection its answer is waited for, but for no more than a tenth of a
            # second: what comes later from a busy one ends the connection.
            wait_until(is_refused, 30, "the key is refused")
            wait_until(lambda: srt_server.lines("srt.refused", "revoked or replaced"), 10, "the log tells why")
            status, _, body = srt_server.request(
                "POST", f"/v1/streams/{stream}/end", headers={"Authorization": f"Bearer {srt_server.token(stream)}"})
            assert status == 200, body
            assert second.wait() != 0


def test_a_passphrase_is_needed_where_there_is_one(logs: Path, stream: str, log: Path) -> None:
    with ExitStack() as stack:
        server = SRTServer(logs / "server-srt-passphrase.log", "--srt-passphrase", PASSPHRASE, "--srt-latency", "300")
        stack.callback(server.stop)
        assert server.ingest(stream)["srt"]["passphrase"]
        for wrong in ("", "&passphrase=another-one-here"):
            with publish(server.url(stream) + wrong, log) as encoder:
                assert encoder.wait() != 0

        def told() -> set[str]:
            lines = server.lines("srt.refused", "Check the passphrase")
            # A caller that is not answered at once asks again, from the same port.
            return {re.search(r"address=(\S+)", line)[1] for line in lines}
        wait_until(lambda: len(told()) == 2, 15, "the log tells both")
        with publish(f"{server.url(stream)}&passphrase={PASSPHRASE}&pbkeylen=32", log):
            wait_until(lambda: stream in server.streams(), 20, "it is live")
            # The stream is live a moment before its encoder is listed.
            link = wait_until(
                lambda: [encoder["link"] for encoder in server.ingest(stream)["encoders"] if encoder["link"]], 10,
                "the link was measured")
            assert link[0]["latency"] == 300
        assert PASSPHRASE not in server.log.read_text()


def test_what_is_no_transport_stream_is_sent_away(srt_server: SRTServer, stream: str) -> None:
    chance = random.Random(9710)
    with Call(srt_server.srt_port, srt_server.ingest(stream)["srt"]["streamId"].encode()) as call:
        wait_until(lambda: not call.send(chance.randbytes(1316)), 30, "the server hangs up")
    assert srt_server.is_running and stream not in srt_server.streams()


def test_a_tenth_lost_on_a_link_of_100_ms_costs_no_picture(
    chromium: Browser, srt_server: SRTServer, stream: str, log: Path
) -> None:
    stream_id = srt_server.ingest(stream)["srt"]["streamId"]
    with SRTPath(srt_server.srt_port, loss=0.1, delay=0.05) as path:
        # In microseconds, as ffmpeg has it; so long that neither chance nor the machine's load decides.
        url = srt_server.called(stream_id, path.port) + "&latency=1500000"
        with publish(url, log), watch(chromium, srt_server, stream) as page:
            unread = udp.dropped()
            before = wait_for_frames(page)
            after = wait_for_frames(page, more=300, seconds=40)
            assert path.lost > 50, "or nothing is proved"
            link = srt_server.ingest(stream)["encoders"][0]["link"]
            assert link["latency"] == 1500 and link["lost"] > 20 and link["roundTrip"] > 80, link
            assert link["dropped"] == 0, link
            # What a browser on a busy machine had no time to read was not lost on the link.
            dropped = sum(count - unread.get(socket, 0) for socket, count in udp.dropped().items())
            assert after.packets_lost - before.packets_lost <= dropped
    metrics = srt_server.request("GET", "/metrics")[2]
    text = metrics.decode() if isinstance(metrics, bytes) else metrics
    lost = re.search(r"^rostrum_srt_packets_lost_total (\d+)", text, re.MULTILINE)
    assert lost and int(lost[1]) > 20, text


@pytest.mark.skipif(
    not os.path.exists("/usr/lib/x86_64-linux-gnu/gstreamer-1.0/libgstsrt.so"), reason="no srtsink here")
def test_gstreamer_publishes(chromium: Browser, srt_server: SRTServer, stream: str, log: Path) -> None:
    pipeline = (
        "mpegtsmux name=m alignment=7 ! srtsink uri={} "
        "videotestsrc is-live=true ! video/x-raw,width=640,height=360,framerate=30/1 ! "
        "openh264enc gop-size=30 ! h264parse config-interval=-1 ! m. "
        "audiotestsrc is-live=true ! audioconvert ! audio/x-raw,channels=2,rate=48000 ! voaacenc ! aacparse ! m."
    ).format(srt_server.url(stream))
    with log.open("w") as output:
        process = subprocess.Popen(["gst-launch-1.0", "-q", *pipeline.split()], stdout=output, stderr=output)
    try:
        with watch(chromium, srt_server, stream) as page:
            wait_for_frames(page)
            wait_for_sound(page)
    finally:
        process.terminate()
        process.wait(timeout=patient(10))


def test_the_studio_shows_what_an_encoder_needs(
    chromium: Browser, srt_server: SRTServer, stream: str, log: Path
) -> None:
    with chromium.open(f"{srt_server.origin}/live/{stream}") as page:
        page.click("#encoder summary")
        url = page.wait_for("() => document.getElementById('encoder-srt').value", what="the panel says where to")
        assert page.evaluate("() => document.getElementById('encoder-srt').type") == "password"
        assert page.evaluate("() => document.getElementById('encoder-server').offsetParent === null"), "no RTMP here"
        with publish(url, log):
            page.wait_for("() => /round trip/.test(document.getElementById('encoder-report').textContent)",
                          what="it tells of the link", seconds=20)
        check_no_complaints(page)
