"""The story feed with real streams: swipes by finger, key and wheel, and what is seen and heard by them."""

from __future__ import annotations

import time
from collections.abc import Iterator
from pathlib import Path

import pytest

from drivers import DESKTOP, PHONE, Browser, Chromium, Page, wait_until
from feed import (
    STORIES, WATCH_FRAMES, Studio, assert_shows, assert_shows_pictures, check_key_frame_requests, open_feed, picture, place,
    tap, wait_for_preload, wait_for_story, watch_colours,
)
from media import check_no_complaints
from server import Server
from test_pages import assert_fits

LEFT, MIDDLE, RIGHT = (30, 420), (195, 420), (360, 420)
#: Debian's Firefox has no H.264 without a plug-in from the Internet.
UNPLAYABLE = {"chromium": set(), "firefox": {"h264"}}
#: Between the two that Firefox cannot play there are three that it can.
IN_ORDER = [STORIES[number] for number in (0, 1, 2, 4, 3, 6, 5, 7)]

#: Keeps what is said for a few seconds only.
HEAR_TOASTS = """() => {
    globalThis.toasts = [];
    const toast = document.getElementById('toast');
    new MutationObserver(() => toasts.push(toast.textContent)).observe(
        toast, {subtree: true, childList: true, characterData: true});
}"""


@pytest.fixture(scope="module")
def studio(logs: Path) -> Iterator[Studio]:
    """A server of its own with all eight stories, which go on while tests come and go.

    Their order is that of their names alone: not of who watched what in the test before, nor of how quick the machine is.
    """
    server = Server(logs / "server-feed.log", "--feed-viewers-weight", "0", "--feed-age-weight", "0", "--log-level", "debug")
    browser = Chromium(logs)
    yield Studio(browser, server, "story", IN_ORDER)
    browser.close()
    assert server.stop() == 0


@pytest.fixture(params=["chromium", "firefox"])
def browser(request: pytest.FixtureRequest) -> Browser:
    return request.getfixturevalue(request.param)


def begin(browser: Browser, studio: Studio, viewport=PHONE, **options) -> tuple[Page, list[str]]:
    """A feed that plays, and its order."""
    page = open_feed(browser, studio.server, viewport, **options)
    page.wait_for(
        "count => rostrum.feed.stories.length === count && rostrum.feed.current", len(studio.stories), seconds=15,
        what="the feed is read")
    return page, place(page)["stories"]


def can_play(browser: Browser, studio: Studio, stream: str) -> bool:
    return studio.stories[stream].codec not in UNPLAYABLE[browser.name]


def check_slots(page: Page, current: str) -> None:
    """Two at most, and the one in view at full quality."""
    page.wait_for(
        "id => rostrum.feed.slots.some(({stream, quality}) => stream === id && quality === 'full')", current,
        what=f"{current} is in focus")
    slots = [slot for slot in place(page)["slots"] if slot[0] is not None]
    assert [stream for stream, quality in slots if quality == "full"] == [current]
    assert len(slots) <= 2 and len({stream for stream, _ in slots}) == len(slots)


def test_every_story_is_a_swipe_away(browser: Browser, studio: Studio) -> None:
    page, order = begin(browser, studio)
    for number, stream in enumerate(order):
        if number:
            # The finger goes to the left, or up; both lead on.
            start, end = (RIGHT, LEFT) if number % 2 else ((200, 760), (200, 180))
            page.drag(start, end)
        if can_play(browser, studio, stream):
            wait_for_story(page, stream)
            assert_shows(page, studio.stories[stream])
        else:
            page.wait_for("id => rostrum.feed.current?.id === id && rostrum.swipe.state === 'resting'", stream)
        assert studio.stories[stream].title in page.text(".side.is-front")
        check_slots(page, stream)
    # Behind the last one comes the end, and before that the way back.
    page.drag(RIGHT, LEFT)
    page.wait_for("() => rostrum.feed.isAtEnd && rostrum.swipe.state === 'resting'")
    assert "That’s everyone for now" in page.text(".side.is-front")
    assert_fits(page)
    page.drag(LEFT, RIGHT)
    page.wait_for("() => !rostrum.feed.isAtEnd && rostrum.swipe.state === 'resting'")
    assert place(page)["current"] == order[-1]
    check_no_complaints(page)
    page.close()


