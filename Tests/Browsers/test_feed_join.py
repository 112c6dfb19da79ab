"""Joining in from the feed: the hand is raised in place, the host sees it, and the way to the stage and back."""

from __future__ import annotations

from pathlib import Path

import pytest

from drivers import DESKTOP, PHONE, Browser, Page
from drivers.page import Viewport
from feed import open_feed, wait_for_story
from media import check_no_complaints, go_live
from server import Server
from test_pages import assert_fits_in

#: A phone that lies on its side.
TURNED = Viewport(844, 390)


@pytest.fixture(params=["chromium", "firefox"])
def browser(request: pytest.FixtureRequest) -> Browser:
    return request.getfixturevalue(request.param)


def begin_to_join(page: Page, name: str) -> None:
    page.click(".side.is-front .join")
    page.wait_for("() => document.querySelector('dialog[data-name=join]') !== null", what="the name is asked")
    page.evaluate("name => { document.getElementById('your-name').value = name; }", name)


def raise_hand(page: Page, stream: str, name: str) -> None:
    begin_to_join(page, name)
    page.click("dialog[data-name=join] [data-value=yes]")
    page.wait_for("id => rostrum.joining.stateIn(id) === 'raised'", stream, what="the hand is up")


def test_a_hand_is_raised_in_place(
    chromium: Browser, browser: Browser, own_server: Server, stream: str, logs: Path
) -> None:
    studio = go_live(chromium, own_server, stream)
    page = open_feed(browser, own_server, PHONE)
    wait_for_story(page, stream)
    begin_to_join(page, "Vicky")
    for viewport in (DESKTOP, TURNED, PHONE):
        assert_fits_in(page, viewport, logs / f"feed-join-{browser.name}-{viewport.width}.png")
    page.press("Enter")
    page.wait_for("id => rostrum.joining.stateIn(id) === 'raised'", stream, what="the hand is up")
    studio.wait_for("() => document.getElementById('hands').innerText.includes('Vicky')", what="the host sees whose hand it is")
    assert page.text(".side.is-front .join .lines > span") == "Lower hand"
    assert page.text(".side.is-front .join small") == "You’re next"
    assert page.evaluate("() => location.pathname") == "/", "it is the same page"
    page.wait_for("() => rostrum.cube.frontSide.isUncovered", what="the picture goes on")
    page.click(".side.is-front .join")
    studio.wait_for("() => !document.getElementById('hands').innerText.includes('Vicky')", what="the hand is down")
    assert page.text(".side.is-front .join") == "Join in"
    check_no_complaints(page)


def test_an_invitation_leads_to_the_stage_and_back(
    chromium: Browser, browser: Browser, own_server: Server, stream: str, logs: Path
) -> None:
    studio = go_live(chromium, own_server, stream)
    page = open_feed(browser, own_server)
    wait_for_story(page, stream)
    raise_hand(page, stream, "Vicky")
    studio.click("#hands [data-participant] [data-action=invite]")
    page.wait_for("() => document.querySelector('dialog[data-name=invited]') !== null", what="the invitation comes")
    page.screenshot(logs / f"feed-invited-{browser.name}.png")
    page.click("dialog[data-name=invited] [data-value=ready]")
    page.wait_for("id => location.pathname === `/watch/${id}`", stream, what="the stream's own page")
    page.wait_for(
        "() => document.querySelector('dialog[data-name=invitation]') !== null", seconds=15, what="the invitation is open there")
    page.click("dialog[data-name=invitation] [data-value=decline]")
    page.wait_for("() => document.querySelector('dialog[data-name=invitation]') === null")
    page.click("#back")
    wait_for_story(page, stream)


def test_the_host_may_lower_the_hand_or_end(chromium: Browser, own_server: Server, stream: str) -> None:
    studio = go_live(chromium, own_server, stream)
    page = open_feed(chromium, own_server)
    wait_for_story(page, stream)
    raise_hand(page, stream, "Vicky")
    # Its owner may hear of it before the host does.
    studio.wait_for("() => Object.keys(rostrum.room.sync.known.raisedHands).length === 1", what="the host sees the hand")
    studio.evaluate("async () => rostrum.room.api.lowerHand(Object.keys(rostrum.room.sync.known.raisedHands)[0])")
    page.wait_for("id => rostrum.joining.stateIn(id) === 'down'", stream, what="the hand is down")
    assert page.text(".side.is-front .join") == "Join in"
