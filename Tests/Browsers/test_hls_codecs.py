"""HLS of a publisher's HEVC, VP9 and AV1: as they are for players that have them, H.264 for all others, made when somebody asks."""

from __future__ import annotations

import hashlib
import os
import re
import signal
import subprocess
from collections.abc import Iterator
from pathlib import Path

import pytest

from drivers import Browser, Page, wait_until
from drivers.patience import patient
from enhanced_rtmp import Clip, EnhancedEncoder
from media import USUAL_VIEWPORT, go_live, wait_for_frames, wait_for_sound, wait_for_state, watch
from server import Server
from test_composition import transcoder
from test_enhanced_rtmp import MakeClip, clip  # noqa: F401
from test_fallback import DELAYED, NO_WEBRTC, wait_for_moving
from test_hls import PLAY, GStreamerPlayer, attributes, awaited, fetch, own_segments
from test_rtmp import RTMPServer

ORIGINAL = "media.m3u8?rendition=original"
ALL = "index.m3u8?renditions=all"
#: How their names begin, and their boxes.
NAMES = {
    "vp09": ("vp09.00.30.08", b"vpcC", "vp9"), "av01": ("av01.0.", b"av1C", "av1"),
    "hvc1": ("hvc1.1.6.L63.90,mp4a", b"hvcC", "hevc"),
}
#: What they are encoded with: of HEVC no sample has a message, which would be left out.
OPTIONS: dict[str, tuple[str, ...]] = {"hvc1": ("-x265-params", "open-gop=0:info=0:log-level=none")}
#: A browser that takes neither of them.
NO_DECODER = f"""() => {{
    ({NO_WEBRTC})();
    const takes = MediaSource.isTypeSupported;
    MediaSource.isTypeSupported = type => takes.call(MediaSource, type) && !/vp09|av01/.test(type);
}}"""
#: One that says that it takes them, and does not.
NO_DECODER_AFTER_ALL = f"""() => {{
    ({NO_WEBRTC})();
    const add = MediaSource.prototype.addSourceBuffer;
    MediaSource.prototype.addSourceBuffer = function(type) {{
        if (/vp09|av01/.test(type)) throw new DOMException('it fails', 'InvalidStateError');
        return add.call(this, type);
    }};
}}"""
#: Media playlists that a page has loaded.
PLAYLISTS = """() => [...new Set(performance.getEntriesByType('resource')
    .map(({name}) => new URL(name)).filter(({pathname}) => pathname.endsWith('media.m3u8'))
    .map(({searchParams}) => searchParams.get('rendition') ?? 'source'))]"""
TAKES_HEVC = """() => MediaSource.isTypeSupported('video/mp4; codecs="hvc1.1.6.L63.90,mp4a.40.2"')"""
SIZE = "() => [video.videoWidth, video.videoHeight]"


@pytest.fixture
def maker(logs: Path, stream: str) -> Iterator[RTMPServer]:
    """A server that makes HLS of one stream, which encoders may publish."""
    server = RTMPServer(logs / f"server-hls-codecs-{stream}.log", "--max-hls", "1")
    yield server
    assert server.is_running
    assert server.stop() == 0


def index_of(maker: Server, base: str, codec: str) -> list[dict[str, str]]:
    """The renditions, each with its `URI`, once what is sent is among them."""
    wait_until(lambda: maker.request("GET", base + ALL)[0] != 404, 20, "it is live")
    text = wait_until(
        lambda: f'CODECS="{codec}' in (text := fetch(maker, base + ALL)) and text, 60, "it is offered as it is")
    lines = text.splitlines()
    return [
        attributes(line.partition(":")[2]) | {"URI": uri}
        for line, uri in zip(lines, lines[1:]) if line.startswith("#EXT-X-STREAM-INF:")]


def made(maker: Server) -> tuple[int, int, int]:
    """How many renditions are made, and of them passed on, and reduced."""
    metrics = maker.metrics()
    return tuple(int(metrics[f"rostrum_encodes{end}"]) for end in ("", "_passed", "_reduced"))  # type: ignore[return-value]


