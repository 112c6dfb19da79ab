"""Who stays on the air on a network that loses answers: places that were taken, streams that ended, and people who left."""

from __future__ import annotations

import pytest

from clock import CLOCK
from drivers import Browser, Page
from server import Server
from test_modules import FAKE_SOCKETS
from test_page_connections import NO_CHANCE

#: A host whose peers connect and die when the test says so (`peers`), and a server that answers by `serve`: a status,
#: with what it says, or null where there is no network. `asked` are the requests, `problems` what the host is told.
HOST = """async () => {
    globalThis.peers = [];
    globalThis.RTCPeerConnection = class extends EventTarget {
        localDescription = null;
        remoteDescription = null;
        connectionState = 'new';
        signalingState = 'stable';
        constructor() { super(); peers.push(this); }
        createDataChannel() { return Object.assign(new EventTarget(), {readyState: 'connecting', send() {}}); }
        async createOffer() { return {type: 'offer', sdp: ''}; }
        async setLocalDescription(description) { this.localDescription = description; }
        async setRemoteDescription(description) { this.remoteDescription = description; }
        getTransceivers() { return []; }
        getSenders() { return []; }
        addTransceiver() { return {sender: {track: null, replaceTrack: async () => {}}, setCodecPreferences() {}}; }
        become(state) { this.connectionState = state; this.dispatchEvent(new Event('connectionstatechange')); }
        close() { this.connectionState = 'closed'; }
    };
    globalThis.asked = [];
    globalThis.stream = {state: 'live'};
    globalThis.offers = [];
    globalThis.session = 200;
    globalThis.serve = (method, path) => {
        if (method === 'POST') return offers.length ? offers.shift() : [201, {}];
        if (path.startsWith('/v1/streams/')) return [200, stream];
        return session === null ? null : [session, {}];
    };
    globalThis.fetch = async (address, {method = 'GET', signal} = {}) => {
        const {pathname} = new URL(address, location.href);
        asked.push(`${method} ${pathname}`);
        const answer = serve(method, pathname);
        signal?.throwIfAborted();
        if (answer === null) throw new TypeError('there is no network');
        const headers = {Location: `${location.origin}/sessions/${asked.length}`, 'Content-Type': 'application/problem+json'};
        const response = new Response(JSON.stringify(answer[1]), {status: answer[0], headers});
        return Object.defineProperty(response, 'url', {value: location.href});
    };
    const {keepToken} = await import('/assets/tokens.js');
    keepToken('s1', 'host', {token: 'mine', expiresAt: new Date(Date.now() + 3_600_000).toISOString()});
    const {OnAir} = await import('/assets/on-air.js');
    globalThis.problems = [];
    globalThis.room = Object.assign(new EventTarget(), {
        stream: 's1', tokenRole: 'host', query: new URLSearchParams(), isOpen: true, isHost: true, isOver: false,
        you: {id: 'ann'}, info: {state: 'live'}, ownClaims: {sub: 'ann', role: 'host'}, say() {},
        own: Object.assign(new EventTarget(), {
            source: {media: new MediaStream()}, simulcast: false, setProblem: ({title, text}) => problems.push([title, text]),
        }),
        sync: Object.assign(new EventTarget(), {interruptions: 0, firstNews: async () => {}}),
        api: {join: async () => void asked.push('join')},
    });
    globalThis.onAir = new OnAir(room);
    globalThis.rest = async milliseconds => {
        await passTime(milliseconds);
        for (let turn = 0; turn < 6; turn++) await settled();
        return onAir.connection.state;
    };
    globalThis.count = method => asked.filter(each => each.startsWith(method)).length;
}"""
#: The host is on the air, and then their session ends at once, as when someone takes their place.
LOSE = """async () => {
    onAir.start();
    await rest(0);
    peers[0].become('connected');
    const before = onAir.connection.state;
    peers[0].become('closed');
    return [before, onAir.connection.state];
}"""
ENDED = [409, {"rule": "ended", "detail": "The stream has ended."}]


@pytest.fixture
def page(chromium: Browser, server: Server):
    with chromium.open(server.origin + "/healthz", before_load=FAKE_SOCKETS) as page:
        page.evaluate(CLOCK)
        page.evaluate(NO_CHANCE)
        page.evaluate(HOST)
        yield page


@pytest.mark.parametrize("late", [None, 503], ids=["no network", "a busy server"])
def test_a_place_that_was_taken_is_not_taken_back_because_the_answer_came_late(page: Page, late: int | None) -> None:
    assert page.evaluate(LOSE) == ["connected", "retrying"]
    assert page.evaluate("""async late => {
        session = late;
        const before = [await rest(500), count('POST')];
        // Now it says that the session is gone, and the stream goes on.
        session = 404;
        const after = [await rest(10_000), count('POST')];
        return [before, after, problems.map(([title]) => title)];
    }""", late) == [["retrying", 1], ["failed", 1], ["Live from somewhere else"]]


