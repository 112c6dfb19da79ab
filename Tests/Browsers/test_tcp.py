"""A network that blocks UDP: the browser sees only the server's TCP candidates (ICE-TCP, RFC 6544)."""

from __future__ import annotations

import pytest

from drivers import Browser, Page
from media import go_live, press_go_live, wait_for_frames, wait_for_sound, wait_for_state, watch
from server import Server

#: Takes away the candidates of the answer that a firewall would.
ONLY = """() => {
    const original = RTCPeerConnection.prototype.setRemoteDescription;
    RTCPeerConnection.prototype.setRemoteDescription = function (description) {
        const sdp = description.sdp.replace(/a=candidate:\\S+ \\d+ udp .*\\r\\n/gi, '');
        return original.call(this, { type: description.type, sdp });
    };
}"""

#: The protocol of the pair that media uses: that of our candidate and that of the server's.
PROTOCOLS = """async () => {
    const report = await rostrum.connection.session.peer.getStats();
    let pair = null;
    for (const entry of report.values()) {
        if (entry.type === 'transport') pair = report.get(entry.selectedCandidatePairId) ?? pair;
        if (entry.type === 'candidate-pair' && entry.selected) pair = entry;
    }
    return pair && [report.get(pair.localCandidateId).protocol, report.get(pair.remoteCandidateId).protocol];
}"""


def live_by_tcp(browser: Browser, server: Server, stream: str) -> Page:
    page = browser.open(f"{server.origin}/live/{stream}?quality=480&codec=vp8", before_load=ONLY)
    press_go_live(page)
    return page


@pytest.mark.parametrize("name", ["chromium", "firefox"])
def test_a_viewer_plays_over_tcp(
    name: str, browsers: dict[str, Browser], chromium: Browser, server: Server, stream: str
) -> None:
    go_live(chromium, server, stream, codec="vp8")
    viewer = browsers[name].open(f"{server.origin}/watch/{stream}", before_load=ONLY)
    wait_for_state(viewer, "live")
    seen = wait_for_frames(viewer, 90)
    assert seen.width >= 160
    assert viewer.evaluate(PROTOCOLS) == ["tcp", "tcp"]
    assert wait_for_sound(viewer) > 0


def test_a_publisher_sends_over_tcp(chromium: Browser, server: Server, stream: str) -> None:
    studio = live_by_tcp(chromium, server, stream)
    viewer = watch(chromium, server, stream)
    wait_for_state(viewer, "live")
    wait_for_frames(viewer, 60)
    assert studio.evaluate(PROTOCOLS) == ["tcp", "tcp"]
    assert viewer.evaluate(PROTOCOLS) == ["udp", "udp"]


@pytest.mark.parametrize("name", ["chromium", "firefox"])
def test_udp_is_preferred_where_both_work(
    name: str, browsers: dict[str, Browser], chromium: Browser, server: Server, stream: str
) -> None:
    go_live(chromium, server, stream, codec="vp8")
    viewer = watch(browsers[name], server, stream)
    wait_for_state(viewer, "live")
    wait_for_frames(viewer, 60)
    assert viewer.evaluate(PROTOCOLS) == ["udp", "udp"]
