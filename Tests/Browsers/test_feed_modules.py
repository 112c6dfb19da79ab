"""The feed's rules that need no server: gestures, the list, BlurHash, and what the module says to whom."""

from __future__ import annotations

import math
from typing import Any

import pytest

from drivers import Browser
from server import Server

#: Plays a gesture: `p` press, `m` move, `l` lift, `t` tick, `a` abandon, `s` step; each with its time.
GESTURE = """async (steps, way = {forward: true, backward: true}) => {
    const {Swipe} = await import('/assets/story-feed.js');
    const said = [];
    const swipe = new Swipe({
        peek: direction => said.push(`peek ${direction}`), commit: direction => said.push(`commit ${direction}`),
        cancel: () => said.push('cancel'), tap: (x, y) => said.push(`tap ${x} ${y}`)});
    const seen = [];
    for (const [what, at, ...rest] of steps) {
        if (what === 'p') swipe.press({x: rest[0], y: rest[1], at}, {width: 400, height: 800});
        if (what === 'm') swipe.move({x: rest[0], y: rest[1], at}, way);
        if (what === 'l') swipe.lift({x: rest[0], y: rest[1], at});
        if (what === 't') swipe.tick(at);
        if (what === 'a') swipe.abandon(at);
        if (what === 's') swipe.step(rest[0], rest[1], at, way);
        seen.push([swipe.state, Math.round(swipe.progress * 1000) / 1000, swipe.axis]);
    }
    return {said, seen};
}"""


def play(chromium: Browser, server: Server, *gestures: tuple[list[Any], ...]) -> list[dict[str, Any]]:
    with chromium.open(server.origin + "/healthz") as page:
        return [page.evaluate(GESTURE, *gesture) for gesture in gestures]


def slow(start: tuple[int, int], end: tuple[int, int], lift: bool = True) -> list[Any]:
    """A finger that goes there within a second and rests before it leaves."""
    steps: list[Any] = [["p", 0, *start]]
    for n in range(1, 21):
        steps.append(["m", n * 50, *(a + (b - a) * n / 20 for a, b in zip(start, end))])
    return [*steps, ["m", 1300, *end], *([["l", 1300, *end]] if lift else [])]


def test_a_swipe_goes_where_more_of_the_screen_is(chromium: Browser, server: Server) -> None:
    further, less, back, up = play(
        chromium, server, (slow((380, 400), (100, 400)),), (slow((380, 400), (250, 400)),),
        (slow((20, 400), (300, 400)),), (slow((200, 700), (200, 100)),))
    assert further["said"] == ["peek forward", "commit forward"]
    assert less["said"] == ["peek forward", "cancel"]
    assert back["said"] == ["peek backward", "commit backward"]
    assert up["said"] == ["peek forward", "commit forward"] and up["seen"][-1][2] == "y"
    # It follows the finger, and what is left runs out from where the finger was.
    assert further["seen"][10][1] == pytest.approx((140 - 8) / 400, abs=0.002)
    assert further["seen"][-1][0] == "settling" and further["seen"][-1][1] == pytest.approx(0.68 - 1, abs=0.01)


def test_a_flick_decides_by_its_speed(chromium: Browser, server: Server) -> None:
    flick = [["p", 0, 300, 400], ["m", 16, 280, 400], ["m", 32, 255, 400], ["m", 48, 230, 400], ["l", 50, 230, 400]]
    # Far out, and flung back.
    flung = [*slow((380, 400), (120, 400), lift=False), ["m", 1316, 150, 400], ["m", 1332, 190, 400], ["l", 1334, 190, 400]]
    forth, back = play(chromium, server, (flick,), (flung,))
    assert forth["said"] == ["peek forward", "commit forward"]
    assert back["said"] == ["peek forward", "cancel"]


def test_the_picture_comes_to_rest(chromium: Browser, server: Server) -> None:
    steps = [*slow((380, 400), (100, 400)), *(["t", 1300 + 16 * n] for n in range(60))]
    [played] = play(chromium, server, (steps,))
    run = [progress for _, progress, _ in played["seen"][23:]]
    assert run == sorted(run), "it never turns back"
    assert played["seen"][-1] == ["resting", 0, "x"]
    # Within two thirds of a second, and not at once.
    assert run[5] < -0.02 and run[42] == 0


