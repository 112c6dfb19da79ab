"""What viewers choose of the picture, what they get then, and what they are told of a link that does not take it."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pytest

from drivers import PHONE, Browser, Page, wait_until
from lossy import LossyPath
from media import check_no_complaints, go_live, received, wait_for_state
from server import Server
from test_pages import assert_fits

#: Heights of the pictures that are seen.
HEIGHT = "() => Math.max(0, ...[...document.querySelectorAll('video')].map(video => video.videoHeight))"


@pytest.fixture(params=["chromium", "firefox"])
def browser(request: pytest.FixtureRequest) -> Browser:
    return request.getfixturevalue(request.param)


@pytest.fixture
def live(chromium: Browser, server: Server, stream: str) -> Iterator[Page]:
    """A publisher in the default settings, with the largest of its pictures 720 pixels high."""
    with go_live(chromium, server, stream, quality=720) as page:
        yield page


def quality(page: Page) -> dict[str, Any]:
    return page.evaluate("() => rostrum.connection.session.quality()")


def wait_for_served(page: Page, height: int | None) -> dict[str, Any]:
    """What the server tells once it says that it sends a picture of this height; None for none."""
    def told() -> dict[str, Any] | None:
        answer = quality(page)
        served = [picture["served"] and picture["served"]["height"] for picture in answer["pictures"]]
        return answer if served == [height] else None
    return wait_until(told, 15, f"the server tells of {height}")


def choose(page: Page, name: str) -> None:
    page.click("#picture")
    page.click(f"#picture-panel input[value={name}]")
    page.press("Escape")
    page.wait_for("() => document.getElementById('picture-panel').hidden", what="the panel is closed")


def wait_for_height(page: Page, is_wanted: str, seconds: float = 30) -> None:
    page.wait_for(f"() => {{ const height = ({HEIGHT})(); return {is_wanted}; }}", seconds=seconds, what=is_wanted)


def test_a_viewer_chooses_the_picture(browser: Browser, server: Server, stream: str, live: Page) -> None:
    with browser.open(f"{server.origin}/watch/{stream}", PHONE) as page:
        wait_for_state(page, "live")
        wait_for_height(page, "height === 720")
        told = wait_for_served(page, 720)
        assert (told["cause"], told["pictures"][0]["wanted"]["height"]) == ("publisher", 720)
        page.click("#picture")
        assert_fits(page)
        page.press("Escape")

        choose(page, "low")
        wait_for_height(page, "height > 0 && height < 720")
        told = wait_for_served(page, page.evaluate(HEIGHT))
        assert told["cause"] == "pinned" and told["preferences"] == {"audioOnly": False, "maxHeight": None, "pin": "low"}

        choose(page, "sound")
        page.wait_for("() => document.getElementById('sound-only').checkVisibility()", what="sound alone is played")
        before = received(page)
        wait_until(lambda: received(page).audio_packets > before.audio_packets + 100, 15, "sound goes on")
        assert received(page).frames == before.frames
        assert page.evaluate("() => document.body.dataset.state") == "live"
        assert wait_for_served(page, None)["pictures"][0]["paused"] is True
        # It is remembered for as long as the tab is.
        page.goto(f"{server.origin}/watch/{stream}")
        wait_for_state(page, "live")
        page.wait_for("() => document.getElementById('sound-only').checkVisibility()", what="sound alone is played")
        assert page.evaluate("() => document.querySelector('#picture-panel input:checked').value") == "sound"

        choose(page, "auto")
        wait_for_height(page, "height === 720")
        check_no_complaints(page)


def test_a_viewer_of_the_feed_chooses_the_picture(browser: Browser, server: Server, stream: str, live: Page) -> None:
    with browser.open(f"{server.origin}/?stream={stream}", PHONE) as page:
        wait_for_height(page, "height === 720")
        page.click("#menu-button")
        page.click("#picture summary")
        page.click("#menu input[value=low]")
        wait_for_height(page, "height > 0 && height < 720")
        page.click("#menu input[value=auto]")
        wait_for_height(page, "height === 720")


def test_a_weak_link_is_told_of(browser: Browser, server: Server, stream: str, live: Page) -> None:
    path = LossyPath(server, loss=0, seed=1)
    try:
        with browser.open(f"{path.origin}/watch/{stream}", before_load=path.rewrite) as page:
            wait_for_state(page, "live", 30)
            wait_for_height(page, "height === 720", 60)
            assert not page.evaluate("() => document.getElementById('weak-link').checkVisibility()")
            path.down.capacity = 600_000
            page.wait_for(
                "() => document.getElementById('weak-link').innerText.includes('a smaller picture')", seconds=60,
                what="the page says that the connection is slow")
            told = quality(page)
            assert told["cause"] in ("delay", "loss") and told["estimate"] < 1_500_000
            path.down.capacity = None
            page.wait_for("() => document.getElementById('weak-link').hidden", seconds=60, what="all is well again")
            wait_for_height(page, "height === 720", 60)
    finally:
        path.close()
