"""Who is here and who is first, who waits to speak, guests with sound alone, and what a host lets be seen."""

from __future__ import annotations

import threading
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager, suppress
from pathlib import Path
from typing import Any

import pytest
from websockets.exceptions import ConnectionClosed
from websockets.sync.client import ClientConnection, connect

from drivers import DESKTOP, PHONE, Browser, Page
from feed import open_feed, wait_for_story
from media import check_no_complaints, go_live, wait_for_state
from server import Server
from test_comments import FORGET_NAME, open_watch, wait_for_comment, write
from test_gifts import Shop, ask
from test_pages import assert_fits
from test_story import choose, enter, invite, raise_hand

#: Tells a page of fans, and that these stay: they are counted by the minute, which a test does not wait for.
TELL_FANS = """fans => {
    const {sync, audience: {givers}} = rostrum.room;
    const dispatch = sync.dispatchEvent.bind(sync);
    sync.dispatchEvent = event => {
        const ranks = event.detail?.ranks ?? event.detail?.interaction?.ranks;
        if (ranks) ranks.fans = fans;
        return dispatch(event);
    };
    sync.dispatchEvent(new CustomEvent('interaction', {detail: {type: 'interaction', ranks: {givers, fans: [], day: null}}}));
}"""

#: Names in a list of the dialog, each with its medals and words in front.
ROWS = """selector => [...document.querySelectorAll(`dialog[data-name=people] ${selector} li`)].map(line =>
    [...line.children].filter(each => each.checkVisibility() && each.textContent).map(each => each.textContent).join(' '))"""


@pytest.fixture(params=["chromium", "firefox"])
def browser(request: pytest.FixtureRequest) -> Browser:
    return request.getfixturevalue(request.param)


@contextmanager
def here(server: Server, stream: str, name: str, role: str = "viewer") -> Iterator[str]:
    """Somebody who is there without a page; gives their token."""
    token = server.token(stream, role, name)
    with connect(f"{server.origin.replace('http', 'ws')}/v1/streams/{stream}/sync?access_token={token}") as connection:
        reader = threading.Thread(target=read_all, args=(connection,), daemon=True)
        reader.start()
        yield token
    reader.join()


def read_all(connection: ClientConnection) -> None:
    """As a page does: where sixteen messages wait the client takes in nothing more, no ping either, and the server
    gives up who answers none."""
    with suppress(ConnectionClosed):
        for _ in connection:
            pass


def tab(page: Page, name: str, value: str) -> None:
    page.click(f"dialog[data-name=people] [data-name={name}] label:has([value={value}])")


def wait_for_rows(page: Page, selector: str, rows: list[str]) -> None:
    page.wait_for(f"(selector, rows) => ({ROWS})(selector).join('|') === rows.join('|')", selector, rows, what=f"{rows}")


