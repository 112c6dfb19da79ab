"""How pages keep their connections: sockets, tokens and sessions, on networks and servers that come and go."""

from __future__ import annotations

import pytest

from clock import CLOCK
from drivers import Browser, Page
from server import Server
from test_modules import FAKE_SOCKETS

#: As long as pauses are without the part that is left to chance.
NO_CHANCE = "() => { Math.random = () => 0.5; }"


@pytest.fixture
def page(chromium: Browser, server: Server):
    """A page without a network, whose sockets and time are the test's."""
    with chromium.open(server.origin + "/healthz", before_load=FAKE_SOCKETS) as page:
        page.evaluate(CLOCK)
        page.evaluate(NO_CHANCE)
        yield page


def test_a_handshake_that_nobody_answers_is_given_up(page: Page) -> None:
    seen = page.evaluate("""async () => {
        globalThis.WebSocket = class extends WebSocket { readyState = 0; };
        const {ReconnectingSocket} = await import('/assets/reconnecting-socket.js');
        const socket = new ReconnectingSocket(() => new URL('/v1/feed/sync', location.href), () => null);
        let lost = 0;
        socket.addEventListener('lost', () => { lost++; });
        socket.start();
        const seen = [];
        const look = () => seen.push([sockets.length, lost]);
        await passTime(14_000);
        look();
        await passTime(2_000);
        look();
        // One that opens is left alone.
        sockets[1].open();
        await passTime(15_000);
        look();
        return seen;
    }""")
    assert seen == [[1, 0], [2, 1], [2, 1]]


def test_a_token_that_cannot_be_had_yet_is_asked_for_again(page: Page) -> None:
    """A socket without one would be refused where viewers need a token, and that is for good."""
    told = page.evaluate("""async () => {
        const {StreamSync} = await import('/assets/sync.js');
        const unheard = [];
        addEventListener('unhandledrejection', ({reason}) => unheard.push(String(reason)));
        let isThere = false;
        const sync = new StreamSync('s1', async () => {
            if (!isThere) throw new TypeError('there is no network');
            return 'a token';
        });
        await passTime(600);
        const before = [sockets.length, sync.isWanted];
        isThere = true;
        await passTime(1_000);
        sockets[0].open();
        return {before, sent: sockets.map(({sent}) => sent.map(text => JSON.parse(text))), unheard};
    }""")
    assert told == {"before": [0, True], "sent": [[{"type": "token", "token": "a token"}]], "unheard": []}


def test_a_server_that_closes_what_it_accepts_is_tried_ever_less_often(page: Page) -> None:
    pauses = page.evaluate("""async () => {
        const made = [];
        globalThis.WebSocket = class extends WebSocket {
            constructor(address) { super(address); made.push(performance.now()); }
        };
        const {ReconnectingSocket} = await import('/assets/reconnecting-socket.js');
        new ReconnectingSocket(() => new URL('/v1/feed/sync', location.href), () => null).start();
        await passTime(0);
        const pauses = [];
        for (const says of [false, false, false, false, true]) {
            const socket = sockets.at(-1), lostAt = performance.now();
            socket.open();
            if (says) socket.say({type: 'snapshot'});
            socket.lose(1013, 'unavailable');
            await passTime(20_000);
            pauses.push(made.at(-1) - lostAt);
        }
        return pauses;
    }""")
    assert pauses == [500, 1_000, 2_000, 4_000, 500]


def test_a_socket_that_a_page_may_not_open_is_tried_again(page: Page) -> None:
    """A page over HTTPS that is told of a server without TLS: its browser throws instead of connecting."""
    told = page.evaluate("""async () => {
        const unheard = [];
        addEventListener('unhandledrejection', ({reason}) => unheard.push(String(reason)));
        let isAllowed = false;
        globalThis.WebSocket = class extends WebSocket {
            constructor(address) {
                if (!isAllowed) throw new DOMException('mixed content', 'SecurityError');
                super(address);
            }
        };
        const {ReconnectingSocket} = await import('/assets/reconnecting-socket.js');
        new ReconnectingSocket(() => new URL('/v1/feed/sync', location.href), () => null).start();
        await passTime(600);
        const before = sockets.length;
        isAllowed = true;
        await passTime(1_000);
        return [before, sockets.length, unheard];
    }""")
    assert told == [0, 1, []]