def test_a_preloaded_neighbour_is_moving_when_it_comes_into_view(browser: Browser, studio: Studio) -> None:
    page, order = begin(browser, studio)
    turn = next(
        number for number in range(len(order) - 1)
        if can_play(browser, studio, order[number]) and can_play(browser, studio, order[number + 1]))
    page.evaluate("id => rostrum.feed.go(id)", order[turn])
    wait_for_story(page, order[turn])
    wait_for_preload(page, order[turn + 1])
    page.evaluate(WATCH_FRAMES)
    # Not far enough to turn: both are seen, and the next one's own picture, not its preview, is on its side.
    page.drag(RIGHT, (245, 420), seconds=0.3, lifts=False)
    assert page.evaluate("() => rostrum.cube.backSide.isUncovered")
    # The finger rests; what it moved last may come to the page, and be drawn, only now.
    wait_until(lambda: place(page)["progress"] > 0.2, 10, "it is as far as the finger")
    assert place(page)["progress"] < 1 / 3
    # Deep on the side that comes, the middle of its height.
    wait_until(lambda: sum(picture(page).getpixel((375, 430))) > 30, 10, "there is a picture on the side that comes")
    page.lift()
    wait_for_story(page, order[turn])
    page.press("ArrowRight")
    wait_for_story(page, order[turn + 1])
    # It goes on: no frame of it had to be waited for.
    frames = page.wait_for(
        "id => { const seen = frames.filter(({story}) => story === id); return seen.length > 4 ? seen : null; }", order[turn + 1])
    assert all(frame["isSeen"] for frame in frames[1:])
    page.close()


def test_what_lies_behind_a_story_is_drawn_while_it_turns_alone(browser: Browser, studio: Studio) -> None:
    page, order = begin(browser, studio)
    wait_for_story(page, order[0])
    wait_for_preload(page, order[1])
    opacities = "() => [rostrum.cube.frontSide, rostrum.cube.backSide].map(({root}) => getComputedStyle(root).opacity)"
    assert page.evaluate(opacities) == ["1", "0"]
    middle, above = (PHONE.width / 2, PHONE.height * 0.7), (PHONE.width / 2, PHONE.height * 0.5)
    page.drag(middle, above, lifts=False)
    page.wait_for("() => rostrum.swipe.state === 'dragging'", what="a finger moves it")
    assert page.evaluate(opacities) == ["1", "1"]
    page.lift()
    page.wait_for("() => rostrum.swipe.state === 'resting'", what="it rests")
    assert page.evaluate(opacities) == ["1", "0"]


def test_no_picture_is_ever_another_storys(browser: Browser, studio: Studio) -> None:
    page, order = begin(browser, studio)
    watch_colours(page, studio)
    playable = [stream for stream in order if can_play(browser, studio, stream)]
    # Steps that are preloaded, jumps that are not, and there and back faster than anything is loaded.
    for stream in (playable[0], playable[3], playable[1], playable[4], playable[2]):
        page.evaluate("id => rostrum.feed.go(id)", stream)
        assert_shows_pictures(page, studio, stream)
    for key in ("ArrowRight", "ArrowLeft", "ArrowRight", "ArrowRight", "ArrowLeft", "ArrowLeft", "ArrowRight", "ArrowLeft"):
        page.press(key)
    assert_shows_pictures(page, studio, playable[2])
    check_slots(page, playable[2])
    assert page.evaluate("() => wrong") == []
    page.close()


#: The server's word on what is in the slots comes as late as on a long way, or to a page that is busy.
HEAR_LATE = """late => {
    const {session} = rostrum.connection, receive = session.receive.bind(session);
    session.receive = message => { setTimeout(() => receive(message), late); };
}"""


