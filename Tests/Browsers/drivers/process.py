"""Child processes that say on one of their streams when they are ready, and that leave nothing behind."""

from __future__ import annotations

import os
import queue
import re
import signal
import subprocess
import threading
import time
from pathlib import Path

from .patience import patient


class Process:
    """A program in its own process group, its output in a file and searched for one line."""

    def __init__(
        self, command: list[str], log: Path, ready: str, seconds: float,
        environment: dict[str, str] | None = None,
    ) -> None:
        self.log = log
        log.parent.mkdir(parents=True, exist_ok=True)
        self._process = subprocess.Popen(
            command, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.STDOUT,
            start_new_session=True, env={**os.environ, **(environment or {})}, text=True, errors="replace")
        self._lines: queue.Queue[str | None] = queue.Queue()
        self._reader = threading.Thread(target=self._read, daemon=True)
        self._reader.start()
        self.ready = self._await(re.compile(ready), seconds)

    @property
    def pid(self) -> int:
        return self._process.pid

    @property
    def is_running(self) -> bool:
        return self._process.poll() is None

    def _read(self) -> None:
        assert self._process.stdout is not None
        with self.log.open("a") as log:
            for line in self._process.stdout:
                log.write(line)
                log.flush()
                self._lines.put(line)
        self._lines.put(None)

    def _await(self, pattern: re.Pattern[str], seconds: float) -> re.Match[str]:
        seconds = patient(seconds)
        deadline = time.monotonic() + seconds
        while True:
            try:
                line = self._lines.get(timeout=max(0.0, deadline - time.monotonic()))
            except queue.Empty:
                line = None
            if line is None:
                self.stop()
                raise RuntimeError(
                    f"{self._process.args[0]} was not ready within {seconds:g} s (wanted {pattern.pattern!r}):\n"
                    + self.log.read_text()[-2000:])
            if found := pattern.search(line):
                return found

    def stop(self, how: signal.Signals = signal.SIGTERM, seconds: float = 8) -> int:
        """Asks the program to end and returns its exit status; what is left of its group is killed."""
        if self.is_running:
            self._process.send_signal(how)
        try:
            status = self._process.wait(timeout=patient(seconds))
        except subprocess.TimeoutExpired:
            status = None
        try:
            os.killpg(self._process.pid, signal.SIGKILL)
        except ProcessLookupError:
            pass
        ended = self._process.wait(timeout=patient(5))
        self._reader.join(timeout=2)
        return ended if status is None else status
