"""Two studios in a duel, from the invitation to the result, and what both audiences see and hear of it."""

from __future__ import annotations

from pathlib import Path

import pytest

from drivers import DESKTOP, PHONE, Browser, Page
from feed import open_feed
from media import check_no_complaints, go_live, hold_answer
from server import Server
from test_comments import KEEP_MESSAGES, open_watch, write
from test_gifts import Shop, ask
from test_pages import assert_fits
from test_studio import assert_within

#: The mean colours of the left and the right half of the picture, away from the seam and the labels.
HALVES = """() => {
    const video = document.querySelector('video');
    if (!video || !video.videoWidth) return null;
    const canvas = document.createElement('canvas');
    [canvas.width, canvas.height] = [64, 36];
    const context = canvas.getContext('2d', {willReadFrequently: true});
    context.drawImage(video, 0, 0, 64, 36);
    return [8, 40].map(left => {
        const {data} = context.getImageData(left, 12, 16, 12), sum = [0, 0, 0];
        for (let index = 0; index < data.length; index++) if (index % 4 < 3) sum[index % 4] += data[index];
        return sum.map(each => Math.round(each / (data.length / 4)));
    });
}"""
#: What the bar says: state, clock, names, scores and words.
BAR = """() => {
    const bar = document.querySelector('.duel-bar');
    return {
        state: bar.hidden ? null : bar.dataset.state, result: bar.dataset.result,
        names: [...bar.querySelectorAll('.duel-head p span')].map(each => each.textContent),
        scores: [...bar.querySelectorAll('.duel-head p b')].map(each => Number(each.textContent)),
        clock: bar.querySelector('.duel-clock').textContent, words: bar.querySelector('.duel-words').textContent,
    };
}"""
IN_STATE = "state => { const bar = document.querySelector('.duel-bar'); return !bar.hidden && bar.dataset.state === state; }"
#: Remembers when the page was told that it runs.
NOTE_START = """() => {
    const {audience} = rostrum.room ?? rostrum;
    audience.addEventListener('change', () => {
        if (audience.duel?.state === 'running') globalThis.duelStarted ??= Date.now();
    });
}"""
SCORES = """scores => [...document.querySelectorAll('.duel-bar .duel-head p b')].map(each => each.textContent).join()
    === scores.join()"""


def invite(host: Page, rival: str, seconds: int) -> None:
    """By the studio's own dialog."""
    host.click("#invite-duel")
    host.wait_for("rival => [...document.querySelector('[name=rival]')?.options ?? []].some(each => each.value === rival)",
                  rival, what="the other stream is in the list")
    host.evaluate(
        """(rival, seconds) => {
            document.querySelector('[name=rival]').value = rival;
            const length = document.querySelector('dialog [name=seconds]');
            length.add(new Option(`${seconds} s`, String(seconds)));
            length.value = String(seconds);
        }""", rival, seconds)
    host.click("dialog[data-name=duel] [data-value=invite]")


