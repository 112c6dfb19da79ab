"""Every codec from each browser's camera to both browsers, through the real pages."""

from __future__ import annotations

from functools import cache

import pytest

from drivers import Browser, wait_until
from media import (
    check_no_complaints, go_live, received, wait_for_frames, wait_for_sound, wait_for_state, watch,
)
from server import Server

CODECS = ["vp8", "vp9", "h264", "av1"]
CAPABILITIES = """kind => (globalThis[kind].getCapabilities('video')?.codecs ?? [])
    .map(codec => codec.mimeType.split('/')[1].toLowerCase())"""


@cache
def codecs_of(browser: Browser, side: str) -> list[str]:
    with browser.open() as page:
        return page.evaluate(CAPABILITIES, side)


def skip_unless_supported(browser: Browser, side: str, codec: str) -> None:
    if codec not in codecs_of(browser, side):
        why = (
            "its H.264 is a plug-in that Mozilla's server delivers, not part of Debian's package"
            if browser.name == "firefox" and codec == "h264" else "it is not built in")
        pytest.skip(f"this {browser.name} has no {codec.upper()}: {why}")


@pytest.mark.parametrize("codec", CODECS)
@pytest.mark.parametrize("publisher", ["chromium", "firefox"])
def test_reaches_both_browsers(
    browsers: dict[str, Browser], server: Server, stream: str, publisher: str, codec: str
) -> None:
    skip_unless_supported(browsers[publisher], "RTCRtpSender", codec)
    studio = go_live(browsers[publisher], server, stream, codec=codec)
    viewers = {}
    for name, browser in browsers.items():
        if codec in codecs_of(browser, "RTCRtpReceiver"):
            viewers[name] = watch(browser, server, stream)
    assert viewers, "nobody can play it"
    for name, viewer in viewers.items():
        wait_for_state(viewer, "live")
        seen = wait_for_frames(viewer)
        assert seen.video_codec is not None and seen.video_codec.lower() == codec, name
        assert seen.width >= 160 and seen.height >= 90, name
        assert wait_for_sound(viewer) > 0, name
        # The publisher may change its size between two looks.
        wait_until(
            lambda: viewer.evaluate("() => document.getElementById('video').videoWidth") == received(viewer).width,
            10, "the page shows the size that comes")
    check_no_complaints(studio, *viewers.values())
    for page in (studio, *viewers.values()):
        page.close()


@pytest.mark.parametrize("publisher", ["chromium", "firefox"])
def test_simulcast_reaches_both_browsers(
    browsers: dict[str, Browser], server: Server, stream: str, publisher: str
) -> None:
    studio = go_live(browsers[publisher], server, stream, codec="vp8", simulcast=1, quality=720, fps=15)
    assert studio.evaluate(
        "() => rostrum.connection.session.peer.localDescription.sdp.match(/^a=simulcast:send .*$/m)?.[0]")
    viewers = [watch(browser, server, stream) for browser in browsers.values()]
    for viewer in viewers:
        wait_for_state(viewer, "live")
        wait_for_frames(viewer)
        wait_for_sound(viewer)
    # As the estimate of the way to the server grows, the publisher turns on its larger layers; viewers
    # get the best one that is active.
    viewers[0].wait_for(
        "async () => document.getElementById('video').videoHeight >= 360", seconds=30,
        what="a larger layer than the smallest is forwarded")
    check_no_complaints(studio, *viewers)
    for page in (studio, *viewers):
        page.close()
