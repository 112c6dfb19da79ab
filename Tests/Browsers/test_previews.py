"""Every live stream has a fresh small picture, made by a process whose death nobody notices."""

from __future__ import annotations

import os
import re
import signal
import subprocess
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy
import pytest

from aiortc_client import HEIGHT, WIDTH, Aiortc
from drivers import Browser, wait_until
from media import go_live
from server import Server


@pytest.fixture
def aiortc() -> Iterator[Aiortc]:
    home = Aiortc()
    yield home
    home.close()


def preview(server: Server, stream: str) -> dict[str, Any] | None:
    status, _, _ = server.request("GET", f"/v1/streams/{stream}")
    return server.json(f"/v1/streams/{stream}")["preview"] if status == 200 else None


def pixels(file: bytes, width: int, height: int) -> numpy.ndarray:
    """What ffmpeg makes of a picture: rows of red, green and blue."""
    done = subprocess.run(
        ["ffmpeg", "-loglevel", "error", "-i", "-", "-f", "rawvideo", "-pix_fmt", "rgb24", "-"],
        input=file, capture_output=True, check=True)
    return numpy.frombuffer(done.stdout, dtype=numpy.uint8).reshape(height, width, 3).astype(int)


def transcoder(server: Server, killed: int | None = None) -> int:
    """Process id of the server's transcoder, once there is one; of the next one, where one was killed."""
    def find() -> int | None:
        for entry in Path("/proc").iterdir():
            try:
                if entry.name.isdigit() and entry.name != str(killed) and re.search(
                    rf"\ntranscoder\n{server.pid}\n", "\n" + (
                        entry / "cmdline").read_bytes().replace(b"\0", b"\n").decode()):
                    return int(entry.name)
            except OSError:
                continue
        return None
    return wait_until(find, 10, "there is a transcoder")


@pytest.mark.parametrize("codec", ["vp8", "h264"])
def test_a_stream_has_a_picture_soon_after_it_began(aiortc: Aiortc, server: Server, stream: str, codec: str) -> None:
    aiortc.publish(server, stream, codec)
    about = wait_until(lambda: preview(server, stream), 5, "there is a preview")
    assert (about["width"], about["height"]) == (WIDTH, HEIGHT)
    assert len(about["blurHash"]) == 28
    for path, kind in [(about["url"], "image/webp"), (about["url"].replace(".webp", ".jpg"), "image/jpeg")]:
        status, headers, file = server.request("GET", path)
        assert (status, headers["content-type"]) == (200, kind)
        shown = pixels(file, WIDTH, HEIGHT)
        # The ground goes from dark to bright, and somewhere in it is a red bar.
        column = shown[HEIGHT // 2]
        grey = column[abs(column[:, 0] - column[:, 2]) < 30]
        assert grey[0].mean() < 80 and grey[-1].mean() > 160
        assert (column[:, 0] - column[:, 2] > 120).sum() >= 8
        assert server.request("HEAD", path)[0] == 200
        assert server.request("GET", path, headers={"If-None-Match": headers["etag"]})[0] == 304


def test_it_is_made_anew_and_stays_after_the_end(aiortc: Aiortc, server: Server, stream: str) -> None:
    publisher = aiortc.publish(server, stream)
    first = wait_until(lambda: preview(server, stream), 10, "there is a preview")
    second = wait_until(
        lambda: (now := preview(server, stream)) and now["capturedAt"] != first["capturedAt"] and now, 25,
        "there is another preview")
    publisher.close()
    wait_until(lambda: server.json(f"/v1/streams/{stream}")["state"] == "ended", 10, "the stream has ended")
    last = preview(server, stream)
    assert last and last["capturedAt"] >= second["capturedAt"]
    assert server.request("GET", last["url"])[0] == 200


def test_a_backstage_is_seen_by_nobody(aiortc: Aiortc, server: Server, stream: str) -> None:
    headers = {"Authorization": f"Bearer {server.token(stream)}", "Content-Type": "application/json"}
    assert server.request("POST", "/v1/streams", b'{"title": "Not yet"}', headers)[0] == 201
    aiortc.publish(server, stream)
    wait_until(
        lambda: server.json(f"/v1/streams/{stream}")["tracks"], 10, "the host's camera is on in the backstage")
    # Another one that began later has had its second picture.
    other = f"{stream}-live"
    aiortc.publish(server, other)
    first = wait_until(lambda: preview(server, other), 10, "there is a preview of the live one")
    wait_until(
        lambda: preview(server, other)["capturedAt"] != first["capturedAt"], 25, "there is another one of it")
    assert preview(server, stream) is None
    assert server.request("GET", f"/v1/streams/{stream}/preview.webp")[0] == 404
    assert server.request("POST", f"/v1/streams/{stream}/live", b"", headers)[0] == 200
    about = wait_until(lambda: preview(server, stream), 10, "there is a preview of what is live now")
    assert server.request("GET", about["url"])[0] == 200


def test_chromium_is_shown_in_its_proportions(chromium: Browser, server: Server, stream: str) -> None:
    with go_live(chromium, server, stream):
        about = wait_until(lambda: preview(server, stream), 15, "there is a preview")
        assert about["width"] in range(160, 361)
        assert abs(about["width"] / about["height"] - 16 / 9) < 0.05
        shown = pixels(server.request("GET", about["url"])[2], about["width"], about["height"])
        # Chromium's fake camera is green.
        assert (shown[..., 1] - shown[..., 0] > 40).mean() > 0.5


def test_nobody_notices_when_the_transcoder_is_killed(aiortc: Aiortc, own_server: Server) -> None:
    aiortc.publish(own_server, "show")
    player = aiortc.play(own_server, "show")
    wait_until(lambda: preview(own_server, "show"), 10, "there is a preview")
    wait_until(lambda: player.frames > 20, 15, "the player plays")
    killed = None
    for _ in range(3):
        before = player.frames
        # The next one may be slower to start than pictures are to come.
        killed = transcoder(own_server, killed)
        os.kill(killed, signal.SIGKILL)
        wait_until(lambda: player.frames >= before + 20, 2, "the player goes on")
    assert transcoder(own_server, killed)
    # Of what came until then, the latest may be from between two deaths.
    latest = preview(own_server, "show")
    wait_until(
        lambda: preview(own_server, "show")["capturedAt"] != latest["capturedAt"], 30, "there is another preview")
    assert own_server.metrics()["rostrum_transcoder_restarts_total"] == 3


def test_where_streams_are_not_public_the_address_is_signed(
    aiortc: Aiortc, logs: Path, request: pytest.FixtureRequest
) -> None:
    server = Server(logs / f"server-{request.node.name}.log", "--viewers", "token")
    try:
        aiortc.publish(server, "show")
        token = {"Authorization": f"Bearer {server.token('show', 'viewer')}"}

        def address() -> str | None:
            status, _, body = server.request("GET", "/v1/streams/show", headers=token)
            found = re.search(rb'"url":"([^"]*)"', body) if status == 200 else None
            return found[1].decode().replace("\\/", "/") if found else None

        url = wait_until(address, 10, "there is a preview")
        assert server.request("GET", url)[0] == 200
        assert server.request("GET", "/v1/streams/show/preview.webp")[0] == 401
        assert server.request("GET", "/v1/streams/show/preview.webp", headers=token)[0] == 200
        assert server.request("GET", re.sub("sig=.", "sig=x", url))[0] == 401
        assert server.request("GET", url.replace("/show/", "/other/"))[0] == 401
    finally:
        server.stop()
