"""How a host keeps order among those who comment, from the studio alone."""

from __future__ import annotations

import json
from pathlib import Path

from drivers import DESKTOP, PHONE, Browser, Page
from media import check_no_complaints, go_live, wait_for_state
from server import Server
from test_comments import FORGET_NAME, KEEP_MESSAGES, act_on, submit, wait_for_comment, wait_for_empty_line, write
from test_pages import assert_fits_in

#: Whether a list of the dialog has a line with these words.
HAS_LINE = """(list, words) => [...document.querySelectorAll(`dialog[data-name=moderation] ${list} li`)]
    .some(each => each.checkVisibility() && each.textContent.replaceAll(/[\u2068\u2069]/g, '').includes(words))"""

#: Chooses in the open dialog like a person does.
FILL = """(name, value) => {
    const field = document.querySelector(`dialog[data-name=talk] [name=${name}]`);
    field.value = value;
    for (const type of ['input', 'change']) field.dispatchEvent(new Event(type, {bubbles: true}));
}"""

PROBLEM = "words => document.querySelector('.comment-problem').textContent.includes(words)"


def open_as(browser: Browser, server: Server, stream: str, name: str, tiers: tuple[str, ...] = ()) -> Page:
    token = server.token(stream, "viewer", name, tiers=tiers)
    page = browser.open(f"{server.origin}/watch/{stream}#token={token}", before_load=FORGET_NAME)
    wait_for_state(page, "live")
    page.wait_for("id => rostrum.room.you?.id === id && rostrum.room.audience.settings", name.lower(), what="it is known here")
    return page


def open_settings(host: Page) -> None:
    host.click("#edit-comments")
    host.wait_for("() => document.querySelector('dialog[data-name=talk] [name=words]:enabled') !== null", what="the words are known")


def save_settings(host: Page) -> None:
    host.click("dialog[data-name=talk] [data-value=save]")
    host.wait_for("() => !document.querySelector('dialog')", what="it is saved")


def moderate(server: Server, stream: str, method: str, body: object = None) -> None:
    """Silences Bob, or lifts that, as somebody who moderates elsewhere."""
    headers = {"Authorization": f"Bearer {server.token(stream, 'admin')}", "Content-Type": "application/json"}
    status = server.request(method, f"/v1/streams/{stream}/silences/bob", json.dumps(body).encode() if body else b"", headers)[0]
    assert status in (200, 204)


