"""Links that a host shares while others are revoked, and what people hear of what they copied."""

from __future__ import annotations

import pytest

from clock import CLOCK
from drivers import Browser, Page
from server import Server
from test_modules import FAKE_SOCKETS
from test_page_widgets import UNHEARD

#: A host's page where viewers need an invitation. The test answers: `asked` are requests for links, `revoke` the answer
#: to a revocation; `copied` is what was put on the clipboard.
SHARE = """async () => {
    globalThis.fetch = async () => new Response('{"viewers": "token"}');
    globalThis.asked = [];
    globalThis.copied = [];
    globalThis.said = [];
    Object.defineProperty(navigator, 'clipboard', {value: {writeText: async text => void copied.push(text)}});
    const {share} = await import('/assets/widgets/share.js');
    const expiresAt = new Date(Date.now() + 24 * 3_600_000).toISOString();
    const failed = error => { said.push(error.message); return null; };
    globalThis.room = Object.assign(new EventTarget(), {
        stream: 's1', isHost: true, isOpen: true, isOnStage: true, isOver: false, isOut: false, onAir: {isOn: true},
        say: text => said.push(text), attempt: action => action().catch(failed),
        api: {
            makeLink: role => new Promise((resolve, reject) => {
                const path = `/watch/s1#${role}${asked.length + 1}`;
                asked.push((isHeard = true) => isHeard ? resolve({path, expiresAt}) : reject(new Error('no network')));
            }),
            revokeLinks: () => new Promise((resolve, reject) => {
                globalThis.revoke = isHeard => isHeard ? resolve({}) : reject(new Error('no answer'));
            }),
        },
    });
    share.mount(room, document.body);
    while (!asked.length) await turns();
    globalThis.$ = id => document.getElementById(id);
    globalThis.shown = () => [$('link').value.split('#')[1] ?? '', $('link').closest('.row').hidden];
    globalThis.press = async () => {
        globalThis.revoke = null;
        $('revoke-links').click();
        await turns();
        document.querySelector('dialog [data-value=yes]').click();
        while (!revoke) await turns();
    };
}"""
REVOKED = "Links revoked. Copy a new link to share."


@pytest.fixture
def page(chromium: Browser, server: Server):
    with chromium.open(server.origin + "/healthz", before_load=FAKE_SOCKETS) as page:
        page.evaluate(UNHEARD)
        page.evaluate(SHARE)
        yield page


@pytest.mark.parametrize("is_revoked_first", [True, False])
def test_a_link_that_was_made_while_links_were_revoked_is_not_shown(page: Page, is_revoked_first: bool) -> None:
    assert page.evaluate("""async isRevokedFirst => {
        // The first link is on its way.
        await press();
        const answers = [() => revoke(true), asked[0]];
        if (!isRevokedFirst) answers.reverse();
        for (const answer of answers) {
            answer();
            await turns();
        }
        const seen = [shown(), asked.length];
        asked[1]();
        await turns();
        return [...seen, shown(), said, unheard];
    }""", is_revoked_first) == [["", True], 2, ["viewer2", False], [REVOKED], []]


def test_a_link_that_is_being_revoked_is_not_copied(page: Page) -> None:
    assert page.evaluate("""async () => {
        asked[0]();
        $('copy-speaker').click();
        await turns();
        asked[1]();
        await turns();
        const before = [shown(), copied.map(text => text.split('#')[1])];
        await press();
        $('copy-speaker').click();
        await turns();
        const meanwhile = [shown(), copied.length, asked.length];
        revoke(true);
        await turns();
        for (const answer of asked.slice(2)) answer();
        await turns();
        return [before, meanwhile, copied.length, /speaker[34]/.test(copied[1]), /viewer[34]/.test($('link').value)];
    }""") == [[["viewer1", False], ["speaker2"]], [["", True], 1, 2], 2, True, True]


def test_links_may_be_revoked_although_no_answer_came(page: Page) -> None:
    assert page.evaluate("""async () => {
        asked[0]();
        await turns();
        await press();
        revoke(false);
        await turns();
        asked[1]();
        await turns();
        return [shown(), said];
    }""") == [["viewer2", False], ["no answer"]]


def test_a_network_that_is_not_there_is_told_now_and_then(page: Page) -> None:
    """A page on the air changes every second."""
    assert page.evaluate("""async () => {
        let now = performance.now();
        performance.now = () => now;
        const change = async milliseconds => {
            now += milliseconds;
            room.dispatchEvent(new Event('change'));
            await turns();
        };
        asked[0](false);
        await turns();
        for (let second = 0; second < 9; second++) await change(1_000);
        const meanwhile = [asked.length, said.length];
        await change(1_000);
        asked[1]();
        await turns();
        return [meanwhile, asked.length, said, shown()];
    }""") == [[1, 1], 2, ["no network"], ["viewer2", False]]


def test_what_was_copied_is_read_aloud(page: Page) -> None:
    """Readers pass over the words of a button that change, and over all that is behind a dialog."""
    page.evaluate("() => asked[0]()")
    page.evaluate(CLOCK)
    assert page.evaluate("""async () => {
        const {ask} = await import('/assets/dialog.js');
        const {copyFrom, h} = await import('/assets/dom.js');
        const read = () => [...document.querySelectorAll('[role=status]')].map(({parentElement, textContent}) =>
            [parentElement.dataset.name ?? parentElement.localName, textContent]);
        const heard = [];
        const press = async button => {
            button.click();
            await passTime(10);
            heard.push(read());
            await passTime(200);
            heard.push(read());
            await passTime(3_000);
        };
        await press($('copy'));
        const copy = h('button', {onclick: () => copyFrom(copy, 'v=0')}, 'Copy');
        ask({name: 'test', title: 'Session', body: [copy], choices: [{value: 'no', label: 'Close'}]});
        await press(copy);
        return [heard, read(), copied.at(-1), copy.textContent];
    }""") == [[[["body", ""]], [["body", "Copied"]], [["test", ""]], [["test", "Copied"]]], [], "v=0", "Copy"]


@pytest.mark.parametrize("viewers, told", [
    ("public", "Link copied"), ("token", "To watch here, others need an invitation. Ask the host for a link."),
])
def test_a_viewer_who_shares_a_stream_learns_what_came_of_it(
    chromium: Browser, server: Server, viewers: str, told: str,
) -> None:
    """Where viewers need an invitation, the address alone would lead the next person to a closed door."""
    with chromium.open(server.origin + "/healthz?quality=720#token=a.b.c") as page:
        page.evaluate(UNHEARD)
        assert page.evaluate("""async viewers => {
            const copied = [], said = [];
            globalThis.fetch = async () => new Response(JSON.stringify({viewers}));
            Object.defineProperty(navigator, 'clipboard', {value: {writeText: async text => void copied.push(text)}});
            const {audienceControls} = await import('/assets/widgets/audience-controls.js');
            const viewing = {video: null, state: 'live', isBlocked: false};
            const room = Object.assign(new EventTarget(), {viewing, title: 'Tea', say: text => said.push(text)});
            audienceControls.mount(room, document.body);
            document.querySelector('[aria-label=Share]').click();
            await turns();
            return [copied, said];
        }""", viewers) == [[server.origin + "/healthz"] if viewers == "public" else [], [told]]
