"""A bad network between an encoder by SRT and the server: one UDP port that loses and delays what passes, both ways."""

from __future__ import annotations

import heapq
import random
import selectors
import socket
import threading
import time
from types import TracebackType
from typing import Any


class SRTPath:
    """For one encoder; handshakes pass, so that a test waits for nothing but media."""

    def __init__(self, server_port: int, loss: float, delay: float) -> None:
        self._loss = loss
        self._delay = delay
        self._chance = random.Random(1)
        self._outside = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
        self._outside.bind(("127.0.0.1", 0))
        self._inside = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
        self._inside.connect(("127.0.0.1", server_port))
        for end in (self._outside, self._inside):
            end.setblocking(False)
            end.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 1 << 20)
        self._encoder: Any = None
        self._under_way: list[tuple[float, int, bool, bytes]] = []
        self._number = 0
        self._is_over = False
        self.port: int = self._outside.getsockname()[1]
        #: Datagrams, both ways.
        self.lost = 0
        self._thread = threading.Thread(target=self._run, daemon=True)

    def __enter__(self) -> SRTPath:
        self._thread.start()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._is_over = True
        self._thread.join()
        self._outside.close()
        self._inside.close()

    def _run(self) -> None:
        with selectors.DefaultSelector() as selector:
            for end in (self._outside, self._inside):
                selector.register(end, selectors.EVENT_READ)
            while not self._is_over:
                wait = max(self._under_way[0][0] - time.monotonic(), 0) if self._under_way else 0.1
                for key, _ in selector.select(min(wait, 0.1)):
                    self._read(key.fileobj is self._outside)
                self._send()

    def _read(self, is_from_encoder: bool) -> None:
        while True:
            try:
                if is_from_encoder:
                    datagram, self._encoder = self._outside.recvfrom(2048)
                else:
                    datagram = self._inside.recv(2048)
            except OSError:
                return
            # The first bit says control, the type behind it handshake.
            is_handshake = datagram[:2] == b"\x80\x00"
            if not is_handshake and self._chance.random() < self._loss:
                self.lost += 1
                continue
            self._number += 1
            heapq.heappush(
                self._under_way, (time.monotonic() + self._delay, self._number, is_from_encoder, datagram))

    def _send(self) -> None:
        now = time.monotonic()
        while self._under_way and self._under_way[0][0] <= now:
            _, _, is_from_encoder, datagram = heapq.heappop(self._under_way)
            try:
                if is_from_encoder:
                    self._inside.send(datagram)
                else:
                    self._outside.sendto(datagram, self._encoder)
            except OSError:
                continue
