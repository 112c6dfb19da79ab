"""A WebSocket over TLS."""

from __future__ import annotations

import asyncio
import ssl
from types import TracebackType
from typing import Any

from websockets.asyncio.client import ClientConnection, connect

from drivers.patience import patient


class SecureSocket:
    """Reads and writes with one thread, for a test that waits for each step.

    The library's blocking client reads with one thread and writes with another. OpenSSL allows only one of them in a
    connection at a time (see SSL_read(3) and openssl-threads(7)): now and then the request is lost while the other
    thread takes in TLS 1.3's tickets, and the server never gets it.
    """

    def __init__(self, address: str, context: ssl.SSLContext, **options: Any) -> None:
        self._runner = asyncio.Runner()
        try:
            self._connection = self._runner.run(self._open(address, context, options))
        except BaseException:
            self._runner.close()
            raise

    @staticmethod
    async def _open(address: str, context: ssl.SSLContext, options: dict[str, Any]) -> ClientConnection:
        # Nobody answers a ping between two steps, so the client sends none of its own accord.
        return await connect(address, ssl=context, open_timeout=patient(10), ping_interval=None, **options)

    def receive(self) -> str | bytes:
        """The next message, within ten seconds."""
        return self._wait(self._connection.recv())

    def ping(self) -> None:
        """Sends a ping and waits for its answer, ten seconds at most."""
        async def ask() -> None:
            await (await self._connection.ping())

        self._wait(ask())

    def _wait(self, step: Any) -> Any:
        async def limited() -> Any:
            async with asyncio.timeout(patient(10)):
                return await step

        return self._runner.run(limited())

    def __enter__(self) -> SecureSocket:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        try:
            self._wait(self._connection.close())
        finally:
            self._runner.close()
