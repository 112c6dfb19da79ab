"""What the pages are made of: whose token counts, how a question is left, and what keeps the screen on."""

from __future__ import annotations

import pytest

from drivers import Browser, Page
from server import Server


def test_a_token_that_was_renewed_meanwhile_is_not_thrown_away(chromium: Browser, server: Server) -> None:
    """A socket ends with the token that it was opened with, when another one is there already."""
    with chromium.open(server.origin + "/healthz") as page:
        after, kept, next_one, kept_then = page.evaluate(
            """async () => {
                const {keepToken, knownToken, replaceToken} = await import('/assets/tokens.js');
                const expiresAt = new Date(Date.now() + 3_600_000).toISOString();
                keepToken('renewed', 'host', {token: 'the new one', expiresAt});
                return [
                    await replaceToken('renewed', 'host', 'the old one'), knownToken('renewed', 'host'),
                    await replaceToken('renewed', 'host', 'the new one'), knownToken('renewed', 'host'),
                ];
            }""")
    assert (after, kept) == ("the new one", "the new one")
    # One that was refused itself goes.
    assert next_one and next_one != "the new one" and kept_then == next_one


#: Asks something; `answer` is undefined until it was answered.
QUESTION = """async () => {
    const {ask} = await import('/assets/dialog.js');
    const field = document.createElement('input');
    const choices = [{value: 'yes', label: 'Yes'}, {value: 'no', label: 'No'}];
    ask({name: 'test', title: 'Really?', body: [field], choices}).then(answer => { globalThis.answer = answer; });
}"""


@pytest.fixture
def page(chromium: Browser, server: Server):
    with chromium.open(server.origin + "/healthz") as page:
        page.evaluate(QUESTION)
        yield page


def press_at(page: Page, spot: str) -> None:
    """Presses the mouse there, by an expression of the dialog's `box`, and waits until the page has heard it."""
    x, y = page.evaluate(
        f"""() => {{
            globalThis.pressed = null;
            const note = ({{target}}) => {{ globalThis.pressed = target.localName; }};
            addEventListener('click', note, {{once: true, capture: true}});
            const box = document.querySelector('dialog').getBoundingClientRect();
            return {spot};
        }}""")
    page._click_at(x, y)
    # What lies around a dialog is its own, too.
    assert page.wait_for("() => pressed", what="the press is heard") == "dialog"


def is_open(page: Page) -> bool:
    return page.evaluate("() => document.querySelector('dialog')?.open === true && globalThis.answer === undefined")


@pytest.mark.parametrize("spot", ["[box.left + 8, box.top + 8]", "[box.right - 8, box.bottom - 8]"])
def test_a_press_on_the_space_within_a_question_leaves_it_open(page: Page, spot: str) -> None:
    press_at(page, spot)
    assert is_open(page)


def test_a_press_beside_a_question_means_no(page: Page) -> None:
    press_at(page, "[box.left / 2, box.top / 2]")
    page.wait_for("() => globalThis.answer === null", what="it is answered")
    assert page.evaluate("() => document.querySelector('dialog') === null")


def test_a_selection_that_ends_beside_a_question_leaves_it_open(page: Page) -> None:
    # Browsers tell of a press that begins and ends in different places to what has both.
    page.evaluate(
        """() => {
            const dialog = document.querySelector('dialog'), field = dialog.querySelector('input');
            const {left, top} = field.getBoundingClientRect();
            field.dispatchEvent(new PointerEvent('pointerdown', {bubbles: true, clientX: left + 4, clientY: top + 4}));
            dialog.dispatchEvent(new MouseEvent('click', {bubbles: true, clientX: 2, clientY: 2}));
        }""")
    assert is_open(page)


#: A person on the air whose connection never comes about, and a browser that notes who wants its screen to stay on.
ON_AIR = """async () => {
    const {OnAir} = await import('/assets/on-air.js');
    globalThis.locks = [];
    globalThis.visibility = 'visible';
    Object.defineProperty(document, 'visibilityState', {get: () => visibility, configurable: true});
    const request = async kind => {
        const lock = {kind, isReleased: false, release() { this.isReleased = true; }};
        locks.push(lock);
        return lock;
    };
    Object.defineProperty(navigator, 'wakeLock', {value: {request}, configurable: true});
    // How often it was asked for by then.
    globalThis.become = state => {
        visibility = state;
        document.dispatchEvent(new Event('visibilitychange'));
        return locks.length;
    };
    const room = Object.assign(new EventTarget(), {
        own: Object.assign(new EventTarget(), {source: {media: new MediaStream()}}),
        sync: Object.assign(new EventTarget(), {firstNews: () => new Promise(() => {})}),
    });
    globalThis.onAir = new OnAir(room);
}"""


def test_the_screen_stays_on_also_after_the_page_was_out_of_sight(chromium: Browser, server: Server) -> None:
    with chromium.open(server.origin + "/healthz") as page:
        page.evaluate(ON_AIR)
        assert page.evaluate("() => become('visible')") == 0, "who is not on the air needs no screen"
        assert page.evaluate("async () => { await onAir.start(); return [locks.length, onAir.isOn]; }") == [1, True]
        # The browser has let go of it by itself.
        assert page.evaluate("() => [become('hidden'), become('visible')]") == [1, 2]
        assert page.evaluate("() => { onAir.stop(); return [become('hidden'), become('visible')]; }") == [2, 2]
        assert page.evaluate("() => locks.map(({kind}) => kind)") == ["screen", "screen"]
        assert page.evaluate("() => locks.at(-1).isReleased"), "nothing keeps it on any more"


def test_a_press_that_ended_elsewhere_drags_nothing(chromium: Browser, server: Server) -> None:
    """Over a dialog, or outside the window, where nobody tells the page that it ended."""
    with chromium.open(server.origin + "/healthz") as page:
        assert page.evaluate(
            """async () => {
                const {Gestures} = await import('/assets/feed/gestures.js');
                const {Swipe} = await import('/assets/feed/swipe.js');
                const [stage, overlay] = [document.createElement('div'), document.createElement('div')];
                document.body.append(stage, overlay);
                const swipe = new Swipe({peek() {}, commit() {}, cancel() {}});
                let taps = 0;
                const way = () => ({forward: true, backward: true});
                new Gestures(stage, overlay, swipe, {way, draw() {}, rested() {}, tapped: () => taps++, pressed() {}});
                const tell = (type, pointerId, pointerType, buttons, x = 0) => {
                    const button = type === 'pointermove' ? -1 : 0;
                    const place = {clientX: innerWidth / 2 + x, clientY: innerHeight / 2};
                    const about = {pointerId, pointerType, isPrimary: true, button, buttons, ...place};
                    stage.dispatchEvent(new PointerEvent(type, about));
                };
                tell('pointerdown', 1, 'mouse', 1);
                tell('pointermove', 1, 'mouse', 0, 200);
                const {state} = swipe;
                // Each touch has another number.
                tell('pointerdown', 5, 'touch', 1);
                tell('pointerdown', 6, 'touch', 1);
                tell('pointerup', 6, 'touch', 0);
                return [state, taps];
            }""") == ["resting", 1]