def test_a_host_keeps_order_from_the_studio(chromium: Browser, server: Server, stream: str, logs: Path) -> None:
    host = go_live(chromium, server, stream, source="test")
    host.evaluate(KEEP_MESSAGES)
    bob = open_as(chromium, server, stream, "Bob")
    write(bob, "One", "Bob")
    wait_for_comment(host, "One")
    wait_for_empty_line(bob)
    act_on(host, "One", "silence")
    host.click("dialog[data-name=silence] [data-value='600']")
    host.wait_for("() => messages.some(text => text.includes('can’t comment'))", what="Bob is silenced")
    # What was done can be seen, and taken back.
    host.click("#moderation")
    host.wait_for(HAS_LINE, ".people-list", "Bob", what="who is silenced is listed")
    host.wait_for(HAS_LINE, ".audit", "silenced Bob until", what="what was done is listed")
    for viewport in (PHONE, DESKTOP):
        assert_fits_in(host, viewport, logs / f"moderation-{viewport.width}.png")
    # Somebody else who moderates changes it meanwhile.
    moderate(server, stream, "DELETE")
    host.wait_for(f"(...all) => !({HAS_LINE})(...all)", ".people-list", "Bob", what="nobody is silenced any more")
    moderate(server, stream, "PUT", {"seconds": 60, "shadow": False})
    host.wait_for(HAS_LINE, ".people-list", "Bob", what="Bob is silenced again")
    host.click("dialog[data-name=moderation] .people-list button")
    host.wait_for(
        """() => [...document.querySelectorAll('dialog[data-name=moderation] .audit li')]
            .filter(each => /lifted the silence for .*Bob/.test(each.textContent)).length === 2""",
        what="that is listed, too")
    assert not host.evaluate(HAS_LINE, ".people-list", "Bob")
    host.wait_for("() => document.activeElement.dataset.value === 'close'", what="the focus is where one can go on")
    host.press("Enter")
    write(bob, "Two", "Bob")
    wait_for_comment(host, "Two")
    wait_for_empty_line(bob)
    # Words and reactions.
    open_settings(host)
    host.evaluate(FILL, "words", "spam\n\n  buy now \n?!")
    host.click("dialog[data-name=talk] label:has([value=fire])")
    for viewport in (PHONE, DESKTOP):
        assert_fits_in(host, viewport, logs / f"comment-settings-{viewport.width}.png")
    host.click("dialog[data-name=talk] [data-value=save]")
    host.wait_for("() => document.querySelector('dialog[data-name=talk] [role=alert]')?.textContent.startsWith('words must be')", what="it is told what is wrong")
    host.evaluate(FILL, "words", "spam\nbuy now")
    save_settings(host)
    bob.wait_for("() => document.querySelector('.reaction[data-kind=fire]')?.checkVisibility()", what="it can be tapped")
    submit(bob, "Buy NOW!")
    bob.wait_for(PROBLEM, "a word that the host doesn't allow", what="an unwanted word is refused")
    assert host.evaluate("() => rostrum.room.api.interaction().then(({words, reactions}) => [words, reactions])") == [
        ["spam", "buy now"], ["heart", "fire"]]
    # Who goes too far is kept out, from the comment itself.
    act_on(host, "Two", "ban")
    host.click("dialog[data-name=remove] [data-value=yes]")
    bob.wait_for("() => rostrum.room.isKeptOut", what="Bob is out")
    host.wait_for("() => document.querySelector('#bans [data-participant=bob]') !== null", what="and listed as such")
    # What was typed wrong on purpose was refused; nothing else was.
    assert all("422" in error for error in host.errors), host.errors


def test_a_host_lets_members_alone_comment(chromium: Browser, server: Server, stream: str, logs: Path) -> None:
    host = go_live(chromium, server, stream, source="test")
    bob, mia = open_as(chromium, server, stream, "Bob"), open_as(chromium, server, stream, "Mia", tiers=("members",))
    bob.evaluate("() => { document.querySelector('.composer input').value = 'Begun before'; }")
    open_settings(host)
    host.evaluate(FILL, "writers", "members")
    for viewport in (PHONE, DESKTOP):
        assert_fits_in(host, viewport, logs / f"members-{viewport.width}.png")
    save_settings(host)
    closed = """() => {
        const {readOnly, ariaDisabled, placeholder} = document.querySelector('.composer input');
        return readOnly && ariaDisabled === 'true' && placeholder === 'Only members can comment';
    }"""
    bob.wait_for(closed, what="it is told before anything is written")
    bob.screenshot(logs / "members-viewer.png")
    submit(bob, "Begun before")
    bob.wait_for(PROBLEM, "Only members can comment.", what="what was begun is not sent")
    answer = bob.evaluate("() => rostrum.room.api.writeComment('c-1', 'x').then(() => null, ({status, rule, message}) => [status, rule, message])")
    assert answer == [403, "members-only", "Only members can comment."]
    write(mia, "We are members", "Mia")
    write(host, "Welcome!", "Ann")
    for page in (bob, mia, host):
        wait_for_comment(page, "We are members")
        wait_for_comment(page, "Welcome!")
    open_settings(host)
    host.evaluate(FILL, "writers", "everybody")
    save_settings(host)
    bob.wait_for(f"() => !({closed})()", what="all may comment again")
    write(bob, "Hello!", "Bob")
    wait_for_comment(host, "Hello!")
    check_no_complaints(host, mia)
