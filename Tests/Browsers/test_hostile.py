"""A flood of nonsense does not touch those who watch, nor the server's memory.

`ROSTRUM_FLOOD` multiplies the amount (default 1, which takes some seconds).
"""

from __future__ import annotations

import itertools
import os
import random
import re
import socket
from collections.abc import Iterator
from contextlib import ExitStack
from pathlib import Path

import pytest

import hostile
import udp
from drivers import Browser, Page, wait_until
from drivers.patience import patient
from media import STATISTICS, go_live, wait_for_frames, wait_for_state, watch
from server import Server

AMOUNT = float(os.environ.get("ROSTRUM_FLOOD", "1"))
#: Datagrams a second; a debug build on a busy machine takes this without its socket buffer running over.
PACE = 3000
#: How much the resident set may have grown after a flood, in kilobytes: the allocator's own slack.
SLACK_KILOBYTES = 6 * 1024


@pytest.fixture
def hostile_server(logs: Path, request: pytest.FixtureRequest) -> Iterator[Server]:
    server = Server(logs / f"server-{request.node.name}.log")
    yield server
    assert server.is_running, "the server died"
    assert server.stop() == 0


class Watching:
    """A viewer whose losses are counted from now on, and what there is to see."""

    def __init__(self, studio: Page, page: Page) -> None:
        self._studio = studio
        self._page = page
        self._dropped = udp.dropped()
        self._before = self._now()

    def _now(self) -> dict[str, float]:
        entries = self._page.evaluate(STATISTICS)
        video, audio = entries["inbound-video"], entries["inbound-audio"]
        return {
            "packets lost": video["packetsLost"] + audio["packetsLost"],
            "packets asked for again": video["nackCount"],
            "came": video["framesReceived"],
            "made": self._studio.evaluate(STATISTICS)["outbound-video"]["framesSent"],
            "session": self._page.evaluate("() => rostrum.connection.session.resource"),
        }

    def assert_nothing_was_lost(self) -> None:
        """As many pictures came as were made, however many those are on a busy machine."""
        # What was made by now may still be on its way.
        made = self._now()["made"]
        wait_until(
            lambda: self._now()["came"] - self._before["came"] >= made - self._before["made"] - 2, 10, "every picture came")
        now, before = self._now(), self._before
        assert now["session"] == before["session"]
        # A browser that gets no processor does not read; that is none of the server's losses.
        unread = sum(count - self._dropped.get(socket, 0) for socket, count in udp.dropped().items())
        assert now["packets lost"] - before["packets lost"] <= unread
        assert unread or now["packets asked for again"] == before["packets asked for again"]


@pytest.fixture
def watching(chromium: Browser, hostile_server: Server, stream: str) -> Watching:
    studio = go_live(chromium, hostile_server, stream, codec="vp8")
    viewer = watch(chromium, hostile_server, stream)
    wait_for_state(viewer, "live")
    # Past the first seconds, in which the publisher's bitrate climbs and buffers settle.
    wait_for_frames(viewer, 90)
    # After six seconds without a picture the page would ask for another session: a studio that gets no processor may
    # make none for so long.
    viewer.evaluate("() => { rostrum.connection.renew = () => {}; }")
    return Watching(studio, viewer)


def test_garbage_from_strangers(watching: Watching, hostile_server: Server) -> None:
    with ExitStack() as stack:
        sources = [stack.enter_context(socket.socket(socket.AF_INET, socket.SOCK_DGRAM)) for _ in range(16)]
        # Once to let every buffer and table reach its size, then to measure.
        hostile.flood(hostile_server.udp_port, hostile.datagrams(1, 3000), PACE, sources)
        before = hostile_server.resident_kilobytes()
        hostile.flood(hostile_server.udp_port, hostile.datagrams(2, int(15_000 * AMOUNT)), PACE, sources)
        grown = hostile_server.resident_kilobytes() - before
    watching.assert_nothing_was_lost()
    assert grown < SLACK_KILOBYTES, f"{grown} kB more memory"


