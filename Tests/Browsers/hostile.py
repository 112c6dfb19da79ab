"""What an enemy sends: garbage, truncated and mutated datagrams and requests, the same ones for the same seed."""

from __future__ import annotations

import base64
import hashlib
import hmac
import json
import random
import socket
import struct
import time
import zlib
from collections.abc import Callable, Iterator
from pathlib import Path

import udp
from drivers import wait_until

#: Bytes that may wait in a socket which is flooded: a part of its room.
ROOM = 48 * 1024
OFFERS = sorted((Path(__file__).resolve().parents[1] / "Fixtures" / "Offers").glob("*.sdp"))
MAGIC_COOKIE = 0x2112A442


# STUN: RFC 8489 §5 (header), §14.5 (integrity), §14.7 (fingerprint).

def stun_attribute(kind: int, value: bytes) -> bytes:
    return struct.pack("!HH", kind, len(value)) + value + bytes(-len(value) % 4)


def stun_message(kind: int, transaction: bytes, attributes: bytes, key: bytes | None) -> bytes:
    def header(more: int) -> bytes:
        return struct.pack("!HHI", kind, len(attributes) + more, MAGIC_COOKIE) + transaction
    if key is not None:
        digest = hmac.new(key, header(24) + attributes, hashlib.sha1).digest()
        attributes += stun_attribute(0x0008, digest)
    checksum = zlib.crc32(header(8) + attributes) ^ 0x5354554E
    return header(8) + attributes + struct.pack("!HHI", 0x8028, 4, checksum)


def binding_request(chance: random.Random, ufrag: str, remote_ufrag: str, password: str, nominate: bool = False) -> bytes:
    """A check as a browser sends it; `ufrag` and `password` are the server's."""
    attributes = stun_attribute(0x0006, f"{ufrag}:{remote_ufrag}".encode())
    attributes += stun_attribute(0x0024, struct.pack("!I", 1853824767))
    attributes += stun_attribute(0x802A, chance.randbytes(8))
    if nominate:
        attributes += stun_attribute(0x0025, b"")
    return stun_message(0x0001, chance.randbytes(12), attributes, password.encode())


# Datagrams of each kind, sound in form.

def stun(chance: random.Random) -> bytes:
    kind = chance.choice([0x0001, 0x0011, 0x0101, 0x0111, 0x0003, chance.randrange(0x4000)])
    attributes = b"".join(
        stun_attribute(
            chance.choice([1, 6, 8, 9, 10, 0x14, 0x15, 0x20, 0x24, 0x25, 0x8022, 0x8029, 0x802A, chance.randrange(65536)]),
            chance.randbytes(chance.choice([0, 1, 4, 8, 20, 33, 200])))
        for _ in range(chance.randrange(6)))
    return stun_message(kind, chance.randbytes(12), attributes, chance.randbytes(20) if chance.random() < 0.5 else None)


def dtls(chance: random.Random) -> bytes:
    """Records of all types; handshake messages in fragments that may lie about their place (RFC 6347 §4)."""
    records = b""
    for _ in range(chance.randrange(1, 4)):
        kind = chance.choice([20, 21, 22, 22, 22, 22, 23, 24, 25, 63])
        body = chance.randbytes(chance.choice([0, 1, 2, 12, 40, 300]))
        if kind == 22:
            total = chance.choice([len(body), 0, 2**24 - 1, len(body) * 3])
            offset = chance.choice([0, 0, 1, len(body), 2**24 - 1])
            body = (
                struct.pack("!B", chance.choice([0, 1, 1, 1, 2, 11, 14, 15, 16, 20]))
                + total.to_bytes(3, "big") + struct.pack("!H", chance.randrange(4))
                + offset.to_bytes(3, "big") + len(body).to_bytes(3, "big") + body)
        records += struct.pack(
            "!BHHIHH", kind, chance.choice([0xFEFF, 0xFEFD, 0xFEFC, 0x0303]), chance.choice([0, 0, 0, 1, 65535]), 0,
            chance.randrange(65536), len(body)) + body
    return records


def client_hello(chance: random.Random) -> bytes:
    """A hello OpenSSL begins to believe, so that the handshake state behind it is exercised."""
    ciphers = struct.pack("!6H", 0xC02B, 0xC02F, 0xC02C, 0xC030, 0xCCA9, 0x00FF)
    extensions = b"".join(
        struct.pack("!HH", kind, len(value)) + value
        for kind, value in [
            (10, bytes.fromhex("0006001d00170018")), (11, bytes.fromhex("0100")),
            (13, bytes.fromhex("0008040308040401050308050501")), (14, bytes.fromhex("00040007000100")),
            (23, b""),
        ])
    body = (
        b"\xfe\xfd" + chance.randbytes(32) + b"\0" + b"\0" + struct.pack("!H", len(ciphers)) + ciphers + b"\x01\0"
        + struct.pack("!H", len(extensions)) + extensions)
    message = b"\x01" + len(body).to_bytes(3, "big") + b"\0\0" + bytes(3) + len(body).to_bytes(3, "big") + body
    return struct.pack("!BHHIHH", 22, 0xFEFD, 0, 0, 0, len(message)) + message


