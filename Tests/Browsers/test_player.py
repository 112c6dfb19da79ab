"""`<rostrum-player>` in pages of other sites: what it plays, says and leaves behind."""

from __future__ import annotations

import html
import json
import threading
from collections.abc import Iterator
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any

import pytest

from drivers import DESKTOP, PHONE, Browser, Page, wait_until
from media import check_no_complaints, end_stream, go_live, press_go_live
from server import Server
from test_pages import assert_fits
from test_recordings import grown, keeper, listed  # noqa: F401

#: An app's page, whose query is what it consists of; it hears what happens to each player from the first moment on.
APP = """<!doctype html><html lang="en"><meta charset="utf-8"><title>An app</title>
<meta name="viewport" content="width=device-width">
<style>body {{ margin: 0; min-height: 300vh; font-family: sans-serif }} rostrum-player {{ width: 640px }}</style>
<script>
  globalThis.heard = [];
  // What window and document are listened to for.
  globalThis.kept = new Set();
  const ids = new Map();
  const nameOf = (type, listener) => `${{type}} ${{ids.get(listener) ?? ids.set(listener, ids.size).get(listener)}}`;
  for (const target of [window, document]) {{
    const {{addEventListener: add, removeEventListener: remove}} = target;
    target.addEventListener = function (...given) {{
      kept.add(nameOf(...given));
      given[2]?.signal?.addEventListener('abort', () => kept.delete(nameOf(...given)));
      return add.apply(target, given);
    }};
    target.removeEventListener = function (...given) {{ kept.delete(nameOf(...given)); return remove.apply(target, given); }};
  }}
  for (const type of ['statechange', 'error', 'volumechange']) {{
    addEventListener(type, event => {{
      const {{detail}} = event;
      heard.push([event.target.id, type, detail?.state ?? detail?.reason ?? null]);
    }}, true);
  }}
</script>
<script type="module" src="{origin}/assets/v1/rostrum-player.js"></script>
{players}"""


class App:
    """Another site, on an origin of its own."""

    def __init__(self) -> None:
        self.page = ""
        app = self

        class Handler(BaseHTTPRequestHandler):
            def do_GET(self) -> None:
                body = app.page.encode() if self.path == "/" else b""
                self.send_response(200 if body else 204)
                self.send_header("Content-Type", "text/html; charset=utf-8")
                self.send_header("Content-Length", str(len(body)))
                self.end_headers()
                self.wfile.write(body)

            def log_message(self, format: str, *arguments: Any) -> None:
                pass

        self._server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
        self._thread = threading.Thread(target=self._server.serve_forever, daemon=True)
        self._thread.start()

    def open(
        self, browser: Browser, server: Server, *players: dict[str, Any], before_load: str | None = None
    ) -> Page:
        """A page with players of these attributes; an attribute that is True has no value."""
        tags = []
        for number, attributes in enumerate(players):
            given = {"id": f"p{number}", **attributes}
            words = [k if v is True else f'{k}="{html.escape(str(v))}"' for k, v in given.items() if v is not False]
            tags.append(f"<rostrum-player {' '.join(words)}></rostrum-player>")
        self.page = APP.format(origin=server.origin, players="\n".join(tags))
        return browser.open(f"http://127.0.0.1:{self._server.server_port}/", before_load=before_load)

    def close(self) -> None:
        self._server.shutdown()
        self._server.server_close()
        self._thread.join()


@pytest.fixture
def app() -> Iterator[App]:
    app = App()
    yield app
    app.close()


@pytest.fixture(params=["chromium", "firefox"])
def browser(request: pytest.FixtureRequest) -> Browser:
    return request.getfixturevalue(request.param)


def address(server: Server, stream: str) -> str:
    return f"{server.origin}/watch/{stream}"


def wait_for(page: Page, state: str, player: str = "p0", seconds: float = 20) -> None:
    page.wait_for(
        "(id, wanted) => document.getElementById(id).state === wanted", player, state, seconds=seconds,
        what=f"{player} is {state}")


