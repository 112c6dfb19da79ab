"""Gifts, who gave most, and the card: in the players, in the feed and in the studio."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from drivers import DESKTOP, PHONE, Browser
from feed import open_feed, wait_for_story
from media import check_no_complaints, go_live
from server import Server
from test_comments import FORGET_NAME, IS_SHOWN, open_watch, wait_for_comment, write
from test_pages import assert_fits, assert_fits_in

KINDS = [
    {"id": "rose", "name": "Rose", "picture": "🌹", "price": 100},
    {"id": "car", "name": "Fast car", "picture": "/assets/icon.svg", "price": 50_000},
]

#: Notes every gift that is told and every one that is shown, with what its banner says while it is there.
LISTEN = """() => {
    globalThis.told = [];
    globalThis.shown = [];
    globalThis.banners = {};
    const audience = globalThis.rostrum.room?.audience ?? rostrum.talk.audience;
    audience.addEventListener('gift', ({detail}) => told.push(detail.number));
    new MutationObserver(() => {
        const gift = document.querySelector('.gift'), number = Number(gift?.dataset.number);
        if (!number || shown.at(-1) === number) return;
        shown.push(number);
        const box = gift.getBoundingClientRect();
        const hit = document.elementFromPoint(box.x + box.width / 2, box.y + box.height / 2);
        const [giver, kind, count] = ['b', 'small', 'strong'].map(each => gift.querySelector(each).textContent);
        banners[number] = {giver, kind, count, takesPresses: Boolean(hit?.closest('.gifts'))};
    }).observe(document.body, {childList: true, subtree: true, attributeFilter: ['data-number']});
}"""

#: Whether exactly these were told, and the last of them is shown.
IS_TOLD = """numbers => told.join() === numbers.join() && shown.at(-1) === numbers.at(-1)
    && new Set(shown).size === shown.length"""


@pytest.fixture(params=["chromium", "firefox"])
def browser(request: pytest.FixtureRequest) -> Browser:
    return request.getfixturevalue(request.param)


def ask(server: Server, token: str, method: str, path: str, body: Any = None) -> Any:
    status, _, answer = server.request(
        method, path, None if body is None else json.dumps(body).encode(),
        {"Authorization": f"Bearer {token}", "Content-Type": "application/json"})
    assert status in (200, 204), answer
    return json.loads(answer) if answer else None


class Shop:
    """Sells a stream's gifts."""

    def __init__(self, server: Server, stream: str, has_catalogue: bool = False) -> None:
        """Sets the stream's catalogue, unless its host has."""
        self.server = server
        self.path = f"/v1/streams/{stream}"
        self.token = server.token(stream, "viewer", "Shop", capabilities=("give-gifts",))
        if has_catalogue:
            return
        ask(server, server.token(stream, "admin", "Root"), "PATCH", f"{self.path}/interaction",
            {"gifts": {"currency": "EUR", "kinds": KINDS}})

    def give(self, key: str, giver: str, kind: str = "rose", count: int = 1, name: str = "Vera") -> dict[str, Any]:
        price = next(each["price"] for each in KINDS if each["id"] == kind)
        return ask(self.server, self.token, "PUT", f"{self.path}/gifts/{key}", {
            "giver": giver, "name": name, "gift": kind, "count": count, "price": {"amount": price, "currency": "EUR"}})


