"""A viewer whose link takes far less than the stream: the server does not send more, sound goes first, and the page says why."""

from __future__ import annotations

import time
from collections.abc import Iterator
from contextlib import closing
from pathlib import Path

import pytest

from drivers import Browser, Page, wait_until
from lossy import LossyPath
from media import go_live, wait_for_frames, wait_for_state
from server import Server

#: A WHEP player without a page of ours, which stays on its one connection whatever happens.
PLAY = """async path => {
    const peer = globalThis.peer = new RTCPeerConnection({bundlePolicy: 'max-bundle'});
    for (const kind of ['audio', 'video']) {
        const {receiver} = peer.addTransceiver(kind, {direction: 'recvonly'});
        const element = document.createElement(kind);
        element.srcObject = new MediaStream([receiver.track]);
        element.autoplay = element.playsInline = true;
        // How large a picture comes, not how large it is drawn, is looked at: small ones take less of the machine.
        element.style.width = '160px';
        document.body.append(element);
        element.play().catch(() => {});
    }
    await peer.setLocalDescription();
    const answer = await fetch(path, {
        method: 'POST', body: peer.localDescription.sdp, headers: {'Content-Type': 'application/sdp'},
    });
    if (answer.status !== 201) throw new Error(`${answer.status} ${await answer.text()}`);
    await peer.setRemoteDescription({type: 'answer', sdp: await answer.text()});
}"""

#: What came in so far.
COUNT = """async () => {
    const found = {frames: 0, sounds: 0, concealed: 0, samples: 0, plis: 0, nacks: 0};
    for (const entry of (await peer.getStats()).values()) {
        if (entry.type !== 'inbound-rtp') continue;
        found.nacks += entry.nackCount ?? 0;
        if (entry.kind === 'video') [found.frames, found.plis] = [entry.framesDecoded ?? 0, entry.pliCount ?? 0];
        else {
            [found.concealed, found.samples] = [entry.concealedSamples ?? 0, entry.totalSamplesReceived ?? 0];
            found.sounds = entry.packetsReceived ?? 0;
        }
    }
    return found;
}"""

#: What a studio has sent so far: packets of sound, and pictures of each size.
SENT = """async () => {
    const found = {sounds: 0, pictures: {}};
    for (const entry of (await rostrum.connection.session.peer.getStats()).values()) {
        if (entry.type !== 'outbound-rtp') continue;
        if (entry.kind === 'audio') found.sounds += entry.packetsSent ?? 0;
        else found.pictures[entry.rid ?? ''] = entry.framesSent ?? 0;
    }
    return found;
}"""

#: Synchronization sources of the pictures that a page receives, and of their repair: a probe is made of that.
SOURCES = """() => {
    const [, video] = rostrum.connection.session.peer.remoteDescription.sdp.split(/^m=(?=video )/m);
    return [...new Set([...video.split(/^m=/m)[0].matchAll(/^a=ssrc:(\\d+) /gm)].map(([, ssrc]) => Number(ssrc)))];
}"""

#: At the page's second look from now on nothing has come since the first.
STAND_STILL = """() => {
    const {stats} = rostrum.room.viewing, {read} = stats;
    let before;
    globalThis.looks = 0;
    stats.read = async () => {
        const numbers = await read.call(stats);
        const {bytes, frames, videoPackets} = looks++ === 1 ? before : numbers;
        before = {...numbers, bytes, frames, videoPackets};
        return before;
    };
}"""

#: Bits a second; the stream has several times as many.
CAPACITY = 300_000
#: Of sound, in a second.
SAMPLES = 48_000


@pytest.fixture(params=["chromium", "firefox"])
def browser(request: pytest.FixtureRequest) -> Browser:
    return request.getfixturevalue(request.param)


@pytest.fixture
def path(server: Server) -> Iterator[LossyPath]:
    path = LossyPath(server, loss=0, seed=1)
    yield path
    path.close()


