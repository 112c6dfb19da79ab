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


def test_the_socket_shows_the_token_that_an_app_gives(page: Page) -> None:
    page.evaluate("""async () => {
        const {StoryFeed} = await import('/assets/story-feed.js');
        globalThis.feed = new StoryFeed({withToken: action => action('from the app')});
        feed.play();
    }""")
    page.wait_for("() => sockets.length === 1", what="it follows")
    # A socket of this page is never closed to what is sent, so something may have come before it opened.
    first = page.evaluate("""() => {
        sockets[0].sent.length = 0;
        sockets[0].dispatchEvent(new Event('open'));
        return sockets[0].sent[0];
    }""")
    assert first == {"type": "token", "token": "from the app"}


def test_a_page_of_the_list_that_never_comes_is_asked_for_again(page: Page) -> None:
    page.evaluate("""() => {
        // The pause before it is asked for again is short here.
        const set = setTimeout;
        globalThis.setTimeout = (action, time, ...given) => set(action, time === 2_000 ? 20 : time, ...given);
        globalThis.limits = new Map();
        AbortSignal.timeout = limit => {
            const end = new AbortController();
            limits.set(end.signal, {limit, end});
            return end.signal;
        };
        const go = fetch;
        globalThis.hung = null;
        globalThis.fetch = (address, how = {}) => {
            if (hung || new URL(address, location.href).pathname !== '/v1/feed') return go(address, how);
            hung = how.signal;
            return new Promise((resolve, refuse) => hung.addEventListener('abort', () => refuse(hung.reason)));
        };
    }""")
    page.evaluate(BEGIN, {})
    page.wait_for("() => hung !== null", what="the list is asked for")
    assert page.evaluate("() => [limits.get(hung).limit, feed.stories.length]") == [10_000, 0]
    page.evaluate("() => limits.get(hung).end.abort(new DOMException('too late', 'TimeoutError'))")
    page.wait_for("() => feed.stories.length === 4", what="it is read after all")


#: A feed's news behind a network that is gone, whose pauses end at once: `waits` are how long they would have been.
NO_LIST = """async () => {
    const {FeedNews} = await import('/assets/feed/news.js');
    const set = setTimeout;
    globalThis.waits = [];
    globalThis.setTimeout = (action, time, ...given) => {
        waits.push(time);
        return set(action, 0, ...given);
    };
    globalThis.isThere = false;
    const go = fetch;
    globalThis.fetch = (...request) => isThere ? go(...request) : Promise.reject(new TypeError('there is no network'));
    globalThis.news = new FeedNews(location.origin, action => action(null), () => null);
}"""


def test_a_list_that_cannot_be_had_is_asked_for_ever_less_often(page: Page) -> None:
    page.evaluate(NO_LIST)
    page.evaluate("() => news.start()")
    page.wait_for("() => waits.filter(wait => wait !== 15_000).length >= 6", what="it is asked for again")
    # The socket has a limit of its own.
    assert page.evaluate("() => { news.stop(); return waits.filter(wait => wait !== 15_000).slice(0, 6); }") == [
        2_000, 4_000, 8_000, 16_000, 32_000, 32_000]


def test_a_linked_story_of_which_nobody_tells_is_asked_for_ever_less_often(page: Page) -> None:
    page.evaluate(NO_LIST)
    page.evaluate("""async () => {
        const {Wish} = await import('/assets/feed/wish.js');
        globalThis.wish = new Wish('s9', news);
        wish.look();
    }""")
    page.wait_for("() => waits.length >= 6", what="it is asked for again")
    assert page.evaluate("() => { wish.rest(); return waits.slice(0, 6); }") == [
        2_000, 4_000, 8_000, 16_000, 32_000, 32_000]


def test_news_of_the_socket_end_the_pause_of_the_list(page: Page) -> None:
    page.evaluate(NO_LIST)
    page.evaluate("""() => {
        // This time pauses do not end by themselves.
        globalThis.setTimeout = () => 1;
        news.start();
    }""")
    page.wait_for("() => sockets.length === 1", what="it follows")
    assert page.evaluate("""async () => {
        isThere = true;
        requests.length = 0;
        await news.read();
        const before = [...requests];
        sockets[0].say({type: 'snapshot', items: [{id: 's1'}], count: 1});
        await news.read();
        return [before, requests];
    }""") == [[], ["GET /v1/feed?limit=20"]]
