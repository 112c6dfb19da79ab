"""Restreams: a live programme that goes on to other servers by RTMP and RTMPS, whatever those do."""

from __future__ import annotations

import json
import os
import re
import signal
import socket
import ssl
import subprocess
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest

from drivers import Browser, wait_until
from drivers.patience import patient
from drivers.process import Process
from media import check_no_complaints, go_live, wait_for_frames, wait_for_sound, watch
from rtmp import Encoder
from server import Server, binary, free_port
from test_hls import metric
from test_operation import make_certificate
from test_previews import transcoder
from test_rtmp import RTMPServer

KEY = "the-key-of-the-target"


class Sender(RTMPServer):
    """A server whose streams may go on to targets on this machine."""

    def __init__(self, log: Path, *arguments: str) -> None:
        super().__init__(log, "--max-restreams", "4", *arguments)

    def ask(self, method: str, stream: str, path: str = "", body: Any = None) -> tuple[int, Any]:
        status, _, answer = self.request(
            method, f"/v1/streams/{stream}/restreams{path}", json.dumps(body).encode() if body else None,
            {"Authorization": f"Bearer {self.token(stream)}", "Content-Type": "application/json"})
        return status, json.loads(answer) if answer else None

    def add(self, stream: str, url: str, key: str = KEY) -> int:
        status, answer = self.ask("POST", stream, body={"url": url, "key": key})
        assert status == 201, answer
        assert key not in json.dumps(answer)
        return answer["number"]

    def state(self, stream: str, number: int) -> dict[str, Any]:
        status, answer = self.ask("GET", stream, f"/{number}")
        assert status == 200, answer
        return answer

    def wait_for(self, stream: str, number: int, state: str, seconds: float = 30) -> dict[str, Any]:
        return wait_until(
            lambda: (known := self.state(stream, number))["state"] == state and known, seconds,
            f"target {number} is {state}")


@pytest.fixture(scope="module")
def sender(logs: Path) -> Iterator[Sender]:
    server = Sender(logs / "server-restream.log", "--restream-networks", "all")
    yield server
    assert server.is_running, "the server died"
    assert server.stop() == 0


@pytest.fixture
def target(logs: Path, stream: str) -> Iterator[RTMPServer]:
    # Its keys are good after a restart, too.
    server = RTMPServer(logs / f"server-target-{stream}.log", "--key-id", "target", "--secret", "0123456789abcdef" * 2)
    yield server
    server.stop()


@contextmanager
def live(server: RTMPServer, stream: str, log: Path) -> Iterator[None]:
    """A stream that ffmpeg publishes."""
    with Encoder(server.address(stream), log):
        wait_until(lambda: stream in server.streams(), 15, "the stream is live")
        yield


@pytest.fixture
def log(logs: Path, stream: str) -> Path:
    return logs / f"restream-{stream}.log"


@pytest.mark.alone
def test_a_programme_is_seen_and_heard_elsewhere(
    chromium: Browser, sender: Sender, target: RTMPServer, stream: str, log: Path
) -> None:
    port = free_port()
    listener = subprocess.Popen(
        ["ffmpeg", "-hide_banner", "-nostdin", "-v", "info", "-listen", "1", "-i", f"rtmp://127.0.0.1:{port}/live/{KEY}",
         "-t", "4", "-af", "volumedetect", "-f", "null", "-"], stderr=subprocess.PIPE, text=True)
    try:
        with live(sender, stream, log):
            assert metric(sender, "rostrum_encodes") == 0
            there = target.ingest(stream)["rtmp"]
            first = sender.add(stream, there["server"], there["key"])
            second = sender.add(stream, f"rtmp://127.0.0.1:{port}/live")
            sender.wait_for(stream, first, "live")
            with watch(chromium, target, stream) as page:
                before = wait_for_frames(page)
                assert (before.width, before.height, before.video_codec) == (640, 360, "H264")
                wait_for_sound(page)
                assert metric(sender, "rostrum_encodes") == 1, "one encode for all"
                wait_for_frames(page, more=60)
                check_no_complaints(page)
            _, told = listener.communicate(timeout=patient(60))
            assert listener.returncode == 0, told
            assert int(re.findall(r"frame=\s*(\d+)", told)[-1]) >= 100, told
            loudness = re.search(r"mean_volume: (-?[\d.]+) dB", told)
            assert loudness and float(loudness[1]) > -40, told
            assert "640x360" in told and "48000 Hz, stereo" in told, told
            # Gone is gone: the target's publisher leaves at once.
            assert sender.ask("DELETE", stream, f"/{first}") == (204, None)
            wait_until(lambda: stream not in target.streams(), 15, "the target has no publisher any more")
            assert sender.ask("DELETE", stream, f"/{second}") == (204, None)
            assert sender.ask("GET", stream, f"/{second}")[0] == 404
            wait_until(lambda: metric(sender, "rostrum_encodes") == 0, 15, "nothing is encoded for nobody")
        text = sender.log.read_text()
        assert KEY not in text and there["key"] not in text and there["key"].split("token=")[1] not in text
    finally:
        listener.kill()


