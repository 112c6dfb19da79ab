"""Which sizes a studio sends, second by second, of a browser that says what it estimates and sends."""

from __future__ import annotations

from typing import Any

import pytest

from drivers import Browser, Page
from media import go_live, watch
from server import Server

#: Looks once for each second that is told: what the browser estimates, in bit/s, and the sizes of which it sent pictures.
LOOK = """async (wanted, seconds, [width, height]) => {
    const {SentLayers} = await import('/assets/sent-layers.js');
    const encodings = [['q', 4, 150_000], ['h', 2, 600_000], ['f', 1, 2_500_000]].map(([rid, scale, rate]) =>
        ({rid, active: true, scaleResolutionDownBy: scale, maxBitrate: rate}));
    // A single size has no name.
    if (wanted.length === 0) encodings.splice(0, 3, {active: true, scaleResolutionDownBy: 1, maxBitrate: 2_500_000});
    const track = {width, height, getSettings: () => ({width: track.width, height: track.height})};
    const sender = {
        track,
        getParameters: () => ({encodings: encodings.map(encoding => ({...encoding}))}),
        setParameters: async parameters => {
            globalThis.changes++;
            parameters.encodings.forEach((encoding, i) => Object.assign(encodings[i], encoding));
        },
    };
    globalThis.changes = 0;
    const layers = new SentLayers(sender);
    if (wanted.length > 0) await layers.want(wanted);
    const frames = {q: 0, h: 0, f: 0};
    const active = [];
    for (const [estimate, sent, limitation, size, maxBitrate] of seconds) {
        if (size) [track.width, track.height] = size;
        for (const rid of sent) frames[rid] += 30;
        const entries = Object.entries(frames).map(([rid, framesSent]) => ({
            type: 'outbound-rtp', kind: 'video', rid, framesSent, qualityLimitationReason: limitation ?? 'bandwidth'}));
        entries.push({type: 'candidate-pair', nominated: true, availableOutgoingBitrate: estimate});
        layers.look(new Map(entries.map((entry, index) => [index, entry])), maxBitrate);
        await new Promise(done => setTimeout(done));
        active.push(encodings.filter(encoding => encoding.active).map(({rid}) => rid).join(''));
    }
    globalThis.encodings = encodings;
    return active;
}"""


@pytest.fixture
def page(chromium: Browser, server: Server) -> Page:
    return chromium.open(server.origin + "/healthz")


def active(
    page: Page, seconds: list[tuple[Any, ...]], wanted: str = "qhf", size: tuple[int, int] = (1280, 720)
) -> list[str]:
    """What is switched on after each look."""
    return page.evaluate(LOOK, list(wanted), seconds, size)


def sizes(page: Page) -> list[tuple[int, int]]:
    """By how much each is smaller than the picture, and its largest bitrate."""
    return [tuple(pair) for pair in page.evaluate(
        "() => encodings.map(({scaleResolutionDownBy, maxBitrate}) => [scaleResolutionDownBy, maxBitrate])")]


def test_a_smallest_size_that_holds_the_estimate_down_rests(page: Page) -> None:
    """As it was seen: half as much again as 146 kbit/s, which has no room for another size."""
    stuck = [(219_000, "q")] * 6
    assert active(page, stuck) == ["qhf"] * 5 + ["h"]
    # It is sent again as soon as there is room for both.
    grown = [(400_000, "h"), (700_000, "h"), (950_000, "h"), (950_000, "qh")]
    assert active(page, stuck + grown)[6:] == ["h", "h", "qhf", "qhf"]
    # And the largest is tried for once the two are sent.
    assert active(page, stuck + grown + [(1_100_000, "qh")] * 4)[-1] == "qf"


def test_it_rests_for_a_moment_only_where_that_is_in_vain(page: Page) -> None:
    told = active(page, [(219_000, "q")] * 100)
    resting = [second for second, rids in enumerate(told) if rids == "h"]
    # Six looks, and six more a minute later.
    assert resting == [*range(5, 11), *range(71, 77)]


