"""What story-feed.js says to whom, and what it makes of the answers; a server and a connection that go nowhere."""

from __future__ import annotations

from typing import Any

import pytest

from drivers import Browser
from server import Server

#: A server and a connection that go nowhere: the test says what comes from them, and reads what was said to them.
STAND_INS = """() => {
    globalThis.requests = [];
    globalThis.live = ['s1', 's2', 's3', 's4'];
    const item = id => ({id, state: 'live', title: `Title ${id}`, viewers: 1, preview: null});
    globalThis.fetch = async (address, {method = 'GET'} = {}) => {
        const url = new URL(address, location.href);
        requests.push(`${method} ${url.pathname}${url.search}`);
        const json = value => new Response(JSON.stringify(value), {headers: {'Content-Type': 'application/json'}});
        if (url.pathname === '/v1/feed') return json({items: live.map(item), next: '1.1', last: true});
        if (url.pathname.startsWith('/v1/streams/')) {
            const id = url.pathname.split('/')[3];
            return live.includes(id) ? json(item(id)) : new Response('', {status: 404});
        }
        if (method === 'POST' && url.pathname === '/v1/feed/sessions') {
            const headers = {Location: '/v1/feed/sessions/x', ETag: '"1"'};
            const asked = url.searchParams.get('stream'), begins = live.includes(asked) ? asked : live[0];
            if (begins) headers['Rostrum-Stream'] = begins;
            return Object.defineProperty(new Response('v=0', {status: 201, headers}), 'url', {value: url.href});
        }
        return new Response(null, {status: 204});
    };
    globalThis.sockets = [];
    globalThis.WebSocket = class extends EventTarget {
        static OPEN = 1;
        constructor(address) { super(); this.readyState = 1; this.sent = []; sockets.push(this); }
        send(text) { this.sent.push(JSON.parse(text)); }
        close() { this.readyState = 3; this.dispatchEvent(new CloseEvent('close', {code: 1006})); }
        say(message) { this.dispatchEvent(new MessageEvent('message', {data: JSON.stringify(message)})); }
    };
    globalThis.peers = [];
    globalThis.RTCPeerConnection = class extends EventTarget {
        constructor() {
            super();
            this.connectionState = 'new';
            this.signalingState = 'stable';
            this.transceivers = [];
            this.control = Object.assign(new EventTarget(), {
                readyState: 'connecting', said: [], send(text) { this.said.push(JSON.parse(text)); }});
            peers.push(this);
        }
        addTransceiver(kind) {
            const track = kind === 'audio'
                ? new AudioContext().createMediaStreamDestination().stream.getTracks()[0]
                : document.createElement('canvas').captureStream().getTracks()[0];
            const transceiver = {mid: String(this.transceivers.length), receiver: {track}, sender: {}};
            this.transceivers.push(transceiver);
            return transceiver;
        }
        getTransceivers() { return this.transceivers; }
        createDataChannel() { return this.control; }
        async createOffer() { return {type: 'offer', sdp: 'v=0'}; }
        async setLocalDescription(description) { this.localDescription = description; }
        async setRemoteDescription(description) { this.remoteDescription = description; }
        become(state) { this.connectionState = state; this.dispatchEvent(new Event('connectionstatechange')); }
        close() { this.connectionState = 'closed'; }
        say(message) { this.control.dispatchEvent(new MessageEvent('message', {data: JSON.stringify(message)})); }
        // By default it has done all that was said to it.
        slots(first, second, request = this.control.said.at(-1)?.request) {
            this.say({type: 'slots', request, slots: [first, second].flatMap((filled, slot) => {
                const [stream, quality] = filled ?? [];
                return [{mid: String(slot * 2), kind: 'audio', slot}, {mid: String(slot * 2 + 1), kind: 'video', slot, stream, quality}];
            })});
        }
        open() { this.become('connected'); this.control.readyState = 'open'; }
    };
}"""
BEGIN = """async options => {
    const {StoryFeed} = await import('/assets/story-feed.js');
    globalThis.turns = [];
    globalThis.feed = new StoryFeed(options);
    feed.addEventListener('turn', ({detail}) => turns.push([detail.from, detail.to, detail.direction, detail.reason].join(' ')));
    feed.play();
}"""


@pytest.fixture
def page(chromium: Browser, server: Server):
    with chromium.open(server.origin + "/healthz") as page:
        page.evaluate(STAND_INS)
        yield page


def begin(page, **options: Any) -> None:
    page.evaluate(BEGIN, options)
    page.wait_for("() => peers[0]?.remoteDescription && feed.current", what="the feed has begun")


