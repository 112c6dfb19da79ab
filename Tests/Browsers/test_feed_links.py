"""Links to the feed that lead to no live story, and what somebody is told who may not watch."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path

import pytest

from drivers import DESKTOP, PHONE, Browser, Chromium, Page
from drivers.page import Viewport
from feed import STORIES, Studio, open_feed, place, wait_for_story
from media import check_no_complaints
from server import Server
from test_pages import assert_fits

#: A phone that lies on its side.
TURNED = Viewport(844, 390)


@pytest.fixture(scope="module")
def studio(logs: Path) -> Iterator[Studio]:
    """A server of its own where somebody is live, and somebody else has been."""
    server, browser = Server(logs / "server-feed-links.log"), Chromium(logs)
    studio = Studio(browser, server, "links", [STORIES[0], STORIES[1]])
    studio.end("links-2")
    yield studio
    browser.close()
    assert server.stop() == 0


@pytest.fixture(params=["chromium", "firefox"])
def browser(request: pytest.FixtureRequest) -> Browser:
    return request.getfixturevalue(request.param)


def make(server: Server, name: str, host: str, **details: object) -> str:
    """A stream that is not live; gives the host's token."""
    token = server.token(name, "host", host)
    status, _, body = server.request(
        "POST", "/v1/streams", json.dumps(details).encode(),
        {"Content-Type": "application/json", "Authorization": f"Bearer {token}"})
    assert status == 201, (status, body)
    return token


def wait_for_card(page: Page, title: str) -> None:
    page.wait_for(
        "title => rostrum.feed.state === 'missing' && document.getElementById('state').checkVisibility()"
        " && document.getElementById('state').textContent.replace(/[\\u2068\\u2069]/g, '') === title",
        title, what=f"the page says: {title}")
    # Nobody else's stream instead.
    assert place(page)["current"] is None and place(page)["slots"] == []
    assert not page.evaluate("() => document.querySelector('.cube').checkVisibility({visibilityProperty: true})")


@pytest.mark.parametrize("viewport", [PHONE, TURNED, DESKTOP], ids=["phone", "turned", "desktop"])
def test_a_link_to_a_story_that_has_ended_says_so(
    browser: Browser, studio: Studio, viewport: Viewport, logs: Path
) -> None:
    page = open_feed(browser, studio.server, viewport, path="/?stream=links-2")
    wait_for_card(page, f"{studio.stories['links-2'].title} has ended.")
    assert studio.stories["links-2"].host in page.text("#hint")
    assert_fits(page)
    page.screenshot(logs / f"feed-ended-{browser.name}-{viewport.width}.png")
    # What is not there is not offered.
    assert page.text("#actions").strip() == "See who’s live"
    page.click("#actions button")
    wait_for_story(page, "links-1")
    assert page.evaluate("() => location.search") == "?stream=links-1"
    check_no_complaints(page)
    page.close()


def test_the_recording_of_a_story_that_has_ended_is_offered(browser: Browser, studio: Studio) -> None:
    listed = {"recordings": [{
        "id": "r1", "part": 1, "state": "ended", "duration": 11, "size": 333_000, "url": "/nowhere.mp4", "startedAt": "2026-01-01T20:00:00Z"}]}
    page = open_feed(browser, studio.server, path="/?stream=links-2", before_load=f"""() => {{
        const go = window.fetch;
        window.fetch = (to, how) => String(to).endsWith('/links-2/recordings')
            ? Promise.resolve(new Response({json.dumps(json.dumps(listed))})) : go(to, how);
    }}""")
    wait_for_card(page, f"{studio.stories['links-2'].title} has ended.")
    page.wait_for("() => document.querySelector('#actions a')?.textContent === 'Watch the recording'")
    assert "See who’s live" in page.text("#actions")
    page.click("#actions a")
    page.wait_for("() => location.pathname === '/watch/links-2'", what="it leads to the recording")
    page.close()


def test_a_wrong_name_is_told_and_becomes_right_when_somebody_goes_live_by_it(browser: Browser, studio: Studio) -> None:
    name = f"links-{browser.name}"
    page = open_feed(browser, studio.server, path=f"/?stream={name}")
    wait_for_card(page, f"There’s no live stream called {name}.")
    assert_fits(page)
    # Made, but not begun.
    make(studio.server, name, "Eve", title="Late lunch", startsAt="2030-01-01T20:00:00Z")
    page.goto(studio.server.origin + f"/?stream={name}")
    wait_for_card(page, "Late lunch hasn’t started yet.")
    assert "2030" not in page.text("#hint") and "It will play here automatically" in page.text("#hint")
    studio.stories[name] = STORIES[6]
    studio.send(name, studio.server.token(name, "host", "Eve"))
    wait_for_story(page, name)
    token = studio.server.token(name, "host", "Eve")
    studio.server.request("POST", f"/v1/streams/{name}/end", b"", {"Authorization": f"Bearer {token}"})
    page.close()