def test_a_network_that_does_not_answer_takes_nobodys_place(page: Page) -> None:
    """It is the host's own session that the server still has."""
    assert page.evaluate(LOSE) == ["connected", "retrying"]
    assert page.evaluate("""async () => {
        session = null;
        await rest(500);
        session = 200;
        await rest(2_000);
        peers[1].become('connected');
        return [onAir.connection.state, count('POST'), problems];
    }""") == ["connected", 2, []]


def test_an_attempt_that_fails_after_the_answer_asks_it_no_more(page: Page) -> None:
    """The stream that goes on by then is the host's own."""
    assert page.evaluate(LOSE) == ["connected", "retrying"]
    assert page.evaluate("""async () => {
        session = 404;
        stream = {state: 'waiting'};
        offers.push(null);
        await rest(500);
        const before = count('POST');
        stream = {state: 'live'};
        await rest(2_000);
        peers.at(-1).become('connected');
        return [before, count('POST'), onAir.connection.state, problems];
    }""") == [2, 3, "connected", []]


def test_whoever_leaves_before_the_news_come_does_not_enter_the_stage(page: Page) -> None:
    assert page.evaluate("""async () => {
        let tell = null;
        room.isHost = false;
        room.sync.firstNews = () => new Promise(resolve => { tell = resolve; });
        onAir.start();
        await rest(0);
        onAir.stop();
        tell();
        await rest(0);
        const before = [...asked];
        room.sync.firstNews = async () => {};
        onAir.start();
        await rest(0);
        return [before, asked.includes('join'), count('POST')];
    }""") == [[], True, 1]


def test_a_session_that_is_there_after_its_host_has_left_is_nobodys(page: Page) -> None:
    assert page.evaluate("""async () => {
        const {prototype} = RTCPeerConnection;
        let answer = null;
        prototype.setRemoteDescription = () => new Promise(resolve => { answer = resolve; });
        onAir.start();
        await rest(0);
        onAir.stop();
        answer();
        await rest(0);
        return [onAir.session, onAir.stats, count('DELETE')];
    }""") == [None, None, 1]


def test_a_host_whose_offer_came_as_the_stream_ended_begins_it_anew(page: Page) -> None:
    """The host who was there has left; until the news come, the page takes itself for a guest."""
    assert page.evaluate("""async ended => {
        room.isHost = false;
        offers.push(ended);
        onAir.start();
        await rest(0);
        const before = [onAir.isOn, onAir.connection.state, problems.length];
        await rest(1_000);
        peers.at(-1).become('connected');
        return [before, onAir.connection.state, count('POST')];
    }""", ENDED) == [[True, "retrying", 0], "connected", 2]


@pytest.mark.parametrize(
    ("role", "is_over", "offers"), [("host", False, 2), ("host", True, 1), ("speaker", False, 1)],
    ids=["who tried again", "for good", "a speaker"])
def test_a_stream_that_has_ended_is_not_asked_for_without_end(page: Page, role: str, is_over: bool, offers: int) -> None:
    assert page.evaluate("""async (role, isOver, ended) => {
        Object.assign(room, {isHost: role === 'host', isOver, ownClaims: {sub: 'bob', role}});
        offers.push(ended, ended, ended);
        onAir.start();
        await rest(0);
        const state = await rest(20_000);
        return [state, onAir.isOn, count('POST'), problems];
    }""", role, is_over, ENDED) == [
        "failed", False, offers,
        [["The server didn’t accept the stream", "This stream has ended. Start a new one from the home page."]]]


def test_a_host_who_cannot_connect_is_told_why(page: Page) -> None:
    """It is tried again without end, and only the host can do anything about it."""
    assert page.evaluate("""async () => {
        offers.push(null, [503, {}]);
        const seen = [onAir.trouble];
        onAir.start();
        await rest(0);
        seen.push(onAir.trouble);
        while (offers.length) await rest(100);
        seen.push(onAir.trouble);
        // The server takes the next one, but no media gets through.
        while (peers.length < 3) await rest(100);
        seen.push(onAir.trouble);
        await rest(30_000);
        seen.push(onAir.trouble);
        peers.at(-1).become('connected');
        return [...seen, onAir.trouble, onAir.connection.state, problems];
    }""") == [None, "server", "busy", None, "blocked", None, "connected", []]
