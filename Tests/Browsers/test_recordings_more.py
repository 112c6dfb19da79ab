"""Recordings of every kind of stream, of streams that record by themselves, on full disks and over restarts."""

from __future__ import annotations

import contextlib
import json
import os
import resource
import signal
import subprocess
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy
import pytest

from aiortc_client import HEIGHT, WIDTH, Aiortc
from drivers import Browser, wait_until
from media import STATISTICS, end_stream, go_live, watch
from server import Server, free_port
from stage import COLOURS
from test_composition import TONE, enter, make
from test_pause import picture, put, set_paused
from test_recordings import (  # noqa: F401
    aiortc, check, complaints, counted, fetched, grown, keeper, listed, probe, start, stop, times,
)
from test_webhooks import HOOK_SECRET, Receiver


def ask(server: Server, method: str, path: str, stream: str, body: Any = None, role: str = "host") -> Any:
    """What the host, or somebody else, is answered."""
    headers = {"Authorization": f"Bearer {server.token(stream, role)}", "Content-Type": "application/json"}
    status, _, answer = server.request(
        method, path, None if body is None and method == "GET" else json.dumps(body or {}).encode(), headers)
    assert status in (200, 201), (status, answer)
    return json.loads(answer)


def create(server: Server, stream: str, **details: Any) -> None:
    # It may be live before its host is there, who may be a while on a busy machine.
    ask(server, "POST", "/v1/streams", stream, {"title": "Kept", "hostGraceSeconds": 3600, **details})


def state(server: Server, stream: str) -> str:
    return server.json(f"/v1/streams/{stream}")["state"]


def wait_for_live(server: Server, stream: str) -> None:
    wait_until(lambda: state(server, stream) == "live", 15, "it is live")


def ended(server: Server, stream: str, count: int) -> list[dict[str, Any]]:
    """The recordings, once there are so many and all are complete."""
    return wait_until(
        lambda: len(all_ := listed(server, stream)) == count and all(each["state"] == "ended" for each in all_) and all_,
        20, f"{count} recordings are complete")


#: Notes for how long at most, in seconds, a studio encodes no picture.
WATCH_ENCODER = f"""() => {{
    globalThis.stood = 0;
    let count = 0, since = performance.now();
    setInterval(async () => {{
        const frames = (await ({STATISTICS})())?.['outbound-video']?.framesEncoded ?? 0, now = performance.now();
        stood = Math.max(stood, (now - since) / 1000);
        if (frames > count) [count, since] = [frames, now];
    }}, 100);
}}"""


@pytest.mark.parametrize("codec", ["vp9", "av1"])
def test_other_codecs(chromium: Browser, keeper: Server, stream: str, tmp_path: Path, codec: str) -> None:  # noqa: F811
    host = go_live(chromium, keeper, stream, source="test", codec=codec)
    wait_for_live(keeper, stream)

    def encoded() -> int:
        return host.evaluate(STATISTICS)["outbound-video"]["framesEncoded"]

    # The browser has a name of its own.
    recording = f"/v1/streams/{stream}/recording"
    ask(keeper, "POST", recording, stream, role="admin")
    grown(keeper, stream, 0.1)
    host.evaluate(WATCH_ENCODER)
    before = encoded()
    grown(keeper, stream, 3)
    # A busy machine encodes fewer.
    wait_until(lambda: encoded() >= before + 30, 30, "there are pictures")
    sent = encoded() - before
    # A busy browser sends them some time after it has made them.
    grown(keeper, stream, listed(keeper, stream)[-1]["duration"] + 0.5)
    entry = ask(keeper, "DELETE", recording, stream, role="admin")
    assert entry["contentType"] == "video/webm"
    file = fetched(keeper, entry, tmp_path / "file.webm")
    about = probe(file)
    assert sorted(each["codec_name"] for each in about["streams"]) == sorted([codec, "opus"])
    assert abs(float(about["format"]["duration"]) - entry["duration"]) < 0.1
    assert complaints(file) == ""
    video = times(file, "video")
    # All that were made, but for the latest, which may not have arrived; sound goes on where a busy machine makes none.
    assert video[0] < 0.1 and len(video) > sent - 8
    assert video[-1] > entry["duration"] - max(0.5, 0.3 + host.evaluate("() => stood"))
    # A browser plays it, from anywhere.
    end_stream(host)
    viewer = watch(chromium, keeper, stream)
    viewer.wait_for("() => document.getElementById('playback')?.duration > 2", seconds=15, what="it is there to be played")
    viewer.evaluate("() => { const v = document.getElementById('playback'); v.muted = true; v.currentTime = 1.5; v.play(); }")
    viewer.wait_for("() => document.getElementById('playback').currentTime > 2", seconds=15, what="it plays")