def test_a_target_and_an_encode_that_die_are_there_again(
    chromium: Browser, sender: Sender, target: RTMPServer, stream: str, log: Path
) -> None:
    with live(sender, stream, log):
        there = target.ingest(stream)["rtmp"]
        number = sender.add(stream, there["server"], there["key"])
        sender.wait_for(stream, number, "live")
        with watch(chromium, target, stream) as page:
            wait_for_frames(page)
            os.kill(transcoder(sender), signal.SIGKILL)
            wait_until(lambda: metric(sender, "rostrum_hls_lost_total") >= 1, 15, "the encode was lost")
            # The same connection goes on, with what the next encode makes.
            wait_for_frames(page, more=30)
            assert sender.state(stream, number)["state"] == "live"
        target.stop()
        failed = sender.wait_for(stream, number, "failed")
        assert failed["reason"] in {"closed", "unreachable"} and failed["detail"] and failed["nextTryAt"], failed
        target.start()
        sender.wait_for(stream, number, "live", 60)
        wait_until(lambda: stream in target.streams(), 15, "the target has a publisher again")


def test_a_wrong_key_is_told_in_words(sender: Sender, target: RTMPServer, stream: str, log: Path) -> None:
    with live(sender, stream, log):
        wrong = f"{stream}?token=abc"
        number = sender.add(stream, target.ingest(stream)["rtmp"]["server"], wrong)
        failed = sender.wait_for(stream, number, "failed")
        assert failed["reason"] == "refused" and "malformed" in failed["detail"], failed
        assert "Check the key" in failed["detail"] and "token=abc" not in failed["detail"]
        assert "token=abc" not in sender.log.read_text()


def test_a_hostile_target_disturbs_nobody(
    sender: Sender, target: RTMPServer, stream: str, log: Path
) -> None:
    greeting = b"\x03" + bytes(2 * 1536)
    answers = [
        b"HTTP/1.1 400 Bad Request\r\n\r\n", b"\x03" + os.urandom(4_000),
        # A message of 16 MB.
        greeting + b"\x04\0\0\0\xff\xff\xff\x09\x01\0\0\0" + bytes(100_000),
    ]
    listeners = [socket.create_server(("127.0.0.1", 0)) for _ in answers]

    def serve(listener: socket.socket, answer: bytes) -> None:
        while True:
            try:
                with listener.accept()[0] as client:
                    client.settimeout(10)
                    client.sendall(answer)
                    while client.recv(65_536):
                        pass
            except TimeoutError:
                continue
            except OSError:
                if listener.fileno() < 0:
                    return

    for listener, answer in zip(listeners, answers):
        threading.Thread(target=serve, args=(listener, answer), daemon=True).start()
    with live(sender, stream, log):
        there = target.ingest(stream)["rtmp"]
        good = sender.add(stream, there["server"], there["key"])
        bad = [sender.add(stream, f"rtmp://127.0.0.1:{listener.getsockname()[1]}/live") for listener in listeners]
        for number in bad:
            failed = sender.wait_for(stream, number, "failed")
            assert failed["reason"] == "malformed" and failed["detail"], failed
        sender.wait_for(stream, good, "live")
        for number in bad:
            assert sender.ask("DELETE", stream, f"/{number}")[0] == 204
        assert sender.state(stream, good)["state"] == "live"
    for listener in listeners:
        listener.close()


