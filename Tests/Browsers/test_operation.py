"""What whoever runs the server sees of it: its file, its signals, what it tells systemd, and what it says of itself."""

from __future__ import annotations

import ctypes
import fcntl
import os
import queue
import re
import signal
import socket
import ssl
import subprocess
import termios
import threading
import urllib.error
import urllib.request
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest
from drivers import wait_until
from drivers.patience import patient
from drivers.process import Process
from secure_socket import SecureSocket
from server import binary, free_port
from websockets.sync.client import connect


class NotifySocket:
    """Hears what the server tells systemd, at once: where ten messages wait unread, the server waits too, to tell another."""

    def __init__(self, name: str) -> None:
        self._socket = socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM)
        self._socket.bind(name.replace("@", "\0", 1))
        self._heard: queue.Queue[str] = queue.Queue()
        threading.Thread(target=self._hear, daemon=True).start()

    def _hear(self) -> None:
        while True:
            self._heard.put(self._socket.recv(4096).decode())

    def next(self, seconds: float = 30) -> str:
        return self._heard.get(timeout=patient(seconds))

    def falls_silent(self, seconds: float) -> bool:
        """Whether nothing comes for so long, after the little that is on its way."""
        for _ in range(10):
            try:
                self._heard.get(timeout=seconds)
            except queue.Empty:
                return True
        return False

    def wait_for(self, wanted: str) -> str:
        while not (text := self.next()).startswith(wanted):
            assert text == "WATCHDOG=1", f"{text} instead of {wanted}"
        return text


@contextmanager
def stopped_thread(thread: int) -> Iterator[None]:
    """Lets one thread of another process stand still; ptrace(2) needs no more than that it is a child of this one."""
    attach, detach, wait_for_all = 16, 17, 0x40000000
    library = ctypes.CDLL(None, use_errno=True)
    library.ptrace.argtypes = [ctypes.c_long, ctypes.c_long, ctypes.c_void_p, ctypes.c_void_p]
    assert library.ptrace(attach, thread, None, None) == 0, os.strerror(ctypes.get_errno())
    os.waitpid(thread, wait_for_all)
    try:
        yield
    finally:
        assert library.ptrace(detach, thread, None, None) == 0, os.strerror(ctypes.get_errno())


def make_certificate(folder: Path, name: str, kind: str = "ec") -> None:
    options = ["-pkeyopt", "ec_paramgen_curve:P-256"] if kind == "ec" else []
    subprocess.run(
        ["openssl", "req", "-x509", "-newkey", kind, *options, "-nodes", "-days", "30", "-subj", f"/CN={name}",
         "-addext", f"subjectAltName=DNS:{name}", "-keyout", folder / "key.pem", "-out", folder / "chain.pem"],
        check=True, capture_output=True)


def presented_name(port: int) -> str:
    """Of the certificate that a new connection is shown."""
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)
    context.check_hostname, context.verify_mode = False, ssl.CERT_NONE
    with socket.create_connection(("127.0.0.1", port)) as plain, context.wrap_socket(plain) as secure:
        certificate = secure.getpeercert(binary_form=True)
    assert certificate
    text = subprocess.run(
        ["openssl", "x509", "-inform", "DER", "-noout", "-subject"], input=certificate, check=True,
        capture_output=True).stdout.decode()
    return text.strip().rpartition("CN = ")[2]


