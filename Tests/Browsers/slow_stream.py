"""A client's way to the server by TCP, as through a firewall, that takes no more than so much a second: of media, or of pages."""

from __future__ import annotations

import socket
import threading
import time
from contextlib import suppress

from server import Server

#: Every TCP candidate of an answer gets the proxy's port; those for UDP are taken away.
REWRITE = """() => {
    const original = RTCPeerConnection.prototype.setRemoteDescription;
    RTCPeerConnection.prototype.setRemoteDescription = function (description) {
        const sdp = description.sdp.replace(/a=candidate:\\S+ \\d+ udp .*\\r\\n/gi, '')
            .replace(/^(a=candidate:\\S+ \\d+ tcp \\d+ \\S+) \\d+/gim, '$1 PORT');
        return original.call(this, { type: description.type, sdp });
    };
}"""
#: What the proxy's sockets hold, each: little, so that what it does not take waits in the server.
HELD = 8 << 10


class SlowStream:
    """Passes the bytes of connections on; those to the client no faster than `capacity`."""

    def __init__(self, server: Server, port: int | None = None) -> None:
        """`port` is the server's for media, unless another one is given."""
        #: Bits a second towards all clients together; None for all that comes. May change at any time.
        self.capacity: float | None = None
        #: When the link is free again.
        self._free = time.monotonic()
        self._turn = threading.Lock()
        self._target = ("127.0.0.1", port or server.udp_port)
        self._ends: list[socket.socket] = []
        self._front = socket.create_server(("0.0.0.0", 0))
        self._ends.append(self._front)
        self.port = self._front.getsockname()[1]
        self.rewrite = REWRITE.replace("PORT", str(self.port))
        self._threads = [threading.Thread(target=self._accept, daemon=True)]
        self._threads[0].start()

    def close(self) -> None:
        # A socket that another thread reads is woken by this, and not by being closed.
        for end in self._ends:
            with suppress(OSError):
                end.shutdown(socket.SHUT_RDWR)
        for thread in self._threads:
            thread.join(5)
        for end in self._ends:
            end.close()

    def _accept(self) -> None:
        with suppress(OSError):
            while True:
                client, _ = self._front.accept()
                client.setsockopt(socket.SOL_SOCKET, socket.SO_SNDBUF, HELD)
                server = socket.socket(socket.AF_INET, socket.SOCK_STREAM)
                server.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, HELD)
                self._ends += [client, server]
                server.connect(self._target)
                for end in (client, server):
                    end.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
                for source, sink, is_down in ((client, server, False), (server, client, True)):
                    thread = threading.Thread(target=self._pump, args=(source, sink, is_down), daemon=True)
                    self._threads.append(thread)
                    thread.start()

    def _pump(self, source: socket.socket, sink: socket.socket, is_down: bool) -> None:
        with suppress(OSError):
            while chunk := source.recv(2 << 10):
                sink.sendall(chunk)
                capacity = self.capacity if is_down else None
                if capacity is None:
                    continue
                with self._turn:
                    # What was not used is lost, but for the moment that a thread may be late.
                    self._free = max(self._free, time.monotonic() - 0.02) + len(chunk) * 8 / capacity
                    free = self._free
                time.sleep(max(free - time.monotonic(), 0))
        for end in (source, sink):
            with suppress(OSError):
                end.shutdown(socket.SHUT_RDWR)
