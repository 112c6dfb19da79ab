"""Networks that let only TLS, TCP or one UDP port through: everything goes by the server's own TURN ports."""

from __future__ import annotations

import asyncio
import json
import random
import re
import socket
import ssl
import struct
import subprocess
import time
import urllib.request
from collections.abc import Iterator
from pathlib import Path

import pytest
from aiortc import (
    MediaStreamTrack, RTCConfiguration, RTCIceServer, RTCIceTransportPolicy, RTCPeerConnection, RTCSessionDescription,
)

from aiortc_client import Aiortc
from drivers import Browser, Chromium, wait_until
from drivers.patience import patient
from drivers.process import Process
from media import USUAL_VIEWPORT, go_live, press_go_live, wait_for_frames, wait_for_sound, wait_for_state, watch
from server import ROOT, Server, free_port, unpacked
from test_bench import check_viewers, measure
from test_players import LIMIT, pion_player, run  # noqa: F401
from turn import (
    CHANNEL, CHANNEL_BIND, CREATE_PERMISSION, DATA, LIFETIME, PEER, REFRESH, RELAYED, SEND, SUCCESS, Place, TurnClient,
    attribute, peer, places,
)

#: A network in which nothing but one of the relays is reached: the direct way leads to a port where nobody is. The relay
#: is asked at the address that media have, because Firefox takes none at a loopback address.
ONLY = """() => {
    const kind = %r, Original = RTCPeerConnection;
    globalThis.RTCPeerConnection = class extends Original {
        #answers = 0;
        #address = '';
        setConfiguration(given) {
            const iceServers = given.iceServers.filter(server => new RegExp(kind).test(server.urls))
                .map(server => ({ ...server, urls: server.urls.replace('127.0.0.1', this.#address) }));
            super.setConfiguration({ ...given, iceServers, iceTransportPolicy: 'relay' });
        }
        setRemoteDescription({ type, sdp }) {
            if (!this.#answers++) {
                this.#address = sdp.match(/a=candidate:\\S+ \\d+ udp \\d+ (\\S+)/i)[1];
                sdp = sdp.replace(/(a=candidate:\\S+ \\d+ udp \\d+ \\S+) \\d+ /gi, '$1 9 ')
                    .replace(/a=candidate:\\S+ \\d+ tcp .*\\r\\n/gi, '');
            }
            return super.setRemoteDescription({ type, sdp });
        }
    };
}"""
#: Knows of no relay: a page that has not connected directly within 2 s asks them too, and has allocations of its own then.
DIRECT = "() => { RTCPeerConnection.prototype.setConfiguration = () => {}; }"
KINDS = {"udp": "^turn:.*=udp", "tcp": "^turn:.*=tcp", "tls": "^turns:"}

#: By what the media goes: the kind of our candidate, and what reaches the relay.
WAY = """async () => {
    const report = await rostrum.connection.session.peer.getStats();
    for (const entry of report.values()) {
        const pair = entry.type === 'transport' ? report.get(entry.selectedCandidatePairId)
            : entry.type === 'candidate-pair' && entry.selected ? entry : null;
        const local = pair && report.get(pair.localCandidateId);
        if (local) return [local.candidateType, local.relayProtocol];
    }
    return null;
}"""


@pytest.fixture(scope="module")
def relay(logs: Path) -> Iterator[Server]:
    """A server that takes clients by TURN over TCP and UDP."""
    port = free_port()
    server = Server(
        logs / "turn.log", "--workers", "2", "--turn-tcp", f"0.0.0.0:{port}", "--turn-udp", f"0.0.0.0:{port}")
    yield server
    assert server.stop() == 0


class SecureServer(Server):
    """The same by HTTPS, and by TURN over TLS."""

    def __init__(self, log: Path, folder: Path) -> None:
        subprocess.run([str(ROOT / "Certs/make-dev-certs"), "--out", str(folder)], check=True, capture_output=True)
        self.authority = folder / "ca.pem"
        super().__init__(
            log, "--turn-tls", f"0.0.0.0:{free_port()}", "--tls-certificate", f"{folder}/tls.pem",
            "--tls-key", f"{folder}/tls.key")
        self.origin = self.origin.replace("http:", "https:")


def allocations(server: Server) -> float:
    return server.metrics()["rostrum_turn_allocations"]


