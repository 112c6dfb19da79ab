"""One stream's evening with all that an audience can do, from the start to the recording; pressed as people press it."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from drivers import DESKTOP, PHONE, Browser, Page
from drivers.page import Viewport
from media import check_no_complaints, end_stream, press_go_live, wait_for_frames, wait_for_state
from server import Server
from test_comments import FORGET_NAME, IS_SHOWN, act_on, open_watch, quiz, submit, wait_for_comment, wait_for_empty_line, write
from test_composition import SIZE
from test_duel import BAR, HALVES, IN_STATE, SCORES
from test_duel import invite as invite_to_duel
from test_gates import UNLOCK, packets
from test_gifts import IS_TOLD, LISTEN, Shop
from test_guests import IS_SEEN
from test_moderation import HAS_LINE, PROBLEM
from test_pages import assert_fits
from test_people import wait_for_rows
from test_recordings import keeper, listed  # noqa: F401
from test_story import assert_never_reloaded, enter, invite, raise_hand, wait_until_heard, wait_until_seen
from test_studio import assert_within

#: A camera of one colour in place of the browser's own; the microphone stays. The browser knows nobody from before.
GREEN_CAMERA = f"""() => {{
    ({FORGET_NAME})();
    const {{mediaDevices}} = navigator;
    if (!mediaDevices) return;
    const open = mediaDevices.getUserMedia.bind(mediaDevices);
    mediaDevices.getUserMedia = async ({{audio, video}}) => {{
        const media = new MediaStream();
        if (video) {{
            const canvas = document.createElement('canvas'), context = canvas.getContext('2d');
            [canvas.width, canvas.height] = [640, 360];
            let count = 0;
            setInterval(() => {{
                context.fillStyle = 'rgb(20, 180, 20)';
                context.fillRect(0, 0, 640, 360);
                context.fillStyle = 'white';
                context.fillRect(count++ % 640, 0, 8, 8);
            }}, 50);
            media.addTrack(canvas.captureStream(20).getVideoTracks()[0]);
        }}
        if (audio) media.addTrack((await open({{audio}})).getAudioTracks()[0]);
        return media;
    }};
}}"""

#: Whether each half of the picture is the green of Chromium's camera.
GREEN_HALVES = f"""wanted => ({HALVES})()?.map(([red, green, blue]) => green > red + 40 && green > blue + 40).join() === wanted"""


class Evening:
    """Ann's stream with two who watch it: Vera by phone in Chromium, Finn in Firefox; and Bob's stream beside it."""

    def __init__(self, chromium: Browser, firefox: Browser, server: Server, stream: str, logs: Path) -> None:
        self.server, self.stream, self.logs = server, stream, logs
        self.chromium, self.firefox = chromium, firefox
        self.ann = enter(chromium, server, "live", stream, "Ann", "host")
        wait_for_state(self.ann, "ready")
        fill(self.ann, "#lobby", {"title": "An evening with Ann"})
        self.ann.click("#go")
        wait_for_state(self.ann, "live")
        # As large as a build for tests can compose beside so many windows.
        self.ann.evaluate("size => rostrum.room.edit({composition: size})", SIZE)
        self.ann.click("#record")
        self.vera = open_watch(chromium, server, stream, PHONE)
        self.finn = firefox.open(
            f"{server.origin}/watch/{stream}?source=camera&quality=360&fps=15", DESKTOP, before_load=GREEN_CAMERA)
        wait_for_state(self.finn, "live")
        for page in self.pages:
            page.evaluate("() => { globalThis.neverReloaded = true; }")
            page.wait_for("() => rostrum.room.info.isRecording", what="it is known that it is recorded")

    @property
    def viewers(self) -> list[Page]:
        return [self.vera, self.finn]

    @property
    def pages(self) -> list[Page]:
        return [self.ann, self.vera, self.finn]

    def look(self, name: str, *others: Page, turns: Page | None = None) -> None:
        """Takes pictures of all pages, of one of them in both sizes, and looks whether everything fits."""
        for page, person in zip([*self.pages, *others], ("ann", "vera", "finn", "bob", "rita"), strict=False):
            assert_fits(page)
            assert page.evaluate("() => document.scrollingElement.scrollHeight <= innerHeight"), "it does not scroll as a whole"
            page.screenshot(self.logs / f"evening-{name}-{person}.png")
        if turns:
            usual, other = (PHONE, DESKTOP) if turns is self.vera else (DESKTOP, PHONE)
            resize(turns, other)
            assert_fits(turns)
            turns.screenshot(self.logs / f"evening-{name}-turned.png")
            resize(turns, usual)


def resize(page: Page, viewport: Viewport) -> None:
    page.resize(viewport)
    page.wait_for("width => innerWidth === width", viewport.width, what=f"the window is {viewport}")


def fill(page: Page, form: str, values: dict[str, Any]) -> None:
    page.wait_for("form => document.querySelector(form)?.checkVisibility()", form, what=f"{form} is shown")
    page.evaluate(
        """(form, values) => {
            for (const [name, value] of Object.entries(values)) {
                const field = document.querySelector(`${form} [name="${name}"]`);
                if (field.type === 'checkbox') field.checked = value;
                else field.value = value;
                for (const type of ['input', 'change']) field.dispatchEvent(new Event(type, {bubbles: true}));
            }
        }""", form, values)


def dialog(page: Page, opener: str, name: str, values: dict[str, Any], choice: str) -> None:
    """Opens a dialog, fills it in, and presses one of its buttons."""
    page.click(opener)
    fill(page, f"dialog[data-name={name}]", values)
    page.click(f"dialog[data-name={name}] [data-value={choice}]")
    page.wait_for("name => !document.querySelector(`dialog[data-name=${name}]`)", name, what=f"{name} is closed")


def talk(evening: Evening) -> None:
    """Comments both ways; one is taken away, one is pinned, and who wrote the bad one is silenced for a while."""
    ann, vera, finn = evening.pages
    write(vera, "Good evening!", "Vera")
    write(finn, "You are all fools", "Finn")
    write(ann, "Questions, please", "Ann")
    for page in evening.pages:
        for text in ("Good evening!", "You are all fools", "Questions, please"):
            wait_for_comment(page, text)
    act_on(ann, "Questions", "pin")
    act_on(ann, "fools", "delete")
    for page in evening.pages:
        page.wait_for(
            "() => document.querySelector('.pinned-comment').checkVisibility()"
            " && document.querySelector('.pinned-comment').textContent.includes('Questions, please')", what="it is pinned")
        page.wait_for(f"text => !({IS_SHOWN})(text)", "You are all fools", what="the comment is gone")
    wait_for_empty_line(finn)
    write(finn, "Sorry about that", "Finn")
    wait_for_comment(ann, "Sorry about that")
    act_on(ann, "Sorry", "silence")
    ann.click("dialog[data-name=silence] [data-value='600']")
    ann.click("#moderation")
    ann.wait_for(HAS_LINE, ".people-list", "Finn", what="who is silenced is listed")
    wait_for_empty_line(finn)
    submit(finn, "And another thing")
    finn.wait_for(PROBLEM, "silenced you", what="Finn is told")
    ann.screenshot(evening.logs / "evening-moderation.png")
    ann.click("dialog[data-name=moderation] .people-list button")
    ann.wait_for(HAS_LINE, ".audit", "lifted the silence for Finn", what="it is lifted")
    ann.click("dialog[data-name=moderation] [data-value=close]")
    submit(finn, "And another thing")
    for page in evening.pages:
        wait_for_comment(page, "And another thing")


def give(evening: Evening, shop: Shop) -> None:
    """Hearts of both, and gifts of one of them in a row."""
    for page, taps in zip(evening.viewers, (3, 2), strict=True):
        for _ in range(taps):
            page.click(".reaction[data-kind=heart]")
    for page in evening.pages:
        page.wait_for("() => document.querySelector('.reaction').dataset.total === '5'", what="every tap is counted")
        page.evaluate(LISTEN)
    giver = evening.vera.evaluate("() => rostrum.room.you.id")
    shop.give("order-1", giver, count=3)
    assert shop.give("order-2", giver, count=2)["combo"] == 5
    for page in evening.pages:
        page.wait_for(IS_TOLD, [1, 2], what="both gifts are shown, each once")
        assert page.evaluate("() => banners[2]")["giver"] == "Vera" and page.evaluate("() => banners[2]")["count"] == "×5"
        page.wait_for("() => document.querySelector('.top-givers b')?.textContent === 'Vera'", what="who gave most")
        page.wait_for("() => document.querySelector('.comments .medal')?.dataset.rank === '1'", what="a medal")
    evening.look("gift", turns=evening.finn)
    assert "5 gifts, €5.00" in evening.ann.text(".gift-sum")
    for page, opener in ((evening.ann, "#show-ranks"), (evening.vera, ".gifts .top-givers")):
        page.click(opener)
        wait_for_rows(page, ".ranked", ["1 Vera €5.00"])
        page.screenshot(evening.logs / f"evening-ranks-{'ann' if page is evening.ann else 'vera'}.png")
        page.click("dialog[data-name=people] [data-value=close]")


def ask(evening: Evening) -> None:
    """A poll, a quiz, and a card."""
    ann = evening.ann
    dialog(ann, "#ask-audience", "poll", {"question": "Tea or coffee?", "option-1": "Tea", "option-2": "Coffee"}, "open")
    for page, chosen in zip(evening.viewers, (1, 2), strict=True):
        page.click(f".poll .option:nth-child({chosen})")
    shares = (
        "() => [...document.querySelectorAll('.poll .option b')].map(each => each.textContent).join() === '50%,50%'")
    for page in evening.pages:
        page.wait_for(shares, what="both answers are counted")
    evening.look("poll", turns=evening.finn)
    press(ann, ".poll .actions button", "End the poll")
    for page in evening.viewers:
        page.wait_for("() => document.querySelector('.poll').textContent.includes('over')", what="it is over")
    quiz(ann, [evening.vera, evening.finn], "evening", evening.logs)
    for page in evening.pages:
        press(page, ".poll .actions button", "Close")
        page.wait_for("() => !document.querySelector('.poll').checkVisibility()", what="it was looked at")
    dialog(ann, "#show-card", "card", {"title": "Teapot No. 5", "link": "https://shop.example/teapot"}, "show")
    for page in evening.pages:
        page.wait_for("() => document.querySelector('.stream-card')?.checkVisibility()", what="the card is shown")
        assert page.text(".stream-card b") == "Teapot No. 5"


def press(page: Page, selector: str, words: str) -> None:
    """Presses the button that says so."""
    page.wait_for(
        """(selector, words) => {
            const isMeant = each => each.checkVisibility() && each.textContent === words;
            for (const each of document.querySelectorAll(selector)) each.toggleAttribute('data-meant', isMeant(each));
            return document.querySelector(`${selector}[data-meant]`) !== null;
        }""", selector, words, what=f"there is a button: {words}")
    page.click(f"{selector}[data-meant]")


def speak(evening: Evening) -> None:
    """A guest comes with sound alone, turns the camera on, and goes back."""
    ann, vera, finn = evening.pages
    name = finn.evaluate("() => rostrum.room.you.id")
    tile = f".tile[data-participant={name}]"
    raise_hand(finn, ann, name)
    invite(ann, name)
    finn.click("dialog[data-name=invitation] [data-value=sound]")
    finn.wait_for("() => rostrum.room.own.source?.kind === 'sound'", what="the microphone is open")
    finn.click("dialog[data-name=lobby] [data-value=enter]")
    finn.wait_for("() => document.body.classList.contains('studio')", what="the page is a studio")
    wait_for_state(finn, "live")
    ann.wait_for("tile => document.querySelector(tile)?.dataset.videoMuted === 'true'", tile, what="there is no picture")
    wait_until_heard(ann)
    wait_until_seen(finn, "ann")
    evening.look("guest-sound")
    finn.click("#sources label:has([value=camera])")
    wait_until_seen(ann, name)
    vera.wait_for(IS_SEEN, seconds=40, what="the guest is seen beside the host")
    evening.look("guest-picture", turns=evening.vera)
    finn.click("#stop")
    finn.wait_for("() => document.body.classList.contains('player')", what="the guest is in the audience")
    wait_for_state(finn, "live")
    ann.wait_for("tile => !document.querySelector(tile)", tile, what="the guest is off the host's stage")
    wait_for_frames(finn)


def duel(evening: Evening, shop: Shop) -> None:
    """Thirty seconds against Bob, of which a clip is kept meanwhile."""
    ann, vera, finn = evening.pages
    rival = f"{evening.stream}-rival"
    bob = enter(evening.chromium, evening.server, "live", rival, "Bob", "host", source="camera")
    press_go_live(bob)
    rita = open_watch(evening.firefox, evening.server, rival, PHONE)
    invite_to_duel(ann, rival, 30)
    bob.wait_for("() => document.querySelector('dialog[data-name=duel-invitation]')?.checkVisibility()", what="Bob is asked")
    bob.click("dialog[data-name=duel-invitation] [data-value=accept]")
    sides = {ann: (202, 3), vera: (202, 3), finn: (202, 3), bob: (3, 202), rita: (3, 202)}
    for page in sides:
        page.wait_for(IN_STATE, "running", what="it runs everywhere")
    ann.click("#clip")
    for page, taps in ((finn, 2), (rita, 3)):
        for _ in range(taps):
            page.click(".reaction[data-kind=heart]")
    shop.give("order-3", vera.evaluate("() => rostrum.room.you.id"), count=2)
    for page, scores in sides.items():
        page.wait_for(SCORES, list(scores), what="the scores are the same everywhere")
    for host in (ann, bob):
        host.wait_for(
            """() => [...document.querySelectorAll('.tile[data-participant] video')]
                .some(each => !each.hidden && each.videoWidth > 0)""", what="a host sees the opponent")
    for page, halves in ((vera, "false,true"), (finn, "false,true"), (rita, "true,false")):
        page.wait_for(GREEN_HALVES, halves, seconds=20, what="each audience sees both, its own host first")
    evening.look("duel", bob, rita, turns=evening.finn)
    for page in sides:
        page.wait_for(IN_STATE, "penalty", seconds=40, what="the result is there")
    told = []
    for page, (own, other) in sides.items():
        bar = page.evaluate(BAR)
        assert bar["result"] == ("won" if own > other else "lost") and bar["scores"] == [own, other]
        told.append(bar["words"])
    assert len(set(told)) == 1 and "wins" in told[0], told
    evening.look("result", bob, rita, turns=evening.ann)
    bob.click("#leave-duel")
    for page in sides:
        page.wait_for(
            "() => ['over', undefined].includes(rostrum.room.audience.duel?.state)", what="they have parted")
    ann.wait_for("() => document.querySelectorAll('.clipper li').length === 1", seconds=60, what="the clip is ready")
    check_no_complaints(bob, rita)
    bob.close()
    rita.close()


def shut(evening: Evening) -> None:
    """From now on it takes a tier, which both get."""
    ann = evening.ann
    ann.click("#edit-stream")
    ann.click("dialog[data-name=stream] details:has([name=tier]) summary")
    fill(ann, "dialog[data-name=stream]", {"tier": "gold", "free": "0", "unlock": UNLOCK})
    ann.click("dialog[data-name=stream] [data-value=save]")
    for page in evening.viewers:
        wait_for_state(page, "gated")
        assert page.evaluate("() => document.getElementById('unlock').href") == UNLOCK
        assert "gold" in page.text("#state")
        assert_within(page, "#unlock")
    evening.look("gate", turns=evening.finn)
    for page, name in zip(evening.viewers, ("Vera", "Finn"), strict=True):
        before = packets(page)
        token = evening.server.token(evening.stream, "viewer", name, tiers=("gold",))
        page.evaluate("token => { location.hash = `token=${token}`; }", token)
        wait_for_state(page, "live")
        wait_for_frames(page)
        assert packets(page) > before, "it is the connection that there was"


@pytest.mark.alone
def test_an_evening_with_an_audience(
    chromium: Browser, firefox: Browser, keeper: Server, stream: str, logs: Path  # noqa: F811
) -> None:
    evening = Evening(chromium, firefox, keeper, stream, logs)
    ann = evening.ann
    dialog(ann, "#edit-gifts", "gifts", {}, "save")
    shop = Shop(keeper, stream, has_catalogue=True)
    talk(evening)
    give(evening, shop)
    ask(evening)
    speak(evening)
    duel(evening, shop)
    shut(evening)
    ann.click("#moderation")
    for words in ("silenced Finn until", "pinned a comment by Ann", "deleted a comment by Finn", "showed the card"):
        ann.wait_for(HAS_LINE, ".audit", words, what="what was done is listed")
    ann.screenshot(logs / "evening-audit.png")
    ann.click("dialog[data-name=moderation] [data-value=close]")
    end_stream(ann)
    for page in evening.pages:
        wait_for_state(page, "ended")
    ann.wait_for("() => document.querySelectorAll('#recordings li').length === 2", seconds=30, what="the host sees both")
    for page in evening.viewers:
        page.wait_for("() => document.querySelectorAll('.parts li').length === 2", seconds=30, what="recording and clip")
        page.wait_for(
            "() => document.querySelector('.parts [aria-current]')?.textContent.startsWith('Recording')"
            " && document.getElementById('playback').readyState > 0", what="the recording can be played")
    for each in ("a[download]", "button"):
        ann.evaluate("each => document.querySelector(`#recordings li ${each}`).scrollIntoView({block: 'center'})", each)
        assert_within(ann, f"#recordings li {each}")
    evening.look("ended", turns=evening.finn)
    assert sorted(each["kind"] for each in listed(keeper, stream)) == ["clip", "recording"]
    token = {"Authorization": f"Bearer {keeper.token(stream)}"}
    entries = json.loads(keeper.request("GET", f"/v1/streams/{stream}/audit", headers=token)[2])["entries"]
    assert [each["action"] for each in entries] == [
        "pinned", "deleted", "silenced", "unsilenced", "card-shown"]
    for page in evening.pages:
        assert_never_reloaded(page)
    check_no_complaints(ann)
