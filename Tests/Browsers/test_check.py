"""The page that tells whether live video gets through from where it is opened."""

from __future__ import annotations

import re
from collections.abc import Iterator
from pathlib import Path

import pytest

from drivers import DESKTOP, PHONE, Browser, Page, wait_until
from lossy import LossyPath
from media import go_live
from server import Server, free_port
from test_fallback import NO_WEBRTC
from test_feed_links import NOTE_REQUESTS
from test_hls import fetch
from test_pages import assert_fits

#: As behind a firewall that lets no UDP through to the server: nobody listens on the discard port.
NO_UDP = r"""() => {
    const apply = RTCPeerConnection.prototype.setRemoteDescription;
    RTCPeerConnection.prototype.setRemoteDescription = function ({type, sdp}) {
        return apply.call(this, {type, sdp: sdp.replace(/^(a=candidate:\S+ \d+ udp \d+ \S+) \d+/gim, '$1 9')});
    };
}"""


@pytest.fixture(params=["chromium", "firefox"])
def browser(request: pytest.FixtureRequest) -> Browser:
    return request.getfixturevalue(request.param)


@pytest.fixture(scope="module")
def relay(logs: Path) -> Iterator[Server]:
    """A server with every way there is, but for TLS."""
    port = free_port()
    server = Server(
        logs / "server-check.log", "--turn-tcp", f"127.0.0.1:{port}", "--turn-udp", f"127.0.0.1:{port}", "--max-hls", "1")
    yield server
    assert server.stop() == 0


def sessions(server: Server) -> float:
    """That live now."""
    return sum(map(float, re.findall(r"^rostrum_sessions\{.*\} (\S+)$", fetch(server, "/metrics"), re.MULTILINE)))


def verdict(page: Page) -> str:
    told: str = page.wait_for(
        "() => document.getElementById('verdict').dataset.verdict", seconds=30, what="it is known what gets through")
    return told


def ways(page: Page) -> dict[str, str]:
    """What came of each, by what it is called up to a parenthesis."""
    return page.evaluate(
        """() => Object.fromEntries([...document.querySelectorAll('#ways li')].map(row =>
            [row.querySelector('strong').textContent.replace(/ \\(.*/, ''), row.dataset.verdict]))""")


def test_every_way_is_tried_and_nothing_is_left(browser: Browser, relay: Server, logs: Path) -> None:
    page = browser.open(f"{relay.origin}/check", PHONE)
    assert verdict(page) == "ok"
    assert "best connection" in page.text("#verdict")
    assert ways(page) == dict.fromkeys([
        "This page", "Clock", "Media over UDP", "Media over TCP", "Media through TURN over UDP",
        "Media through TURN over TCP", "Live updates", "Delayed video"], "ok")
    assert_fits(page)
    page.screenshot(logs / f"check-phone-{browser.name}.png")
    page.resize(DESKTOP)
    page.screenshot(logs / f"check-desktop-{browser.name}.png")
    wait_until(lambda: sessions(relay) == 0, 15, "its sessions are over")
    page.click("#again")
    page.wait_for(
        "() => document.getElementById('again').getAttribute('aria-disabled') === 'true'", what="it is tried once more")
    assert verdict(page) == "ok"


def test_who_runs_the_server_learns_what_is_shut(chromium: Browser, relay: Server, logs: Path) -> None:
    page = chromium.open(f"{relay.origin}/check", DESKTOP, before_load=NO_UDP)
    assert verdict(page) == "warn"
    assert "over TCP" in page.text("#verdict")
    found = ways(page)
    assert (found["Media over UDP"], found["Media over TCP"]) == ("fail", "ok")
    assert "Open these ports" in page.text("#ways")
    page.screenshot(logs / "check-shut.png")


def test_without_webrtc_it_says_so(chromium: Browser, relay: Server) -> None:
    page = chromium.open(f"{relay.origin}/check", DESKTOP, before_load=NO_WEBRTC)
    assert verdict(page) == "warn"
    assert "a few seconds’ delay" in page.text("#verdict")
    assert "doesn’t support WebRTC" in page.text("#ways")


def test_a_browser_that_opens_no_socket_ends_the_test_and_keeps_the_focus(chromium: Browser, relay: Server) -> None:
    page = chromium.open(f"{relay.origin}/check", DESKTOP, before_load="""() => {
        delete globalThis.RTCPeerConnection;
        globalThis.WebSocket = class { constructor() { throw new DOMException('blocked', 'SecurityError'); } };
    }""")
    assert verdict(page) and ways(page)["Live updates"] == "warn"
    # Whoever tests again by keys is still there for the next time.
    assert page.evaluate("""async () => {
        const again = document.getElementById('again');
        again.focus();
        again.click();
        const meanwhile = [again.disabled, again.ariaDisabled];
        for (let frame = 0; frame < 2; frame++) await new Promise(requestAnimationFrame);
        return [...meanwhile, document.activeElement.id];
    }""") == [False, "true", "again"]
    assert verdict(page) and page.evaluate("() => document.getElementById('again').ariaDisabled") == "false"


def test_where_viewers_need_a_link_it_takes_one(chromium: Browser, logs: Path) -> None:
    server = Server(logs / "server-check-token.log", "--viewers", "token")
    try:
        page = chromium.open(f"{server.origin}/check", DESKTOP, before_load=NOTE_REQUESTS)
        assert verdict(page) == "warn"
        assert "/check#token=" in page.text("#verdict")
        assert "Live updates" not in ways(page)
        invited = chromium.open(f"{server.origin}/check#token={server.token('*', 'viewer')}", DESKTOP)
        assert verdict(invited) == "ok"
        assert ways(invited)["Live updates"] == "ok"
        guest = chromium.open(f"{server.origin}/check#token={server.token('talk', 'viewer')}", DESKTOP, before_load=NOTE_REQUESTS)
        assert verdict(guest) == "ok"
    finally:
        assert server.stop() == 0


def test_a_viewer_whose_network_blocks_media_finds_it(chromium: Browser, server: Server, stream: str) -> None:
    go_live(chromium, server, stream)
    path = LossyPath(server, 1, seed=1)
    try:
        page = chromium.open(f"{path.origin}/watch/{stream}", PHONE, before_load=path.rewrite)
        page.wait_for("() => document.getElementById('check').checkVisibility()", seconds=60, what="the page names it")
        assert page.text("#state") == "Live video isn’t getting through"
        assert page.evaluate("() => document.getElementById('check').getAttribute('href')") == "/check"
        assert_fits(page)
    finally:
        path.close()