@pytest.mark.parametrize("socket_kind", ["path", "abstract"])
def test_reload_drops_nobody(tmp_path: Path, logs: Path, socket_kind: str) -> None:
    make_certificate(tmp_path, "first.example")
    port = free_port(width=3)
    file = tmp_path / "rostrum.toml"

    def configure(*lines: str) -> None:
        file.write_text("\n".join([
            "dev = true", "workers = 1", f'http = "127.0.0.1:{port}"', f'udp = "127.0.0.1:{port + 1}"',
            f'tls-certificate = "{tmp_path}/chain.pem"', f'tls-key = "{tmp_path}/key.pem"', *lines, ""]))

    configure("max-sessions = 7")
    name = str(tmp_path / "notify") if socket_kind == "path" else f"@rostrum-{os.getpid()}-{port}"
    manager = NotifySocket(name)
    log = logs / f"reload-{socket_kind}.log"
    process = Process(
        [str(binary()), "serve", "--config", str(file)], log, r"^ready http=", 15,
        {"NOTIFY_SOCKET": name, "WATCHDOG_USEC": "600000"})

    def wait_for_line(pattern: str) -> re.Match[str]:
        return process._await(re.compile(pattern), 30)

    try:
        assert f"ready http=127.0.0.1:{port}" in manager.wait_for("READY=1\nSTATUS=")
        # It tells again and again that it lives.
        for _ in range(3):
            manager.wait_for("WATCHDOG=1")
        assert presented_name(port) == "first.example"
        context = ssl.create_default_context(cafile=str(tmp_path / "chain.pem"))
        with SecureSocket(
            f"wss://127.0.0.1:{port}/v1/feed/sync", context, server_hostname="first.example",
        ) as feed:
            feed.receive()

            # Of another kind of key, and a limit; and what waits for a restart.
            make_certificate(tmp_path, "second.example", "rsa:2048")
            configure("max-sessions = 5", 'viewers = "token"')
            os.kill(process.pid, signal.SIGHUP)
            manager.wait_for("RELOADING=1\nMONOTONIC_USEC=")
            manager.wait_for("READY=1")
            assert wait_for_line(r"limits sessions=(\d+)")[1] == "5"
            assert wait_for_line(r"reloaded needs-restart=(\S+)")[1] == "viewers"
            assert presented_name(port) == "second.example"
            # The socket of before is open.
            feed.ping()

            # What makes no sense changes nothing.
            (tmp_path / "key.pem").write_text("no key")
            configure("max-sessions = 4")
            os.kill(process.pid, signal.SIGHUP)
            wait_for_line(r"certificate-kept reason=")
            assert presented_name(port) == "second.example"
            configure("max-session = 4")
            os.kill(process.pid, signal.SIGHUP)
            assert "did you mean max-sessions?" in wait_for_line(r"reload-refused reason=(.*)")[1]
            # The socket of before is open.
            feed.ping()
    finally:
        status = process.stop()
    assert status == 0
    while (text := manager.next()) != "STOPPING=1":
        assert text == "WATCHDOG=1" or text.startswith(("READY=1", "RELOADING=1")), text


def test_a_new_key_drops_nobody(tmp_path: Path, logs: Path) -> None:
    """A token is good until its key is gone, and who is there stays even then."""
    port = free_port(width=3)
    secret, old, new = tmp_path / "secret", "0123456789abcdef" * 2, "fedcba9876543210" * 2
    secret.write_text(old + "\n")
    options = ["--key-id", "main", "--secret-file", str(secret)]
    process = Process(
        [str(binary()), "serve", *options, "--workers", "1", "--http", f"127.0.0.1:{port}", "--udp", f"127.0.0.1:{port + 1}"],
        logs / "keys.log", r"^ready http=", 15)

    def reload(text: str) -> None:
        secret.write_text(text)
        told = process.log.read_text().count("reloaded")
        os.kill(process.pid, signal.SIGHUP)
        wait_until(lambda: process.log.read_text().count("reloaded") > told, 30, "the server has read its key again")

    def make_token(*further: str) -> str:
        command = [str(binary()), "token", "--role", "host", "--stream", "talk", *options, *further]
        return subprocess.run(command, check=True, capture_output=True, text=True).stdout.strip()

    def answer(token: str) -> int:
        request = urllib.request.Request(f"http://127.0.0.1:{port}/v1/streams", headers={"Authorization": f"Bearer {token}"})
        try:
            with urllib.request.urlopen(request, timeout=10) as response:
                return int(response.status)
        except urllib.error.HTTPError as error:
            return error.code

    try:
        before = make_token()
        assert answer(before) == 200
        with connect(
            f"ws://127.0.0.1:{port}/v1/feed/sync", additional_headers={"Authorization": f"Bearer {before}"},
        ) as feed:
            feed.recv(timeout=patient(10))
            reload(f"{new}\n# of May\n{old}\n")
            after = make_token()
            assert (answer(before), answer(after)) == (200, 200)
            reload(f"{new}\n")
            assert (answer(before), answer(after)) == (401, 200)
            # What is no key changes nothing.
            secret.write_text("short\n")
            os.kill(process.pid, signal.SIGHUP)
            process._await(re.compile(r"reload-refused reason=.*the secret has 5 bytes"), 30)
            assert answer(after) == 200
            assert feed.ping().wait(patient(10)), "the socket of before is closed"
    finally:
        assert process.stop() == 0


