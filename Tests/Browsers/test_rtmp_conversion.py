"""Encoders by RTMP whose H.264 browsers do not show, and what else is made of what encoders send."""

from __future__ import annotations

import json
import os
import signal
from collections.abc import Iterator
from pathlib import Path

import pytest

from drivers import Browser, wait_until
from lossy import LossyPath
from media import check_no_complaints, wait_for_frames, wait_for_sound, wait_for_state, watch
from rtmp import PLAIN, Encoder
from test_composition import transcoder
from test_recordings import complaints, fetched, grown, probe, start, stop, times
from test_rendition import HEIGHT, play, renditions
from test_rtmp import RTMPServer

#: As OBS has it by default: high profile with B-frames, and key frames far apart.
USUAL = ("-c:v", "libx264", "-preset", "veryfast", "-profile:v", "high", "-bf", "3", "-g", "250", "-b:v", "1500k")


@pytest.fixture(scope="module")
def rtmp_server(logs: Path, tmp_path_factory: pytest.TempPathFactory) -> Iterator[RTMPServer]:
    server = RTMPServer(
        logs / "server-rtmp-conversion.log", "--data", str(tmp_path_factory.mktemp("rtmp") / "data"),
        "--max-conversions", "2")
    yield server
    assert server.is_running, "the server died"
    assert server.stop() == 0


@pytest.fixture
def log(logs: Path, stream: str) -> Path:
    return logs / f"ffmpeg-{stream}.log"


def advice(server: RTMPServer, stream: str) -> list[str]:
    return [each["code"] for encoder in server.ingest(stream)["encoders"] for each in encoder["advice"]]


def refusal(server: RTMPServer, stream: str, number: int = 1) -> str:
    """What the log says of the encoder that was refused as this one; not every encoder shows what it was told.

    The encoder may end before that is written.
    """
    def lines() -> list[str]:
        return [line for line in server.log.read_text().splitlines() if "rtmp.refused" in line and stream in line]
    wait_until(lambda: len(lines()) >= number, 10, "the refusal is logged")
    return lines()[number - 1]


def test_an_encoder_with_its_defaults_is_seen_and_heard(
    chromium: Browser, rtmp_server: RTMPServer, stream: str, log: Path
) -> None:
    with Encoder(rtmp_server.address(stream), log, video=USUAL, size="1280x720") as encoder:
        with watch(chromium, rtmp_server, stream) as page:
            wait_for_state(page, "live")
            seen = wait_for_frames(page)
            assert (seen.width, seen.height, seen.video_codec) == (1280, 720, "VP8")
            wait_for_sound(page)
            # Who comes later need not wait for the encoder's next key frame, which comes after eight seconds.
            with watch(chromium, rtmp_server, stream) as late:
                wait_for_frames(late, more=10)
            check_no_complaints(page)
        assert rtmp_server.metrics()["rostrum_conversions"] == 1
        # What comes is measured, and what to set in the encoder is said.
        wait_until(lambda: rtmp_server.ingest(stream)["encoders"][0]["video"]["bitrate"] > 100_000, 20, "it is measured")
        video = rtmp_server.ingest(stream)["encoders"][0]["video"]
        assert (video["codec"], video["profile"], video["width"], video["converted"]) == ("H.264", 100, 1280, True)
        assert "b-frames" in advice(rtmp_server, stream)
        wait_until(lambda: "key-frames-rare" in advice(rtmp_server, stream), 30, "that key frames are rare is told")
        # Others do not see it.
        assert rtmp_server.ingest(stream, "speaker", "Bob")["encoders"] == []
        assert encoder.is_running
    wait_until(lambda: rtmp_server.metrics()["rostrum_conversions"] == 0, 10, "it ends with the encoder")
    assert rtmp_server.ingest(stream)["encoders"] == []


def test_a_transcoder_that_dies_costs_a_moment(
    chromium: Browser, rtmp_server: RTMPServer, stream: str, log: Path
) -> None:
    with Encoder(rtmp_server.address(stream), log, video=USUAL) as encoder:
        with watch(chromium, rtmp_server, stream) as page:
            wait_for_frames(page)
            # After six seconds without a picture the page would ask for a session by itself: a busy machine takes as long.
            page.evaluate("() => { rostrum.connection.renew = () => {}; }")
            before = transcoder(rtmp_server)
            os.kill(before, signal.SIGKILL)
            wait_until(lambda: transcoder(rtmp_server) not in (None, before), 10, "there is another transcoder")
            session = page.evaluate("() => rostrum.connection.session?.resource")
            wait_for_frames(page)
            assert page.evaluate("() => rostrum.connection.session?.resource") == session
            assert encoder.is_running


