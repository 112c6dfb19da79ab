"""A network that blocks UDP: the browser sees only the server's TCP candidates (ICE-TCP, RFC 6544)."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from drivers import Browser, Page, wait_until
from media import USUAL_VIEWPORT, go_live, press_go_live, wait_for_frames, wait_for_sound, wait_for_state, watch
from server import Server
from slow_stream import SlowStream
from test_congestion import COUNT, PLAY, SAMPLES

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
    page = browser.open(f"{server.origin}/live/{stream}?quality=360&fps=15&codec=vp8", USUAL_VIEWPORT, before_load=ONLY)
    press_go_live(page)
    return page


@pytest.mark.parametrize("name", ["chromium", "firefox"])
def test_a_viewer_plays_over_tcp(
    name: str, browsers: dict[str, Browser], chromium: Browser, server: Server, stream: str
) -> None:
    go_live(chromium, server, stream, codec="vp8")
    viewer = browsers[name].open(f"{server.origin}/watch/{stream}", USUAL_VIEWPORT, before_load=ONLY)
    wait_for_state(viewer, "live")
    seen = wait_for_frames(viewer)
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


@pytest.fixture
def stream_path(server: Server) -> Iterator[SlowStream]:
    path = SlowStream(server)
    yield path
    path.close()


@pytest.mark.parametrize("name", ["chromium", "firefox"])
def test_a_slow_reader_gets_a_smaller_picture(
    name: str, browsers: dict[str, Browser], chromium: Browser, server: Server, stream_path: SlowStream, stream: str
) -> None:
    """The largest first, a smaller one that moves while the connection takes little, and the largest again."""
    height = "() => Math.max(0, ...[...document.querySelectorAll('video')].map(video => video.videoHeight))"
    with go_live(chromium, server, stream, codec="vp8", quality=720), browsers[name].open(
        server.origin + "/healthz", before_load=stream_path.rewrite
    ) as page:
        def is_smaller() -> bool:
            return 0 < page.evaluate(height) < 720

        page.evaluate(PLAY, f"/whep/{stream}?wait=10")
        wait_until(lambda: page.evaluate(height) == 720, 60, "the largest picture comes")
        stream_path.capacity = 600_000
        wait_until(is_smaller, 30, "a smaller picture comes")
        # How many pictures there are is the encoder's affair, which has the same processors. Of 720 lines one that is held
        # up makes so few for a while that they fit, too.
        wait_until(
            lambda: is_smaller() and plays_well(page) and is_smaller(), 60,
            "five good seconds of a smaller picture at 600 kbit/s")
        stream_path.capacity = None
        wait_until(lambda: page.evaluate(height) == 720, 60, "the largest picture comes again")


def plays_well(page: Page) -> bool:
    """Whether five seconds of sound from now on are whole, and pictures come meanwhile."""
    before = page.evaluate(COUNT)
    wait_until(
        lambda: page.evaluate(COUNT)["samples"] >= before["samples"] + 5 * SAMPLES, 30, "5 s of sound are played")
    after = page.evaluate(COUNT)
    grown = {key: after[key] - before[key] for key in after}
    return grown["frames"] >= 50 and grown["concealed"] <= 0.1 * grown["samples"]