def wait_for_pictures(page: Page, player: str = "p0", more: int = 20) -> None:
    """Waits until so many further pictures were painted."""
    page.evaluate("""(id, more) => {
        const video = document.getElementById(id).shadowRoot.querySelector('video');
        globalThis.painted ??= {};
        painted[id] = 0;
        const count = () => { painted[id] += 1; if (painted[id] < more) video.requestVideoFrameCallback(count); };
        video.requestVideoFrameCallback(count);
    }""", player, more)
    page.wait_for("(id, more) => painted[id] >= more", player, more, seconds=20, what=f"{more} pictures in {player}")


def inside(page: Page, selector: str, expression: str, player: str = "p0") -> Any:
    return page.evaluate(
        f"(id, s) => {{ const e = document.getElementById(id).shadowRoot.querySelector(s); return {expression}; }}",
        player, selector)


def is_seen(page: Page, selector: str, player: str = "p0") -> bool:
    return inside(page, selector, "e?.checkVisibility() ?? false", player)


def viewers(server: Server, stream: str) -> int:
    return server.json(f"/v1/streams/{stream}")["viewers"]


def test_it_plays_on_another_origin_with_the_preview_first(
    browser: Browser, chromium: Browser, server: Server, stream: str, app: App
) -> None:
    go_live(chromium, server, stream)
    wait_until(lambda: server.json(f"/v1/streams/{stream}")["preview"], 15, "there is a preview")
    # Nothing plays before somebody presses: the preview is all there is.
    page = app.open(browser, server, {"src": address(server, stream), "controls": True})
    page.wait_for(
        """() => {
            const image = document.getElementById('p0').shadowRoot.querySelector('.preview');
            return image.checkVisibility() && image.naturalWidth > 0;
        }""", what="the preview is seen")
    assert page.evaluate("() => [p0.state, p0.paused]") == ["idle", True]
    assert viewers(server, stream) == 0
    inside(page, ".big", "e.click()")
    wait_for(page, "live")
    wait_for_pictures(page)
    page.wait_for(
        "() => p0.shadowRoot.querySelector('.player').dataset.picture === 'video'", what="the picture is over the preview")
    assert page.evaluate("() => [p0.paused, p0.muted, p0.stream.state]") == [False, False, "live"]
    # A pause costs nobody anything.
    page.evaluate("() => p0.pause()")
    wait_until(lambda: viewers(server, stream) == 0, 10, "the session has ended")
    assert page.evaluate("() => [p0.paused, p0.state]") == [True, "idle"]
    page.evaluate("() => p0.play()")
    wait_for(page, "live")
    wait_for_pictures(page)
    check_no_complaints(page)


def test_two_players_live_side_by_side_and_a_removed_one_ends_its_session(
    browser: Browser, chromium: Browser, server: Server, stream: str, app: App
) -> None:
    go_live(chromium, server, stream)
    one = {"src": address(server, stream), "controls": True, "autoplay": True, "muted": True}
    page = app.open(browser, server, one, one)
    for player in ("p0", "p1"):
        wait_for(page, "live", player)
        wait_for_pictures(page, player)
    wait_until(lambda: viewers(server, stream) == 2, 10, "both are viewers")
    # The other one's sound is its own.
    page.evaluate("() => { p1.muted = false; p1.volume = 0.5; p1.quality = 'low'; }")
    assert page.evaluate("() => [p0.muted, p0.volume, p0.quality, p1.quality]") == [True, 1, "auto", "low"]
    # Moved within the page it goes on, with the session it has.
    page.evaluate("() => { document.body.prepend(p1); }")
    wait_for_pictures(page, "p1")
    page.evaluate("() => { globalThis.gone = p1; gone.remove(); }")
    wait_until(lambda: viewers(server, stream) == 1, 10, "the removed one's session has ended")
    assert page.evaluate("() => gone.state") == "idle"
    wait_for_pictures(page, "p0")
    left = page.evaluate("() => kept.size")
    # It can be put back.
    page.evaluate("() => { document.body.append(gone); }")
    wait_for(page, "live", "p1")
    wait_for_pictures(page, "p1")
    assert page.evaluate("() => kept.size") > left
    page.evaluate("() => { gone.remove(); }")
    wait_until(lambda: viewers(server, stream) == 1, 10, "its session has ended again")
    assert page.evaluate("() => kept.size") == left, "nothing of the page holds on to it"
    check_no_complaints(page)