def way_of(role: str, server: Server, stream: str) -> str | None:
    """By which TURN port operators are told that a host or a viewer came, from an address that is not the port's."""
    admin = {"Authorization": f"Bearer {server.token(stream, 'admin')}"}
    sessions = json.loads(server.request("GET", f"/v1/sessions?stream={stream}", headers=admin)[2])["sessions"]
    [session] = [each for each in sessions if (each["purpose"] == "play") == (role == "viewer")]
    dossier = json.loads(server.request("GET", f"/v1/sessions/{session['id']}", headers=admin)[2])
    [connected] = [event for event in dossier["events"] if event["event"] == "connected"]
    way, protocol = dossier["relay"], dossier["protocol"]
    assert (session["relay"], session["mediaAddress"]) == (way, dossier["mediaAddress"])
    assert protocol == ("udp" if way in (None, "udp") else "tcp")
    assert (connected["address"] == dossier["mediaAddress"]) == (way is None), dossier
    return way


def go_live_directly(browser: Browser, server: Server, stream: str) -> None:
    address = f"{server.origin}/live/{stream}?quality=360&fps=15&codec=vp8"
    press_go_live(browser.open(address, USUAL_VIEWPORT, before_load=DIRECT))


@pytest.mark.parametrize("kind", ["udp", "tcp"])
@pytest.mark.parametrize("name", ["chromium", "firefox"])
def test_a_viewer_plays_over_turn(
    name: str, kind: str, browsers: dict[str, Browser], chromium: Browser, relay: Server, stream: str
) -> None:
    go_live_directly(chromium, relay, stream)
    viewer = browsers[name].open(f"{relay.origin}/watch/{stream}", USUAL_VIEWPORT, before_load=ONLY % KINDS[kind])
    wait_for_state(viewer, "live", seconds=30)
    wait_for_frames(viewer)
    assert viewer.evaluate(WAY) == ["relay", kind]
    assert way_of("viewer", relay, stream) == kind
    assert way_of("host", relay, stream) is None
    assert wait_for_sound(viewer) > 0
    assert allocations(relay) > 0
    viewer.close()
    wait_until(lambda: allocations(relay) == 0, 30, "its allocation is given back")


def test_a_publisher_sends_over_turn(chromium: Browser, relay: Server, stream: str) -> None:
    studio = chromium.open(
        f"{relay.origin}/live/{stream}?quality=360&fps=15&codec=vp8", before_load=ONLY % KINDS["tcp"])
    press_go_live(studio)
    viewer = watch(chromium, relay, stream)
    wait_for_state(viewer, "live", seconds=30)
    wait_for_frames(viewer)
    assert studio.evaluate(WAY) == ["relay", "tcp"]
    assert way_of("host", relay, stream) == "tcp"


