"""One TCP port for everything: HTTPS, ICE over TCP, and TURN over TCP and TLS are told apart by what comes first."""

from __future__ import annotations

import json
import re
import socket
import ssl
import subprocess
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path

import pytest

import test_tcp
from aiortc_client import Aiortc
from drivers import Browser, Chromium, wait_until
from drivers.patience import patient
from drivers.process import Process
from media import USUAL_VIEWPORT, go_live, press_go_live, wait_for_frames, wait_for_state
from secure_socket import SecureSocket
from server import ROOT, Server, unpacked
from test_players import LIMIT, pion_player, run  # noqa: F401
from test_turn import DIRECT, KINDS, ONLY, WAY, go_live_directly, play_by
from turn import places


class SharedServer(Server):
    """Everything that comes by TCP on one port, in the clear."""

    bound = "0.0.0.0"
    #: Options that name the port, beside `--http`.
    sharing = ("--tcp", "--turn-tcp")

    def start(self) -> None:
        place = f"0.0.0.0:{self.http_port}"
        self._arguments = (*self._arguments, *(word for option in self.sharing for word in (option, place)))
        super().start()

    def came(self, protocol: str) -> float:
        return self.metrics()[f'rostrum_shared_port_connections_total{{protocol="{protocol}"}}']

    def closed(self, reason: str) -> float:
        return self.metrics()[f'rostrum_shared_port_closed_total{{reason="{reason}"}}']


class SecureSharedServer(SharedServer):
    """The same with a certificate."""

    sharing = ("--tcp", "--turn-tcp", "--turn-tls")

    def __init__(self, log: Path, folder: Path) -> None:
        subprocess.run([str(ROOT / "Certs/make-dev-certs"), "--out", str(folder)], check=True, capture_output=True)
        self.authority = folder / "ca.pem"
        # coturn's client binds some channels to the port after the one that it is told.
        super().__init__(
            log, "--workers", "2", "--tls-certificate", f"{folder}/tls.pem", "--tls-key", f"{folder}/tls.key", media_ports=2)
        self.origin = self.origin.replace("http:", "https:")

    def context(self) -> ssl.SSLContext:
        """Of a client that checks the certificate, and names no protocol by ALPN."""
        return ssl.create_default_context(cafile=str(self.authority))

    def connect(self) -> ssl.SSLSocket:
        plain = socket.create_connection(("127.0.0.1", self.http_port), timeout=patient(10))
        return self.context().wrap_socket(plain, server_hostname="127.0.0.1")


@pytest.fixture(scope="module")
def secure(logs: Path, tmp_path_factory: pytest.TempPathFactory) -> Iterator[SecureSharedServer]:
    with pytest.MonkeyPatch.context() as patch:
        folder = tmp_path_factory.mktemp("certs")
        patch.setenv("SSL_CERT_FILE", str(folder / "ca.pem"))
        server = SecureSharedServer(logs / "shared-port.log", folder)
        yield server
        assert server.stop() == 0


@pytest.fixture(scope="module")
def plain(logs: Path) -> Iterator[SharedServer]:
    server = SharedServer(logs / "shared-port-plain.log")
    yield server
    assert server.stop() == 0


@pytest.fixture(scope="module")
def trusting(logs: Path) -> Iterator[Browser]:
    """Takes the certificate of whom it does not know."""
    browser = Chromium(logs, ["--ignore-certificate-errors"])
    yield browser
    browser.close()


def read(connection: socket.socket) -> bytes:
    """All that comes until the end; who was not read to its own end may see the connection reset."""
    data = b""
    with suppress(ConnectionResetError):
        while piece := connection.recv(65_536):
            data += piece
    return data


def test_chromium_gets_pages_and_pictures_by_one_port(
    trusting: Browser, secure: SecureSharedServer, stream: str
) -> None:
    """Pages by HTTPS, and pictures by TURN over TLS, TURN over TCP and ICE over TCP."""
    address = f"{secure.origin}/live/{stream}?quality=360&fps=15&codec=vp8"
    press_go_live(trusting.open(address, USUAL_VIEWPORT, before_load=DIRECT))
    for kind in ("tls", "tcp"):
        viewer = trusting.open(f"{secure.origin}/watch/{stream}", USUAL_VIEWPORT, before_load=ONLY % KINDS[kind])
        wait_for_state(viewer, "live", seconds=30)
        wait_for_frames(viewer)
        assert viewer.evaluate(WAY) == ["relay", kind]
        # Whoever has seen enough takes nothing more of the machine.
        viewer.close()
    viewer = trusting.open(f"{secure.origin}/watch/{stream}", USUAL_VIEWPORT, before_load=test_tcp.ONLY)
    wait_for_state(viewer, "live", seconds=30)
    wait_for_frames(viewer)
    assert viewer.evaluate(test_tcp.PROTOCOLS) == ["tcp", "tcp"]
    for protocol in ("https", "turn_tls", "turn_tcp", "ice_tcp"):
        assert secure.came(protocol) > 0, protocol
    assert secure.came("http") == 0


