"""A bad network between a client and the server: a proxy that loses datagrams, can be cut for a while, takes no more than
so much, and gives clients other addresses, as a NAT does.

Pages come through its HTTP port, and their media through one UDP port for each of the server's workers: `rewrite` puts
those into the server's answers, or the proxy itself does for those who are no browsers. Where it is the viewers' network,
publishers go to the server directly.
"""

from __future__ import annotations

import random
import re
import selectors
import socket
import struct
import threading
import time
from collections import deque
from contextlib import suppress
from typing import Any

from server import Server

#: Every candidate of an answer gets the proxy's port for that of the worker; those for TCP are taken away.
REWRITE = """() => {
    const ports = PORTS;
    const original = RTCPeerConnection.prototype.setRemoteDescription;
    RTCPeerConnection.prototype.setRemoteDescription = function (description) {
        const sdp = description.sdp.split(/(?<=\\r\\n)/).map(line => {
            const found = line.match(/^(a=candidate:\\S+ \\d+ (\\S+) \\d+ \\S+) (\\d+) (.*)/is);
            if (!found) return line;
            const [, head, protocol, port, rest] = found;
            return protocol.toLowerCase() === 'udp' && port in ports ? `${head} ${ports[port]} ${rest}` : '';
        }).join('');
        return original.call(this, { type: description.type, sdp });
    };
}"""
#: A candidate of an answer, up to its port. All ports here have five digits, so that an answer keeps its length.
CANDIDATE = re.compile(rb"(a=candidate:\S+ 1 \S+ \d+ \S+) (\d{5})\b", re.IGNORECASE)
WORKERS = 8
#: Handshakes, checks, reports and sound are smaller.
PICTURE_BYTES = 400
#: Seconds that a datagram may wait before a link that takes no more: a home router's queue.
QUEUE = 0.3
#: When a datagram came, by the kernel's clock: socket(7), which Python has no name for.
SO_TIMESTAMPNS = 35


def stamp_arrivals(end: socket.socket) -> None:
    """Has the kernel note when each datagram comes, for `receive`.

    It begins some time after the first socket asked for it, and until then tells when a datagram is read.
    """
    end.setsockopt(socket.SOL_SOCKET, SO_TIMESTAMPNS, 1)
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as probe:
        probe.bind(("127.0.0.1", 0))
        probe.settimeout(2)
        probe.setsockopt(socket.SOL_SOCKET, SO_TIMESTAMPNS, 1)
        while True:
            probe.sendto(b"?", probe.getsockname())
            sent = time.monotonic()
            time.sleep(0.005)
            if receive(probe)[2] < sent + 0.0025:
                return


def receive(end: socket.socket) -> tuple[bytes, Any, float]:
    """A datagram, from whom, and when it came, as `time.monotonic` tells it.

    A proxy that gets no processor for a while reads what has come since all at once. On a link it did not come at once,
    and what a link would have had room for must not be lost.
    """
    datagram, notes, _, sender = end.recvmsg(65_536, socket.CMSG_SPACE(16))
    now = time.monotonic()
    for level, kind, data in notes:
        if (level, kind) == (socket.SOL_SOCKET, SO_TIMESTAMPNS):
            seconds, nanoseconds = struct.unpack("qq", data)
            return datagram, sender, min(now, seconds + nanoseconds / 1e9 - ahead())
    return datagram, sender, now


def ahead() -> float:
    """By how much the time of day is ahead of `time.monotonic`: both read at once, not with a wait for a processor between."""
    while True:
        before, day, after = time.monotonic(), time.time(), time.monotonic()
        if after - before < 0.001:
            return day - before


class Link:
    """One direction of a path: takes so many bits a second; what does not fit into its queue is lost."""

    def __init__(self) -> None:
        #: None for all that comes.
        self.capacity: float | None = None
        #: When it is free again, and what is on it: from which socket, and where to, unless that is connected.
        self._free = 0.0
        self._queued: deque[tuple[float, socket.socket, bytes, Any]] = deque()

    def put(self, came: float, end: socket.socket, datagram: bytes, receiver: Any = None) -> bool:
        """Sends a datagram at once, or when its turn comes; tells whether there was room for it when it came."""
        if self.capacity is None and not self._queued:
            self._free = came
            self._send(end, datagram, receiver)
            return True
        start = max(self._free, came)
        if start > came + QUEUE:
            return False
        self._free = start + (len(datagram) * 8 / self.capacity if self.capacity else 0)
        self._queued.append((self._free, end, datagram, receiver))
        return True

    @property
    def deadline(self) -> float | None:
        return self._queued[0][0] if self._queued else None

    def send_due(self) -> None:
        while self._queued and self._queued[0][0] <= time.monotonic():
            self._send(*self._queued.popleft()[1:])

    @staticmethod
    def _send(end: socket.socket, datagram: bytes, receiver: Any) -> None:
        with suppress(OSError):
            if receiver is None:
                end.send(datagram)
            else:
                end.sendto(datagram, receiver)