def test_a_gift_is_shown_once_on_every_page(
    chromium: Browser, browser: Browser, server: Server, stream: str, logs: Path
) -> None:
    host = go_live(chromium, server, stream)
    shop = Shop(server, stream)
    viewer = open_watch(browser, server, stream, PHONE)
    write(viewer, "Hello!", "Vera")
    wait_for_comment(host, "Hello!")
    giver = viewer.wait_for("() => rostrum.room.you?.id", what="the page follows as who it is now")
    for page in (host, viewer):
        page.evaluate(LISTEN)
    first = shop.give("order-1", giver, count=3)
    assert shop.give("order-1", giver, count=3) == first
    second = shop.give("order-2", giver)
    for page in (host, viewer):
        page.wait_for(IS_TOLD, [1, 2], what="both are shown, each once")
        banners = page.evaluate("() => banners")
        for number, combo in (("1", first["combo"]), ("2", second["combo"])):
            # Of two that come at once, the count may go up before the first is drawn; the second always is.
            if banner := banners["2"] if number == "2" else banners.get(number):
                assert "Vera" in banner["giver"] and "Rose" in banner["kind"]
                assert banner["count"] == (f"×{combo}" if combo > 1 else "")
                # What lies over the picture stands in nobody's way.
                assert page is host or not banner["takesPresses"]
        page.wait_for("() => document.querySelector('.comments .medal')?.dataset.rank === '1'", what="a medal")
        page.wait_for("() => document.querySelector('.top-givers b')?.textContent === 'Vera'", what="who gave most")
    viewer.screenshot(logs / f"gift-{browser.name}-phone.png")
    host.screenshot(logs / f"gift-{browser.name}-host.png")
    assert "4 gifts" in host.text(".gift-sum")
    assert_fits(viewer)
    # Whoever was away for a moment hears of what was missed, and of nothing twice.
    viewer.evaluate("() => rostrum.sync.close()")
    shop.give("order-3", "cid", "car", name="Cid")
    host.wait_for("() => told.length === 3", what="the host is told")
    viewer.evaluate("() => rostrum.sync.reconnect()")
    for page in (host, viewer):
        page.wait_for(IS_TOLD, [1, 2, 3], what="the third is shown")
        page.wait_for("() => document.querySelector('.top-givers b')?.textContent === 'Cid'", what="another gave most")
    late = open_watch(browser, server, stream)
    late.wait_for("() => rostrum.room.audience.gifts?.gifts === 5", what="who comes later knows the sum")
    assert late.evaluate("() => document.querySelector('.gift') === null")
    check_no_complaints(host, viewer, late)


def test_who_was_away_for_many_gifts_sees_the_latest_and_a_sum(
    chromium: Browser, browser: Browser, server: Server, stream: str, logs: Path
) -> None:
    host = go_live(chromium, server, stream, source="test")
    shop = Shop(server, stream)
    viewer = open_watch(browser, server, stream, PHONE)
    for page in (host, viewer):
        page.evaluate(LISTEN)
        page.evaluate("""() => {
            globalThis.missed = [];
            // The line is there by then: the page listened first.
            rostrum.room.audience.addEventListener('missed', () => {
                const line = document.querySelector('.gift-missed');
                missed.push(line.checkVisibility() ? line.textContent : 'nothing is seen');
            });
        }""")
    shop.give("order-1", "bob", name="Bob")
    for page in (host, viewer):
        page.wait_for(IS_TOLD, [1], what="the first is shown")
        page.evaluate("() => rostrum.room.sync.close()")
    for number in range(2, 122):
        shop.give(f"order-{number}", f"g{number % 30}", count=2, name=f"Giver {number % 30}")
    for page, line in ((host, "234 gifts while you were away, €234.00"), (viewer, "234 gifts while you were away")):
        page.evaluate("() => rostrum.room.sync.reconnect()")
        page.wait_for("() => told.length > 1", what="the page is told of the latest")
        assert page.evaluate("() => [told.join(), missed]") == ["1,119,120,121", [line]]
        page.screenshot(logs / f"gifts-missed-{browser.name}-{'host' if page is host else 'phone'}.png")
    assert_fits(viewer)
    # What comes from now on is told as ever, and the sums are whole.
    shop.give("order-122", "eve", name="Eve")
    for page in (host, viewer):
        page.wait_for("() => told.at(-1) === 122", what="the next one is told")
        totals = page.evaluate("() => rostrum.room.audience.gifts")
        assert (totals["gifts"], totals["value"], totals["last"]) == (242, 24_200, 122)
        # Ranks are told less often.
        page.wait_for("() => rostrum.room.audience.givers[0].value === 800", what="who gave most")
        page.wait_for(
            "() => shown.at(-1) === 122 && !document.querySelector('.gift-missed').checkVisibility()", seconds=40,
            what="all of it was shown, and is gone")
        assert page.evaluate("() => missed.length") == 1
    check_no_complaints(host, viewer)


