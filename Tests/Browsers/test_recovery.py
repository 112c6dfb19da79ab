"""Streams begin late, end, come back and lose their server; viewers never have to reload."""

from __future__ import annotations

import os
import signal
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from drivers import Browser, Page, wait_until
from media import (
    STATE, STUDIO, check_no_complaints, end_stream, go_live, press_go_live, wait_for_frames, wait_for_sound, wait_for_state,
    watch,
)
from server import Server


@pytest.fixture(params=["chromium", "firefox"])
def viewing(request: pytest.FixtureRequest) -> Browser:
    return request.getfixturevalue(request.param)


def mark(page: Page) -> None:
    """Leaves something in the document that a reload would lose."""
    page.evaluate("() => { globalThis.neverReloaded = true; }")


def assert_never_reloaded(page: Page) -> None:
    assert page.evaluate("() => globalThis.neverReloaded === true")


def test_a_viewer_who_comes_first_waits_and_then_sees(
    chromium: Browser, viewing: Browser, server: Server, stream: str
) -> None:
    viewer = watch(viewing, server, stream)
    wait_for_state(viewer, "waiting")
    mark(viewer)
    with viewer, go_live(chromium, server, stream) as studio:
        wait_for_state(viewer, "live")
        wait_for_frames(viewer)
        wait_for_sound(viewer)
        assert_never_reloaded(viewer)
        check_no_complaints(studio)


EXPIRED = "This link is no longer valid"

#: A server that renews no token.
NO_RENEWAL = """() => {
    const ask = globalThis.fetch;
    globalThis.fetch = (address, options) =>
        String(address).endsWith('/tokens') ? Promise.reject(new TypeError('refused')) : ask(address, options);
}"""


@pytest.mark.parametrize("path", ["watch", "live"])
def test_a_link_that_is_not_valid_says_so_and_is_not_tried_again(
    viewing: Browser, server: Server, stream: str, path: str
) -> None:
    head, claims, signature = server.token(stream, "viewer" if path == "watch" else "host").split(".")
    forged = f"{head}.{claims}.{signature[::-1]}"
    with viewing.open(f"{server.origin}/{path}/{stream}?source=test#token={forged}") as page:
        wait_for_state(page, "expired")
        page.wait_for(
            "words => document.getElementById('state').innerText.includes(words)", EXPIRED, what="the page says why")
        page.wait_for("() => rostrum.sync.refusal === 'expired'", what="the server is left alone")
        assert page.evaluate("() => document.querySelector('#home, #next').hidden === false"), "there is a way on"
        tried = page.evaluate("() => rostrum.sync.interruptions")
        # Longer than the longest of the first pauses, on the page's own clock.
        page.evaluate("() => new Promise(done => setTimeout(done, 2000))")
        assert page.evaluate("() => rostrum.sync.interruptions") == tried


def test_a_link_whose_time_ends_while_one_watches_says_so(
    chromium: Browser, viewing: Browser, server: Server, stream: str
) -> None:
    with go_live(chromium, server, stream):
        # A busy machine may take longer to load a page and to connect it: then the next link has more time.
        for ttl in (10, 60, 180):
            viewer = viewing.open(before_load=NO_RENEWAL)
            # Its time begins once there is a window.
            token = server.token(stream, "viewer", "Vic", ttl=ttl)
            viewer.goto(f"{server.origin}/watch/{stream}#token={token}")
            state = viewer.wait_for(
                f"() => ['live', 'expired'].find(state => state === ({STATE})())", seconds=45, what="the page is live")
            if state == "live":
                break
            viewer.close()
        assert state == "live"
        with viewer:
            wait_for_state(viewer, "expired", seconds=45)
            assert EXPIRED in viewer.text("#state")
            # It is not tried again, whoever noticed first.
            assert viewer.evaluate("() => rostrum.connection.state") in ("closed", "failed")


def test_a_stopped_stream_ends_for_its_viewers_and_may_come_back(
    chromium: Browser, viewing: Browser, server: Server, stream: str
) -> None:
    with go_live(chromium, server, stream) as studio, watch(viewing, server, stream) as viewer:
        wait_for_state(viewer, "live")
        mark(viewer)
        end_stream(studio)
        wait_for_state(viewer, "ended", seconds=5)
        assert "ended" in viewer.text("#state")
        press_go_live(studio)
        wait_for_state(viewer, "live")
        wait_for_frames(viewer)
        assert_never_reloaded(viewer)