def test_keys_do_what_they_say(browser: Browser, chromium: Browser, server: Server, stream: str, app: App) -> None:
    go_live(chromium, server, stream)
    page = app.open(browser, server, {"src": address(server, stream), "controls": True, "autoplay": True, "muted": True})
    wait_for(page, "live")
    # It stays when the picture is gone, and is kept once a second.
    page.wait_for("() => !p0.shadowRoot.querySelector('.still').hidden", what="a picture is kept")
    assert is_seen(page, ".sound-on"), "a clear way to the sound"
    page.evaluate("() => p0.focus()")
    assert page.evaluate("() => p0.shadowRoot.activeElement.className.includes('player')")
    page.press("m")
    page.wait_for("() => !p0.muted", what="m turns the sound on")
    assert not is_seen(page, ".sound-on")
    page.press("m")
    page.wait_for("() => p0.muted", what="m turns it off")
    assert not is_seen(page, ".sound-on"), "who turned it off knows how to turn it on"
    page.press("ArrowUp")
    page.wait_for("() => !p0.muted && p0.volume === 0.05", what="arrows begin where silence is")
    page.press("ArrowUp")
    page.wait_for("() => p0.volume === 0.1")
    page.press("ArrowDown")
    page.wait_for("() => p0.volume === 0.05")
    page.press("k")
    page.wait_for("() => p0.paused", what="k pauses")
    page.press(" ")
    page.wait_for("() => !p0.paused", what="the space bar plays")
    wait_for(page, "live")
    page.press("f")
    page.wait_for("() => document.fullscreenElement === p0", what="f fills the screen")
    page.press("f")
    page.wait_for("() => document.fullscreenElement === null", what="f leaves it")
    assert page.evaluate("() => scrollY") == 0, "keys of the player do not scroll the page"
    # The menu is one for the keyboard, too.
    inside(page, "[aria-haspopup]", "e.focus()")
    page.press("Enter")
    page.wait_for("() => p0.shadowRoot.activeElement?.dataset.value === 'auto'", what="the menu opens where it stands")
    page.press("ArrowUp")
    page.press("Enter")
    page.wait_for("() => p0.quality === 'sound'", what="sound only is chosen")
    assert not is_seen(page, ".menu")
    page.wait_for("() => p0.shadowRoot.querySelector('.player').dataset.picture === 'still'", what="the picture is gone")
    check_no_complaints(page)


def test_a_stream_that_ends_offers_its_recordings(
    browser: Browser, chromium: Browser, keeper: Server, stream: str, app: App  # noqa: F811
) -> None:
    host = go_live(chromium, keeper, stream)
    page = app.open(browser, keeper, {"src": address(keeper, stream), "controls": True, "autoplay": True, "muted": True})
    wait_for(page, "live")
    host.click("#record")
    grown(keeper, stream, 3)
    end_stream(host)
    wait_for(page, "ended")
    page.wait_for("() => p0.recordings.length === 1", seconds=20, what="it is listed")
    [recording] = listed(keeper, stream)
    told = page.evaluate("() => p0.recordings[0]")
    assert (told["id"], told["url"]) == (recording["id"], keeper.origin + recording["url"])
    page.wait_for("() => p0.shadowRoot.querySelector('.recording')?.checkVisibility()", what="it is offered")
    # Stopped on its way, so that it does not end before anybody has looked; and slow, because pages are held up for seconds.
    # Before it is chosen the video is the stream's, whose time may go on.
    page.evaluate("""() => {
        const video = p0.shadowRoot.querySelector('video');
        p0.shadowRoot.querySelector('.recording').click();
        video.playbackRate = 0.25;
        const stop = () => {
            if (video.currentTime <= 0.5) return;
            video.removeEventListener('timeupdate', stop);
            video.playbackRate = 1;
            p0.pause();
        };
        video.addEventListener('timeupdate', stop);
    }""")
    page.wait_for(
        "() => { const v = p0.shadowRoot.querySelector('video'); return v.currentTime > 0.5 && v.paused; }", seconds=20,
        what="it plays, and pauses")
    assert page.evaluate("() => [p0.state, p0.paused]") == ["ended", True]
    assert is_seen(page, ".position") and not is_seen(page, ".live")
    at = inside(page, "video", "e.currentTime")
    page.evaluate("() => p0.focus()")
    page.press("ArrowLeft")
    page.wait_for(
        "wanted => Math.abs(p0.shadowRoot.querySelector('video').currentTime - wanted) < 0.01", max(0, at - 5),
        what="an arrow goes back by five seconds")
    # Over, it is offered again.
    page.evaluate("() => { const v = p0.shadowRoot.querySelector('video'); v.currentTime = v.duration - 0.3; p0.play(); }")
    page.wait_for("() => p0.shadowRoot.querySelector('.recording')?.checkVisibility()", seconds=20, what="it is over")
    # The host comes back: the stream goes before what was.
    inside(page, ".recording", "e.click()")
    go_live(chromium, keeper, stream)
    wait_for(page, "live")
    wait_for_pictures(page)
    check_no_complaints(page)


