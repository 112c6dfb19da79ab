"""A picture in several sizes within one encoding (VP9 or AV1 with spatial layers), of which each viewer gets as many as
it wants."""

from __future__ import annotations

from typing import Any

import pytest

from drivers import Browser, Page, wait_until
from media import check_no_complaints, received, wait_for_frames, wait_for_state, watch
from server import Server

#: As a page of another maker does: one encoding of a moving picture, in a mode with spatial layers.
PUBLISH = """async (path, token, codec, scalabilityMode, [width, height]) => {
    const peer = globalThis.peer = new RTCPeerConnection({bundlePolicy: 'max-bundle'});
    const canvas = document.createElement('canvas');
    [canvas.width, canvas.height] = [width, height];
    const paint = canvas.getContext('2d');
    let count = 0;
    globalThis.timer = setInterval(() => {
        paint.fillStyle = `hsl(${count++ * 3 % 360} 70% 50%)`;
        paint.fillRect(count * 7 % width, count * 3 % height, 80, 80);
    }, 66);
    const audio = new AudioContext(), tone = audio.createOscillator(), output = audio.createMediaStreamDestination();
    tone.connect(output);
    tone.start();
    audio.resume();
    peer.addTransceiver(output.stream.getAudioTracks()[0], {direction: 'sendonly'});
    const video = peer.addTransceiver(canvas.captureStream(15).getVideoTracks()[0], {
        direction: 'sendonly', sendEncodings: [{maxBitrate: 1_500_000, scalabilityMode}]});
    video.setCodecPreferences(RTCRtpSender.getCapabilities('video').codecs.filter(({mimeType}) =>
        [codec, 'video/rtx'].includes(mimeType.toLowerCase())));
    await peer.setLocalDescription();
    const answer = await fetch(path, {
        method: 'POST', body: peer.localDescription.sdp,
        headers: {'Content-Type': 'application/sdp', Authorization: `Bearer ${token}`},
    });
    if (answer.status !== 201) throw new Error(`${answer.status} ${await answer.text()}`);
    await peer.setRemoteDescription({type: 'answer', sdp: await answer.text()});
}"""

#: What the publisher's browser says of its picture.
SENT = """async () => {
    for (const entry of (await peer.getStats()).values()) {
        if (entry.type === 'outbound-rtp' && entry.kind === 'video') {
            const {scalabilityMode, frameHeight, keyFramesEncoded, framesSent, targetBitrate} = entry;
            return {scalabilityMode, frameHeight, keyFramesEncoded, framesSent, targetBitrate};
        }
    }
}"""

#: Takes away what pages offer the extension by that tells of each packet which layers it belongs to. Most players do
#: not offer it, as Chromium does not by itself.
WITHOUT_DESCRIPTORS = "() => { delete RTCRtpTransceiver.prototype.setHeaderExtensionsToNegotiate; }"

#: Whether descriptors were agreed on.
HAS_DESCRIPTORS = """() => rostrum.connection.session.peer.remoteDescription.sdp.includes('dependency-descriptor')"""

#: A browser lets a few wait after one that came late.
WAITING_PICTURES = 4

HEIGHT = "() => document.getElementById('video').videoHeight"


def prefer(page: Page, preferences: dict[str, Any]) -> None:
    whole = {"maxHeight": None, "pin": None, **preferences}
    page.evaluate("wanted => rostrum.connection.session.prefer(wanted)", whole)


def served(page: Page) -> list[int | None]:
    """Lines of each picture that the server says it sends."""
    pictures = page.evaluate("() => rostrum.connection.session.quality()")["pictures"]
    return [picture["served"] and picture["served"]["height"] for picture in pictures]


def wait_for_height(page: Page, height: int, seconds: float = 10) -> None:
    """Waits until the picture that is shown has this height, and the server tells of the same."""
    try:
        wait_until(
            lambda: page.evaluate(HEIGHT) == height and served(page) == [height], seconds,
            f"a picture of {height} lines is served and seen")
    except TimeoutError as error:
        raise TimeoutError(f"{error}: {page.evaluate(HEIGHT)} are seen, and served is {served(page)}") from None


