"""A WebSocket over TLS."""

from __future__ import annotations

import asyncio
import ssl
import threading
from collections.abc import Coroutine
from types import TracebackType
from typing import Any

from websockets.asyncio.client import ClientConnection, connect

from drivers.patience import patient


class SecureSocket:
    """Reads and writes with one thread, which answers the server's pings whatever the test waits for meanwhile.

    The library's blocking client reads with one thread and writes with another. OpenSSL allows only one of them in a
    connection at a time (see SSL_read(3) and openssl-threads(7)): now and then the request is lost while the other
    thread takes in TLS 1.3's tickets, and the server never gets it.
    """

    def __init__(self, address: str, context: ssl.SSLContext, **options: Any) -> None:
        self._loop = asyncio.new_event_loop()
        self._thread = threading.Thread(target=self._loop.run_forever, daemon=True)
        self._thread.start()
        try:
            self._connection = self._wait(self._open(address, context, options))
        except BaseException:
            self._end()
            raise

    @staticmethod
    async def _open(address: str, context: ssl.SSLContext, options: dict[str, Any]) -> ClientConnection:
        # The test asks by itself whether the server is there.
        return await connect(address, ssl=context, open_timeout=None, ping_interval=None, **options)

    def receive(self) -> str | bytes:
        """The next message, within ten seconds."""
        return self._wait(self._connection.recv())

    def ping(self) -> None:
        """Sends a ping and waits for its answer, ten seconds at most."""
        async def ask() -> None:
            await (await self._connection.ping())

        self._wait(ask())

    def _wait(self, step: Coroutine[Any, Any, Any]) -> Any:
        async def limited() -> Any:
            async with asyncio.timeout(patient(10)):
                return await step

        return asyncio.run_coroutine_threadsafe(limited(), self._loop).result()

    def _end(self) -> None:
        self._loop.call_soon_threadsafe(self._loop.stop)
        self._thread.join()
        self._loop.close()

    def __enter__(self) -> SecureSocket:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        try:
            self._wait(self._connection.close())
        finally:
            self._end()
