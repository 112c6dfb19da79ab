"""What was recorded of a stream is played by HLS: a playlist of ranges of its file, once it has ended."""

from __future__ import annotations

import json
import re
import subprocess
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest

from drivers import Browser, wait_until
from drivers.patience import patient
from rtmp import PLAIN, Encoder
from server import Server, free_port
from test_dvr import CLOCK, PICTURE
from test_hls import GStreamerPlayer

SECONDS = 15
#: Loads ranges as a playlist names them, from the last to the first, and looks at the picture at some times.
PLAY = """async ([address, times]) => {
    const video = document.body.appendChild(document.createElement('video'));
    const source = new MediaSource();
    video.id = 'recorded';
    video.muted = true;
    video.src = URL.createObjectURL(source);
    await new Promise(done => source.addEventListener('sourceopen', done, {once: true}));
    const text = await (await fetch(address)).text();
    const [, file, size] = text.match(/EXT-X-MAP:URI="([^"]*)",BYTERANGE="(\\d+)@0"/);
    const buffer = source.addSourceBuffer('video/mp4; codecs="avc1.64001F,opus"');
    const append = async (count, offset) => {
        const headers = {Range: `bytes=${offset}-${offset + count - 1}`};
        const answer = await fetch(new URL(file, new URL(address, location)), {headers});
        if (answer.status !== 206) throw new Error(`${answer.status} for ${headers.Range}`);
        buffer.appendBuffer(await answer.arrayBuffer());
        await new Promise((done, failed) => {
            buffer.addEventListener('updateend', done, {once: true});
            buffer.addEventListener('error', failed, {once: true});
        });
    };
    await append(Number(size), 0);
    const segments = [...text.matchAll(/#EXT-X-BYTERANGE:(\\d+)@(\\d+)/g)].map(range => range.slice(1).map(Number));
    for (const [count, offset] of segments.reverse()) await append(count, offset);
    source.endOfStream();
    const clock = CLOCK;
    const shown = [];
    // A seek has ended when its picture is there, which may be some time before it is shown.
    const isShown = time => new Promise(done => {
        const look = (_, {mediaTime}) => {
            if (Math.abs(mediaTime - time) < 0.2) done();
            else video.requestVideoFrameCallback(look);
        };
        video.requestVideoFrameCallback(look);
    });
    for (const time of times) {
        const picture = isShown(time);
        video.currentTime = time;
        await picture;
        shown.push(clock('#recorded'));
    }
    video.currentTime = 0;
    await video.play();
    await new Promise(done => video.requestVideoFrameCallback(() => video.requestVideoFrameCallback(done)));
    const {buffered, duration} = video;
    const result = {duration, ranges: buffered.length, segments: segments.length, shown, error: video.error?.message ?? null};
    video.remove();
    return result;
}""".replace("CLOCK", CLOCK)


@dataclass
class Recorded:
    server: Server
    stream: str
    entry: dict[str, Any]

    @property
    def address(self) -> str:
        return f"{self.server.origin}{self.entry['hls']}"

    def playlist(self, path: str) -> str:
        status, headers, body = self.server.request("GET", path)
        assert (status, headers["content-type"]) == (200, "application/vnd.apple.mpegurl"), body
        return body.decode()


@pytest.fixture(scope="module")
def recorded(logs: Path, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Recorded]:
    """A stream that an encoder published for a while, and that has ended."""
    port = free_port()
    server = Server(
        logs / "server-recorded-hls.log", "--max-hls", "1", "--rtmp", f"127.0.0.1:{port}",
        "--data", str(tmp_path_factory.mktemp("data")))

    def ask(path: str, body: object) -> None:
        headers = {"Authorization": f"Bearer {server.token('show')}", "Content-Type": "application/json"}
        status, _, answer = server.request("POST", path, json.dumps(body).encode(), headers)
        assert status in (200, 201), answer

    # A busy machine starts the encoder late.
    ask("/v1/streams", {"id": "show", "title": "Show", "hostGraceSeconds": 3600})
    address = f"rtmp://127.0.0.1:{port}/live/show?token={server.token('show')}"

    def latest() -> dict[str, Any]:
        entries = server.json("/v1/streams/show/recordings")["recordings"]
        return entries[-1] if entries else {"duration": 0, "state": None}

    with Encoder(address, logs / "encoder-recorded-hls.log", PLAIN, picture=PICTURE):
        ask("/v1/streams/show/live", {})
        # Sound that comes later than the picture would begin another file.
        wait_until(lambda: len(server.json("/v1/streams/show")["tracks"]) == 2, 30, "picture and sound come")
        ask("/v1/streams/show/recording", {})
        wait_until(lambda: latest()["duration"] >= SECONDS, 60, "it is recorded")
        assert latest()["hls"] is None and server.request("GET", f"/hls/show/recordings/{latest()['id']}.m3u8")[0] == 409
        ask("/v1/streams/show/end", {})
    entry = wait_until(lambda: (it := latest())["state"] == "ended" and it, 20, "it is complete")
    assert entry["hls"] == f"/hls/show/recordings/{entry['id']}.m3u8" and entry["contentType"] == "video/mp4"
    yield Recorded(server, "show", entry)
    assert server.stop() == 0


