"""Encoders by RTMP: what they send is seen and heard in a browser, and what cannot be is refused in words."""

from __future__ import annotations

import json
import os
import random
import subprocess
from collections.abc import Iterator
from contextlib import ExitStack
from pathlib import Path

import pytest

import udp
from drivers import Browser, wait_until
from media import check_no_complaints, received, wait_for_frames, wait_for_sound, wait_for_state, watch
from rtmp import PLAIN, SOUND, Encoder, connect, greet, is_closed
from server import Server, free_port


class RTMPServer(Server):
    def __init__(self, log: Path, *arguments: str) -> None:
        self.rtmp_port = free_port()
        super().__init__(log, "--rtmp", f"127.0.0.1:{self.rtmp_port}", *arguments)

    def ingest(self, stream: str, role: str = "host", name: str = "Ann") -> dict:
        status, _, body = self.request(
            "GET", f"/v1/streams/{stream}/ingest",
            headers={"Authorization": f"Bearer {self.token(stream, role, name)}"})
        assert status == 200, (status, body)
        return json.loads(body)

    def address(self, stream: str, role: str = "host", name: str = "Ann") -> str:
        """As an encoder has it: the server, and the key behind it."""
        rtmp = self.ingest(stream, role, name)["rtmp"]
        return f"{rtmp['server']}/{rtmp['key']}"

    def streams(self) -> set[str]:
        return {stream["id"] for stream in self.json("/v1/streams")["streams"] if stream["state"] == "live"}


@pytest.fixture(scope="module")
def rtmp_server(logs: Path) -> Iterator[RTMPServer]:
    server = RTMPServer(logs / "server-rtmp.log")
    yield server
    assert server.is_running, "the server died"
    assert server.stop() == 0


@pytest.fixture
def log(logs: Path, stream: str) -> Path:
    return logs / f"ffmpeg-{stream}.log"


def test_an_encoder_is_seen_and_heard(
    chromium: Browser, rtmp_server: RTMPServer, stream: str, log: Path
) -> None:
    with Encoder(rtmp_server.address(stream), log, sample_rate=44_100) as encoder:
        with watch(chromium, rtmp_server, stream) as page:
            wait_for_state(page, "live")
            seen = wait_for_frames(page)
            assert (seen.width, seen.height, seen.video_codec) == (640, 360, "H264")
            wait_for_sound(page)
            # Nothing is lost on the way, and nobody waits for a key frame that RTMP cannot ask for.
            dropped, before = udp.dropped(), received(page)
            after = wait_for_frames(page, more=60)
            # A browser that gets no processor does not read; that is none of the server's losses.
            unread = sum(count - dropped.get(inode, 0) for inode, count in udp.dropped().items())
            assert after.packets_lost - before.packets_lost <= unread and after.audio_packets > before.audio_packets
            check_no_complaints(page)
            assert encoder.is_running
            encoder.stop()
            page.wait_for("() => document.body.dataset.state !== 'live'", what="the page knows that it is over")


def test_a_late_viewer_begins_within_the_cache(
    chromium: Browser, rtmp_server: RTMPServer, stream: str, log: Path
) -> None:
    """Only the first picture is a key frame, and the viewer comes after it."""
    rare = (*PLAIN[:-1], "100000")
    # The cache keeps them for 20 s: windows, and the first page, for which a busy machine takes long, are there before.
    with watch(chromium, rtmp_server, stream) as first, chromium.open(rtmp_server.origin + "/healthz") as second:
        wait_for_state(first, "waiting")
        with Encoder(rtmp_server.address(stream), log, video=rare):
            wait_for_frames(first)
            second.goto(f"{rtmp_server.origin}/watch/{stream}")
            seen = wait_for_frames(second, more=10)
            assert seen.key_frames == 1
            assert received(first).key_frames == 1, "or what is above proves nothing"


def test_pictures_alone_and_sound_alone(
    chromium: Browser, rtmp_server: RTMPServer, stream: str, log: Path
) -> None:
    with Encoder(rtmp_server.address(stream), log, sound=("-an",)):
        with watch(chromium, rtmp_server, stream) as page:
            wait_for_frames(page)
            assert received(page).audio_packets == 0
    other = f"{stream}-2"
    with Encoder(rtmp_server.address(other), log, video=("-vn",)):
        with watch(chromium, rtmp_server, other) as page:
            wait_for_sound(page)