def test_ten_bits_are_shown_in_eight(
    chromium: Browser, rtmp_server: RTMPServer, stream: str, log: Path
) -> None:
    video = ("-c:v", "libx264", "-preset", "ultrafast", "-profile:v", "high10", "-tune", "zerolatency", "-g", "60")
    with Encoder(rtmp_server.address(stream), log, video=video, pixels="yuv420p10le"):
        with watch(chromium, rtmp_server, stream) as page:
            assert wait_for_frames(page).video_codec == "VP8"
            assert advice(rtmp_server, stream) == ["profile"]


def test_more_than_there_is_room_for_are_refused_in_words(
    rtmp_server: RTMPServer, stream: str, log: Path
) -> None:
    small = ("-c:v", "libx264", "-preset", "ultrafast", "-profile:v", "main", "-bf", "2", "-g", "60")
    names = [f"{stream}-{number}" for number in range(3)]
    # The encoder of the test before may still have one of the two places.
    wait_until(lambda: rtmp_server.metrics()["rostrum_conversions"] == 0, 10, "there is room")
    encoders = [
        Encoder(rtmp_server.address(name), log.with_suffix(f".{name}.log"), video=small, size="160x90")
        for name in names[:2]]
    try:
        for name in names[:2]:
            wait_until(lambda: name in rtmp_server.streams(), 20, "the stream is live")
        with Encoder(rtmp_server.address(names[2]), log, video=small, size="160x90") as third:
            assert third.wait() != 0
        words = refusal(rtmp_server, names[2])
        assert "B-frames to 0" in words and "--max-conversions" in words
        assert all(encoder.is_running for encoder in encoders)
        # Who needs none is taken.
        with Encoder(rtmp_server.address(names[2]), log, size="160x90"):
            wait_until(lambda: names[2] in rtmp_server.streams(), 20, "the third one is live")
    finally:
        for encoder in encoders:
            encoder.stop()


def test_the_studio_tells_what_comes_and_what_to_set(
    chromium: Browser, rtmp_server: RTMPServer, stream: str, log: Path
) -> None:
    with chromium.open(f"{rtmp_server.origin}/live/{stream}") as page:
        page.click("#encoder summary")
        address, key = page.wait_for(
            """() => {
                const fields = ['encoder-server', 'encoder-key'].map((id) => document.getElementById(id));
                return fields.every(({value}) => value) && fields.map(({value}) => value);
            }""", what="the panel says where to")
        with Encoder(f"{address}/{key}", log, video=USUAL):
            report = page.wait_for(
                """() => {
                    const root = document.getElementById('encoder-report');
                    return root.querySelector('[data-code=b-frames]') && /\\d fps/.test(root.innerText) && root.innerText;
                }""", seconds=30, what="the panel tells")
            assert "H.264 high, 640×360" in report and "AAC, 48 kHz" in report and "B-frames to 0" in report
            # Another key; the one before opens nothing any more, and who publishes by it goes on.
            page.click("#replace-key")
            page.click("dialog[data-name=replace-key] [data-value=yes]")
            other = page.wait_for(
                "before => { const {value} = document.getElementById('encoder-key'); return value && value !== before && value; }",
                key, what="there is another key")
            assert stream in rtmp_server.streams()
        page.wait_for(
            "() => document.getElementById('encoder-report').innerText === ''", what="nothing comes any more")
        with Encoder(f"{address}/{key}", log) as encoder:
            assert encoder.wait() != 0
            assert "revoked or replaced" in log.read_text()
        with Encoder(f"{address}/{other}", log):
            page.wait_for(
                "() => /baseline/.test(document.getElementById('encoder-report').innerText)", seconds=20,
                what="the new key opens it")
        check_no_complaints(page)


@pytest.mark.parametrize("video, codec", [(PLAIN, "h264"), (USUAL, "vp8")], ids=["plain", "b-frames"])
def test_it_is_recorded(rtmp_server: RTMPServer, stream: str, log: Path, tmp_path: Path, video: tuple[str, ...],
                        codec: str) -> None:
    with Encoder(rtmp_server.address(stream), log, video=video) as encoder:
        wait_until(lambda: stream in rtmp_server.streams(), 20, "the stream is live")
        start(rtmp_server, stream)
        grown(rtmp_server, stream, 4)
        entry = stop(rtmp_server, stream)
        assert encoder.is_running
    file = fetched(rtmp_server, entry, tmp_path / "file")
    about = probe(file)
    assert sorted(each["codec_name"] for each in about["streams"]) == sorted([codec, "opus"])
    assert complaints(file) == ""
    pictures, sounds = times(file, "video"), times(file, "audio")
    assert abs(sounds[-1] - entry["duration"]) < 0.5 and pictures[-1] < entry["duration"] + 0.5
    assert len(pictures) > 30 and pictures[0] < 0.1 and sounds[0] < 0.5