def test_ranks_and_who_is_here(chromium: Browser, browser: Browser, server: Server, stream: str, logs: Path) -> None:
    host = go_live(chromium, server, stream)
    host.wait_for("() => rostrum.room.you?.role === 'host'", what="the host is known")
    shop = Shop(server, stream)
    token = server.token(stream, "viewer", "Mo", capabilities=("moderate",))
    moderator = chromium.open(f"{server.origin}/watch/{stream}#token={token}", before_load=FORGET_NAME)
    viewer = open_watch(browser, server, stream, PHONE)
    write(viewer, "Hello!", "Vera")
    giver = viewer.wait_for("() => rostrum.room.you?.id", what="the page follows as who it is now")
    wait_for_comment(host, "Hello!")
    shop.give("order-1", giver, count=3)
    shop.give("order-2", "cid", name="Cid")
    viewer.wait_for("() => document.querySelectorAll('.top-givers b').length === 2", what="who gave is told")
    for page in (host, viewer):
        page.wait_for("() => rostrum.room.audience.givers.length === 2", what="who gave is told")
        page.evaluate(TELL_FANS, [{"participant": "mo", "name": "Mo", "value": 4}])
    viewer.screenshot(logs / f"leaders-{browser.name}-phone.png")
    # The number of viewers leads to who is here, and the medals to the ranks.
    viewer.wait_for("() => Object.keys(rostrum.sync.known.viewers).length === 2", what="both are listed")
    viewer.click("#viewers")
    hostName = host.evaluate("() => rostrum.room.info.hostName")
    wait_for_rows(viewer, ".people-list", [f"{hostName} Host", "1 Vera", "1 Mo Moderator"])
    viewer.screenshot(logs / f"people-{browser.name}-phone.png")
    assert_fits(viewer)
    tab(viewer, "people-tab", "givers")
    wait_for_rows(viewer, ".ranked", ["1 Vera €3.00", "2 Cid €1.00"])
    tab(viewer, "people-period", "day")
    wait_for_rows(viewer, ".ranked", ["1 Vera €3.00", "2 Cid €1.00"])
    viewer.wait_for(
        "() => document.querySelector('dialog[data-name=people]').innerText.includes('Since midnight, UTC.')", what="of when")
    # What is given meanwhile is seen.
    shop.give("order-3", "cid", count=4, name="Cid")
    wait_for_rows(viewer, ".ranked", ["1 Cid €5.00", "2 Vera €3.00"])
    viewer.screenshot(logs / f"ranks-{browser.name}-phone.png")
    tab(viewer, "people-tab", "fans")
    viewer.wait_for(
        "() => /No one yet today| points?\\b/"
        ".test(document.querySelector('dialog[data-name=people]').innerText)",
        what="no fans yet, or those of the first minute")
    viewer.click("dialog[data-name=people] [data-value=close]")
    viewer.wait_for("() => !document.querySelector('dialog')", what="it is closed")
    viewer.click(".gifts .top-givers")
    wait_for_rows(viewer, ".ranked", ["1 Cid €5.00", "2 Vera €3.00"])
    viewer.click("dialog[data-name=people] [data-value=close]")
    # The host sees the same, and viewers in that order.
    host.wait_for("() => document.querySelector('.rank-lists b')?.textContent === 'Cid'", what="the first are listed")
    host.wait_for(
        "() => [...document.querySelectorAll('#viewer-list li')].map(each => each.dataset.participant)[0] === rostrum.room.audience.givers[1].participant",
        what="who gave is before others")
    assert host.evaluate("() => document.querySelector('#viewer-list [data-participant=mo] .badge').textContent") == "Moderator"
    for viewport in (PHONE, DESKTOP):
        host.resize(viewport)
        host.screenshot(logs / f"ranks-{browser.name}-studio-{viewport.width}.png")
        assert_fits(host)
    present = server.json(f"/v1/streams/{stream}/participants")["present"]
    badges = {each["participant"]: each["badges"] for each in present}
    assert "giver-2" in badges[giver] and "moderator" in badges["mo"]
    assert present[0]["role"] == "host"
    # A moderator's comment says so.
    write(moderator, "Be kind.", "Mo")
    wait_for_comment(viewer, "Be kind.")
    assert viewer.evaluate("() => [...document.querySelectorAll('.comments li')].at(-1).querySelector('.badge').textContent") == "Moderator"
    check_no_complaints(host, viewer, moderator)


