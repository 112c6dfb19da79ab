"""Somebody on a sync socket who says whatever they like, as fast as they can; the rest of the audience does not notice.

`ROSTRUM_FLOOD` multiplies the amount (default 1, which takes some seconds).
"""

from __future__ import annotations

import itertools
import json
import os
import random
import time
from collections.abc import Iterator
from contextlib import ExitStack, suppress
from threading import Event, Thread
from typing import Any

from websockets.exceptions import ConnectionClosed, InvalidStatus
from websockets.sync.client import ClientConnection, connect

from drivers import wait_until
from drivers.patience import patient
from server import Server

SECONDS = 4 * float(os.environ.get("ROSTRUM_FLOOD", "1"))
#: Messages a second.
PACE = 1_000
#: How much the resident set may have grown after a flood, in kilobytes: the allocator's own slack.
SLACK_KILOBYTES = 6 * 1024


def messages(seed: int) -> Iterator[str | bytes]:
    """What a socket takes, what it does not, and what is none of it, the same for the same seed."""
    chance = random.Random(seed)
    for number in itertools.count():
        yield chance.choice([
            json.dumps({"type": "comment", "id": f"{seed}-{number}", "text": f"{number} \u202e<b>\U0001f468\u200d\U0001f469\u200d\U0001f467"}),
            json.dumps({"type": "comment", "id": f"{seed}-again", "text": "again"}),
            json.dumps({"type": "comment", "id": "x" * 500, "text": "\u0000" * 400}),
            json.dumps({"type": "react", "reactions": {"heart": chance.choice([1, -1, 2**53, 10**30])}}),
            json.dumps({"type": "react", "reactions": {f"kind-{number}": 1}}),
            json.dumps({"type": "heartbeat"}), json.dumps({"type": "none", "number": number}), json.dumps([number]),
            "{" * 200, "", chance.randbytes(200), json.dumps({"type": "session", "id": "0" * 32}),
        ])


class Rude:
    """Floods from one token, and comes back whenever it is shown out."""

    def __init__(self, address: str) -> None:
        self._address = address
        self.sent = self.connections = 0
        #: Connections that were refused.
        self.turned_away = 0
        self._end = Event()
        self._thread = Thread(target=self._run, daemon=True)
        self._thread.start()

    def stop(self) -> None:
        self._end.set()
        self._thread.join(patient(20))
        assert not self._thread.is_alive()

    def _run(self) -> None:
        said = messages(5)
        while not self._end.is_set():
            try:
                with connect(self._address, open_timeout=patient(10), ping_interval=None, max_queue=None) as socket:
                    self.connections += 1
                    self._flood(socket, said)
            except (ConnectionClosed, OSError):
                continue
            except InvalidStatus as error:
                assert error.response.status_code in (401, 403, 429, 503), error
                self.turned_away += 1
                self._end.wait(0.2)

    def _flood(self, socket: ClientConnection, said: Iterator[str | bytes]) -> None:
        begun, count = time.monotonic(), 0
        while not self._end.is_set():
            while count < (time.monotonic() - begun) * PACE:
                socket.send(next(said))
                count += 1
                self.sent += 1
            # What is answered is read, so that the server alone decides what is too much.
            with suppress(TimeoutError):
                while True:
                    socket.recv(timeout=0)
            self._end.wait(0.002)


class Friend:
    """Follows, and notes whose comments it is told of."""

    def __init__(self, address: str) -> None:
        self._stack = ExitStack()
        self._socket = self._stack.enter_context(connect(address, open_timeout=patient(10), ping_interval=None))
        self.comments: list[dict[str, Any]] = []
        self._reader = Thread(target=self._read, daemon=True)
        self._reader.start()

    def close(self) -> None:
        self._stack.close()
        self._reader.join(patient(5))

    def _read(self) -> None:
        with suppress(ConnectionClosed):
            for text in self._socket:
                self.comments += json.loads(text).get("comments", [])

    def has_read(self, text: str) -> bool:
        return any(comment["text"] == text for comment in self.comments)


def test_a_flood_on_a_sync_socket_is_the_floods_problem(own_server: Server, stream: str) -> None:
    server = own_server
    host = {"Authorization": f"Bearer {server.token(stream)}", "Content-Type": "application/json"}
    for path, body in (("", {"id": stream, "hostGraceSeconds": 3600}), (f"/{stream}/live", {})):
        assert server.request("POST", "/v1/streams" + path, json.dumps(body).encode(), host)[0] in (200, 201)
    address = f"ws://127.0.0.1:{server.http_port}/v1/streams/{stream}/sync?access_token="
    friend = Friend(address + server.token(stream, "viewer", name="Friend"))
    token = server.token(stream, "viewer", name="Rude")

    def talk(name: str, times: int, seconds: float = SECONDS) -> None:
        """The host's words arrive, spread over so long, whatever is said beside them."""
        for number in range(times):
            text = f"{name} {number}"
            begun = time.monotonic()
            body = json.dumps({"id": f"{name}-{number}", "text": text}).encode()
            assert server.request("POST", f"/v1/streams/{stream}/comments", body, host)[0] == 201
            wait_until(lambda: friend.has_read(text), 5, "the host is heard")  # noqa: B023
            print(f"{text}: {(time.monotonic() - begun) * 1000:.0f} ms")
            time.sleep(max(0, begun + seconds / times - time.monotonic()))

    # Once to let every buffer and table reach its size, then to measure.
    rude = Rude(address + token)
    talk("first", 3)
    before = server.resident_kilobytes()
    talk("second", 3)
    rude.stop()
    grown = server.resident_kilobytes() - before
    assert rude.sent > SECONDS * PACE / 10, rude.sent
    print(f"{rude.sent} messages by {rude.connections} connections, {rude.turned_away} turned away; {grown} kB more")
    assert grown < SLACK_KILOBYTES, f"{grown} kB more memory"
    # A person writes one a second, and three at once.
    written = [comment for comment in friend.comments if comment["author"] == "rude"]
    assert len(written) <= 2 * SECONDS + 8, len(written)
    assert all("\u202e" not in comment["text"] and "\u0000" not in comment["text"] for comment in written), written
    # One message that is larger than all that anybody says ends its connection, and no other's.
    with connect(address + token, open_timeout=patient(10), ping_interval=None) as socket:
        with suppress(ConnectionClosed, OSError):
            socket.send("x" * 10_000_000)
            wait_until(lambda: is_closed(socket), 10, "it is shown out")
    # Nobody says anything beside it.
    talk("third", 1, seconds=0)
    friend.close()


def is_closed(socket: ClientConnection) -> bool:
    try:
        socket.recv(timeout=0.1)
    except TimeoutError:
        return False
    except ConnectionClosed:
        return True
    return False