def test_clients_are_told_of_the_shared_port(
    trusting: Browser, secure: SecureSharedServer, stream: str
) -> None:
    go_live(trusting, secure, stream, codec="vp8")
    told = places(secure, stream, secure.context())
    assert {(re.sub(r":[^?]*", "", place.url), place.port) for place in told} == {
        ("turns?transport=tcp", secure.http_port), ("turn?transport=tcp", secure.http_port)}
    offer = (ROOT / "Tests/Fixtures/Offers/chrome-play.sdp").read_bytes()
    _, _, answer = secure.request("POST", f"/whep/{stream}?wait=10", offer, {"Content-Type": "application/sdp"})
    ports = re.findall(rb"a=candidate:\S+ 1 tcp \d+ \S+ (\d+) typ host tcptype passive", answer, re.IGNORECASE)
    assert ports and set(ports) == {b"%d" % secure.http_port}, answer


def test_aiortc_and_coturns_client_are_served_by_tls(
    trusting: Browser, secure: SecureSharedServer, tmp_path: Path, stream: str
) -> None:
    """By ALPN the one names nothing, and the other one HTTP before TURN."""
    go_live(trusting, secure, stream, codec="vp8")
    told = places(secure, stream, secure.context())
    place = next(each for each in told if each.url.startswith("turns:"))
    aiortc = Aiortc()
    try:
        assert set(aiortc.run(play_by(place, secure, stream, secure.context()), seconds=40)) == {"relay"}
    finally:
        aiortc.close()
    offer = (ROOT / "Tests/Fixtures/Offers/chrome-play.sdp").read_bytes()
    _, _, answer = secure.request("POST", f"/whep/{stream}?wait=10", offer, {"Content-Type": "application/sdp"})
    media = re.search(rb"a=candidate:\S+ 1 udp \d+ (\S+) \d+ ", answer, re.IGNORECASE)
    assert media, answer
    def ask(*options: str) -> str:
        log = tmp_path / f"uclient{''.join(options)}.log"
        log.unlink(missing_ok=True)
        client = Process(
            ["stdbuf", "-oL", str(unpacked("usr/bin/turnutils_uclient")), "-v", "-c", "-u", place.username,
             "-w", place.password, "-e", media[1].decode(), "-r", str(secure.udp_port), "-p", str(secure.http_port),
             *options, "127.0.0.1"],
            log, r"error|Total connect time", 30)
        client.stop()
        return log.read_text()

    # It chooses a version of TLS by chance, of which the server takes the newer ones.
    by_tls = next(said for said in (ask("-t", "-S") for _ in range(30)) if "alert protocol version" not in said)
    for said in (ask("-t"), by_tls):
        assert "error" not in said and re.search(r"channel bind sent.*?success", said, re.DOTALL), said


@pytest.mark.parametrize("name", ["chromium", "firefox"])
def test_browsers_share_a_port_in_the_clear(
    name: str, browsers: dict[str, Browser], chromium: Browser, plain: SharedServer, stream: str
) -> None:
    go_live_directly(chromium, plain, stream)
    viewer = browsers[name].open(f"{plain.origin}/watch/{stream}", USUAL_VIEWPORT, before_load=ONLY % KINDS["tcp"])
    wait_for_state(viewer, "live", seconds=30)
    wait_for_frames(viewer)
    assert viewer.evaluate(WAY) == ["relay", "tcp"]
    # It takes nothing more of the machine.
    viewer.close()
    viewer = browsers[name].open(f"{plain.origin}/watch/{stream}", USUAL_VIEWPORT, before_load=test_tcp.ONLY)
    wait_for_state(viewer, "live", seconds=30)
    wait_for_frames(viewer)
    assert viewer.evaluate(test_tcp.PROTOCOLS) == ["tcp", "tcp"]
    assert plain.came("http") > 0 and plain.came("turn_tcp") > 0 and plain.came("ice_tcp") > 0


def test_pion_plays_over_turn_by_a_shared_port(
    chromium: Browser, plain: SharedServer, stream: str, pion_player: Path  # noqa: F811
) -> None:
    go_live(chromium, plain, stream, codec="vp8")
    place = next(each for each in places(plain, stream) if re.match(KINDS["tcp"], each.url))
    seen = run([
        str(pion_player), f"{plain.origin}/whep/{stream}?wait=20", "60", LIMIT, place.url, place.username, place.password])
    assert (seen["codec"], seen["local"]) == ("VP8", "relay")


