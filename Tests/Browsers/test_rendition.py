"""A viewer whose link does not take the only size that a publisher sends: the server makes a smaller one for it."""

from __future__ import annotations

import os
import signal
import time
from collections.abc import Iterator

import pytest

from drivers import Browser, Page, wait_until
from lossy import LossyPath
from media import go_live
from server import Server
from test_congestion import COUNT, PLAY, Record
from test_previews import transcoder

#: Bits a second; the stream has several times as many.
CAPACITY = 300_000
HEIGHT = "() => Math.max(0, ...[...document.querySelectorAll('video')].map(video => video.videoHeight))"


@pytest.fixture
def path(server: Server) -> Iterator[LossyPath]:
    path = LossyPath(server, loss=0, seed=1)
    yield path
    path.close()


def renditions(server: Server) -> float:
    return server.metrics()["rostrum_renditions"]


def play(browser: Browser, path: LossyPath, stream: str) -> Page:
    page = browser.open(path.origin + "/healthz", before_load=path.rewrite)
    page.evaluate(PLAY, f"/whep/{stream}?wait=10")
    return page


def await_record(
    page: Page, path: LossyPath, host: Page, server: Server, pictures: int, concealed: float, seconds: int = 5
) -> Record:
    """Waits for some seconds with so many pictures each of the rendition, and with sound that is whole.

    A publisher that gets no processor may send so little for a while that its own picture fits, which is none of what is
    looked at here.
    """
    records: list[Record] = []
    made: list[bool] = []

    def is_whole() -> bool:
        was_made = renditions(server) == 1
        records.append(Record(page, path, host, seconds))
        made.append(was_made and renditions(server) == 1 and 0 < server.metrics()["rostrum_rendition_busy"])
        return made[-1] and records[-1].frames >= pictures * seconds and records[-1].concealed <= concealed

    def report() -> str:
        last = [f"{record}{'' if is_made else ' (none made)'}" for record, is_made in zip(records, made)][-6:]
        return f"{pictures} pictures a second, with their sound; the last {seconds} s each: {'; '.join(last)}"

    wait_until(is_whole, 60, report)
    return records[-1]


@pytest.mark.alone
@pytest.mark.parametrize("codec", ["vp8", "h264"])
def test_a_slow_link_gets_moving_pictures_with_their_sound(
    chromium: Browser, server: Server, path: LossyPath, stream: str, codec: str
) -> None:
    with go_live(chromium, server, stream, quality=720, simulcast=0, codec=codec) as host, play(chromium, path, stream) as page:
        wait_until(lambda: page.evaluate(HEIGHT) == 720, 60, "the publisher's picture comes")
        assert renditions(server) == 0
        path.down.capacity = CAPACITY
        since = time.monotonic()
        wait_until(lambda: 0 < page.evaluate(HEIGHT) <= 360, 60, "a smaller picture comes")
        print(f"a smaller picture after {time.monotonic() - since:.1f} s; {Record(page, path, host, 1)}")
        slow = await_record(page, path, host, server, pictures=12, concealed=0.02)
        print(slow)
        path.down.capacity = None
        wait_until(lambda: page.evaluate(HEIGHT) == 720, 60, "the publisher's picture comes again")
        wait_until(lambda: renditions(server) == 0, 60, "nobody needs it any more")


@pytest.mark.alone
def test_who_joins_over_a_slow_link_sees_it_and_a_transcoder_that_dies_costs_a_moment(
    chromium: Browser, server: Server, path: LossyPath, stream: str
) -> None:
    path.down.capacity = CAPACITY
    with go_live(chromium, server, stream, quality=720, simulcast=0) as host, play(chromium, path, stream) as page:
        since = time.monotonic()
        wait_until(lambda: 0 < page.evaluate(HEIGHT) <= 360, 60, "a smaller picture comes")
        print(f"a smaller picture after {time.monotonic() - since:.1f} s")
        print(await_record(page, path, host, server, pictures=12, concealed=0.02))
        os.kill(transcoder(server), signal.SIGKILL)
        wait_until(lambda: server.metrics()["rostrum_renditions_lost_total"] == 1, 30, "it is noticed")
        lost = Record(page, path, host, 2)
        await_record(page, path, host, server, pictures=12, concealed=0.02)
        print(lost)
        assert renditions(server) == 1


def test_a_link_for_little_more_than_sound_gets_a_picture_now_and_then(
    chromium: Browser, server: Server, path: LossyPath, stream: str
) -> None:
    with go_live(chromium, server, stream, quality=720, simulcast=0), play(chromium, path, stream) as page:
        wait_until(lambda: page.evaluate(HEIGHT) == 720, 60, "the publisher's picture comes")
        path.down.capacity = CAPACITY / 2
        wait_until(lambda: 0 < page.evaluate(HEIGHT) <= 360, 60, "a smaller picture comes")
        before = page.evaluate(COUNT)["frames"]
        wait_until(lambda: page.evaluate(COUNT)["frames"] >= before + 5, 120, "pictures come now and then")
