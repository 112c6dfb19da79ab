"""The client's modules that have rules of their own, called from a page."""

from __future__ import annotations

import pytest

from drivers import Browser
from media import check_no_complaints
from server import Server

ANSWER = "\r\n".join([
    "v=0", "o=- 1 1 IN IP4 0.0.0.0", "s=-", "t=0 0", "a=ice-lite", "a=group:BUNDLE 0 1",
    "m=audio 9 UDP/TLS/RTP/SAVPF 111", "a=mid:0", "a=ice-ufrag:old1", "a=ice-pwd:oldoldoldoldoldoldoldold",
    "a=candidate:1 1 udp 1 127.0.0.1 7000 typ host", "a=end-of-candidates", "a=sendonly",
    "m=video 9 UDP/TLS/RTP/SAVPF 96", "a=mid:1", "a=ice-ufrag:old1", "a=ice-pwd:oldoldoldoldoldoldoldold", "a=sendonly", "",
])
FRAGMENT = "\r\n".join([
    "a=ice-lite", "a=ice-ufrag:new1", "a=ice-pwd:newnewnewnewnewnewnewnew", "m=audio 9 UDP/TLS/RTP/SAVPF 0", "a=mid:0",
    "a=candidate:2 1 udp 1 127.0.0.1 7001 typ host", "a=end-of-candidates", "",
])


def test_a_restart_changes_credentials_and_candidates_only(chromium: Browser, server: Server) -> None:
    with chromium.open(server.origin + "/healthz") as page:
        answer: str = page.evaluate(
            "async (...given) => (await import('/assets/session.js')).withNewTransport(...given)", ANSWER, FRAGMENT)
    assert "old1" not in answer and "7000" not in answer
    assert answer.count("a=ice-ufrag:new1") == 2 and answer.count("a=ice-pwd:newnew") == 2
    assert answer.count("7001") == 1 and answer.index("7001") < answer.index("m=video")

    def rest(sdp: str) -> list[str]:
        return [line for line in sdp.split("\r\n") if not line.startswith(("a=ice-ufrag", "a=ice-pwd", "a=candidate", "a=end"))]
    assert rest(answer) == rest(ANSWER)


def test_a_connection_that_is_there_already_needs_no_event(chromium: Browser, server: Server) -> None:
    with chromium.open(server.origin + "/healthz") as page:
        state = page.evaluate(
            """async () => {
                const {MediaSession} = await import('/assets/session.js');
                const url = new URL('/whep/x', location.href).href;
                globalThis.fetch = async () => Object.defineProperty(
                    new Response('v=0', {status: 201, headers: {Location: '/whep/x/1', ETag: '"1"'}}), 'url', {value: url});
                class Peer extends EventTarget {
                    connectionState = 'new';
                    getTransceivers() { return []; }
                    async createOffer() { return {type: 'offer', sdp: 'v=0'}; }
                    async setLocalDescription(description) { this.localDescription = description; }
                    async setRemoteDescription() { this.connectionState = 'connected'; }
                    close() {}
                }
                const session = new MediaSession(new Peer(), {endpoint: url});
                await session.open();
                return session.state;
            }""")
    assert state == "connected"


def test_a_session_that_the_server_gave_up_is_lost_at_once(chromium: Browser, server: Server) -> None:
    """It tells so when the page names its candidates; ICE alone would find out half a minute later."""
    with chromium.open(server.origin + "/healthz") as page:
        states = page.evaluate(
            """async () => {
                const {MediaSession} = await import('/assets/session.js');
                const url = new URL('/whep/x', location.href).href, asked = [], states = [];
                globalThis.fetch = async (resource, {method}) => {
                    asked.push(method);
                    const answer = method === 'POST'
                        ? new Response('v=0', {status: 201, headers: {Location: '/whep/x/1', ETag: '"1"'}})
                        : new Response(null, {status: 404});
                    return Object.defineProperty(answer, 'url', {value: url});
                };
                class Peer extends EventTarget {
                    connectionState = 'new';
                    signalingState = 'stable';
                    getTransceivers() { return []; }
                    async createOffer() { return {type: 'offer', sdp: 'v=0'}; }
                    async setLocalDescription(description) { this.localDescription = description; }
                    async setRemoteDescription() {}
                    close() { states.push('peer closed'); }
                }
                const peer = new Peer(), session = new MediaSession(peer, {endpoint: url});
                const isLost = new Promise(done => session.addEventListener('statechange', () => {
                    states.push(session.state);
                    if (session.state === 'lost') done();
                }));
                await session.open();
                const candidate = {candidate: 'candidate:1 1 udp 1 127.0.0.1 7000 typ host', sdpMid: '0'};
                peer.dispatchEvent(Object.assign(new Event('icecandidate'), {candidate}));
                await isLost;
                return [...asked, ...states];
            }""")
    assert states[-2:] == ["lost", "peer closed"] and states[:2] == ["POST", "PATCH"], states


