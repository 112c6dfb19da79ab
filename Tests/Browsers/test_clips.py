"""Somebody asks for a clip, and the last seconds are there: whether the stream is recorded or not, and without a preparation."""

from __future__ import annotations

import json
import os
import signal
import subprocess
from pathlib import Path
from typing import Any

import pytest

from aiortc_client import FRAMES_PER_SECOND, Aiortc
from conftest import LOGS
from drivers import DESKTOP, PHONE, Browser, Page, wait_until
from media import check_no_complaints, end_stream, go_live, wait_for_frames, wait_for_state, watch
from server import Server, free_port
from test_pages import assert_fits
from test_previews import transcoder
from test_recordings import aiortc, complaints, fetched, keeper, listed, probe, start, stop, times  # noqa: F401
from test_webhooks import HOOK_SECRET, Receiver


def ask(server: Server, stream: str, body: Any = None, role: str = "host", name: str = "ann", **claims: Any) -> tuple[int, Any]:
    status, _, answer = server.request(
        "POST", f"/v1/streams/{stream}/clips", json.dumps(body or {}).encode(),
        {"Authorization": f"Bearer {server.token(stream, role, name, **claims)}", "Content-Type": "application/json"})
    return status, json.loads(answer)


def made(server: Server, stream: str, entry: dict[str, Any]) -> dict[str, Any]:
    """A clip, once it is complete."""
    def look() -> dict[str, Any] | None:
        found = [each for each in listed(server, stream) if each["id"] == entry["id"]]
        assert found, "it was not made"
        return found[0] if found[0]["state"] == "ended" else None
    return wait_until(look, 60, "the clip is complete")


def sent(peer: Any, pictures: int) -> None:
    wait_until(lambda: peer.pictures >= pictures, 60, f"{pictures} pictures are sent")


def check(path: Path, seconds: float) -> None:
    """H.264 and AAC from a key frame on, of that length, that can be decoded."""
    about = probe(path)
    assert sorted(each["codec_name"] for each in about["streams"]) == ["aac", "h264"]
    assert abs(float(about["format"]["duration"]) - seconds) < 0.1, about["format"]
    flags = subprocess.run(
        ["ffprobe", "-v", "error", "-select_streams", "v", "-show_entries", "packet=flags", "-of", "csv=p=0", str(path)],
        capture_output=True, text=True, check=True).stdout.split()
    assert flags[0].startswith("K") and len(flags) == round(seconds * 30)
    assert complaints(path) == ""
    audio = times(path, "audio")
    assert audio[0] < 0.1 and abs(audio[-1] - seconds) < 0.3


@pytest.mark.parametrize("codec", ["vp8", "h264"])
def test_the_last_seconds_of_a_stream(
    aiortc: Aiortc, keeper: Server, stream: str, tmp_path: Path, codec: str  # noqa: F811
) -> None:
    publisher = aiortc.publish(keeper, stream, codec)
    sent(publisher, 30 * 8)
    assert listed(keeper, stream) == []
    status, entry = ask(keeper, stream, {"seconds": 5, "title": "The goal"})
    assert status == 201, entry
    assert (entry["kind"], entry["state"], entry["title"], entry["url"]) == ("clip", "recording", "The goal", None)
    clip = made(keeper, stream, entry)
    assert clip["duration"] == 5 and clip["contentType"] == "video/mp4" and clip["title"] == "The goal"
    check(fetched(keeper, clip, tmp_path / "clip.mp4"), 5)