class Record:
    """What a viewer was sent, and what became of it, while it played so many seconds of sound.

    What arrived is compared with what the host sent meanwhile: a host that gets no processor for a second sends nothing then.
    """

    def __init__(self, page: Page, path: LossyPath, host: Page, seconds: int) -> None:
        before, offered, start = page.evaluate(COUNT), path.offered, time.monotonic()
        first = host.evaluate(SENT)
        end = before["samples"] + seconds * SAMPLES
        wait_until(lambda: page.evaluate(COUNT)["samples"] >= end, seconds * 2, f"{seconds} s of sound are played")
        last = host.evaluate(SENT)
        after, elapsed = page.evaluate(COUNT), time.monotonic() - start
        self.bitrate = (path.offered - offered) * 8 / elapsed
        self.frames = after["frames"] - before["frames"]
        #: That the host sent, of the size of which it sent most.
        self.pictures = max(count - first["pictures"].get(rid, 0) for rid, count in last["pictures"].items())
        #: Share of the host's sound that arrived.
        self.heard = (after["sounds"] - before["sounds"]) / max(1, last["sounds"] - first["sounds"])
        self.concealed = (after["concealed"] - before["concealed"]) / (after["samples"] - before["samples"])
        self.plis, self.nacks = after["plis"] - before["plis"], after["nacks"] - before["nacks"]

    def __str__(self) -> str:
        return (f"{self.bitrate / 1000:.0f} kbit/s, {self.frames} of {self.pictures} pictures, {self.heard:.1%} of sound, "
                f"{self.concealed:.1%} concealed, {self.plis} PLIs, {self.nacks} NACKs")


def test_is_not_sent_more_because_less_arrives(chromium: Browser, server: Server, path: LossyPath, stream: str) -> None:
    with go_live(chromium, server, stream, quality=720, simulcast=0) as host, chromium.open(
        path.origin + "/healthz", before_load=path.rewrite
    ) as page:
        page.evaluate(PLAY, f"/whep/{stream}?wait=10")
        wait_until(lambda: page.evaluate(COUNT)["frames"] > 60, 30, "pictures come")
        whole = Record(page, path, host, 4)
        path.down.capacity = min(CAPACITY, whole.bitrate / 4)
        Record(page, path, host, 5)
        capped = Record(page, path, host, 10)
        path.down.capacity = None
        before = page.evaluate(COUNT)["frames"]
        wait_until(lambda: page.evaluate(COUNT)["frames"] > before + 100, 60, "pictures come again")
        print(f"whole: {whole}; capped: {capped}; after it: {Record(page, path, host, 1)}")
        assert capped.bitrate <= 1.3 * whole.bitrate, f"whole: {whole}; capped: {capped}"
        assert capped.heard >= 0.7, f"whole: {whole}; capped: {capped}"


@pytest.fixture
def plain_server(logs: Path) -> Iterator[Server]:
    """One that makes no smaller pictures: who has no room for the publisher's gets sound alone."""
    server = Server(logs / "server-plain.log", "--max-renditions", "0")
    yield server
    server.stop()


def test_the_page_says_why_and_keeps_its_session(
    chromium: Browser, browser: Browser, plain_server: Server, stream: str
) -> None:
    session = "() => rostrum.connection.session?.resource"
    path = LossyPath(plain_server, loss=0, seed=1)
    with closing(path), go_live(chromium, plain_server, stream, quality=720, simulcast=0), browser.open(
        f"{path.origin}/watch/{stream}", before_load=path.rewrite
    ) as page:
        wait_for_state(page, "live")
        wait_for_frames(page, 60)
        before = page.evaluate(session)
        path.down.capacity = CAPACITY / 2
        page.wait_for(
            "() => document.getElementById('state').innerText === 'Your connection is too slow'", seconds=30,
            what="the page says why there is no picture")
        path.down.capacity = None
        wait_for_state(page, "live", seconds=60)
        wait_for_frames(page, 60)
        assert page.evaluate(session) == before


def test_the_page_keeps_its_session_while_pictures_are_held_back(
    chromium: Browser, browser: Browser, server: Server, path: LossyPath, stream: str
) -> None:
    """A server that sends sound alone, because the link takes no more: nothing is lost then, and no picture comes."""
    session = "() => rostrum.connection.session?.resource"
    with go_live(chromium, server, stream, simulcast=0), browser.open(
        f"{path.origin}/watch/{stream}", before_load=path.rewrite
    ) as page:
        wait_for_state(page, "live")
        wait_for_frames(page, 30)
        before = page.evaluate(session)
        path.withheld = frozenset(page.evaluate(SOURCES))
        page.wait_for(
            "() => document.getElementById('state').innerText === 'Your connection is too slow'", seconds=30,
            what="the page says why there is no picture")
        # Sound, too, may stay away for a second.
        page.evaluate(STAND_STILL)
        page.wait_for("() => looks > 1", what="the page looks when nothing has come")
        path.withheld = frozenset()
        wait_for_state(page, "live", seconds=30)
        wait_for_frames(page, 30)
        assert page.evaluate(session) == before