@pytest.mark.parametrize("late", [250, 1000])
def test_no_picture_is_another_storys_when_the_servers_word_comes_late(browser: Browser, studio: Studio, late: int) -> None:
    page, order = begin(browser, studio)
    playable = [stream for stream in order if can_play(browser, studio, stream)]
    first = next(
        number for number in range(len(order) - 2) if all(stream in playable for stream in order[number:number + 3]))
    page.evaluate("id => rostrum.feed.go(id)", order[first])
    wait_for_story(page, order[first])
    wait_for_preload(page, order[first + 1])
    watch_colours(page, studio)
    page.evaluate(HEAR_LATE, late)
    for key, number in (("ArrowRight", 1), ("ArrowRight", 2), ("ArrowLeft", 1)):
        page.press(key)
        wait_for_story(page, order[first + number])
    for key in ("ArrowRight", "ArrowLeft", "ArrowLeft", "ArrowRight"):
        page.press(key)
    assert_shows_pictures(page, studio, order[first + 1])
    assert page.evaluate("() => wrong") == []
    page.close()


@pytest.mark.parametrize("fault", [
    # As a key for media does it; no news of the server comes meanwhile.
    "video => { video.pause(); rostrum.cube.wire = () => {}; }",
    # As if the browser drew no more of what it decodes.
    """video => {
        const {srcObject} = video;
        video.srcObject = new MediaStream();
        Object.defineProperty(video, 'srcObject', {
            configurable: true, get: () => srcObject, set(other) { delete video.srcObject; video.srcObject = other; }});
    }""",
], ids=["paused", "stuck"])
def test_a_picture_that_stands_still_for_no_reason_moves_again(browser: Browser, studio: Studio, fault: str) -> None:
    first = next(name for name, story in studio.stories.items() if story.codec == "vp8")
    with open_feed(browser, studio.server, path=f"/?stream={first}") as page:
        wait_for_story(page, first)
        page.evaluate(f"() => ({fault})(rostrum.cube.frontSide.video)")
        page.evaluate(WATCH_FRAMES)
        page.wait_for(
            "story => frames.filter(frame => frame.story === story && frame.isSeen && frame.isFront).length > 5", first,
            seconds=20, what="the story moves again")


def test_keys_wheel_and_taps(browser: Browser, studio: Studio) -> None:
    page, order = begin(browser, studio)

    def expect(number: int) -> None:
        page.wait_for(
            "id => rostrum.feed.current.id === id && rostrum.swipe.state === 'resting'", order[number],
            what=f"the feed is at story {number}")

    expect(0)
    for key, number in (("ArrowRight", 1), ("ArrowDown", 2), ("ArrowUp", 1), ("ArrowLeft", 0), ("ArrowLeft", 0)):
        page.press(key)
        expect(number)
    for wheel, number in (((0, 120), 1), ((120, 0), 2), ((0, -120), 1)):
        page.turn_wheel(*wheel)
        expect(number)
    tap(page, 370, 300)
    expect(2)
    tap(page, 20, 300)
    expect(1)
    # Not far enough, and slowly.
    page.drag(RIGHT, (280, 420), seconds=0.6, rests=True)
    expect(1)
    check_no_complaints(page)
    page.close()


#: The loudest frequency of a story's sound, in hertz; null while there is none.
TONE = """async () => {
    const slot = rostrum.feed.slotOf(rostrum.feed.current.id);
    if (!slot) return null;
    globalThis.ears ??= new AudioContext();
    await ears.resume();
    const source = ears.createMediaStreamSource(new MediaStream(slot.media.getAudioTracks())), analyser = ears.createAnalyser();
    analyser.fftSize = 8192;
    analyser.smoothingTimeConstant = 0;
    source.connect(analyser);
    await new Promise(resolve => setTimeout(resolve, 400));
    const levels = new Float32Array(analyser.frequencyBinCount);
    analyser.getFloatFrequencyData(levels);
    source.disconnect();
    const loudest = levels.indexOf(Math.max(...levels));
    return levels[loudest] > -70 ? loudest * ears.sampleRate / analyser.fftSize : null;
}"""


