"""The smallest WHEP player that is still a whole one: ICE check, DTLS, SRTP; a few milliseconds each.

For tests and measurements with hundreds of viewers from one Python process. It decrypts and counts, and can ask for
a key frame; it repairs nothing and decodes nothing.
"""

from __future__ import annotations

import http.client
import random
import re
import secrets
import socket
import struct
import time
from functools import cache

from aiortc.rtcdtlstransport import (
    SRTP_AEAD_AES_128_GCM, SRTP_AES128_CM_SHA1_80, certificate_digest, generate_certificate,
)
from cryptography.hazmat.primitives.asymmetric import ec
from OpenSSL import SSL
from pylibsrtp import Error as SRTPError
from pylibsrtp import Policy, Session

from drivers.patience import patient
from hostile import binding_request, stun_message

PROFILES = [SRTP_AEAD_AES_128_GCM, SRTP_AES128_CM_SHA1_80]
#: How often consent is renewed, in seconds (RFC 7675 §5.1).
CONSENT_SECONDS = 5.0

OFFER = """v=0
o=- {id} 1 IN IP4 127.0.0.1
s=-
t=0 0
a=group:BUNDLE 0 1
a=extmap-allow-mixed
m=audio 9 UDP/TLS/RTP/SAVPF 111
c=IN IP4 0.0.0.0
a=ice-ufrag:{ufrag}
a=ice-pwd:{password}
a=fingerprint:sha-256 {fingerprint}
a=setup:actpass
a=mid:0
a=extmap:4 urn:ietf:params:rtp-hdrext:sdes:mid
a=recvonly
a=rtcp-mux
a=rtpmap:111 opus/48000/2
m=video 9 UDP/TLS/RTP/SAVPF 96 97
c=IN IP4 0.0.0.0
a=ice-ufrag:{ufrag}
a=ice-pwd:{password}
a=fingerprint:sha-256 {fingerprint}
a=setup:actpass
a=mid:1
a=extmap:4 urn:ietf:params:rtp-hdrext:sdes:mid
a=recvonly
a=rtcp-mux
a=rtcp-rsize
a=rtpmap:96 VP8/90000
a=rtcp-fb:96 nack
a=rtcp-fb:96 nack pli
a=rtcp-fb:96 ccm fir
a=rtpmap:97 rtx/90000
a=fmtp:97 apt=96
"""


@cache
def identity() -> tuple[SSL.Context, str]:
    """One certificate for all viewers, because making it costs more than a handshake; and its fingerprint."""
    key = ec.generate_private_key(ec.SECP256R1())
    certificate = generate_certificate(key)
    context = SSL.Context(SSL.DTLS_METHOD)
    context.set_verify(SSL.VERIFY_PEER | SSL.VERIFY_FAIL_IF_NO_PEER_CERT, lambda *_: True)
    context.use_certificate(certificate)
    context.use_privatekey(key)
    context.set_cipher_list(b"ECDHE-ECDSA-AES128-GCM-SHA256")
    context.set_tlsext_use_srtp(b":".join(profile.openssl_profile for profile in PROFILES))
    return context, certificate_digest(certificate, "sha-256")


