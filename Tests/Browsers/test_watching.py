"""The audience's page where something is missing: the stream, the sound, or a way for media."""

from __future__ import annotations

from pathlib import Path

import pytest

from drivers import PHONE, Browser
from media import go_live, wait_for_frames, wait_for_state, watch
from server import Server


@pytest.fixture(params=["chromium", "firefox"])
def browser(request: pytest.FixtureRequest) -> Browser:
    return request.getfixturevalue(request.param)


#: Whether a waiting page offered the way to other streams, at first and from then on.
WAYS_OUT = """() => {
    globalThis.waysOut = [];
    new MutationObserver(() => {
        if (document.body?.dataset.state !== 'waiting') return;
        const isOffered = document.getElementById('home')?.checkVisibility() ?? false;
        if (waysOut.at(-1) !== isOffered) waysOut.push(isOffered);
    }).observe(document, {subtree: true, childList: true, attributes: true, characterData: true});
}"""


def test_a_misspelt_name_offers_a_way_out(browser: Browser, server: Server, stream: str) -> None:
    with browser.open(f"{server.origin}/watch/{stream}", before_load=WAYS_OUT) as page:
        page.wait_for("() => waysOut.at(-1)", seconds=30, what="there is a way to other streams")
        assert page.evaluate("() => waysOut") == [False, True], "not at once: most streams are only late"
        assert "no stream of this name" in page.text("#hint")


def test_the_button_for_sound_stays_until_it_was_pressed(
    chromium: Browser, browser: Browser, server: Server, stream: str
) -> None:
    opacity = """() => ['.title-bar', '[data-layer=float]'].map(each => Number(getComputedStyle(document.querySelector(each)).opacity))"""
    with go_live(chromium, server, stream, source="test"), watch(browser, server, stream) as page:
        wait_for_state(page, "live")
        page.wait_for("() => document.body.classList.contains('still')", what="nobody moves")
        page.wait_for(
            "() => document.querySelectorAll('[data-layer=float]')[0].getAnimations().length === 0", what="nothing fades")
        assert page.evaluate(opacity) == [1, 1]
        page.click("#unmute")
        page.wait_for(
            f"() => document.body.classList.contains('still') && ({opacity})().every(each => each === 0)",
            what="the controls fade once there is sound")


def test_a_swipe_leaves_the_picture_alone(
    chromium: Browser, browser: Browser, server: Server, stream: str, logs: Path
) -> None:
    seen = """() => ['.title-bar', '#mute', '#hand', '.comments', '#show-all'].filter(
        each => document.querySelector(each)?.checkVisibility())"""
    with go_live(chromium, server, stream, source="test"), watch(browser, server, stream) as page:
        page.resize(PHONE)
        wait_for_state(page, "live")
        page.click("#unmute")
        everything = page.wait_for(f"() => {{ const all = ({seen})(); return all.length >= 3 && all; }}", what="there is more")
        assert "#show-all" not in everything
        page.drag((195, 500), (195, 300))
        page.wait_for(f"() => ({seen})().join() === '#show-all'", what="nothing lies over the picture")
        page.screenshot(logs / f"picture-only-{browser.name}.png")
        page.drag((195, 300), (205, 500))
        page.wait_for(f"wanted => ({seen})().join() === wanted", ",".join(everything), what="it is back")
        # To the side, or too short, means something else.
        page.drag((100, 300), (300, 250))
        page.drag((195, 300), (195, 270))
        assert page.evaluate(seen) == everything
        # By the menu, and back by the button; and by the key.
        page.click("#picture")
        page.click("#picture-only")
        assert page.evaluate(seen) == ["#show-all"]
        page.click("#show-all")
        assert page.evaluate(seen) == everything
        press = "() => document.body.dispatchEvent(new KeyboardEvent('keydown', {key: 'p', bubbles: true}))"
        page.evaluate(press)
        assert page.evaluate(seen) == ["#show-all"]
        page.evaluate(press)
        assert page.evaluate(seen) == everything


#: As behind a network that lets no UDP through: the server's candidates lead nowhere.
BLOCKED = """() => {
    const set = RTCPeerConnection.prototype.setRemoteDescription;
    RTCPeerConnection.prototype.setRemoteDescription = function (description) {
        return set.call(this, {type: description.type, sdp: description.sdp.replace(/^a=candidate:.*\\r\\n/gm, '')});
    };
}"""

#: Reports in which nothing ever arrives.
NOTHING = """() => {
    RTCPeerConnection.prototype.getStats = async () => new Map();
    HTMLVideoElement.prototype.requestVideoFrameCallback = () => 0;
    globalThis.opened = [];
    const ask = globalThis.fetch;
    globalThis.fetch = (address, options) => {
        if (options?.method === 'POST' && String(address).includes('/whep/')) opened.push(performance.now());
        return ask(address, options);
    };
}"""


def test_a_network_that_blocks_media_is_named(
    chromium: Browser, browser: Browser, server: Server, stream: str
) -> None:
    page = browser.open(f"{server.origin}/watch/{stream}", before_load=BLOCKED)
    with page, go_live(chromium, server, stream, source="test"):
        page.wait_for(
            "() => document.getElementById('hint').innerText.includes('block video calls (UDP)')", seconds=30,
            what="the page says why nothing plays")
        assert page.evaluate("() => document.getElementById('retry').checkVisibility()")


def test_sessions_that_bring_nothing_are_opened_ever_more_seldom(
    chromium: Browser, server: Server, stream: str
) -> None:
    with go_live(chromium, server, stream, source="test"):
        page = chromium.open(f"{server.origin}/watch/{stream}", before_load=NOTHING)
        page.wait_for(
            "() => document.getElementById('state').innerText === 'Nothing arrives'", seconds=20, what="the page says it")
        page.wait_for("() => opened.length >= 3", seconds=60, what="it tries again")
        first, second, third = page.evaluate("() => opened.slice(0, 3)")
        assert third - second > 1.5 * (second - first)
        page.close()


def test_a_server_that_is_gone_is_named(chromium: Browser, own_server: Server, stream: str) -> None:
    with go_live(chromium, own_server, stream, source="test"), watch(chromium, own_server, stream) as page:
        wait_for_state(page, "live")
        wait_for_frames(page)
        own_server.stop()
        page.wait_for(
            "() => document.getElementById('state').innerText === 'The server cannot be reached'", seconds=20,
            what="the page says whose fault it is")
        own_server.start()
        wait_for_state(page, "live", seconds=25)
        wait_for_frames(page)