def test_a_swipe_is_peek_then_focus_with_what_comes_next(page) -> None:
    begin(page)
    said = page.evaluate("""() => {
        const [peer] = peers;
        peer.open();
        peer.slots(['s1', 'full'], null);
        feed.peek('forward');
        feed.peek('forward');
        peer.slots(['s1', 'full'], ['s2', 'preview']);
        feed.commit('forward');
        peer.slots(null, ['s2', 'full']);
        feed.peek('forward');
        feed.cancel();
        feed.cancel();
        // What is there anyway is not sent away.
        peer.slots(['s3', 'preview'], ['s2', 'full']);
        feed.peek('forward');
        feed.cancel();
        feed.commit('backward');
        return [peer.control.said, feed.current.id, turns];
    }""")
    assert said == [
        [
            {"type": "peek", "stream": "s2", "direction": "forward", "request": 1},
            {"type": "focus", "stream": "s2", "ahead": "s3", "request": 2},
            {"type": "peek", "stream": "s3", "direction": "forward", "request": 3},
            {"type": "release", "stream": "s3", "request": 4},
            {"type": "peek", "stream": "s3", "direction": "forward", "request": 5},
            {"type": "focus", "stream": "s1", "ahead": "s2", "request": 6},
        ],
        "s1", [" s1 forward jump", "s1 s2 forward swipe", "s2 s1 backward swipe"],
    ]


def test_an_answer_that_comes_behind_what_the_channel_told_changes_nothing(page) -> None:
    begin(page)
    assert page.evaluate("""async () => {
        const [peer] = peers, go = fetch, answers = [];
        globalThis.fetch = (address, how) => String(address).endsWith('/focus')
            ? new Promise(resolve => answers.push(slots => resolve({ok: true, json: async () => ({slots})}))) : go(address, how);
        const seen = [], look = () => seen.push(feed.slots.map(({stream, quality}) => [stream, quality]));
        const answer = async (index, stream) => {
            answers[index]([{kind: 'video', slot: 0}, {kind: 'video', slot: 1, stream, quality: 'full'}]);
            await new Promise(done => setTimeout(done));
            look();
        };
        // As long as the channel is not open an answer is all there is to know.
        feed.go('s2');
        await answer(0, 's2');
        feed.go('s3');
        peer.open();
        peer.slots(['s4', 'preview'], ['s3', 'full']);
        look();
        await answer(1, 's3');
        return seen;
    }""") == [[[None, None], ["s2", "full"]], [["s4", "preview"], ["s3", "full"]], [["s4", "preview"], ["s3", "full"]]]


def test_an_answer_that_the_next_ones_has_overtaken_changes_nothing(page) -> None:
    begin(page)
    assert page.evaluate("""async () => {
        const go = fetch, asked = [];
        globalThis.fetch = (address, how) => String(address).endsWith('/focus')
            ? new Promise(resolve => asked.push({...JSON.parse(how.body), resolve})) : go(address, how);
        feed.go('s2');
        feed.go('s3');
        const seen = [];
        for (const {stream, request, resolve} of asked.toReversed()) {
            const slots = [{kind: 'video', slot: 0}, {kind: 'video', slot: 1, stream, quality: 'full'}];
            resolve({ok: true, json: async () => ({slots, request})});
            await new Promise(done => setTimeout(done));
            seen.push([stream, feed.slots[1].stream, feed.slots[1].requests.answered]);
        }
        return seen;
    }""") == [["s3", "s3", 2], ["s2", "s3", 2]]


def test_a_story_that_is_missing_is_told_and_nothing_else_is_shown(page) -> None:
    # The server fills the connection with somebody else before it says what became of the story.
    page.evaluate("""() => {
        const go = fetch;
        globalThis.answer = null;
        globalThis.fetch = (address, how) => String(address).endsWith('/v1/streams/s9')
            ? new Promise(resolve => { answer = body => resolve(new Response(JSON.stringify(body))); }) : go(address, how);
    }""")
    page.evaluate(BEGIN, {"stream": "s9"})
    page.wait_for("() => peers[0]?.remoteDescription && answer !== null")
    page.wait_for("() => feed.stories.length === 4", what="the list is read")
    assert page.evaluate("""() => {
        peers[0].open();
        peers[0].slots(['s1', 'full'], null);
        return [feed.state, feed.current, turns];
    }""") == ["playing", None, []]
    page.evaluate("() => answer({state: 'ended', title: 'Friday kitchen', hostName: 'Ann'})")
    page.wait_for("() => feed.state === 'missing'", what="it is told")
    assert page.evaluate("() => [feed.missing.why, feed.missing.title, feed.slots, turns, requests.at(-1)]") == [
        "ended", "Friday kitchen", [], [], "DELETE /v1/feed/sessions/x"]
    # It goes live again: it is what one came for.
    page.evaluate("() => sockets[0].say({type: 'change', version: 2, added: [{item: {id: 's9'}, after: null}]})")
    page.wait_for("() => peers[1]?.remoteDescription", what="a connection for it")
    assert page.evaluate("() => [feed.current.id, feed.missing, turns]") == ["s9", None, [" s9 forward jump"]]
    assert page.evaluate("() => requests.filter(request => request.startsWith('POST')).at(-1)") == (
        "POST /v1/feed/sessions?stream=s9&preload=eager")


