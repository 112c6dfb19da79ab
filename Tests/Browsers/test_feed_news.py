"""How the feed hears of stories that it has not read of, and how it tells which ones it has."""

from __future__ import annotations

import pytest

from drivers import Browser, Page
from server import Server
from test_feed_modules import BEGIN, STAND_INS


@pytest.fixture
def page(chromium: Browser, server: Server):
    with chromium.open(server.origin + "/healthz") as page:
        page.evaluate(STAND_INS)
        yield page


def test_a_story_that_is_missing_begins_wherever_it_stands_in_the_list(page: Page) -> None:
    # More of them than a viewer who is nowhere yet needs to have read, and another page of the list.
    page.evaluate("""() => {
        live = Array.from({length: 8}, (_, index) => `s${index + 1}`);
        const go = fetch;
        globalThis.fetch = async (address, how) => {
            const response = await go(address, how);
            if (new URL(address, location.href).pathname !== '/v1/feed') return response;
            return new Response(JSON.stringify({...await response.json(), last: false}));
        };
    }""")
    page.evaluate(BEGIN, {"stream": "s9"})
    page.wait_for("() => feed.state === 'missing' && feed.stories.length === 8", what="it is missing in what is read")
    assert page.evaluate("""() => {
        // Behind one that was not read.
        sockets[0].say({type: 'change', version: 2, added: [{item: {id: 's10'}, after: 's42'}]});
        return [feed.state, feed.current, feed.stories.some(({id}) => id === 's10'), turns];
    }""") == ["missing", None, False, []], "what was not wished for comes with its page"
    assert page.evaluate("""() => {
        requests.length = 0;
        sockets[0].say({type: 'change', version: 3, added: [{item: {id: 's9', title: 'Back'}, after: 's42'}]});
        return [feed.current?.title ?? null, feed.missing, feed.state, turns];
    }""") == ["Back", None, "connecting", [" s9 forward jump"]]
    page.wait_for("() => requests.some(request => request.startsWith('POST'))", what="a connection for it")
    assert page.evaluate("() => requests.filter(request => request.startsWith('POST')).at(-1)") == (
        "POST /v1/feed/sessions?stream=s9&preload=eager")


def test_many_names_are_told_in_messages_that_the_server_takes(page: Page) -> None:
    page.evaluate("""async () => {
        const {FeedFollower} = await import('/assets/feed/follower.js');
        globalThis.follower = new FeedFollower(location.origin, () => null);
        follower.start();
    }""")
    page.wait_for("() => sockets.length === 1", what="it follows")
    told = page.evaluate("""() => {
        // The longest, and as many as are watched at once.
        const names = Array.from({length: 500}, (_, index) => String(index).padStart(64, 'n'));
        const [socket] = sockets;
        const read = () => {
            const messages = socket.sent.splice(0);
            return {
                longest: Math.max(...messages.map(message => new Blob([JSON.stringify(message)]).size)),
                types: [...new Set(messages.map(({type}) => type))],
                isAll: messages.flatMap(({streams}) => streams).join() === names.join(),
            };
        };
        follower.watch(names);
        const first = read();
        // Another socket is told of all of them again.
        socket.dispatchEvent(new Event('open'));
        return [first, read()];
    }""")
    for messages in told:
        assert messages["longest"] <= 16_384
        assert messages["types"] == ["watch"] and messages["isAll"]