COLOURS = """([left, right]) => {
    const video = document.getElementById('video'), canvas = document.createElement('canvas');
    [canvas.width, canvas.height] = [64, 36];
    const context = canvas.getContext('2d');
    context.drawImage(video, 0, 0, 64, 36);
    const strongest = (x) => {
        const [red, , blue] = context.getImageData(x, 18, 1, 1).data;
        return red > blue + 80 ? 'red' : blue > red + 80 ? 'blue' : null;
    };
    return strongest(16) === left && strongest(48) === right;
}"""


def test_two_encoders_are_composed(
    chromium: Browser, rtmp_server: RTMPServer, stream: str, log: Path
) -> None:
    headers = {"Authorization": f"Bearer {rtmp_server.token(stream)}", "Content-Type": "application/json"}
    # Nobody is there before ffmpeg has started.
    details = {"programme": "composed", "composition": {"width": 640, "height": 360, "fps": 20}, "hostGraceSeconds": 3600}
    status, _, body = rtmp_server.request("POST", "/v1/streams", json.dumps(details).encode(), headers)
    assert status == 201, body
    status, _, body = rtmp_server.request("POST", f"/v1/streams/{stream}/live", b"", headers)
    assert status == 200, body
    # One as it comes, one converted before it is composed.
    ann = Encoder(rtmp_server.address(stream), log, picture="color=red:size=640x360:rate=30")
    with ann, watch(chromium, rtmp_server, stream) as page:
        assert wait_for_frames(page).video_codec == "H264"
        bob = Encoder(
            rtmp_server.address(stream, "speaker", "Bob"), log.with_suffix(".bob.log"), video=USUAL,
            picture="color=blue:size=640x360:rate=30")
        with bob:
            page.wait_for(COLOURS, ["red", "blue"], seconds=40, what="both are seen beside each other")
            assert rtmp_server.metrics()["rostrum_compositions"] == 1
            wait_for_sound(page)
        page.wait_for(COLOURS, ["red", "red"], seconds=30, what="one fills the picture again")


@pytest.mark.parametrize("video", [PLAIN, USUAL], ids=["plain", "b-frames"])
def test_a_slow_link_gets_a_smaller_picture(
    chromium: Browser, rtmp_server: RTMPServer, stream: str, log: Path, video: tuple[str, ...]
) -> None:
    path = LossyPath(rtmp_server, loss=0, seed=1)
    try:
        with Encoder(rtmp_server.address(stream), log, video=video, size="1280x720"):
            wait_until(lambda: stream in rtmp_server.streams(), 20, "the stream is live")
            with play(chromium, path, stream) as page:
                wait_until(lambda: page.evaluate(HEIGHT) == 720, 60, "the publisher's picture comes")
                path.down.capacity = 300_000
                wait_until(lambda: 0 < page.evaluate(HEIGHT) <= 360, 60, "a smaller picture comes")
                # One that a busy machine ended is made again.
                wait_until(lambda: renditions(rtmp_server) == 1, 20, lambda: f"one makes it: {rtmp_server.metrics()}")
                path.down.capacity = None
                wait_until(lambda: page.evaluate(HEIGHT) == 720, 60, "the publisher's picture comes again")
    finally:
        path.close()


def test_without_a_transcoder_what_cannot_be_is_refused_in_words(logs: Path, stream: str, log: Path) -> None:
    server = RTMPServer(logs / "server-rtmp-off.log", "--transcoder", "off")
    try:
        refused = [(USUAL, "transcoder"), (("-vn",), "The transcoder that converts AAC to Opus is off")]
        for number, (video, words) in enumerate(refused, 1):
            with Encoder(server.address(stream), log, video=video) as encoder:
                assert encoder.wait() != 0
            assert words in refusal(server, stream, number)
        with Encoder(server.address(stream), log):
            wait_until(lambda: stream in server.streams(), 20, "a picture alone is taken")
            wait_until(lambda: advice(server, stream) == ["sound-left-out"], 20, "the host is told of the sound")
    finally:
        server.stop()
