"""HLS: what a browser publishes plays in ffmpeg, GStreamer and a MediaSource, and nothing of it costs anything unasked."""

from __future__ import annotations

import json
import os
import re
import signal
import struct
import subprocess
import time
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from datetime import datetime
from pathlib import Path
from threading import Thread

import pytest

from drivers import Browser, wait_until
from drivers.patience import patient
from media import end_stream, go_live, press_go_live
from rtmp import Encoder
from server import Server, free_port
from slow_stream import SlowStream
from test_previews import transcoder

#: Appends what the media playlist names, part by part, as low-latency players do; true once it plays.
PLAY = """async base => {
    const video = document.body.appendChild(document.createElement('video'));
    const source = new MediaSource();
    video.muted = true;
    video.src = URL.createObjectURL(source);
    await new Promise(done => source.addEventListener('sourceopen', done, {once: true}));
    // On a busy machine what is waited for may take longer than the server lets a request wait.
    const get = async path => {
        for (;;) {
            const answer = await fetch(base + path);
            if (answer.status !== 503) return answer;
        }
    };
    const text = async path => (await get(path)).text();
    const codecs = (await text('index.m3u8')).match(/CODECS="([^"]*)"/)[1];
    const buffer = source.addSourceBuffer(`video/mp4; codecs="${codecs}"`);
    const append = async path => {
        buffer.appendBuffer(await (await get(path)).arrayBuffer());
        await new Promise((done, failed) => {
            buffer.addEventListener('updateend', done, {once: true});
            buffer.addEventListener('error', failed, {once: true});
        });
    };
    let playlist = await text('media.m3u8');
    let initialization = '', named = '', unhinted = 0;
    const seen = new Set();
    while (seen.size < 10) {
        for (const [, tag, name] of playlist.matchAll(/EXT-X-(MAP|PART):[^\\n]*URI="([^"]*)"/g)) {
            if (tag === 'MAP') named = name;
            if (tag === 'MAP' || seen.has(name)) continue;
            if (initialization !== named) {
                // Another size or a new encode begins another time line at 0, which players put behind the last one.
                const {buffered} = buffer;
                if (buffered.length > 0) buffer.timestampOffset = buffered.end(buffered.length - 1);
                await append(initialization = named);
            }
            await append(name);
            seen.add(name);
        }
        // What is hinted at blocks until it is there.
        const hinted = playlist.match(/PRELOAD-HINT:TYPE=PART,URI="([^"]*-p(\\d+)-(\\d+)[^"]*)"/);
        if (!hinted) {
            // An encode that a busy machine leaves behind begins anew, and hints at nothing before its first part is there.
            if (playlist.includes('ENDLIST') || ++unhinted > 100) throw new Error(`no part is hinted at: ${playlist}`);
            await new Promise(done => setTimeout(done, 100));
            playlist = await text('media.m3u8');
            continue;
        }
        const [, hint, segment, part] = hinted;
        if (!seen.has(hint)) await append(hint);
        seen.add(hint);
        playlist = await text(`media.m3u8?_HLS_msn=${segment}&_HLS_part=${part}`);
    }
    video.currentTime = buffer.buffered.start(0);
    await video.play();
    await new Promise(done => video.requestVideoFrameCallback(() => video.requestVideoFrameCallback(done)));
    const {buffered} = buffer;
    const data = {width: video.videoWidth, height: video.videoHeight, ranges: buffered.length,
        seconds: [...Array(buffered.length).keys()].reduce((sum, at) => sum + buffered.end(at) - buffered.start(at), 0),
        parts: [...seen].map(part => part.match(/-p(\\d+)-(\\d+)/).slice(1).map(Number)), error: video.error?.message ?? null};
    video.remove();
    return data;
}"""


@pytest.fixture
def maker(logs: Path, stream: str) -> Iterator[Server]:
    """A server that makes HLS of one stream."""
    server = Server(logs / f"server-hls-{stream}.log", "--max-hls", "1")
    yield server
    assert server.is_running
    assert server.stop() == 0