def rtp(chance: random.Random) -> bytes:
    flags = 0x80 | chance.choice([0, 0x10, 0x20, 0x30, 0x0F, 0x3F])
    packet = struct.pack(
        "!BBHII", flags, chance.randrange(256), chance.randrange(65536), chance.randrange(2**32),
        chance.choice([0, 1, 0xFFFFFFFF, chance.randrange(2**32)]))
    if flags & 0x10:
        profile = chance.choice([0xBEDE, 0x1000, 0x100F, chance.randrange(65536)])
        packet += struct.pack("!HH", profile, chance.choice([0, 1, 4, 65535]))
    return packet + chance.randbytes(chance.choice([0, 1, 10, 100, 1200]))


def rtcp(chance: random.Random) -> bytes:
    packets = b""
    for _ in range(chance.randrange(1, 5)):
        body = chance.randbytes(4 * chance.randrange(12))
        length = chance.choice([len(body) // 4, len(body) // 4, 0, 65535])
        packets += struct.pack(
            "!BBH", 0x80 | chance.randrange(32), chance.choice([192, 200, 201, 202, 203, 204, 205, 206, 207, 223]), length) + body
    return packets


def noise(chance: random.Random) -> bytes:
    return chance.randbytes(chance.choice([0, 1, 2, 3, 4, 11, 12, 13, 19, 20, 100, 1200, 1500, 9000]))


KINDS: list[Callable[[random.Random], bytes]] = [stun, dtls, client_hello, rtp, rtcp, noise]


def damaged(chance: random.Random, data: bytes) -> bytes:
    """As it is, cut short, with bits turned, a piece doubled, or something appended."""
    match chance.randrange(6):
        case 0:
            return data[:chance.randrange(len(data) + 1)]
        case 1 | 2:
            changed = bytearray(data)
            for _ in range(min(len(data), chance.choice([1, 2, 8]))):
                changed[chance.randrange(len(changed))] ^= 1 << chance.randrange(8)
            return bytes(changed)
        case 3:
            at = chance.randrange(len(data) + 1)
            return data[:at] + data[at // 2:at] + data[at:]
        case 4:
            return data + chance.randbytes(chance.choice([1, 4, 100]))
    return data


def datagrams(seed: int, count: int) -> Iterator[bytes]:
    chance = random.Random(seed)
    for _ in range(count):
        yield damaged(chance, chance.choice(KINDS)(chance))[:9000]


def flood(port: int, packets: Iterator[bytes], per_second: int, sources: list[socket.socket]) -> int:
    """Sends at a pace, in turn from each source, and no faster than they are read; returns how many left."""
    sent = 0
    for packet in packets:
        if sent % 50 == 0:
            begun = time.monotonic()
        sources[sent % len(sources)].sendto(packet, ("127.0.0.1", port))
        sent += 1
        if sent % 50 == 0:
            # So that the test measures the server and not the room in its socket, which a busy machine fills.
            time.sleep(max(0.0, begun + 50 / per_second - time.monotonic()))
            wait_until(lambda: udp.waiting(port) < ROOM, 20, "the server reads what it got")
    return sent


# HTTP.

def mutated_offers(chance: random.Random) -> Iterator[bytes]:
    """Offers of real clients with lines lost, doubled, swapped, stretched, and bytes changed."""
    texts = [path.read_bytes() for path in OFFERS]
    while True:
        text = chance.choice(texts)
        lines = text.splitlines(keepends=True)
        for _ in range(chance.choice([1, 1, 3])):
            at = chance.randrange(len(lines))
            match chance.randrange(6):
                case 0:
                    del lines[at]
                case 1:
                    lines.insert(at, lines[chance.randrange(len(lines))])
                case 2:
                    lines[at] = damaged(chance, lines[at])
                case 3:
                    lines[at] = lines[at].rstrip() + b" 4294967296 -1 99999999999999999999\r\n"
                case 4:
                    lines = lines[:at + 1]
                case 5:
                    lines[at:at] = [chance.choice([
                        b"m=video 9 UDP/TLS/RTP/SAVPF 96\r\n", b"a=rid:" + b"x" * 300 + b" send\r\n", b"a=extmap:0 x\r\n",
                        b"a=simulcast:send ;;;~,\r\n", b"a=fingerprint:sha-256 ZZ\r\n", b"a=ssrc-group:FID\r\n",
                        b"a=candidate:\r\n", b"a=group:BUNDLE 0 0 0 0\r\n", b"a=rtpmap:96\r\n", b"\xff\xfe\r\n", b"a=ice-ufrag:\r\n",
                    ])]
            if not lines:
                break
        yield b"".join(lines)


def mutated_tokens(chance: random.Random, good: str) -> Iterator[str]:
    """Tokens that nearly are one: no algorithm, another key, broken base64, claims of wrong types."""
    def encode(value: object) -> str:
        return base64.urlsafe_b64encode(json.dumps(value).encode()).rstrip(b"=").decode()
    header, payload, signature = good.split(".")
    claims = json.loads(base64.urlsafe_b64decode(payload + "=" * (-len(payload) % 4)))
    while True:
        match chance.randrange(8):
            case 0:
                yield f"{encode({'alg': 'none', 'typ': 'JWT'})}.{payload}."
            case 1:
                changed = {**claims, chance.choice(list(claims)): chance.choice([None, -1, 2**70, [], {}, "x" * 5000, 1e308])}
                yield f"{header}.{encode(changed)}.{signature}"
            case 2:
                yield f"{header}.{payload}.{encode('x')}"
            case 3:
                yield "." * chance.randrange(6)
            case 4:
                yield f"{header}.{payload}"
            case 5:
                # What no client could put into a header is for `REQUESTS` to try.
                yield "".join(
                    chr(byte) if 0x20 < byte < 0x7F else "~" for byte in damaged(chance, good.encode()))
            case 6:
                yield f"{encode([[]] * 500)}.{payload}.{signature}"
            case 7:
                yield "A" * chance.choice([0, 1, 4000])


REQUESTS = [
    b"", b"\r\n\r\n", b"GET\r\n\r\n", b"GET / HTTP/9.9\r\n\r\n", b"POST /whep/x HTTP/1.1\r\nContent-Length: -1\r\n\r\n",
    b"POST /whep/x HTTP/1.1\r\nHost: a\r\nContent-Length: 99999999999999999999\r\n\r\nx",
    b"POST /whep/x HTTP/1.1\r\nHost: a\r\nTransfer-Encoding: chunked\r\n\r\nFFFFFFFFFFFFFFFFF\r\n",
    b"POST /whep/x HTTP/1.1\r\nHost: a\r\nTransfer-Encoding: chunked\r\nContent-Length: 5\r\n\r\n0\r\n\r\n",
    b"GET /" + b"a" * 20_000 + b" HTTP/1.1\r\nHost: a\r\n\r\n",
    b"GET / HTTP/1.1\r\n" + b"X: y\r\n" * 3000 + b"\r\n",
    b"GET /../../../../etc/passwd HTTP/1.1\r\nHost: a\r\n\r\n",
    b"GET /assets/..%2f..%2f..%2fetc%2fpasswd HTTP/1.1\r\nHost: a\r\n\r\n",
    b"GET /assets/%00 HTTP/1.1\r\nHost: a\r\n\r\n", b"GET /live/%ff%fe HTTP/1.1\r\nHost: a\r\n\r\n",
    b"PATCH /whip/x HTTP/1.1\r\nHost: a\r\nIf-Match: \"\xff\r\n\r\n", b"BREW /whip/x HTTP/1.1\r\nHost: a\r\n\r\n",
    b"GET /v1/streams/x/sync HTTP/1.1\r\nHost: a\r\nUpgrade: websocket\r\nConnection: Upgrade\r\n"
    b"Sec-WebSocket-Key: AAAAAAAAAAAAAAAAAAAAAA==\r\nSec-WebSocket-Version: 13\r\n\r\n\xff\xff\xff\xff\xff\xff\xff\xff\xff\xff",
    b"\x16\x03\x01\x02\x00\x01\x00\x01\xfc\x03\x03", b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n",
    b"GET / HTTP/1.1\r\nHost: a\r\nContent-Length: 10\r\n\r\nabc",
]


def raw_request(port: int, data: bytes, seconds: float = 2) -> bytes:
    """What the server says to these bytes before it closes or falls silent; empty when nothing."""
    with socket.create_connection(("127.0.0.1", port), timeout=seconds) as connection:
        try:
            connection.sendall(data)
            connection.shutdown(socket.SHUT_WR)
            answer = b""
            while len(answer) < 65536 and (part := connection.recv(65536)):
                answer += part
        except OSError:
            return b""
    return answer
