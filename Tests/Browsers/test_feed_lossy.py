"""The story feed over a bad network: a twentieth of all datagrams is lost each way, or everything for a while."""

from __future__ import annotations

import time
from collections.abc import Iterator
from pathlib import Path

import pytest

from drivers import Browser, Chromium, Page, wait_until
from feed import STORIES, WATCH_FRAMES, Studio, assert_shows, place, wait_for_story
from lossy import LossyPath
from server import Server

LOSS = 0.05
#: VP8, VP9, AV1, VP8 and VP9: what both browsers play.
SHOWN = [STORIES[0], STORIES[1], STORIES[3], STORIES[4], STORIES[6]]
#: A swipe shows the right story, and a shown one moves, within this many seconds; one or two on an idle machine.
BOUND = 15.0
#: How long the network is away, in seconds.
CUT = 10.0


@pytest.fixture(scope="module")
def studio(logs: Path) -> Iterator[Studio]:
    server, browser = Server(logs / "server-feed-lossy.log"), Chromium(logs)
    try:
        yield Studio(browser, server, "bad", SHOWN)
    finally:
        browser.close()
    assert server.stop() == 0


@pytest.fixture(params=["chromium", "firefox"])
def browser(request: pytest.FixtureRequest) -> Browser:
    return request.getfixturevalue(request.param)


@pytest.fixture
def path(studio: Studio) -> Iterator[LossyPath]:
    path = LossyPath(studio.server, LOSS, seed=5)
    yield path
    path.close()


def begin(browser: Browser, studio: Studio, path: LossyPath) -> tuple[Page, list[str]]:
    page = browser.open(path.origin, before_load=path.rewrite)
    page.wait_for(
        "count => rostrum.feed.stories.length === count && rostrum.feed.current", len(SHOWN), seconds=15,
        what="the feed is read")
    page.evaluate(WATCH_FRAMES)
    return page, place(page)["stories"]


#: What comes in, for whoever asks why nothing is to be seen.
ARRIVING = """async () => [...(await rostrum.connection.session?.peer.getStats())?.values() ?? []]
    .filter(({type, kind}) => type === 'inbound-rtp' && kind === 'video')
    .map(({mid, packetsReceived, packetsLost, nackCount, pliCount, framesReceived, framesDecoded, keyFramesDecoded}) =>
        ({mid, packetsReceived, packetsLost, nackCount, pliCount, framesReceived, framesDecoded, keyFramesDecoded}))"""


def wait_until_it_moves(page: Page, story: str, seconds: float = BOUND, frames: int = 5) -> None:
    """Waits for so many new frames of a story that are seen."""
    page.evaluate("() => { frames.length = 0; }")
    before = page.evaluate(ARRIVING)
    try:
        page.wait_for(
            "(story, count) => frames.filter(frame => frame.story === story && frame.isSeen && frame.isFront).length >= count",
            story, frames, seconds=seconds, what=f"{story} moves")
    except TimeoutError as error:
        seen = page.evaluate("() => frames.map(({story, isSeen, isFront}) => [story, isSeen, isFront])")
        raise AssertionError(
            f"{error}\nbefore {before}\nnow {page.evaluate(ARRIVING)}\nplace {place(page)}\nframes {seen}") from None


def test_every_swipe_shows_the_right_story_moving(browser: Browser, studio: Studio, path: LossyPath) -> None:
    page, order = begin(browser, studio, path)
    wait_for_story(page, order[0])
    # On, back, by jumps, and on again.
    turns = [1, 2, 3, 4, 3, 1, 4, 0, 2]
    for turn in turns:
        here = order.index(place(page)["current"])
        if turn == here + 1:
            page.press("ArrowRight")
        elif turn == here - 1:
            page.press("ArrowLeft")
        else:
            page.evaluate("id => rostrum.feed.go(id)", order[turn])
        wait_for_story(page, order[turn], seconds=BOUND)
        wait_until_it_moves(page, order[turn])
        assert_shows(page, studio.stories[order[turn]])
    # It goes on, and not by chance.
    wait_until_it_moves(page, order[turns[-1]], frames=12)
    assert path.lost > path.passed / 40, "it was a bad network"
    page.close()


def test_after_the_network_was_cut_it_is_the_same_story(browser: Browser, studio: Studio, path: LossyPath) -> None:
    page, order = begin(browser, studio, path)
    page.evaluate("id => rostrum.feed.go(id)", order[2])
    wait_for_story(page, order[2])
    wait_until_it_moves(page, order[2])
    page.evaluate("() => { globalThis.neverReloaded = true; }")
    path.cut()
    cut = time.monotonic()
    page.wait_for("() => rostrum.feed.state === 'reconnecting'", seconds=20, what="it says that it reconnects")
    wait_until(lambda: time.monotonic() - cut >= CUT, CUT + 5, "the network was away for long")
    assert place(page)["current"] == order[2]
    path.mend()
    page.wait_for("() => rostrum.feed.state === 'playing'", seconds=30, what="it is back")
    wait_for_story(page, order[2])
    wait_until_it_moves(page, order[2], seconds=20)
    assert_shows(page, studio.stories[order[2]])
    # And it can be left.
    page.press("ArrowRight")
    wait_for_story(page, order[3])
    wait_until_it_moves(page, order[3])
    assert page.evaluate("() => globalThis.neverReloaded === true")
    page.close()
