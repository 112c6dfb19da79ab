"""Where the focus goes when the button that has it hides itself, or goes away."""

from __future__ import annotations

import pytest

from drivers import Browser, Page
from server import Server
from test_modules import FAKE_SOCKETS

#: A page of its own, whose focus is kept; `place` tells where it is once the changes before are known.
PAGE = """async () => {
    document.body.innerHTML = `<main tabindex="-1">
        <p><button id="first">First</button><input id="field"></p>
        <div id="row"><button id="go">Go</button><input id="name"><button id="stop" class="danger">Stop</button>
            <button id="mute">Mute</button></div>
        <div id="alone"><button id="single">Single</button></div>
    </main>`;
    const {keepFocus} = await import('/assets/focus.js');
    globalThis.end = keepFocus(document.body);
    globalThis.$ = id => document.getElementById(id);
    globalThis.place = async () => {
        await new Promise(done => setTimeout(done));
        return document.activeElement.id || document.activeElement.localName;
    };
}"""


@pytest.fixture
def page(chromium: Browser, server: Server):
    with chromium.open(server.origin + "/healthz", before_load=FAKE_SOCKETS) as page:
        page.evaluate(PAGE)
        yield page


def test_the_focus_of_a_button_that_hides_itself_goes_to_the_next(page: Page) -> None:
    """Not into a field, and not to what cannot be undone."""
    assert page.evaluate("""async () => {
        $('go').onclick = () => { $('go').hidden = true; };
        $('go').focus();
        $('go').click();
        const places = [await place()];
        // It was the last of them: the nearest one elsewhere.
        $('mute').hidden = true;
        places.push(await place());
        $('single').hidden = true;
        places.push(await place());
        $('first').hidden = true;
        places.push(await place());
        return places;
    }""") == ["mute", "single", "first", "main"]


def test_a_focus_that_the_page_moves_itself_stays_there(page: Page) -> None:
    assert page.evaluate("""async () => {
        $('go').focus();
        $('go').hidden = true;
        $('field').focus();
        return [await place(), await place()];
    }""") == ["field", "field"]


def test_what_is_hidden_with_all_around_it_or_removed_leaves_the_focus_beside_it(page: Page) -> None:
    assert page.evaluate("""async () => {
        $('go').focus();
        $('row').hidden = true;
        const places = [await place()];
        $('row').hidden = false;
        $('go').focus();
        $('go').remove();
        places.push(await place());
        $('single').focus();
        $('alone').remove();
        places.push(await place());
        return places;
    }""") == ["single", "mute", "mute"]


def test_what_is_hidden_elsewhere_moves_no_focus(page: Page) -> None:
    assert page.evaluate("""async () => {
        $('field').focus();
        $('row').hidden = true;
        const places = [await place()];
        end();
        $('first').focus();
        $('first').hidden = true;
        // The browser itself takes it away when it draws, and nobody moves it.
        places.push(await place() === 'single');
        return places;
    }""") == ["field", False]


def test_whoever_uses_a_pointer_is_not_led(page: Page) -> None:
    """A focus within the controls would keep them from fading over the picture."""
    assert page.evaluate("""async () => {
        dispatchEvent(new PointerEvent('pointerdown'));
        $('go').focus();
        $('go').hidden = true;
        const isLed = ['mute', 'single'].includes(await place());
        dispatchEvent(new KeyboardEvent('keydown', {key: 'Tab'}));
        $('mute').focus();
        $('mute').hidden = true;
        return [isLed, await place()];
    }""") == [False, "single"]


def test_what_hid_itself_from_a_pointer_is_forgotten_by_the_next_key(page: Page) -> None:
    """Whoever has pressed a button and then scrolls by a key would press the next button by it."""
    assert page.evaluate("""async () => {
        dispatchEvent(new PointerEvent('pointerdown'));
        $('go').focus();
        $('go').hidden = true;
        await place();
        dispatchEvent(new KeyboardEvent('keydown', {key: 'PageDown'}));
        $('first').textContent = 'Changed';
        return place();
    }""") == "body"


def test_a_field_that_hides_leaves_the_focus_to_no_button(page: Page) -> None:
    """The next space of whoever is typing would press it."""
    assert page.evaluate("""async () => {
        $('name').focus();
        $('name').hidden = true;
        return place();
    }""") == "main"


def test_the_feed_takes_no_focus_from_what_cannot_be_used_now(chromium: Browser, server: Server) -> None:
    """There is nothing to share while there is no network; what the page's state hides leaves the focus beside it."""
    with chromium.open(server.origin + "/", before_load=FAKE_SOCKETS) as page:
        page.wait_for("() => globalThis.rostrum?.feed.state === 'reconnecting'", what="the feed finds no server")
        assert page.evaluate("""async () => {
            const share = document.getElementById('share');
            share.focus();
            rostrum.feed.dispatchEvent(new Event('change'));
            share.click();
            await new Promise(done => setTimeout(done));
            const place = document.activeElement;
            document.body.dataset.state = 'empty';
            await new Promise(done => setTimeout(done));
            return [place === share, share.ariaDisabled, document.querySelector('dialog[open]'), document.activeElement.id];
        }""") == [True, "true", None, "menu-button"]
