"""Answers that get lost, come late or were asked for twice: what pages say and do then."""

from __future__ import annotations

import pytest

from clock import CLOCK
from drivers import Browser, Page
from server import Server
from test_modules import FAKE_SOCKETS
from test_page_connections import JOINING
from test_page_widgets import AUDIENCE, NOT_THERE, UNHEARD


@pytest.fixture
def page(chromium: Browser, server: Server):
    with chromium.open(server.origin + "/healthz", before_load=FAKE_SOCKETS) as page:
        page.evaluate(UNHEARD)
        yield page


# Another link, opened in the same tab: the page stays, because only what is behind the # differs.


#: Opens links; `answers` are what the server says to invitations, each once it is there.
LINKS = """() => {
    const part = btoa(JSON.stringify({use: 'invitation', stream: 's1', role: 'viewer'}));
    globalThis.invitation = name => `x.${part}.${name}`;
    globalThis.open = token => history.replaceState(null, '', token ? `#token=${token}` : location.pathname);
    globalThis.answers = [];
    globalThis.fetch = async () => await answers.shift();
    const expiresAt = new Date(Date.now() + 3_600_000).toISOString();
    globalThis.given = token => new Response(JSON.stringify({token, expiresAt}), {status: 201});
}"""


def test_what_became_of_one_link_says_nothing_of_the_next(page: Page) -> None:
    page.evaluate(LINKS)
    assert page.evaluate("""async () => {
        const {deathOfLink, ensureToken} = await import('/assets/tokens.js');
        const seen = [];
        answers.push(new Response('{}', {status: 401}));
        open(invitation('old'));
        seen.push(await ensureToken('s1', 'viewer'), deathOfLink());
        // A host's own link, and the address without any: neither is exchanged, so nothing else would tell.
        for (const token of ['mine', '']) {
            open(token);
            seen.push(deathOfLink());
        }
        open(invitation('old'));
        return [...seen, deathOfLink()];
    }""") == [None, "expired", None, None, "expired"]


def test_a_link_gets_a_token_of_its_own_while_another_waits_for_one(page: Page) -> None:
    page.evaluate(LINKS)
    assert page.evaluate("""async () => {
        const {ensureToken, knownToken} = await import('/assets/tokens.js');
        let answerLate = null;
        answers.push(new Promise(resolve => { answerLate = resolve; }), given('second'));
        open(invitation('first'));
        const first = ensureToken('s1', 'viewer');
        open(invitation('second'));
        const second = ensureToken('s1', 'viewer');
        await turns();
        answerLate(given('first'));
        await first;
        return [await second, knownToken('s1', 'viewer')];
    }""") == ["second", "second"]