@contextmanager
def encoding(logs: Path, stream: str) -> Iterator[Server]:
    """A server with a stream that an encoder publishes, as rich in quiet moments as in others, and always of one size."""
    port = free_port()
    maker = Server(logs / f"server-renditions-{stream}.log", "--max-hls", "1", "--rtmp", f"127.0.0.1:{port}")
    video = ("-c:v", "libx264", "-preset", "veryfast", "-bf", "0", "-g", "60", "-b:v", "1500k", "-maxrate", "1500k",
             "-bufsize", "750k", "-nal-hrd", "cbr")
    address = f"rtmp://127.0.0.1:{port}/live/{stream}?token={maker.token(stream)}"
    with Encoder(address, logs / f"encoder-{stream}.log", video, size="854x480"):
        wait_until(lambda: maker.request("GET", f"/hls/{stream}/index.m3u8")[0] == 200, 30, "it can be watched")
        yield maker
    assert maker.stop() == 0


@pytest.fixture
def encoded(logs: Path, stream: str) -> Iterator[Server]:
    with encoding(logs, stream) as maker:
        yield maker


class GStreamerPlayer:
    """Plays an address, and counts the buffers that it would show."""

    def __init__(self, address: str) -> None:
        sinks = [f"{kind}-sink=fakesink name={kind} silent=false sync=true" for kind in ("video", "audio")]
        self._process = subprocess.Popen(
            ["gst-launch-1.0", "-v", "playbin3", f"uri={address}", *sinks], stdout=subprocess.PIPE, stderr=subprocess.STDOUT,
            text=True)
        #: Of the picture, in lines.
        self.height = 0
        self.errors: list[str] = []
        self._shown = {"video": 0, "audio": 0}
        self._reader = Thread(target=self._read, daemon=True)
        self._reader.start()

    @property
    def shown(self) -> dict[str, int]:
        return dict(self._shown)

    def stop(self) -> None:
        self._process.kill()
        self._process.wait()
        self._reader.join(5)

    def _read(self) -> None:
        assert self._process.stdout
        for line in self._process.stdout:
            for kind in self._shown:
                self._shown[kind] += f"chain   ******* ({kind}:sink)" in line
            if caps := re.search(r"GstFakeSink:video.*caps = video/x-raw.*height=\(int\)(\d+)", line):
                self.height = int(caps[1])
            if "ERROR" in line:
                self.errors.append(line)


def awaited(server: Server, path: str) -> tuple[int, bytes]:
    """Status and body; on a busy machine what is waited for may take longer than the server lets a request wait."""
    def answer() -> tuple[int, bytes] | None:
        status, _, body = server.request("GET", path)
        is_late = status == 503 and json.loads(body).get("rule") == "late"
        return None if is_late else (status, body)
    return wait_until(answer, 30, f"{path} is there")


def fetch(server: Server, path: str) -> str:
    status, body = awaited(server, path)
    assert status == 200, (status, body)
    return body.decode()


def metric(server: Server, name: str) -> float:
    found = re.search(rf"^{name} (\S+)$", fetch(server, "/metrics"), re.MULTILINE)
    assert found, name
    return float(found[1])


def hinted(playlist: str) -> tuple[str, int, int]:
    """The part that comes next: its name, its segment's number, and its own."""
    found = re.search(r'#EXT-X-PRELOAD-HINT:TYPE=PART,URI="(\w+-p(\d+)-(\d+)\.m4s)"', playlist)
    assert found, playlist
    return found[1], int(found[2]), int(found[3])


def follows(part: list[int], other: list[int]) -> bool:
    """Whether no part lies between the two, each by its segment's number and its own: two to the first segment, then four."""
    (segment, number), (next_segment, next_number) = part, other
    if next_segment == segment:
        return next_number == number + 1
    return next_segment == segment + 1 and next_number == 0 and number in (1, 3)