def go_live_as(browser: Browser, server: Server, stream: str, token: str) -> Page:
    page = browser.open(f"{server.origin}/live/{stream}?quality=360&fps=15#token={token}")
    # With a token the camera opens late, and while it does there is nothing to press.
    page.wait_for("() => rostrum.room.own.source && !rostrum.room.own.isOpening", seconds=15, what="the camera is open")
    press_go_live(page)
    return page


def test_it_counts_down_to_the_start(browser: Browser, chromium: Browser, server: Server, stream: str, app: App) -> None:
    token = server.token(stream)
    status, _, body = server.request(
        "POST", "/v1/streams", b'{"title":"Evening talk","startsAt":"2090-01-01T20:00:00Z"}',
        {"Authorization": f"Bearer {token}", "Content-Type": "application/json"})
    assert status == 201, body
    page = app.open(browser, server, {"src": address(server, stream), "controls": True, "autoplay": True, "muted": True})
    wait_for(page, "backstage")
    page.wait_for("() => p0.shadowRoot.querySelector('.countdown').checkVisibility()", what="it counts down")
    assert inside(page, ".digits", "e.textContent").split(" d ")[0].isdigit()
    assert page.evaluate("() => p0.stream.title") == "Evening talk"
    page.evaluate("() => { p0.strings = {backstageHint: 'Gleich geht es los.', startsIn: 'Beginnt in'}; }")
    assert "Gleich geht es los." in inside(page, ".status", "e.innerText")
    assert inside(page, ".countdown", "e.innerText").startswith("Beginnt in")
    go_live_as(chromium, server, stream, token)
    wait_for(page, "live")
    wait_for_pictures(page)


def test_it_comes_back_with_the_server(browser: Browser, chromium: Browser, own_server: Server, stream: str, app: App) -> None:
    go_live(chromium, own_server, stream)
    src = address(own_server, stream)
    page = app.open(browser, own_server, {"src": src, "controls": True, "autoplay": True, "muted": True})
    wait_for(page, "live")
    wait_for_pictures(page)
    # What is seen last is kept once a second.
    page.wait_for("() => !p0.shadowRoot.querySelector('.still').hidden", what="a picture is kept")
    assert own_server.stop() == 0
    wait_for(page, "reconnecting")
    assert is_seen(page, ".still"), "what was seen last stays"
    own_server.start()
    wait_for(page, "live", seconds=40)
    wait_for_pictures(page)
    states = page.evaluate("() => heard.filter(([, type]) => type === 'statechange').map(([, , state]) => state)")
    assert "failed" not in states and "refused" not in states, states


@pytest.fixture(scope="module")
def closed(logs) -> Iterator[Server]:
    """Where watching takes a token."""
    server = Server(logs / "server-closed-player.log", "--viewers", "token")
    yield server
    server.stop()