def test_nothing_is_sent_where_the_internet_does_not_reach(logs: Path, stream: str, log: Path) -> None:
    sender = Sender(logs / f"server-careful-{stream}.log")
    try:
        with socket.create_server(("127.0.0.1", 0)) as listener, live(sender, stream, log):
            port = listener.getsockname()[1]
            for host in ("127.0.0.1", "localhost", "[::1]"):
                number = sender.add(stream, f"rtmp://{host}:{port}/live")
                assert sender.wait_for(stream, number, "failed")["reason"] == "forbidden"
            for url in ("http://a.example/x", "rtmp://a.example:25/x", "rtmp://2130706433/x", "rtmp://u:p@a.example/x"):
                status, answer = sender.ask("POST", stream, body={"url": url, "key": KEY})
                assert status == 422 and "url" in answer["detail"], answer
            listener.settimeout(0)
            with pytest.raises(BlockingIOError):
                listener.accept()
        assert sender.stop() == 0
    finally:
        sender.stop()


def test_rtmps_verifies_who_is_there(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path, logs: Path, stream: str, log: Path
) -> None:
    make_certificate(tmp_path, "localhost")
    monkeypatch.setenv("SSL_CERT_FILE", str(tmp_path / "chain.pem"))
    port = free_port(width=4)
    process = Process(
        [str(binary()), "serve", "--dev", "--workers", "1", "--http", f"127.0.0.1:{port}",
         "--udp", f"127.0.0.1:{port + 1}", "--rtmps", f"127.0.0.1:{port + 3}",
         "--tls-certificate", f"{tmp_path}/chain.pem", "--tls-key", f"{tmp_path}/key.pem"],
        logs / f"restream-rtmps-{stream}.log", r"^ready http=", 15)
    sender = Sender(logs / f"server-secure-{stream}.log", "--restream-networks", "all")
    try:
        with live(sender, stream, log):
            # Whom one knows by name is not known by address.
            other = sender.add(stream, f"rtmps://127.0.0.1:{port + 3}/live")
            failed = sender.wait_for(stream, other, "failed")
            assert failed["reason"] == "insecure" and "certificate" in failed["detail"], failed
            # A server that is who it should be says itself what it thinks of the key.
            known = sender.add(stream, f"rtmps://localhost:{port + 3}/live")
            failed = sender.wait_for(stream, known, "failed")
            assert failed["reason"] == "refused" and "is missing ?token=" in failed["detail"], failed
            # Nobody speaks TLS here.
            plain = sender.add(stream, f"rtmps://127.0.0.1:{sender.rtmp_port}/live")
            assert sender.wait_for(stream, plain, "failed")["reason"] in {"insecure", "closed"}
    finally:
        process.stop()
        assert sender.stop() == 0


@contextmanager
def relay(files: Path, port: int) -> Iterator[int]:
    """Speaks TLS with the certificate that lies there, and passes what comes on to a port of this machine; its own port."""
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.load_cert_chain(files / "chain.pem", files / "key.pem")

    def pump(source: socket.socket, drain: socket.socket) -> None:
        try:
            while received := source.recv(65_536):
                drain.sendall(received)
        except OSError:
            pass
        # Whoever reads from either hears that it is over.
        for end in (source, drain):
            try:
                end.shutdown(socket.SHUT_RDWR)
            except OSError:
                pass

    def serve(client: socket.socket) -> None:
        with client, socket.create_connection(("127.0.0.1", port)) as server, \
                context.wrap_socket(client, server_side=True) as secure:
            back = threading.Thread(target=pump, args=(server, secure), daemon=True)
            back.start()
            pump(secure, server)
            back.join()

    def accept() -> None:
        while True:
            try:
                client = listener.accept()[0]
            except OSError:
                return
            threading.Thread(target=serve, args=(client,), daemon=True).start()

    with socket.create_server(("127.0.0.1", 0)) as listener:
        threading.Thread(target=accept, daemon=True).start()
        yield listener.getsockname()[1]


def is_listening(port: int) -> bool:
    """Whether somebody listens there, who takes one connection only."""
    return any(
        fields[3] == "0A" and int(fields[1].split(":")[1], 16) == port
        for fields in (line.split() for line in Path("/proc/net/tcp").read_text().splitlines()[1:]))