def test_a_browsers_stream_plays_in_ffmpeg_and_in_a_media_source(
    chromium: Browser, maker: Server, stream: str
) -> None:
    base = f"/hls/{stream}/"
    assert maker.request("GET", base + "index.m3u8")[0] == 404
    with go_live(chromium, maker, stream) as page:
        assert metric(maker, "rostrum_hls_streams") == 0
        asked = time.monotonic()
        master = fetch(maker, base + "index.m3u8")
        media = fetch(maker, base + "media.m3u8")
        print(f"first playlists after {time.monotonic() - asked:.2f} s")
        assert re.search(r'CODECS="avc1\.[0-9A-F]{6},mp4a\.40\.2"', master), master
        # One that a busy machine leaves behind begins anew, with a shorter one before it.
        wait_until(lambda: "#EXTINF:1.000," in fetch(maker, base + "media.m3u8"), 30, "a segment is a second long")
        done = subprocess.run(
            # Three seconds of what is encoded while nothing else wants the machine.
            ["ffmpeg", "-v", "info", "-i", maker.origin + base + "index.m3u8", "-frames:v", "90", "-af", "volumedetect",
             "-f", "null", "-"], capture_output=True, text=True, timeout=patient(30), check=True)
        assert int(re.findall(r"frame=\s*(\d+)", done.stderr)[-1]) == 90, done.stderr
        loudness = re.search(r"mean_volume: (-?[\d.]+) dB", done.stderr)
        assert loudness and float(loudness[1]) > -60, done.stderr
        played = page.evaluate(PLAY, base, seconds=patient(30))
        # Only a page that a busy machine holds up may miss parts, and goes on behind them.
        missed = sum(not follows(*pair) for pair in zip(played["parts"], played["parts"][1:]))
        assert played["error"] is None and 1 <= played["ranges"] <= 1 + missed and played["height"] > 0, played
        # Each time that plays from the next segment's beginning, which up to three parts come before.
        assert played["seconds"] >= 3 - 1.5 * missed, played
        end_stream(page)
        ended = wait_until(
            lambda: (text := fetch(maker, base + "media.m3u8")) and "#EXT-X-ENDLIST" in text and text, 15, "the end")
        assert "PRELOAD-HINT" not in ended
    # Who comes back begins anew, also while the end is still there.
    with go_live(chromium, maker, stream):
        again = wait_until(
            lambda: (text := fetch(maker, base + "media.m3u8")) and "#EXT-X-ENDLIST" not in text and text, 15, "it is back")
        assert hinted(again)[0].split("-")[0] not in ended


def attributes(line: str) -> dict[str, str]:
    return {name: value.strip('"') for name, value in re.findall(r'([A-Z-]+)=("[^"]*"|[^,]*)', line)}


def own_segments(server: Server, base: str, uri: str, least: int) -> str:
    """The end of a playlist that has so many segments of its own: before them comes what it took over from another one."""
    def end() -> str | None:
        last = fetch(server, base + uri).rpartition("#EXT-X-MAP:")[2]
        return last if last.count("#EXTINF") >= least else None
    return wait_until(end, 60, f"{least} segments of {uri}")


def moment_of_zero(server: Server, base: str, uri: str) -> float:
    """When the time 0 of a rendition's media was captured, in seconds of the clock of days."""
    found = re.search(
        r'^URI="([^"]*)"\n#EXT-X-PROGRAM-DATE-TIME:(\S+)\n[\s\S]*?\n(\w\S+\.m4s)\n', own_segments(server, base, uri, 1))
    assert found
    (_, initialization), (_, segment) = awaited(server, base + found[1]), awaited(server, base + found[3])
    # The first track's, as version 0 of one box and version 1 of the other say it.
    header, time = initialization.index(b"mdhd"), segment.index(b"tfdt")
    (scale,) = struct.unpack_from(">I", initialization, header + 16)
    (ticks,) = struct.unpack_from(">Q", segment, time + 8)
    return datetime.fromisoformat(found[2]).timestamp() - ticks / scale


