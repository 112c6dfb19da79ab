"""A WebSocket that answers commands by id and hands events to whoever asked for them."""

from __future__ import annotations

import itertools
import json
import threading
from collections.abc import Callable
from concurrent.futures import Future
from contextlib import ExitStack
from typing import Any

from websockets.exceptions import ConnectionClosed
from websockets.sync.client import connect

from .patience import patient


class CommandError(Exception):
    """The browser refused a command."""


class Connection:
    """Commands are answered in any order, events arrive on the reading thread."""

    def __init__(self, url: str, on_event: Callable[[dict[str, Any]], None]) -> None:
        self._stack = ExitStack()
        # Without pings: a browser that gets no processor for a while would be given up, with all its tests to come.
        self._socket = self._stack.enter_context(
            connect(url, max_size=None, compression=None, proxy=None, open_timeout=patient(20), ping_interval=None))
        self._on_event = on_event
        self._ids = itertools.count(1)
        self._waiting: dict[int, Future[dict[str, Any]]] = {}
        self._lock = threading.Lock()
        self._reader = threading.Thread(target=self._read, daemon=True)
        self._reader.start()

    def command(
        self, method: str, parameters: dict[str, Any], seconds: float = 20, **envelope: Any
    ) -> dict[str, Any]:
        future: Future[dict[str, Any]] = Future()
        with self._lock:
            identifier = next(self._ids)
            self._waiting[identifier] = future
            self._socket.send(
                json.dumps({"id": identifier, "method": method, "params": parameters, **envelope}))
        try:
            answer = future.result(timeout=patient(seconds))
        except TimeoutError:
            raise TimeoutError(f"the browser did not answer {method} within {patient(seconds):g} s") from None
        finally:
            self._waiting.pop(identifier, None)
        # DevTools puts an object under "error", BiDi a code there and the words under "message".
        if "error" in answer:
            raise CommandError(f"{method}: {answer.get('message') or answer['error']}")
        return answer.get("result", {})

    def _read(self) -> None:
        try:
            for text in self._socket:
                message = json.loads(text)
                future = self._waiting.get(message.get("id", 0))
                if future is not None:
                    future.set_result(message)
                elif "method" in message:
                    self._on_event(message)
        except (ConnectionClosed, OSError):
            pass
        for future in list(self._waiting.values()):
            if not future.done():
                future.set_exception(ConnectionError("the browser closed the connection"))

    def close(self) -> None:
        self._stack.close()
        self._reader.join(timeout=5)
