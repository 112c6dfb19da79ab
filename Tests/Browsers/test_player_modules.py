"""What `<rostrum-player>` is made of: its keys and pointers, its focus, its token, and what it leaves behind."""

from __future__ import annotations

import pytest

from clock import CLOCK
from drivers import Browser, Page
from server import Server
from test_modules import FAKE_SOCKETS

#: A player's layers without a stream, on the test's own clock; `did` is what a viewer asked for.
LISTEN = """async () => {
    const {listen} = await import('/assets/player/gestures.js');
    globalThis.did = [];
    const note = name => (...given) => void did.push([name, ...given].join(' '));
    globalThis.root = document.createElement('div');
    root.innerHTML = `<a href="#unlock">Unlock</a><button>Play</button><input class="volume" type="range">
        <input class="position" type="range"><p>Picture</p>`;
    document.body.append(root);
    globalThis.wake = listen(root, {
        mayListen: () => true, mayFade: () => false, toggle: note('toggle'), toggleSound: note('sound'),
        toggleFull: note('full'), louder: note('louder'), skip: note('skip'), leave() {},
    });
    globalThis.on = selector => selector === 'div' ? root : root.querySelector(selector);
}"""


@pytest.fixture
def page(chromium: Browser, server: Server):
    with chromium.open(server.origin + "/healthz", before_load=FAKE_SOCKETS) as page:
        page.evaluate(CLOCK)
        yield page


def test_a_link_over_the_picture_is_no_press_on_it(page: Page) -> None:
    page.evaluate(LISTEN)
    assert page.evaluate("""async () => {
        const seen = [];
        for (const selector of ['a', 'button', 'p']) {
            on(selector).dispatchEvent(new MouseEvent('click', {bubbles: true, cancelable: true, detail: 1}));
            await passTime(1_000);
            seen.push(did.splice(0).join());
        }
        return seen;
    }""") == ["", "", "toggle"]


def test_arrow_keys_move_the_timeline_by_more_than_its_own_step(page: Page) -> None:
    page.evaluate(LISTEN)
    pressed = page.evaluate("""() => Object.fromEntries(['.position', '.volume', 'div'].map(selector => {
        const seen = ['ArrowLeft', 'ArrowRight', 'ArrowUp', 'ArrowDown'].map(key => {
            const event = new KeyboardEvent('keydown', {key, bubbles: true, cancelable: true});
            on(selector).dispatchEvent(event);
            return [did.splice(0).join(), event.defaultPrevented];
        });
        return [selector, seen];
    }))""")
    assert pressed == {
        ".position": [["skip -5", True], ["skip 5", True], ["skip 5", True], ["skip -5", True]],
        # The browser moves it.
        ".volume": [["", False]] * 4,
        "div": [["skip -5", True], ["skip 5", True], ["louder 0.05", True], ["louder -0.05", True]],
    }


def test_a_player_that_was_taken_out_of_its_page_keeps_no_timer(page: Page) -> None:
    page.evaluate(LISTEN)
    assert page.evaluate("""async () => {
        const before = timers();
        wake();
        await passTime(10_000);
        const seen = [timers() - before];
        root.remove();
        await passTime(10_000);
        seen.push(timers() - before);
        // Put back, it goes on.
        document.body.append(root);
        wake();
        await passTime(10_000);
        return [...seen, timers() - before];
    }""") == [1, 0, 1]


def test_the_focus_stays_in_a_player_whose_button_goes_away(chromium: Browser, server: Server) -> None:
    with chromium.open(server.origin + "/healthz", before_load=FAKE_SOCKETS) as page:
        page.evaluate("""async () => {
            await import('/assets/v1/rostrum-player.js');
            const player = globalThis.player = document.createElement('rostrum-player');
            Object.assign(player, {src: '/watch/s1', controls: true});
            document.body.append(player);
            globalThis.big = player.shadowRoot.querySelector('.big');
        }""")
        page.wait_for("() => big.checkVisibility()", what="it can be played")
        page.evaluate("() => big.focus()")
        assert page.evaluate("() => player.shadowRoot.activeElement === big")
        page.press("Enter")
        page.wait_for("() => !big.checkVisibility()", what="the button is gone")
        assert page.evaluate("() => player.shadowRoot.activeElement?.className") == "player"
        # So the next key is the player's.
        page.press("m")
        page.wait_for("() => player.muted", what="the key is heard")


