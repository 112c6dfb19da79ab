"""The pages themselves: what people read, press and are told when something is missing."""

from __future__ import annotations

from pathlib import Path

import pytest

from drivers import DESKTOP, PHONE, Browser, Page
from drivers.page import Viewport
from media import check_no_complaints, go_live, press_go_live, wait_for_frames, wait_for_state, watch
from server import Server

#: A browser whose camera does what the address asks for, and whose permission is still open.
MISSING_CAMERA = """() => {
    const name = new URLSearchParams(location.search).get('fails');
    if (name) navigator.mediaDevices.getUserMedia = () => Promise.reject(new DOMException('', name));
    navigator.permissions.query = () => Promise.resolve({state: 'prompt'});
}"""


def assert_fits(page: Page) -> None:
    """Nothing sticks out to the side, every control can be named and hit with a thumb."""
    # Tiles are fitted into a window that has another size now when the browser draws next.
    page.wait_for("() => document.documentElement.scrollWidth <= innerWidth", what="nothing sticks out to the side")
    unnamed = page.evaluate(
        """() => [...document.querySelectorAll('a, button, input, select, video')]
            .filter(e => e.checkVisibility({visibilityProperty: true}))
            .filter(e => !(e.ariaLabel || e.innerText?.trim() || e.labels?.length))
            .map(e => e.outerHTML)""")
    assert unnamed == []
    # A button is a little smaller while it is pressed, and comes back.
    page.wait_for(
        "() => !document.getAnimations().some(each => each instanceof CSSTransition && each.playState === 'running')",
        what="nothing changes its size any more")
    # Of what moves, 44 pixels are a hair more or less.
    small = page.evaluate(
        """() => [...document.querySelectorAll('button')].filter(e => e.checkVisibility({visibilityProperty: true}))
            .map(e => [e.id, e.getBoundingClientRect()]).filter(([, box]) => box.height < 43.9 || box.width < 43.9)
            .map(([id]) => id)""")
    assert small == []


def assert_fits_in(page: Page, viewport: Viewport, path: Path) -> None:
    """Makes the window as large, looks whether all of it fits, and takes a picture."""
    page.resize(viewport)
    page.wait_for(
        "size => innerWidth === size[0] && innerHeight === size[1]", list(viewport), what=f"the window is {viewport}")
    assert_fits(page)
    page.screenshot(path)


@pytest.mark.parametrize("viewport", [PHONE, DESKTOP], ids=["phone", "desktop"])
@pytest.mark.parametrize("path", ["/", "/live/fits", "/watch/fits"])
def test_fits(browsers: dict[str, Browser], server: Server, path: str, viewport) -> None:
    for browser in browsers.values():
        with browser.open(server.origin + path, viewport) as page:
            page.wait_for("() => document.readyState === 'complete'")
            assert_fits(page)
            check_no_complaints(page)


def test_everything_in_the_title_bar_stands_in_a_row(chromium: Browser, server: Server) -> None:
    with chromium.open(server.origin + "/watch/row", PHONE) as page:
        page.wait_for("() => document.getElementById('recording') !== null")
        heights = page.evaluate(
            """() => {
                const words = {badge: 'Live', time: '1:23:45', viewers: '12 viewers', recording: null};
                return Object.entries(words).map(([id, text]) => {
                    const element = document.getElementById(id);
                    element.hidden = false;
                    if (text) element.textContent = text;
                    return element;
                }).map(element => element.getBoundingClientRect()).map(({y, height}) => Math.round(y + height / 2));
            }""")
        assert max(heights) - min(heights) <= 2, heights


def test_pages_carry_a_strict_policy(server: Server) -> None:
    for path in ("/", "/live/s1", "/watch/s1"):
        status, headers, _ = server.request("GET", path)
        assert status == 200
        policy = headers["content-security-policy"]
        assert policy.startswith(("default-src 'none'", "default-src 'self'")) and "unsafe" not in policy