def test_those_whose_link_carries_less_have_other_renditions(encoded: Server, stream: str) -> None:
    maker, base = encoded, f"/hls/{stream}/"
    master = fetch(maker, base + "index.m3u8").splitlines()
    source, low, sound = (attributes(line) for line in master if line.startswith("#EXT-X-STREAM-INF"))
    assert [line for line in master if not line.startswith("#")] == [
        "media.m3u8", "media.m3u8?rendition=low", "media.m3u8?rendition=sound"]
    assert metric(maker, "rostrum_encodes_reduced") == 0, "nobody has asked for them"
    (source_width, source_height), (width, height) = ([int(side) for side in each["RESOLUTION"].split("x")] for each in (source, low))
    assert (source_width, source_height, width, height) == (854, 480, 640, 360), (source, low)
    # What was said of them before they were made is true.
    zeros = [moment_of_zero(maker, base, uri) for uri in ("media.m3u8", "media.m3u8?rendition=low", "media.m3u8?rendition=sound")]
    assert fetch(maker, base + "index.m3u8").count(f'CODECS="{low["CODECS"]}"') >= 1
    made = [attributes(line) for line in fetch(maker, base + "index.m3u8").splitlines() if line.startswith("#EXT-X-STREAM-INF")]
    assert [each["CODECS"] for each in made[1:]] == [low["CODECS"], sound["CODECS"]]
    assert [each["RESOLUTION"] for each in made[1:2]] == ["640x360"] and "RESOLUTION" not in made[2]
    assert all(int(each["AVERAGE-BANDWIDTH"]) <= int(told["BANDWIDTH"]) for each, told in zip(made[1:], (low, sound)))
    # They have one clock, up to what a decoder holds back: players go from one to the other.
    assert max(zeros) - min(zeros) < 0.5, zeros
    assert metric(maker, "rostrum_encodes_reduced") == 2
    assert metric(maker, "rostrum_hls_streams") == 1
    report = r'#EXT-X-RENDITION-REPORT:URI="media\.m3u8\?rendition=(low|sound)",LAST-MSN=\d+,LAST-PART=\d+\n'
    assert re.findall(report, fetch(maker, base + "media.m3u8")) == ["low", "sound"]
    # ffmpeg begins three segments before the end.
    own_segments(maker, base, "media.m3u8?rendition=low", 3)
    for rendition, length in (("low", ("-frames:v", "90")), ("sound", ("-t", "3"))):
        done = subprocess.run(
            ["ffmpeg", "-v", "info", "-i", f"{maker.origin}{base}media.m3u8?rendition={rendition}", *length,
             "-af", "volumedetect", "-f", "null", "-"], capture_output=True, text=True, timeout=patient(60), check=True)
        assert (" 640x360" in done.stderr) == (rendition == "low") == ("Video:" in done.stderr), done.stderr
        loudness = re.search(r"mean_volume: (-?[\d.]+) dB", done.stderr)
        assert loudness and float(loudness[1]) > -60, done.stderr
    assert maker.request("GET", base + "media.m3u8?rendition=best")[0] == 400