def test_a_programme_goes_on_by_rtmps(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path, logs: Path, stream: str, log: Path
) -> None:
    make_certificate(tmp_path, "localhost")
    monkeypatch.setenv("SSL_CERT_FILE", str(tmp_path / "chain.pem"))
    port = free_port()
    listener = subprocess.Popen(
        ["ffmpeg", "-hide_banner", "-nostdin", "-v", "info", "-listen", "1", "-i", f"rtmp://127.0.0.1:{port}/live/{KEY}",
         "-frames:v", "75", "-af", "volumedetect", "-f", "null", "-"], stderr=subprocess.PIPE, text=True)
    sender = Sender(logs / f"server-sends-by-rtmps-{stream}.log", "--restream-networks", "all")
    try:
        wait_until(lambda: is_listening(port), 15, "ffmpeg listens")
        with relay(tmp_path, port) as secure, live(sender, stream, log):
            number = sender.add(stream, f"rtmps://localhost:{secure}/live")
            sender.wait_for(stream, number, "live")
            _, told = listener.communicate(timeout=patient(60))
            assert listener.returncode == 0, told
            assert re.search(r"Video: h264 .*640x360", told) and "Audio: aac (LC), 48000 Hz, stereo" in told, told
            assert int(re.findall(r"frame=\s*(\d+)", told)[-1]) == 75, told
            loudness = re.search(r"mean_volume: (-?[\d.]+) dB", told)
            assert loudness and float(loudness[1]) > -40, told
        assert KEY not in sender.log.read_text()
    finally:
        listener.kill()
        assert sender.stop() == 0


def test_targets_are_remembered(
    logs: Path, tmp_path: Path, target: RTMPServer, stream: str, log: Path
) -> None:
    sender = Sender(logs / f"server-remembers-{stream}.log", "--restream-networks", "all", "--data", str(tmp_path))
    try:
        def command(path: str, body: Any) -> None:
            status, _, answer = sender.request(
                "POST", f"/v1/streams{path}", json.dumps(body).encode(),
                {"Authorization": f"Bearer {sender.token(stream)}", "Content-Type": "application/json"})
            assert status in (200, 201), answer

        command("", {"id": stream, "hostGraceSeconds": 600})
        there = target.ingest(stream)["rtmp"]
        number = sender.add(stream, there["server"], there["key"])
        assert sender.state(stream, number)["state"] == "waiting"
        command(f"/{stream}/live", {})
        with live(sender, stream, log):
            sender.wait_for(stream, number, "live")
            assert sender.stop() == 0
        wait_until(lambda: stream not in target.streams(), 30, "the target has no publisher any more")
        sender.start()
        assert sender.state(stream, number)["url"] == there["server"]
        with live(sender, stream, log):
            sender.wait_for(stream, number, "live", 60)
    finally:
        sender.stop()


#: The list of targets that was asked for comes when the page is told `answerList()`.
HOLD_LIST = """() => {
    const ask = window.fetch;
    const held = new Promise(resolve => { globalThis.answerList = resolve; });
    window.fetch = async (address, how) => {
        const answer = await ask(address, how);
        if (!String(address).endsWith('/restreams') || how?.method !== 'GET') return answer;
        const list = await answer.json();
        answer.json = () => held.then(() => list);
        return answer;
    };
}"""


def test_the_studio_adds_shows_and_removes_targets(
    chromium: Browser, sender: Sender, target: RTMPServer, server: Server, stream: str
) -> None:
    there = target.ingest(stream)["rtmp"]
    with go_live(chromium, sender, stream) as page:
        page.evaluate(HOLD_LIST)
        page.click("#restream summary")
        page.evaluate(
            """([url, key]) => {
                document.getElementById('restream-url').value = url;
                document.getElementById('restream-key').value = key;
            }""", [there["server"], there["key"]])
        assert page.evaluate("() => document.getElementById('restream-key').type") == "password"
        page.click("#restream-add")
        page.wait_for("() => document.querySelector('#restream li')?.dataset.state === 'live'", seconds=30,
                      what="the panel says that it is live")
        assert there["server"] in page.text("#restream-list")
        page.wait_for("() => document.getElementById('restream-key').value === ''", what="the key is shown no more")
        # A list from before it was added takes nothing away.
        page.evaluate("async () => { answerList(); await new Promise(done => setTimeout(done)); }")
        assert there["server"] in page.text("#restream-list")
        target.stop()
        # It is tried again soon: the panel says both for a second at first.
        page.wait_for(
            """() => {
                const target = document.querySelector('#restream li');
                return target?.dataset.state === 'failed' && target.innerText.includes('Trying again in');
            }""", seconds=30, what="the panel says that it failed, and when it is tried again")
        page.click("#restream li button")
        page.wait_for("() => !document.querySelector('#restream li')", what="it is gone")
        check_no_complaints(page)
    # Nothing of it where nothing is sent on.
    with go_live(chromium, server, stream) as page:
        page.wait_for("async () => (await (await fetch('/v1/server')).json()).restreams === false", what="it says no")
        assert page.evaluate("() => document.getElementById('restream').hidden")