def test_an_answer_that_explains_nothing_is_asked_for_again(chromium: Browser, server: Server) -> None:
    """Of a picture that got smaller: no answer came, or one from before the server knew why."""
    with chromium.open(server.origin + "/healthz") as page:
        asked = page.evaluate(
            """async () => {
                const {QualityQuestion} = await import('/assets/quality-question.js');
                const picture = {preview: false, paused: false, wanted: {height: 720}, served: {height: 180}};
                const clear = {cause: null, pictures: [], preferences: {}}, weak = {...clear, cause: 'delay', pictures: [picture]};
                // What is answered at each time that it is asked, while the picture is of one height and then of another.
                const times = (answers, heights) => {
                    const question = new QualityQuestion(), asked = [];
                    for (let now = 0; now < 200_000; now += 500) {
                        if (!question.isDue(heights[now < 20_000 ? 0 : 1], now)) continue;
                        question.answered(answers[Math.min(asked.length, answers.length - 1)], now);
                        asked.push(now);
                    }
                    return asked;
                };
                return [
                    times([clear], [720, 720]), times([clear], [720, 180]), times([null, clear], [720, 720]),
                    times([clear, clear, weak], [720, 180]).slice(0, 5), times([weak, clear], [180, 720]).length,
                ];
            }""")
    best, smaller, lost, weak, better = asked
    assert best == [1_500], "nobody who gets the best there is asks again"
    assert smaller == [1_500, 21_500, 26_500, 36_500, 56_500, 96_500]
    assert lost == [1_500, 6_500]
    assert weak == [1_500, 21_500, 26_500, 31_500, 36_500]
    assert better == 3


def test_ice_servers_are_read_from_links(chromium: Browser, server: Server) -> None:
    header = (
        '<stun:stun.example.net>; rel="ice-server", '
        '<turn:turn.example.net?transport=udp>; rel="ice-server"; username="u"; credential="a, b"; credential-type="password", '
        '<turn:nobody.example.net>; rel="ice-server", '
        r'<turns:quoted.example.net>; rel="ice-server"; username="u\"v"; credential="q\\p\""; credential-type="password", '
        '</whep/x/events>; rel="urn:ietf:params:whep:ext:core:server-sent-events"')
    with chromium.open(server.origin + "/healthz") as page:
        servers = page.evaluate("async h => (await import('/assets/session.js')).parseIceServers(h)", header)
        none = page.evaluate("async () => (await import('/assets/session.js')).parseIceServers(null)")
        page.evaluate("iceServers => new RTCPeerConnection().setConfiguration({ iceServers })", servers)
    assert servers == [
        {"urls": "stun:stun.example.net"},
        {"urls": "turn:turn.example.net?transport=udp", "username": "u", "credential": "a, b"},
        {"urls": "turns:quoted.example.net", "username": 'u"v', "credential": 'q\\p"'},
    ]
    assert none == []


def test_ticks_of_a_busy_page_do_not_pile_up(chromium: Browser, server: Server) -> None:
    with chromium.open(server.origin + "/healthz") as page:
        milliseconds = page.evaluate(
            """async () => {
                const ticker = new Worker('/assets/ticker.js', {type: 'module'}), ticks = [];
                await new Promise(resolve => {
                    ticker.onmessage = () => {
                        if (ticks.length === 0) for (const end = performance.now() + 500; performance.now() < end;);
                        ticks.push(performance.now());
                        if (ticks.length === 20) resolve();
                        ticker.postMessage(null);
                    };
                    ticker.postMessage(5);
                });
                ticker.terminate();
                return ticks[19] - ticks[0];
            }""")
    # Of 19 times 5 ms a worker that got no processor may make up for one or two.
    assert milliseconds > 60


