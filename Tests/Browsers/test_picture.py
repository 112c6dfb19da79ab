"""What viewers choose of the picture, what they get then, and what they are told of a link that does not take it."""

from __future__ import annotations

from collections.abc import Container, Iterator
from typing import Any

import pytest

from drivers import PHONE, Browser, Page, wait_until
from lossy import LossyPath
from media import Received, check_no_complaints, go_live, received, wait_for_state
from server import Server
from test_pages import assert_fits

#: Heights of the pictures that are seen.
HEIGHT = "() => Math.max(0, ...[...document.querySelectorAll('video')].map(video => video.videoHeight))"


@pytest.fixture(params=["chromium", "firefox"])
def browser(request: pytest.FixtureRequest) -> Browser:
    return request.getfixturevalue(request.param)


@pytest.fixture
def live(chromium: Browser, server: Server, stream: str) -> Iterator[Page]:
    """A publisher of three sizes, the largest 720 pixels high; how many pictures come is looked at by nobody."""
    with go_live(chromium, server, stream, quality=720, fps=15) as page:
        yield page


def quality(page: Page) -> dict[str, Any]:
    return page.evaluate("() => rostrum.connection.session.quality()")


def served(told: dict[str, Any]) -> list[int | None]:
    """Of each picture the height that the server sends."""
    return [picture["served"] and picture["served"]["height"] for picture in told["pictures"]]


def wait_for_cause(page: Page, cause: str, heights: Container[int]) -> dict[str, Any]:
    """What the server tells once it sends, for this reason, what is seen: a link that seems slow has another one for a moment."""
    def told() -> dict[str, Any] | None:
        answer, height = quality(page), page.evaluate(HEIGHT)
        return answer if answer["cause"] == cause and served(answer) == [height] and height in heights else None
    return wait_until(told, 15, f"the server tells of the picture that is seen: {cause}")


def wait_for_more_sound(page: Page) -> Received:
    """Waits for 2 s of it, and tells what was received until then."""
    before = received(page)
    wait_until(lambda: received(page).audio_packets > before.audio_packets + 100, 15, "sound goes on")
    return received(page)


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
        # While its estimate grows, a studio may begin the largest and leave it out again.
        wait_until(
            lambda: wait_for_cause(page, "publisher", [720])["pictures"][0]["wanted"]["height"] == 720, 30,
            "the largest is wanted, and comes")
        page.click("#picture")
        assert_fits(page)
        page.press("Escape")

        choose(page, "low")
        wait_for_height(page, "height > 0 && height < 720")
        told = wait_for_cause(page, "pinned", range(1, 720))
        assert told["preferences"] == {"audioOnly": False, "maxHeight": None, "pin": "low"}

        choose(page, "sound")
        page.wait_for("() => document.getElementById('sound-only').checkVisibility()", what="sound alone is played")
        wait_until(
            lambda: [each["paused"] for each in quality(page)["pictures"]] == [True], 15, "the server sends no picture")
        assert served(quality(page)) == [None]
        # The page goes by what comes; pictures that were sent before the server took notice come before 2 s of sound.
        before = wait_for_more_sound(page)
        assert wait_for_more_sound(page).frames == before.frames
        wait_for_state(page, "live")
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


#: The page learns that its offer was answered only after the server has spoken on the control channel.
ANSWERED_LATE = """() => {
    const {createDataChannel, setRemoteDescription} = RTCPeerConnection.prototype;
    RTCPeerConnection.prototype.createDataChannel = function (...options) {
        const channel = createDataChannel.apply(this, options);
        this.heard = new Promise(resolve => channel.addEventListener('message', resolve, {once: true}));
        return channel;
    };
    RTCPeerConnection.prototype.setRemoteDescription = async function (answer) {
        await setRemoteDescription.call(this, answer);
        await this.heard;
        await new Promise(resolve => setTimeout(resolve));
    };
}"""


def test_a_choice_is_told_where_the_server_spoke_before_its_answer_was_read(
    browser: Browser, server: Server, stream: str, live: Page
) -> None:
    with browser.open(f"{server.origin}/?stream={stream}", PHONE, before_load=ANSWERED_LATE) as page:
        wait_for_height(page, "height === 720")
        page.click("#menu-button")
        page.click("#picture summary")
        page.click("#menu input[value=low]")
        wait_for_height(page, "height > 0 && height < 720")


def test_what_the_server_did_not_hear_of_a_choice_is_said_again(
    browser: Browser, server: Server, stream: str, live: Page
) -> None:
    with browser.open(f"{server.origin}/?stream={stream}", PHONE) as page:
        wait_for_height(page, "height === 720")
        # The network is gone for a moment. What is chosen last counts, whatever is said again.
        page.evaluate("""() => {
            const {fetch} = window;
            globalThis.lost = 0;
            window.fetch = async (address, options) => {
                if (options?.method !== 'PATCH' || lost === 2) return fetch(address, options);
                lost++;
                throw new TypeError('Failed to fetch');
            };
        }""")
        page.click("#menu-button")
        page.click("#picture summary")
        page.click("#menu input[value=high]")
        page.click("#menu input[value=low]")
        # A link that seems slow has a smaller picture, too, before the server has heard of any choice.
        wait_until(
            lambda: page.evaluate("() => rostrum.feed.connection.session.quality()")["preferences"]["pin"] == "low", 15,
            "the server has heard what was chosen last")
        wait_for_height(page, "height > 0 && height < 720")
        assert page.evaluate("() => lost") == 2
        told = page.evaluate("() => rostrum.feed.connection.session.quality()")
        assert told["preferences"]["pin"] == "low"


def test_a_weak_link_is_told_of(browser: Browser, chromium: Browser, server: Server, stream: str) -> None:
    path = LossyPath(server, loss=0, seed=1)
    try:
        # With as many bits as its camera takes: fewer might fit the link.
        with go_live(chromium, server, stream, quality=720), browser.open(
            f"{path.origin}/watch/{stream}", before_load=path.rewrite
        ) as page:
            wait_for_state(page, "live", 30)
            wait_for_height(page, "height === 720", 60)
            # What was told of a smaller picture before stays until the server is asked again.
            page.wait_for("() => document.getElementById('weak-link').hidden", what="nothing is said of a link that is not weak")
            path.down.capacity = 600_000
            told = page.wait_for(
                "() => document.getElementById('weak-link').innerText.includes('a smaller picture')"
                " && rostrum.room.viewing.quality",
                seconds=60, what="the page says that the connection is slow")
            assert told["cause"] in ("delay", "loss") and told["estimate"] < 1_500_000
            path.down.capacity = None
            page.wait_for("() => document.getElementById('weak-link').hidden", seconds=60, what="all is well again")
            wait_for_height(page, "height === 720", 60)
    finally:
        path.close()