def test_the_host_arranges_who_waits(
    chromium: Browser, browser: Browser, server: Server, stream: str, logs: Path
) -> None:
    host = enter(chromium, server, "live", stream, "Ann", "host")
    host.click("#go")
    wait_for_state(host, "live")
    bob = enter(browser, server, "watch", stream, "Bob", "viewer", PHONE)
    wait_for_state(bob, "live")
    raise_hand(bob, host, "bob")
    bob.wait_for(
        "() => document.querySelector('#hand small').textContent === 'You’re next'", what="the place is told")
    with ExitStack() as others:
        for name in ("Cid", "Dora"):
            ask(server, others.enter_context(here(server, stream, name)), "POST", f"/v1/streams/{stream}/hands")
        order = "wanted => [...document.querySelectorAll('#hands li')].map(each => each.querySelector('.who').innerText.trim()).join() === wanted"
        host.wait_for(order, "1Bob,2Cid,3Dora", what="the hands are in the order in which they were raised")
        choose(host, "#hands [data-participant=dora] button:last-child", "first")
        host.wait_for(order, "1Dora,2Bob,3Cid", what="Dora is next")
        bob.wait_for(
            "() => document.querySelector('#hand small').textContent === 'You’re number 2'",
            what="Bob is told")
        choose(host, "#hands [data-participant=bob] button:last-child", "down")
        bob.wait_for(
            "() => document.querySelector('#hand small').textContent === 'You’re number 3'",
            what="Bob is told")
        bob.screenshot(logs / f"waiting-{browser.name}-phone.png")
        assert_fits(bob)
        choose(host, "#hands [data-participant=bob] button:last-child", "hold")
        host.wait_for(order, "1Dora,2Cid,On holdBob", what="Bob is set apart")
        bob.wait_for("() => /on hold/.test(document.querySelector('#hand small').textContent)", what="Bob is told")
        host.screenshot(logs / f"waiting-{browser.name}-studio.png")
        bob.screenshot(logs / f"held-{browser.name}-phone.png")
        assert_fits(bob)
        assert_fits(host)
        choose(host, "#hands [data-participant=bob] button:last-child", "release")
        bob.wait_for(
            "() => document.querySelector('#hand small').textContent === 'You’re number 3'",
            what="Bob is back")
        # In the feed the place stands on the same button.
        feed = open_feed(browser, server, PHONE, before_load=FORGET_NAME, path=f"/?stream={stream}")
        wait_for_story(feed, stream)
        feed.click(".side.is-front .join")
        feed.evaluate("() => { document.querySelector('dialog[data-name=join] input').value = 'Eve'; }")
        feed.click("dialog[data-name=join] [data-value=yes]")
        feed.wait_for(
            "() => document.querySelector('.side.is-front .join small').textContent === 'You’re number 4'",
            what="Eve is told")
        feed.screenshot(logs / f"waiting-{browser.name}-feed.png")
        check_no_complaints(host, bob, feed)


#: Notes what a page asks the browser for.
NOTE_WISHES = """() => {
    globalThis.wishes = [];
    const open = navigator.mediaDevices?.getUserMedia.bind(navigator.mediaDevices);
    if (open) navigator.mediaDevices.getUserMedia = wish => { wishes.push(Boolean(wish.video)); return open(wish); };
}"""

TILE = "document.querySelector('.tile[data-participant=bob]')"


