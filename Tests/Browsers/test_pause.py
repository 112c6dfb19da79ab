"""While the host is away, viewers see a picture of the host's choice, or the last one, and hear on."""

from __future__ import annotations

import json
import os
import signal
import subprocess
from collections.abc import Iterator
from pathlib import Path

import pytest

from aiortc_client import HEIGHT, WIDTH, Aiortc
from drivers import Browser, wait_until
from server import Server
from stage import join, wait_for_colour


@pytest.fixture
def aiortc() -> Iterator[Aiortc]:
    home = Aiortc()
    yield home
    home.close()


def picture(width: int, height: int, kind: str) -> bytes:
    return subprocess.run(
        ["ffmpeg", "-loglevel", "error", "-f", "lavfi", "-i", f"color=c=blue:s={width}x{height}", "-frames:v", "1",
         "-f", "image2", "-c:v", kind, "-update", "1", "pipe:1"],
        capture_output=True, check=True).stdout


def set_paused(server: Server, stream: str, is_paused: bool) -> None:
    headers = {"Authorization": f"Bearer {server.token(stream)}", "Content-Type": "application/json"}
    status, _, body = server.request(
        "PATCH", f"/v1/streams/{stream}/speakers/ann", json.dumps({"paused": is_paused}).encode(), headers)
    assert status == 200, (status, body)


def put(server: Server, stream: str, file: bytes, role: str = "host") -> int:
    headers = {"Authorization": f"Bearer {server.token(stream, role, 'Ann' if role == 'host' else 'Vic')}"}
    return server.request("PUT", f"/v1/streams/{stream}/pause-picture", file, headers)[0]


@pytest.mark.parametrize("kind", ["mjpeg", "png"])
def test_the_hosts_choice_is_shown_and_then_the_camera_again(
    aiortc: Aiortc, server: Server, stream: str, kind: str
) -> None:
    aiortc.publish(server, stream)
    player = aiortc.play(server, stream)
    wait_until(lambda: player.frames > 20, 15, "the player plays")
    assert put(server, stream, picture(200, 100, kind)) == 204
    set_paused(server, stream, True)
    wait_until(lambda: (200, 100) in player.sizes, 10, "the pause picture is shown")
    energy = player.energy
    wait_until(lambda: player.energy > energy + 1, 10, "the sound goes on")
    player.sizes.clear()
    set_paused(server, stream, False)
    wait_until(lambda: (WIDTH, HEIGHT) in player.sizes, 10, "the camera is back")
    frames = player.frames
    wait_until(lambda: player.frames > frames + 30, 10, "the camera goes on")


def test_without_a_choice_it_is_the_last_picture(aiortc: Aiortc, server: Server, stream: str) -> None:
    camera = aiortc.publish(server, stream)
    player = aiortc.play(server, stream)
    wait_until(lambda: player.frames > 20, 15, "the player plays")
    wait_until(lambda: server.json(f"/v1/streams/{stream}")["preview"], 10, "there is a preview")
    set_paused(server, stream, True)
    # A camera makes twenty pictures a second.
    def count() -> int:
        before = player.frames
        subprocess.run(["sleep", "2"], check=True)
        return player.frames - before
    wait_until(lambda: count() <= 3, 20, "the camera's pictures stop")
    late = aiortc.play(server, stream)
    wait_until(lambda: late.frames > 0, 10, "who comes later sees it too")
    set_paused(server, stream, False)

    # As many as the camera makes on a busy machine, which are fewer, but more than the last picture is sent.
    def share() -> float:
        sent, shown = camera.pictures, player.frames
        wait_until(lambda: camera.pictures >= sent + 40, 20, "the camera makes pictures")
        return (player.frames - shown) / (camera.pictures - sent)
    wait_until(lambda: share() > 0.5, 20, "the camera is back")


def test_only_the_host_chooses_and_only_pictures(aiortc: Aiortc, server: Server, stream: str) -> None:
    aiortc.publish(server, stream)
    wait_until(lambda: server.request("GET", f"/v1/streams/{stream}")[0] == 200, 10, "there is a stream")
    good = picture(200, 100, "png")
    assert put(server, stream, good, "viewer") == 403
    assert put(server, stream, b"GIF89a" + bytes(100)) == 415
    assert put(server, stream, good + bytes(170 << 10)) == 413
    assert put(server, stream, good) == 204
    headers = {"Authorization": f"Bearer {server.token(stream)}"}
    assert server.request("DELETE", f"/v1/streams/{stream}/pause-picture", None, headers)[0] == 204