#: Opens the page with an invitation; `answers` are what the server says to it, and `limits` how long that may take.
INVITED = """() => {
    const part = btoa(JSON.stringify({use: 'invitation', stream: 's1', role: 'viewer'}));
    history.replaceState(null, '', `#token=x.${part}.y`);
    globalThis.limits = [];
    AbortSignal.timeout = limit => {
        limits.push(limit);
        return new AbortController().signal;
    };
    globalThis.answers = [];
    globalThis.fetch = async () => answers.shift()();
}"""


def test_an_invitation_is_presented_again_to_a_server_that_was_busy(page: Page) -> None:
    page.evaluate(INVITED)
    told = page.evaluate("""async () => {
        const {ensureToken, deathOfLink} = await import('/assets/tokens.js');
        const problem = {status: 503, title: 'Service Unavailable', detail: 'The server is starting.'};
        const expiresAt = new Date(Date.now() + 3_600_000).toISOString();
        const headers = {'Content-Type': 'application/problem+json'};
        answers.push(
            () => new Response(JSON.stringify(problem), {status: 503, headers}),
            () => { throw new TypeError('there is no network'); },
            () => new Response(JSON.stringify({token: 'mine', expiresAt}), {status: 201}));
        const ask = () => ensureToken('s1', 'viewer').catch(error => error.message);
        return [await ask(), await ask(), await ask(), deathOfLink(), limits];
    }""")
    assert told == ["The server is starting.", "there is no network", "mine", None, [10_000] * 3]


def test_who_has_no_token_is_told_apart_from_who_may_have_one_later(page: Page) -> None:
    page.evaluate(INVITED)
    told = page.evaluate("""async () => {
        const {ensureToken, deathOfLink} = await import('/assets/tokens.js');
        answers.push(() => new Response('{"rule": "link-revoked"}', {status: 403}));
        return [await ensureToken('s1', 'viewer'), deathOfLink()];
    }""")
    assert told == [None, "revoked"]


def test_pages_work_where_the_browser_keeps_nothing(page: Page) -> None:
    """With cookies blocked, or in a frame with a sandbox, the mere mention of a storage throws."""
    told = page.evaluate("""async () => {
        for (const name of ['sessionStorage', 'localStorage']) {
            Object.defineProperty(globalThis, name, {get() { throw new DOMException('blocked', 'SecurityError'); }});
        }
        const {keepToken, knownToken} = await import('/assets/tokens.js');
        const {PictureChoice} = await import('/assets/picture-choice.js');
        const {keepName, ownName} = await import('/assets/person.js');
        const none = [knownToken('s1', 'viewer'), ownName(), new PictureChoice().name];
        keepToken('s1', 'viewer', {token: 'mine', expiresAt: new Date(Date.now() + 3_600_000).toISOString()});
        keepName(' Ann ');
        new PictureChoice().choose('low');
        const kept = [knownToken('s1', 'viewer'), ownName(), new PictureChoice().name];
        keepName('');
        return [none, kept, ownName()];
    }""")
    assert told == [[None, "", "auto"], ["mine", "Ann", "low"], ""]


def test_a_session_is_replaced_only_if_the_server_says_that_it_is_gone(page: Page) -> None:
    told = page.evaluate("""async () => {
        const {Persistent} = await import('/assets/persistent.js');
        let answer = null, opened = 0;
        const shown = new Set();
        globalThis.fetch = async (address, {headers}) => {
            shown.add(headers.Authorization);
            if (answer === null) throw new TypeError('there is no network');
            return new Response(null, {status: answer});
        };
        const connection = new Persistent(async () => {
            opened++;
            const session = Object.assign(new EventTarget(), {
                state: 'connected', resource: 'https://host/whep/s1/1', options: {token: 'mine'}, close() {},
                abandon() { session.state = 'lost'; session.dispatchEvent(new Event('statechange')); },
            });
            return session;
        });
        connection.start();
        await settled();
        const states = [];
        for (answer of [null, 200, 429, 503, 404]) {
            await connection.recheck();
            states.push(connection.state);
        }
        // Without one it is opened at once.
        await connection.recheck();
        await settled();
        return {states, opened, state: connection.state, shown: [...shown]};
    }""")
    assert told == {
        "states": ["connected", "connected", "connected", "connected", "retrying"], "opened": 2, "state": "connected",
        "shown": ["Bearer mine"],
    }