def test_the_feed_shows_gifts_and_the_card(chromium: Browser, own_server: Server, stream: str, logs: Path) -> None:
    host = go_live(chromium, own_server, stream)
    shop = Shop(own_server, stream)
    write(host, "Look at this teapot", "Ann")
    host.click("#show-card")
    host.evaluate(
        """() => {
            const field = name => document.querySelector(`dialog[data-name=card] [name=${name}]`);
            field('title').value = 'Teapot <b>No. 5</b>';
            field('link').value = 'https://shop.example/teapot';
            field('picture').value = '/assets/icon.svg';
        }""")
    host.click("dialog[data-name=card] [data-value=show]")
    page = open_feed(chromium, own_server, PHONE, before_load=FORGET_NAME)
    wait_for_story(page, stream)
    page.wait_for("() => document.querySelector('.stream-card')?.checkVisibility()", what="the card is shown")
    assert page.text(".stream-card b") == "Teapot <b>No. 5</b>" and page.text(".stream-card small") == "shop.example"
    assert page.evaluate(
        "() => { const {href, target, rel} = document.querySelector('.stream-card'); return [href, target, rel]; }"
    ) == ["https://shop.example/teapot", "_blank", "noopener noreferrer"]
    page.evaluate(LISTEN)
    for number in range(1, 4):
        shop.give(f"order-{number}", f"g{number}", "car" if number == 2 else "rose", name=f"Giver {number}")
    # Each is there for two seconds and a half: that it was is what a page which is held up can still tell.
    page.wait_for("() => told.length === 3 && shown.length > 0", what="gifts are told and shown")
    for viewport in (DESKTOP, PHONE):
        assert_fits_in(page, viewport, logs / f"feed-gift-{viewport.width}.png")
    page.wait_for(IS_TOLD, [1, 2, 3], what="one is shown after the other", seconds=20)
    assert page.evaluate("() => shown.join()") == "1,2,3"
    watching = open_watch(chromium, own_server, stream, PHONE)
    watching.wait_for("() => document.querySelector('.stream-card')?.checkVisibility()", what="the card is shown there")
    watching.evaluate(LISTEN)
    shop.give("order-4", "g1", count=7, name="Giver 1")
    watching.wait_for(IS_TOLD, [4], what="the gift is shown there")
    for viewport in (DESKTOP, PHONE):
        assert_fits_in(watching, viewport, logs / f"watch-gift-{viewport.width}.png")
    host.click("#show-card")
    host.click("dialog[data-name=card] [data-value=remove]")
    for each in (host, page, watching):
        each.wait_for("() => !document.querySelector('.stream-card')?.checkVisibility()", what="the card is gone")
    check_no_complaints(page, watching)


