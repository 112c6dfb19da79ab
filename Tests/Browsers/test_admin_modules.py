"""The admin page part by part, with a server that the test plays: what keys reach, and what is said and read aloud."""

from __future__ import annotations

import pytest

from clock import CLOCK
from drivers import Browser, Page
from server import Server
from test_page_widgets import NOT_THERE

#: The panel of a session, open, and how the server describes that; `look` asks again.
DOSSIER = """async () => {
    document.body.innerHTML = `<style>.table { width: 60px; overflow-x: auto; white-space: nowrap; }</style>
        <dialog id="dossier"></dialog>`;
    const layer = {
        rid: null, active: true, bitrate: 1000, width: null, height: null, lost: 0, expected: 1, missing: 0,
        jitterSeconds: 0.001, keyFrames: 0, keyFrameRequests: 0,
    };
    globalThis.dossier = {
        id: 'x1', state: 'connected', stream: 'talk', participant: null, name: null, purpose: 'publish', worker: 0,
        since: '2030-01-01T00:00:00Z', endedAt: null, mediaAddress: null, loss: null, quality: null, receiving: [],
        phases: {answer: 0.1, check: null, dtls: null, media: null},
        publishing: [{mid: '0', kind: 'audio', layers: [layer]}],
        clientAddress: null, localAddresses: [], srtp: null, events: [], eventsDropped: 0, offer: 'v=0', answer: 'v=0',
        pairs: [{address: '192.0.2.1:1', protocol: 'udp', selected: true, quietSeconds: 1}],
    };
    globalThis.change = async () => { layer.bitrate += 1000; await panel.refresh(); };
    globalThis.fetch = async () => new Response(JSON.stringify(dossier));
    const {keep} = await import('/assets/admin/access.js');
    keep('mine');
    const {DossierPanel} = await import('/assets/admin/dossier.js');
    globalThis.panel = new DossierPanel(async () => {}, () => {});
    await panel.open('x1');
    globalThis.find = selector => document.querySelector(`#dossier ${selector}`);
}"""


@pytest.fixture
def panel(chromium: Browser, server: Server):
    with chromium.open(server.origin + "/healthz") as page:
        page.evaluate(DOSSIER)
        yield page


def test_tables_of_a_session_can_be_scrolled_by_keys(panel: Page) -> None:
    assert panel.evaluate("""() => [...document.querySelectorAll('.table, .events')]
        .map(({role, tabIndex, ariaLabel}) => [role, tabIndex, ariaLabel])""") == [
        ["region", 0, "Publishing"], ["region", 0, "Addresses"], [None, 0, "Events"]]


def test_numbers_that_change_take_nobodys_place(panel: Page) -> None:
    """A live session has other numbers with each look, every two seconds."""
    assert panel.evaluate("""async () => {
        const summary = find('[data-name=offer] summary');
        summary.parentElement.open = true;
        summary.focus();
        await change();
        const seen = [document.activeElement === summary, summary.parentElement.open];
        const table = find('[aria-label=Publishing]');
        table.focus();
        table.scrollLeft = 20;
        await change();
        const {activeElement: now} = document;
        return [...seen, now !== table, now.ariaLabel, now.scrollLeft, now.textContent.includes('3 kbit/s')];
    }""") == [True, True, True, "Publishing", 20, True]


def test_what_takes_the_place_of_something_else_takes_over_its_focus(panel: Page) -> None:
    assert panel.evaluate("""async () => {
        const summary = find('[data-name=offer] summary');
        summary.parentElement.open = true;
        summary.focus();
        dossier.offer = 'v=1';
        await change();
        const {activeElement: now} = document;
        const seen = [now.textContent, now.parentElement.open, find('[data-name=offer] pre').textContent];
        find('[aria-label=Publishing]').focus();
        dossier.publishing = [];
        await change();
        const titles = [...document.querySelectorAll('#dossier h3')].map(({textContent}) => textContent);
        return [...seen, document.activeElement.id, titles];
    }""") == [
        "Offer", True, "v=1", "dossier-title", ["Joining, from the offer", "Loss", "Addresses", "Events, newest first"]]


#: A server that refuses the token that the tab has, until the test says otherwise by `serve`.
DESK = """() => {
    sessionStorage.setItem('rostrum:token:admin', 'mine');
    globalThis.asked = 0;
    globalThis.serve = () => new Response('{"detail": "The token has expired."}', {status: 401});
    globalThis.fetch = async (address, how) => {
        const {pathname} = new URL(address, location.href);
        if (pathname === '/v1/server') return new Response('{"development": false}');
        asked++;
        return serve(pathname, how);
    };
    globalThis.$ = id => document.getElementById(id);
}"""