def played(address: str, count: int) -> int | None:
    """Has GStreamer play so many pictures, and blocks of sound, without an error; how high the pictures are."""
    player = GStreamerPlayer(address)
    try:
        wait_until(
            lambda: min(player.shown.values()) >= count, 60, lambda: f"picture and sound are played: {player.shown}")
    finally:
        player.stop()
    assert player.errors == []
    return player.height


def plays(page: Page, size: list[int] | None = None) -> None:
    """Waits until the watch page plays by HLS, in a size."""
    page.wait_for(DELAYED, seconds=40, what="it plays by HLS")
    wait_for_state(page, "live")
    wait_for_moving(page)
    if size:
        page.wait_for(f"size => ({SIZE})().join() === size.join()", size, seconds=20, what=f"{size} is seen", about=SIZE)


def of_segments(maker: Server, base: str, folder: Path) -> Path:
    """A file of what a playlist names of its own."""
    playlist = own_segments(maker, base, ORIGINAL, 2)
    names = re.findall(r"^\w\S+\.m4s$", playlist, re.MULTILINE)[:2]
    initialization = re.match(r'URI="([^"]*)"', playlist)
    assert initialization and len(names) == 2, playlist
    file = folder / "segments.mp4"
    file.write_bytes(b"".join(awaited(maker, base + name)[1] for name in (initialization[1], *names)))
    return file


def samples_of(file: Path) -> list[str]:
    """What a second reader finds of pictures that nobody decoded, each by its digest."""
    listed = subprocess.run(
        ["ffmpeg", "-v", "error", "-i", str(file), "-map", "0:v", "-c", "copy", "-f", "framemd5", "-"],
        capture_output=True, text=True, timeout=patient(30), check=True)
    assert listed.stderr == ""
    return [line.rpartition(",")[2].strip() for line in listed.stdout.splitlines() if not line.startswith("#")]


def digests(clip: Clip) -> set[str]:  # noqa: F811
    return {hashlib.md5(sample.data, usedforsecurity=False).hexdigest() for sample in clip.samples if sample.is_video}


@pytest.mark.parametrize("four_cc", ["vp09", "av01", "hvc1"])
def test_an_encoders_pictures_are_in_segments_as_they_came(
    maker: RTMPServer, stream: str, clip: MakeClip, tmp_path: Path, four_cc: str  # noqa: F811
) -> None:
    base = f"/hls/{stream}/"
    name, box, codec = NAMES[four_cc]
    sent = clip(four_cc, options=OPTIONS.get(four_cc, ()))
    with EnhancedEncoder(maker.address(stream), sent):
        renditions = index_of(maker, base, name)
        # Whoever knows nothing of codecs begins with what everybody plays.
        assert [each["URI"] for each in renditions[:2]] == ["media.m3u8", ORIGINAL], renditions
        assert re.fullmatch(r"avc1\.[0-9A-F]{6},mp4a\.40\.2", renditions[0]["CODECS"])
        assert [each["RESOLUTION"] for each in renditions[:2]] == ["640x360"] * 2
        assert made(maker) == (1, 1, 0), "nobody has asked for H.264"

        file = of_segments(maker, base, tmp_path)
        assert box in file.read_bytes()
        found = subprocess.run(
            ["ffprobe", "-v", "error", "-count_frames", "-select_streams", "v", "-show_entries",
             "stream=codec_name,width,height,pix_fmt,nb_read_frames", "-of", "default=nw=1", str(file)],
            capture_output=True, text=True, timeout=patient(30), check=True)
        assert found.stderr == ""
        told = dict(line.split("=", 1) for line in found.stdout.splitlines())
        assert (told["codec_name"], told["width"], told["height"], told["pix_fmt"]) == (codec, "640", "360", "yuv420p")
        samples = samples_of(file)
        assert int(told["nb_read_frames"]) == len(samples) >= 55
        assert set(samples) <= digests(sent), "every picture is as its encoder made it"
        assert made(maker) == (1, 1, 0), "nobody has asked for H.264"

        # H.264 of the same is there for who asks, with what was said of it before it was made.
        own_segments(maker, base, "media.m3u8", 1)
        assert made(maker) == (2, 1, 0)
        source = index_of(maker, base, name)[0]
        assert (source["RESOLUTION"], source["CODECS"][:9]) == ("640x360", "avc1.6400"), source
        assert int(source["CODECS"][9:11], 16) <= int(renditions[0]["CODECS"][9:11], 16), source
        report = r'REPORT:URI="media\.m3u8(?:\?rendition=(original))?",'
        assert re.findall(report, fetch(maker, base + "media.m3u8")) == ["original"]
        assert re.findall(report, fetch(maker, base + ORIGINAL)) == [""]


