"""Sound on a path that loses packets: earlier packets come again in later ones for who takes that (RED, RFC 2198)."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from drivers import Browser, Page, wait_until
from lossy import LossyPath
from media import go_live
from server import Server
from test_congestion import COUNT, PLAY, Record

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
def path(server: Server) -> Iterator[LossyPath]:
    path = LossyPath(server, loss=0.1, seed=7)
    yield path
    path.close()


def play(chromium: Browser, path: LossyPath, host: Page, stream: str, before_load: str, seconds: int) -> Record:
    with chromium.open(path.origin + "/healthz", before_load=before_load) as page:
        page.evaluate(PLAY, f"/whep/{stream}?wait=10")
        wait_until(lambda: page.evaluate(COUNT)["samples"] > 0, 30, "there is sound")
        Record(page, path, host, 5)
        return Record(page, path, host, seconds)


@pytest.mark.alone
def test_sound_survives_the_loss_of_a_tenth(chromium: Browser, server: Server, path: LossyPath, stream: str) -> None:
    with go_live(chromium, server, stream) as host:
        whole = play(chromium, path, host, stream, path.rewrite, 20)
        bare = play(chromium, path, host, stream, f"() => {{ ({path.rewrite})(); ({WITHOUT_RED})(); }}", 10)
    print(f"with RED: {whole}; without: {bare}")
    # A packet that comes later than its turn is concealed, too, whatever it carries: a busy machine's are late.
    assert whole.concealed < 0.04, f"with RED: {whole}; without: {bare}"
    assert bare.concealed > 0.05, "or what is above proves nothing"