#: Whether the story in view has sound that is not silence, now and not at some time before.
HEARS = """async stream => {
    const slot = rostrum.feed.slotOf(stream);
    const track = slot?.media.getAudioTracks()[0];
    const receiver = rostrum.connection.session?.peer.getReceivers().find(each => each.track === track);
    if (slot?.quality !== 'full' || !receiver) return false;
    const energy = async () => [...(await receiver.getStats()).values()]
        .find(({type}) => type === 'inbound-rtp')?.totalAudioEnergy ?? 0;
    const before = await energy();
    await new Promise(resolve => setTimeout(resolve, 300));
    return await energy() > before;
}"""


def test_the_sound_is_the_storys(browser: Browser, studio: Studio) -> None:
    page, order = begin(browser, studio)
    assert place(page)["muted"] == [True, True]
    page.wait_for("() => document.getElementById('unmute').checkVisibility()", what="sound is offered")
    page.click("#unmute")
    assert place(page)["muted"] == [False, False]
    for stream in order[:4]:
        tone = studio.stories[stream].tone
        page.wait_for(HEARS, stream, seconds=10, what=f"the sound of {stream} comes")
        if browser.name == "chromium":
            # Firefox lets a script listen only where there is a device for sound.
            page.wait_for(
                f"async wanted => Math.abs((await ({TONE})() ?? 0) - wanted) < 12", tone, seconds=10,
                what=f"{tone} Hz are heard")
        page.press("ArrowRight")
        page.wait_for("id => rostrum.feed.current.id !== id && rostrum.swipe.state === 'resting'", stream)
    page.press("m")
    page.wait_for("() => rostrum.cube.sides.every(({video}) => video.muted)")
    assert page.evaluate("() => document.getElementById('sound').ariaPressed") == "false"
    page.press("m")
    # It is remembered.
    page.goto(page.evaluate("() => location.href"))
    page.wait_for("() => rostrum.feed.current && !rostrum.cube.frontSide.video.muted", what="sound is on again")
    page.evaluate("() => localStorage.clear()")
    page.close()


#: A browser that wants a gesture before there is sound, and a viewer who had sound the last time.
REFUSE_SOUND = """() => {
    localStorage.setItem('rostrum:sound', 'on');
    const {play} = HTMLMediaElement.prototype;
    globalThis.refused = 0;
    HTMLMediaElement.prototype.play = function () {
        if (this.muted || globalThis.tapped) return play.call(this);
        refused++;
        return Promise.reject(new DOMException('not without a gesture', 'NotAllowedError'));
    };
}"""


def test_sound_that_the_browser_refuses_is_offered(browser: Browser, studio: Studio) -> None:
    shown = next(stream for stream in studio.stories if can_play(browser, studio, stream))
    page = open_feed(browser, studio.server, path=f"/?stream={shown}", before_load=REFUSE_SOUND)
    page.wait_for("() => rostrum.feed.current && rostrum.cube.frontSide.isUncovered", seconds=15, what="the picture comes")
    page.wait_for("() => document.getElementById('unmute').checkVisibility()", what="sound is offered")
    assert page.evaluate("() => refused > 0")
    assert place(page)["muted"] == [True, True]
    page.evaluate("() => { globalThis.tapped = true; }")
    page.click("#unmute")
    assert place(page)["muted"] == [False, False]
    page.evaluate("() => localStorage.clear()")
    page.close()


def test_a_link_leads_to_its_story(chromium: Browser, studio: Studio) -> None:
    page, order = begin(chromium, studio)
    wanted = order[5]
    page.goto(f"{studio.server.origin}/?stream={wanted}")
    wait_for_story(page, wanted)
    assert_shows(page, studio.stories[wanted])
    page.press("ArrowRight")
    page.wait_for("id => rostrum.feed.current.id !== id && location.search === `?stream=${rostrum.feed.current.id}`", wanted)
    page.close()