def test_a_connection_that_is_made_too_late_is_nobodys(page) -> None:
    # What is missing is known when the connection to somebody else is all but there.
    page.evaluate("""() => {
        const go = fetch;
        globalThis.answer = globalThis.release = null;
        globalThis.fetch = (address, how) => String(address).endsWith('/v1/streams/s9')
            ? new Promise(resolve => { answer = body => resolve(new Response(JSON.stringify(body))); }) : go(address, how);
        RTCPeerConnection.prototype.setRemoteDescription = function (description) {
            this.remoteDescription = description;
            return new Promise(resolve => { release = resolve; });
        };
    }""")
    page.evaluate(BEGIN, {"stream": "s9"})
    page.wait_for("() => release !== null && answer !== null")
    page.evaluate("() => answer({state: 'ended', title: 'Friday kitchen', hostName: 'Ann'})")
    page.wait_for("() => feed.state === 'missing'", what="it is told")
    page.evaluate("() => release()")
    page.wait_for("() => requests.at(-1) === 'DELETE /v1/feed/sessions/x'", what="the session is ended")
    assert page.evaluate("() => { peers[0].slots(['s1', 'full'], null); return [feed.slots, feed.state, turns]; }") == [
        [], "missing", []]


@pytest.mark.parametrize("way", ["feed.seeOthers()", "feed.go('s3')"])
def test_who_came_for_what_is_missing_may_see_others(page, way: str) -> None:
    page.evaluate(BEGIN, {"stream": "no such name!"})
    page.wait_for("() => feed.state === 'missing' && feed.stories.length === 4")
    assert page.evaluate("() => [feed.missing.why, feed.mayGo('forward'), requests.some(each => each.includes('no'))]")[:2] == [
        "unknown", False]
    page.evaluate(f"() => {{ {way}; }}")
    wanted = "s3" if "s3" in way else "s1"
    assert page.evaluate("() => [feed.current.id, feed.missing, feed.state]") == [wanted, None, "connecting"]
    page.wait_for("() => peers.at(-1)?.remoteDescription && !requests.at(-1).startsWith('DELETE')", what="it connects")
    assert page.evaluate("() => requests.filter(request => request.startsWith('POST')).at(-1)") == (
        f"POST /v1/feed/sessions?stream={wanted}&preload=eager")


def test_the_story_that_a_link_names_comes_before_what_the_server_began_with(page) -> None:
    page.evaluate("""() => {
        const go = fetch;
        globalThis.answer = null;
        globalThis.fetch = (address, how) => String(address).endsWith('/v1/streams/s9')
            ? new Promise(resolve => { answer = () => resolve(new Response('{"state":"live"}')); }) : go(address, how);
    }""")
    page.evaluate(BEGIN, {"stream": "s9"})
    page.wait_for("() => peers[0]?.remoteDescription && answer !== null")
    page.evaluate("() => { peers[0].open(); peers[0].slots(['s1', 'full'], null); answer(); }")
    page.wait_for("() => feed.current !== null", what="a story is there")
    assert page.evaluate("() => [feed.current.id, turns, peers[0].control.said.at(-1)?.stream]") == [
        "s9", [" s9 forward jump"], "s9"]


def test_who_may_not_watch_asks_no_more(page) -> None:
    # Minutes pass in a second.
    page.evaluate("""() => {
        const set = setTimeout;
        globalThis.setTimeout = (action, time, ...given) => set(action, (time ?? 0) / 100, ...given);
        globalThis.asked = [];
        globalThis.fetch = async (address, how) => {
            asked.push(String(address));
            const problem = {status: 401, title: 'Unauthorized', detail: 'Watching requires a token.'};
            return new Response(JSON.stringify(problem), {status: 401, headers: {'Content-Type': 'application/problem+json'}});
        };
        const Socket = WebSocket;
        globalThis.WebSocket = class extends Socket {
            constructor(address) { super(address); asked.push(address); set(() => this.close(), 5); }
        };
    }""")
    page.evaluate(BEGIN, {"stream": "s3"})
    page.wait_for("() => feed.state === 'failed'")
    before = page.evaluate("async () => { const {length} = asked; await new Promise(done => setTimeout(done, 150_000)); return length; }")
    assert page.evaluate("() => feed.error.status") == 401
    assert page.evaluate("before => asked.slice(before)", before) == []


def test_what_was_shown_first_stays_when_the_server_began_elsewhere(page) -> None:
    begin(page)
    assert page.evaluate("""() => {
        peers[0].open();
        // The order changed between the list and the connection.
        peers[0].slots(['s2', 'full'], null);
        return [feed.current.id, turns, peers[0].control.said];
    }""") == ["s1", [" s1 forward jump"], [{"type": "focus", "stream": "s1", "ahead": "s2", "request": 1}]]


