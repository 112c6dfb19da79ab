"""Sound on a path that loses packets: earlier packets come again in later ones for who takes that (RED, RFC 2198)."""

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


@pytest.fixture
def paths(server: Server) -> Iterator[list[LossyPath]]:
    paths = [LossyPath(server, loss=0.1, seed=7) for _ in range(2)]
    yield paths
    for path in paths:
        path.close()


@pytest.mark.alone
def test_sound_survives_the_loss_of_a_tenth(
    chromium: Browser, server: Server, paths: list[LossyPath], stream: str
) -> None:
    with go_live(chromium, server, stream):
        pages = []
        for path, offer in zip(paths, ("() => {}", WITHOUT_RED), strict=True):
            page = chromium.open(path.origin + "/healthz", before_load=f"() => {{ ({path.rewrite})(); ({offer})(); }}")
            page.evaluate(PLAY, f"/whep/{stream}?wait=10")
            pages.append(page)
        for page in pages:
            wait_until(lambda page=page: page.evaluate(COUNT)["samples"] > 0, 30, "there is sound")
        # Until the buffers have grown with what comes late.
        concealed(pages, 5)
        whole, bare = concealed(pages, 20)
    # A packet that comes later than its turn is concealed, too, whatever it carries: a busy machine's are late.
    assert whole < 0.04, f"with RED: {whole}; without: {bare}"
    assert bare > 0.05, "or what is above proves nothing"