def test_a_session_that_is_closed_before_its_answer_is_ended_on_the_server(page: Page) -> None:
    told = page.evaluate("""async () => {
        const {MediaSession} = await import('/assets/session.js');
        const url = new URL('/whep/x', location.href).href, asked = [];
        let answer = null;
        globalThis.fetch = (resource, {method}) => {
            asked.push(method);
            if (method !== 'POST') return Promise.resolve(new Response(null));
            return new Promise(resolve => { answer = resolve; });
        };
        class Peer extends EventTarget {
            connectionState = 'new';
            getTransceivers() { return []; }
            async createOffer() { return {type: 'offer', sdp: 'v=0'}; }
            async setLocalDescription(description) { this.localDescription = description; }
            async setRemoteDescription() { if (this.isClosed) throw new DOMException('closed', 'InvalidStateError'); }
            close() { this.isClosed = true; }
        }
        const session = new MediaSession(new Peer(), {endpoint: url});
        const opened = session.open().catch(error => error.name);
        await settled();
        session.close();
        const response = new Response('v=0', {status: 201, headers: {Location: '/whep/x/1', ETag: '"1"'}});
        answer(Object.defineProperty(response, 'url', {value: url}));
        const end = await opened;
        session.close();
        return [end, asked, session.state];
    }""")
    assert told == ["InvalidStateError", ["POST", "DELETE"], "closed"]


def test_who_keeps_the_last_picture_hears_of_a_sessions_end_before_its_tracks_end(page: Page) -> None:
    """Where a track has ended browsers show black, at once on a busy machine."""
    told = page.evaluate("""async () => {
        const {MediaSession} = await import('/assets/session.js');
        const told = [];
        class Peer extends EventTarget {
            connectionState = 'connected';
            getTransceivers() { return []; }
            close() { told.push('ended'); }
        }
        for (const end of [session => session.abandon(), session => session.close()]) {
            const session = new MediaSession(new Peer(), {endpoint: location.href});
            session.addEventListener('statechange', () => told.push(session.state));
            end(session);
        }
        return told;
    }""")
    assert told == ["lost", "ended", "closed", "ended"]


def test_a_server_that_says_nothing_of_itself_is_asked_ever_less_often(page: Page) -> None:
    told = page.evaluate("""async () => {
        const {toldByServer} = await import('/assets/server.js');
        let isThere = false;
        const times = [];
        globalThis.fetch = async () => {
            times.push(performance.now());
            if (!isThere) throw new TypeError('there is no network');
            return new Response('{"rtmp": true}');
        };
        const about = toldByServer();
        await passTime(60_000);
        isThere = true;
        await passTime(10_000);
        return [times, (await about).rtmp];
    }""")
    assert told == [[0, 2_000, 6_000, 14_000, 30_000, 62_000], True]


def test_the_guides_example_stops_also_while_it_waits(page: Page) -> None:
    made = page.evaluate("""async () => {
        const made = [];
        globalThis.WebSocket = class {
            static OPEN = 1;
            constructor() { made.push(this); }
            send() {}
            close() {}
        };
        const {follow} = await import('/assets/docs/examples/follow.js');
        const stop = follow(location.origin, 's1', null, () => {});
        made[0].onclose({code: 1006});
        await passTime(1_000);
        const before = made.length;
        made[1].onclose({code: 1006});
        stop();
        await passTime(10_000);
        return [before, made.length, timers()];
    }""")
    assert made == [2, 2, 0]


def test_the_connection_test_shows_no_token_in_an_address(page: Page) -> None:
    told = page.evaluate("""async () => {
        history.replaceState(null, '', '#token=abc');
        globalThis.RTCPeerConnection = undefined;
        globalThis.fetch = async () => new Response('{"hls": false}');
        const {tryAll} = await import('/assets/check/ways.js');
        const found = tryAll(() => {});
        while (!globalThis.sockets.length) await settled();
        sockets[0].open();
        sockets[0].say({type: 'snapshot'});
        await found;
        return [sockets[0].address.search, sockets[0].sent.map(text => JSON.parse(text))];
    }""")
    assert told == ["?authenticate=message", [{"type": "token", "token": "abc"}]]