def test_watchdog_hears_nothing_of_a_server_that_stands_still(tmp_path: Path, logs: Path) -> None:
    name = str(tmp_path / "notify")
    manager = NotifySocket(name)
    port = free_port(width=3)
    process = Process(
        [str(binary()), "serve", "--dev", "--workers", "1", "--http", f"127.0.0.1:{port}", "--udp",
         f"127.0.0.1:{port + 1}"],
        logs / "watchdog.log", r"^ready http=", 15, {"NOTIFY_SOCKET": name, "WATCHDOG_USEC": "600000"})
    try:
        manager.wait_for("READY=1")
        manager.wait_for("WATCHDOG=1")
        # One thread alone: of the worker, which the others do not need to answer.
        thread = next(
            int(task.name) for task in Path(f"/proc/{process.pid}/task").iterdir()
            if (task / "comm").read_text().strip() == "rostrum-w0")
        with stopped_thread(thread):
            assert process._await(re.compile(r"stuck parts=(\S+)"), 30)[1] == "worker-0"
            # While it lives it tells that every 0.2 s.
            assert manager.falls_silent(1)
        manager.wait_for("WATCHDOG=1")
    finally:
        assert process.stop() == 0


def test_ends_with_its_terminal() -> None:
    """Where it was typed, nobody could end it any more."""
    port = free_port(width=3)
    terminal, own = os.openpty()
    process = subprocess.Popen(
        [binary(), "serve", "--dev", "--workers", "1", "--http", f"127.0.0.1:{port}", "--udp", f"127.0.0.1:{port + 1}"],
        stdin=own, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, start_new_session=True, text=True,
        preexec_fn=lambda: fcntl.ioctl(0, termios.TIOCSCTTY, 0))
    try:
        os.close(own)
        assert process.stdout and process.stdout.readline().startswith("ready ")
        os.close(terminal)
        assert process.wait(timeout=patient(10)) == 0
    finally:
        process.kill()
        process.wait()


def test_version_names_libraries() -> None:
    text = subprocess.run([str(binary()), "--version"], check=True, capture_output=True, text=True).stdout
    assert re.match(r"rostrum \d+\.\d+\.\d+ \(\S+\)\n", text)
    for library in ("libavcodec", "libcurl", "libopus", "libqrencode", "libsrtp2", "libuv", "libvpx", "libwebp", "libwebsockets",
                    "openssl", "sqlite"):
        assert re.search(rf"\b{library} \d+\.\d+", text), text


def test_doctor_looks_at_everything(tmp_path: Path) -> None:
    make_certificate(tmp_path, "first.example")
    port = free_port(width=3)

    def doctor(*options: str) -> tuple[int, dict[str, str]]:
        result = subprocess.run(
            [str(binary()), "doctor", "--key-id", "main", "--workers", "1", "--http", f"127.0.0.1:{port}", "--udp",
             f"0.0.0.0:{port + 1}", "--data", str(tmp_path), "--config", "/dev/null",
             # Behind all else that a test runs beside, the trial of it would get no time.
             "--transcoder-nice", "0", *options],
            capture_output=True, text=True, check=False,
            env={**os.environ, "ROSTRUM_SECRET": "0123456789abcdef0123456789abcdef"})
        lines = [line.split(maxsplit=2) for line in result.stdout.splitlines()]
        return result.returncode, {subject: f"{verdict} {text}" for verdict, subject, text in lines}

    status, found = doctor(
        "--tls-certificate", str(tmp_path / "chain.pem"), "--tls-key", str(tmp_path / "key.pem"))
    assert status == 0, found
    assert set(found) == {
        "config", "secret", "certificate", "http", "udp", "ice-tcp", "addresses", "clock", "socket-buffers",
        "open-files", "worker-priority", "disk", "codecs", "transcoder",
    }
    assert found["certificate"].startswith("warn for first.example")
    assert found["transcoder"].startswith("ok ")
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as taken:
        taken.bind(("0.0.0.0", port + 1))
        status, found = doctor()
    assert status == 1 and found["udp"].startswith("fail ")
    assert f"sport = :{port + 1}" in found["udp"]