def test_playing_and_stopping_twice_changes_nothing(page) -> None:
    begin(page)
    assert page.evaluate("""async () => {
        peers[0].open();
        peers[0].slots(['s1', 'full'], null);
        const before = [requests.length, sockets.length, peers.length];
        feed.play();
        feed.play();
        const unchanged = JSON.stringify(before) === JSON.stringify([requests.length, sockets.length, peers.length]);
        const events = [];
        for (const name of ['change', 'turn', 'slots']) feed.addEventListener(name, () => events.push(name));
        feed.stop();
        const once = events.length;
        feed.stop();
        return [unchanged, feed.state, events.length === once, requests.at(-1), feed.slots.length];
    }""") == [True, "idle", True, "DELETE /v1/feed/sessions/x", 0]
    page.evaluate("() => { feed.play(); }")
    page.wait_for("() => peers.length === 2 && peers[1].remoteDescription", what="it connects anew")
    assert page.evaluate("() => requests.filter(request => request.startsWith('POST')).at(-1)") == (
        "POST /v1/feed/sessions?stream=s1&preload=eager"), "it begins where it was"


def test_the_viewer_moves_on_when_a_story_ends(page) -> None:
    begin(page, stream="s2")
    assert page.evaluate("""() => {
        const [peer] = peers, [socket] = sockets;
        peer.open();
        peer.slots(['s2', 'full'], ['s3', 'preview']);
        socket.say({type: 'change', version: 2, ended: ['s2']});
        const meanwhile = feed.current.id;
        peer.say({type: 'moved', from: 's2', to: 's3', reason: 'ended'});
        peer.slots(null, ['s3', 'full']);
        const ids = feed.stories.map(({id}) => id).join(' ');
        // Late: the viewer is elsewhere by now.
        peer.say({type: 'moved', from: 's1', to: 's4', reason: 'ended'});
        return [meanwhile, ids, feed.current.id, turns, peer.control.said, feed.stories.map(({id}) => id).join(' ')];
    }""") == ["s2", "s1 s3 s4", "s3", [" s2 forward jump", "s2 s3 forward ended"], [], "s3 s4"]


def test_nobody_is_left_with_a_story_that_has_ended(page) -> None:
    begin(page)
    page.evaluate("""() => {
        const [{control}] = peers, {send} = control;
        // The server does what it is asked for: otherwise it would be asked again, however late we look.
        control.send = text => {
            send.call(control, text);
            peers[0].slots(null, [JSON.parse(text).stream, 'full']);
        };
        peers[0].open();
        peers[0].slots(['s1', 'full'], null);
        // Seconds pass in an instant.
        const set = setTimeout;
        globalThis.setTimeout = (action, time, ...given) => set(action, (time ?? 0) / 20, ...given);
        sockets[0].say({type: 'change', version: 2, ended: ['s1']});
        globalThis.setTimeout = set;
    }""")
    # The server's word about where to go is lost.
    page.wait_for("() => feed.current.id === 's2'", seconds=8, what="the viewer is taken on")
    assert page.evaluate("() => peers[0].control.said") == [{"type": "focus", "stream": "s2", "ahead": "s3", "request": 1}]


def test_what_the_server_has_not_answered_is_asked_again(page) -> None:
    begin(page)
    page.evaluate("""() => {
        const [{control}] = peers, {send} = control;
        // What is said of a swipe is lost.
        control.send = text => {
            send.call(control, text);
            if (JSON.parse(text).type === 'focus') peers[0].slots(['s1', 'full'], ['s2', 'preview']);
        };
        peers[0].open();
        peers[0].slots(['s1', 'full'], ['s2', 'preview']);
        // Seconds pass in an instant.
        const set = setTimeout;
        globalThis.setTimeout = (action, time, ...given) => set(action, (time ?? 0) / 20, ...given);
        feed.peek('forward');
        feed.cancel();
        globalThis.setTimeout = set;
    }""")
    page.wait_for("() => peers[0].control.said.length > 1 && feed.slots[0].requests.answered === 2", what="it is asked again")
    assert page.evaluate("() => peers[0].control.said") == [
        {"type": "peek", "stream": "s2", "direction": "forward", "request": 1},
        {"type": "focus", "stream": "s1", "ahead": "s2", "request": 2},
    ]


def test_words_of_the_server_are_told_from_its_answers(page) -> None:
    begin(page)
    assert page.evaluate("""() => {
        const [peer] = peers, seen = [];
        let news = 0;
        feed.addEventListener('slots', () => { news++; });
        const see = () => {
            const {said, answered} = feed.slots[1].requests;
            seen.push([said, answered, news]);
            news = 0;
        };
        peer.open();
        peer.slots(['s1', 'full'], ['s2', 'preview']);
        see();
        feed.commit('forward');
        feed.commit('backward');
        // On its way before the server heard of the second.
        peer.slots(null, ['s2', 'full'], 1);
        see();
        // Nothing is changed by it, which says that the slots are known now.
        peer.say({type: 'refused', message: 'focus', stream: 's1', reason: 'too-many-messages', request: 2});
        see();
        return seen;
    }""") == [[0, 0, 1], [2, 1, 1], [2, 2, 1]]


