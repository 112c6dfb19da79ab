"""Viewers go back in what was live: segments on the disk, from a playlist that reaches further than memory."""

from __future__ import annotations

import json
import re
import subprocess
from collections.abc import Iterator
from pathlib import Path

import pytest

from drivers import Browser, Page, wait_until
from drivers.patience import patient
from media import go_live, wait_for_state, watch
from rtmp import PLAIN, Encoder
from server import Server, free_port
from test_hls import awaited, fetch, metric

#: A bar that moves to the right by so many pixels a second, of 640.
PACE = 6
PICTURE = f"color=black:s=640x360:r=30[ground];color=white:s=16x360:r=30[bar];[ground][bar]overlay=x=mod(t*{PACE}\\,600)"

#: Seconds since the encoder began, as the picture of a video shows them; null where it shows nothing.
CLOCK = """selector => {
    const video = document.querySelector(selector);
    if (!video || !video.videoWidth) return null;
    const canvas = new OffscreenCanvas(640, 1);
    const context = canvas.getContext('2d');
    context.drawImage(video, 0, video.videoHeight / 2, video.videoWidth, 1, 0, 0, 640, 1);
    const {data} = context.getImageData(0, 0, 640, 1);
    const bright = [...Array(640).keys()].filter(x => data[4 * x] > 128);
    return bright.length ? (bright[0] + bright.at(-1) - 15) / 2 / PACE : null;
}""".replace("PACE", str(PACE))


def ask(server: Server, stream: str, method: str, path: str, body: object) -> int:
    headers = {"Authorization": f"Bearer {server.token(stream)}", "Content-Type": "application/json"}
    return server.request(method, path, json.dumps(body).encode(), headers)[0]


@pytest.fixture(scope="module")
def keeper(logs: Path, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Server]:
    """A server that keeps a stream called `kept` for those who go back, which an encoder publishes."""
    port = free_port()
    server = Server(
        logs / "server-dvr.log", "--max-hls", "1", "--rtmp", f"127.0.0.1:{port}", "--data", str(tmp_path_factory.mktemp("data")))
    assert ask(server, "kept", "POST", "/v1/streams", {"id": "kept", "title": "Kept", "dvrSeconds": 600}) == 201
    address = f"rtmp://127.0.0.1:{port}/live/kept?token={server.token('kept')}"
    with Encoder(address, logs / "encoder-dvr.log", PLAIN, picture=PICTURE):
        assert ask(server, "kept", "POST", "/v1/streams/kept/live", {}) == 200
        yield server
    assert server.stop() == 0


def sequence(playlist: str) -> int:
    found = re.search(r"#EXT-X-MEDIA-SEQUENCE:(\d+)\n", playlist)
    assert found, playlist
    return int(found[1])


def segments(playlist: str) -> list[tuple[float, str]]:
    """Each with its seconds, and its name."""
    return [(float(length), name) for length, name in re.findall(r"#EXTINF:([\d.]+),\n(\S+)\n", playlist)]


def test_it_is_kept_though_nobody_asks(keeper: Server) -> None:
    wait_until(lambda: metric(keeper, "rostrum_hls_streams") == 1, 30, "it is packaged because viewers may go back")
    wait_until(lambda: keeper.json("/v1/streams/kept")["isKept"], 10, "the stream says that it is kept")


def test_a_host_is_told_that_there_is_no_room_to_keep_their_stream(
    chromium: Browser, keeper: Server, stream: str
) -> None:
    wait_until(lambda: keeper.json("/v1/streams/kept")["isKept"], 30, "the other stream is kept")
    host = go_live(chromium, keeper, stream)
    assert not host.evaluate("() => document.getElementById('unkept').checkVisibility()")
    host.evaluate("() => rostrum.room.edit({dvrSeconds: 600})")
    host.wait_for("() => document.getElementById('unkept').checkVisibility()", seconds=20, what="the host is told")
    assert keeper.json(f"/v1/streams/{stream}")["isKept"] is False
    viewer = watch(chromium, keeper, stream)
    wait_for_state(viewer, "live")
    viewer.wait_for("() => rostrum.room.info.dvrSeconds === 600", what="the viewer knows what the host wants")
    assert viewer.evaluate("() => rostrum.room.viewing.rewind.reach") == 0
    host.evaluate("() => rostrum.room.edit({dvrSeconds: 0})")
    host.wait_for("() => !document.getElementById('unkept').checkVisibility()", what="nothing is left to be told")


#: How much later it is by the clock of days than by the encoder's, in seconds, as a picture shows it; 0 without one.
OFFSET = f"selector => {{ const clock = ({CLOCK})(selector); return clock === null ? 0 : Date.now() / 1000 - clock; }}"


def go_back(page: Page, seconds: float) -> None:
    page.wait_for("() => rostrum.room.viewing.rewind.reach >= 14 && !document.querySelector('.rewind').hidden", seconds=40, what="the line of time")
    page.evaluate("""seconds => {
        const line = document.querySelector('#position');
        line.value = line.max - seconds;
        for (const event of ['input', 'change']) line.dispatchEvent(new Event(event));
    }""", seconds)
    page.wait_for("() => rostrum.room.viewing.rewind.isPlaying", seconds=20, what="what was live plays")