def test_a_publisher_who_reloads_takes_the_viewers_along(
    chromium: Browser, viewing: Browser, server: Server, stream: str
) -> None:
    with go_live(chromium, server, stream) as studio, watch(viewing, server, stream) as viewer:
        wait_for_state(viewer, "live")
        wait_for_frames(viewer)
        mark(viewer)
        studio.evaluate("() => { location.reload(); }")
        # The camera opens without a question, so nobody has to press anything.
        studio.wait_for(
            "() => document.body.dataset.state === 'live' && performance.getEntriesByType('navigation')[0].type === 'reload'",
            seconds=15, what="the host is back on the air")
        wait_for_state(viewer, "live")
        wait_for_frames(viewer)
        wait_for_sound(viewer)
        assert_never_reloaded(viewer)


def test_a_closed_studio_ends_the_stream(chromium: Browser, viewing: Browser, server: Server, stream: str) -> None:
    studio = go_live(chromium, server, stream)
    with watch(viewing, server, stream) as viewer:
        wait_for_state(viewer, "live")
        studio.close()
        wait_for_state(viewer, "ended", seconds=10)


def test_a_stream_goes_on_with_the_host_who_is_there(
    chromium: Browser, viewing: Browser, server: Server, stream: str
) -> None:
    """Somebody whose browser died goes live again from another one, as somebody else: their old self leaves later."""
    first = go_live(chromium, server, stream)
    with watch(viewing, server, stream) as viewer:
        wait_for_state(viewer, "live")
        mark(viewer)
        with go_live(chromium, server, stream) as second:
            second.wait_for("() => rostrum.room.you?.role === 'speaker'", what="there is a host already")
            first.close()
            second.wait_for(
                "() => rostrum.room.you?.role === 'host'", what="the stream is the second one's", about=STUDIO)
            wait_for_frames(viewer)
            wait_for_sound(viewer)
            # Its pictures may come before the viewer's page is told who the host is, which counts as away until then.
            for page in (viewer, second):
                wait_for_state(page, "live")
            assert_never_reloaded(viewer)
            end_stream(second)
            wait_for_state(viewer, "ended", seconds=10)


#: No socket is opened before `hasSockets` is true.
NO_SOCKETS = """() => {
    const Original = WebSocket;
    globalThis.WebSocket = class extends Original {
        constructor(address, ...rest) {
            super(globalThis.hasSockets ? address : String(address).replace('/v1/', '/none/'), ...rest);
        }
    };
}"""


def test_a_second_host_who_has_heard_nothing_comes_beside_the_first(
    chromium: Browser, server: Server, stream: str
) -> None:
    """Before the socket is there, or where there is none."""
    with go_live(chromium, server, stream) as first:
        first.wait_for("() => rostrum.room.you?.role === 'host'", what="the first is host")
        second = chromium.open(f"{server.origin}/live/{stream}?quality=360&fps=15", before_load=NO_SOCKETS)
        press_go_live(second)
        second.evaluate("() => { globalThis.hasSockets = true; }")
        second.wait_for("() => rostrum.room.you?.role === 'speaker'", seconds=30, what="the second is a speaker")
        assert first.evaluate("() => rostrum.room.you.role") == "host"
        assert first.evaluate(STATE) == "live"


def test_a_second_publisher_takes_over(
    browsers: dict[str, Browser], viewing: Browser, server: Server, stream: str
) -> None:
    # The same host at another place; somebody else would join them on the stage.
    token = server.token(stream)
    first = go_live(browsers["chromium"], server, stream, codec="vp8", access_token=token)
    with first, watch(viewing, server, stream) as viewer:
        wait_for_state(viewer, "live")
        wait_for_frames(viewer)
        mark(viewer)
        # Another browser and another codec: to viewers it is the same stream.
        with go_live(browsers["firefox"], server, stream, codec="vp9", access_token=token):
            first.wait_for(
                "() => !document.getElementById('error').hidden", seconds=15, what="the first studio gives way")
            assert "somewhere else" in first.text("#error")
            wait_for_frames(viewer)
            wait_for_state(viewer, "live")
            assert_never_reloaded(viewer)


def test_everyone_comes_back_after_the_server_was_started_again(
    chromium: Browser, viewing: Browser, own_server: Server, stream: str
) -> None:
    with go_live(chromium, own_server, stream) as studio, watch(viewing, own_server, stream) as viewer:
        wait_for_state(viewer, "live")
        wait_for_frames(viewer)
        mark(viewer)
        assert own_server.stop() == 0
        wait_for_state(viewer, "reconnecting")
        wait_for_state(studio, "reconnecting")
        own_server.start()
        wait_for_state(studio, "live", seconds=25)
        wait_for_state(viewer, "live", seconds=25)
        wait_for_frames(viewer)
        assert_never_reloaded(viewer)