@pytest.mark.parametrize("viewport", [PHONE, DESKTOP], ids=["phone", "desktop"])
def test_a_host_says_what_can_be_given(
    chromium: Browser, server: Server, stream: str, viewport: Any, logs: Path
) -> None:
    host = go_live(chromium, server, stream)
    host.resize(viewport)
    host.click("#edit-gifts")
    fill_row = """(row, picture, name, price) => {
        const fields = document.querySelectorAll('.gift-kinds li')[row];
        for (const [field, value] of Object.entries({picture, name, price})) fields.querySelector(`[name=${field}]`).value = value;
    }"""
    host.click("dialog[data-name=gifts] .fields ~ button")
    host.evaluate(fill_row, 1, "🚀", "Crème brûlée", "12.5")
    host.screenshot(logs / f"gift-catalogue-{viewport.width}.png")
    assert_fits(host)
    host.click("dialog[data-name=gifts] [data-value=save]")
    host.wait_for("() => rostrum.room.audience.settings?.gifts?.kinds.length === 2", what="the list is known")
    # The form goes a picture after it was closed, and until then its fields come before those of the next one.
    host.wait_for("() => !document.querySelector('dialog')", what="the form is closed")
    assert server.json(f"/v1/streams/{stream}/interaction")["gifts"] == {"currency": "EUR", "kinds": [
        {"id": "rose", "name": "Rose", "picture": "🌹", "price": 100},
        {"id": "creme-brulee", "name": "Crème brûlée", "picture": "🚀", "price": 1250},
    ]}
    # A name may change, an id does not; what the server does not take is said, and changes nothing.
    host.click("#edit-gifts")
    host.evaluate(fill_row, 1, "🚀", "Rocket", "20")
    host.click("dialog[data-name=gifts] [data-value=save]")
    host.wait_for("() => rostrum.room.audience.settings?.gifts?.kinds[1].name === 'Rocket'", what="it has another name")
    host.wait_for("() => !document.querySelector('dialog')", what="the form is closed")
    assert host.evaluate("() => rostrum.room.audience.settings.gifts.kinds[1].id") == "creme-brulee"
    host.click("#edit-gifts")
    host.evaluate(fill_row, 1, "javascript:alert(1)", "Rocket", "20")
    host.click("dialog[data-name=gifts] [data-value=save]")
    # The form stays, with what is to be mended.
    host.wait_for(
        "() => /picture for Rocket/.test(document.querySelector('dialog[open] [role=alert]')?.textContent)", what="why not")
    pictures = host.evaluate("() => [...document.querySelectorAll('.gift-kinds [name=picture]')].map(({value}) => value)")
    assert pictures == ["🌹", "javascript:alert(1)"]
    assert host.evaluate("() => rostrum.room.audience.settings.gifts.kinds[1].picture") == "🚀"
    host.click("dialog[data-name=gifts] [data-value=no]")
    host.wait_for("() => !document.querySelector('dialog')", what="the form is closed")
    host.click("#edit-gifts")
    host.click("dialog[data-name=gifts] [data-value=none]")
    host.wait_for("() => !rostrum.room.audience.settings?.gifts?.kinds.length", what="there are none")
    check_no_complaints(host)


def test_a_moderator_shadows_somebody(chromium: Browser, server: Server, stream: str) -> None:
    host = go_live(chromium, server, stream)
    writer = open_watch(chromium, server, stream)
    reader = open_watch(chromium, server, stream)
    write(writer, "Buy my book", "Sly")
    wait_for_comment(reader, "Buy my book")
    moderator = server.token(stream, "viewer", "Mo", capabilities=("moderate",))
    path = f"/v1/streams/{stream}"
    who = writer.wait_for("() => rostrum.room.you?.id", what="the page follows as who it is now")
    ask(server, moderator, "PUT", f"{path}/silences/{who}", {"seconds": 600, "shadow": True})
    ask(server, moderator, "DELETE", f"{path}/comments/1")
    write(writer, "Buy two", "Sly")
    wait_for_comment(writer, "Buy two")
    write(host, "Next question?", "Ann")
    wait_for_comment(reader, "Next question?")
    # Others may be told of a comment before its author is, who may be answered before what was told is read.
    wait_for_comment(host, "Next question?")
    host.wait_for(f"text => !({IS_SHOWN})(text)", "Buy my book", what="the comment is gone")
    texts = "() => [...document.querySelectorAll('.comments li p > span:last-child')].map(each => each.textContent).join()"
    assert reader.evaluate(texts) == "Next question?" == host.evaluate(texts)
    # Nor does it look different after a reload.
    writer.evaluate("() => location.reload()")
    wait_for_comment(writer, "Buy two")
    check_no_complaints(host, reader)