@pytest.mark.parametrize("what, video, sound, words", [
    ("ten-bits", (*PLAIN[:4], "-profile:v", "high422", "-tune", "zerolatency"), SOUND,
     "profile to baseline, main or high"),
    ("mp3", PLAIN, ("-c:a", "libmp3lame"), "Set the encoder to AAC"),
    ("flv1", ("-c:v", "flv1"), SOUND, "Set the encoder to H.264"),
], ids=["ten-bits", "mp3", "flv1"])
def test_what_browsers_do_not_take_is_refused_in_words(
    rtmp_server: RTMPServer, stream: str, log: Path, what: str, video: tuple[str, ...], sound: tuple[str, ...],
    words: str,
) -> None:
    pixels = "yuv422p10le" if what == "ten-bits" else "yuv420p"
    with Encoder(rtmp_server.address(stream), log, video=video, sound=sound, pixels=pixels) as encoder:
        assert encoder.wait() != 0

    def refusals() -> list[str]:
        return [line for line in rtmp_server.log.read_text().splitlines() if "rtmp.refused" in line and stream in line]
    # The encoder may end before that is written.
    lines = wait_until(refusals, 10, "the refusal is logged")
    assert len(lines) == 1 and words in lines[0], lines


def test_a_key_opens_one_stream_and_can_be_revoked(
    rtmp_server: RTMPServer, stream: str, log: Path
) -> None:
    base = f"rtmp://127.0.0.1:{rtmp_server.rtmp_port}/live"
    for key, words in [
        (stream, "is missing ?token="),
        (f"{stream}?token=abc", "malformed"),
        (f"{stream}?token={rtmp_server.token('elsewhere')}", "doesn't allow"),
        (f"{stream}?token={rtmp_server.token(stream, 'viewer')}", "doesn't allow"),
    ]:
        with Encoder(f"{base}/{key}", log) as encoder:
            assert encoder.wait() != 0
            assert words in log.read_text()
    # Somebody's own token will do.
    with Encoder(f"{base}/{stream}?token={rtmp_server.token(stream)}", log):
        wait_until(lambda: stream in rtmp_server.streams(), 15, "the stream is live")
        # A key is good for nothing else.
        address = rtmp_server.address(stream)
        token = address.split("token=")[1]
        status, _, _ = rtmp_server.request(
            "POST", f"/v1/streams/{stream}/end", headers={"Authorization": f"Bearer {token}"})
        assert status == 401
        status, _, body = rtmp_server.request(
            "DELETE", f"/v1/streams/{stream}/links",
            headers={"Authorization": f"Bearer {rtmp_server.token(stream)}"})
        assert status == 200, body
        # Like links: who is there stays, and nobody else comes by it.
        other = log.with_suffix(".2.log")
        with Encoder(address, other) as encoder:
            assert encoder.wait() != 0
            assert "revoked or replaced" in other.read_text()
        assert stream in rtmp_server.streams()
        # The next key is a new one.
        with Encoder(rtmp_server.address(stream), other):
            wait_until(lambda: "stream.source " in rtmp_server.log.read_text().split("revoked or replaced")[-1], 15,
                       "the new key opens it")


def test_the_latest_publisher_takes_over(
    chromium: Browser, rtmp_server: RTMPServer, stream: str, log: Path
) -> None:
    address = rtmp_server.address(stream)
    with Encoder(address, log) as first, watch(chromium, rtmp_server, stream) as page:
        wait_for_frames(page)
        with Encoder(address, log.with_suffix(".2.log"), size="320x180"):
            assert first.wait() != 0
            page.wait_for("() => document.getElementById('video').videoWidth === 320", what="the other is seen")
            wait_for_frames(page)