def test_garbage_from_a_participant(watching: Watching, hostile_server: Server, stream: str) -> None:
    """Someone with a session and a nominated address, whose every further datagram is nonsense."""
    chance = random.Random(3)
    offer = (hostile.OFFERS[0].parent / "chrome-play.sdp").read_bytes()
    remote_ufrag = re.search(rb"a=ice-ufrag:(\S+)", offer)[1].decode()
    status, headers, answer = hostile_server.request(
        "POST", f"/whep/{stream}", offer, {"Content-Type": "application/sdp"})
    assert status == 201, answer
    ufrag = re.search(rb"a=ice-ufrag:(\S+)", answer)[1].decode()
    password = re.search(rb"a=ice-pwd:(\S+)", answer)[1].decode()
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as source:
        source.bind(("127.0.0.1", 0))
        source.settimeout(patient(5))
        check = hostile.binding_request(chance, ufrag, remote_ufrag, password, nominate=True)
        source.sendto(check, ("127.0.0.1", hostile_server.udp_port))
        assert source.recv(2048)[:2] == b"\x01\x01", "the check succeeds"
        source.setblocking(False)
        before = hostile_server.resident_kilobytes()

        def mostly_dtls() -> Iterator[bytes]:
            for packet in hostile.datagrams(4, int(8000 * AMOUNT)):
                yield packet
                yield hostile.damaged(chance, hostile.client_hello(chance))
                yield hostile.damaged(chance, hostile.binding_request(chance, ufrag, remote_ufrag, password, nominate=True))
        hostile.flood(hostile_server.udp_port, mostly_dtls(), PACE, [source])
        grown = hostile_server.resident_kilobytes() - before
    watching.assert_nothing_was_lost()
    assert grown < SLACK_KILOBYTES, f"{grown} kB more memory"
    hostile_server.request("DELETE", headers["location"])


def test_mutated_offers_and_tokens(watching: Watching, hostile_server: Server, stream: str) -> None:
    chance = random.Random(5)
    good = hostile_server.token(stream, "viewer")
    count = int(400 * AMOUNT)
    before = hostile_server.resident_kilobytes()
    statuses: dict[int, int] = {}
    offers, tokens = hostile.mutated_offers(chance), hostile.mutated_tokens(chance, good)
    for offer, token in itertools.islice(zip(offers, tokens), count):
        use_token = chance.random() < 0.4
        path = chance.choice([f"/whep/{stream}", f"/whep/other-{chance.randrange(9)}", "/whip/hostile", "/whep/%2e%2e"])
        headers = {"Content-Type": "application/sdp"}
        if use_token:
            headers["Authorization"] = f"Bearer {token}"
        status, answer_headers, body = hostile_server.request("POST", path, offer, headers)
        statuses[status] = statuses.get(status, 0) + 1
        assert status < 500 or status == 503, (status, body, offer)
        if status == 201:
            hostile_server.request("DELETE", answer_headers["location"], headers=headers)
        elif status >= 400:
            assert answer_headers.get("content-type", "").startswith("application/problem+json"), (status, answer_headers)
    assert sum(n for status, n in statuses.items() if 400 <= status < 500) > count / 4, statuses
    grown = hostile_server.resident_kilobytes() - before
    watching.assert_nothing_was_lost()
    assert grown < SLACK_KILOBYTES, f"{grown} kB more memory"


def test_broken_http(watching: Watching, hostile_server: Server) -> None:
    chance = random.Random(6)
    files = hostile_server.open_files()
    for request in hostile.REQUESTS:
        answer = hostile.raw_request(hostile_server.http_port, request)
        assert b"root:" not in answer, request
        assert not answer or answer.startswith(b"HTTP/1."), (request, answer[:80])
    for _ in range(int(150 * AMOUNT)):
        hostile.raw_request(hostile_server.http_port, hostile.damaged(chance, chance.choice(hostile.REQUESTS)))
    # Connections that say nothing, or begin and never finish, must not keep others out.
    with ExitStack() as stack:
        for _ in range(20):
            silent = stack.enter_context(socket.create_connection(("127.0.0.1", hostile_server.http_port)))
            silent.sendall(b"POST /whep/x HTTP/1.1\r\nHost: a\r\nContent-Le")
        assert hostile_server.request("GET", "/healthz")[0] == 200
    wait_until(lambda: hostile_server.open_files() <= files + 2, 10, "connections are closed again")
    watching.assert_nothing_was_lost()
