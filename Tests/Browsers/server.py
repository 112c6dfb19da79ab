"""Starts and stops a real `rostrum serve --dev`, and asks it things the way a client would."""

from __future__ import annotations

import json
import os
import random
import signal
import socket
import urllib.error
import urllib.request
from collections.abc import Iterator, Sequence
from contextlib import ExitStack, contextmanager
from pathlib import Path
from typing import Any

from drivers.patience import patient
from drivers.process import Process

ROOT = Path(__file__).resolve().parents[2]


def binary() -> Path:
    """The program under test: `ROSTRUM_BINARY`, or the `ROSTRUM_BUILD` (debug, release) of this checkout."""
    if given := os.environ.get("ROSTRUM_BINARY"):
        return Path(given)
    return ROOT / ".build" / os.environ.get("ROSTRUM_BUILD", "debug") / "rostrum"


def unpacked(program: str) -> Path:
    """A program of a Debian package that is not installed: Tools/setup unpacked it."""
    return ROOT / ".build" / "unpacked" / program


def lasting_ports() -> range:
    """Ports that no program gets unless it asks for them by number, and that browsers agree to talk to.

    A port out of the kernel's own range may go to a browser's socket while the server that had it is down.
    """
    low, high = map(int, Path("/proc/sys/net/ipv4/ip_local_port_range").read_text().split())
    # 10080 is the last one that browsers refuse.
    lasting = max((range(11_000, low), range(max(high + 1, 11_000), 65_536)), key=len)
    # Processes that run tests side by side take turns, so that none takes what another one just found free.
    count = int(os.environ.get("PYTEST_XDIST_WORKER_COUNT", "1"))
    share = len(lasting) // count
    number = int(os.environ.get("PYTEST_XDIST_WORKER", "gw0").removeprefix("gw"))
    return lasting[number * share:(number + 1) * share]


#: Ports that were given out: whoever has one may not use it yet, or not at the moment.
given_ports: set[int] = set()


def free_port(width: int = 1) -> int:
    """First of `width` neighbouring ports that nobody uses, by UDP or TCP, and that nobody else is given."""
    lasting = lasting_ports()
    assert len(lasting) > 100 * width, f"only {lasting} is outside the range for sockets without a port of their own"
    for _ in range(1000):
        first = random.choice(lasting[: 1 - width or None])
        ports = range(first, first + width)
        if not given_ports.isdisjoint(ports):
            continue
        with ExitStack() as probes:
            try:
                for port in ports:
                    for kind in (socket.SOCK_DGRAM, socket.SOCK_STREAM):
                        probes.enter_context(socket.socket(socket.AF_INET, kind)).bind(("0.0.0.0", port))
            except OSError:
                continue
        given_ports.update(ports)
        return first
    raise RuntimeError(f"no {width} free neighbouring ports")


def processor_seconds(*roots: int) -> float:
    """Of processes and all that they started."""
    total, processes = 0, list(roots)
    while processes:
        for task in Path(f"/proc/{processes.pop()}/task").glob("*"):
            try:
                total += int((task / "schedstat").read_text().split()[0])
                processes += map(int, (task / "children").read_text().split())
            except FileNotFoundError:
                # It ended just now.
                continue
    return total / 1e9