def test_a_name_that_cannot_be_is_no_riddle(chromium: Browser, studio: Studio) -> None:
    page = open_feed(chromium, studio.server, path="/?stream=" + "%3Cb%3Eb%C3%B6se%20" + "x" * 80)
    page.wait_for("() => rostrum.feed.state === 'missing'")
    assert_fits(page)
    check_no_complaints(page)
    page.close()


@pytest.fixture(scope="module")
def closed(logs: Path) -> Iterator[Server]:
    """A server where to watch takes a token."""
    server = Server(logs / "server-feed-closed.log", "--viewers", "token")
    yield server
    assert server.stop() == 0


#: What the page asks the server for: addresses of requests and of sockets.
NOTE_REQUESTS = """() => {
    globalThis.asked = [];
    const go = window.fetch, Socket = window.WebSocket;
    window.fetch = (to, how) => { asked.push(String(to)); return go(to, how); };
    window.WebSocket = class extends Socket { constructor(to) { super(to); asked.push(String(to)); } };
    // As a server does that hands out no tokens.
    window.fetch = (to, how) => {
        asked.push(String(to));
        return String(to) === '/v1/tokens' ? Promise.resolve(new Response('', {status: 404})) : go(to, how);
    };
}"""


@pytest.mark.parametrize("viewport", [PHONE, TURNED, DESKTOP], ids=["phone", "turned", "desktop"])
def test_who_needs_an_invitation_is_told_what_to_do(
    browser: Browser, closed: Server, viewport: Viewport, logs: Path
) -> None:
    page = open_feed(browser, closed, viewport, before_load=NOTE_REQUESTS)
    page.wait_for("() => rostrum.feed.state === 'failed'", what="the page has been refused")
    assert "You need an invitation" in page.text("#state")
    assert "rostrum token" in page.text("#actions")
    assert_fits(page)
    page.screenshot(logs / f"feed-uninvited-{browser.name}-{viewport.width}.png")
    # Something that is none.
    page.click("#invitation")
    page.evaluate("() => { document.getElementById('invitation').value = 'https://elsewhere.example/watch/x#token=a.b.c'; }")
    page.press("Enter")
    page.wait_for(
        "() => document.getElementById('invitation-problem').textContent.includes('isn’t an invitation')")
    asked = page.evaluate("() => asked.length")
    # One that is: the bare token.
    page.evaluate("token => { document.getElementById('invitation').value = token; }", closed.token("s1", "viewer", "Vic"))
    assert page.evaluate("() => asked.length") == asked, "nothing is asked for while one reads"
    page.press("Enter")
    page.wait_for("() => location.pathname === '/watch/s1' && location.hash.startsWith('#token=')")
    page.close()


def test_a_pasted_link_never_leaves_this_server(chromium: Browser, closed: Server) -> None:
    page = open_feed(chromium, closed, path="/#token=abc.def.ghi")
    led = page.evaluate(
        "async links => { const { addressOf } = await import('/assets/feed/uninvited.js'); return links.map(addressOf); }",
        [
            f"{closed.origin}/watch/s1#token=x", f"{closed.origin}//evil.example/x#token=x",
            f"{closed.origin}/\\\\evil.example/x", "//evil.example/x", "https://evil.example/x", "javascript:alert(1)",
        ])
    assert led == [
        f"{closed.origin}/watch/s1#token=x", f"{closed.origin}//evil.example/x#token=x",
        f"{closed.origin}///evil.example/x", None, None, None,
    ]
    page.close()


def test_a_link_that_is_not_valid_any_more_is_told_apart(browser: Browser, closed: Server) -> None:
    page = open_feed(browser, closed, path="/#token=abc.def.ghi", before_load=NOTE_REQUESTS)
    page.wait_for("() => rostrum.feed.state === 'failed'", what="the page has been refused")
    assert "no longer valid" in page.text("#state")
    page.evaluate("origin => { document.getElementById('invitation').value = `${origin}/`; }", closed.origin)
    page.click("#invitation")
    token = closed.token("*", "viewer", "Vic")
    page.evaluate("link => { document.getElementById('invitation').value = link; }", f"{closed.origin}/#token={token}")
    page.press("Enter")
    page.wait_for("() => globalThis.rostrum?.feed.state === 'empty'", what="the feed is shown")
    page.close()