def test_all_goes_by_tls(tmp_path: Path, logs: Path, stream: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """A host and a viewer in Chromium, and a player that checks the certificate."""
    server = SecureServer(logs / "turn-tls.log", tmp_path)
    browser = Chromium(logs, ["--ignore-certificate-errors"])
    context = ssl.create_default_context(cafile=str(server.authority))
    monkeypatch.setenv("SSL_CERT_FILE", str(server.authority))
    aiortc = Aiortc()
    try:
        for path in ("live", "watch"):
            page = browser.open(f"{server.origin}/{path}/{stream}?quality=360&fps=15&codec=vp8", before_load=ONLY % KINDS["tls"])
            if path == "live":
                press_go_live(page)
        wait_for_state(page, "live", seconds=30)
        wait_for_frames(page)
        assert page.evaluate(WAY) == ["relay", "tls"]
        assert way_of("host", server, stream) == way_of("viewer", server, stream) == "tls"
        place = next(each for each in places(server, stream, context) if each.url.startswith("turns:"))
        assert set(aiortc.run(play_by(place, server, stream, context), seconds=40)) == {"relay"}
    finally:
        aiortc.close()
        browser.close()
        assert server.stop() == 0


async def play_by(place: Place, server: Server, stream: str, context: ssl.SSLContext | None = None) -> list[str]:
    """Plays by one relay alone until there are pictures, and tells of what kind its candidates were."""
    connection = RTCPeerConnection(RTCConfiguration(
        iceServers=[RTCIceServer(urls=place.url, username=place.username, credential=place.password)],
        iceTransportPolicy=RTCIceTransportPolicy.RELAY))
    seen = asyncio.Event()

    async def consume(track: MediaStreamTrack) -> None:
        for _ in range(20):
            await track.recv()
        seen.set()

    def post(offer: str) -> str:
        request = urllib.request.Request(
            f"{server.origin}/whep/{stream}?wait=10", offer.encode(), {"Content-Type": "application/sdp"}, method="POST")
        with urllib.request.urlopen(request, timeout=patient(20), context=context) as answer:
            return answer.read().decode()

    try:
        connection.addTransceiver("video", "recvonly")
        connection.on("track", lambda track: asyncio.ensure_future(consume(track)))
        await connection.setLocalDescription(await connection.createOffer())
        offer = connection.localDescription.sdp
        await connection.setRemoteDescription(RTCSessionDescription(await asyncio.to_thread(post, offer), "answer"))
        await asyncio.wait_for(seen.wait(), patient(20))
        return re.findall(r"a=candidate.* typ (\w+)", offer)
    finally:
        await connection.close()


@pytest.mark.parametrize("kind", ["udp", "tcp"])
def test_aiortc_plays_over_turn(kind: str, chromium: Browser, relay: Server, stream: str) -> None:
    go_live(chromium, relay, stream, codec="vp8")
    place = next(each for each in places(relay, stream) if each.url.endswith(kind))
    aiortc = Aiortc()
    try:
        assert set(aiortc.run(play_by(place, relay, stream), seconds=40)) == {"relay"}
    finally:
        aiortc.close()


@pytest.mark.parametrize("kind", ["udp", "tcp"])
def test_pion_plays_over_turn(
    kind: str, chromium: Browser, relay: Server, stream: str, pion_player: Path  # noqa: F811
) -> None:
    go_live(chromium, relay, stream, codec="vp8")
    place = next(each for each in places(relay, stream) if re.match(KINDS[kind], each.url))
    seen = run([
        str(pion_player), f"{relay.origin}/whep/{stream}?wait=20", "60", LIMIT, place.url, place.username, place.password])
    assert (seen["codec"], seen["local"]) == ("VP8", "relay")


@pytest.mark.parametrize("kind", ["udp", "tcp"])
def test_coturns_client_is_served_and_leads_nowhere_else(
    kind: str, chromium: Browser, logs: Path, tmp_path: Path, stream: str
) -> None:
    """`turnutils_uclient` takes allocations, some with an even port, and binds channels, some to the port after the one it is told."""
    port = free_port()
    relay = Server(
        logs / f"coturn-{kind}.log", "--workers", "2", f"--turn-{kind}", f"0.0.0.0:{port}", media_ports=2)
    try:
        with go_live(chromium, relay, stream):
            [place] = places(relay, stream)
            # As the answer to an offer names it.
            offer = (ROOT / "Tests/Fixtures/Offers/chrome-play.sdp").read_bytes()
            _, _, answer = relay.request("POST", f"/whep/{stream}?wait=10", offer, {"Content-Type": "application/sdp"})
        media = re.search(rb"a=candidate:\S+ 1 udp \d+ (\S+) \d+ ", answer, re.IGNORECASE)
        assert media, answer

        def ask(peer: int) -> str:
            # Once it has bound its channels it sends, and waits for answers that never come.
            log = tmp_path / f"{peer}.log"
            log.unlink(missing_ok=True)
            client = Process(
                ["stdbuf", "-oL", str(unpacked("usr/bin/turnutils_uclient")), "-v", "-c", "-u", place.username,
                 "-w", place.password, "-e", media[1].decode(), "-r", str(peer), "-p", str(port),
                 *(["-t"] if kind == "tcp" else []), "127.0.0.1"],
                log, r"error|Total connect time", 30)
            client.stop()
            return log.read_text()

        # Its choice of channels, and of even ports, is by chance.
        for _ in range(5):
            told = ask(relay.udp_port)
            assert "error" not in told, told
            assert re.search(r"channel bind sent.*?success", told, re.DOTALL), told
            assert re.search(r"refresh sent.*?success", told, re.DOTALL), told
        assert "channel bind: error 403" in ask(free_port(width=2))
    finally:
        assert relay.stop() == 0


@pytest.mark.parametrize("srtp", ["gcm", "cm"])
def test_load_goes_through_the_relay(relay: Server, stream: str, srtp: str) -> None:
    """Publisher and viewers of sfu-bench, all by UDP to the relay, and the addresses are given back."""
    before = relay.metrics()
    report = measure("load", relay.origin, stream, "--viewers", "5", "--transport", "turn", "--srtp", srtp)
    check_viewers(report, 5)
    assert report["setup"]["transport"] == "turn"
    after = relay.metrics()

    def counted(name: str) -> float:
        return after[f"rostrum_turn_{name}_total"] - before[f"rostrum_turn_{name}_total"]

    assert counted("allocations_made") == 6
    assert counted("sent_packets") >= report["media"]["packets"]
    assert counted("received_packets") >= report["publishing"]["frames"]
    wait_until(lambda: allocations(relay) == before["rostrum_turn_allocations"], 20, "all have given back their addresses")


def test_nobody_relays_to_others(relay: Server, chromium: Browser, stream: str) -> None:
    go_live(chromium, relay, stream, codec="vp8")
    place = next(each for each in places(relay, stream) if each.url.endswith("tcp"))
    secret = place.password
    assert TurnClient(place, password="guess").allocate().error == 401
    late = f"{int(time.time()) - 1}:guest"
    assert TurnClient(place, username=late).allocate().error == 401
    assert TurnClient(place, username=place.username.replace(":", "0:", 1)).allocate().error == 401

    client = TurnClient(place, password=secret)
    made = client.allocate()
    assert made.kind & SUCCESS and made.attributes[RELAYED]
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as other, socket.socket() as service:
        other.bind(("127.0.0.1", 0))
        service.bind(("127.0.0.1", 0))
        for ip, port in (
            ("127.0.0.1", other.getsockname()[1]), ("127.0.0.1", relay.http_port), ("10.0.0.1", 53), ("8.8.8.8", 53),
            ("169.254.169.254", 80), ("0.0.0.0", relay.udp_port), ("224.0.0.1", 5353), ("255.255.255.255", 7),
        ):
            target = attribute(PEER, peer(ip, port))
            assert client.ask(CREATE_PERMISSION, target).error == 403
            assert client.ask(CHANNEL_BIND, attribute(CHANNEL, struct.pack(">HH", 0x4000, 0)), target).error == 403
            client.indicate(SEND, target, attribute(DATA, b"through"))
            client.write(struct.pack(">HH", 0x4000, 4) + b"data")
        other.setblocking(False)
        with pytest.raises(BlockingIOError):
            other.recv(100)
    assert client.ask(REFRESH, attribute(LIFETIME, bytes(4))).kind & SUCCESS
    assert relay.metrics()["rostrum_turn_peers_refused_total"] >= 32


def test_noise_and_floods_disturb_nobody(relay: Server, chromium: Browser, stream: str) -> None:
    chance = random.Random(8656)
    go_live_directly(chromium, relay, stream)
    viewer = chromium.open(f"{relay.origin}/watch/{stream}", USUAL_VIEWPORT, before_load=DIRECT)
    wait_for_frames(viewer, 30)
    place = next(each for each in places(relay, stream) if each.url.endswith("tcp"))
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as loud:
        for _ in range(3_000):
            loud.sendto(chance.randbytes(chance.randrange(60)), ("127.0.0.1", place.port))
            loud.sendto(struct.pack(">HHI", 3, 0, 0x2112A442) + chance.randbytes(12), ("127.0.0.1", place.port))
    connections = [socket.create_connection(("127.0.0.1", place.port)) for _ in range(100)]
    for connection in connections:
        connection.sendall(chance.randbytes(200))
    clients: list[TurnClient] = []
    for _ in range(20):
        # One after the other: a connection without an allocation is closed after 10 s.
        client = TurnClient(place)
        clients.append(client)
        assert client.allocate().kind & SUCCESS
        client.write(struct.pack(">HH", 0x4001, 1_000) + chance.randbytes(1_000))
    wait_until(lambda: allocations(relay) == 20, 20, "all have their allocations")
    for client in clients:
        client.close()
    for connection in connections:
        connection.close()
    wait_until(lambda: allocations(relay) == 0, 20, "nothing is left of them")
    wait_for_frames(viewer, 30)
    assert relay.is_running