@pytest.mark.parametrize("four_cc", ["vp09", "av01"])
def test_an_encoders_pictures_come_as_they_are_and_in_h264_for_others(
    chromium: Browser, firefox: Browser, maker: RTMPServer, stream: str, clip: MakeClip, four_cc: str  # noqa: F811
) -> None:
    base = f"/hls/{stream}/"
    name, _, _ = NAMES[four_cc]
    with EnhancedEncoder(maker.address(stream), clip(four_cc)):
        index_of(maker, base, name)
        for browser in (chromium, firefox):
            with browser.open(f"{maker.origin}/watch/{stream}", USUAL_VIEWPORT, before_load=NO_WEBRTC) as page:
                plays(page, [640, 360])
                assert page.evaluate(PLAYLISTS) == ["original"], browser.name
        assert made(maker)[:2] == (1, 1), "nothing was encoded for them"

        # A device without a decoder has no less than before.
        with chromium.open(f"{maker.origin}/watch/{stream}", USUAL_VIEWPORT, before_load=NO_DECODER) as page:
            plays(page, [640, 360])
            assert page.evaluate(PLAYLISTS) == ["source"]
            assert made(maker) == (2, 1, 0)
        with firefox.open(f"{maker.origin}/watch/{stream}", USUAL_VIEWPORT, before_load=NO_DECODER_AFTER_ALL) as page:
            plays(page, [640, 360])
            assert page.evaluate(PLAYLISTS)[-1] == "source"
        for browser in (chromium, firefox):
            played = browser.open(f"{maker.origin}/healthz").evaluate(PLAY, base, seconds=patient(30))
            assert (played["error"], played["width"], played["height"]) == (None, 640, 360), played


# What comes too late from a browser that has too little of the processor is made anew, in H.264.
@pytest.mark.alone
@pytest.mark.parametrize("codec", ["vp9", "av1"])
def test_a_browsers_pictures_come_as_they_are(
    chromium: Browser, firefox: Browser, maker: RTMPServer, stream: str, codec: str
) -> None:
    """It is asked for key frames as segments need them."""
    with go_live(chromium, maker, stream, codec=codec):
        for browser, before_load in ((chromium, NO_WEBRTC), (firefox, NO_WEBRTC), (firefox, NO_DECODER)):
            with browser.open(f"{maker.origin}/watch/{stream}", USUAL_VIEWPORT, before_load=before_load) as page:
                plays(page)
                width, height = page.evaluate(SIZE)
                assert width >= 160 and height >= 90, browser.name
                # H.264 that the server makes has its key frames where segments need them.
                if before_load == NO_WEBRTC:
                    wait_for_moving(page, 90)
                assert page.evaluate(PLAYLISTS) == ["original" if before_load == NO_WEBRTC else "source"], browser.name


def test_pictures_of_ten_bits_are_made_anew(
    chromium: Browser, maker: RTMPServer, stream: str, clip: MakeClip  # noqa: F811
) -> None:
    """They reach viewers as VP8 already: HLS has H.264 alone."""
    with EnhancedEncoder(maker.address(stream), clip("vp09", "yuv420p10le", ("-profile:v", "2"))):
        renditions = index_of(maker, f"/hls/{stream}/", "avc1.")
        assert ORIGINAL not in [each["URI"] for each in renditions]
        with chromium.open(f"{maker.origin}/watch/{stream}", USUAL_VIEWPORT, before_load=NO_WEBRTC) as page:
            plays(page, [640, 360])
            assert page.evaluate(PLAYLISTS) == ["source"]


