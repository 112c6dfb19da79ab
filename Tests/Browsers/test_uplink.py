"""A speaker whose own link is weak: the others on the stage see it, by what is lost and by what their page says."""

from __future__ import annotations

import json
from collections.abc import Iterator

import pytest

from drivers import Browser, Page, wait_until
from lossy import LossyPath
from media import address, go_live, press_go_live, wait_for_state
from server import Server
from stage import join
from test_picture import wait_for_height

#: Whether the studio shows that somebody's connection is weak: null while they have no tile.
WEAK = """name => {
    const tile = document.querySelector(`.tile[data-participant=${name}]`);
    const mark = tile?.querySelector('.weak-uplink');
    if (!mark) return null;
    return mark.getBoundingClientRect().width > 0 && tile.innerText.includes('weak connection');
}"""


@pytest.fixture
def path(server: Server) -> Iterator[LossyPath]:
    path = LossyPath(server, loss=0, seed=3)
    yield path
    path.close()


def wait_for_weakness(page: Page, name: str, is_weak: bool) -> None:
    page.wait_for(
        f"(name, wanted) => ({WEAK})(name) === wanted", name, is_weak, seconds=30,
        what=f"{name}'s connection {'is' if is_weak else 'is not'} shown as weak")


@pytest.mark.parametrize("name", ["chromium", "firefox"])
def test_the_host_sees_whose_packets_get_lost(
    browsers: dict[str, Browser], chromium: Browser, server: Server, stream: str, path: LossyPath, name: str
) -> None:
    host = go_live(chromium, server, stream, name="Ann")
    speaker = join(browsers[name], server, stream, "bob", path=path)
    wait_for_weakness(host, "bob", False)
    path.loss = 0.15
    wait_for_weakness(host, "bob", True)
    path.loss = 0
    wait_for_weakness(host, "bob", False)
    speaker.close()


def test_a_page_says_that_the_network_takes_less_than_its_camera(
    chromium: Browser, server: Server, stream: str, path: LossyPath
) -> None:
    """Congestion control loses next to nothing: only the browser knows that it sends less than it would."""
    host = chromium.open(path.origin + address(f"/live/{stream}", {"quality": 720, "name": "Ann"}), before_load=path.rewrite)
    press_go_live(host)
    # What nobody takes is not sent, and the smallest alone may fit.
    viewer = chromium.open(f"{server.origin}/watch/{stream}")
    wait_for_state(viewer, "live")

    def is_weak() -> bool:
        status, _, body = server.request("GET", f"/v1/streams/{stream}/participants")
        assert status == 200, body
        return any(member["weakUplink"] for member in json.loads(body)["speakers"].values())

    host.wait_for("() => rostrum.room.onAir.numbers?.frames > 60", seconds=15, what="it sends")
    # While a browser finds out what the way takes it may send less than it would, the longer the busier the machine is.
    wait_until(lambda: not is_weak(), 60, "nothing is wrong yet")
    path.up.capacity = 150_000
    host.wait_for("() => rostrum.room.onAir.numbers.limitation === 'bandwidth'", seconds=30, what="the browser says so")
    wait_until(is_weak, 40, "the stream's state says so")
    path.up.capacity = None
    wait_until(lambda: not is_weak(), 60, "it says so no more")
    viewer.close()
    host.close()


def test_the_largest_size_goes_where_not_all_of_them_fit(
    chromium: Browser, server: Server, stream: str, path: LossyPath
) -> None:
    """Chromium begins the largest of three only where there is room for all: alone with the smallest it fits."""
    host = chromium.open(path.origin + address(f"/live/{stream}", {"quality": 720, "name": "Ann"}), before_load=path.rewrite)
    press_go_live(host)
    # All three want 1.7 Mbit/s before the largest begins, that one and the smallest 0.95. A busy machine estimates less than
    # there is.
    path.up.capacity = 1_500_000
    with chromium.open(f"{server.origin}/watch/{stream}") as viewer:
        wait_for_state(viewer, "live")
        wait_for_height(viewer, "height === 720", 40)
    host.close()
