"""Clients whose address changes without their noticing, as behind a NAT: media follows as soon as they answer there."""

from __future__ import annotations

import json
import subprocess
from collections.abc import Iterator
from pathlib import Path

import pytest

from aiortc_client import Aiortc
from drivers import Browser, wait_until
from drivers.patience import patient
from lossy import LossyPath
from media import STATE, USUAL_VIEWPORT, go_live, wait_for_frames, wait_for_state, watch
from server import Server
from test_players import HERE, pion_player, system_python  # noqa: F401


class Distant:
    """The server as it is seen from behind a path."""

    def __init__(self, server: Server, path: LossyPath) -> None:
        self._server = server
        self.origin = path.origin

    @property
    def is_running(self) -> bool:
        return self._server.is_running

    request = Server.request


@pytest.fixture
def path(server: Server) -> Iterator[LossyPath]:
    path = LossyPath(server, 0, seed=1)
    yield path
    path.close()


@pytest.fixture
def rewriting_path(server: Server) -> Iterator[LossyPath]:
    path = LossyPath(server, 0, seed=1, rewrites=True)
    yield path
    path.close()


RESOURCE = "() => rostrum.connection.session.resource"


@pytest.mark.parametrize("name", ["chromium", "firefox"])
def test_a_viewer_goes_on_at_a_new_address(
    name: str, browsers: dict[str, Browser], chromium: Browser, server: Server, stream: str, path: LossyPath
) -> None:
    go_live(chromium, server, stream, codec="vp8")
    viewer = browsers[name].open(f"{path.origin}/watch/{stream}", USUAL_VIEWPORT, before_load=path.rewrite)
    wait_for_state(viewer, "live")
    wait_for_frames(viewer, 60)
    session = viewer.evaluate(RESOURCE)
    # After six seconds without a picture the page would ask for another session: a studio that gets no processor may
    # make none for so long. Where media does not follow, nothing comes any more.
    viewer.evaluate("() => { rostrum.connection.renew = () => {}; }")
    for _ in range(2):
        path.rebind()
        wait_for_frames(viewer, 90)
        assert viewer.evaluate(RESOURCE) == session, "the page did not begin anew"
    assert viewer.evaluate(STATE) == "live"


@pytest.mark.parametrize("name", ["chromium", "firefox"])
def test_a_publisher_goes_on_at_a_new_address(
    name: str, browsers: dict[str, Browser], chromium: Browser, server: Server, stream: str, path: LossyPath
) -> None:
    address = f"{path.origin}/live/{stream}?quality=360&fps=15&codec=vp8"
    studio = browsers[name].open(address, USUAL_VIEWPORT, before_load=path.rewrite)
    studio.click("#go")
    wait_for_state(studio, "live")
    viewer = watch(chromium, server, stream)
    wait_for_state(viewer, "live")
    wait_for_frames(viewer, 60)
    session = studio.evaluate(RESOURCE)
    path.rebind()
    wait_for_frames(viewer, 90)
    assert studio.evaluate(RESOURCE) == session, "the page did not begin anew"


def test_aiortc_goes_on_at_a_new_address(
    chromium: Browser, server: Server, stream: str, rewriting_path: LossyPath
) -> None:
    go_live(chromium, server, stream, codec="vp8")
    home = Aiortc()
    try:
        player = home.play(Distant(server, rewriting_path), stream)
        wait_until(lambda: player.frames >= 30, 20, "30 frames are decoded")
        rewriting_path.rebind()
        before = player.frames
        wait_until(lambda: player.frames >= before + 90, 30, "90 more frames are decoded")
        assert player.state == "connected"
    finally:
        home.close()


def output_after_a_move(command: list[str], path: LossyPath) -> str:
    """Of a player that is given another address once media comes, and that plays on to its end."""
    with subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True) as player:
        wait_until(lambda: path.passed > 150, 20, "media comes")
        # A player that tells at once where it is now may miss nothing: what comes meanwhile is lost for certain.
        path.cut()
        before = path.lost
        wait_until(lambda: path.lost > before + 40, 20, "media is lost")
        path.rebind()
        path.mend()
        output, errors = player.communicate(timeout=patient(60))
    assert player.returncode == 0, f"{output}\n{errors[-3000:]}"
    assert path.back_after is not None, "media came to the new address"
    return output


def test_pion_goes_on_at_a_new_address(
    chromium: Browser, server: Server, stream: str, rewriting_path: LossyPath, pion_player: Path  # noqa: F811
) -> None:
    go_live(chromium, server, stream, codec="vp8")
    # Eight seconds of sound.
    output = output_after_a_move(
        [str(pion_player), f"{rewriting_path.origin}/whep/{stream}?wait=20", "400", str(round(patient(40)))],
        rewriting_path)
    assert json.loads(output.splitlines()[-1])["gaps"] > 0


def test_gstreamer_goes_on_at_a_new_address(
    chromium: Browser, server: Server, stream: str, rewriting_path: LossyPath, system_python: str  # noqa: F811
) -> None:
    go_live(chromium, server, stream, codec="vp8")
    # Eight seconds of pictures.
    output_after_a_move(
        [system_python, str(HERE / "gst_player.py"), f"{rewriting_path.origin}/whep/{stream}?wait=20", "240",
         str(round(patient(40)))],
        rewriting_path)