def test_the_menu_shows_everybody(chromium: Browser, studio: Studio) -> None:
    page, order = begin(chromium, studio)
    page.click("#menu-button")
    page.wait_for("count => document.querySelectorAll('#list a').length === count", len(order))
    assert_fits(page)
    page.click(f"#list a[href='/?stream={order[4]}']")
    wait_for_story(page, order[4])
    assert_shows(page, studio.stories[order[4]])
    page.click(".side.is-front .join")
    page.wait_for("() => document.querySelector('dialog[data-name=join]') !== null", what="one may join in")
    page.click("dialog[data-name=join] a")
    page.wait_for("id => location.pathname === `/watch/${id}`", order[4])
    page.click("#back")
    page.wait_for("id => location.pathname === '/' && globalThis.rostrum?.feed.current?.id === id", order[4])
    page.close()


def test_it_works_from_the_keyboard_alone(chromium: Browser, studio: Studio) -> None:
    page, order = begin(chromium, studio, DESKTOP)
    wait_for_story(page, order[0])
    seen = []
    for _ in range(12):
        page.press("Tab")
        seen.append(page.evaluate("() => document.activeElement.id || document.activeElement.className"))
        if seen[-1] == "next":
            page.press("Enter")
            break
    assert seen[-1] == "next", seen
    wait_for_story(page, order[1])
    page.wait_for(
        "title => document.getElementById('announcement').textContent.startsWith(title)", studio.stories[order[1]].title,
        what="the new story is announced")
    # What is turned away cannot be reached.
    assert page.evaluate("() => rostrum.cube.backSide.root.inert && !rostrum.cube.frontSide.root.inert")
    page.press("Tab")
    assert page.evaluate("() => document.activeElement.matches(':focus-visible')")
    page.close()


def test_less_motion_is_a_slide(chromium: Browser, studio: Studio) -> None:
    page = chromium.open(viewport=PHONE)
    transform = "() => rostrum.cube.frontSide.root.style.transform"
    for flat, words in ((False, "rotateY"), (True, "translate3d")):
        if flat:
            page.reduce_motion()
        page.goto(studio.server.origin)
        page.wait_for("() => rostrum.feed.current && rostrum.cube.frontSide.isUncovered", seconds=15)
        assert page.evaluate(transform) == ""
        page.drag(RIGHT, (240, 420), seconds=0.3, lifts=False)
        page.wait_for("words => rostrum.cube.frontSide.root.style.transform.startsWith(words)", "translate")
        assert (words in page.evaluate(transform)) and ("rotate" in page.evaluate(transform)) != flat
        page.lift()
        page.wait_for("() => rostrum.swipe.state === 'resting'")
    page.close()


@pytest.mark.parametrize("viewport", [PHONE, DESKTOP], ids=["phone", "desktop"])
def test_it_fits(browser: Browser, studio: Studio, viewport) -> None:
    page, order = begin(browser, studio, viewport)
    page.wait_for("() => rostrum.feed.state === 'playing'")
    assert_fits(page)
    page.click("#menu-button")
    assert_fits(page)
    check_no_complaints(page)
    page.close()


def test_the_viewer_is_taken_on_when_a_story_ends(browser: Browser, chromium: Browser, own_server: Server) -> None:
    studio = Studio(chromium, own_server, "ends", [STORIES[0], STORIES[1], STORIES[4]])
    page, order = begin(browser, studio)
    wait_for_story(page, order[0])
    wait_for_preload(page, order[1])
    page.evaluate(HEAR_TOASTS)
    studio.end(order[0])
    wait_for_story(page, order[1], seconds=8)
    assert_shows(page, studio.stories[order[1]])
    assert place(page)["stories"] == order[1:]
    assert any("has ended" in text for text in page.evaluate("() => toasts"))
    # From the end of the list back.
    page.press("ArrowRight")
    wait_for_story(page, order[2])
    studio.end(order[2])
    wait_for_story(page, order[1], seconds=8)
    # The last one: nobody is left, and then somebody comes.
    studio.end(order[1])
    page.wait_for("() => rostrum.feed.state === 'empty'", seconds=8, what="nobody is live")
    assert "No one is live" in page.text("#status")
    assert_fits(page)
    page.click("#actions a")
    # Firefox never answers who sends it elsewhere while it is loading.
    page.wait_for("() => location.pathname.startsWith('/live/') && document.readyState === 'complete'")
    page.goto(own_server.origin)
    page.wait_for("() => rostrum.feed.state === 'empty'")
    newcomer = studio.publish(STORIES[6])
    wait_for_story(page, newcomer)
    assert_shows(page, STORIES[6])
    page.close()