def test_a_guest_comes_with_sound_alone(
    chromium: Browser, browser: Browser, server: Server, stream: str, logs: Path
) -> None:
    host = enter(chromium, server, "live", stream, "Ann", "host")
    host.click("#go")
    wait_for_state(host, "live")
    token = server.token(stream, "viewer", "Bob")
    bob = browser.open(f"{server.origin}/watch/{stream}?quality=360&fps=15#token={token}", PHONE, before_load=NOTE_WISHES)
    wait_for_state(bob, "live")
    raise_hand(bob, host, "bob")
    invite(host, "bob")
    bob.wait_for("() => document.querySelector('dialog[data-name=invitation]')?.open", what="the invitation is asked")
    bob.screenshot(logs / f"invitation-{browser.name}-phone.png")
    bob.click("dialog[data-name=invitation] [data-value=sound]")
    bob.wait_for("() => rostrum.room.own.source?.kind === 'sound'", what="the microphone is open")
    bob.screenshot(logs / f"sound-only-{browser.name}-phone.png")
    bob.click("dialog[data-name=lobby] [data-value=enter]")
    wait_for_state(bob, "live")
    assert bob.evaluate("() => wishes.length > 0 && wishes.every(video => !video)"), "nobody was asked for a camera"
    host.wait_for(f"() => {TILE}?.dataset.videoMuted === 'true'", what="the host sees that there is no picture")
    assert server.json(f"/v1/streams/{stream}/participants")["speakers"]["bob"]["videoMuted"] is True
    host.wait_for(
        """async () => [...(await rostrum.connection.session.peer.getStats()).values()].some(entry =>
            entry.type === 'inbound-rtp' && entry.kind === 'audio' && entry.totalAudioEnergy > 1e-6)""",
        seconds=20, what="the guest is heard")
    host.screenshot(logs / f"sound-only-{browser.name}-studio.png")
    # A picture comes later, goes and comes again: by the guest, and at the host's wish.
    bob.click("#sources label:has([value=camera])")
    host.wait_for(f"() => {TILE}.dataset.videoMuted === 'false' && {TILE}.querySelector('video').videoWidth > 0", seconds=20, what="the guest is seen")
    bob.click("#dark")
    host.wait_for(f"() => {TILE}.dataset.videoMuted === 'true'", what="the guest turned their picture off")
    bob.click("#dark")
    host.wait_for(f"() => {TILE}.dataset.videoMuted === 'false'", what="and on")
    choose(host, ".tile[data-participant=bob] .more", "mute-video")
    host.wait_for(f"() => {TILE}.dataset.videoMuted === 'true'", what="the host turned it off")
    bob.wait_for("() => document.getElementById('dark').ariaPressed === 'true'", what="the guest sees that")
    check_no_complaints(host, bob)


def fill(page: Page, values: dict[str, Any], widgets: list[str] | None = None) -> None:
    """Changes the stream's settings in the studio's form."""
    page.click("#edit-stream")
    page.evaluate(
        """(values, widgets) => {
            for (const [name, value] of Object.entries(values)) document.querySelector(`dialog[data-name=stream] [name=${name}]`).value = value;
            if (!widgets) return;
            for (const box of document.querySelectorAll('dialog[data-name=stream] [name=widget]')) box.checked = widgets.includes(box.value);
        }""", values, widgets)
    page.click("dialog[data-name=stream] [data-value=save]")
    page.wait_for("() => !document.querySelector('dialog[data-name=stream]')", what="it is saved")


def test_a_stage_takes_as_many_guests_as_the_host_says(chromium: Browser, server: Server, stream: str) -> None:
    host = enter(chromium, server, "live", stream, "Ann", "host")
    host.click("#go")
    wait_for_state(host, "live")
    fill(host, {"maxSpeakers": "1"})
    host.wait_for("() => rostrum.room.info.maxSpeakers === 1", what="the limit is known")
    with here(server, stream, "Sam", "speaker") as sam, here(server, stream, "Bob") as bob:
        ask(server, sam, "POST", f"/v1/streams/{stream}/participants")
        ask(server, bob, "POST", f"/v1/streams/{stream}/hands")
        host.wait_for("() => document.querySelector('#hands [data-participant=bob]') !== null", what="the hand is up")
        # Messages leave by themselves.
        host.evaluate(
            """() => {
                globalThis.said = [];
                new MutationObserver(changes => {
                    for (const {addedNodes} of changes) said.push(...[...addedNodes].map(line => line.innerText));
                }).observe(document.querySelector('.messages'), {childList: true});
            }""")
        invite(host, "bob")
        host.wait_for("() => said.some(text => /room for one guest/.test(text))", what="why not")
        fill(host, {"maxSpeakers": "2"})
        host.wait_for("() => rostrum.room.info.maxSpeakers === 2", what="there is room")
        invite(host, "bob")
        host.wait_for("() => document.querySelector('#invitations [data-participant=bob]') !== null", what="Bob is invited")


#: What there is to see on a viewer's page of what the audience does.
PARTS = {
    "comments": ".comments", "composer": ".composer", "reactions": ".reaction", "ranks": ".leaders", "poll": ".poll",
    "card": ".stream-card",
}
IS_SEEN = """wanted => Object.entries(%s).every(([name, part]) =>
    Boolean(document.querySelector(part)?.checkVisibility()) === wanted.includes(name))""" % PARTS