def test_an_mp4_file_plays_from_anywhere(
    aiortc: Aiortc, chromium: Browser, keeper: Server, stream: str, tmp_path: Path  # noqa: F811
) -> None:
    create(keeper, stream)
    ask(keeper, "POST", f"/v1/streams/{stream}/live", stream)
    publisher = aiortc.publish(keeper, stream, "h264")
    wait_for_live(keeper, stream)
    start(keeper, stream)
    grown(keeper, stream, 6)
    entry = stop(keeper, stream)
    assert entry["contentType"] == "video/mp4"
    file = fetched(keeper, entry, tmp_path / "file.mp4")
    about = probe(file)
    assert abs(float(about["format"]["duration"]) - entry["duration"]) < 0.1
    for each in about["streams"]:
        # What was not sent in time, one track lacks at the end.
        assert abs(float(each["duration"]) - entry["duration"]) < 0.6 + publisher.behind
    ask(keeper, "POST", f"/v1/streams/{stream}/end", stream)
    viewer = watch(chromium, keeper, stream)
    viewer.wait_for(
        "seconds => Math.abs(document.getElementById('playback')?.duration - seconds) < 0.1", entry["duration"], seconds=15,
        what="the player knows how long it is")
    viewer.evaluate("() => { const v = document.getElementById('playback'); v.muted = true; v.currentTime = 4; v.play(); }")
    viewer.wait_for(
        """() => { const v = document.getElementById('playback');
            return !v.seeking && v.currentTime > 4.5 && v.videoWidth === 320; }""", seconds=15, what="it plays on from there")


def test_a_composition_is_recorded(chromium: Browser, keeper: Server, stream: str, tmp_path: Path) -> None:  # noqa: F811
    make(keeper, stream)
    for name in ("ann", "bob"):
        enter(chromium, keeper, stream, name)
    # Nobody watches, but it is recorded.
    start(keeper, stream)
    wait_until(lambda: keeper.metrics()["rostrum_compositions"] == 1, 20, "both are composed")
    # A composition that found no time may have to begin anew, and its recording with it.
    entry = wait_until(
        lambda: next((each for each in listed(keeper, stream) if each["duration"] >= 5), None), 90, "5 s are recorded")
    stop(keeper, stream)
    entry = next(each for each in listed(keeper, stream) if each["id"] == entry["id"])
    file = fetched(keeper, entry, tmp_path / "file.webm")
    assert complaints(file) == ""
    late = str(max(0.0, entry["duration"] - 1.0))

    # ffmpeg's own decoder makes noise of what the composer's encoder sends; that of the codec's makers, which browsers
    # have too, does not.
    def decoded(*arguments: str) -> bytes:
        return subprocess.run(
            ["ffmpeg", "-loglevel", "error", "-c:a", "libopus", "-ss", late, "-i", str(file), *arguments, "-"],
            capture_output=True, check=True).stdout

    frame = numpy.frombuffer(
        decoded("-frames:v", "1", "-s", "640x360", "-f", "rawvideo", "-pix_fmt", "rgb24"), dtype=numpy.uint8,
    ).reshape(360, 640, 3).astype(int)
    # Side by side, each in their colour.
    seen = set()
    for x in (160, 480):
        colour = frame[170:190, x - 10:x + 10].reshape(-1, 3).mean(axis=0)
        seen |= {name for name, wanted in COLOURS.items() if numpy.abs(colour - wanted).max() < 50}
    assert seen == {"ann", "bob"}
    sound = numpy.frombuffer(decoded("-vn", "-ac", "1", "-ar", "48000", "-f", "s16le"), dtype=numpy.int16)[:32768]
    spectrum = numpy.abs(numpy.fft.rfft(sound * numpy.hanning(len(sound))))

    def level(frequency: float) -> float:
        middle = round(frequency * len(sound) / 48_000)
        return float(20 * numpy.log10(spectrum[middle - 5:middle + 6].max() + 1))

    floor = max(level(900), level(TONE["cid"]))
    assert min(level(TONE["ann"]), level(TONE["bob"])) > floor + 20