def test_the_host_ends_it(rtmp_server: RTMPServer, stream: str, log: Path) -> None:
    with Encoder(rtmp_server.address(stream), log) as encoder:
        wait_until(lambda: stream in rtmp_server.streams(), 15, "the stream is live")
        status, _, body = rtmp_server.request(
            "POST", f"/v1/streams/{stream}/end",
            headers={"Authorization": f"Bearer {rtmp_server.token(stream)}"})
        assert status == 200, body
        assert encoder.wait() != 0


def test_strangers_cannot_fill_it(rtmp_server: RTMPServer, stream: str, log: Path) -> None:
    chance = random.Random(1935)
    files = rtmp_server.open_files()
    with Encoder(rtmp_server.address(stream), log) as encoder, ExitStack() as stack:
        wait_until(lambda: stream in rtmp_server.streams(), 15, "the stream is live")
        waiting = [stack.enter_context(connect(rtmp_server.rtmp_port)) for _ in range(1_000)]
        wait_until(lambda: rtmp_server.open_files() < files + 64, 10, "most of them were closed")
        for client in waiting:
            client.close()
        for size in (1, 100, 100_000):
            client = stack.enter_context(connect(rtmp_server.rtmp_port))
            try:
                client.sendall(b"\x03" + chance.randbytes(1536 + 1536 + size))
            except ConnectionError:
                pass
            assert is_closed(client)
        # A message of 16 MB, and a chunk size that would hold it.
        client = stack.enter_context(connect(rtmp_server.rtmp_port))
        greet(client)
        client.sendall(b"\x02\0\0\0\0\0\x04\x01\0\0\0\0\x00\xff\xff\xff" + b"\x04\0\0\0\xff\xff\xff\x09\x01\0\0\0")
        assert is_closed(client)
        # One who says nothing more does not stay.
        client = stack.enter_context(connect(rtmp_server.rtmp_port))
        client.settimeout(60)
        client.sendall(b"\x03")
        assert is_closed(client)
        assert encoder.is_running and stream in rtmp_server.streams()


@pytest.mark.skipif(
    not os.path.exists("/usr/lib/x86_64-linux-gnu/gstreamer-1.0/libgstrtmp2.so"), reason="no rtmp2sink here")
def test_gstreamer_publishes(chromium: Browser, rtmp_server: RTMPServer, stream: str, log: Path) -> None:
    pipeline = (
        "flvmux name=m streamable=true ! rtmp2sink location={} "
        "videotestsrc is-live=true ! video/x-raw,width=640,height=360,framerate=30/1 ! "
        "openh264enc gop-size=30 ! h264parse ! m. "
        "audiotestsrc is-live=true ! audioconvert ! audio/x-raw,channels=2,rate=48000 ! voaacenc ! aacparse ! m."
    ).format(rtmp_server.address(stream))
    with log.open("w") as output:
        process = subprocess.Popen(["gst-launch-1.0", "-q", *pipeline.split()], stdout=output, stderr=output)
    try:
        with watch(chromium, rtmp_server, stream) as page:
            wait_for_frames(page)
    finally:
        process.terminate()
        process.wait(timeout=10)


def test_the_studio_shows_what_an_encoder_needs(
    chromium: Browser, rtmp_server: RTMPServer, server: Server, stream: str, log: Path
) -> None:
    with chromium.open(f"{rtmp_server.origin}/live/{stream}") as page:
        page.click("#encoder summary")
        address, key = page.wait_for(
            """() => {
                const fields = ['encoder-server', 'encoder-key'].map((id) => document.getElementById(id));
                return fields.every(({value}) => value) && fields.map(({value}) => value);
            }""", what="the panel says where to")
        assert page.evaluate("() => document.getElementById('encoder-key').type") == "password"
        with Encoder(f"{address}/{key}", log):
            wait_until(lambda: stream in rtmp_server.streams(), 15, "the stream is live")
            page.wait_for("() => rostrum.room.info?.state === 'live'", what="the studio knows it")
        check_no_complaints(page)
    # Nothing of it where nobody is taken by RTMP.
    with chromium.open(f"{server.origin}/live/{stream}") as page:
        page.wait_for("() => document.getElementById('encoder') !== null", what="the page is there")
        page.wait_for("async () => (await (await fetch('/v1/server')).json()).rtmp === false", what="it says no")
        assert page.evaluate("() => document.getElementById('encoder').hidden")