def test_time_codes_survive_drawing_and_wrap_around(chromium: Browser, server: Server) -> None:
    with chromium.open(server.origin + "/healthz") as page:
        read = page.evaluate(
            """async values => {
                const {drawTimeCode, readTimeCode, timeCodeAge} = await import('/assets/timecode.js');
                const canvas = new OffscreenCanvas(640, 360), context = canvas.getContext('2d');
                // The reader takes anything that can be drawn and knows its size.
                Object.assign(canvas, {videoWidth: 640, videoHeight: 360});
                const codes = values.map(value => { drawTimeCode(context, value); return readTimeCode(canvas); });
                context.fillStyle = '#777';
                context.fillRect(0, 0, 640, 360);
                return [codes, readTimeCode(canvas), timeCodeAge(2 ** 20 - 10, 20)];
            }""",
            [0, 1, 555_555, 2**20 - 1])
    assert read == [[0, 1, 555_555, 2**20 - 1], None, 30]


def test_identity_and_token_stay_within_a_tab(chromium: Browser, server: Server) -> None:
    with chromium.open(server.origin + "/healthz") as page:
        tokens = page.evaluate(
            """async () => {
                const {withToken, knownToken} = await import('/assets/tokens.js');
                const before = knownToken('s1', 'host');
                const first = await withToken('s1', 'host', async token => token);
                const again = await withToken('s1', 'host', async token => token);
                return [before, first, again, knownToken('s1', 'viewer')];
            }""")
    assert tokens[0] is None and tokens[3] is None
    assert tokens[1] and tokens[1] == tokens[2]


def test_merge_patches_do_as_the_rfc_says(chromium: Browser, server: Server) -> None:
    # RFC 7396, appendix A; and names that objects have by themselves.
    cases = [
        ({"a": "b"}, {"a": "c"}, {"a": "c"}), ({"a": "b"}, {"b": "c"}, {"a": "b", "b": "c"}),
        ({"a": "b"}, {"a": None}, {}), ({"a": "b", "b": "c"}, {"a": None}, {"b": "c"}),
        ({"a": ["b"]}, {"a": "c"}, {"a": "c"}), ({"a": "c"}, {"a": ["b"]}, {"a": ["b"]}),
        ({"a": {"b": "c"}}, {"a": {"b": "d", "c": None}}, {"a": {"b": "d"}}),
        ({"a": [{"b": "c"}]}, {"a": [1]}, {"a": [1]}), (["a", "b"], ["c", "d"], ["c", "d"]),
        ({"a": "b"}, ["c"], ["c"]), ({"a": "foo"}, None, None), ({"a": "foo"}, "bar", "bar"),
        ({"e": None}, {"a": 1}, {"e": None, "a": 1}), ([1, 2], {"a": "b", "c": None}, {"a": "b"}),
        ({}, {"a": {"bb": {"ccc": None}}}, {"a": {"bb": {}}}),
        ({}, {"constructor": {"name": "Bob"}}, {"constructor": {"name": "Bob"}}),
    ]
    with chromium.open(server.origin + "/healthz") as page:
        for target, patch, result in cases:
            merged, before = page.evaluate(
                """async (target, patch) => {
                    const {mergePatch} = await import('/assets/sync.js');
                    return [mergePatch(target, patch), target];
                }""", target, patch)
            assert merged == result and before == target
        assert page.evaluate(
            """async () => {
                const {mergePatch} = await import('/assets/sync.js');
                mergePatch({}, JSON.parse('{"__proto__": {"polluted": true}}'));
                return {}.polluted === undefined;
            }""")