def test_a_server_that_knows_of_no_numbers_is_believed_all_the_same(page) -> None:
    begin(page)
    page.evaluate("""() => {
        const [peer] = peers, set = setTimeout;
        peer.say = function (message) {
            delete message.request;
            this.control.dispatchEvent(new MessageEvent('message', {data: JSON.stringify(message)}));
        };
        peer.open();
        peer.slots(['s1', 'full'], ['s2', 'preview']);
        // Seconds pass in an instant.
        globalThis.setTimeout = (action, time, ...given) => set(action, (time ?? 0) / 20, ...given);
        feed.commit('forward');
        globalThis.setTimeout = set;
        peer.slots(null, ['s2', 'full']);
    }""")
    page.wait_for("() => feed.slots[0].requests.answered === Infinity", what="it is taken for one")
    assert page.evaluate("() => [feed.slotOf('s2').index, feed.current.id]") == [1, "s2"]


def test_the_end_and_what_comes_after_it(page) -> None:
    begin(page, stream="s4")
    assert page.evaluate("""() => {
        const [peer] = peers, [socket] = sockets, seen = [];
        const see = () => seen.push([feed.isAtEnd, feed.current.id, feed.mayGo('forward'), feed.beside('forward')?.id ?? null]);
        peer.open();
        peer.slots(['s4', 'full'], ['s3', 'preview']);
        see();
        feed.peek('forward');
        feed.commit('forward');
        see();
        feed.commit('forward');
        socket.say({type: 'change', version: 2, added: [{item: {id: 's5'}, after: null}]});
        see();
        feed.commit('forward');
        see();
        feed.commit('forward');
        feed.commit('backward');
        see();
        return [seen, peer.control.said];
    }""") == [
        [
            [False, "s4", True, None], [True, "s4", False, None], [True, "s4", True, "s5"], [False, "s5", True, None],
            [False, "s5", True, None],
        ],
        # Nothing lies ahead: turning back is all that one can do.
        [{"type": "focus", "stream": "s5", "ahead": "s4", "request": 1}],
    ]


def test_nobody_is_live_and_then_somebody(page) -> None:
    page.evaluate("() => { live = []; }")
    page.evaluate(BEGIN, {})
    page.wait_for("() => peers[0]?.remoteDescription")
    assert page.evaluate("""() => {
        const [peer] = peers, [socket] = sockets;
        peer.open();
        peer.slots(null, null);
        peer.say({type: 'empty'});
        const before = feed.state;
        socket.say({type: 'change', version: 2, added: [{item: {id: 's9', title: 'New'}, after: null}]});
        peer.slots(['s9', 'full'], null);
        return [before, feed.state, feed.current.title, peer.control.said];
    }""") == ["empty", "playing", "New", []]


def test_a_connection_that_is_lost_is_made_again_at_the_same_story(page) -> None:
    begin(page)
    page.evaluate("""() => {
        const [peer] = peers;
        peer.open();
        peer.slots(['s1', 'full'], ['s2', 'preview']);
        feed.go('s3');
        peer.slots(null, ['s3', 'full']);
        feed.connection.renew();
    }""")
    assert page.evaluate("() => feed.state") == "reconnecting"
    page.wait_for("() => peers[1]?.remoteDescription", what="a second connection")
    assert page.evaluate("""() => {
        const [, peer] = peers;
        const guess = feed.slotOf('s3')?.index;
        // The viewer goes on before the new connection can be spoken to.
        feed.commit('forward');
        peer.open();
        peer.slots(['s3', 'full'], null);
        return [requests.filter(request => request.startsWith('POST /v1/feed/sessions?')).at(-1), guess, feed.state, peer.control.said];
    }""") == [
        "POST /v1/feed/sessions?stream=s3&preload=eager", 0, "playing",
        # The first was said over HTTP.
        [{"type": "focus", "stream": "s4", "ahead": "s3", "request": 2}],
    ]