def test_going_back_takes_a_number(chromium: Browser, server: Server) -> None:
    with chromium.open(server.origin + "/healthz") as page:
        assert page.evaluate("""async () => {
            await import('/assets/v1/rostrum-player.js');
            const player = document.createElement('rostrum-player');
            return [undefined, '30', NaN, Infinity, 30].map(seconds => {
                try {
                    player.goBack(seconds);
                    return 'taken';
                } catch (error) {
                    return error.name;
                }
            });
        }""") == [*["TypeError"] * 4, "taken"]


#: A token that is valid for an hour, and a server that does with it what the test says; `timers` are those that wait.
RENEWING = """async () => {
    const {Access} = await import('/assets/player/access.js');
    globalThis.now = Date.now();
    Date.now = () => now;
    globalThis.timers = [];
    globalThis.setTimeout = (call, wait) => timers.push({call, wait});
    globalThis.clearTimeout = () => {};
    globalThis.tokenOf = number => `x.${btoa(JSON.stringify({number, exp: now / 1000 + 3600}))}.y`;
    globalThis.answers = [];
    globalThis.fetch = async () => answers.shift()();
    globalThis.access = new Access('/v1/streams/s1/tokens', tokenOf(0));
    globalThis.refuse = status => () => new Response('{}', {status});
    globalThis.give = token => () => new Response(JSON.stringify({token}), {status: 201});
    globalThis.lose = () => { throw new TypeError('there is no network'); };
    // How long it waits after what came due was done; null where it does not.
    globalThis.renew = async answer => {
        answers.push(answer);
        await timers.shift().call();
        return timers[0] ? Math.round(timers[0].wait / 1000) : null;
    };
}"""


def test_a_token_that_a_bad_network_kept_from_being_renewed_is_renewed_later(page: Page) -> None:
    page.evaluate(RENEWING)
    assert page.evaluate("""async () => {
        const waits = [Math.round(timers[0].wait / 1000)];
        now += 3_420_000;
        waits.push(await renew(lose));
        now += 90_000;
        waits.push(await renew(refuse(503)));
        now += 45_000;
        const fresh = tokenOf(1);
        waits.push(await renew(give(fresh)));
        return [waits, access.known === fresh];
    }""") == [[3_420, 90, 45, 3_420], True]


def test_a_token_that_is_refused_or_all_but_over_is_not_renewed_again(page: Page) -> None:
    page.evaluate(RENEWING)
    assert page.evaluate("""async () => {
        const {Access} = await import('/assets/player/access.js');
        const refused = await renew(refuse(403));
        access = new Access('/v1/streams/s1/tokens', tokenOf(2));
        now += 3_597_000;
        return [refused, await renew(lose)];
    }""") == [None, None]


def test_a_token_that_the_page_set_meanwhile_stays(page: Page) -> None:
    page.evaluate(RENEWING)
    assert page.evaluate("""async () => {
        const newer = tokenOf(2);
        await renew(() => {
            access.take(newer);
            return give(tokenOf(1))();
        });
        return access.known === newer;
    }""")


def test_who_goes_back_leaves_no_listener_behind(page: Page) -> None:
    """Waiting for time to pass happens some times a second, for hours."""
    assert page.evaluate("""async () => {
        const {PastPace} = await import('/assets/hls/pace.js');
        const pace = new PastPace(30), video = new EventTarget(), end = new AbortController(), {signal} = end;
        const kept = new Set(), {addEventListener, removeEventListener} = signal;
        signal.addEventListener = (type, listener, ...more) => {
            kept.add(listener);
            addEventListener.call(signal, type, listener, ...more);
        };
        signal.removeEventListener = (type, listener, ...more) => {
            kept.delete(listener);
            removeEventListener.call(signal, type, listener, ...more);
        };
        pace.hasBegun = true;
        const buffer = {ahead: 60};
        const enough = pace.whileEnough(buffer, video, signal);
        const counts = [];
        for (let count = 0; count < 5; count++) {
            await settled();
            video.dispatchEvent(new Event('timeupdate'));
        }
        await settled();
        counts.push(kept.size);
        buffer.ahead = 0;
        video.dispatchEvent(new Event('timeupdate'));
        await enough;
        counts.push(kept.size);
        // What is not wanted any more ends the wait.
        buffer.ahead = 60;
        const ended = pace.whileEnough(buffer, video, signal).catch(error => error.name);
        end.abort();
        return [...counts, await ended, kept.size];
    }""") == [1, 0, "AbortError", 0]
