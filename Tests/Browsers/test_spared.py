"""A publisher of three sizes encodes those that somebody takes, and the smallest."""

from __future__ import annotations

import pytest

from drivers import Browser, Page, wait_until
from media import check_no_complaints, go_live, wait_for_state
from server import Server
from test_picture import HEIGHT

#: RIDs of the layers that are encoded.
ACTIVE = """() => rostrum.connection.session.peer.getSenders().filter(({track}) => track?.kind === 'video')
    .flatMap(sender => sender.getParameters().encodings).filter(({active}) => active).map(({rid}) => rid).sort().join('')"""

#: Pictures of each layer that were sent.
SENT = """async () => Object.fromEntries([...(await rostrum.connection.session.peer.getStats()).values()]
    .filter(({type, kind, rid}) => type === 'outbound-rtp' && kind === 'video' && rid).map(({rid, framesSent}) => [rid, framesSent ?? 0]))"""


@pytest.fixture(params=["chromium", "firefox"])
def browser(request: pytest.FixtureRequest) -> Browser:
    return request.getfixturevalue(request.param)


def largest(host: Page) -> int:
    """Lines of the largest picture that is sent now."""
    height: int = host.evaluate(
        """async () => [...(await rostrum.connection.session.peer.getStats()).values()]
            .find(({type, rid}) => type === 'outbound-rtp' && rid === 'f')?.frameHeight ?? 0""")
    return height


def wait_for_layers(host: Page, wanted: str, seconds: float = 30) -> None:
    host.wait_for(f"wanted => ({ACTIVE})() === wanted", wanted, seconds=seconds, what=f"the host encodes {wanted}")


def test_layers_that_nobody_takes_are_not_encoded(browser: Browser, chromium: Browser, server: Server, stream: str) -> None:
    with go_live(browser, server, stream, quality=720, fps=15) as host:
        wait_for_layers(host, "q")
        # Pictures that were on their way to the encoder when it was told are of all sizes: a busy one has several. They
        # are over once later ones of the smallest were sent.
        told = host.evaluate(SENT)
        wait_until(lambda: host.evaluate(SENT)["q"] > told["q"] + 5, 30, "the encoder does as it was told")
        before = host.evaluate(SENT)
        wait_until(lambda: host.evaluate(SENT)["q"] > before["q"] + 30, 30, "the smallest goes on")
        after = host.evaluate(SENT)
        # One picture may be on its way to the encoder when it is told.
        assert all(after[rid] <= before[rid] + 1 for rid in "hf"), (before, after)
        with chromium.open(f"{server.origin}/watch/{stream}") as viewer:
            wait_for_state(viewer, "live")
            wait_for_layers(host, "fq")
            # A Firefox that gets little of the machine makes the largest smaller, too.
            wait_until(lambda: largest(host) == viewer.evaluate(HEIGHT) > 180, 30, "the viewer sees the largest")
            check_no_complaints(viewer)
        wait_for_layers(host, "q")
        check_no_complaints(host)