def test_what_a_session_begins_with_is_no_other_story_that_was_gone_to_meanwhile(page) -> None:
    # The list is not read yet when the session is asked for, and the viewer is on before it is there.
    page.evaluate("""() => {
        const go = fetch;
        const listed = new Promise(resolve => { globalThis.list = resolve; });
        const answered = new Promise(resolve => { globalThis.answer = resolve; });
        globalThis.fetch = async (address, how) => {
            const {pathname} = new URL(address, location.href);
            if (pathname === '/v1/feed') await listed;
            const response = await go(address, how);
            if (pathname === '/v1/feed/sessions') await answered;
            return response;
        };
    }""")
    page.evaluate(BEGIN, {})
    page.wait_for("() => requests.some(request => request.startsWith('POST /v1/feed/sessions?'))")
    page.evaluate("() => list()")
    page.wait_for("() => feed.current", what="the feed is read")
    page.evaluate("() => { feed.go('s3'); answer(); }")
    page.wait_for("() => peers[0].remoteDescription && feed.slots.length", what="the session is there")
    assert page.evaluate("""() => {
        const [peer] = peers;
        const seen = [], look = () => seen.push([feed.current.id, ...feed.slots.map(({stream}) => stream)]);
        look();
        peer.open();
        peer.slots(['s1', 'full'], null);
        look();
        return [requests.find(request => request.startsWith('POST')), seen, peer.control.said];
    }""") == [
        "POST /v1/feed/sessions?preload=eager", [["s3", "s1", None], ["s3", "s1", None]],
        [{"type": "focus", "stream": "s3", "ahead": "s4", "request": 1}],
    ]


def test_a_story_that_came_back_before_it_was_missed_is_returned_to(page) -> None:
    begin(page)
    page.evaluate("""() => {
        peers[0].open();
        peers[0].slots(['s1', 'full'], ['s2', 'preview']);
        feed.go('s3');
        peers[0].slots(null, ['s3', 'full']);
        feed.connection.renew();
    }""")
    page.wait_for("() => peers[1]?.remoteDescription", what="a second connection")
    page.evaluate("""() => {
        // The server was started again: the session was made while the story was gone, and we hear that after all else.
        sockets[0].say({type: 'change', version: 2, ended: ['s3']});
        sockets[0].say({type: 'change', version: 3, added: [{item: {id: 's3'}, after: null}]});
        peers[1].open();
        peers[1].slots(['s1', 'full'], null);
    }""")
    page.wait_for("() => feed.current.id === 's3'", what="the viewer is back")
    assert page.evaluate("() => [peers[1].control.said.at(-1).stream, feed.stories.length]") == ["s3", 4]


def test_a_story_that_was_left_without_a_connection_is_returned_to(page) -> None:
    begin(page)
    # All of it within the page: a connection that is not open in 10 s is replaced by another one.
    assert page.evaluate("""async () => {
        peers[0].open();
        peers[0].slots(['s1', 'full'], null);
        feed.go('s3');
        feed.connection.renew();
        sockets[0].say({type: 'change', version: 2, ended: ['s3']});
        // The viewer is taken on.
        await new Promise(resolve => feed.addEventListener('change', () => feed.current.id === 's4' && resolve()));
        while (!peers[1]?.remoteDescription) await new Promise(resolve => setTimeout(resolve, 10));
        peers[1].open();
        peers[1].slots(['s4', 'full'], null);
        sockets[0].say({type: 'change', version: 3, added: [{item: {id: 's3'}, after: null}]});
        return feed.current.id;
    }""") == "s3"


def test_a_new_order_is_read_and_counts_for_what_lies_ahead(page) -> None:
    page.evaluate("() => { Math.random = () => 0; }")
    begin(page)
    page.evaluate("""() => {
        sockets[0].dispatchEvent(new Event('open'));
        sockets[0].say({type: 'snapshot', version: 1, count: 4, items: []});
        peers[0].open();
        peers[0].slots(['s1', 'full'], ['s2', 'preview']);
    }""")
    page.wait_for("() => requests.filter(request => request.startsWith('GET /v1/feed?')).length === 2")
    order = "() => feed.stories.map(({id}) => id).join(' ')"
    assert page.evaluate(order) == "s1 s2 s3 s4"
    page.evaluate("""() => {
        live = ['s4', 's3', 's6', 's2', 's1', 's5'];
        requests.length = 0;
        for (const version of [2, 3, 4]) sockets[0].say({type: 'change', version, reordered: true});
    }""")
    page.wait_for(f"() => ({order})() === 's1 s2 s4 s3 s6 s5'", what="what lies ahead is in the new order")
    # Once for three messages, and no more than there is to arrange.
    assert page.evaluate("() => requests") == ["GET /v1/feed?limit=100"]
    assert page.evaluate("() => [feed.current.id, turns, peers[0].control.said]") == ["s1", [" s1 forward jump"], []]
    watched = page.evaluate("() => sockets[0].sent.flatMap(({streams = []}) => streams)")
    assert {"s5", "s6"} <= set(watched)


def test_no_order_is_read_by_a_feed_that_was_stopped(page) -> None:
    begin(page)
    assert page.evaluate("""async () => {
        const timers = [], set = setTimeout;
        globalThis.setTimeout = (action, time) => (timers.push(time), set(action, time));
        // Of the three seconds over which pages spread their requests, nearly the first moment.
        Math.random = () => 0.01;
        sockets[0].say({type: 'change', version: 2, reordered: true});
        const spread = timers.at(-1);
        feed.stop();
        requests.length = 0;
        await new Promise(resolve => set(resolve, spread + 50));
        return [spread >= 0 && spread <= 3000, requests];
    }""") == [True, []]