def test_a_stream_that_is_recorded_too(
    aiortc: Aiortc, keeper: Server, stream: str, tmp_path: Path  # noqa: F811
) -> None:
    publisher = aiortc.publish(keeper, stream)
    sent(publisher, 30 * 3)
    recording = start(keeper, stream)
    sent(publisher, 30 * 6)
    # More than there is: as much as there is.
    status, entry = ask(keeper, stream, {"seconds": 120})
    assert status == 201, entry
    clip = made(keeper, stream, entry)
    whole = stop(keeper, stream)
    assert whole["id"] == recording["id"] and whole["kind"] == "recording" and whole["title"] is None
    assert clip["duration"] % 0.5 == 0 and 3 <= clip["duration"] <= 60
    check(fetched(keeper, clip, tmp_path / "clip.mp4"), clip["duration"])
    assert {each["kind"] for each in listed(keeper, stream)} == {"recording", "clip"}
    metrics = keeper.metrics()
    assert metrics["rostrum_clips_made_total"] == 1 and metrics["rostrum_clips_streams"] == 1
    assert keeper.request(
        "DELETE", f"/v1/streams/{stream}/recordings/{clip['id']}",
        headers={"Authorization": f"Bearer {keeper.token(stream)}"})[0] == 204
    assert [each["id"] for each in listed(keeper, stream)] == [recording["id"]]


def edit(server: Server, stream: str, **details: Any) -> None:
    status, _, body = server.request(
        "PATCH", f"/v1/streams/{stream}", json.dumps(details).encode(),
        {"Authorization": f"Bearer {server.token(stream)}", "Content-Type": "application/json"})
    assert status == 200, body


def refused(answer: tuple[int, Any], status: int, rule: str) -> None:
    assert answer[0] == status and answer[1]["type"].endswith(rule), answer


def test_who_may_and_when(aiortc: Aiortc, keeper: Server, stream: str) -> None:  # noqa: F811
    publisher = aiortc.publish(keeper, stream)
    sent(publisher, 30 * 4)
    assert keeper.json("/v1/server")["clips"] is True
    assert keeper.json(f"/v1/streams/{stream}")["clips"] == "moderators"
    refused(ask(keeper, stream, role="viewer", name="vic"), 403, "not-host")
    assert keeper.request("POST", f"/v1/streams/{stream}/clips", b"{}", {"Content-Type": "application/json"})[0] == 401
    for wrong in (0, 121, "30", 1.5):
        status, problem = ask(keeper, stream, {"seconds": wrong})
        assert status == 422 and problem["field"] == "seconds", problem
    assert ask(keeper, stream, {"title": ""})[0] == 422
    refused(ask(keeper, stream, {"second": 3}), 400, "unknown-member")

    status, entry = ask(keeper, stream, {"seconds": 2}, "viewer", "mia", capabilities=("moderate",))
    assert status == 201, entry
    made(keeper, stream, entry)
    # Who sees that it is complete may have the next one at once.
    status, entry = ask(keeper, stream, {"seconds": 2})
    assert status == 201, entry
    made(keeper, stream, entry)
    edit(keeper, stream, clips="everybody")
    status, entry = ask(keeper, stream, {"seconds": 2}, "viewer", "vic")
    assert status == 201, entry
    made(keeper, stream, entry)
    # Who is behind the gate keeps nothing of what they may not see, nor sees what others kept.
    edit(keeper, stream, gate={"tier": "gold"})
    refused(ask(keeper, stream, {"seconds": 2}, "viewer", "vic"), 403, "gated")
    status, entry = ask(keeper, stream, {"seconds": 2}, "viewer", "vic", tiers=("gold",))
    assert status == 201, entry
    clip = made(keeper, stream, entry)
    assert keeper.request("GET", clip["url"])[0] == 403
    gold = keeper.token(stream, "viewer", "vic", tiers=("gold",))
    assert keeper.request("GET", clip["url"], headers={"Authorization": f"Bearer {gold}"})[0] == 200
    edit(keeper, stream, gate=None)

    # Nothing is kept any more.
    edit(keeper, stream, clips="off")
    wait_until(lambda: keeper.metrics()["rostrum_clips_streams"] == 0, 20, "nothing is kept")
    refused(ask(keeper, stream), 409, "clips-off")
    edit(keeper, stream, clips="moderators")
    wait_until(lambda: keeper.metrics()["rostrum_clips_streams"] == 1, 20, "it is kept again")
    token = {"Authorization": f"Bearer {keeper.token(stream)}"}
    assert keeper.request("POST", f"/v1/streams/{stream}/end", b"", token)[0] == 200
    refused(ask(keeper, stream), 409, "not-live")
    wait_until(lambda: keeper.metrics()["rostrum_clips_streams"] == 0, 20, "nothing is kept of what has ended")


