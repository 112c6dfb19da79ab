"""Pages and the player where the network lets no WebRTC through: HLS until it does, and WebRTC again when it does."""

from __future__ import annotations

import os
import signal
from collections.abc import Iterator
from pathlib import Path

import pytest

from drivers import DESKTOP, PHONE, Browser, Page, wait_until
from feed import STORIES, Story, Studio, colour_shown, is_like, open_feed, wait_for_story
from lossy import LossyPath
from media import USUAL_VIEWPORT, check_no_complaints, go_live, wait_for_frames, wait_for_state
from server import Server
from slow_stream import SlowStream
from test_hls import encoding
from test_player import App, app, inside, wait_for, wait_for_pictures  # noqa: F401
from test_previews import transcoder

DELAYED = "() => rostrum.room.viewing.isDelayed"
SHOWN = "() => document.getElementById('video').getVideoPlaybackQuality().totalVideoFrames"
#: What this page has loaded of the way that it does not need.
LOADED = "() => performance.getEntriesByType('resource').filter(({name}) => /hls/.test(name)).map(({name}) => name)"
#: The loudest of what a video plays; it stays 0 while that is silence.
LISTEN = """selector => {
    const audio = new AudioContext(), meter = new AnalyserNode(audio, {fftSize: 32768});
    audio.resume();
    audio.createMediaElementSource(document.querySelector(selector)).connect(meter).connect(audio.destination);
    globalThis.loudness = () => {
        const samples = new Float32Array(meter.fftSize);
        meter.getFloatTimeDomainData(samples);
        return Math.max(...samples.map(Math.abs));
    };
}"""
#: The host's choice, in the studio's settings.
HLS_BOX = "document.querySelector('dialog[data-name=stream] [name=hls]')"
#: As in a browser that has none, or whose user has switched it off.
NO_WEBRTC = "() => { delete globalThis.RTCPeerConnection; }"
#: The same, and what the server says of itself comes too late the first time.
NO_WEBRTC_NO_ANSWER = f"""() => {{
    ({NO_WEBRTC})();
    const ask = globalThis.fetch;
    let isFirst = true;
    globalThis.fetch = async (address, options) => {{
        if (!isFirst || !String(address).endsWith('/v1/server')) return ask(address, options);
        isFirst = false;
        throw new DOMException('too late', 'TimeoutError');
    }};
}}"""
#: Notes what a page says for a moment, which may be over before a busy machine looks.
HEAR = """selector => {
    globalThis.said = [];
    const place = document.querySelector(selector);
    new MutationObserver(() => said.push(place.textContent)).observe(place, {childList: true, subtree: true});
}"""
#: Sources that videos were given, one after the other.
SOURCES = """() => {
    globalThis.sources = [];
    const make = URL.createObjectURL, revoke = URL.revokeObjectURL;
    URL.createObjectURL = object => { const url = make(object); sources.push(url); return url; };
    URL.revokeObjectURL = url => { sources.splice(sources.indexOf(url), 1); revoke(url); };
}"""


@pytest.fixture(scope="module")
def maker(logs: Path) -> Iterator[Server]:
    """A server that makes HLS."""
    server = Server(logs / "server-fallback.log", "--max-hls", "6")
    yield server
    assert server.is_running
    assert server.stop() == 0


@pytest.fixture
def path(maker: Server) -> Iterator[LossyPath]:
    """The viewers' network, which lets no media through so far."""
    path = LossyPath(maker, 1, seed=1)
    yield path
    path.close()


@pytest.fixture(params=["chromium", "firefox"])
def browser(request: pytest.FixtureRequest) -> Browser:
    return request.getfixturevalue(request.param)


def wait_for_moving(page: Page, more: int = 60) -> None:
    """Waits until so many more pictures of the watch page's video were shown."""
    before = page.evaluate(SHOWN)
    page.wait_for(f"wanted => ({SHOWN})() >= wanted", before + more, seconds=30, what=f"{more} more pictures are shown")


def wait_to_be_told(page: Page) -> None:
    page.wait_for(
        "() => said.some(text => text.includes('direct connection'))", what="it says why there is no stage")