def test_whoever_fetches_a_token_elsewhere_is_told_nothing(chromium: Browser, server: Server) -> None:
    with chromium.open(server.origin + "/admin", before_load=DESK) as page:
        page.wait_for("() => document.body.dataset.state === 'locked'", what="it asks for a token")
        assert page.evaluate("""async () => {
            const before = asked;
            document.dispatchEvent(new Event('visibilitychange'));
            for (let turn = 0; turn < 5; turn++) await new Promise(done => setTimeout(done));
            return [asked - before, $('entrance-reason').textContent];
        }""") == [0, ""]
        page.evaluate("() => { $('token').value = 'another'; $('entrance').requestSubmit(); }")
        page.wait_for("() => $('entrance-reason').textContent === 'The token has expired.'", what="that one is refused")


def test_nothing_covers_the_form_for_a_token(chromium: Browser, server: Server) -> None:
    with chromium.open(server.origin + "/admin", before_load=DESK) as page:
        page.wait_for("() => document.body.dataset.state === 'locked'", what="it asks for a token")
        page.evaluate("""async () => {
            const {ask} = await import('/assets/dialog.js');
            ask({name: 'test', title: 'Really?', choices: [{value: 'no', label: 'No'}]});
            location.hash = '#token=another';
        }""")
        page.wait_for("() => $('entrance-reason').textContent !== ''", what="that one is refused")
        assert page.evaluate("() => [document.querySelector('dialog[open]') === null, document.activeElement.id]") == [
            True, "token"]


#: A desk with two streams, once the test has signed in; `rows` are their names.
STREAMS = """() => {
    globalThis.rows = ['tea', 'quiz'];
    const named = id => ({id, title: null, state: 'live', host: null, viewers: 0});
    serve = path => new Response(JSON.stringify(
        path === '/v1/streams' ? {streams: rows.map(named), total: rows.length, next: null}
        : path === '/v1/sessions' ? {sessions: [], total: 0, next: null}
        : {time: '2030-01-01T00:00:00Z', seconds: 1, process: {startedAt: null}, workers: []}));
    $('token').value = 'good';
    $('token').focus();
    $('entrance').requestSubmit();
}"""


def test_a_row_that_goes_leaves_the_focus_in_the_list(chromium: Browser, server: Server) -> None:
    """Whoever ends one stream after the other by keys begins anew with none of them."""
    with chromium.open(server.origin + "/admin", before_load=DESK) as page:
        page.wait_for("() => document.body.dataset.state === 'locked'", what="it asks for a token")
        page.evaluate(STREAMS)
        page.wait_for("() => $('streams').children.length === 2", what="the streams are listed")
        # Not at the first link after the form, which is the last one of the page.
        assert page.evaluate("() => document.activeElement.id") == "main"
        page.evaluate("""() => {
            document.querySelector('#streams .danger').focus();
            rows.shift();
            $('streams-state').dispatchEvent(new Event('change'));
        }""")
        page.wait_for("() => $('streams').children.length === 1", what="one of them has ended")
        assert page.evaluate("() => document.activeElement.closest('tr')?.dataset.key") == "quiz"


def test_the_same_words_are_read_aloud_again(chromium: Browser, server: Server) -> None:
    with chromium.open(server.origin + "/admin", before_load=f"() => {{ ({CLOCK})(); ({DESK})(); }}") as page:
        page.wait_for("() => document.body.dataset.state === 'locked'", what="it asks for a token")
        assert page.evaluate("""async () => {
            const stream = {id: 'tea', title: 'Tea', state: 'live', host: null, viewers: 0};
            const answers = {
                '/v1/admin/statistics': {
                    time: '2030-01-01T00:00:00Z', seconds: 1, process: {startedAt: null}, workers: [],
                },
                '/v1/streams': {streams: [stream], total: 1, next: null},
                '/v1/sessions': {sessions: [], total: 0, next: null},
            };
            serve = path => {
                if (!answers[path]) throw new TypeError('there is no network');
                return new Response(JSON.stringify(answers[path]));
            };
            const turn = async () => { for (let count = 0; count < 9; count++) await settled(); };
            $('token').value = 'good';
            $('entrance').requestSubmit();
            await turn();
            const seen = [];
            for (let time = 0; time < 2; time++) {
                document.querySelector('#streams .deeds button').click();
                await turn();
                seen.push($('toast').textContent);
                await passTime(6_000);
                seen.push($('toast').textContent);
            }
            return seen;
        }""") == [NOT_THERE, "", NOT_THERE, ""]