def test_a_key_one_at_a_time_and_a_webhook(aiortc: Aiortc, stream: str, tmp_path: Path) -> None:  # noqa: F811
    hook = Receiver(free_port())
    server = Server(
        tmp_path / "server.log", "--data", str(tmp_path / "data"), "--webhook", f"http://127.0.0.1:{hook.port}/",
        "--webhook-secret", HOOK_SECRET, "--keep-clips", "2s")
    try:
        publisher = aiortc.publish(server, stream)
        sent(publisher, FRAMES_PER_SECOND * 12)
        headers = {
            "Authorization": f"Bearer {server.token(stream)}", "Content-Type": "application/json", "Idempotency-Key": "k1"}
        worker = transcoder(server)
        first = server.request("POST", f"/v1/streams/{stream}/clips", b'{"seconds":10}', headers)
        # It is not complete before the next request has come, however long that takes.
        os.kill(worker, signal.SIGSTOP)
        try:
            again = server.request("POST", f"/v1/streams/{stream}/clips", b'{"seconds":10}', headers)
            assert first[0] == again[0] == 201 and first[2] == again[2]
            entry = json.loads(first[2])
            assert first[1]["location"] == f"/v1/streams/{stream}/recordings/{entry['id']}"
            refused(ask(server, stream), 409, "clip-under-way")
        finally:
            os.kill(worker, signal.SIGCONT)
        told: list[dict[str, Any]] = []
        wait_until(lambda: told.extend(hook.take(1)) or told[-1]["type"] == "clip.ready", 60, "whoever listens is told")
        assert told[-1]["data"]["clip"]["id"] == entry["id"] and told[-1]["data"]["clip"]["url"].endswith(".mp4")
        assert told[-1]["signed"] and [each["type"] for each in told].count("clip.ready") == 1
        wait_until(lambda: listed(server, stream) == [], 20, "it is old enough")
    finally:
        server.stop()
        hook.http.shutdown()


def test_the_transcoder_dies_over_a_clip(aiortc: Aiortc, keeper: Server, stream: str, tmp_path: Path) -> None:  # noqa: F811
    publisher = aiortc.publish(keeper, stream)
    killed = None
    for _ in range(5):
        killed = transcoder(keeper, killed)
        sent(publisher, publisher.pictures + FRAMES_PER_SECOND * 12)
        status, entry = ask(keeper, stream, {"seconds": 10})
        os.kill(killed, signal.SIGKILL)
        assert status == 201, entry
        wait_until(
            lambda: all(each["state"] == "ended" for each in listed(keeper, stream)), 20, "there is no half clip")
        if listed(keeper, stream) == []:
            break
        # It was complete: we waited longer for a processor than it took. It goes, and the next one is asked for.
        assert keeper.request(
            "DELETE", f"/v1/streams/{stream}/recordings/{entry['id']}",
            headers={"Authorization": f"Bearer {keeper.token(stream)}"})[0] == 204
    assert listed(keeper, stream) == [], "the transcoder never died over a clip"
    # The file goes after the entry.
    wait_until(lambda: list((tmp_path / "data/recordings").rglob("*.*")) == [], 20, "there is no half file")
    # What was kept is gone, what comes is kept again.
    wait_until(lambda: keeper.metrics()["rostrum_transcoder_up"] == 1, 20, "the transcoder is back")
    assert transcoder(keeper) != killed
    sent(publisher, publisher.pictures + 30 * 4)
    status, entry = ask(keeper, stream, {"seconds": 2})
    assert status == 201, entry
    clip = made(keeper, stream, entry)
    check(fetched(keeper, clip, tmp_path / "clip.mp4"), clip["duration"])
    assert keeper.metrics()["rostrum_clips_failed_total"] >= 1