def durations(playlist: str) -> list[float]:
    return [float(length) for length in re.findall(r"#EXTINF:([\d.]+),\n", playlist)]


def packets(address: str) -> list[float]:
    """Times of the picture's packets, as ffprobe finds them."""
    done = subprocess.run(
        ["ffprobe", "-v", "error", "-select_streams", "v", "-show_entries", "packet=pts_time", "-of", "csv=p=0", address],
        capture_output=True, text=True, timeout=patient(60), check=True)
    assert not done.stderr, done.stderr
    return [float(line.rstrip(",")) for line in done.stdout.split() if line.rstrip(",")]


def test_the_stream_is_known_by_it_once_it_has_ended(recorded: Recorded) -> None:
    own = recorded.playlist(recorded.entry["hls"])
    assert "#EXT-X-PLAYLIST-TYPE:VOD\n" in own and own.endswith("#EXT-X-ENDLIST\n")
    # The encoder's key frames come once a second, and each segment begins with one. The first of them is older than
    # the recording, so that less than a second may pass until the next.
    first, *others = durations(own)[:-1]
    assert "#EXT-X-INDEPENDENT-SEGMENTS\n" in own and 3.5 <= first < 5.5, own
    assert all(3.9 < length < 5.5 for length in others), own
    assert abs(sum(durations(own)) - recorded.entry["duration"]) < 0.1, own
    index = recorded.playlist("/hls/show/index.m3u8")
    assert index == own.replace(f"{recorded.entry['id']}.mp4", f"recordings/{recorded.entry['id']}.mp4")
    token = recorded.server.token("show", "viewer")
    assert recorded.playlist(f"/hls/show/t/{token}/recordings/{recorded.entry['id']}.m3u8") == own


def test_ffmpeg_plays_all_of_it(recorded: Recorded) -> None:
    """ffmpeg 5.1 jumps in no fragmented MP4 by HLS, not in what it wrote itself either."""
    for address in (recorded.address, f"{recorded.server.origin}/hls/show/index.m3u8"):
        done = subprocess.run(
            ["ffprobe", "-v", "error", "-show_entries", "format=duration:stream=codec_name", "-of", "json", address],
            capture_output=True, text=True, timeout=patient(60), check=True)
        found = json.loads(done.stdout)
        assert {track["codec_name"] for track in found["streams"]} == {"h264", "opus"}
        assert abs(float(found["format"]["duration"]) - recorded.entry["duration"]) < 0.2, found
    # Nothing is missing of the file.
    assert packets(recorded.address) == packets(f"{recorded.server.origin}{recorded.entry['url']}")
    done = subprocess.run(
        ["ffmpeg", "-v", "error", "-xerror", "-i", recorded.address, "-enc_time_base", "1:90000", "-f", "null", "-"],
        capture_output=True, text=True, timeout=patient(60))
    assert (done.returncode, done.stderr) == (0, "")


def test_a_media_source_plays_it_and_jumps(chromium: Browser, recorded: Recorded) -> None:
    with chromium.open(f"{recorded.server.origin}/docs") as page:
        times = [1, SECONDS - 2, 6.5, 3]
        played = page.evaluate(PLAY, [recorded.entry["hls"], times], seconds=patient(60))
    assert played["error"] is None and played["ranges"] == 1 and played["segments"] >= 3, played
    assert abs(played["duration"] - recorded.entry["duration"]) < 0.2, played
    # The picture began some time before the recording.
    offsets = [shown - time for shown, time in zip(played["shown"], times, strict=True)]
    assert max(offsets) - min(offsets) < 0.5, played


def test_gstreamer_plays_it(recorded: Recorded) -> None:
    count = len(packets(recorded.address))
    player = GStreamerPlayer(recorded.address)
    try:
        wait_until(
            # Those of the first moment come a millisecond apart, and are left out as late.
            lambda: player.shown["video"] >= 0.9 * count and player.shown["audio"] > 45 * SECONDS, SECONDS + 45,
            lambda: f"{count} pictures are shown: {player.shown}")
    finally:
        player.stop()
    assert player.errors == []