def test_nothing_is_asked_for_where_nothing_is(chromium: Browser, server: Server) -> None:
    end = {"forward": False, "backward": True}
    dragged, stepped = play(
        chromium, server, (slow((380, 400), (20, 400)), end),
        ([["s", 0, "forward", "x"], ["t", 60], ["t", 3000]], end))
    assert dragged["said"] == [] and stepped["said"] == []
    # The picture gives a little, and comes back.
    assert 0.1 < dragged["seen"][-1][1] < 0.3
    assert 0 < stepped["seen"][1][1] < 0.06 and stepped["seen"][2] == ["resting", 0, "x"]


def test_a_turn_of_the_finger_asks_for_the_other_side(chromium: Browser, server: Server) -> None:
    steps = [*slow((200, 400), (100, 400), lift=False), ["m", 1400, 150, 400], ["m", 1500, 300, 400], ["a", 1600]]
    [played] = play(chromium, server, (steps,))
    assert played["said"] == ["peek forward", "peek backward", "cancel"]


def test_taps_are_no_swipes(chromium: Browser, server: Server) -> None:
    tap, held, moved = play(
        chromium, server, ([["p", 0, 30, 40], ["m", 10, 33, 42], ["l", 90, 33, 42]],),
        ([["p", 0, 30, 40], ["l", 900, 30, 40]],), ([["m", 0, 30, 40], ["l", 10, 30, 40]],))
    assert tap["said"] == ["tap 33 42"] and tap["seen"][-1] == ["resting", 0, "x"]
    assert held["said"] == [] and moved["said"] == []


def test_steps_may_follow_faster_than_the_picture(chromium: Browser, server: Server) -> None:
    steps = [["s", 0, "forward", "x"], ["t", 50], ["s", 60, "forward", "x"], ["t", 120], ["s", 130, "backward", "x"], ["t", 900]]
    # A second swipe while the first still runs: no request for what has just been left.
    chased = [
        *slow((380, 400), (100, 400)), ["t", 1330], ["p", 1340, 300, 400],
        ["m", 1356, 280, 400], ["m", 1372, 250, 400], ["m", 1388, 215, 400], ["m", 1404, 150, 400], ["l", 1406, 150, 400]]
    keys, fingers = play(chromium, server, (steps,), (chased,))
    assert keys["said"] == ["commit forward", "commit forward", "commit backward"]
    assert all(abs(progress) <= 1 for _, progress, _ in keys["seen"]) and keys["seen"][-1] == ["resting", 0, "x"]
    assert fingers["said"].count("commit forward") == 2 and "peek backward" not in fingers["said"]


LIST = """async calls => {
    const {StoryList} = await import('/assets/feed/list.js');
    const list = new StoryList(), answers = [];
    for (const [name, ...given] of calls) {
        if (name === 'current') list.current = given[0];
        else if (name === '?') answers.push(list.stories.map(({id}) => id).join(' '));
        else list[name](...given);
    }
    return answers;
}"""


def stories(names: str) -> list[dict[str, str]]:
    return [{"id": name} for name in names.split()]


def test_what_is_in_view_does_not_move(chromium: Browser, server: Server) -> None:
    with chromium.open(server.origin + "/healthz") as page:
        answers = page.evaluate(LIST, [
            ["append", stories("a b c d e")], ["current", "c"],
            # Passed, next, and further on: what is next is what is being preloaded.
            ["insert", {"id": "n1"}, None], ["?"], ["insert", {"id": "n2"}, "c"], ["?"], ["insert", {"id": "n3"}, "e"], ["?"],
            # Behind a story of a page that was not read yet.
            ["insert", {"id": "n4"}, "z"], ["?"],
            # Nothing twice.
            ["append", stories("e f a")], ["?"],
            ["move", "a", "f"], ["move", "d", "f"], ["move", "e", "n4"], ["move", "f", "a"], ["?"],
            ["remove", "b"], ["remove", "n1"], ["?"],
        ])
    assert answers == [
        "a b c d n1 e", "a b c d n2 n1 e", "a b c d n2 n1 e n3", "a b c d n2 n1 e n3 n4", "a b c d n2 n1 e n3 n4 f",
        "a b c d f n2 n1 n3 n4 e", "a c d f n2 n3 n4 e",
    ]


def test_the_list_is_bounded(chromium: Browser, server: Server) -> None:
    with chromium.open(server.origin + "/healthz") as page:
        length, has_current, first = page.evaluate(
            """async () => {
                const {StoryList} = await import('/assets/feed/list.js');
                const list = new StoryList();
                list.append([{id: 'first'}]);
                list.current = 'first';
                for (let n = 0; n < 3000; n++) {
                    list.append([{id: `s${n}`}]);
                    if (n === 1500) list.current = 's600';
                }
                return [list.length, list.get('s600') !== null, list.stories[0].id];
            }""")
    assert length == 1000 and has_current and first == "s600"