def plays(page: Page, url: str) -> dict[str, Any]:
    """What a browser makes of a file: how long it is, and that its picture moves and its sound is decoded."""
    return page.evaluate("""async url => {
        const video = document.body.appendChild(document.createElement('video'));
        video.muted = true;
        video.src = url;
        await video.play();
        // A page that is held up may come to either of these when all of it has been played.
        const moves = () => video.currentTime > 0.5;
        if (!moves()) await new Promise(done => video.addEventListener('timeupdate', () => moves() && done()));
        video.currentTime = video.duration - 1;
        const over = new Promise(done => video.addEventListener('ended', done, {once: true}));
        if (video.paused) video.play().catch(() => {});
        await over;
        const quality = video.getVideoPlaybackQuality();
        const sound = new AudioContext({sampleRate: 48000});
        const heard = await sound.decodeAudioData(await (await fetch(url)).arrayBuffer());
        await sound.close();
        const data = {duration: video.duration, width: video.videoWidth, height: video.videoHeight,
            frames: quality.totalVideoFrames, heard: heard.duration,
            loudest: heard.getChannelData(0).reduce((most, each) => Math.max(most, Math.abs(each)), 0)};
        video.remove();
        return data;
    }""", url)


def test_a_host_presses_a_button_and_browsers_play_the_clip(
    chromium: Browser, firefox: Browser, keeper: Server, stream: str  # noqa: F811
) -> None:
    host = go_live(chromium, keeper, stream)
    host.wait_for("() => document.getElementById('clip')?.checkVisibility()", what="clips can be made")
    wait_until(lambda: keeper.metrics()["rostrum_clips_streams"] == 1, 20, "the stream is kept")
    # While nobody watches, the studio sends its smallest picture alone.
    viewer = watch(chromium, keeper, stream)
    wait_for_frames(viewer, 60)
    host.click("#clip")
    host.wait_for("() => document.querySelectorAll('.clipper li').length === 1", seconds=60, what="the clip is listed")
    for name, size in (("phone", PHONE), ("desktop", DESKTOP)):
        host.resize(size)
        assert_fits(host)
        host.evaluate("() => document.getElementById('clip').scrollIntoView({block: 'center'})")
        host.screenshot(LOGS / f"clip-studio-{name}.png")
    (clip,) = listed(keeper, stream)
    assert host.evaluate("() => document.querySelector('.clipper a').pathname") == clip["url"]
    assert clip["kind"] == "clip" and clip["duration"] >= 2
    assert not viewer.evaluate("() => document.getElementById('clip')?.checkVisibility() ?? false")
    with firefox.open(f"{keeper.origin}/docs") as other:
        for page in (viewer, other):
            seen = plays(page, keeper.origin + clip["url"])
            assert abs(seen["duration"] - clip["duration"]) < 0.1 and abs(seen["heard"] - clip["duration"]) < 0.3, seen
            assert min(seen["width"], seen["height"], seen["frames"]) > 0 and seen["loudest"] > 0.01, seen
    # Where everybody may, somebody who watches without a token gets one by asking.
    host.evaluate("() => rostrum.room.api.edit({clips: 'everybody'}).then(() => null)")
    viewer.click("#picture")
    viewer.wait_for("() => document.getElementById('clip').checkVisibility()", what="viewers are offered it")
    viewer.click("#clip")
    viewer.wait_for("() => document.querySelectorAll('.clipper li').length === 1", seconds=60, what="theirs is listed")
    for name, size in (("phone", PHONE), ("desktop", DESKTOP)):
        viewer.resize(size)
        assert_fits(viewer)
        scrolls = "() => ['scrollWidth', 'clientWidth'].map(each => document.getElementById('picture-panel')[each])"
        assert len(set(viewer.evaluate(scrolls))) == 1, "nothing of it lies to the right of what is seen"
        viewer.screenshot(LOGS / f"clip-viewer-{name}.png")
    end_stream(host)
    wait_for_state(viewer, "ended")
    viewer.wait_for("() => document.querySelectorAll('.parts li').length === 2", seconds=15, what="both are listed")
    assert viewer.text(".parts li").startswith("Clip")
    host.wait_for("() => document.querySelectorAll('#recordings li').length === 2", what="the host sees them")
    for page in (host, viewer):
        check_no_complaints(page)
        page.screenshot(LOGS / f"clip-ended-{'host' if page is host else 'viewer'}.png")