def test_another_place_takes_over_and_gives_back(page) -> None:
    begin(page)
    page.evaluate("""() => {
        peers[0].open();
        peers[0].slots(['s1', 'full'], null);
        peers[0].say({type: 'replaced'});
        dispatchEvent(new Event('online'));
    }""")
    assert page.evaluate("() => [feed.state, peers.length]") == ["replaced", 1]
    page.evaluate("() => feed.play()")
    page.wait_for("() => peers.length === 2", what="it plays here again when it is told to")


def test_refused_stories_are_left_out(page) -> None:
    begin(page)
    assert page.evaluate("""() => {
        const [peer] = peers;
        peer.open();
        peer.slots(['s1', 'full'], null);
        feed.peek('forward');
        peer.say({type: 'refused', message: 'peek', stream: 's2', reason: 'not-live'});
        const next = feed.beside('forward').id;
        feed.commit('forward');
        peer.say({type: 'refused', message: 'focus', stream: 's3', reason: 'not-live'});
        return [next, feed.current.id, feed.stories.map(({id}) => id).join(' '), peer.control.said.at(-1)];
    }""") == ["s3", "s4", "s1 s4", {"type": "focus", "stream": "s4", "ahead": "s1", "request": 3}]


def test_frames_of_an_earlier_stream_are_told_apart(page) -> None:
    begin(page)
    assert page.evaluate("""() => {
        const [peer] = peers;
        peer.open();
        peer.slots(['s1', 'full'], null);
        const first = feed.slots[0].since <= 0;
        const before = performance.now();
        // From one stream to another without a pause, then after one.
        peer.slots(['s2', 'full'], null);
        const direct = feed.slots[0].since >= before;
        peer.slots(null, ['s3', 'full']);
        return [first, direct, feed.slots[1].since === -Infinity, feed.slotOf('s3').index, feed.slotOf('s2')];
    }""") == [True, True, True, 1, None]


#: Shows frames that were received at some time, at some time after a slot changed; tells whether the video is seen then.
#: Each may have a time in RTP, and the server may have said where in that the story begins.
FRAMES = """async (frames, timestamp) => {
    const {Side} = await import('/assets/feed/side.js');
    const side = new Side(), start = 10_000;
    let now = start, next = null;
    performance.now = () => now;
    side.video.requestVideoFrameCallback = callback => { next = callback; return 1; };
    side.video.cancelVideoFrameCallback = () => { next = null; };
    side.video.play = async () => {};
    side.show({id: 'new', title: 'New'});
    const begun = timestamp === undefined ? null : {stream: 'new', timestamp};
    side.attach({index: 0, media: new MediaStream(), stream: 'new', quality: 'full', since: start, begun,
        requests: {said: 0, answered: 0}});
    return frames.map(([after, received, rtpTimestamp]) => {
        now = start + after;
        const callback = next;
        next = null;
        callback?.(now, {receiveTime: start + received, rtpTimestamp});
        return side.isUncovered;
    });
}"""


def test_a_late_frame_of_the_story_before_is_not_shown(chromium: Browser, server: Server) -> None:
    with chromium.open(server.origin + "/healthz") as page:
        # Decoded late, as behind a bad network.
        assert page.evaluate(FRAMES, [[20, -30], [900, -1], [2500, -1], [2520, 2510]]) == [False, False, False, True]
        # One that stands still has no other.
        assert page.evaluate(FRAMES, [[20, -30], [4100, -1]]) == [False, True]
        # Where the server has said where the story begins, nothing older is, as on a machine that stands still for seconds.
        late = [[20, -30, 900], [4100, -1, 990], [9000, 8990, 999], [9020, 9010, 1000]]
        assert page.evaluate(FRAMES, late, 1000) == [False, False, False, True]
        assert page.evaluate(FRAMES, [[20, 10, 2**32 - 9], [40, 30, 2]], 2**32 - 5) == [False, True]
        # Nine hours into a story its time seems to be before the beginning.
        assert page.evaluate(FRAMES, [[20, -30, 3_000_000_000], [40, 30, 3_000_000_900]], 1000) == [False, True]