def test_a_story_is_shown_before_there_is_a_connection(browser: Browser, studio: Studio) -> None:
    never = "() => { const go = window.fetch; window.fetch = (to, how) => how?.method === 'POST' ? new Promise(() => {}) : go(to, how); }"
    page, order = begin(browser, studio, before_load=never)
    assert studio.stories[order[0]].title in page.text(".side.is-front")
    assert page.evaluate("() => rostrum.cube.frontSide.cover.checkVisibility({visibilityProperty: true})")
    # Something of its own, not black.
    assert max(max(band) for band in picture(page).crop((40, 300, 350, 500)).getextrema()) > 40
    page.press("ArrowRight")
    page.wait_for("id => rostrum.feed.current.id === id && rostrum.swipe.state === 'resting'", order[1])
    assert studio.stories[order[1]].title in page.text(".side.is-front")
    page.close()


def test_new_stories_come_without_moving_what_is_seen(chromium: Browser, own_server: Server) -> None:
    studio = Studio(chromium, own_server, "comes", [STORIES[0], STORIES[4]])
    page, order = begin(chromium, studio)
    page.press("ArrowRight")
    wait_for_story(page, order[1])
    page.evaluate("() => { globalThis.turned = 0; rostrum.feed.addEventListener('turn', () => turned++); }")
    newcomer = studio.publish(STORIES[1])
    page.wait_for("() => rostrum.feed.stories.length === 3", what="the new story is listed")
    assert place(page)["stories"] == [*order, newcomer] and page.evaluate("() => turned") == 0
    assert page.evaluate("() => document.querySelectorAll('#place i').length") == 3
    page.press("ArrowRight")
    wait_for_story(page, newcomer)
    assert_shows(page, STORIES[1])
    page.close()


def test_after_a_restart_of_the_server_it_is_the_same_story(browser: Browser, chromium: Browser, own_server: Server) -> None:
    studio = Studio(chromium, own_server, "again", [STORIES[0], STORIES[4], STORIES[6]])
    page, order = begin(browser, studio)
    page.evaluate("id => rostrum.feed.go(id)", order[2])
    wait_for_story(page, order[2])
    page.evaluate("() => { globalThis.neverReloaded = true; }")
    own_server.stop()
    page.wait_for("() => rostrum.feed.state === 'reconnecting'", what="it says that it reconnects")
    # What was seen last stays, all the time; below the words that say so.
    assert_shows(page, studio.stories[order[2]], height=0.58)
    page.wait_for("() => rostrum.feed.error !== null", what="it was tried in vain")
    assert_shows(page, studio.stories[order[2]], height=0.58)
    own_server.start()
    studio.page.goto(own_server.origin + "/healthz")
    studio.restart(order)
    wait_for_story(page, order[2], seconds=30)
    assert_shows(page, studio.stories[order[2]])
    assert page.evaluate("() => globalThis.neverReloaded === true")
    page.close()


def test_viewers_hold_two_streams_at_most_and_cost_their_hosts_nothing(chromium: Browser, studio: Studio) -> None:
    def attached() -> int:
        slots = studio.server.metrics()
        return int(sum(value for name, value in slots.items() if name.startswith("rostrum_slots_attached")))
    # Who watched before, and did not say goodbye, is missed after a while.
    wait_until(lambda: attached() == 0, 30, "nobody watches")
    since, began = studio.server.log.stat().st_size, time.monotonic()
    page, order = begin(chromium, studio)
    most = wait_until(attached, 15, "the first story comes")
    for number in range(14):
        page.press("ArrowRight" if number % 4 < 3 else "ArrowLeft")
        most = max(most, attached())
        page.wait_for("() => Math.abs(rostrum.swipe.progress) < 0.2")
    # Two pictures and one sound; another one while the two overlap.
    assert 1 <= most <= 4
    check_key_frame_requests(studio.server, since, studio.key_frames_asked(), began)
    page.close()
