"""Encoders by Enhanced RTMP: VP9 and AV1 are seen as they are, HEVC made anew, and what makes no sense is refused."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from functools import cache
from pathlib import Path

import pytest

from drivers import Browser, wait_until
from enhanced_rtmp import (
    CODED_FRAMES, SEQUENCE_START, Clip, EnhancedEncoder, Publisher, make_clip, video_tag,
)
from media import check_no_complaints, received, wait_for_frames, wait_for_sound, wait_for_state, watch
from rtmp import Encoder
from test_rtmp import RTMPServer

MakeClip = Callable[..., Clip]


@pytest.fixture(scope="module")
def enhanced_server(logs: Path) -> Iterator[RTMPServer]:
    server = RTMPServer(logs / "server-enhanced-rtmp.log")
    yield server
    assert server.is_running, "the server died"
    assert server.stop() == 0


@pytest.fixture(scope="module")
def clip(tmp_path_factory: pytest.TempPathFactory) -> MakeClip:
    folder = tmp_path_factory.mktemp("clips")

    @cache
    def make(four_cc: str, pixels: str = "yuv420p", options: tuple[str, ...] = ()) -> Clip:
        return make_clip(folder, four_cc, pixels=pixels, options=options)
    return make


def encoder_of(server: RTMPServer, stream: str) -> dict:
    return wait_until(lambda: server.ingest(stream)["encoders"], 20, "the encoder publishes")[0]


def refusals(server: RTMPServer, stream: str) -> list[str]:
    return [line for line in server.log.read_text().splitlines() if "rtmp.refused" in line and stream in line]


@pytest.mark.parametrize("four_cc, name, profile", [("vp09", "VP9", 0), ("av01", "AV1", 0)])
def test_vp9_and_av1_are_seen_as_they_are(
    chromium: Browser, enhanced_server: RTMPServer, stream: str, clip: MakeClip, four_cc: str, name: str, profile: int
) -> None:
    with EnhancedEncoder(enhanced_server.address(stream), clip(four_cc)) as encoder:
        # What may come is announced.
        announced = encoder.received.split(b"fourCcList", 1)[1][:60]
        assert all(each in announced for each in (b"avc1", b"av01", b"vp09", b"hvc1")), announced
        with watch(chromium, enhanced_server, stream) as page:
            wait_for_state(page, "live")
            seen = wait_for_frames(page)
            assert (seen.width, seen.height, seen.video_codec) == (640, 360, name)
            wait_for_sound(page)
            before = received(page)
            after = wait_for_frames(page, more=60)
            assert after.audio_packets > before.audio_packets
            # Who comes later begins with what is cached.
            with watch(chromium, enhanced_server, stream) as late:
                assert wait_for_frames(late).video_codec == name
            check_no_complaints(page)
        assert encoder.is_running
        video = encoder_of(enhanced_server, stream)["video"]
        assert (video["codec"], video["profile"], video["converted"]) == (name, profile, False)
        assert (video["width"], video["height"]) == (640, 360)
        assert enhanced_server.metrics()["rostrum_conversions"] == 0


@pytest.mark.parametrize("four_cc, pixels, options, name, code", [
    ("hvc1", "yuv420p", (), "HEVC", "codec"),
    ("hvc1", "yuv420p10le", (), "HEVC", "codec"),
    ("vp09", "yuv420p10le", ("-profile:v", "2"), "VP9", "profile"),
    ("av01", "yuv420p10le", (), "AV1", "profile"),
], ids=["hevc", "hevc-10-bits", "vp9-10-bits", "av1-10-bits"])
def test_what_hardly_a_browser_shows_is_made_anew(
    chromium: Browser, enhanced_server: RTMPServer, stream: str, clip: MakeClip, four_cc: str, pixels: str,
    options: tuple[str, ...], name: str, code: str,
) -> None:
    sent = clip(four_cc, pixels, options)
    # Of HEVC with B-frames, or what is below proves little.
    assert four_cc != "hvc1" or any(sample.delay > 40 for sample in sent.samples if sample.is_video)
    with EnhancedEncoder(enhanced_server.address(stream), sent) as encoder:
        with watch(chromium, enhanced_server, stream) as page:
            seen = wait_for_frames(page)
            assert (seen.width, seen.height, seen.video_codec) == (640, 360, "VP8")
            wait_for_sound(page)
            check_no_complaints(page)
        status = encoder_of(enhanced_server, stream)
        assert (status["video"]["codec"], status["video"]["converted"]) == (name, True)
        assert [each["code"] for each in status["advice"]] == [code]
        assert enhanced_server.metrics()["rostrum_conversions"] == 1
        assert encoder.is_running


#: Tags of an encoder that make no sense, and what it is told; by what is wrong.
SENSELESS: dict[str, tuple[bytes, str]] = {
    "unknown": (video_tag("vvc1", SEQUENCE_START, b"\x01"), "vvc1 isn't supported. Set the encoder to"),
    "av1": (video_tag("av01", SEQUENCE_START, b"\x81\x00"), "The AV1 configuration is invalid"),
    "vp9": (video_tag("vp09", SEQUENCE_START, bytes(3)), "The VP9 configuration is invalid"),
    "hevc": (video_tag("hvc1", SEQUENCE_START, bytes(30)), "The HEVC configuration is invalid"),
    "four-cc": (b"\x91av0", "its header is cut off"),
    "time": (video_tag("hvc1", CODED_FRAMES, b""), "its header is cut off"),
    "byte": (b"\x90", "its header is cut off"),
}


def test_what_makes_no_sense_is_refused_and_costs_nobody_else_anything(
    chromium: Browser, enhanced_server: RTMPServer, stream: str, log: Path
) -> None:
    with Encoder(enhanced_server.address(stream), log) as encoder, watch(chromium, enhanced_server, stream) as page:
        seen = wait_for_frames(page)
        assert seen.video_codec == "H264"
        for number, (name, (tag, words)) in enumerate(SENSELESS.items(), start=2):
            other = f"{stream}-{number}"
            with Publisher(enhanced_server.address(other)) as publisher:
                publisher.video(tag)
                wait_until(lambda: publisher.is_closed, 10, f"{name}: the server hangs up")  # noqa: B023
                told = publisher.received
                assert b"NetStream.Publish.Rejected" in told and words.encode() in told, name
            lines = wait_until(
                lambda: refusals(enhanced_server, other), 10, f"{name}: the refusal is logged")  # noqa: B023
            assert len(lines) == 1 and words in lines[0], lines
            assert wait_for_frames(page).key_frames >= seen.key_frames, name
            assert encoder.is_running and refusals(enhanced_server, f"{stream} ") == [], name


def test_pictures_that_make_no_sense_are_left_out(
    chromium: Browser, enhanced_server: RTMPServer, stream: str, clip: MakeClip
) -> None:
    """And viewers go on with the next key frame."""
    sent = clip("av01")
    broken = tuple(
        sample if sample.is_key_frame or not sample.is_video or index % 20 else
        type(sample)(True, False, sample.time, 0, b"\xFF" + sample.data[1:])
        for index, sample in enumerate(sent.samples))
    with EnhancedEncoder(
        enhanced_server.address(stream), Clip(sent.four_cc, sent.configuration, broken, sent.length)
    ) as encoder:
        with watch(chromium, enhanced_server, stream) as page:
            before = wait_for_frames(page)
            assert wait_for_frames(page, more=60).key_frames > before.key_frames
        assert encoder.is_running


@pytest.fixture
def log(logs: Path, stream: str) -> Path:
    return logs / f"ffmpeg-{stream}.log"
