"""Sound on a path that loses packets: earlier packets come again in later ones for who takes that (RED, RFC 2198), and what
was reported lost is sent again."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from drivers import Browser, wait_until
from lossy import LossyPath
from media import go_live
from server import Server
from test_congestion import COUNT, PLAY
from test_red import concealed

#: An offer without RED, as of clients that do not know it.
WITHOUT_RED = """() => {
    const add = RTCPeerConnection.prototype.addTransceiver;
    RTCPeerConnection.prototype.addTransceiver = function (kind, options) {
        const transceiver = add.call(this, kind, options);
        if (kind === 'audio') {
            transceiver.setCodecPreferences(RTCRtpReceiver.getCapabilities('audio').codecs.filter(
                ({mimeType}) => mimeType === 'audio/opus'));
        }
        return transceiver;
    };
}"""

#: The same of clients that report no single packets either.
WITHOUT_REPORTS = """() => {
    const send = globalThis.fetch;
    globalThis.fetch = (path, options) => send(
        path, {...options, body: options.body?.replace(/a=rtcp-fb:\\d+ transport-cc\\r\\n/g, '')});
}"""


@pytest.fixture
def paths(server: Server) -> Iterator[list[LossyPath]]:
    paths = [LossyPath(server, loss=0.1, seed=7) for _ in range(4)]
    yield paths
    for path in paths:
        path.close()


@pytest.mark.alone
def test_sound_survives_the_loss_of_a_tenth(
    browsers: dict[str, Browser], server: Server, paths: list[LossyPath], stream: str
) -> None:
    """Firefox takes no RED."""
    clients = {
        "RED": ("chromium", "() => {}"), "no RED": ("chromium", WITHOUT_RED), "Firefox": ("firefox", "() => {}"),
        "neither": ("chromium", f"() => {{ ({WITHOUT_RED})(); ({WITHOUT_REPORTS})(); }}")}
    with go_live(browsers["chromium"], server, stream):
        pages = []
        for path, (browser, offer) in zip(paths, clients.values(), strict=True):
            page = browsers[browser].open(
                path.origin + "/healthz", before_load=f"() => {{ ({path.rewrite})(); ({offer})(); }}")
            page.evaluate(PLAY, f"/whep/{stream}?wait=10")
            pages.append(page)
        for page in pages:
            wait_until(lambda page=page: page.evaluate(COUNT)["samples"] > 0, 30, "there is sound")
        # Until the buffers have grown with what comes late.
        concealed(pages, 5)
        shares = dict(zip(clients, concealed(pages, 20), strict=True))
    # A packet that comes later than its turn is concealed, too, whatever it carries: a busy machine's are late.
    print(shares)
    assert shares["RED"] < 0.04, shares
    assert shares["no RED"] < 0.05 and shares["Firefox"] < 0.05, shares
    assert shares["neither"] > 0.05, f"or what is above proves nothing: {shares}"
