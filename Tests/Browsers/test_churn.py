"""Viewers come and go by the hundred; the server keeps nothing of them."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

import udp
from drivers import Browser, wait_until
from light_viewer import LightViewer
from media import go_live, wait_for_frames, wait_for_state, watch
from server import Server

ROUND = 250
#: Growth of the resident set that counts as the allocator's own, in kilobytes, after 500 joins and leaves.
SLACK_KILOBYTES = 3 * 1024


@pytest.fixture
def churned_server(logs: Path) -> Iterator[Server]:
    server = Server(logs / "server-churn.log")
    yield server
    assert server.is_running, "the server died"
    assert server.stop() == 0


def churn(server: Server, stream: str, count: int) -> None:
    for number in range(count):
        viewer = LightViewer(server.http_port, f"/whep/{stream}")
        viewer.join(wants_media=number % 5 == 0)
        viewer.leave()


def test_five_hundred_joins_and_leaves(chromium: Browser, churned_server: Server, stream: str) -> None:
    before = udp.dropped()
    go_live(chromium, churned_server, stream, codec="vp8")
    viewer = watch(chromium, churned_server, stream)
    wait_for_state(viewer, "live")
    wait_for_frames(viewer, 60)
    # Enough that the allocator, tables and pools have reached their sizes.
    churn(churned_server, stream, ROUND)
    files = churned_server.open_files()
    memory = churned_server.resident_kilobytes()
    for _ in range(2):
        churn(churned_server, stream, ROUND)
    wait_until(lambda: churned_server.open_files() <= files, 15, f"at most {files} files are open, as before")
    grown = churned_server.resident_kilobytes() - memory
    assert grown < SLACK_KILOBYTES, f"{grown} kB more memory after {2 * ROUND} joins and leaves"
    wait_for_frames(viewer, 30)
    lost = viewer.evaluate(
        """async () => [...(await rostrum.connection.session.peer.getStats()).values()]
            .filter(entry => entry.type === 'inbound-rtp').reduce((sum, entry) => sum + entry.packetsLost, 0)""")
    # A browser that gets no processor does not read; that is none of the server's losses.
    unread = sum(count - before.get(socket, 0) for socket, count in udp.dropped().items())
    assert lost <= unread, "the viewer who stayed lost packets"
