"""What players by WHEP expect beside the session, as one of another site does it: events, and a choice of layers."""

from __future__ import annotations

from drivers import Browser, wait_until
from media import go_live
from server import Server

PLAY = """async endpoint => {
    const peer = globalThis.peer = new RTCPeerConnection({bundlePolicy: 'max-bundle'});
    const video = globalThis.video = document.createElement('video');
    for (const kind of ['audio', 'video']) {
        const {receiver} = peer.addTransceiver(kind, {direction: 'recvonly'});
        if (kind === 'video') video.srcObject = new MediaStream([receiver.track]);
    }
    video.muted = video.autoplay = video.playsInline = true;
    document.body.append(video);
    await peer.setLocalDescription();
    const post = (address, type, body) => fetch(address, {method: 'POST', body, headers: {'Content-Type': type}});
    const answer = await post(endpoint, 'application/sdp', peer.localDescription.sdp);
    globalThis.session = new URL(answer.headers.get('Location'), endpoint);
    const links = Object.fromEntries(answer.headers.get('Link').split(/,\\s+(?=<)/).map(link => {
        const [, address, relation] = link.match(/<(.*)>; *rel="([^"]*)"/);
        return [relation.split(':').at(-1), new URL(address, endpoint)];
    }));
    globalThis.choose = async layer => (await post(links.layer, 'application/json', JSON.stringify(layer))).status;
    globalThis.heard = {};
    const kinds = ['active', 'inactive', 'layers', 'viewercount'];
    const made = await post(links['server-sent-events'], 'application/json', JSON.stringify(kinds));
    globalThis.source = new EventSource(new URL(made.headers.get('Location'), endpoint));
    for (const kind of kinds) source.addEventListener(kind, event => { heard[kind] = JSON.parse(event.data); });
    await peer.setRemoteDescription({type: 'answer', sdp: await answer.text()});
    const {mid} = peer.getTransceivers()[1];
    globalThis.layers = () => heard.layers?.[mid]?.layers ?? [];
}"""


def test_a_player_hears_what_changes_and_chooses_a_layer(chromium: Browser, server: Server, stream: str) -> None:
    # Another site than the server's, which has to be let.
    other = server.origin.replace("127.0.0.1", "localhost")
    assert other != server.origin
    with go_live(chromium, server, stream, codec="vp8", quality=480, fps=15, simulcast=1), chromium.open(
        other + "/healthz") as page:
        page.evaluate(PLAY, f"{server.origin}/whep/{stream}?wait=10")
        page.wait_for(
            "() => heard.active && heard.viewercount?.viewercount === 1 && layers().length === 2", seconds=30,
            what="the player has heard of both layers", about="() => heard")
        assert server.metrics()["rostrum_event_streams"] == 1
        height, best, least = (
            "() => video.videoHeight", *(f"() => layers().at({place})?.height" for place in (0, -1)))
        wait_until(lambda: page.evaluate(height) == page.evaluate(best) == 480, 30, "the largest picture comes")
        assert page.evaluate("() => choose({mediaId: '1', encodingId: 'none'})") == 422
        assert page.evaluate("() => choose({mediaId: '1', encodingId: layers().at(-1).encodingId})") == 200
        wait_until(lambda: page.evaluate(height) == page.evaluate(least) == 240, 20, "the smallest picture comes")
        assert page.evaluate("() => choose({})") == 200
        wait_until(lambda: page.evaluate(height) == 480, 30, "the largest picture comes again")
        assert page.evaluate("async () => (await fetch(session, {method: 'DELETE'})).status") == 200
        wait_until(lambda: server.metrics()["rostrum_event_streams"] == 0, 10, "the stream of events ends")