def wait_for_colour(page: Page, story: Story) -> None:
    """A busy machine that makes HLS shows a pause picture now and then."""
    wait_until(lambda: is_like(colour_shown(page), story.colour), 30, f"{story.title} is seen")


def test_the_watch_page_plays_by_hls_and_comes_back(
    browser: Browser, chromium: Browser, maker: Server, stream: str, path: LossyPath, logs: Path
) -> None:
    go_live(chromium, maker, stream)
    page = browser.open(f"{path.origin}/watch/{stream}", PHONE, before_load=path.rewrite)
    page.wait_for(DELAYED, seconds=30, what="it plays by HLS")
    wait_for_state(page, "live")
    wait_for_moving(page)
    page.wait_for("() => document.getElementById('delayed').innerText.startsWith('Delayed by about ')")
    page.click("#unmute")
    if browser.name == "chromium":
        page.evaluate(LISTEN, "#video")
        page.wait_for("() => loudness() > 0.01", seconds=20, what="sound is heard")
    else:
        # Without a device Firefox gives a page nothing to listen to, but says whether it decodes any.
        assert page.evaluate("() => [video.mozHasAudio, video.muted]") == [True, False]
    # What takes WebRTC says why it is not there.
    page.evaluate(HEAR, ".messages")
    page.click("#hand")
    wait_to_be_told(page)
    page.click("#picture")
    page.wait_for("() => document.querySelector('#picture-panel fieldset').checkVisibility()", what="the picture can be chosen")
    page.screenshot(logs / f"fallback-watch-phone-{browser.name}.png")
    page.resize(DESKTOP)
    page.screenshot(logs / f"fallback-watch-desktop-{browser.name}.png")
    assert page.evaluate("() => rostrum.connection.state") != "connected"
    path.loss = 0
    # HLS may have nothing to play for a moment, and is still there.
    page.wait_for(
        "() => rostrum.connection.state === 'connected' && !rostrum.room.viewing.fallback.isOn", seconds=90, what="it is back")
    wait_for_frames(page, 60)
    assert page.evaluate("() => [video.srcObject !== null, video.hasAttribute('src'), video.playbackRate]") == [True, False, 1]
    assert page.evaluate("() => document.getElementById('delayed').checkVisibility()") is False
    wait_for_state(page, "live")


def test_a_connection_that_breaks_off_is_replaced(
    chromium: Browser, maker: Server, stream: str, path: LossyPath
) -> None:
    path.loss = 0
    go_live(chromium, maker, stream)
    page = chromium.open(f"{path.origin}/watch/{stream}", USUAL_VIEWPORT, before_load=path.rewrite)
    wait_for_state(page, "live")
    wait_for_frames(page)
    page.wait_for(f"() => !({DELAYED})()", seconds=60, what="it plays by WebRTC alone")
    path.loss = 1
    page.wait_for(DELAYED, seconds=40, what="it plays by HLS")
    wait_for_moving(page)
    # The process that encodes it dies: what it makes anew has other times.
    os.kill(transcoder(maker), signal.SIGKILL)
    bytes_before = page.evaluate("() => rostrum.room.viewing.fallback.bytes")
    page.wait_for(
        "before => rostrum.room.viewing.fallback.bytes > before + 100_000", bytes_before, seconds=40, what="more comes")
    wait_for_moving(page)
    ranges = page.evaluate(
        "() => [...Array(video.buffered.length).keys()].map(i => [video.buffered.start(i), video.buffered.end(i)])")
    # What is made anew follows what was before without a gap. Only a page that a busy machine holds up may miss parts,
    # whole ones of half a second; it goes on behind them.
    for (_, end), (start, _) in zip(ranges, ranges[1:]):
        missed = (start - end) / 0.5
        assert round(missed) >= 1 and abs(missed - round(missed)) < 0.1, ranges
    page.wait_for("() => video.currentTime >= video.buffered.start(video.buffered.length - 1)", what="it plays what is new")