#: Sockets that go nowhere: the test says what comes from the server.
FAKE_SOCKETS = """() => {
    globalThis.sockets = [];
    globalThis.fetch = () => Promise.reject(new TypeError("there is no network"));
    globalThis.WebSocket = class extends EventTarget {
        static OPEN = 1;
        constructor(address) { super(); this.address = new URL(address); this.sent = []; sockets.push(this); }
        send(text) { this.sent.push(text); }
        close() { this.lose(1000); }
        open() { this.readyState = 1; this.dispatchEvent(new Event('open')); }
        say(message) { this.dispatchEvent(new MessageEvent('message', {data: JSON.stringify(message)})); }
        lose(code, reason = '') { this.readyState = 3; this.dispatchEvent(new CloseEvent('close', {code, reason})); }
    };
}"""
FOLLOW = """async () => {
    const {StreamSync} = await import('/assets/sync.js');
    globalThis.sync = new StreamSync('s1', async () => 'a token');
    globalThis.resumed = 0;
    sync.addEventListener('resume', () => { resumed++; });
}"""


def test_sync_resumes_where_it_was_interrupted(chromium: Browser, server: Server) -> None:
    with chromium.open(server.origin + "/healthz", before_load=FAKE_SOCKETS) as page:
        page.evaluate(FOLLOW)
        page.evaluate("""() => {
            sockets[0].open();
            sockets[0].say({type: 'snapshot', version: 5, stream: {id: 's1', state: 'backstage', title: 'A'},
                speakers: {ann: {name: 'Ann', audioMuted: false}}, viewers: {bob: {name: 'Bob'}}, raisedHands: {},
                invitations: {}, counts: {viewers: 1}, programme: {ready: false}});
            sockets[0].say({type: 'change', version: 8, raisedHands: {bob: {name: 'Bob', since: 'now'}},
                stream: {state: 'live', title: null}});
            sockets[0].lose(1006);
        }""")
        page.wait_for("() => sockets.length === 2", what="it connects again")
        # Addresses are kept in logs.
        assert page.evaluate("() => sockets[1].address.search") == "?since=8&authenticate=message"
        state = page.evaluate("""() => {
            sockets[1].open();
            sockets[1].say({type: 'change', version: 11, raisedHands: {bob: null}, viewers: {bob: null},
                speakers: {bob: {name: 'Bob'}, ann: {audioMuted: true}}, counts: {viewers: 0}});
            sockets[1].say({type: 'you', you: {id: 'ann', role: 'host'}});
            // What comes late on a socket that was given up is of the past.
            sockets[0].say({type: 'change', version: 9, stream: {state: 'ended'}});
            return [sync.known, sync.you, resumed, sync.interruptions];
        }""")
    assert state == [
        {
            "stream": {"id": "s1", "state": "live"},
            "speakers": {"ann": {"name": "Ann", "audioMuted": True}, "bob": {"name": "Bob"}}, "viewers": {},
            "raisedHands": {}, "invitations": {}, "counts": {"viewers": 0}, "programme": {"ready": False},
        },
        {"id": "ann", "role": "host"}, 1, 1,
    ]


def test_a_stream_of_which_the_server_says_nothing_is_not_waited_for_for_ever(chromium: Browser, server: Server) -> None:
    """Who was on the air and lost the connection asks for it before they come back."""
    with chromium.open(server.origin + "/healthz") as page:
        told = page.evaluate(
            """async () => {
                const {askForStream} = await import('/assets/sync.js');
                const limits = [], end = new AbortController();
                // Nothing ever comes, until it is given up.
                globalThis.fetch = (address, {signal}) => new Promise((resolve, refuse) => {
                    if (signal?.aborted) refuse(signal.reason);
                    signal?.addEventListener('abort', () => refuse(signal.reason));
                });
                const ask = options => Promise.race([
                    askForStream('s1', options).catch(error => error.name),
                    new Promise(resolve => setTimeout(resolve, 1000, 'waits for ever')),
                ]);
                AbortSignal.timeout = limit => {
                    limits.push(limit);
                    return new AbortController().signal;
                };
                const first = ask({signal: end.signal});
                end.abort();
                AbortSignal.timeout = () => AbortSignal.abort(new DOMException('too late', 'TimeoutError'));
                return [await first, await ask({signal: new AbortController().signal}), await ask(), limits];
            }""")
    assert told == ["AbortError", "TimeoutError", "TimeoutError", [10_000]]


