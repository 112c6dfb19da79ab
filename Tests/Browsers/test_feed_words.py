"""What stands around the stories of the feed: words in any script, the link to share, buttons under a finger."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path

import pytest

from drivers import DESKTOP, PHONE, Browser, Chromium, Page, wait_until
from drivers.page import Viewport
from feed import STORIES, Studio, open_feed, picture, place, wait_for_story
from media import check_no_complaints
from server import Server
from test_feed import HEAR_TOASTS

#: A phone that lies on its side.
TURNED = Viewport(844, 390)
#: Hebrew, with a mark at its end that stands on the left where the text's direction is known.
TITLE, HOST = "שוק יום ראשון, בשידור חי!", "מיכל"


@pytest.fixture(scope="module")
def studio(logs: Path) -> Iterator[Studio]:
    """A server of its own with two stories that every browser plays."""
    server, browser = Server(logs / "server-feed-words.log"), Chromium(logs)
    yield Studio(browser, server, "words", [STORIES[0], STORIES[1]])
    browser.close()
    assert server.stop() == 0


@pytest.fixture(params=["chromium", "firefox"])
def browser(request: pytest.FixtureRequest) -> Browser:
    return request.getfixturevalue(request.param)


def begin(browser: Browser, studio: Studio, **options) -> tuple[Page, list[str]]:
    page = open_feed(browser, studio.server, **options)
    page.wait_for("count => rostrum.feed.stories.length === count && rostrum.feed.current", len(studio.stories), seconds=15)
    return page, place(page)["stories"]


#: Whether sound is offered, by a button that stands beside all of these.
COVERS_NOTHING = """selectors => {
    const sound = document.getElementById('unmute'), button = sound.getBoundingClientRect();
    return sound.checkVisibility() && selectors.map(each => document.querySelector(each).getBoundingClientRect()).every(box =>
        button.bottom <= box.top || button.top >= box.bottom || button.left >= box.right);
}"""


def entitle(studio: Studio, stream: str, title: str) -> None:
    token = studio.server.token(stream, "host", studio.stories[stream].host)
    status, _, body = studio.server.request(
        "PATCH", f"/v1/streams/{stream}", json.dumps({"title": title}).encode(),
        {"Content-Type": "application/json", "Authorization": f"Bearer {token}"})
    assert status == 200, body


def ask(studio: Studio, stream: str, path: str, body: object) -> int:
    """The number of what was made."""
    token = studio.server.token(stream, "host", studio.stories[stream].host)
    status, _, answer = studio.server.request(
        "POST", path, json.dumps(body).encode(), {"Content-Type": "application/json", "Authorization": f"Bearer {token}"})
    assert status in (200, 201), answer
    return int(json.loads(answer)["number"])


def middle(page: Page, selector: str) -> tuple[float, float]:
    """Of an element that stands still."""
    x, y = page.evaluate(
        """selector => {
            const box = document.querySelector(selector).getBoundingClientRect();
            return [box.x + box.width / 2, box.y + box.height / 2];
        }""", selector)
    return x, y


def wait_for_composer(page: Page) -> None:
    """It comes with the first word of the stream, and what stands above it moves up."""
    page.wait_for("() => document.querySelector('.composer input')?.checkVisibility()", what="comments may be written")


def test_a_swipe_may_begin_where_comments_are_written(browser: Browser, studio: Studio) -> None:
    page, order = begin(browser, studio)
    wait_for_story(page, order[0])
    wait_for_composer(page)
    x, y = middle(page, ".composer input")
    page.drag((x, y), (x, y - 600))
    wait_for_story(page, order[1])
    assert not page.evaluate("() => document.activeElement.matches('input')"), "nothing is to be written"
    wait_for_composer(page)
    tap(page, ".composer input", "() => document.activeElement.matches('.composer input')", "a tap is one")
    page.close()


def test_a_swipe_may_begin_on_a_button(browser: Browser, studio: Studio) -> None:
    page, order = begin(browser, studio)
    address = page.evaluate("() => location.pathname")
    wait_for_story(page, order[0])
    wait_for_composer(page)
    # Up, from the link to the stream's own page.
    x, y = middle(page, ".side.is-front .join")
    page.drag((x, y), (x, y - 600))
    wait_for_story(page, order[1])
    page.press("ArrowRight")
    page.wait_for("() => rostrum.feed.isAtEnd && rostrum.swipe.state === 'resting'")
    # Back, from the left half of the largest button.
    x, y = middle(page, ".side.is-front .end-card .button")
    page.drag((x - 110, y), (x + 170, y))
    wait_for_story(page, order[1])
    assert page.evaluate("() => location.pathname") == address, "nothing was pressed"
    # A tap is still one.
    page.press("ArrowRight")
    page.wait_for("() => rostrum.feed.isAtEnd && rostrum.swipe.state === 'resting'")
    page.click(".side.is-front .end-card .button:not(.primary)")
    wait_for_story(page, order[0])
    page.click(".side.is-front .join")
    page.wait_for("() => document.querySelector('dialog[data-name=join]') !== null", what="it was pressed")
    page.close()


def test_a_swipe_may_begin_on_what_lies_over_the_picture(browser: Browser, studio: Studio) -> None:
    page, order = begin(browser, studio)
    for button in ("#unmute", "#share", "#menu-button", "#sound"):
        page.evaluate("id => { rostrum.feed.go(id); }", order[0])
        wait_for_story(page, order[0])
        page.wait_for("selector => document.querySelector(selector).checkVisibility()", button, what=f"{button} is there")
        muted, start = place(page)["muted"], middle(page, button)
        # To the left: some of them stand high up, where there is no way further.
        page.drag(start, (10, start[1]))
        wait_for_story(page, order[1])
        # Half-heartedly: it comes back.
        start = middle(page, button)
        page.drag(start, (start[0] - 50, start[1]), seconds=0.8, rests=True)
        page.wait_for("() => rostrum.swipe.state === 'resting'")
        assert place(page)["current"] == order[1] and not place(page)["isAtEnd"], button
        assert not page.evaluate("() => document.getElementById('menu').open"), f"{button} was not pressed"
        assert place(page)["muted"] == muted and page.text("#toast") == "", f"{button} was not pressed"
    page.close()


def tap(page: Page, button: str, outcome: str, what: str) -> None:
    """Taps on a button, again if nothing comes of it.

    A tap that a busy machine draws out beyond 300 ms is a long press to Firefox, which makes no click of it.
    """
    for is_last in (False, False, False, True):
        page.tap(*middle(page, button))
        try:
            page.wait_for(outcome, seconds=3, what=what)
            return
        except TimeoutError:
            if is_last:
                raise


def test_buttons_that_swipes_may_begin_on_are_still_pressed(browser: Browser, studio: Studio) -> None:
    page, order = begin(browser, studio)
    wait_for_story(page, order[0])
    tap(page, "#unmute", "() => rostrum.cube.sides.every(({video}) => !video.muted)", "the sound is on")
    tap(page, "#sound", "() => rostrum.cube.sides.every(({video}) => video.muted)", "the sound is off")
    tap(page, "#menu-button", "() => document.getElementById('menu').open", "the menu is open")
    assert place(page)["current"] == order[0]
    page.evaluate("() => localStorage.clear()")
    page.close()


def test_the_wheel_turns_over_a_button_too(chromium: Browser, studio: Studio) -> None:
    page, order = begin(chromium, studio, viewport=DESKTOP)
    wait_for_story(page, order[0])
    page.turn_wheel(0, 120, at=middle(page, "#next"))
    wait_for_story(page, order[1])
    page.turn_wheel(0, -120, at=middle(page, "#share"))
    wait_for_story(page, order[0])
    # The list of all streams scrolls by itself.
    page.click("#menu-button")
    page.turn_wheel(0, 120)
    page.press("Escape")
    page.wait_for("() => !document.getElementById('menu').open")
    assert place(page)["current"] == order[0]
    page.close()


def test_the_words_around_a_story_are_its_own(browser: Browser, studio: Studio) -> None:
    page, order = begin(browser, studio)
    story = studio.stories[order[0]]
    wait_for_story(page, order[0])
    front = page.text(".side.is-front")
    assert story.title in front and story.host in front
    page.wait_for("() => document.querySelector('.side.is-front .viewers').innerText === '1'", what="we are counted")
    shown = "document.querySelector('.side.is-front .time').textContent"
    before = page.wait_for(f"() => /^[0-9:]+$/.test({shown}) && {shown}", what="how long it has been live")
    page.wait_for(f"before => {shown} !== before", before, what="time goes on")
    assert page.evaluate("() => [...document.querySelectorAll('#place i')].map(({className}) => className)") == ["is-here", ""]
    page.evaluate(
        "() => Object.defineProperty(navigator, 'clipboard', {value: {writeText: async text => { globalThis.copied = text; }}})")
    page.evaluate("() => Object.defineProperty(navigator, 'share', {value: undefined})")
    # It says so for a moment only, which may be over before a busy machine looks.
    page.evaluate(HEAR_TOASTS)
    page.click("#share")
    page.wait_for("url => globalThis.copied === url", f"{studio.server.origin}/?stream={order[0]}")
    page.wait_for("() => toasts.includes('Link copied')", what="it says that the link was copied")
    check_no_complaints(page)
    page.close()


def test_words_may_run_from_right_to_left(browser: Browser, studio: Studio) -> None:
    page, order = begin(browser, studio)
    wait_for_story(page, order[0])
    before = studio.stories[order[0]].title
    direction = "selector => getComputedStyle(document.querySelector(selector)).direction"
    assert page.evaluate(direction, ".side.is-front h2") == "ltr"
    try:
        entitle(studio, order[0], TITLE)
        page.wait_for("title => document.querySelector('.side.is-front h2').textContent === title", TITLE)
        assert page.evaluate(direction, ".side.is-front h2") == "rtl"
        assert page.evaluate(direction, ".side.is-front .host") == "ltr"
        # The window, too, is called as the story is now.
        page.wait_for("title => document.title === `${title} – Rostrum`", TITLE)
        page.click("#menu-button")
        page.wait_for("title => document.querySelector('#list .title').textContent === title", TITLE)
        assert page.evaluate(direction, "#list .title") == "rtl"
    finally:
        entitle(studio, order[0], before)
    page.close()


@pytest.mark.parametrize("viewport", [PHONE, DESKTOP, TURNED], ids=["phone", "desktop", "turned"])
def test_no_button_covers_another(browser: Browser, studio: Studio, viewport) -> None:
    page, order = begin(browser, studio, viewport=viewport)
    wait_for_story(page, order[0])
    # One that has nothing to do fades away.
    page.wait_for(
        """() => [...document.querySelectorAll('.overlay button, .side.is-front a')].every(button => {
            const box = button.getBoundingClientRect();
            return !button.checkVisibility({opacityProperty: true})
                || [[0.5, 0.5], [0.5, 0.1], [0.5, 0.9], [0.1, 0.5], [0.9, 0.5]].every(([x, y]) =>
                    button.contains(document.elementFromPoint(box.x + box.width * x, box.y + box.height * y)));
        })""", seconds=3, what="each button can be hit all over")
    page.close()


@pytest.mark.parametrize("viewport", [PHONE, DESKTOP], ids=["phone", "desktop"])
def test_nothing_covers_a_long_title(chromium: Browser, studio: Studio, viewport) -> None:
    page, order = begin(chromium, studio, viewport=viewport)
    wait_for_story(page, order[0])
    before = studio.stories[order[0]].title
    try:
        entitle(studio, order[0], "A title that goes on and on, about bread and flour and time, until nobody knows " * 2)
        page.wait_for(
            """() => {
                const title = document.querySelector('.side.is-front h2');
                return title.textContent.startsWith('A title') && title.getBoundingClientRect().height > 60;
            }""", what="the title is there")
        page.wait_for(COVERS_NOTHING, [".side.is-front h2"], what="the button covers none of it")
    finally:
        entitle(studio, order[0], before)
    page.close()


@pytest.mark.parametrize(
    "viewport", [PHONE, Viewport(390, 700), Viewport(1000, 700), DESKTOP],
    ids=["phone", "short", "tablet", "desktop"])
def test_nothing_covers_a_title_above_a_poll(chromium: Browser, studio: Studio, viewport) -> None:
    page, order = begin(chromium, studio, viewport=viewport)
    wait_for_story(page, order[0])
    before = studio.stories[order[0]].title
    polls = f"/v1/streams/{order[0]}/polls"
    entitle(studio, order[0], "Night shift: the city from the 30th floor")
    number = ask(studio, order[0], polls, {"question": "Tea or coffee for the rest of the night?", "options": ["Tea", "Coffee", "Both"]})
    try:
        page.wait_for("() => document.querySelector('.talk .poll')?.checkVisibility()")
        # As much as there is room for is said about it.
        page.evaluate("() => { document.querySelector('.talk .comments').style = 'display: grid; min-height: min(26dvh, 240px)'; }")
        page.wait_for(
            """() => {
                const [title, poll] = ['.side.is-front h2', '.talk .poll'].map(each => document.querySelector(each));
                return title.textContent.startsWith('Night') && title.getBoundingClientRect().bottom <= poll.getBoundingClientRect().top;
            }""", what="the title stands above the poll")
        covered = [".side.is-front h2", ".side.is-front .host", ".talk .poll"]
        page.wait_for(COVERS_NOTHING, covered, what="the button covers none of them")
    finally:
        ask(studio, order[0], f"{polls}/{number}/close", {})
        entitle(studio, order[0], before)
    page.close()


def test_the_place_among_many_stands_above_the_words(chromium: Browser, studio: Studio) -> None:
    page, order = begin(chromium, studio)
    wait_for_story(page, order[0])
    bottom, top = page.evaluate(
        """() => {
            const place = document.getElementById('place');
            place.replaceChildren();
            place.dataset.text = '100 / 1000';
            const {height, marginTop} = getComputedStyle(place, '::after');
            return [
                place.getBoundingClientRect().y + parseFloat(marginTop) + parseFloat(height),
                document.querySelector('.side.is-front .head .face').getBoundingClientRect().y,
            ];
        }""")
    assert 20 < bottom <= top
    page.close()


def test_names_are_cut_where_letters_end(chromium: Browser, server: Server) -> None:
    with chromium.open(server.origin + "/healthz") as page:
        letters, sentence = page.evaluate(
            """async names => {
                const {initials, isolate} = await import('/assets/dom.js');
                return [names.map(initials), `${isolate('x')} has ended`];
            }""", ["Ann Lindqvist", "bob", "", "🇫🇮 Aino", "👩‍👩‍👧 e\u0301tienne", HOST])
    assert letters == ["AL", "B", "", "🇫🇮A", "👩‍👩‍👧E\u0301", "מ"]
    assert sentence == "\u2068x\u2069 has ended"


def test_words_are_legible_on_a_white_picture(browser: Browser, studio: Studio) -> None:
    page, order = begin(browser, studio)
    wait_for_story(page, order[0])
    page.evaluate("""() => {
        for (const {video} of rostrum.cube.sides) video.style.filter = 'brightness(0) invert(1)';
    }""")
    seen: list[list[int]] = []

    def is_shaded() -> bool:
        image = picture(page).convert("L")
        # Beside the words, which begin further to the right.
        seen.append([image.getpixel((6, y)) for y in (4, 50, image.height // 2, image.height - 60, image.height - 4)])
        top, head, middle, foot, bottom = seen[-1]
        return top < 120 and head < 160 and middle > 240 and foot < 150 and bottom < 90

    try:
        wait_until(is_shaded, 3, "the shade lies before the picture")
    except TimeoutError:
        raise AssertionError(f"brightness from top to bottom is {seen[-1]}") from None


def test_a_weak_network_is_told_and_the_picture_stays(browser: Browser, studio: Studio) -> None:
    page, order = begin(browser, studio)
    wait_for_story(page, order[0])
    connection = page.evaluate("() => rostrum.connection.session.resource")
    # Packets come, and no picture can be made of them.
    page.evaluate("""() => {
        let packets = 0;
        rostrum.connection.session.arrivalsOf = async () => ({frames: 7, packets: packets += 5, lost: packets});
    }""")
    page.wait_for(
        "() => document.getElementById('pill').textContent.startsWith('Weak connection')", seconds=15,
        what="the page says why")
    assert page.evaluate("() => rostrum.cube.frontSide.isUncovered"), "what was seen stays"
    page.evaluate("() => { delete rostrum.connection.session.arrivalsOf; }")
    page.wait_for("() => document.getElementById('pill').textContent === ''", seconds=15, what="all is well again")
    assert page.evaluate("() => rostrum.connection.session.resource") == connection
    page.close()