def test_hevc_is_played_as_it_is_beside_vp8_and_h264_for_others(
    chromium: Browser, firefox: Browser, maker: RTMPServer, stream: str, clip: MakeClip  # noqa: F811
) -> None:
    """While viewers by WebRTC have VP8, and browsers without a decoder the source."""
    base = f"/hls/{stream}/"
    sent = clip("hvc1", options=OPTIONS["hvc1"])
    assert any(sample.delay > 40 for sample in sent.samples if sample.is_video), "it has B-frames"
    with EnhancedEncoder(maker.address(stream), sent):
        index_of(maker, base, NAMES["hvc1"][0])
        assert played(f"{maker.origin}{base}{ORIGINAL}", 90) == 360
        with watch(chromium, maker, stream) as page:
            seen = wait_for_frames(page)
            assert (seen.width, seen.height, seen.video_codec) == (640, 360, "VP8")
            wait_for_sound(page)
        assert made(maker) == (1, 1, 0), "nobody has asked for H.264"
        for browser in (chromium, firefox):
            with browser.open(f"{maker.origin}/watch/{stream}", USUAL_VIEWPORT, before_load=NO_WEBRTC) as page:
                plays(page, [640, 360])
                has = page.evaluate(TAKES_HEVC)
                assert page.evaluate(PLAYLISTS) == ["original" if has else "source"], browser.name


@pytest.mark.alone
def test_hevc_goes_on_as_it_is_when_the_transcoder_dies_and_when_the_encoder_comes_back(
    maker: RTMPServer, stream: str, clip: MakeClip, tmp_path: Path  # noqa: F811
) -> None:
    base = f"/hls/{stream}/"
    sent = clip("hvc1", options=OPTIONS["hvc1"])

    def initialization() -> str:
        return re.findall(r'^#EXT-X-MAP:URI="([^"]*)"', fetch(maker, base + ORIGINAL), re.MULTILINE)[-1]

    def check_next(before: str) -> str:
        wait_until(lambda: initialization() != before, 60, "it begins anew")
        samples = samples_of(of_segments(maker, base, tmp_path))
        assert len(samples) >= 55 and set(samples) <= digests(sent)
        return initialization()

    with EnhancedEncoder(maker.address(stream), sent):
        index_of(maker, base, NAMES["hvc1"][0])
        first = initialization()
        process = transcoder(maker)
        assert process
        os.kill(process, signal.SIGKILL)
        second = check_next(first)
    with EnhancedEncoder(maker.address(stream), sent):
        check_next(second)
        assert made(maker)[1] == 1


def test_hevc_that_shows_pictures_before_their_key_frames_is_made_anew(
    chromium: Browser, maker: RTMPServer, stream: str, clip: MakeClip  # noqa: F811
) -> None:
    """Who begins with the key frame could not decode them."""
    base = f"/hls/{stream}/"
    sent = clip("hvc1", options=("-x265-params", "open-gop=1:log-level=none"))
    with EnhancedEncoder(maker.address(stream), sent):
        # The first of them comes before the second key frame.
        wait_until(
            lambda: ORIGINAL not in [each["URI"] for each in index_of(maker, base, "avc1.")], 60, "it is not offered any more")
        with chromium.open(f"{maker.origin}/watch/{stream}", USUAL_VIEWPORT, before_load=NO_WEBRTC) as page:
            plays(page, [640, 360])
            assert page.evaluate(PLAYLISTS) == ["source"]
        # Whoever asks for it all the same has what viewers have.
        own_segments(maker, base, ORIGINAL, 2)
        assert made(maker)[1] == 0


def test_players_that_choose_by_bits_alone_are_told_of_h264_alone(
    maker: RTMPServer, stream: str, clip: MakeClip  # noqa: F811
) -> None:
    """GStreamer's goes over to what it has the bits for, and breaks off where that is of another codec."""
    base = f"/hls/{stream}/"
    with EnhancedEncoder(maker.address(stream), clip("vp09")):
        index_of(maker, base, "vp09.")
        assert "vp09" not in fetch(maker, base + "index.m3u8")
        for uri in ("media.m3u8", ORIGINAL):
            own_segments(maker, base, uri, 4)
        played(f"{maker.origin}{base}index.m3u8", 60)