def test_what_grows_or_falls_is_left_alone(page: Page) -> None:
    growing = [(200_000 * 1.07 ** second, "q") for second in range(12)]
    falling = [(150_000 if second % 3 else 110_000, "q") for second in range(60)]
    for seconds in (growing, falling, [(219_000, "q", "cpu")] * 30, [(219_000, "")] * 30, [(219_000, "qh")] * 30):
        assert set(active(page, seconds)) == {"qhf"}


def test_the_one_between_rests_for_the_largest(page: Page) -> None:
    told = active(page, [(1_100_000, "qh")] * 5 + [(1_100_000, "qf")] * 19 + [(1_800_000, "qhf")] * 5)
    assert told == ["qhf"] * 4 + ["qf"] * 20 + ["qhf"] * 5


def test_of_two_the_larger_one_may_be_alone(page: Page) -> None:
    assert active(page, [(219_000, "q")] * 6, "qh")[-1] == "h"
    assert active(page, [(219_000, "q")] * 6, "qf")[-1] == "f"
    assert set(active(page, [(219_000, "q")] * 30, "q")) == {"q"}


def test_of_a_small_picture_two_sizes_are_sent_or_one(page: Page) -> None:
    """Chromium makes no more of them, and would leave out the largest."""
    quiet = [(3_000_000, "qh")] * 3
    assert active(page, quiet, size=(853, 480)) == ["qh"] * 3
    assert sizes(page) == [(2, 600_000), (1, 2_500_000), (1, 2_500_000)]
    assert active(page, quiet, "f", size=(480, 854)) == ["h"] * 3
    assert active(page, quiet, "q", size=(640, 360)) == ["q"] * 3
    assert active(page, quiet, size=(320, 240)) == ["q"] * 3
    assert sizes(page)[0] == (1, 2_500_000)


def test_another_camera_has_its_own_sizes(page: Page) -> None:
    small, large = (3_000_000, "qh", None, (640, 480)), (3_000_000, "qhf", None, (1920, 1080))
    assert active(page, [large, small, small, large]) == ["qhf", "qh", "qh", "qhf"]
    assert sizes(page) == [(4, 150_000), (2, 600_000), (1, 2_500_000)]


def test_another_quality_has_its_own_bitrate(page: Page) -> None:
    assert active(page, [(3_000_000, "qhf", None, (1920, 1080), 5_000_000)]) == ["qhf"]
    assert sizes(page) == [(4, 300_000), (2, 1_200_000), (1, 5_000_000)]


def test_what_is_so_already_is_not_set_again(page: Page) -> None:
    assert active(page, [(3_000_000, "qhf", None, (1280, 720), 2_500_000)] * 9) == ["qhf"] * 9
    assert page.evaluate("() => changes") == 0


def test_a_single_size_is_whole(page: Page) -> None:
    active(page, [(3_000_000, "", None, (1280, 720), 2_500_000)] * 2, wanted="")
    assert sizes(page) == [(1, 2_500_000)]
    active(page, [(3_000_000, "", None, (320, 240), 1_000_000)] * 2, wanted="")
    assert sizes(page) == [(1, 1_000_000)]


# A browser with too little of the processor sends fewer lines than its camera has, for as long as that lasts.
@pytest.mark.alone
@pytest.mark.parametrize("name", ["chromium", "firefox"])
def test_viewers_get_all_lines_of_a_small_camera_and_of_the_larger_one_after_it(
    name: str, browsers: dict[str, Browser], server: Server, stream: str
) -> None:
    height = "wanted => document.getElementById('video').videoHeight === wanted"
    with go_live(browsers[name], server, stream, codec="vp8", quality=480) as host, watch(
        browsers["chromium"], server, stream
    ) as viewer:
        lines = host.evaluate("() => rostrum.room.own.source.media.getVideoTracks()[0].getSettings().height")
        viewer.wait_for(height, lines, seconds=30, what="all lines come")
        host.evaluate("() => rostrum.room.own.choose({kind: 'test', height: 720})")
        viewer.wait_for(height, 720, seconds=60, what="all lines of the larger one come")