def test_the_feed_plays_the_story_in_view_by_hls_and_comes_back(
    browser: Browser, chromium: Browser, maker: Server, stream: str, path: LossyPath, logs: Path
) -> None:
    studio = Studio(chromium, maker, stream, [STORIES[0], STORIES[4]])
    (first, one), (second, other) = studio.stories.items()
    before = f"() => {{ ({path.rewrite})(); ({SOURCES})(); }}"
    page = browser.open(f"{path.origin}/?stream={first}", PHONE, before_load=before)
    wait_for_story(page, first, seconds=40)
    wait_for_colour(page, one)
    page.wait_for("() => rostrum.feed.state === 'playing' && rostrum.feed.isDelayed", what="it plays by HLS")
    page.wait_for("() => document.querySelector('.side.is-front .delay').innerText.startsWith('Delayed by about ')")
    page.screenshot(logs / f"fallback-feed-phone-{browser.name}.png")
    page.evaluate(HEAR, "#toast")
    page.click(".side.is-front .join")
    wait_to_be_told(page)
    page.evaluate("id => rostrum.feed.go(id)", second)
    wait_for_story(page, second, seconds=40)
    wait_for_colour(page, other)
    page.wait_for("() => sources.length === 1", what="one story plays at a time")
    path.loss = 0
    # HLS may have nothing to play for a moment, and is still there.
    page.wait_for(
        """() => rostrum.connection.state === 'connected' && sources.length === 0
            && rostrum.cube.frontSide.video.srcObject !== null""", seconds=90, what="it is back")
    wait_for_story(page, second)
    wait_for_colour(page, other)
    assert page.evaluate("() => [sources.length, rostrum.cube.frontSide.video.srcObject !== null]") == [0, True]
    # The neighbour is there again, too.
    page.wait_for("id => rostrum.feed.slotOf(id)?.quality === 'preview'", first, seconds=20, what="the other one is loaded")


# An encoder that gets too little of the machine makes fewer parts than it hinted at, and the browser notes each that is
# missing (RFC 8216bis, section 4.4.5.3).
@pytest.mark.alone
def test_a_player_plays_without_webrtc_on_another_origin(
    browsers: dict[str, Browser], maker: Server, stream: str, app: App, logs: Path  # noqa: F811
) -> None:
    go_live(browsers["chromium"], maker, stream)
    attributes = {"src": f"{maker.origin}/watch/{stream}", "controls": True, "autoplay": True, "muted": True}
    for name, browser in browsers.items():
        with app.open(browser, maker, attributes, before_load=NO_WEBRTC) as page:
            check_player(page, logs / f"fallback-player-{name}.png")


def check_player(page: Page, file: Path) -> None:
    """It plays, says how late it is, offers sound alone, and goes on after a pause."""
    wait_for(page, "live", seconds=30)
    wait_for_pictures(page, more=60)
    page.wait_for(
        """() => p0.delay > 0.5 && p0.delay < 30
            && p0.shadowRoot.querySelector('.delay').innerText.startsWith('Delayed by about ')""", what="it says how late it is")
    assert ["p0", "error", "unsupported"] not in page.evaluate("() => heard")
    inside(page, "[part~=quality-button]", "e.click()")
    page.screenshot(file)
    assert inside(page, "[role=menuitemradio][data-value=sound]", "e.checkVisibility()") is True
    page.evaluate("() => { p0.muted = false; p0.volume = 0.5; }")
    page.evaluate("() => p0.pause()")
    assert page.evaluate("() => [p0.state, p0.delay]") == ["idle", None]
    page.evaluate("() => p0.play()")
    wait_for(page, "live", seconds=30)
    wait_for_pictures(page)
    check_no_complaints(page)


ENCODED = "encoded"
#: What is shown: the height of the picture, and what the link costs.
RENDITION = "() => `${video.videoHeight} ${rostrum.room.viewing.weakness}`"


def wait_for_rendition(page: Page, height: int, weakness: str | None) -> None:
    page.wait_for(
        f"wanted => ({RENDITION})() === wanted", f"{height} {weakness or 'null'}", seconds=60,
        what=f"{height} lines are seen, {weakness or 'the link is good'}", about=RENDITION)


@pytest.fixture(scope="module")
def encoded(logs: Path) -> Iterator[Server]:
    """One for all whose links and choices differ: it sends the same to each."""
    with encoding(logs, ENCODED) as server:
        yield server


