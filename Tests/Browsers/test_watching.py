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


#: Whether a waiting page offered the way to other streams, at first and from then on. Its clock runs ahead by `skipped`
#: milliseconds.
WAYS_OUT = """() => {
    const now = performance.now.bind(performance);
    globalThis.skipped = 0;
    performance.now = () => now() + skipped;
    globalThis.waysOut = [];
    new MutationObserver(() => {
        if (document.body?.dataset.state !== 'waiting') return;
        const isOffered = document.getElementById('home')?.checkVisibility() ?? false;
        if (waysOut.at(-1) !== isOffered) waysOut.push(isOffered);
    }).observe(document, {subtree: true, childList: true, attributes: true, characterData: true});
}"""


def test_a_misspelt_name_offers_a_way_out(browser: Browser, server: Server, stream: str) -> None:
    with browser.open(f"{server.origin}/watch/{stream}", before_load=WAYS_OUT) as page:
        page.wait_for("() => waysOut.length > 0", what="the page waits for the stream")
        page.evaluate("() => { globalThis.skipped = 10_000; }")
        page.wait_for("() => waysOut.at(-1)", seconds=30, what="there is a way to other streams")
        assert page.evaluate("() => waysOut") == [False, True], "not at once: most streams are only late"
        assert "no stream with this name" in page.text("#hint")


def test_the_button_for_sound_stays_until_it_was_pressed(
    chromium: Browser, browser: Browser, server: Server, stream: str
) -> None:
    opacity = """() => ['.title-bar', '[data-layer=float]'].map(each => Number(getComputedStyle(document.querySelector(each)).opacity))"""
    with go_live(chromium, server, stream, source="test"), watch(browser, server, stream) as page:
        wait_for_state(page, "live")
        # All at once: while a busy machine brings no pictures there is no such button, and the controls may fade.
        page.wait_for(
            f"""() => document.body.classList.contains('still') && !document.getElementById('unmute').hidden
                && document.querySelector('[data-layer=float]').getAnimations().length === 0
                && ({opacity})().every(each => each === 1)""", what="nobody moves, and nothing fades")
        page.click("#unmute")
        page.wait_for(
            f"() => document.body.classList.contains('still') && ({opacity})().every(each => each === 0)",
            what="the controls fade once there is sound")


def test_nothing_moves_on_a_page_but_its_picture(
    chromium: Browser, browser: Browser, server: Server, stream: str
) -> None:
    """Whatever moves for ever has a browser draw at the screen's pace, and a viewer's battery pay for it."""
    with go_live(chromium, server, stream, source="test") as host, watch(browser, server, stream) as page:
        wait_for_state(page, "live")
        for each in (host, page):
            each.wait_for(
                "() => document.querySelector('.badge').checkVisibility() && document.getAnimations().every("
                "each => each.playState === 'finished' || each.playState === 'idle')",
                what="the live page moves nothing")


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

#: Reports in which nothing ever arrives, and a clock that stands still until the test moves it on.
NOTHING = """() => {
    globalThis.clock = 1000;
    performance.now = () => clock;
    globalThis.looks = 0;
    RTCPeerConnection.prototype.getStats = async () => {
        looks += 1;
        return new Map();
    };
    HTMLVideoElement.prototype.requestVideoFrameCallback = () => 0;
    globalThis.answered = 0;
    const ask = globalThis.fetch;
    globalThis.fetch = async (address, options) => {
        const answer = await ask(address, options);
        if (options?.method === 'POST' && String(address).includes('/whep/') && answer.ok) answered += 1;
        return answer;
    };
}"""


def test_a_network_that_blocks_media_is_named(
    chromium: Browser, browser: Browser, server: Server, stream: str
) -> None:
    page = browser.open(f"{server.origin}/watch/{stream}", before_load=BLOCKED)
    with page, go_live(chromium, server, stream, source="test"):
        page.wait_for(
            """() => document.getElementById('hint').innerText.includes('blocking video calls (UDP)')
                && document.getElementById('retry').checkVisibility()""", seconds=30,
            what="the page says why nothing plays, and what can be done")


def test_sessions_that_bring_nothing_are_opened_ever_more_seldom(
    chromium: Browser, server: Server, stream: str
) -> None:
    with go_live(chromium, server, stream, source="test"):
        page = chromium.open(f"{server.origin}/watch/{stream}", before_load=NOTHING)
        number = 0
        for _ in range(2):
            page.wait_for(
                """before => answered > before && rostrum.connection.state === 'connected'
                    && rostrum.sync.stream?.state === 'live'""", number, seconds=60, what="there is another session")
            number = page.evaluate("() => answered")
            # The first one has six seconds, each further one twice as long.
            patience = 6 * 2 ** min(number - 1, 4)
            looks = page.evaluate("seconds => { clock += seconds * 1000; return looks; }", patience - 1)
            page.wait_for("before => looks >= before + 2", looks, what="the page looks whether anything comes")
            assert page.evaluate("() => answered") == number, f"{patience - 1} s are no reason for another session"
            page.wait_for("() => document.getElementById('state').innerText === 'Nothing is coming through'",
                          what="the page says it")
            page.evaluate("() => { clock += 1500; }")
        page.wait_for("before => answered > before", number, seconds=60, what="it tries again")
        page.close()


def test_what_the_browser_paused_goes_on(chromium: Browser, browser: Browser, server: Server, stream: str) -> None:
    """As after a call on a phone: there is no button to press."""
    with go_live(chromium, server, stream, source="test"), watch(browser, server, stream) as page:
        wait_for_state(page, "live")
        wait_for_frames(page)
        page.evaluate("() => document.getElementById('video').pause()")
        page.wait_for("() => !document.getElementById('video').paused", what="it plays on")
        # Not where its user has to press first.
        page.evaluate("""() => {
            globalThis.plays = 0;
            const {viewing} = rostrum.room;
            viewing.play = async () => { plays += 1; viewing.isBlocked = true; };
            document.getElementById('video').pause();
        }""")
        page.wait_for("() => plays === 1", what="it was tried")
        looks = "() => { globalThis.looks = 0; rostrum.room.addEventListener('second', () => { looks += 1; }); }"
        page.evaluate(looks)
        page.wait_for("() => looks >= 3", what="three seconds have passed")
        assert page.evaluate("() => plays") == 1


def test_a_server_that_is_gone_is_named(chromium: Browser, own_server: Server, stream: str) -> None:
    with go_live(chromium, own_server, stream, source="test"), watch(chromium, own_server, stream) as page:
        wait_for_state(page, "live")
        wait_for_frames(page)
        own_server.stop()
        page.wait_for(
            "() => document.getElementById('state').innerText === 'Can’t reach the server'", seconds=20,
            what="the page says whose fault it is")
        own_server.start()
        wait_for_state(page, "live", seconds=25)
        wait_for_frames(page)
