"""What Tools/bench and Tools/soak share: a server of their own, and runs of sfu-bench against it."""

from __future__ import annotations

import json
import os
import re
import signal
import socket
import subprocess
import tempfile
import time
import urllib.request
from collections.abc import Callable
from contextlib import ExitStack
from pathlib import Path
from typing import Any

ROOT = Path(__file__).resolve().parents[1]
BUILD = ROOT / ".build" / os.environ.get("ROSTRUM_BUILD", "release")


def program(name: str) -> Path:
    """A built program; ROSTRUM_BUILD selects a build other than release."""
    path = BUILD / name
    if not path.exists():
        raise SystemExit(f"{path} is not built; run: swift build -c release")
    return path


def processors() -> tuple[set[int] | None, set[int] | None]:
    """Where the server and where the generator may run: a CPU each; None for both where there is only one."""
    allowed = sorted(os.sched_getaffinity(0))
    return ({allowed[0]}, {allowed[1]}) if len(allowed) > 1 else (None, None)


def pinned_to(cpus: set[int] | None) -> Callable[[], None] | None:
    return (lambda: os.sched_setaffinity(0, cpus)) if cpus else None


def free_ports(width: int = 1) -> tuple[int, int]:
    """A TCP port for HTTP, and the first of some that are free for UDP, and itself for TCP, on the loopback address."""
    with socket.socket(socket.AF_INET, socket.SOCK_STREAM) as http:
        http.bind(("127.0.0.1", 0))
        while True:
            with ExitStack() as held:
                tcp = held.enter_context(socket.socket(socket.AF_INET, socket.SOCK_STREAM))
                tcp.bind(("127.0.0.1", 0))
                port = tcp.getsockname()[1]
                try:
                    for number in range(port, port + width):
                        held.enter_context(socket.socket(socket.AF_INET, socket.SOCK_DGRAM)).bind(("127.0.0.1", number))
                except (OSError, OverflowError):
                    continue
                return http.getsockname()[1], port


class Server:
    """A `rostrum serve --dev`, for as long as the `with` block lasts.

    `relays` has it relay by TURN, over UDP, too; workers share one port, or have `ports` of their own.
    """

    def __init__(
        self, cpus: set[int] | None, workers: int = 1, ports: int = 1, relays: bool = False,
        arguments: tuple[str, ...] = ()
    ) -> None:
        http, udp = free_ports(ports + 1)
        last = f"-{udp + ports - 1}" if ports > 1 else ""
        relay = f"127.0.0.1:{udp + ports}" if relays else "off"
        self.url = f"http://127.0.0.1:{http}"
        self._data = tempfile.TemporaryDirectory(prefix="rostrum-load-")
        self._process = subprocess.Popen(
            [
                program("rostrum"), "serve", "--dev", "--workers", str(workers), "--http", f"127.0.0.1:{http}",
                "--udp", f"127.0.0.1:{udp}{last}", "--turn-udp", relay, "--data", self._data.name, "--log-level", "error",
                *arguments,
            ],
            stdout=subprocess.PIPE, text=True, preexec_fn=pinned_to(cpus))
        assert self._process.stdout is not None
        if not self._process.stdout.readline().startswith("ready"):
            raise SystemExit("the server did not start")
        self.pid = self._process.pid

    def __enter__(self) -> Server:
        return self

    def __exit__(self, *_: object) -> None:
        self._process.send_signal(signal.SIGTERM)
        try:
            self._process.wait(15)
        except subprocess.TimeoutExpired:
            self._process.kill()
            self._process.wait()
        self._data.cleanup()

    @property
    def is_running(self) -> bool:
        return self._process.poll() is None

    def metrics(self, by: str | None = None) -> dict[str, float]:
        """Every metric, summed over its labels, but for one: `drops_total{reason="replay"}` by `reason`."""
        with urllib.request.urlopen(self.url + "/metrics", timeout=10) as answer:
            text = answer.read().decode()
        values: dict[str, float] = {}
        for match in re.finditer(r"^([a-z_]+)(\{[^}]*\})? (\S+)$", text, re.MULTILINE):
            label = re.search(rf'[{{,]({by}="[^"]*")', match[2] or "") if by else None
            name = f"{match[1]}{{{label[1]}}}" if label else match[1]
            values[name] = values.get(name, 0) + float(match[3])
        return values

    def resident_bytes(self) -> int:
        pages = int(Path(f"/proc/{self.pid}/statm").read_text().split()[1])
        return pages * os.sysconf("SC_PAGE_SIZE")

    def open_files(self) -> int:
        return len(os.listdir(f"/proc/{self.pid}/fd"))


class Load:
    """One run of sfu-bench in the background."""

    def __init__(self, server: Server, cpus: set[int] | None, command: str, *arguments: str) -> None:
        self._report = tempfile.NamedTemporaryFile(prefix="sfu-bench-", suffix=".json")
        self._process = subprocess.Popen(
            [
                program("sfu-bench"), command, "--quiet", "--json", self._report.name, "--server-pid",
                str(server.pid), *arguments, server.url
            ],
            stdout=subprocess.DEVNULL, stderr=subprocess.PIPE, text=True, preexec_fn=pinned_to(cpus))

    @property
    def is_running(self) -> bool:
        return self._process.poll() is None

    def report(self, patience: float | None = None) -> dict[str, Any]:
        """Waits for the end; raises if there is no report."""
        try:
            _, errors = self._process.communicate(timeout=patience)
        except subprocess.TimeoutExpired:
            self._process.kill()
            self._process.communicate()
            raise RuntimeError("sfu-bench did not exit") from None
        text = Path(self._report.name).read_text()
        if not text:
            raise RuntimeError(f"sfu-bench wrote no report: {errors.strip()[-300:]}")
        return json.loads(text)

    def stop(self) -> None:
        if self.is_running:
            self._process.kill()
            self._process.communicate()


def wait(seconds: float, while_true: Callable[[], bool]) -> None:
    """Waits, but not beyond the moment that the condition no longer holds."""
    end = time.monotonic() + seconds
    while (left := end - time.monotonic()) > 0 and while_true():
        time.sleep(min(left, 0.5))