@pytest.mark.alone
@pytest.mark.parametrize(("codec", "mode", "size", "heights"), [
    ("video/vp9", "L3T3_KEY", (960, 544), [136, 272, 544]), ("video/vp9", "L2T1", (640, 360), [180, 360]),
    ("video/av1", "L3T3_KEY", (960, 544), [136, 272, 544]), ("video/av1", "L2T2", (640, 360), [180, 360])])
def test_a_viewer_gets_as_many_as_it_wants(
    chromium: Browser, server: Server, stream: str, codec: str, mode: str, size: tuple[int, int], heights: list[int]
) -> None:
    with chromium.open(server.origin + "/healthz") as host, watch(chromium, server, stream) as viewer, watch(
        chromium, server, stream
    ) as other:
        host.evaluate(PUBLISH, f"/whip/{stream}", server.token(stream, "host", "Ann"), codec, mode, size)
        for page in (viewer, other):
            wait_for_state(page, "live")
            # A browser sends the larger layers once it estimates that its link has room for them.
            wait_until(lambda page=page: page.evaluate(HEIGHT) == heights[-1], 60, "the picture has its full size")
        sent = host.evaluate(SENT)
        assert sent["scalabilityMode"] == mode
        assert received(viewer).video_codec == codec.removeprefix("video/").upper()
        assert viewer.evaluate(HAS_DESCRIPTORS)
        walk_through_sizes(viewer, other, heights)
        check_no_complaints(viewer, other)


@pytest.mark.alone
def test_who_is_told_nothing_of_layers_gets_the_least_of_av1(chromium: Browser, server: Server, stream: str) -> None:
    with chromium.open(server.origin + "/healthz") as host, watch(
        chromium, server, stream
    ) as other, chromium.open(server.origin + f"/watch/{stream}", before_load=WITHOUT_DESCRIPTORS) as viewer:
        host.evaluate(
            PUBLISH, f"/whip/{stream}", server.token(stream, "host", "Ann"), "video/av1", "L2T1", (640, 360))
        for page in (viewer, other):
            wait_for_state(page, "live")
        assert not viewer.evaluate(HAS_DESCRIPTORS) and other.evaluate(HAS_DESCRIPTORS)
        wait_until(lambda: other.evaluate(HEIGHT) == 360, 60, "the picture has its full size")
        for preferences in ({}, {"pin": "high"}):
            prefer(viewer, preferences)
            wait_for_height(viewer, 180)
            wait_for_frames(viewer, 30)
        check_no_complaints(viewer, other)


def walk_through_sizes(viewer: Page, other: Page, heights: list[int]) -> None:
    """Has one viewer ask for smaller and larger pictures, while another wants nothing else than the largest."""
    wait_for_height(viewer, heights[-1])
    # Down with the next picture, and up with a key frame.
    for height, preferences in [
        (heights[-2], {"maxHeight": heights[-1] - 1}), (heights[0], {"pin": "low"}),
        (heights[-1], {}), (heights[0], {"maxHeight": 1}), (heights[-2], {"maxHeight": heights[-2]}),
        (heights[-1], {}),
    ]:
        seen, before, before_other = viewer.evaluate(HEIGHT), received(viewer), received(other)
        prefer(viewer, preferences)
        wait_for_height(viewer, height)
        wait_for_frames(viewer, 30)
        after_other, after = received(other), received(viewer)
        told = f"{preferences}: {before} {after}, other {before_other} {after_other}"
        # It misses no picture of those that another gets, but for what still waits to be decoded. For how long one is
        # seen is of the publisher's link and of the machine: a key frame takes longer than another picture.
        assert after.frames - before.frames >= after_other.frames - before_other.frames - WAITING_PICTURES, told
        assert (after.packets_lost, after.key_frame_requests) == (before.packets_lost, before.key_frame_requests), told
        if height > seen:
            assert after.key_frames > before.key_frames, told
        # Who wants nothing else gets it all. The publisher's encoder leaves the largest layer out of a picture now and
        # then, of one to four in 250.
        assert served(other) == heights[-1:]
        wait_for_height(other, heights[-1])