def test_a_host_is_back_as_soon_as_the_socket_tells_of_another_server(
    chromium: Browser, own_server: Server, stream: str
) -> None:
    """A server that died said goodbye to nobody, and ICE takes its time to find out: here it never does."""
    with go_live(chromium, own_server, stream) as studio:
        studio.evaluate("""() => {
            Object.defineProperty(RTCPeerConnection.prototype, 'connectionState', { get: () => 'connected' });
            globalThis.former = rostrum.room.onAir.connection.session;
        }""")
        os.kill(own_server.pid, signal.SIGKILL)
        own_server.stop()
        own_server.start()
        studio.wait_for(
            "() => rostrum.room.onAir.connection.session && rostrum.room.onAir.connection.session !== former",
            seconds=12, what="the host has another session")
        wait_for_state(studio, "live")


def test_ice_restarts_within_the_same_session(
    chromium: Browser, viewing: Browser, server: Server, stream: str
) -> None:
    with go_live(chromium, server, stream), watch(viewing, server, stream) as viewer:
        wait_for_state(viewer, "live")
        # After six seconds without a picture the page would ask for another session: a busy studio may make none.
        viewer.evaluate("() => { rostrum.connection.renew = () => {}; }")
        before = viewer.evaluate("() => rostrum.connection.session.resource")
        ufrag = viewer.evaluate("() => rostrum.connection.session.peer.remoteDescription.sdp.match(/ufrag:(.*)/)[1]")
        viewer.evaluate("() => rostrum.connection.session.restartIce()")
        viewer.wait_for(
            "old => !rostrum.connection.session.peer.remoteDescription.sdp.includes(`ufrag:${old}`)", ufrag,
            what="the server answered with new credentials")
        wait_for_frames(viewer)
        assert viewer.evaluate(STATE) == "live"
        assert viewer.evaluate("() => rostrum.connection.session.resource") == before


def test_everyone_survives_a_server_that_stands_still(
    chromium: Browser, viewing: Browser, own_server: Server, stream: str
) -> None:
    """Longer than ICE takes to notice (some five seconds), as when a machine is moved or overloaded."""
    with go_live(chromium, own_server, stream) as studio, watch(viewing, own_server, stream) as viewer:
        wait_for_state(viewer, "live")
        wait_for_frames(viewer)
        mark(viewer)
        with own_server.standing_still():
            wait_for_state(viewer, "reconnecting", seconds=20)
        wait_for_state(studio, "live", seconds=25)
        wait_for_state(viewer, "live", seconds=25)
        wait_for_frames(viewer)
        assert_never_reloaded(viewer)


@pytest.fixture
def laptop(viewing: Browser, logs: Path, stream: str) -> Iterator[Browser]:
    """A browser that can sleep without all others."""
    folder = logs / f"laptop-{stream}"
    # It may be there from an earlier run.
    folder.mkdir(exist_ok=True)
    browser = type(viewing)(folder)
    yield browser
    browser.close()


@contextmanager
def asleep(browser: Browser) -> Iterator[None]:
    """As when the lid is closed: no timer fires, nothing is sent, and what comes is lost."""
    os.killpg(browser.pid, signal.SIGSTOP)
    try:
        yield
    finally:
        os.killpg(browser.pid, signal.SIGCONT)


def sessions(server: Server) -> float:
    return sum(value for name, value in server.metrics().items() if name.startswith("rostrum_sessions{"))


def test_a_laptop_that_slept_is_live_again_and_sees_the_stream_again(
    chromium: Browser, laptop: Browser, own_server: Server, stream: str
) -> None:
    """For longer than the server keeps a session of which it hears nothing (RFC 7675: 30 s), so ten minutes are the same."""
    seen = f"{stream}-2"
    with (
        go_live(laptop, own_server, stream) as studio, watch(chromium, own_server, stream) as viewer,
        go_live(chromium, own_server, seen), watch(laptop, own_server, seen) as sleeper,
    ):
        for page in (viewer, sleeper):
            wait_for_state(page, "live")
            wait_for_frames(page)
        for page in (studio, sleeper):
            mark(page)
        with asleep(laptop):
            wait_until(lambda: sessions(own_server) == 2, 60, "the server has given those of the laptop up")
        wait_for_state(studio, "live", seconds=25)
        for page in (viewer, sleeper):
            wait_for_frames(page, seconds=25)
        wait_for_state(sleeper, "live")
        for page in (studio, sleeper):
            assert_never_reloaded(page)