#: A viewer of a live stream, whose sessions never open: `asked` counts them.
VIEWING = """async () => {
    const {Viewing} = await import('/assets/viewing.js');
    const {PictureChoice} = await import('/assets/picture-choice.js');
    globalThis.asked = 0;
    const told = {stream: {state: 'live'}, refusal: null, isShut: false, isOpen: true};
    const sync = Object.assign(new EventTarget(), told);
    globalThis.viewing = new Viewing({
        sync, endpoint: '/whep/s1', hls: '/hls/s1/', codec: null, hasToken: false, isLinkDead: false,
        withToken: () => { asked++; return new Promise(() => {}); },
    }, new PictureChoice(null));
}"""


def test_who_was_sent_away_opens_no_session(page: Page) -> None:
    page.evaluate(VIEWING)
    assert page.evaluate("""() => {
        viewing.sync.refusal = 'removed';
        viewing.attach(document.createElement('video'));
        const before = asked;
        viewing.sync.refusal = null;
        viewing.goLive();
        return [before, asked];
    }""") == [0, 1]


def test_a_token_that_comes_while_a_session_is_asked_for_is_presented(page: Page) -> None:
    """The request that is on its way would be refused, with nothing to tell the viewer that they have paid."""
    page.evaluate(VIEWING)
    assert page.evaluate("""async () => {
        viewing.attach(document.createElement('video'));
        const seen = [asked, viewing.connection.state];
        await viewing.showToken();
        seen.push(asked, viewing.connection.state);
        // Nobody watches.
        viewing.leave();
        await viewing.showToken();
        return [...seen, asked, viewing.connection.state];
    }""") == [1, "connecting", 2, "connecting", 2, "closed"]


def test_numbers_of_a_session_that_ended_meanwhile_are_nobodys(page: Page) -> None:
    page.evaluate(VIEWING)
    assert page.evaluate("""async () => {
        let answer = null;
        viewing.attach(document.createElement('video'));
        viewing.connection.state = 'connected';
        viewing.stats = {read: () => new Promise(resolve => { answer = resolve; })};
        await passTime(1_000);
        const wasAsked = answer !== null;
        // The viewer goes back in the stream.
        viewing.leave();
        answer({frames: 9, bytes: 90_000, videoPackets: 90, lost: 0, height: 720});
        await settled();
        return [wasAsked, viewing.numbers, viewing.state === 'live'];
    }""") == [True, None, False]


def test_a_page_that_comes_back_asks_for_nothing_that_was_refused(
    chromium: Browser, server: Server, stream: str
) -> None:
    with chromium.open(f"{server.origin}/watch/{stream}") as page:
        page.wait_for("() => rostrum.room.viewing.video && rostrum.sync.isOpen", what="the page follows the stream")
        come_back = """() => {
            dispatchEvent(new PageTransitionEvent('pagehide', {persisted: true}));
            dispatchEvent(new PageTransitionEvent('pageshow', {persisted: true}));
            return rostrum.connection.state;
        }"""
        assert page.evaluate(come_back) == "connecting"
        page.evaluate("() => rostrum.sync.refuse('removed')")
        assert page.evaluate(come_back) == "closed"


#: A viewer of the feed who raises a hand in a story, and what they are told.
JOINING = """async () => {
    const {keepToken} = await import('/assets/tokens.js');
    keepToken('s1', 'viewer', {token: 'mine', expiresAt: new Date(Date.now() + 3_600_000).toISOString()});
    const {Joining} = await import('/assets/feed/join.js');
    globalThis.joining = new Joining();
    globalThis.said = [];
    joining.addEventListener('say', ({detail}) => said.push(detail));
    globalThis.story = {id: 's1', hostName: 'Ann', title: 'Tea'};
    // A dialog tells of its end with the next picture.
    globalThis.rest = async () => {
        await new Promise(requestAnimationFrame);
        for (let turn = 0; turn < 6; turn++) await settled();
    };
    globalThis.hear = async isUp => {
        sockets.at(-1).open();
        sockets.at(-1).say({type: 'snapshot', version: 1, stream: {id: 's1', state: 'live'}});
        sockets.at(-1).say({type: 'you', you: {id: 'bob', role: 'viewer', handRaised: isUp, invited: false}});
        await rest();
    };
    globalThis.raise = async () => {
        joining.press(story);
        document.querySelector('dialog[data-name=join] [data-value=yes]').click();
        await rest();
    };
    // With a server that answers, unlike the one before and after.
    globalThis.raiseAndHear = async () => {
        const lost = fetch;
        globalThis.fetch = async () => new Response('{}');
        await raise();
        await hear(true);
        globalThis.fetch = lost;
    };
}"""