def test_h264_goes_to_viewers_as_it_came(
    chromium: Browser, firefox: Browser, logs: Path, stream: str
) -> None:
    """What an encoder sends by RTMP is not encoded anew: it keeps its profile, and its key frames begin the segments."""
    port = free_port()
    maker = Server(
        logs / f"server-passed-{stream}.log", "--max-hls", "1", "--hls-part", "200", "--rtmp", f"127.0.0.1:{port}")
    video = ("-c:v", "libx264", "-preset", "veryfast", "-profile:v", "main", "-bf", "0", "-g", "60", "-b:v", "800k")
    address = f"rtmp://127.0.0.1:{port}/live/{stream}?token={maker.token(stream)}"
    base = f"/hls/{stream}/"
    try:
        with Encoder(address, logs / f"encoder-{stream}.log", video):
            wait_until(lambda: maker.request("GET", base + "index.m3u8")[0] != 404, 20, "it is live")
            wait_until(lambda: 'CODECS="avc1.4D' in fetch(maker, base + "index.m3u8"), 60, "main profile, as it came")
            wait_until(lambda: metric(maker, "rostrum_encodes_passed") == 1, 60, "it is passed on")
            # An encoder that a busy machine holds up is encoded anew for half a minute.
            wait_until(lambda: re.search(r"#EXTINF:(1\.9|2\.0)", fetch(maker, base + "media.m3u8")), 90, "a group of two seconds is a segment")
            assert "#EXT-X-PART-INF:PART-TARGET=0.200\n" in fetch(maker, base + "media.m3u8")
            done = subprocess.run(
                ["ffmpeg", "-v", "info", "-i", maker.origin + base + "index.m3u8", "-frames:v", "60", "-af",
                 "volumedetect", "-f", "null", "-"], capture_output=True, text=True, timeout=patient(30), check=True)
            assert int(re.findall(r"frame=\s*(\d+)", done.stderr)[-1]) == 60, done.stderr
            loudness = re.search(r"mean_volume: (-?[\d.]+) dB", done.stderr)
            assert loudness and float(loudness[1]) > -60, done.stderr
            for browser in (chromium, firefox):
                played = browser.open(f"{maker.origin}/healthz").evaluate(PLAY, base, seconds=patient(30))
                assert (played["error"], played["height"]) == (None, 360), played
    finally:
        assert maker.stop() == 0


def test_a_browsers_h264_has_a_key_frame_for_each_segment(chromium: Browser, maker: Server, stream: str) -> None:
    with go_live(chromium, maker, stream, codec="h264"):
        fetch(maker, f"/hls/{stream}/index.m3u8")
        wait_until(lambda: re.search(r"hls\.pictures .*passed=true", maker.log.read_text()), 60, "it is passed on")
        # A browser's group of pictures ends when it is asked for a key frame.
        wait_until(lambda: fetch(maker, f"/hls/{stream}/media.m3u8").count("#EXTINF") >= 3, 90, "segments")
        assert metric(maker, "rostrum_encodes_passed") == 1 or "passed=false" in maker.log.read_text()


def wait_for_segments(server: Server, stream: str) -> None:
    """GStreamer stands still where it finds fewer than it wants to stay behind."""
    wait_until(lambda: fetch(server, f"/hls/{stream}/media.m3u8").count("#EXTINF") >= 4, 30, "there are segments")


def test_gstreamer_plays_it(chromium: Browser, maker: Server, stream: str) -> None:
    with go_live(chromium, maker, stream):
        wait_for_segments(maker, stream)
        player = GStreamerPlayer(f"{maker.origin}/hls/{stream}/index.m3u8")
        try:
            wait_until(lambda: min(player.shown.values()) >= 60, 60, lambda: f"picture and sound are played: {player.shown}")
        finally:
            player.stop()
        assert player.errors == []


@pytest.mark.alone
def test_gstreamer_goes_to_the_smaller_picture_and_back(encoded: Server, stream: str) -> None:
    """It goes on only where the playlist that it changes to names something of what it has."""
    wait_for_segments(encoded, stream)
    link = SlowStream(encoded, encoded.http_port)
    player = GStreamerPlayer(f"http://127.0.0.1:{link.port}/hls/{stream}/index.m3u8")
    try:
        for capacity, height in ((None, 480), (900e3, 360), (None, 480)):
            link.capacity = capacity
            wait_until(lambda: player.height == height, 60, f"{height} lines are played")  # noqa: B023
            goals = {kind: count + 40 for kind, count in player.shown.items()}
            wait_until(
                lambda: all(player.shown[kind] >= goal for kind, goal in goals.items()), 30,  # noqa: B023
                lambda: f"picture and sound go on: {player.shown}")
    finally:
        player.stop()
        link.close()
    assert player.errors == []