def test_in_the_feed_too(aiortc: Aiortc, chromium: Browser, server: Server, stream: str) -> None:
    aiortc.publish(server, stream)
    wait_until(lambda: server.request("GET", f"/v1/streams/{stream}")[0] == 200, 10, "there is a stream")
    assert put(server, stream, picture(200, 100, "png")) == 204
    with chromium.open(f"{server.origin}/?stream={stream}") as viewer:
        shown = """(width, height) => [...document.querySelectorAll('video')]
            .some(video => video.videoWidth === width && video.videoHeight === height)"""
        viewer.wait_for(shown, WIDTH, HEIGHT, seconds=20, what="the camera is seen in the feed")
        set_paused(server, stream, True)
        viewer.wait_for(shown, 200, 100, seconds=15, what="the pause picture is seen in the feed")
        set_paused(server, stream, False)
        viewer.wait_for(shown, WIDTH, HEIGHT, seconds=15, what="the camera is back")


def test_when_whoever_speaks_has_no_camera(chromium: Browser, server: Server, stream: str) -> None:
    headers = {"Authorization": f"Bearer {server.token(stream)}", "Content-Type": "application/json"}
    # It is live before its host is there, whose page a busy machine may take a while for.
    body = json.dumps({"title": "Talk", "programme": "active-speaker", "hostGraceSeconds": 3600}).encode()
    assert server.request("POST", "/v1/streams", body, headers)[0] == 201
    assert server.request("POST", f"/v1/streams/{stream}/live", b"", headers)[0] == 200
    join(chromium, server, stream, "ann", role="host", audio=0, video=0, volume=0)
    join(chromium, server, stream, "bob", audio=0, video=0)
    viewer = join(chromium, server, stream, "dan", role="viewer", audio=1, video=1, publishes=False)
    mid, = viewer.evaluate("() => Object.keys(speaker.videos)")
    wait_for_colour(viewer, mid, "bob", seconds=20)
    assert put(server, stream, picture(200, 100, "png")) == 204
    token = server.token(stream, "speaker", "Bob")

    def set_camera(is_off: bool) -> None:
        status, _, answer = server.request(
            "PATCH", f"/v1/streams/{stream}/speakers/bob", json.dumps({"videoMuted": is_off}).encode(),
            {"Authorization": f"Bearer {token}", "Content-Type": "application/json"})
        assert status == 200, answer

    width = "(mid, width) => speaker.videos[mid].videoWidth === width"
    set_camera(True)
    viewer.wait_for(width, mid, 200, seconds=15, what="the pause picture stands for Bob")
    set_camera(False)
    viewer.wait_for(width, mid, 640, seconds=15, what="Bob is seen again")
    wait_for_colour(viewer, mid, "bob")


def test_a_choice_outlives_a_restart(aiortc: Aiortc, stream: str, tmp_path: Path) -> None:
    server = Server(tmp_path / "server.log", "--data", str(tmp_path / "data"))
    try:
        headers = {"Authorization": f"Bearer {server.token(stream)}", "Content-Type": "application/json"}
        # Its host comes after the restart, which may take a while on a busy machine.
        body = b'{"title": "Kept", "hostGraceSeconds": 3600}'
        assert server.request("POST", "/v1/streams", body, headers)[0] == 201
        assert server.request("POST", f"/v1/streams/{stream}/live", b"", headers)[0] == 200
        assert put(server, stream, picture(200, 100, "png")) == 204
        os.kill(server.pid, signal.SIGKILL)
        wait_until(lambda: not server.is_running, 5, "it is gone")
        server.start()
        aiortc.publish(server, stream)
        player = aiortc.play(server, stream)
        wait_until(lambda: (WIDTH, HEIGHT) in player.sizes, 20, "the player plays")
        set_paused(server, stream, True)
        wait_until(lambda: (200, 100) in player.sizes, 10, "the pause picture is shown")
        # With the stream it goes.
        headers = {"Authorization": f"Bearer {server.token(stream)}", "Content-Type": "application/json"}
        assert server.request("POST", f"/v1/streams/{stream}/end", b"", headers)[0] == 200
        wait_until(lambda: not list((tmp_path / "data/pause-pictures").iterdir()), 10, "nothing of it is left")
    finally:
        server.stop()