@pytest.mark.alone
def test_two_studios_meet_in_a_duel(chromium: Browser, firefox: Browser, own_server: Server, logs: Path) -> None:
    server = own_server
    # Two pictures that cannot be mistaken for each other: Chromium's camera is green, the drawn one is not.
    ann = go_live(chromium, server, "ann", source="camera")
    bob = go_live(firefox, server, "bob", source="test")
    viewers = {"ann": open_watch(chromium, server, "ann", PHONE), "bob": open_watch(firefox, server, "bob", DESKTOP)}
    for page in viewers.values():
        page.evaluate(NOTE_START)
    # To be answered within ten seconds.
    invite(ann, "bob", 30)
    bob.wait_for("() => document.querySelector('dialog[data-name=duel-invitation]')?.checkVisibility()", what="Bob is asked")
    assert "Answer within" in bob.text(".duel-left")
    bob.screenshot(logs / "duel-invitation.png")
    assert viewers["bob"].evaluate(BAR)["state"] is None, "an invitation is for the host alone"
    bob.click("dialog[data-name=duel-invitation] [data-value=accept]")
    for page in (ann, bob, *viewers.values()):
        page.wait_for(IN_STATE, "running", what="it runs everywhere")
    # One machine, one clock; how far apart is for the report, as a busy machine may draw late.
    starts = [page.evaluate("() => globalThis.duelStarted") for page in viewers.values()]
    print(f"the two audiences saw the start {abs(starts[0] - starts[1])} ms apart")
    # Hearts of one audience, and a gift to the other: what comes within its time counts.
    write(viewers["ann"], "Go!", "Vera")
    for _ in range(5):
        viewers["ann"].click(".reaction")
    Shop(server, "bob").give("order-1", "cid", count=2, name="Cid")
    for page, scores in ((ann, (5, 200)), (viewers["ann"], (5, 200)), (bob, (200, 5)), (viewers["bob"], (200, 5))):
        page.wait_for(SCORES, list(scores), what="the scores are the same everywhere")
    # The hosts see each other.
    for page in (ann, bob):
        page.wait_for(
            """() => [...document.querySelectorAll('.tile[data-participant] video')].some(each => !each.hidden && each.videoWidth > 0)""",
            what="a host sees the opponent")
    # Each audience has its own host first.
    for name, page in viewers.items():
        page.wait_for(
            f"""isGreen => {{
                const halves = ({HALVES})();
                return halves?.map(([red, green, blue]) => green > red + 40 && green > blue + 40).join() === isGreen;
            }}""", "true,false" if name == "ann" else "false,true", seconds=20, what="the viewer sees both")
    for name, page in viewers.items():
        page.screenshot(logs / f"duel-watch-{name}.png")
        assert_within(page, "#unmute")
        assert_fits(page)
    ann.screenshot(logs / "duel-studio.png")
    for page, result in ((ann, "lost"), (bob, "won"), (viewers["ann"], "lost"), (viewers["bob"], "won")):
        page.wait_for(IN_STATE, "penalty", seconds=60, what="the result is there")
        bar = page.evaluate(BAR)
        assert bar["result"] == result and "wins" in bar["words"], bar
    duel = ann.evaluate("() => rostrum.room.audience.duel")
    for stream in ("ann", "bob"):
        told = ask(server, server.token(stream), "GET", f"/v1/duels/{duel['id']}")
        assert (told["from"]["score"], told["to"]["score"], told["winner"]) == (5, 200, "bob"), told
    viewers["ann"].screenshot(logs / "duel-result.png")
    # Who lost does the penalty; who won may ask for another one.
    assert ann.evaluate("() => document.getElementById('rematch-duel').hidden")
    bob.click("#rematch-duel")
    ann.wait_for("() => document.querySelector('dialog[data-name=duel-invitation]')?.checkVisibility()", what="Ann is asked")
    ann.click("dialog[data-name=duel-invitation] [data-value=decline]")
    bob.wait_for("() => rostrum.room.audience.duel?.state === 'off'", what="Bob hears that")
    for page in viewers.values():
        page.wait_for("() => document.querySelector('.duel-bar').hidden", what="nothing stays over the picture")
    check_no_complaints(ann, bob, *viewers.values())


@pytest.mark.alone
def test_the_feed_shows_the_scores(chromium: Browser, own_server: Server, logs: Path) -> None:
    server = own_server
    hosts = {name: go_live(chromium, server, name, source="test") for name in ("ann", "bob")}
    feed = open_feed(chromium, server, PHONE)
    invite(hosts["ann"], "bob", 60)
    hosts["bob"].click("dialog[data-name=duel-invitation] [data-value=accept]")
    feed.wait_for(IN_STATE, "running", what="it runs in the feed")
    assert len(feed.evaluate(BAR)["names"]) == 2
    feed.screenshot(logs / "duel-feed.png")
    hosts["bob"].click("#leave-duel")
    feed.wait_for(IN_STATE, "over", what="who leaves loses")
    assert feed.evaluate(BAR)["result"] in ("won", "lost")
    check_no_complaints(feed, *hosts.values())


def test_a_host_who_takes_no_invitations_is_not_asked(chromium: Browser, server: Server, stream: str, logs: Path) -> None:
    rival = f"{stream}-rival"
    ann, bob = (go_live(chromium, server, name, source="test") for name in (stream, rival))
    bob.click("#edit-stream")
    bob.wait_for("() => document.querySelector('[name=duels]')?.checked === true", what="invitations are taken unless one says no")
    bob.click("[name=duels]")
    bob.screenshot(logs / "duel-switch.png")
    bob.click("dialog[data-name=stream] [data-value=save]")
    bob.wait_for("() => rostrum.room.audience.settings.duels === false", what="the switch is durable")
    # It is said for a moment only, which may be over before a busy machine looks.
    ann.evaluate(KEEP_MESSAGES)
    invite(ann, rival, 60)
    ann.wait_for(
        "() => messages.some(text => text.includes('doesn’t accept duel invitations'))", what="Ann is told why")
    assert ann.evaluate("() => rostrum.room.audience.duel.reason") == "duels-off"
    assert not bob.evaluate("() => Boolean(document.querySelector('dialog[data-name=duel-invitation]'))")
    first = ann.evaluate("() => rostrum.room.audience.duel.id")
    # The answer to the invitation comes after the page has heard that nothing came of it, and is of the same millisecond.
    hold_answer(
        ann, "POST", "/v1/duels", until=f"audience.duel?.id !== '{first}' && audience.duel?.state === 'off'",
        change="{state: 'invited', reason: null, at: audience.duel.at}")
    invite(ann, rival, 60)
    ann.wait_for("() => globalThis.hasAnswered", what="the answer comes after the refusal")
    assert ann.evaluate("first => rostrum.room.audience.duel.id !== first", first)
    assert ann.evaluate("() => rostrum.room.audience.duel.reason") == "duels-off"
    check_no_complaints(ann, bob)