def wait_until_late(page: Page, live: float, seconds: float, margin: float) -> None:
    page.wait_for(
        f"([live, seconds, margin]) => {{ const offset = ({OFFSET})('#video'); return offset && Math.abs(offset - live - seconds) < margin; }}",
        [live, seconds, margin], seconds=20, what=f"the picture is {seconds} s late")


def test_viewers_go_back_and_return(chromium: Browser, firefox: Browser, keeper: Server) -> None:
    with watch(chromium, keeper, "kept") as page:
        live = page.wait_for(OFFSET, "#video", seconds=20, what="what is live")
        go_back(page, 10)
        wait_until_late(page, live, 10, 3)
        told = page.evaluate("() => [rostrum.room.viewing.rewind.behind, document.querySelector('.rewind .behind').textContent]")
        assert abs(told[0] - 10) < 3 and re.fullmatch(r"−00:(0|1)\d", told[1]), told
        # It goes on as fast as it was, and no session is held meanwhile.
        assert page.evaluate("() => [rostrum.room.viewing.connection.state, document.querySelector('#video').playbackRate]") == ["closed", 1]
        page.click("#to-live")
        wait_until_late(page, live, 0, 2)
        assert page.evaluate("() => rostrum.room.viewing.rewind.behind") is None
    # It has no H.264 by WebRTC here.
    with watch(firefox, keeper, "kept") as page:
        go_back(page, 12)
        wait_until_late(page, live, 12, 3)


def test_what_memory_no_longer_holds_is_played_from_the_disk(keeper: Server) -> None:
    base = "/hls/kept/"
    wait_until(lambda: sequence(fetch(keeper, base + "media.m3u8")) >= 6, 90, "memory has let go of some")
    assert metric(keeper, "rostrum_hls_kept_streams") == 1 and metric(keeper, "rostrum_hls_kept_bytes") > 10_000
    media = fetch(keeper, base + "media.m3u8")
    window = fetch(keeper, base + "dvr.m3u8")
    assert sequence(window) == 0
    first = segments(window)[0][1]
    assert first not in media and awaited(keeper, base + first)[0] == 200
    # What is live is at its end, with what comes next.
    assert "#EXT-X-PRELOAD-HINT" in window and segments(media)[-1][1] in window
    skipped = fetch(keeper, base + "dvr.m3u8?_HLS_skip=YES")
    count = re.search(r"#EXT-X-SKIP:SKIPPED-SEGMENTS=(\d+)\n", skipped)
    assert count and int(count[1]) + len(segments(skipped)) >= len(segments(window)), skipped
    done = subprocess.run(
        ["ffmpeg", "-v", "info", "-live_start_index", "0", "-i", f"{keeper.origin}{base}dvr.m3u8", "-frames:v", "100", "-f", "null",
         "-"],
        capture_output=True, text=True, timeout=patient(30), check=True)
    assert int(re.findall(r"frame=\s*(\d+)", done.stderr)[-1]) == 100, done.stderr


def test_what_has_ended_is_seen_to_its_end_and_from_its_beginning(chromium: Browser, keeper: Server) -> None:
    base = "/hls/kept/"
    with watch(chromium, keeper, "kept") as page:
        go_back(page, 9)
        page.evaluate("""() => {
            window.loads = 0;
            document.querySelector('#video').addEventListener('loadstart', () => loads += 1);
        }""")
        assert ask(keeper, "kept", "POST", "/v1/streams/kept/end", {}) == 200
        page.wait_for("() => rostrum.room.info?.state === 'ended'", seconds=20, what="it has ended")
        assert page.evaluate("() => rostrum.room.viewing.state") == "live", "who went back goes on"
        page.wait_for("() => rostrum.room.viewing.state === 'ended'", seconds=40, what="it was seen to its end")
        assert page.evaluate("() => loads") == 0, "and once"
    # Who comes now is given all of it.
    wait_until(lambda: "#EXT-X-ENDLIST" in fetch(keeper, base + "dvr.m3u8"), 15, "nothing more comes")
    assert fetch(keeper, base + "index.m3u8").splitlines()[-1] == "dvr.m3u8"
    length = sum(seconds for seconds, _ in segments(fetch(keeper, base + "dvr.m3u8")))
    done = subprocess.run(
        ["ffmpeg", "-v", "info", "-i", f"{keeper.origin}{base}index.m3u8", "-f", "null", "-"],
        capture_output=True, text=True, timeout=patient(60), check=True)
    hours, minutes, seconds = re.findall(r"time=(\d+):(\d+):([\d.]+)", done.stderr)[-1]
    assert abs(int(hours) * 3600 + int(minutes) * 60 + float(seconds) - length) < 2, (length, done.stderr)