@pytest.mark.parametrize(
    ("error", "words"),
    [
        ("NotAllowedError", "can’t use your camera"), ("NotFoundError", "No camera"),
        ("NotReadableError", "Another app"),
    ],
)
def test_missing_camera_is_explained_and_the_test_picture_helps(
    chromium: Browser, server: Server, stream: str, error: str, words: str
) -> None:
    page = chromium.open(f"{server.origin}/live/{stream}?fails={error}", PHONE, before_load=MISSING_CAMERA)
    with page, watch(chromium, server, stream) as viewer:
        page.click("#go")
        page.wait_for("() => !document.getElementById('error').hidden")
        assert words in page.text("#error")
        assert_fits(page)
        page.click("#error-test")
        wait_for_state(page, "ready")
        press_go_live(page)
        wait_for_state(viewer, "live")
        wait_for_frames(viewer)
        code = "async () => (await import('/assets/timecode.js')).readTimeCode(document.getElementById('video')) !== null"
        viewer.wait_for(code, what="the clock's time code is readable in the picture")


def test_studio_tells_its_numbers_and_link(chromium: Browser, server: Server, stream: str) -> None:
    with go_live(chromium, server, stream) as studio, watch(chromium, server, stream):
        for number, unit in (("bitrate", "bit/s"), ("round-trip", "ms"), ("picture", "×"), ("viewers", "1 viewer")):
            studio.wait_for(
                "(id, unit) => document.getElementById(id).textContent.includes(unit)", number, unit,
                what=f"{number} is shown")
        assert studio.evaluate("() => document.getElementById('link').value") == f"{server.origin}/watch/{stream}"


def test_source_changes_while_live(chromium: Browser, server: Server, stream: str) -> None:
    with go_live(chromium, server, stream) as studio, watch(chromium, server, stream) as viewer:
        wait_for_state(viewer, "live")
        session = studio.evaluate("() => rostrum.connection.session.resource")
        studio.click("#sources input[value=screen]")
        studio.wait_for(
            """() => rostrum.connection.session.peer.getSenders()
                .some(({track}) => track.kind === 'video' && track.getSettings().displaySurface)""",
            what="the screen is sent")
        wait_for_frames(viewer)
        studio.click("#sources input[value=test]")
        code = "async () => (await import('/assets/timecode.js')).readTimeCode(document.getElementById('video')) !== null"
        viewer.wait_for(code, seconds=15, what="the picture is the test picture")
        assert studio.evaluate("() => rostrum.connection.session.resource") == session


def test_the_last_choice_of_source_counts(chromium: Browser, server: Server, stream: str) -> None:
    with chromium.open(f"{server.origin}/live/{stream}") as studio:
        wait_for_state(studio, "ready")
        # Faster than any of them opens.
        studio.evaluate(
            """() => { for (const kind of ['screen', 'camera', 'test'])
                document.querySelector(`input[value=${kind}]`).click(); }""")
        studio.wait_for(
            """() => document.getElementById('preview').srcObject.getAudioTracks()[0]?.label
                .includes('MediaStreamAudioDestinationNode')""",
            what="the test picture is chosen")


def test_sound_begins_with_a_tap(browsers: dict[str, Browser], server: Server, stream: str) -> None:
    with go_live(browsers["chromium"], server, stream):
        for browser in browsers.values():
            with watch(browser, server, stream) as viewer:
                wait_for_state(viewer, "live")
                assert viewer.evaluate("() => document.getElementById('video').muted")
                viewer.click("#unmute")
                viewer.wait_for("() => !document.getElementById('video').muted && !document.getElementById('video').paused")
                assert viewer.evaluate("() => document.getElementById('unmute').hidden")
                viewer.press("m")
                viewer.wait_for("() => document.getElementById('video').muted", what="the key m mutes")


def test_studio_works_from_the_keyboard(chromium: Browser, server: Server, stream: str) -> None:
    with chromium.open(f"{server.origin}/live/{stream}?source=test&quality=360&fps=15") as page:
        wait_for_state(page, "ready")
        for _ in range(20):
            if page.evaluate("() => document.activeElement.id") == "go":
                break
            page.press("Tab")
        assert page.evaluate("() => document.activeElement.id") == "go"
        assert page.evaluate("() => document.activeElement.matches(':focus-visible')")
        page.press("Enter")
        wait_for_state(page, "live")
        assert page.text("#state") == "You’re live."


def test_bad_codec_is_explained(chromium: Browser, server: Server, stream: str) -> None:
    with chromium.open(f"{server.origin}/live/{stream}?codec=h266") as page:
        page.click("#go")
        page.wait_for("() => !document.getElementById('error').hidden")
        assert "H266" in page.text("#error")
