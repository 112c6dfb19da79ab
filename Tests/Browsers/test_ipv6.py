"""Pages, calls and encoders that reach the server by IPv6 alone."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path

import pytest

from drivers import Browser, wait_until
from media import USUAL_VIEWPORT, check_no_complaints, wait_for_frames, wait_for_sound, wait_for_state
from rtmp import Encoder
from server import Server, free_port

#: Candidates of IPv4 are taken out of what the server answers.
IPV6_ALONE = r"""() => {
    const original = RTCPeerConnection.prototype.setRemoteDescription;
    RTCPeerConnection.prototype.setRemoteDescription = function ({type, sdp}) {
        return original.call(this, {type, sdp: sdp.replace(/a=candidate:\S+ \d+ \S+ \d+ [\d.]+ .*\r\n/g, '')});
    };
}"""
#: Where what is received comes from.
SENDER = """async () => {
    const report = await rostrum.connection.session.peer.getStats();
    for (const entry of report.values()) {
        const pair = entry.type === 'transport' ? report.get(entry.selectedCandidatePairId)
            : entry.type === 'candidate-pair' && entry.selected ? entry : null;
        const remote = pair && report.get(pair.remoteCandidateId);
        if (remote) return remote.address;
    }
    return null;
}"""


def has_ipv6() -> bool:
    """Whether this machine has an address of IPv6 beside ::1, as browsers want one for calls."""
    with suppress(OSError):
        # Address, interface, length of the prefix, scope (0 is global), flags, and the interface's name.
        lines = Path("/proc/net/if_inet6").read_text().splitlines()
        return any(line.split()[3] == "00" for line in lines)
    return False


pytestmark = pytest.mark.skipif(not has_ipv6(), reason="this machine has no address of IPv6")


@pytest.fixture
def six(logs: Path, stream: str) -> Iterator[tuple[Server, int]]:
    """A server, and its port for RTMP."""
    port = free_port()
    server = Server(logs / f"server-{stream}.log", "--rtmp", f"[::1]:{port}", has_ipv6=True)
    yield server, port
    assert server.is_running
    assert server.stop() == 0


@pytest.mark.parametrize("name", ["chromium", "firefox"])
def test_a_call_comes_about_by_ipv6(
    name: str, browsers: dict[str, Browser], chromium: Browser, six: tuple[Server, int], stream: str
) -> None:
    server, _ = six
    address = f"{server.origin}/live/{stream}?quality=360&fps=15"
    with chromium.open(address, USUAL_VIEWPORT, before_load=IPV6_ALONE) as host:
        host.click("#go")
        wait_for_state(host, "live")
        with browsers[name].open(f"{server.origin}/watch/{stream}", USUAL_VIEWPORT, before_load=IPV6_ALONE) as viewer:
            wait_for_state(viewer, "live")
            wait_for_frames(viewer)
            wait_for_sound(viewer)
            assert ":" in viewer.evaluate(SENDER)
            check_no_complaints(host, viewer)


def test_an_encoder_publishes_by_ipv6(chromium: Browser, six: tuple[Server, int], logs: Path, stream: str) -> None:
    server, port = six
    address = f"rtmp://[::1]:{port}/live/{stream}?token={server.token(stream)}"
    with Encoder(address, logs / f"encoder-{stream}.log"):
        wait_until(lambda: server.request("GET", f"/v1/streams/{stream}")[0] == 200, 20, "it is live")
        with chromium.open(f"{server.origin}/watch/{stream}", USUAL_VIEWPORT, before_load=IPV6_ALONE) as viewer:
            wait_for_state(viewer, "live")
            wait_for_frames(viewer)
