"""WebKit, in a build without WebRTC: what its pages play, and what they say of what they cannot do."""

from __future__ import annotations

import functools
import json
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from drivers import Page, WebKit
from drivers.page import Viewport
from drivers.webkit import HangError
from media import wait_for_state
from rtmp import Encoder
from server import Server
from test_comments import wait_for_comment, wait_for_empty_line, write
from test_fallback import HEAR, wait_to_be_told

#: WebKit's windows are no narrower.
NARROW = Viewport(460, 844)
#: How far the first video is that plays.
AT = """() => [...(globalThis.player?.shadowRoot ?? document).querySelectorAll('video')]
    .find(video => video.videoWidth && !video.paused)?.currentTime ?? 0"""
PLAYER = """async address => {
    document.body.innerHTML = '<rostrum-player autoplay muted controls style="width: 640px"></rostrum-player>';
    await import('/assets/v1/rostrum-player.js');
    const player = globalThis.player = document.querySelector('rostrum-player');
    player.setAttribute('src', address);
}"""


@pytest.fixture(scope="module")
def live(logs: Path) -> Iterator[Server]:
    """A server that makes HLS, with a stream by the name of `film` from an encoder."""
    server = Server(logs / "server-webkit.log", "--max-hls", "3", "--rtmp", "127.0.0.1:0")
    host = {"Authorization": f"Bearer {server.token('film')}", "Content-Type": "application/json"}
    details = {"id": "film", "title": "A film"}
    status, _, answer = server.request("POST", "/v1/streams", json.dumps(details).encode(), headers=host)
    assert status == 201, answer
    _, _, answer = server.request("GET", "/v1/streams/film/ingest", headers=host)
    told = json.loads(answer)["rtmp"]
    with Encoder(f"{told['server']}/{told['key']}", logs / "webkit-encoder.log"):
        assert server.request("POST", "/v1/streams/film/live", b"", headers=host)[0] in (200, 204)
        yield server
    assert server.is_running
    assert server.stop() == 0


def unless_it_hangs(test: Callable[..., None]) -> Callable[..., None]:
    """Begins anew, in another browser, where WebKit waits for itself: that says nothing of the pages."""
    @functools.wraps(test)
    def attempts(webkit: WebKit, **more: Any) -> None:
        for _ in range(3):
            try:
                return test(webkit=webkit, **more)
            except HangError:
                webkit.restart()
        pytest.fail("WebKit hung three times")
    return attempts


def wait_for_playing(page: Page, seconds: float = 2) -> None:
    """Waits until so much more was played."""
    page.wait_for(f"() => ({AT})() > 0", seconds=40, what="it plays", about=AT)
    before = page.evaluate(AT)
    page.wait_for(f"wanted => ({AT})() >= wanted", before + seconds, seconds=40, what=f"it plays {seconds:g} s more", about=AT)


@unless_it_hangs
def test_the_watch_page(webkit: WebKit, live: Server, logs: Path) -> None:
    """Picture by HLS, comments both ways; and it says why there is no stage."""
    with webkit.open(f"{live.origin}/watch/film", NARROW) as page:
        assert page.evaluate("() => typeof RTCPeerConnection") == "undefined"
        wait_for_state(page, "live")
        wait_for_playing(page)
        page.wait_for("() => document.getElementById('delayed').innerText.startsWith('Delayed by about ')")
        assert page.evaluate("() => rostrum.connection.state") != "connected"
        write(page, "Hello from WebKit!", "Wes")
        wait_for_comment(page, "Hello from WebKit!")
        wait_for_empty_line(page)
        token = {"Authorization": f"Bearer {live.token('film')}"}
        told = json.loads(live.request("GET", "/v1/streams/film/comments", headers=token)[2])
        assert [(each["name"], each["text"]) for each in told["comments"]] == [("Wes", "Hello from WebKit!")]
        page.screenshot(logs / "webkit-watch.png")
        page.evaluate(HEAR, ".messages")
        page.click("#hand")
        wait_to_be_told(page)


@unless_it_hangs
def test_the_feed(webkit: WebKit, live: Server, logs: Path) -> None:
    with webkit.open(f"{live.origin}/") as page:
        wait_for_playing(page)
        page.screenshot(logs / "webkit-feed.png")


@unless_it_hangs
def test_the_player(webkit: WebKit, live: Server, logs: Path) -> None:
    with webkit.open(f"{live.origin}/docs") as page:
        page.evaluate(PLAYER, f"{live.origin}/watch/film")
        wait_for_playing(page)
        assert page.evaluate("() => [player.state, player.problem]") == ["live", None]
        page.screenshot(logs / "webkit-player.png")


def test_the_studio_says_that_it_cannot_send(webkit: WebKit, live: Server, stream: str, logs: Path) -> None:
    with webkit.open(f"{live.origin}/live/{stream}?source=test", NARROW) as page:
        page.click("#go")
        page.wait_for("() => document.getElementById('error').checkVisibility()", what="it says why not")
        assert page.text("#error-title") == "This browser can watch, but can’t go live"
        assert "stream from an encoder" in page.text("#error-text")
        page.screenshot(logs / "webkit-studio.png")
    listed = live.json("/v1/streams")["streams"]
    assert stream not in [each["id"] for each in listed]