def test_sync_shows_its_token_first_and_is_there_once_it_was_taken(chromium: Browser, server: Server) -> None:
    with chromium.open(server.origin + "/healthz", before_load=FAKE_SOCKETS) as page:
        page.evaluate(FOLLOW)
        # In one go: every five seconds it says that it is here.
        sent = page.evaluate("""() => {
            sync.claim('/whep/s1/sessions/abc');
            sockets[0].open();
            return sockets[0].sent.map(text => JSON.parse(text));
        }""")
        assert sent == [{"type": "token", "token": "a token"}, {"type": "session", "id": "abc"}]
        page.evaluate("""() => {
            sockets[0].say({type: 'snapshot', version: 5, stream: {id: 's1', state: 'live'}});
            sockets[0].lose(1006);
        }""")
        page.wait_for("() => sockets.length === 2", what="it connects again")
        page.evaluate("() => { sockets[1].open(); }")
        assert page.evaluate("() => resumed") == 0, "nobody has said yet that the token is good"
        page.evaluate("() => { sockets[1].say({type: 'heartbeat'}); sockets[1].say({type: 'heartbeat'}); }")
        assert page.evaluate("() => resumed") == 1


def test_a_new_snapshot_replaces_all_that_was_known(chromium: Browser, server: Server) -> None:
    with chromium.open(server.origin + "/healthz", before_load=FAKE_SOCKETS) as page:
        page.evaluate(FOLLOW)
        known = page.evaluate("""() => {
            sockets[0].open();
            sockets[0].say({type: 'snapshot', version: 5, stream: {state: 'live'}, raisedHands: {bob: {}}});
            sockets[0].say({type: 'snapshot', version: 900, stream: {state: 'live'}, raisedHands: {cid: {}}});
            sockets[0].say({type: 'heartbeat', version: 900});
            return sync.known.raisedHands;
        }""")
    assert known == {"cid": {}}


def test_sync_stays_away_when_it_was_sent_away(chromium: Browser, server: Server) -> None:
    with chromium.open(server.origin + "/healthz", before_load=FAKE_SOCKETS) as page:
        page.evaluate(FOLLOW)
        page.evaluate("() => { sockets[0].open(); sockets[0].lose(4403, 'banned'); dispatchEvent(new Event('online')); }")
        assert page.evaluate("() => [sync.refusal, sockets.length]") == ["banned", 1]
        page.evaluate("() => sync.reconnect()")
        page.wait_for("() => sockets.length === 2", what="it connects when it is told to")
        assert page.evaluate("() => sync.refusal") is None


def test_of_two_connections_asked_for_at_once_the_last_is_made(chromium: Browser, server: Server) -> None:
    with chromium.open(server.origin + "/healthz", before_load=FAKE_SOCKETS) as page:
        shown = page.evaluate("""async () => {
            const {StreamSync} = await import('/assets/sync.js');
            const answers = [];
            const sync = new StreamSync('s1', () => new Promise(resolve => answers.push(resolve)));
            sync.reconnect();
            answers[0]('old');
            answers[1]('new');
            await new Promise(resolve => setTimeout(resolve));
            for (const socket of sockets) socket.open();
            return sockets.map(({sent}) => JSON.parse(sent[0]).token);
        }""")
    assert shown == ["new"]


def test_widgets_come_and_go_with_their_layers(chromium: Browser, server: Server) -> None:
    with chromium.open(server.origin + "/healthz") as page:
        log = page.evaluate(
            """async () => {
                const {WidgetHost, LAYERS} = await import('/assets/layers.js');
                const layers = Object.fromEntries(LAYERS.map(name => [name, document.createElement('div')]));
                const log = [];
                const widget = (name, layer) => ({name, layer, mount(context, element) {
                    log.push(`+${name}`);
                    const root = document.createElement(name);
                    element.append(root);
                    return () => { log.push(`-${name}`); root.remove(); };
                }});
                const [a, b, c] = [widget('a', 'player'), widget('b', 'float'), widget('c', 'lite')];
                const host = new WidgetHost(layers, {});
                host.show([a, b]);
                host.show([a, b]);
                log.push('| switch float off');
                host.show([a, b], ['player']);
                log.push(layers.float.hidden ? 'hidden' : 'shown');
                log.push('| on again, another view');
                host.show([c, a, b]);
                host.show([c]);
                return [log, host.mounted, Object.values(layers).map(layer => layer.innerHTML).join('')];
            }""")
    assert log == [
        ["+a", "+b", "| switch float off", "-b", "hidden", "| on again, another view", "+c", "+b", "-a", "-b"],
        ["c"], "<c></c>",
    ]