class LightViewer:
    """One session; `join` blocks until the first video packet, `pump` keeps it alive afterwards."""

    def __init__(self, http_port: int, path: str, token: str | None = None) -> None:
        self._http = http.client.HTTPConnection("127.0.0.1", http_port, timeout=patient(10))
        self._path = path
        self._headers = {"Authorization": f"Bearer {token}"} if token else {}
        self._chance = random.Random(secrets.randbits(64))
        self._socket = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
        self._socket.setblocking(False)
        self._ssl: SSL.Connection | None = None
        self._inbound: Session | None = None
        self._outbound: Session | None = None
        self._checked = 0.0
        self.resource: str | None = None
        self.packets = {"audio": 0, "video": 0}
        self.video_ssrc: int | None = None
        #: Time from the POST to its answer, and to the first video packet, in seconds.
        self.answered_after = 0.0
        self.first_video_after: float | None = None

    def join(self, seconds: float = 10, wants_media: bool = True) -> None:
        self._started = time.monotonic()
        self.post()
        deadline = self._started + patient(seconds)
        while not self.is_connected or (wants_media and self.first_video_after is None):
            if time.monotonic() > deadline:
                raise TimeoutError(f"connected {self.is_connected}, packets {self.packets}")
            self.pump(0.02)

    def post(self) -> None:
        self._ufrag, self._password = secrets.token_hex(4), secrets.token_hex(12)
        offer = OFFER.format(
            id=secrets.randbits(62), ufrag=self._ufrag, password=self._password, fingerprint=identity()[1])
        before = time.monotonic()
        self._http.request(
            "POST", self._path, offer.replace("\n", "\r\n"), {"Content-Type": "application/sdp", **self._headers})
        response = self._http.getresponse()
        answer = response.read().decode()
        self.answered_after = time.monotonic() - before
        if response.status != 201:
            raise RuntimeError(f"{self._path}: {response.status} {answer}")
        self.resource = response.headers["Location"]
        self._remote_ufrag = re.search(r"a=ice-ufrag:(\S+)", answer)[1]
        self._remote_password = re.search(r"a=ice-pwd:(\S+)", answer)[1]
        candidates = re.findall(r"a=candidate:\S+ 1 udp \d+ (\d+\.\d+\.\d+\.\d+) (\d+)", answer, re.IGNORECASE)
        address, port = next((c for c in candidates if c[0] == "127.0.0.1"), candidates[0])
        self._socket.connect((address, int(port)))
        self._check()

    @property
    def is_connected(self) -> bool:
        return self._inbound is not None

    def fileno(self) -> int:
        return self._socket.fileno()

    def pump(self, wait: float = 0.0) -> None:
        """Takes what has arrived, waiting so long for the first datagram, and keeps consent."""
        self.keep_consent()
        self._socket.settimeout(wait if wait > 0 else 0)
        while True:
            try:
                data = self._socket.recv(2048)
            except (BlockingIOError, TimeoutError):
                break
            except ConnectionRefusedError:
                raise RuntimeError("the server's port is closed") from None
            self._socket.settimeout(0)
            if data[0] < 4:
                self._received_stun(data)
            elif data[0] < 64:
                self._received_dtls(data)
            else:
                self._received_media(data)
        if self._ssl and not self._inbound and (left := self._ssl.DTLSv1_get_timeout()) is not None and left <= 0:
            self._ssl.DTLSv1_handle_timeout()
            self._flush()

    def keep_consent(self) -> None:
        """Sends the next check when it is due; what arrives may wait in the socket, or be lost there."""
        if time.monotonic() - self._checked > (CONSENT_SECONDS if self._ssl else 0.1):
            self._check()

    def ask_for_key_frame(self) -> None:
        """Sends a PLI (RFC 4585 §6.3.1)."""
        if self._outbound and self.video_ssrc is not None:
            self._socket.send(self._outbound.protect_rtcp(struct.pack("!BBHII", 0x81, 206, 2, 1, self.video_ssrc)))

    def leave(self, politely: bool = True) -> None:
        if politely and self.resource:
            self._http.request("DELETE", self.resource, headers=self._headers)
            self._http.getresponse().read()
        self._http.close()
        self._socket.close()

    def _check(self) -> None:
        self._checked = time.monotonic()
        self._socket.send(binding_request(
            self._chance, self._remote_ufrag, self._ufrag, self._remote_password, nominate=True))

    def _received_stun(self, data: bytes) -> None:
        if data[:2] == b"\x00\x01":
            # A full agent would check too; answer it (RFC 8445 §7.3).
            self._socket.send(stun_message(0x0101, data[8:20], b"", self._password.encode()))
        elif data[:2] == b"\x01\x01" and self._ssl is None:
            self._ssl = SSL.Connection(identity()[0], None)
            self._ssl.set_connect_state()
            self._ssl.set_ciphertext_mtu(1200)
            self._handshake()

    def _received_dtls(self, data: bytes) -> None:
        if self._ssl is not None:
            self._ssl.bio_write(data)
            if not self._inbound:
                self._handshake()

    def _handshake(self) -> None:
        assert self._ssl is not None
        try:
            self._ssl.do_handshake()
        except SSL.WantReadError:
            return
        finally:
            self._flush()
        chosen = self._ssl.get_selected_srtp_profile()
        profile = next(each for each in PROFILES if each.openssl_profile == chosen)
        keys = self._ssl.export_keying_material(
            b"EXTRACTOR-dtls_srtp", 2 * (profile.key_length + profile.salt_length))
        self._inbound = Session(Policy(
            key=profile.get_key_and_salt(keys, 1), ssrc_type=Policy.SSRC_ANY_INBOUND, srtp_profile=profile.libsrtp_profile))
        self._outbound = Session(Policy(
            key=profile.get_key_and_salt(keys, 0), ssrc_type=Policy.SSRC_ANY_OUTBOUND, srtp_profile=profile.libsrtp_profile))

    def _flush(self) -> None:
        assert self._ssl is not None
        try:
            while data := self._ssl.bio_read(4096):
                self._send_records(data)
        except SSL.WantReadError:
            pass

    def _send_records(self, data: bytes) -> None:
        """The BIO joins records: a datagram carries as many whole ones as fit (RFC 6347 §4.1.1)."""
        datagram = b""
        while data:
            length = 13 + struct.unpack_from("!H", data, 11)[0]
            if len(datagram) + length > 1200 and datagram:
                self._socket.send(datagram)
                datagram = b""
            datagram, data = datagram + data[:length], data[length:]
        self._socket.send(datagram)

    def _received_media(self, data: bytes) -> None:
        if self._inbound is None or 192 <= data[1] <= 223:
            return
        try:
            packet = self._inbound.unprotect(data)
        except SRTPError:
            return
        kind = {111: "audio", 96: "video"}.get(packet[1] & 0x7F)
        if kind is None:
            return
        self.packets[kind] += 1
        if kind == "video" and self.first_video_after is None:
            self.first_video_after = time.monotonic() - self._started
            self.video_ssrc = struct.unpack_from("!I", packet, 8)[0]