def test_who_asks_while_the_host_is_away_waits_for_them(
    chromium: Browser, maker: Server, stream: str
) -> None:
    token = maker.token(stream)
    headers = {"Authorization": f"Bearer {token}", "Content-Type": "application/json"}
    # Away for as long as a busy machine takes.
    details = b'{"title":"Made","hostGraceSeconds":3600}'
    assert maker.request("POST", "/v1/streams", details, headers)[0] == 201
    with chromium.open(f"{maker.origin}/live/{stream}?source=test&quality=720&fps=15#token={token}") as host:
        press_go_live(host)
        host.evaluate("() => { rostrum.room.onAir.stop(); }")
        wait_until(lambda: "stream.source-gone" in maker.log.read_text(), 15, "nobody sends")
        # A grey picture and silence, until there is something.
        assert "RESOLUTION=640x360" in fetch(maker, f"/hls/{stream}/index.m3u8")
        host.click("#go")
        # Another size begins another time line.
        wait_until(
            lambda: "#EXT-X-DISCONTINUITY\n" in fetch(maker, f"/hls/{stream}/media.m3u8"), 30, "the host's picture plays")


def test_what_comes_next_is_waited_for_and_what_comes_later_is_refused(
    chromium: Browser, maker: Server, stream: str
) -> None:
    base = f"/hls/{stream}/"
    with go_live(chromium, maker, stream):
        # Where a busy machine has made a time line end, no part is awaited until the next one begins.
        playlist = wait_until(
            lambda: (text := fetch(maker, base + "media.m3u8")) and "#EXT-X-PRELOAD-HINT" in text and text, 15, "what comes next")
        name, number, part = hinted(playlist)
        with ThreadPoolExecutor(20) as pool:
            waiting = [pool.submit(awaited, maker, base + name) for _ in range(10)]
            reload = pool.submit(fetch, maker, f"{base}media.m3u8?_HLS_msn={number}&_HLS_part={part}&_HLS_skip=YES")
            bodies = {answer.result()[1] for answer in waiting}
            assert len(bodies) == 1 and b"moof" in bodies.pop()[:64]
            assert f'URI="{name}"' in reload.result()
        assert maker.request("GET", f"{base}media.m3u8?_HLS_msn={number + 50}")[0] == 400
        # What names begin with is random, and may have a p and a number, too.
        assert maker.request("GET", base + name.replace(f"-p{number}-", f"-p{number + 50}-"))[0] == 400
        status, headers, _ = maker.request("GET", base + "none.m4s")
        assert status == 404 and headers["cache-control"] == "max-age=1"


def test_a_transcoder_that_dies_costs_a_discontinuity(chromium: Browser, maker: Server, stream: str) -> None:
    base = f"/hls/{stream}/"
    with go_live(chromium, maker, stream):
        fetch(maker, base + "media.m3u8")
        os.kill(transcoder(maker), signal.SIGKILL)
        after = wait_until(
            lambda: (text := fetch(maker, base + "media.m3u8")) and "#EXT-X-DISCONTINUITY\n" in text
            and text.split("#EXT-X-DISCONTINUITY\n")[1].count("#EXTINF") and text, 30, "it goes on")
        assert len(set(re.findall(r'EXT-X-MAP:URI="([^"]*)"', after))) == 2
        assert metric(maker, "rostrum_hls_lost_total") == 1


def test_more_streams_than_allowed_are_refused(chromium: Browser, maker: Server, stream: str) -> None:
    with go_live(chromium, maker, stream), go_live(chromium, maker, f"{stream}-2"):
        fetch(maker, f"/hls/{stream}/index.m3u8")
        status, headers, body = maker.request("GET", f"/hls/{stream}-2/index.m3u8")
        assert status == 503 and b"hls-full" in body and headers["retry-after"] == "10"
