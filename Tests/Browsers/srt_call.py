"""A client by SRT that says what it likes: libsrt itself, of which it is told why it is not let in."""

from __future__ import annotations

import ctypes
import socket
import struct

from drivers.patience import patient

# As `srt.h` numbers its options.
_CONNECT_TIMEOUT = 36
_STREAM_ID = 46
_LIBRARY = ctypes.CDLL("libsrt-gnutls.so.1.5")
_LIBRARY.srt_startup()


class Refused(Exception):
    def __init__(self, code: int) -> None:
        super().__init__(f"refused with {code}")
        self.code = code


class Call:
    """A connection; `Refused` where there is none."""

    def __init__(self, port: int, stream_id: bytes) -> None:
        self._socket = _LIBRARY.srt_create_socket()
        # By itself the library gives up after three seconds, and calls that a refusal too.
        milliseconds = ctypes.c_int(round(patient(3) * 1000))
        assert not _LIBRARY.srt_setsockflag(self._socket, _CONNECT_TIMEOUT, ctypes.byref(milliseconds), 4)
        assert stream_id == b"" or not _LIBRARY.srt_setsockflag(self._socket, _STREAM_ID, stream_id, len(stream_id))
        address = struct.pack("=H", socket.AF_INET) + struct.pack(">H", port) + socket.inet_aton("127.0.0.1") + bytes(8)
        if _LIBRARY.srt_connect(self._socket, address, len(address)) < 0:
            code = _LIBRARY.srt_getrejectreason(self._socket)
            self.close()
            raise Refused(code)

    def __enter__(self) -> Call:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def send(self, message: bytes) -> bool:
        """Whether the connection is still there."""
        return _LIBRARY.srt_sendmsg(self._socket, message, len(message), -1, 1) >= 0

    def close(self) -> None:
        _LIBRARY.srt_close(self._socket)


def refusal(port: int, stream_id: str) -> int | None:
    """The code of a rejection; None for somebody who is let in."""
    try:
        with Call(port, stream_id.encode()):
            return None
    except Refused as refused:
        return refused.code