def test_https_without_alpn_is_answered(secure: SecureSharedServer) -> None:
    """A short answer, a long one, and one whose request comes in pieces."""
    before = secure.came("https_unnamed")
    with secure.connect() as connection:
        connection.sendall(b"GET /healthz HTTP/1.1\r\nHost: localhost\r\n\r\n")
        assert read(connection).startswith(b"HTTP/1.1 200 ")
    with secure.connect() as connection:
        connection.sendall(b"GET /v1/openapi.json HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n\r\n")
        head, _, body = read(connection).partition(b"\r\n\r\n")
        length = re.search(rb"content-length: (\d+)", head, re.IGNORECASE)
        assert length and len(body) == int(length[1]) > 200_000
        assert json.loads(body)["openapi"]
    with secure.connect() as connection:
        for byte in b"GET /healthz HTTP/1.1\r\nHost: localhost\r\n\r\n":
            connection.sendall(bytes([byte]))
        assert read(connection).startswith(b"HTTP/1.1 200 ")
    assert secure.came("https_unnamed") - before == 3
    wait_until(lambda: secure.metrics()["rostrum_shared_port_pipes"] == 0, 10, "nothing is left of them")


def test_https_without_alpn_counts_as_secure(secure: SecureSharedServer) -> None:
    with secure.connect() as connection:
        body = json.dumps({"sub": "ann", "name": "Ann", "role": "host", "stream": "s"}).encode()
        connection.sendall(
            b"POST /v1/tokens HTTP/1.1\r\nHost: localhost\r\nContent-Type: application/json\r\nContent-Length: %d\r\n\r\n%s"
            % (len(body), body))
        assert read(connection).startswith(b"HTTP/1.1 201 ")


def test_a_websocket_without_alpn_works(secure: SecureSharedServer) -> None:
    address = secure.origin.replace("https:", "wss:") + "/v1/feed/sync"
    with SecureSocket(address, secure.context()) as feed:
        assert json.loads(feed.receive())["type"]
        feed.ping()
        # Connections of the test before may be gone only now.
        wait_until(lambda: secure.metrics()["rostrum_shared_port_pipes"] == 1, 10, "it alone is passed on")
    wait_until(lambda: secure.metrics()["rostrum_shared_port_pipes"] == 0, 10, "nothing is left of it")


def test_a_client_hello_in_pieces_is_understood(secure: SecureSharedServer) -> None:
    """Byte by byte, each in a segment of its own."""
    context = secure.context()
    context.set_alpn_protocols(["http/1.1"])
    incoming, outgoing = ssl.MemoryBIO(), ssl.MemoryBIO()
    tls = context.wrap_bio(incoming, outgoing, server_hostname="127.0.0.1")
    with socket.create_connection(("127.0.0.1", secure.http_port), timeout=patient(20)) as connection:
        connection.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        with pytest.raises(ssl.SSLWantReadError):
            tls.do_handshake()
        for byte in outgoing.read():
            connection.sendall(bytes([byte]))
        while True:
            try:
                tls.do_handshake()
                break
            except ssl.SSLWantReadError:
                connection.sendall(outgoing.read())
                incoming.write(connection.recv(65_536))
        assert tls.selected_alpn_protocol() == "http/1.1"


def test_what_is_nothing_is_closed_and_counted(secure: SecureSharedServer) -> None:
    """Noise, TLS that is none, frames of something else; and silence, after some seconds."""
    before = secure.closed("unknown")
    noises = [b"\x80\x90" * 20, b"\x16\x03\x01\x00\x05\x02\x00\x00\x01\x00", b"\x00\x0bhello world", b"\x16\x03\x01\x00\x00"]
    for noise in noises:
        with socket.create_connection(("127.0.0.1", secure.http_port), timeout=patient(10)) as connection:
            connection.sendall(noise)
            assert read(connection) == b""
    assert secure.closed("unknown") - before == len(noises)
    with socket.create_connection(("127.0.0.1", secure.http_port), timeout=patient(20)) as silent, \
            secure.connect() as shaken:
        assert read(silent) == b""
        assert read(shaken) == b""
    assert secure.closed("silent") >= 2
    # Text is answered as HTTP on a port for HTTPS is, which hangs up.
    with socket.create_connection(("127.0.0.1", secure.http_port), timeout=patient(10)) as connection:
        connection.sendall(b"GET / HTTP/1.1\r\nHost: a\r\n\r\n")
        assert b"200" not in read(connection)


def test_many_who_say_nothing_keep_nobody_out(secure: SecureSharedServer) -> None:
    silent = [socket.create_connection(("127.0.0.1", secure.http_port)) for _ in range(100)]
    for connection in silent:
        connection.sendall(b"\x16\x03\x01\x02")
    try:
        assert secure.request("GET", "/healthz")[0] == 200
        assert secure.metrics()["rostrum_shared_port_undecided"] >= 100
    finally:
        for connection in silent:
            connection.close()
