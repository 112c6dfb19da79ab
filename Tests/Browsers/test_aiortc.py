"""aiortc, an independent implementation in Python, publishes and plays."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import closing

import pytest

from aiortc_client import HEIGHT, WIDTH, Aiortc
from drivers import Browser, wait_until
from lossy import LossyPath
from media import go_live, wait_for_frames, wait_for_sound, wait_for_state, watch
from server import Server
from test_paths import Distant


@pytest.fixture
def aiortc() -> Iterator[Aiortc]:
    home = Aiortc()
    yield home
    home.close()


@pytest.mark.parametrize("codec", ["vp8", "h264"])
def test_publishes_to_itself_and_a_browser(aiortc: Aiortc, chromium: Browser, server: Server, stream: str, codec: str) -> None:
    aiortc.publish(server, stream, codec)
    viewer = watch(chromium, server, stream)
    player = aiortc.play(server, stream)
    wait_for_state(viewer, "live")
    seen = wait_for_frames(viewer)
    assert (seen.video_codec or "").lower() == codec
    assert (seen.width, seen.height) == (WIDTH, HEIGHT)
    wait_for_sound(viewer)
    wait_until(lambda: player.frames >= 30, 15, "30 frames are decoded")
    assert player.sizes == {(WIDTH, HEIGHT)}
    wait_until(lambda: player.energy > 10, 10, "the tone is heard")


@pytest.mark.parametrize("publisher", ["chromium", "firefox"])
def test_plays_a_browser(aiortc: Aiortc, browsers: dict[str, Browser], server: Server, stream: str, publisher: str) -> None:
    go_live(browsers[publisher], server, stream, codec="vp8")
    player = aiortc.play(server, stream)
    wait_until(lambda: player.frames >= 30, 20, "30 frames are decoded")
    wait_until(lambda: player.energy > 0.01, 15, "sound is heard")


@pytest.mark.parametrize("channel", [True, False], ids=["with-channel", "without-channel"])
def test_speaks_on_the_stage_with_one_offer(aiortc: Aiortc, server: Server, stream: str, channel: bool) -> None:
    ann = aiortc.speak(server, stream, "host", "Ann", channel=channel)
    bob = aiortc.speak(server, stream, "speaker", "Bob", channel=channel)
    wait_until(lambda: ann.state == bob.state == "connected", 15, "both are connected")
    wait_until(lambda: ann.frames >= 20 and bob.frames >= 20, 30, "both see each other")
    wait_until(lambda: ann.energy > 10 and bob.energy > 10, 15, "both hear each other")
    wait_until(
        lambda: not channel or any(slot.get("participant") == "bob" for message in ann.control for slot in message.get("slots", [])),
        5, "the host is told who is in her slots")


def test_deleting_the_session_ends_the_stream(aiortc: Aiortc, chromium: Browser, server: Server, stream: str) -> None:
    publisher = aiortc.publish(server, stream)
    viewer = watch(chromium, server, stream)
    wait_for_state(viewer, "live")
    publisher.close()
    wait_for_state(viewer, "ended", seconds=5)


def test_a_session_may_be_deleted_once_when_its_connection_was_closed_before(
    aiortc: Aiortc, server: Server, stream: str
) -> None:
    publisher = aiortc.publish(server, stream)
    wait_until(lambda: publisher.state == "connected", 15, "it is connected")
    publisher.hang_up()
    wait_until(lambda: publisher.ask("GET") == 404, 15, "the server has ended the session")
    assert publisher.ask("DELETE") == 200
    assert publisher.ask("DELETE") == 404


def test_says_how_much_it_can_take_in(aiortc: Aiortc, chromium: Browser, server: Server, stream: str) -> None:
    """The largest picture first, a smaller one that moves while its link takes little, and the largest again (REMB)."""
    with (
        closing(LossyPath(server, loss=0, seed=1, rewrites=True)) as path,
        go_live(chromium, server, stream, codec="vp8", quality=720),
        closing(aiortc.play(Distant(server, path), stream)) as player,
    ):
        wait_until(lambda: player.height == 720, 60, "the largest picture comes")
        path.down.capacity = 600_000
        wait_until(lambda: 0 < player.height < 720, 60, "a smaller picture comes")
        # A host whose machine is held up sends so few large pictures that at times they fit, too.
        def smaller() -> int:
            return sum(count for height, count in list(player.frames_by_height.items()) if height < 720)

        before = smaller()
        wait_until(lambda: smaller() >= before + 60, 60, "60 smaller pictures at 600 kbit/s")
        path.down.capacity = None
        wait_until(lambda: player.height == 720, 90, "the largest picture comes again")
