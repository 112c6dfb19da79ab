"""The client's modules that have rules of their own, called from a page."""

from __future__ import annotations

from drivers import Browser
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
    with chromium.open(server.origin) as page:
        answer: str = page.evaluate(
            "async (...given) => (await import('/assets/session.js')).withNewTransport(...given)", ANSWER, FRAGMENT)
    assert "old1" not in answer and "7000" not in answer
    assert answer.count("a=ice-ufrag:new1") == 2 and answer.count("a=ice-pwd:newnew") == 2
    assert answer.count("7001") == 1 and answer.index("7001") < answer.index("m=video")

    def rest(sdp: str) -> list[str]:
        return [line for line in sdp.split("\r\n") if not line.startswith(("a=ice-ufrag", "a=ice-pwd", "a=candidate", "a=end"))]
    assert rest(answer) == rest(ANSWER)


def test_ice_servers_are_read_from_links(chromium: Browser, server: Server) -> None:
    header = (
        '<stun:stun.example.net>; rel="ice-server", '
        '<turn:turn.example.net?transport=udp>; rel="ice-server"; username="u"; credential="a, b"; credential-type="password", '
        '</whep/x/events>; rel="urn:ietf:params:whep:ext:core:server-sent-events"')
    with chromium.open(server.origin) as page:
        servers = page.evaluate("async h => (await import('/assets/session.js')).parseIceServers(h)", header)
        none = page.evaluate("async () => (await import('/assets/session.js')).parseIceServers(null)")
    assert servers == [
        {"urls": "stun:stun.example.net"},
        {"urls": "turn:turn.example.net?transport=udp", "username": "u", "credential": "a, b"},
    ]
    assert none == []


def test_time_codes_survive_drawing_and_wrap_around(chromium: Browser, server: Server) -> None:
    with chromium.open(server.origin) as page:
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
    with chromium.open(server.origin) as page:
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