def test_a_host_decides_what_is_seen(
    chromium: Browser, browser: Browser, server: Server, stream: str, logs: Path
) -> None:
    host = go_live(chromium, server, stream)
    shop = Shop(server, stream)
    shop.give("order-1", "cid", name="Cid")
    root = server.token(stream, "admin", "Root")
    ask(server, root, "PUT", f"/v1/streams/{stream}/card", {"title": "Teapot", "link": "https://shop.example/"})
    host.evaluate("() => rostrum.room.api.openPoll({question: 'Tea?', options: ['Yes', 'No'], multiple: false, results: 'live'})")
    viewer = open_watch(browser, server, stream, PHONE)
    write(viewer, "Hello!", "Vera")
    feed = open_feed(browser, server, PHONE, path=f"/?stream={stream}")
    wait_for_story(feed, stream)
    for page in (viewer, feed):
        page.wait_for(IS_SEEN, list(PARTS), what="all of it is there at first")
    feed.click(".leaders")
    wait_for_rows(feed, ".ranked", ["1 Cid €1.00"])
    feed.screenshot(logs / f"ranks-{browser.name}-feed.png")
    assert_fits(feed)
    feed.click("dialog[data-name=people] [data-value=close]")
    viewer.evaluate(
        """() => {
            globalThis.crossed = [];
            new MutationObserver(() => {
                for (const line of document.querySelectorAll('.barrage p')) {
                    if (crossed.includes(line.textContent)) continue;
                    crossed.push(line.textContent);
                    // It stays halfway: a page that is held up would look for it when it has gone by.
                    for (const way of line.getAnimations()) {
                        way.pause();
                        way.currentTime = way.effect.getComputedTiming().duration / 2;
                    }
                }
            }).observe(document.querySelector('.barrage'), {childList: true});
        }""")
    for shown in (["poll", "comments"], ["composer", "card"], ["barrage", "ranks", "reactions"]):
        fill(host, {}, shown)
        for page in (viewer, feed):
            page.wait_for(IS_SEEN, [each for each in shown if each in PARTS], what=f"only {shown}")
    viewer.screenshot(logs / f"widgets-{browser.name}-phone.png")
    assert host.evaluate("() => document.querySelector('.talk .composer').checkVisibility()"), "the studio shows all of it"
    # Comments cross the picture where the host wants that, and stand in the way of nobody.
    write(host, "Across <b>it</b>", "Ann")
    viewer.wait_for("() => crossed.some(text => text.endsWith('Across <b>it</b>'))", what="the comment crosses the picture")
    viewer.wait_for(
        """() => {
            const box = document.querySelector('.barrage p')?.getBoundingClientRect();
            if (!box || box.left > innerWidth - 40) return false;
            return !document.elementFromPoint(box.left + 10, box.top + 10)?.closest('.barrage');
        }""", what="it takes no presses")
    viewer.screenshot(logs / f"barrage-{browser.name}-phone.png")
    assert_fits(viewer)
    shop.give("order-2", "cid", name="Cid")
    viewer.wait_for("() => rostrum.room.audience.gifts.gifts === 2", what="the gift is told")
    assert not viewer.evaluate("() => document.querySelector('.gift')?.checkVisibility() ?? false"), "and not shown"
    settings = server.json(f"/v1/streams/{stream}/interaction")
    assert settings["widgets"] == ["barrage", "reactions", "ranks"]
    # Who would rather see nothing move reads them in the list.
    still = chromium.open(f"{server.origin}/watch/{stream}", PHONE)
    still.reduce_motion()
    wait_for_state(still, "live")
    write(host, "Quietly", "Ann")
    still.wait_for("() => document.querySelector('.comments')?.checkVisibility()", what="the list is there")
    check_no_complaints(host, viewer, feed)