def test_a_hand_whose_answer_got_lost_is_as_the_server_says(page: Page) -> None:
    page.evaluate(JOINING)
    assert page.evaluate("""async () => {
        await raise();
        const before = [joining.stateIn('s1'), [...said]];
        await hear(true);
        return [before, joining.stateIn('s1')];
    }""") == [["down", ["The server isn’t responding. Try again in a moment."]], "raised"]


def test_a_hand_that_could_not_be_lowered_is_still_up(page: Page) -> None:
    page.evaluate(JOINING)
    assert page.evaluate("""async () => {
        await raiseAndHear();
        const before = joining.stateIn('s1');
        joining.press(story);
        const meanwhile = joining.stateIn('s1');
        await rest();
        await hear(true);
        const after = joining.stateIn('s1');
        // What the server refuses, such as a hand that it no longer knows, is over.
        globalThis.fetch = async () => new Response(null, {status: 404});
        joining.press(story);
        await rest();
        return [before, meanwhile, after, joining.stateIn('s1'), said.length];
    }""") == ["raised", "down", "raised", "down", 2]


def test_a_hand_that_could_not_be_lowered_is_not_raised_elsewhere(page: Page) -> None:
    page.evaluate(JOINING)
    assert page.evaluate("""async () => {
        await raiseAndHear();
        globalThis.story = {id: 's2', hostName: 'Eli', title: 'Stars'};
        await raise();
        await hear(true);
        return [joining.stateIn('s1'), joining.stateIn('s2'), joining.story.id];
    }""") == ["raised", "down", "s1"]


def test_a_name_that_a_bad_network_kept_from_the_server_is_told_it_later(page: Page) -> None:
    assert page.evaluate("""async () => {
        const {SignallingError} = await import('/assets/session.js');
        const {keepToken} = await import('/assets/tokens.js');
        const {Naming} = await import('/assets/naming.js');
        globalThis.fetch = async () => new Response('{"development": false}');
        const token = `e.${btoa(JSON.stringify({sub: 'bob', name: 'Bob', role: 'viewer'}))}.s`;
        keepToken('s1', 'viewer', {token, expiresAt: new Date(Date.now() + 3_600_000).toISOString()});
        const failures = [
            new TypeError('there is no network'), new SignallingError(503, 'busy', null), new SignallingError(422, 'no', null),
        ];
        const wanted = [], names = [];
        const api = {stream: 's1', role: 'viewer', renewToken: async name => { wanted.push(name); throw failures.shift(); }};
        const naming = new Naming({stream: 's1', tokenRole: 'viewer', api, sync: {reconnect() {}}, changed() {}});
        naming.choose('Ann');
        for (let time = 0; time < 3; time++) {
            await naming.use();
            names.push(naming.name);
        }
        return [wanted, names];
    }""") == [["Ann", "Ann", "Ann"], ["Ann", "Ann", "Bob"]]


def test_what_failed_beside_the_connection_begins_anew_when_the_viewer_tries_again(page: Page) -> None:
    page.evaluate(VIEWING)
    assert page.evaluate("""async () => {
        let playlists = 0;
        MediaSource.isTypeSupported = () => true;
        globalThis.fetch = async address => {
            if (String(address).includes('/v1/server')) return new Response('{"hls": true}');
            playlists++;
            return new Response('', {status: 403});
        };
        viewing.fallback.withToken = action => action(null);
        const until = async isTrue => {
            for (let turn = 0; turn < 500 && !isTrue(); turn++) await settled();
        };
        viewing.sync.dispatchEvent(new Event('change'));
        viewing.attach(document.createElement('video'));
        await passTime(7_000);
        await until(() => viewing.fallback.error);
        const seen = [playlists];
        await passTime(20_000);
        seen.push(playlists);
        viewing.retry();
        await passTime(1_000);
        await until(() => playlists > 1);
        seen.push(playlists);
        viewing.detach();
        return seen;
    }""") == [1, 1, 2]