def test_a_broken_widget_takes_no_other_along(chromium: Browser, server: Server) -> None:
    with chromium.open(server.origin + "/healthz") as page:
        mounted = page.evaluate(
            """async () => {
                const {WidgetHost} = await import('/assets/layers.js');
                const broken = {name: 'broken', layer: 'lite', mount() { throw new Error('broken'); }};
                const sound = {name: 'sound', layer: 'lite', mount: () => () => { throw new Error('too'); }};
                const host = new WidgetHost({lite: document.createElement('div')}, {});
                host.show([broken, sound], ['lite']);
                const before = host.mounted;
                host.show([], ['lite']);
                return [before, host.mounted];
            }""")
    assert mounted == [["sound"], []]


def test_warnings_wait_and_go_again(chromium: Browser, server: Server) -> None:
    with chromium.open(server.origin + "/healthz") as page:
        said = page.evaluate(
            """async () => {
                const {QualityJudge} = await import('/assets/quality.js');
                const judge = new QualityJudge(), well = {lossShare: 0, roundTrip: 20, limitation: null};
                const read = numbers => (judge.judge({...well, ...numbers}) ?? '').split('.')[0];
                const lossy = {lossShare: 0.2};
                return [lossy, lossy, lossy, {}, lossy, lossy, {}, {}, {}, {}, {limitation: 'cpu'}].map(read);
            }""")
    loses = "Your connection is losing data"
    assert said == ["", "", "", "", "", loses, loses, loses, loses, "", ""]


@pytest.mark.parametrize("name", ["chromium", "firefox"])
def test_a_socket_that_is_not_wanted_any_more_is_no_fault(
    browsers: dict[str, Browser], server: Server, name: str
) -> None:
    with browsers[name].open(server.origin + "/healthz") as page:
        state = page.evaluate(
            """async () => {
                const {ReconnectingSocket} = await import('/assets/reconnecting-socket.js');
                const made = new Promise(resolve => {
                    globalThis.WebSocket = class extends WebSocket {
                        constructor(address) {
                            super(address);
                            resolve(this);
                        }
                    };
                });
                const socket = new ReconnectingSocket(() => new URL('/v1/streams/nobody/sync', location.href), () => null);
                socket.start();
                const inner = await made;
                const before = inner.readyState;
                socket.stop();
                await new Promise(resolve => inner.addEventListener('close', resolve));
                return [before, socket.isOpen, socket.isWanted];
            }""")
        assert state == [0, False, False]
        check_no_complaints(page)


def test_what_limits_an_encoder_is_told_whichever_size_is_not_sent(chromium: Browser, server: Server) -> None:
    """On a path that takes next to nothing no size has a height, and an m-line that sends nothing has no reason."""
    with chromium.open(server.origin + "/healthz") as page:
        told = page.evaluate(
            """async () => {
                const {StatsReader} = await import('/assets/stats.js');
                const read = reasons => new StatsReader({getStats: async () => new Map(reasons.map((reason, id) => [id, {
                    id, type: 'outbound-rtp', kind: 'video', qualityLimitationReason: reason}]))}, 'outbound-rtp').read();
                const all = [['bandwidth', 'none'], ['none', 'bandwidth'], ['none', 'cpu'], ['cpu', 'bandwidth'], ['none'], []];
                return (await Promise.all(all.map(read))).map(numbers => numbers.limitation);
            }""")
    assert told == ["bandwidth", "bandwidth", "cpu", "bandwidth", None, None]