def decoded(hash: str, x: float, y: float) -> list[int]:
    """One point of a BlurHash, from 0 to 1, by the format's description."""
    digits = "0123456789ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz#$%*+,-.:;=?@[]^_{|}~"

    def value(part: str) -> int:
        total = 0
        for letter in part:
            total = total * 83 + digits.index(letter)
        return total
    size, greatest = value(hash[0]), (value(hash[1]) + 1) / 166
    columns, rows = size % 9 + 1, size // 9 + 1
    average = value(hash[2:6])
    colours = [[((c / 255 + 0.055) / 1.055) ** 2.4 if c > 10 else c / 255 / 12.92
                for c in (average >> 16, average >> 8 & 255, average & 255)]]
    for index in range(1, columns * rows):
        part = value(hash[4 + 2 * index:6 + 2 * index])
        colours.append([
            math.copysign(((c - 9) / 9) ** 2, c - 9) * greatest for c in (part // 361, part // 19 % 19, part % 19)])
    result = []
    for c in range(3):
        light = sum(
            colours[j * columns + i][c] * math.cos(math.pi * x * i) * math.cos(math.pi * y * j)
            for j in range(rows) for i in range(columns))
        light = min(1.0, max(0.0, light))
        result.append(round((light * 12.92 if light <= 0.0031308 else 1.055 * light ** (1 / 2.4) - 0.055) * 255))
    return result


@pytest.mark.parametrize("hash", ["LEHV6nWB2yk8pyo0adR*.7kCMdnj", "LGF5]+Yk^6#M@-5c,1J5@[or[Q6.", "00H=.}"])
def test_blurred_pictures_are_decoded(chromium: Browser, server: Server, hash: str) -> None:
    with chromium.open(server.origin + "/healthz") as page:
        pixels = page.evaluate(
            "async hash => [...(await import('/assets/story-feed.js')).decodeBlurHash(hash, 8, 4)]", hash)
    assert len(pixels) == 8 * 4 * 4
    for y in range(4):
        for x in range(8):
            at = (y * 8 + x) * 4
            assert pixels[at:at + 3] == pytest.approx(decoded(hash, x / 8, y / 4), abs=1)
            assert pixels[at + 3] == 255


def test_what_is_no_blurred_picture_is_refused(chromium: Browser, server: Server) -> None:
    bad = ["", "LEHV6", "LEHV6nWB2yk8pyo0adR*.7kCMdn", "LEHV6nWB2yk8pyo0adR*.7kCMdnjj", "LEHV6nWB2yk8pyo0adR*.7kCMdn\\", None, 7]
    with chromium.open(server.origin + "/healthz") as page:
        answers = page.evaluate(
            """async hashes => {
                const {decodeBlurHash, isBlurHash} = await import('/assets/story-feed.js');
                return hashes.map(hash => {
                    try { decodeBlurHash(hash, 4, 4); return 'decoded'; } catch (error) { return `${isBlurHash(hash)} ${error.name}`; }
                });
            }""", bad)
    assert answers == ["false RangeError"] * len(bad)


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
        slots(first, second) {
            this.say({type: 'slots', slots: [first, second].flatMap((filled, slot) => {
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
            {"type": "peek", "stream": "s2", "direction": "forward"}, {"type": "focus", "stream": "s2", "ahead": "s3"},
            {"type": "peek", "stream": "s3", "direction": "forward"}, {"type": "release", "stream": "s3"},
            {"type": "peek", "stream": "s3", "direction": "forward"}, {"type": "focus", "stream": "s1", "ahead": "s2"},
        ],
        "s1", [" s1 forward jump", "s1 s2 forward swipe", "s2 s1 backward swipe"],
    ]


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
        peers[0].open();
        peers[0].slots(['s1', 'full'], null);
        sockets[0].say({type: 'change', version: 2, ended: ['s1']});
    }""")
    # The server's word about where to go is lost.
    page.wait_for("() => feed.current.id === 's2'", seconds=8, what="the viewer is taken on")
    assert page.evaluate("() => peers[0].control.said") == [{"type": "focus", "stream": "s2", "ahead": "s3"}]


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
        [{"type": "focus", "stream": "s5", "ahead": "s4"}],
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
        [{"type": "focus", "stream": "s4", "ahead": "s3"}],
    ]


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
    }""") == ["s3", "s4", "s1 s4", {"type": "focus", "stream": "s4", "ahead": "s1"}]


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