@pytest.mark.alone
def test_a_link_that_carries_less_gets_less_and_more_when_it_does(
    chromium: Browser, encoded: Server, logs: Path
) -> None:
    """The publisher's own pictures, then smaller ones, then sound, each as it is needed, and back."""
    link = SlowStream(encoded, encoded.http_port)
    try:
        page = chromium.open(f"http://127.0.0.1:{link.port}/watch/{ENCODED}", PHONE, before_load=NO_WEBRTC)
        wait_for_rendition(page, 480, None)
        wait_for_moving(page)
        link.capacity = 900e3
        wait_for_rendition(page, 360, "size")
        wait_for_moving(page)
        page.wait_for("() => document.getElementById('weak-link').innerText.includes('a smaller picture')", what="it says so")
        page.screenshot(logs / "fallback-weak-link.png")
        link.capacity = 250e3
        wait_for_rendition(page, 0, "picture")
        before = page.evaluate("() => video.currentTime")
        page.wait_for("before => video.currentTime > before + 3", before, seconds=30, what="sound goes on")
        link.capacity = None
        wait_for_rendition(page, 480, None)
        wait_for_moving(page)
    finally:
        link.close()


@pytest.mark.alone
def test_a_viewer_by_hls_chooses_their_picture(browser: Browser, encoded: Server, logs: Path) -> None:
    page = browser.open(f"{encoded.origin}/watch/{ENCODED}", PHONE, before_load=NO_WEBRTC)
    wait_for_rendition(page, 480, None)
    page.click("#picture")
    page.screenshot(logs / f"fallback-choice-{browser.name}.png")
    assert page.evaluate("""() => {
        const {right, top, height} = document.getElementById('picture-only').getBoundingClientRect();
        return document.elementFromPoint(right - 16, top + height / 2).closest('#picture-panel') !== null;
    }"""), "nothing lies above the panel"
    for name, height in (("low", 360), ("sound", 0), ("high", 480)):
        page.evaluate("name => document.querySelector(`#picture-panel [value=${name}]`).click()", name)
        wait_for_rendition(page, height, None)
        before = page.evaluate("() => video.currentTime")
        page.wait_for("before => video.currentTime > before + 1", before, seconds=30, what="it plays")


def test_a_stream_whose_host_wants_none_comes_by_webrtc_alone(chromium: Browser, maker: Server, stream: str) -> None:
    studio = go_live(chromium, maker, stream)
    playlists = [f"/hls/{stream}/{name}" for name in ("index.m3u8", "media.m3u8")]
    assert maker.request("GET", playlists[0])[0] == 200
    made = maker.metrics()["rostrum_hls_streams"]
    studio.click("#edit-stream")
    studio.wait_for(f"() => {HLS_BOX}?.checkVisibility() && {HLS_BOX}.checked", what="the host may choose")
    studio.evaluate(f"() => {HLS_BOX}.click()")
    studio.click("dialog[data-name=stream] [data-value=save]")
    studio.wait_for("() => rostrum.room.info.hls === 'off'", what="it is off")
    for path in [*playlists, f"/hls/{stream}/x-s1.m4s"]:
        status, _, body = maker.request("GET", path)
        assert status == 404 and b"hls-off" in body, (path, body)
    wait_until(lambda: maker.metrics()["rostrum_hls_streams"] < made, 20, "what was under way has ended")
    page = chromium.open(f"{maker.origin}/watch/{stream}", USUAL_VIEWPORT, before_load=NO_WEBRTC)
    page.wait_for("() => rostrum.room.viewing.state === 'failed'", seconds=20, what="there is no way")
    assert page.evaluate("() => rostrum.room.viewing.fallback.isOn") is False
    # Where it is wanted again, it plays without being asked.
    studio.evaluate("() => rostrum.room.api.edit({hls: 'on'}).then(() => null)")
    page.wait_for(DELAYED, seconds=30, what="it plays by HLS")
    # And no longer than that.
    studio.evaluate("() => rostrum.room.api.edit({hls: 'off'}).then(() => null)")
    page.wait_for("() => rostrum.room.viewing.state === 'failed'", seconds=30, what="it is over")
    check_no_complaints(studio)