class LossyPath:
    """Loses this share of the datagrams, each way; nothing passes while it is cut."""

    def __init__(self, server: Server, loss: float, seed: int, rewrites: bool = False) -> None:
        #: May change at any time.
        self.loss = loss
        self._rewrites = rewrites
        self._chance = random.Random(seed)
        self._selector = selectors.DefaultSelector()
        self._ends: list[socket.socket] = []
        #: Towards the server, one for each address of a client and port of the server.
        self._ways: dict[tuple[int, Any], socket.socket] = {}
        self._is_over = False
        self._passable = threading.Event()
        self._passable.set()
        self._is_stale = threading.Event()
        self.passed = 0
        self.lost = 0
        #: To the clients, and from them.
        self.down, self.up = Link(), Link()
        #: Whose packets never reach a client: nobody tells it of them.
        self.withheld: frozenset[int] = frozenset()
        #: When everybody's address was forgotten, and how many seconds later media came to a new one.
        self._rebound: float | None = None
        self.back_after: float | None = None
        #: Bytes that the server sent, whether they passed or not.
        self.offered = 0
        fronts = {}
        for port in range(server.udp_port, server.udp_port + WORKERS):
            front = self._socket(socket.SOCK_DGRAM)
            fronts[port] = front.getsockname()[1]
            self._selector.register(front, selectors.EVENT_READ, (front, None, port))
        self._fronts = fronts
        self.rewrite = REWRITE.replace("PORTS", str(fronts))
        self._http = self._socket(socket.SOCK_STREAM)
        self._http.listen()
        self._target = ("127.0.0.1", server.http_port)
        self.origin = f"http://127.0.0.1:{self._http.getsockname()[1]}"
        self._threads = [threading.Thread(target=run, daemon=True) for run in (self._pass_datagrams, self._accept)]
        for thread in self._threads:
            thread.start()

    def cut(self) -> None:
        self._passable.clear()

    def mend(self) -> None:
        self._passable.set()

    def rebind(self) -> None:
        """Forgets everybody's address: the server sees new ones, and the old ones lead nowhere."""
        self._is_stale.set()

    def close(self) -> None:
        self._is_over = True
        self._passable.set()
        # A socket that another thread reads is woken by this, and not by being closed.
        for end in self._ends:
            with suppress(OSError):
                end.shutdown(socket.SHUT_RDWR)
        for thread in self._threads:
            thread.join(5)
        for end in [*self._ends, *self._ways.values()]:
            end.close()
        self._selector.close()

    def _socket(self, kind: socket.SocketKind) -> socket.socket:
        end = socket.socket(socket.AF_INET, kind)
        stamp_arrivals(end)
        # Firefox has no way to the loopback address; what comes to another one is answered from there.
        end.bind(("0.0.0.0", 0))
        self._ends.append(end)
        return end

    # Media.

    def _pass_datagrams(self) -> None:
        while not self._is_over:
            if self._is_stale.is_set():
                self._is_stale.clear()
                for way in self._ways.values():
                    self._selector.unregister(way)
                    way.close()
                self._ways.clear()
                self._rebound, self.back_after = time.monotonic(), None
            deadlines = [link.deadline for link in (self.down, self.up) if link.deadline is not None]
            due = min(deadlines) - time.monotonic() if deadlines else 0.2
            for key, _ in self._selector.select(timeout=min(max(due, 0.0), 0.2)):
                front, client, port = key.data
                with suppress(OSError):
                    datagram, sender, came = receive(key.fileobj)  # type: ignore[arg-type]
                    if client is not None:
                        self.offered += len(datagram)
                        if self._rebound is not None and len(datagram) > PICTURE_BYTES:
                            self.back_after, self._rebound = time.monotonic() - self._rebound, None
                    is_withheld = client is not None and int.from_bytes(datagram[8:12]) in self.withheld
                    if is_withheld or not self._passable.is_set() or self._chance.random() < self.loss:
                        self.lost += 1
                        continue
                    if client is None:
                        has_room = self.up.put(came, self._way(front, sender, port), datagram)
                    else:
                        has_room = self.down.put(came, front, datagram, client)
                    if has_room:
                        self.passed += 1
                    else:
                        self.lost += 1
            self.down.send_due()
            self.up.send_due()

    def _way(self, front: socket.socket, client: Any, port: int) -> socket.socket:
        known = self._ways.get((port, client))
        if known is not None:
            return known
        way = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
        way.setsockopt(socket.SOL_SOCKET, SO_TIMESTAMPNS, 1)
        way.connect(("127.0.0.1", port))
        self._ways[port, client] = way
        self._selector.register(way, selectors.EVENT_READ, (front, client, port))
        return way

    # Pages, requests and WebSockets.

    def _accept(self) -> None:
        with suppress(OSError):
            while not self._is_over:
                client, _ = self._http.accept()
                try:
                    server = socket.create_connection(self._target)
                except OSError:
                    client.close()
                    continue
                self._ends += [client, server]
                for source, sink, is_answer in ((client, server, False), (server, client, self._rewrites)):
                    thread = threading.Thread(target=self._pump, args=(source, sink, is_answer), daemon=True)
                    self._threads.append(thread)
                    thread.start()

    def _pump(self, source: socket.socket, sink: socket.socket, is_answer: bool) -> None:
        with suppress(OSError):
            while chunk := source.recv(65_536):
                # TCP loses nothing: what is cut comes late.
                self._passable.wait()
                sink.sendall(CANDIDATE.sub(self._front, chunk) if is_answer else chunk)
        with suppress(OSError):
            sink.shutdown(socket.SHUT_WR)

    def _front(self, candidate: re.Match[bytes]) -> bytes:
        front = self._fronts.get(int(candidate[2]))
        return candidate[0] if front is None else b"%b %d" % (candidate[1], front)