def test_the_pause_picture_is_recorded_too(aiortc: Aiortc, keeper: Server, stream: str, tmp_path: Path) -> None:  # noqa: F811
    publisher = aiortc.publish(keeper, stream)
    player = aiortc.play(keeper, stream)
    wait_until(lambda: player.frames > 20, 15, "the player plays")
    assert put(keeper, stream, picture(200, 100, "png")) == 204
    start(keeper, stream)
    grown(keeper, stream, 2)
    set_paused(keeper, stream, True)
    wait_until(lambda: (200, 100) in player.sizes, 10, "the pause picture is shown")
    grown(keeper, stream, listed(keeper, stream)[-1]["duration"] + 3)
    player.sizes.clear()
    set_paused(keeper, stream, False)
    wait_until(lambda: (WIDTH, HEIGHT) in player.sizes, 10, "the camera is back")
    grown(keeper, stream, listed(keeper, stream)[-1]["duration"] + 3)
    entry = stop(keeper, stream)
    assert len(listed(keeper, stream)) == 1
    file = fetched(keeper, entry, tmp_path / "file.webm")
    assert complaints(file) == ""
    done = subprocess.run(
        ["ffprobe", "-v", "error", "-select_streams", "v", "-show_entries", "frame=width,height", "-of", "csv=p=0", str(file)],
        capture_output=True, text=True, check=True)
    sizes = [tuple(map(int, row.split(",")[:2])) for row in done.stdout.split()]
    changes = [size for size, before in zip(sizes, [None, *sizes]) if size != before]
    camera, pause = (WIDTH, HEIGHT), (200, 100)
    # To the server a camera that stands still for two seconds, as on a busy machine, is off: the picture is shown then, too.
    count = max(len(changes) // 2, 1) if publisher.behind > 2 else 1
    assert changes == [camera, *[pause, camera] * count]


def test_a_stream_that_records_by_itself(aiortc: Aiortc, keeper: Server, stream: str, tmp_path: Path) -> None:  # noqa: F811
    create(keeper, stream, recording="automatic")
    publisher = aiortc.publish(keeper, stream)
    # Not before it is live.
    wait_until(lambda: keeper.json(f"/v1/streams/{stream}")["tracks"], 10, "media comes")
    assert listed(keeper, stream) == []
    ask(keeper, "POST", f"/v1/streams/{stream}/live", stream)
    wait_until(lambda: keeper.json(f"/v1/streams/{stream}")["isRecording"], 15, "it records")
    sent = counted(keeper, stream, publisher, 3)
    ask(keeper, "POST", f"/v1/streams/{stream}/end", stream)
    entry, = ended(keeper, stream, 1)
    assert entry["endReason"] == "stream-ended"
    check(fetched(keeper, entry, tmp_path / "file"), entry["duration"], "vp8", sent, publisher)


def test_who_stops_it_wants_no_other_recording(aiortc: Aiortc, keeper: Server, stream: str) -> None:  # noqa: F811
    create(keeper, stream, recording="automatic")
    ask(keeper, "POST", f"/v1/streams/{stream}/live", stream)
    aiortc.publish(keeper, stream)
    grown(keeper, stream, 1)
    stop(keeper, stream)
    # What is begun by itself is begun within a second or two; a metric that counts seconds is as good as a clock.
    player = aiortc.play(keeper, stream)
    wait_until(lambda: player.frames > 80, 20, "four seconds went by")
    assert len(listed(keeper, stream)) == 1 and not keeper.json(f"/v1/streams/{stream}")["isRecording"]


@pytest.mark.parametrize("codec", ["vp8", "h264"])
def test_it_goes_on_after_a_restart(
    aiortc: Aiortc, keeper: Server, stream: str, tmp_path: Path, codec: str  # noqa: F811
) -> None:
    create(keeper, stream, recording="automatic")
    ask(keeper, "POST", f"/v1/streams/{stream}/live", stream)
    first = aiortc.publish(keeper, stream, codec)
    sent = [counted(keeper, stream, first, 3)]
    before = listed(keeper, stream)[-1]
    os.kill(keeper.pid, signal.SIGKILL)
    wait_until(lambda: not keeper.is_running, 5, "it is gone")
    keeper.start()
    one, = listed(keeper, stream)
    assert (one["id"], one["state"], one["endReason"]) == (before["id"], "ended", "interrupted")
    assert one["duration"] >= before["duration"] - 0.05
    first.resource = None
    second = aiortc.publish(keeper, stream, codec)
    wait_until(lambda: len(listed(keeper, stream)) == 2, 20, "it goes on")
    sent.append(counted(keeper, stream, second, 2))
    ask(keeper, "POST", f"/v1/streams/{stream}/end", stream)
    both = ended(keeper, stream, 2)
    assert [each["endReason"] for each in both] == ["interrupted", "stream-ended"]
    # And they are there as long as their files are.
    assert keeper.stop() == 0
    keeper.start()
    assert listed(keeper, stream) == both and state(keeper, stream) == "ended"
    for number, entry in enumerate(both):
        file = fetched(keeper, entry, tmp_path / str(number))
        check(file, entry["duration"], codec, sent[number], (first, second)[number], lost=1 - number)
        assert abs(float(probe(file)["format"]["duration"]) - entry["duration"]) < 0.1


@pytest.mark.parametrize("codec", ["vp8", "h264"])
def test_no_more_room_in_files(
    aiortc: Aiortc, keeper: Server, stream: str, tmp_path: Path, codec: str  # noqa: F811
) -> None:
    publisher = aiortc.publish(keeper, stream, codec)
    wait_for_live(keeper, stream)
    player = aiortc.play(keeper, stream)
    start(keeper, stream)
    sent = counted(keeper, stream, publisher, 2)
    # Files of the store are smaller.
    wait_until(lambda: (all_ := listed(keeper, stream)) and all_[-1]["size"] > 300_000, 60, "there is something")
    file = next((tmp_path / "data/recordings" / stream).glob("*.webm" if codec == "vp8" else "*.mp4"))
    unlimited = resource.prlimit(keeper.pid, resource.RLIMIT_FSIZE)
    # It must not grow beyond the limit before that holds, however late a busy machine sets it.
    with keeper.standing_still():
        size = file.stat().st_size
        resource.prlimit(keeper.pid, resource.RLIMIT_FSIZE, (size + 60_000, unlimited[1]))
    try:
        entry, = ended(keeper, stream, 1)
    finally:
        resource.prlimit(keeper.pid, resource.RLIMIT_FSIZE, unlimited)
    assert entry["endReason"] == "disk-full" and entry["size"] <= size + 60_000
    check(fetched(keeper, entry, tmp_path / "file"), entry["duration"], codec, sent, publisher)
    assert keeper.json(f"/v1/streams/{stream}")["isRecording"] is False
    frames = player.frames
    wait_until(lambda: player.frames > frames + 40, 15, "viewers go on watching")
    start(keeper, stream)
    grown(keeper, stream, 1)


@pytest.fixture
def disk(tmp_path: Path) -> Iterator[Path]:
    """A file system with little more room than has to stay free; only root may make one."""
    place = tmp_path / "disk"
    place.mkdir()
    made = subprocess.run(
        ["mount", "-t", "tmpfs", "-o", "size=280m", "tmpfs", str(place)], capture_output=True, text=True)
    if made.returncode != 0:
        pytest.skip(f"cannot mount: {made.stderr.strip()}")
    yield place
    subprocess.run(["umount", "-l", str(place)], check=True)


def test_full_disk(aiortc: Aiortc, stream: str, disk: Path, tmp_path: Path) -> None:  # noqa: F811
    hook = Receiver(free_port())
    server = Server(
        tmp_path / "server.log", "--data", str(disk / "data"), "--webhook", f"http://127.0.0.1:{hook.port}/",
        "--webhook-secret", HOOK_SECRET)
    try:
        publisher = aiortc.publish(server, stream)
        wait_for_live(server, stream)
        start(server, stream)
        sent = counted(server, stream, publisher, 3)
        with (disk / "ballast").open("wb") as file:
            file.write(bytes(30 << 20))
        entry, = ended(server, stream, 1)
        assert entry["endReason"] == "disk-full"
        check(fetched(server, entry, tmp_path / "file"), entry["duration"], "vp8", sent, publisher, lost=1)
        with contextlib.suppress(AssertionError):
            start(server, stream)
            pytest.fail("it began without room")
        told: list[dict[str, Any]] = []
        wait_until(
            lambda: told.extend(hook.take(1)) or told[-1]["type"] == "recording.ended", 20, "whoever listens is told")
        assert told[-1]["data"]["recording"] == entry
        (disk / "ballast").unlink()
        start(server, stream)
    finally:
        server.stop()
        hook.http.shutdown()
