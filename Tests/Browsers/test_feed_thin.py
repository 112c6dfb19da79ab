"""The neighbour in the feed: fewer pictures of a stream in one size until it is in view; or no neighbour at all."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest
from drivers import PHONE, Browser, Page, wait_until
from feed import open_feed, wait_for_preload, wait_for_story
from media import STATISTICS, go_live, press_go_live
from server import Server

#: Pictures of the side that is in view, or of the other one, that came whole.
CAME = """async isFront => {
    const {feed, cube} = rostrum;
    const side = isFront ? cube.frontSide : cube.backSide;
    const track = feed.slotOf(side.story.id).media.getVideoTracks()[0];
    const receiver = feed.connection.session.peer.getReceivers().find(each => each.track === track);
    const [entry] = [...(await receiver.getStats()).values()].filter(({type}) => type === 'inbound-rtp');
    return [entry.framesReceived, entry.framesDecoded, entry.pliCount];
}"""


def made(studio: Page) -> int:
    """Pictures that were sent to the server."""
    return studio.evaluate(STATISTICS)["outbound-video"]["framesSent"]


@pytest.fixture
def server(logs: Path) -> Iterator[Server]:
    server = Server(logs / "server-feed-thin.log", "--workers", "2")
    try:
        yield server
    finally:
        server.stop()


def thinned(server: Server) -> float:
    return sum(value for name, value in server.metrics().items() if name.startswith("rostrum_packets_thinned_total"))


def share(page: Page, studio: Page, is_front: bool) -> float:
    """How many of the pictures that are made come, while sixty are."""
    sent, (came, *_) = made(studio), page.evaluate(CAME, is_front)
    wait_until(lambda: made(studio) >= sent + 60, 30, "sixty more pictures are made")
    return (page.evaluate(CAME, is_front)[0] - came) / (made(studio) - sent)


@pytest.mark.parametrize("codec", ["vp8", "vp9"])
def test_the_neighbour_gets_every_second_picture_until_it_is_in_view(
    server: Server, chromium: Browser, codec: str
) -> None:
    studios = {name: go_live(chromium, server, name, source="test", codec=codec, simulcast=0) for name in ("thin-1", "thin-2")}
    page = open_feed(chromium, server, PHONE)
    page.wait_for("() => rostrum.feed.stories.length === 2 && rostrum.cube.frontSide.isUncovered", seconds=20)
    here, there = page.evaluate("() => rostrum.feed.stories.map(({id}) => id)")
    wait_for_story(page, here)
    wait_for_preload(page, there)
    # All that stood in the cache has come.
    wait_until(lambda: thinned(server) > 0, 20, "something is left out")
    # An encoder that has no time drops pictures of any layer, so not every sixty of them are half of each; but where
    # nothing is left out, sixty come of every sixty.
    wait_until(
        lambda: 0.35 < share(page, studios[there], is_front=False) < 0.7, 120, "about every second picture comes")
    # A busy browser asks for a key frame where the first one, or what is decoded of it, takes it too long.
    _, decoded, asked = page.evaluate(CAME, False)
    assert decoded > 10
    page.press("ArrowRight")
    wait_for_story(page, there)
    # Layers are taken in at the next picture that allows it.
    page.wait_for("() => rostrum.feed.slotOf(rostrum.feed.current.id)?.quality === 'full'")
    # What comes is counted a moment after what is made, later still on a busy machine, so not every sixty come of sixty; but
    # where every second one is left out, they never do.
    wait_until(lambda: share(page, studios[there], is_front=True) > 0.8, 120, "nearly all pictures come")
    _, before, _ = page.evaluate(CAME, True)
    wait_until(lambda: page.evaluate(CAME, True)[1] > before + 20, 20, "the picture moves on")
    assert page.evaluate(CAME, True)[2] == asked, "nothing is missing where layers are taken in"


def hold_until(condition: str) -> str:
    """Holds the document's load event back until then, as a slow picture does: by an element without media."""
    return """() => {
        if (location.pathname === '/healthz') return;
        const held = document.createElement('video');
        held.srcObject = new MediaStream();
        const look = () => {
            if (CONDITION) held.srcObject = null;
            else setTimeout(look, 50);
        };
        look();
    }""".replace("CONDITION", condition)


PLAYS = "[...document.querySelectorAll('video')].some(({readyState}) => readyState === 4)"


def test_the_page_is_loaded_although_nobody_comes_next(chromium: Browser, server: Server) -> None:
    # Only Chromium lets an element that waits for its first picture hold back the document's load event.
    go_live(chromium, server, "alone", source="test")
    page = chromium.open(server.origin + "/healthz", PHONE, before_load=hold_until(PLAYS))
    page.goto(server.origin + "/?stream=alone")
    page.wait_for("() => rostrum.cube.frontSide.isUncovered")


def test_the_page_is_loaded_although_the_next_stream_has_no_picture(chromium: Browser, server: Server) -> None:
    go_live(chromium, server, "seen", source="test")
    heard = chromium.open(f"{server.origin}/live/heard?source=sound")
    press_go_live(heard)
    hold = hold_until(f"globalThis.rostrum?.feed.slotOf('heard') && {PLAYS}")
    page = chromium.open(server.origin + "/healthz", PHONE, before_load=hold)
    page.goto(server.origin + "/?stream=seen")
    page.wait_for("() => rostrum.cube.frontSide.isUncovered")
    # From then on its element may wait for what never comes.
    page.wait_for("() => Boolean(rostrum.feed.slotOf('heard') && rostrum.cube.backSide.video.srcObject)", what="it stands ready")


def test_the_page_is_loaded_although_the_stream_has_no_picture(chromium: Browser, server: Server) -> None:
    heard = chromium.open(f"{server.origin}/live/heard?source=sound")
    press_go_live(heard)
    hold = hold_until("globalThis.rostrum?.connection.state === 'connected'")
    note = "addEventListener('load', () => { globalThis.waited = Boolean(document.querySelector('video')?.srcObject); });"
    page = chromium.open(server.origin + "/healthz", PHONE, before_load=f"() => {{ {note} ({hold})(); }}")
    page.goto(server.origin + "/watch/heard")
    assert page.evaluate("() => waited") is False, "the load event waited until no picture was expected any more"
    page.wait_for("() => document.querySelector('video').readyState === 4", what="it is heard")