class Server:
    """One server on ports of its own; `start` after `stop` keeps them, so clients find it again."""

    #: Of this run, for what a failed test tells.
    all: list[Server] = []
    #: Where pages are served, if that is more than the address that clients are told.
    bound: str | None = None

    def __init__(
        self, log: Path, *arguments: str, media_ports: int = 1, has_ipv6: bool = False, starter: Sequence[str] = ()
    ) -> None:
        """With `has_ipv6` pages come from ::1, and media by IPv6 as by IPv4. The starter is a command that becomes the
        one after it."""
        self.log = log
        Server.all.append(self)
        self._starter = starter
        self._arguments = arguments
        # One for HTTP, and one for each worker by UDP; ICE over TCP takes the first worker's number.
        self.http_port = free_port(width=1 + max(4, os.cpu_count() or 1))
        self.udp_port = self.http_port + 1
        self._host = "[::1]" if has_ipv6 else "127.0.0.1"
        self._media = f"{'[::]' if has_ipv6 else '0.0.0.0'}:{self.udp_port}" + (f"-{self.udp_port + media_ports - 1}" if media_ports > 1 else "")
        self.origin = f"http://{self._host}:{self.http_port}"
        self._process: Process | None = None
        self.start()

    def start(self) -> None:
        self._process = Process(
            [
                *self._starter, str(binary()), "serve", "--dev",
                "--http", f"{self.bound or self._host}:{self.http_port}", "--udp", self._media,
                # Behind two browsers it would get no time at all.
                "--transcoder-nice", "0",
                # Pages that wait for WebRTC on a busy machine would have HLS made of what is no matter of it.
                *([] if "--max-hls" in self._arguments else ["--max-hls", "0"]),
                *self._arguments,
            ],
            self.log, r"^ready http=", 15)

    def stop(self) -> int:
        """Exit status of a polite end."""
        process, self._process = self._process, None
        return process.stop() if process is not None else 0

    @contextmanager
    def standing_still(self) -> Iterator[None]:
        """Answers nothing meanwhile, and keeps all it knows."""
        os.kill(self.pid, signal.SIGSTOP)
        try:
            yield
        finally:
            os.kill(self.pid, signal.SIGCONT)

    @property
    def pid(self) -> int:
        assert self._process is not None
        return self._process.pid

    @property
    def is_running(self) -> bool:
        return self._process is not None and self._process.is_running

    def resident_kilobytes(self) -> int:
        """RSS as the kernel counts it now."""
        for line in Path(f"/proc/{self.pid}/status").read_text().splitlines():
            if line.startswith("VmRSS:"):
                return int(line.split()[1])
        raise RuntimeError("no VmRSS")

    def open_files(self) -> int:
        return len(os.listdir(f"/proc/{self.pid}/fd"))

    def request(
        self, method: str, path: str, body: bytes | None = None, headers: dict[str, str] | None = None
    ) -> tuple[int, dict[str, str], bytes]:
        """Status, headers with lower-case names, and body."""
        request = urllib.request.Request(self.origin + path, body, headers or {}, method=method)
        try:
            with urllib.request.urlopen(request, timeout=patient(10)) as answer:
                return answer.status, {k.lower(): v for k, v in answer.headers.items()}, answer.read()
        except urllib.error.HTTPError as error:
            return error.code, {k.lower(): v for k, v in error.headers.items()}, error.read()

    def beginning(self, path: str, count: int, headers: dict[str, str] | None = None) -> tuple[int, dict[str, str], bytes]:
        """The same of an answer that does not end by itself: its first lines."""
        request = urllib.request.Request(self.origin + path, None, headers or {})
        with urllib.request.urlopen(request, timeout=patient(10)) as answer:
            lines = [answer.readline() for _ in range(count)]
            return answer.status, {k.lower(): v for k, v in answer.headers.items()}, b"".join(lines)

    def json(self, path: str) -> Any:
        status, _, body = self.request("GET", path)
        assert status == 200, (status, body)
        return json.loads(body)

    def token(
        self, stream: str, role: str = "host", name: str = "Ann", ttl: int = 3600, capabilities: tuple[str, ...] = (),
        tiers: tuple[str, ...] = (),
    ) -> str:
        status, _, body = self.request(
            "POST", "/v1/tokens",
            json.dumps(
                {"sub": name.lower(), "name": name, "role": role, "stream": stream, "ttl": ttl,
                 "capabilities": capabilities, "tiers": tiers}).encode(),
            {"Content-Type": "application/json"})
        assert status == 201, (status, body)
        return json.loads(body)["token"]

    def metrics(self) -> dict[str, float]:
        """Prometheus samples by name with labels as written."""
        _, _, body = self.request("GET", "/metrics")
        samples = {}
        for line in body.decode().splitlines():
            if line and not line.startswith("#"):
                name, _, value = line.rpartition(" ")
                samples[name] = float(value)
        return samples