#: Stories b and d in a slot that the viewer leaves and comes back to, while the server's words on it are late. Each step says
#: what happens, with what is shown then: the story, and whether its picture moves.
RETURNING = """async steps => {
    const {Side} = await import('/assets/feed/side.js');
    const side = new Side(), timers = [], callbacks = new Map();
    let now = 10_000, last = 0, paused = true;
    performance.now = () => now;
    globalThis.setTimeout = (action, time = 0) => timers.push({action, at: now + time});
    Object.defineProperty(side.video, 'paused', {get: () => paused});
    side.video.play = async () => { paused = false; };
    side.video.pause = () => { paused = true; };
    side.video.requestVideoFrameCallback = callback => { callbacks.set(++last, callback); return last; };
    side.video.cancelVideoFrameCallback = number => callbacks.delete(number);
    const requests = {said: 1, answered: 1};
    const slot = {index: 1, media: new MediaStream(), stream: 'b', quality: 'full', since: now, begun: null, requests};
    const does = {
        show: id => side.show({id, title: id}),
        // As the page does it: the server is asked first.
        leave: () => { requests.said++; side.leave(); side.attach(slot); },
        back: id => { requests.said++; side.stay(); side.show({id, title: id}); side.attach(slot); },
        hear: (request, stream, timestamp) => {
            if (stream !== slot.stream) slot.since = now;
            Object.assign(slot, {stream, begun: timestamp === undefined ? null : {stream, timestamp}});
            requests.answered = request;
            side.attach(slot);
        },
        // Time in which other news come, a tap asks for sound, and the page reminds its videos of what they have to do.
        pass: time => {
            now += time;
            for (const timer of timers.splice(0)) if (timer.at <= now) timer.action(); else timers.push(timer);
            side.attach(slot);
            side.remind();
            side.play();
        },
        frame: rtpTimestamp => {
            if (paused) return;
            const all = [...callbacks.values()];
            callbacks.clear();
            for (const callback of all) callback(now, {receiveTime: now, rtpTimestamp});
        },
    };
    return steps.map(([what, ...given]) => {
        does[what](...given);
        return side.isUncovered && !paused;
    });
}"""


@pytest.mark.parametrize("steps", [
    # Left, and back: its last picture stands until it is known that it is there again, however long that takes.
    [
        ("leave", False), ("back", "b", False), ("pass", 300, False), ("frame", 5000, False), ("pass", 150, False),
        ("frame", 5100, False), ("pass", 5000, False), ("frame", 5200, False), ("hear", 2, None, False),
        ("hear", 2, "d", 5000, False), ("frame", 5300, False), ("hear", 3, "b", 9000, False), ("frame", 8999, False),
        ("frame", 9000, True), ("pass", 20, True),
    ],
    # The server has done neither: it goes on as it was.
    [("leave", False), ("back", "b", False), ("pass", 500, False), ("hear", 3, "b", 1000, True)],
    # Another story was made ready meanwhile, so that there is no picture to stand still.
    [
        ("leave", False), ("back", "d", False), ("back", "b", False), ("pass", 500, False), ("frame", 5000, False),
        ("pass", 5000, False), ("frame", 5100, False), ("hear", 2, "d", 5000, False), ("frame", 5200, False),
        ("hear", 4, "b", 9000, False), ("frame", 9000, True),
    ],
    # Away and back twice: an answer to the first is none to the second.
    [
        ("leave", False), ("back", "b", False), ("leave", False), ("back", "b", False), ("hear", 3, "b", 1000, False),
        ("pass", 500, False), ("frame", 5000, False), ("hear", 5, "b", 1000, True),
    ],
], ids=["back", "nothing-done", "another-meanwhile", "twice"])
def test_a_side_that_was_left_waits_for_the_servers_word(
    chromium: Browser, server: Server, steps: list[tuple[Any, ...]]
) -> None:
    steps = [("show", "b", False), ("hear", 1, "b", 1000, False), ("frame", 1000, True), *steps]
    with chromium.open(server.origin + "/healthz") as page:
        assert page.evaluate(RETURNING, [step[:-1] for step in steps]) == [step[-1] for step in steps]


#: A picture that plays without sound, in a browser that wants a gesture before there is sound.
PLAYING = """async () => {
    const {Side} = await import('/assets/feed/side.js');
    const side = globalThis.side = new Side();
    document.body.append(side.root);
    const canvas = document.createElement('canvas');
    canvas.getContext('2d').fillRect(0, 0, 8, 8);
    side.video.srcObject = canvas.captureStream(30);
    await side.video.play();
    const {play} = HTMLMediaElement.prototype;
    HTMLMediaElement.prototype.play = function () {
        return this.muted ? play.call(this) : Promise.reject(new DOMException('not without a gesture', 'NotAllowedError'));
    };
    globalThis.blocked = 0;
    side.addEventListener('blocked', () => { blocked++; });
}"""


@pytest.mark.parametrize("name", ["chromium", "firefox"])
def test_sound_is_asked_for_also_where_the_picture_plays_already(
    browsers: dict[str, Browser], server: Server, name: str
) -> None:
    with browsers[name].open(server.origin + "/healthz") as page:
        page.evaluate(PLAYING)
        page.evaluate("() => { side.muted = true; side.muted = false; }")
        page.wait_for("() => blocked === 1", what="the page hears that there may be no sound")
        page.evaluate("() => { side.muted = true; }")
        assert page.evaluate("async () => [await side.play(), side.video.paused, blocked]") == [True, False, 1]