def test_a_server_that_answers_late_is_not_taken_for_one_without_hls(
    chromium: Browser, maker: Server, stream: str, app: App  # noqa: F811
) -> None:
    go_live(chromium, maker, stream)
    attributes = {"src": f"{maker.origin}/watch/{stream}", "controls": True, "autoplay": True, "muted": True}
    page = app.open(chromium, maker, attributes, before_load=NO_WEBRTC_NO_ANSWER)
    wait_for(page, "live", seconds=30)
    assert [type for _, type, _ in page.evaluate("() => heard") if type == "error"] == []


def test_a_player_without_any_way_says_so(chromium: Browser, server: Server, stream: str, app: App) -> None:  # noqa: F811
    go_live(chromium, server, stream)
    attributes = {"src": f"{server.origin}/watch/{stream}", "controls": True, "autoplay": True}
    page = app.open(chromium, server, attributes, before_load=NO_WEBRTC)
    wait_for(page, "failed")
    assert page.evaluate("() => p0.problem.reason") == "unsupported"
    assert inside(page, ".status", "e.innerText").splitlines()[-1] == "This browser can’t play live video."


def test_where_viewers_need_a_token_it_goes_along(chromium: Browser, logs: Path, stream: str) -> None:
    server = Server(logs / f"server-{stream}.log", "--max-hls", "1", "--viewers", "token")
    try:
        go_live(chromium, server, stream)
        page = chromium.open(
            f"{server.origin}/watch/{stream}#token={server.token(stream, 'viewer', 'Vera')}", before_load=NO_WEBRTC)
        page.wait_for(DELAYED, seconds=30, what="it plays by HLS")
        wait_for_moving(page)
        # The feed has a token of its own.
        feed = open_feed(chromium, server, path=f"/?access_token={server.token('*', 'viewer', 'Vera')}", before_load=NO_WEBRTC)
        wait_for_story(feed, stream, seconds=30)
        # Nobody gets anything without one.
        assert server.request("GET", f"/hls/{stream}/index.m3u8")[0] == 401
    finally:
        server.stop()


def test_browsers_that_play_hls_themselves_are_given_its_address(chromium: Browser, maker: Server, stream: str) -> None:
    go_live(chromium, maker, stream)
    page = chromium.open(f"{maker.origin}/watch/{stream}", USUAL_VIEWPORT, before_load="""() => {
        delete globalThis.RTCPeerConnection;
        delete globalThis.MediaSource;
        delete globalThis.ManagedMediaSource;
        HTMLVideoElement.prototype.canPlayType = () => 'maybe';
    }""")
    page.wait_for(
        "wanted => document.getElementById('video').src === wanted", f"{maker.origin}/hls/{stream}/index.m3u8", seconds=20,
        what="the browser plays it")


def test_a_source_of_which_nothing_is_shown_is_replaced(chromium: Browser, maker: Server, stream: str) -> None:
    """As WebKit on GStreamer leaves it now and then: a seek that never ends."""
    go_live(chromium, maker, stream)
    page = chromium.open(f"{maker.origin}/watch/{stream}", USUAL_VIEWPORT, before_load=f"""() => {{
        ({NO_WEBRTC})();
        ({SOURCES})();
        const {{get}} = Object.getOwnPropertyDescriptor(HTMLMediaElement.prototype, 'readyState');
        Object.defineProperty(HTMLMediaElement.prototype, 'readyState', {{get() {{
            if (!this.src) return get.call(this);
            globalThis.stuck ??= this.src;
            return this.src === stuck ? Math.min(get.call(this), HTMLMediaElement.HAVE_METADATA) : get.call(this);
        }}}});
    }}""")
    page.wait_for("() => globalThis.stuck && sources.length === 1 && sources[0] !== stuck", seconds=40, what="there is another")
    wait_for_moving(page)
    assert page.evaluate("() => sources.length") == 1, "what is well stays"


def test_nothing_of_it_is_loaded_while_webrtc_works(chromium: Browser, maker: Server, stream: str) -> None:
    go_live(chromium, maker, stream)
    # By a clock so slow that no load of this machine is taken for a network that blocks.
    page = chromium.open(f"{maker.origin}/watch/{stream}", USUAL_VIEWPORT, before_load="""() => {
        const {performance} = globalThis, now = performance.now.bind(performance);
        performance.now = () => now() / 1000;
    }""")
    wait_for_state(page, "live")
    wait_for_frames(page, 10)
    assert page.evaluate(LOADED) == []
    check_no_complaints(page)