def test_who_may_not_watch_is_told_why(browser: Browser, chromium: Browser, closed: Server, stream: str, app: App) -> None:
    host = closed.token(stream)
    go_live_as(chromium, closed, stream, host)
    src = address(closed, stream)
    _, _, body = closed.request(
        "POST", f"/v1/streams/{stream}/links", b'{"role":"viewer"}',
        {"Authorization": f"Bearer {host}", "Content-Type": "application/json"})
    invitation = json.loads(body)["token"]
    page = app.open(
        browser, closed, {"src": src, "controls": True, "autoplay": True, "muted": True},
        {"src": src, "token": closed.token("other", "viewer"), "autoplay": True, "muted": True},
        {"src": src, "token": invitation, "autoplay": True, "muted": True},
        {"src": "https://example.org/nothing"})
    wait_for(page, "refused", "p0")
    wait_for(page, "refused", "p1")
    wait_for(page, "live", "p2")
    wait_for(page, "failed", "p3")
    reasons = page.evaluate("() => [p0, p1, p2, p3].map(p => p.problem?.reason ?? null)")
    assert reasons == ["token-needed", "not-permitted", None, "no-address"]
    told = page.evaluate("() => heard.filter(([, type]) => type === 'error').map(([id, , reason]) => `${id} ${reason}`)")
    assert sorted(told) == ["p0 token-needed", "p1 not-permitted", "p3 no-address"]
    assert "invitation" in inside(page, ".status", "e.innerText")
    # With a token it begins by itself.
    page.evaluate("token => { p0.token = token; }", closed.token(stream, "viewer", "Bob"))
    wait_for(page, "live", "p0")
    wait_for_pictures(page, "p0")
    # Who is banned sees no more, and knows why.
    status, _, body = closed.request(
        "POST", f"/v1/streams/{stream}/bans", b'{"participant":"bob"}',
        {"Authorization": f"Bearer {host}", "Content-Type": "application/json"})
    assert status in (200, 201, 204), body
    wait_for(page, "refused", "p0")
    assert page.evaluate("() => p0.problem.reason") == "banned"


def test_an_invitation_is_exchanged_once_and_renewed_before_it_ends(chromium: Browser, server: Server) -> None:
    with chromium.open(server.origin + "/healthz") as page:
        told = page.evaluate("""async () => {
            const {Access} = await import('/assets/player/access.js');
            const tokenOf = claims => `x.${btoa(JSON.stringify(claims))}.y`;
            const now = Date.now(), timers = [], shown = [];
            Date.now = () => now;
            globalThis.setTimeout = (call, wait) => timers.push({call, wait});
            globalThis.clearTimeout = () => {};
            globalThis.fetch = async (address, {headers}) => {
                shown.push(headers.Authorization);
                const token = tokenOf({number: shown.length, exp: now / 1000 + 3600});
                return new Response(JSON.stringify({token}), {status: 201});
            };
            const invitation = tokenOf({use: 'invitation'});
            const access = new Access('/v1/streams/s1/tokens', invitation);
            const [first, same] = await Promise.all([access.token(), access.token()]);
            await timers[0].call();
            const renewed = await access.token();
            // Refused all the same, as after the host has revoked it: only the invitation can help.
            const another = await access.another(renewed);
            const plain = new Access('/v1/streams/s1/tokens', tokenOf({exp: now / 1000 + 60}));
            access.close();
            return {
                same: first === same, wait: timers[0].wait, short: timers.at(-1).wait,
                shown: shown.map(each => [invitation, first, renewed].indexOf(each.replace('Bearer ', ''))),
                isNew: new Set([first, renewed, another]).size === 3,
                plain: await plain.another(await plain.token()),
            };
        }""")
    assert told == {
        "same": True, "wait": 3_420_000, "short": 30_000, "shown": [0, 1, 0], "isNew": True, "plain": None,
    }


def test_the_example_page_shows_how_and_plays(browser: Browser, chromium: Browser, server: Server, stream: str) -> None:
    go_live(chromium, server, stream)
    page = browser.open(f"{server.origin}/docs/player?stream={stream}")
    page.wait_for("() => player.state === 'live'", seconds=20, what="it plays what its address names")
    page.wait_for("() => player.shadowRoot.querySelector('video').currentTime > 0", what="pictures come")
    page.wait_for("() => document.getElementById('events').textContent.includes('live')", what="it tells what happened")
    snippet = page.text("#snippet")
    assert f'src="{server.origin}/assets/v1/rostrum-player.js"' in snippet
    assert f'<rostrum-player src="{server.origin}/watch/{stream}" controls autoplay muted></rostrum-player>' in snippet
    page.click("[name=controls]")
    page.wait_for("() => !player.controls", what="the attribute is gone")
    assert "controls" not in page.text("#snippet")
    for size in (PHONE, DESKTOP):
        page.resize(size)
        assert_fits(page)
    check_no_complaints(page)
