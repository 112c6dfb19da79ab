"""A TURN client over TCP, of the kind that asks for what it may not have (RFC 8656)."""

from __future__ import annotations

import hashlib
import hmac
import ipaddress
import os
import re
import socket
import ssl
import struct
import urllib.request
from dataclasses import dataclass

from drivers.patience import patient
from server import ROOT, Server

COOKIE = 0x2112A442
ALLOCATE, REFRESH, SEND, CREATE_PERMISSION, CHANNEL_BIND = 0x003, 0x004, 0x016, 0x008, 0x009
SUCCESS, ERROR = 0x100, 0x110
USERNAME, INTEGRITY, ERROR_CODE, CHANNEL, LIFETIME, PEER, DATA = 0x06, 0x08, 0x09, 0x0C, 0x0D, 0x12, 0x13
REALM, NONCE, RELAYED, TRANSPORT = 0x14, 0x15, 0x16, 0x19
UDP = b"\x11\0\0\0"


@dataclass(frozen=True)
class Place:
    """One of the TURN servers that an answer names."""

    url: str
    username: str
    password: str

    @property
    def port(self) -> int:
        return int(re.search(r":(\d+)\?", self.url)[1])


def places(server: Server, stream: str, context: ssl.SSLContext | None = None) -> list[Place]:
    """Those that a viewer is told of who has nothing but the address of a stream."""
    offer = (ROOT / "Tests/Fixtures/Offers/chrome-play.sdp").read_bytes()
    request = urllib.request.Request(
        f"{server.origin}/whep/{stream}?wait=10", offer, {"Content-Type": "application/sdp"}, method="POST")
    with urllib.request.urlopen(request, timeout=patient(20), context=context) as answer:
        links = answer.headers.get_all("Link")
    pattern = r'<(turns?:[^>]+)>; rel="ice-server"; username="([^"]+)"; credential="([^"]+)"'
    return [Place(*match.groups()) for link in links if (match := re.match(pattern, link))]


def attribute(kind: int, value: bytes) -> bytes:
    return struct.pack(">HH", kind, len(value)) + value + bytes(-len(value) % 4)


def peer(ip: str, port: int) -> bytes:
    number = int(ipaddress.IPv4Address(ip)) ^ COOKIE
    return struct.pack(">BBHI", 0, 1, port ^ COOKIE >> 16, number)


@dataclass(frozen=True)
class Answer:
    kind: int
    attributes: dict[int, bytes]

    @property
    def error(self) -> int | None:
        value = self.attributes.get(ERROR_CODE)
        return value[2] * 100 + value[3] if value else None


class TurnClient:
    def __init__(self, place: Place, password: str | None = None, username: str | None = None) -> None:
        self._username = username or place.username
        self._password = password or place.password
        self._realm = self._nonce = ""
        self._socket = socket.create_connection(("127.0.0.1", place.port), timeout=patient(10))

    def close(self) -> None:
        self._socket.close()

    def _read(self, count: int) -> bytes:
        data = b""
        while len(data) < count:
            piece = self._socket.recv(count - len(data))
            if not piece:
                raise ConnectionError("the server closed the connection")
            data += piece
        return data

    def write(self, data: bytes) -> None:
        self._socket.sendall(data)

    def ask(self, kind: int, *attributes: bytes) -> Answer:
        body = b"".join(attributes)
        if self._nonce:
            body += attribute(USERNAME, self._username.encode()) + attribute(REALM, self._realm.encode())
            body += attribute(NONCE, self._nonce.encode())
        head = struct.pack(">HHI", kind, len(body) + (24 if self._nonce else 0), COOKIE) + os.urandom(12)
        message = head + body
        if self._nonce:
            key = hashlib.md5(f"{self._username}:{self._realm}:{self._password}".encode()).digest()
            message += attribute(INTEGRITY, hmac.new(key, message, hashlib.sha1).digest())
        self.write(message)
        return self._answer()

    def indicate(self, kind: int, *attributes: bytes) -> None:
        body = b"".join(attributes)
        self.write(struct.pack(">HHI", kind, len(body), COOKIE) + os.urandom(12) + body)

    def _answer(self) -> Answer:
        kind, length = struct.unpack(">HH", self._read(4))
        body = self._read(16 + length)[16:]
        found: dict[int, bytes] = {}
        while body:
            name, size = struct.unpack(">HH", body[:4])
            found[name] = body[4:4 + size]
            body = body[4 + size + -size % 4:]
        return Answer(kind, found)

    def allocate(self) -> Answer:
        """As every client does: the first attempt tells what the second one needs."""
        first = self.ask(ALLOCATE, attribute(TRANSPORT, UDP))
        assert first.kind == ALLOCATE | ERROR and first.error == 401
        self._realm, self._nonce = first.attributes[REALM].decode(), first.attributes[NONCE].decode()
        return self.ask(ALLOCATE, attribute(TRANSPORT, UDP))
