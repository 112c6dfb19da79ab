"""Before one is on the air, sideways, after a reload, with a dead link, and after the end: the host's page."""

from __future__ import annotations

import json
from urllib.parse import urlsplit

import pytest

from conftest import LOGS
from drivers import Browser, Page, wait_until
from drivers.page import PHONE, Viewport
from media import STATISTICS, check_no_complaints, end_stream, go_live, press_go_live, wait_for_state, watch
from server import Server
from test_pages import MISSING_CAMERA, assert_fits
from test_story import open_backstage

SIDEWAYS = Viewport(844, 390)
WIDE = Viewport(1440, 900)


@pytest.fixture(params=["chromium", "firefox"])
def browser(request: pytest.FixtureRequest) -> Browser:
    return request.getfixturevalue(request.param)


def fill(page: Page, selector: str, text: str) -> None:
    """Types into a field, as far as the page can tell."""
    page.wait_for("s => document.querySelector(s)?.checkVisibility()", selector, what=f"{selector} can be filled in")
    page.evaluate(
        """(selector, text) => {
            const field = document.querySelector(selector);
            field.value = text;
            field.dispatchEvent(new Event('input', {bubbles: true}));
        }""", selector, text)


def is_seen(page: Page, selector: str) -> bool:
    return page.evaluate("s => document.querySelector(s)?.checkVisibility() ?? false", selector)


def assert_within(page: Page, *selectors: str) -> None:
    """These can be pressed without scrolling.

    What comes or goes takes its space at once; tiles are fitted into what is left of it when the browser draws next.
    """
    for selector in selectors:
        page.wait_for(
            """selector => {
                const element = document.querySelector(selector), box = element.getBoundingClientRect();
                if (!box.width || box.top < 0 || box.bottom > innerHeight || box.left < 0 || box.right > innerWidth) return false;
                return element.contains(document.elementFromPoint(box.x + box.width / 2, box.y + box.height / 2));
            }""", selector, what=f"{selector} can be reached")


def test_title_and_name_are_the_same_everywhere(browser: Browser, server: Server, stream: str) -> None:
    with browser.open(f"{server.origin}/live/{stream}?quality=360&fps=15") as host:
        host.evaluate("() => { localStorage.removeItem('rostrum:name'); return rostrum.room.own.open(); }")
        wait_for_state(host, "ready")
        # Without a sound device Firefox runs no AudioContext; then the page must not say that nothing is heard.
        runs = browser.name == "chromium" or host.evaluate(
            "() => new Promise(done => { const context = new AudioContext();"
            " context.resume().then(() => done(true)); setTimeout(() => done(false), 4500); })")
        if runs:
            host.wait_for(
                "() => document.querySelector('.level .bar').style.scale < '0.9'", what="the microphone is heard")
        else:
            assert host.text(".level [role=status]") == ""
        fill(host, "#your-name", "Ann Lindqvist")
        assert host.evaluate("() => document.getElementById('stream-title').placeholder") == "Ann Lindqvist is live"
        fill(host, "#stream-title", "Friday kitchen")
        press_go_live(host)
        host.wait_for("() => rostrum.room.info?.title === 'Friday kitchen'", what="the stream has its title")
        assert not is_seen(host, "#lobby")
        known = server.json(f"/v1/streams/{stream}")
        assert (known["title"], known["hostName"]) == ("Friday kitchen", "Ann Lindqvist")
        with watch(browser, server, stream) as viewer:
            wait_for_state(viewer, "live")
            # Pictures may come before what the stream is called.
            for page in (viewer, host):
                page.wait_for(
                    "() => document.getElementById('name').innerText === 'Friday kitchen'", what="the title is shown")
        check_no_complaints(host)
    # The name is remembered, the title is another one each time.
    with browser.open(f"{server.origin}/live/{stream}-2?source=test&quality=360&fps=15") as host:
        wait_for_state(host, "ready")
        assert host.evaluate("() => document.getElementById('your-name').value") == "Ann Lindqvist"
        press_go_live(host)
        host.wait_for("() => rostrum.room.info?.title === 'Ann Lindqvist is live'", what="it has the usual title")
        host.evaluate("() => localStorage.removeItem('rostrum:name')")


def test_somebody_without_a_camera_is_heard(chromium: Browser, server: Server, stream: str) -> None:
    path = f"/live/{stream}?fails=NotFoundError"
    no_camera = MISSING_CAMERA.replace(
        "getUserMedia = () =>",
        "getUserMedia = wishes => !wishes.video ? globalThis.openMicrophone(wishes) :").replace(
        "const name", "globalThis.openMicrophone = navigator.mediaDevices.getUserMedia.bind(navigator.mediaDevices);\n    const name")
    with chromium.open(server.origin + path, PHONE, before_load=no_camera) as host:
        host.click("#go")
        host.click("#error-sound")
        host.wait_for("() => rostrum.room.own.source?.kind === 'sound'", what="the microphone is open")
        assert "Others hear you" in host.text("#placeholder")
        assert not is_seen(host, "#dark")
        press_go_live(host)
        with watch(chromium, server, stream) as viewer:
            wait_for_state(viewer, "live", seconds=20)
            assert is_seen(viewer, "#sound-only")
            viewer.click("#unmute")
            viewer.wait_for(
                f"async () => (await ({STATISTICS})())['inbound-audio'].totalAudioEnergy > 1e-6", what="the host is heard")
            # A camera may follow: nothing is negotiated anew.
            host.click("#sources input[value=test]")
            viewer.wait_for("() => document.getElementById('video').videoWidth > 0", seconds=20, what="the host is seen")
            viewer.wait_for("() => !document.getElementById('sound-only').checkVisibility()", what="no face stands over it")


#: A browser that asks its user about the camera, and waits until the test answers.
SLOW_CAMERA = """() => {
    const open = navigator.mediaDevices.getUserMedia.bind(navigator.mediaDevices);
    const answer = new Promise(allow => (globalThis.allowCamera = allow));
    navigator.mediaDevices.getUserMedia = async wishes => { await answer; return open(wishes); };
}"""


def test_go_live_counts_while_the_camera_opens(chromium: Browser, server: Server, stream: str) -> None:
    with chromium.open(f"{server.origin}/live/{stream}?quality=360&fps=15", before_load=SLOW_CAMERA) as host:
        host.wait_for("() => rostrum.room.own.isOpening", what="the camera is being opened")
        # Twice, as somebody who sees nothing happen would.
        host.click("#go")
        assert (host.text("#go"), host.evaluate("() => document.getElementById('go').ariaDisabled")) == ("Starting…", "true")
        host.click("#go")
        host.evaluate("() => allowCamera()")
        wait_for_state(host, "live")
        assert server.json(f"/v1/streams/{stream}")["state"] == "live"
        check_no_complaints(host)


#: What the server says of the stream comes only once the host is on the air.
LATE_NEWS = """() => {
    globalThis.news = [];
    let wasOn = false;
    const tell = () => {
        wasOn ||= globalThis.rostrum?.room.onAir.isOn;
        if (!wasOn) return;
        for (const {socket, data} of news.splice(0)) socket.dispatchEvent(new MessageEvent('message', {data}));
    };
    setInterval(tell, 10);
    globalThis.WebSocket = class extends WebSocket {
        constructor(...all) {
            super(...all);
            this.addEventListener('message', event => {
                if (!event.isTrusted) return;
                event.stopImmediatePropagation();
                news.push({socket: this, data: event.data});
                tell();
            });
        }
    };
}"""


def test_a_host_who_hears_late_that_it_was_over_goes_live_again(chromium: Browser, server: Server, stream: str) -> None:
    with go_live(chromium, server, stream) as host:
        end_stream(host)
        wait_for_state(host, "ended")
    with chromium.open(f"{server.origin}/live/{stream}?source=test&quality=480", before_load=LATE_NEWS) as host:
        host.wait_for(
            "() => news.some(({data}) => JSON.parse(data).stream?.state === 'ended')", what="the server says that it has ended")
        assert host.evaluate("() => rostrum.room.info === null")
        press_go_live(host)
        assert server.json(f"/v1/streams/{stream}")["state"] == "live"
        # The end of what it was on the air for takes it off the air all the same.
        end_stream(host)
        wait_for_state(host, "ended")
        assert not host.evaluate("() => rostrum.room.onAir.isOn")
        check_no_complaints(host)


def test_a_host_who_goes_live_before_anything_is_heard_asks_for_nothing(
    chromium: Browser, server: Server, stream: str
) -> None:
    """A stream that nobody has made cannot be asked for: the answer would be a fault to the browser."""
    with chromium.open(f"{server.origin}/live/{stream}?source=test&quality=360&fps=15", before_load=LATE_NEWS) as host:
        press_go_live(host)
        check_no_complaints(host)


def test_a_phone_held_sideways_has_its_buttons(browser: Browser, server: Server, stream: str) -> None:
    with browser.open(f"{server.origin}/live/{stream}?source=test&quality=360&fps=15", SIDEWAYS) as host:
        wait_for_state(host, "ready")
        assert_within(host, "#go", "#mute", "#dark", "#preview")
        assert_fits(host)
        press_go_live(host)
        assert_within(host, "#stop", "#mute", "#dark", "#preview")
        host.screenshot(LOGS / f"studio-sideways-{browser.name}.png")


def test_a_host_closes_the_backstage_without_going_live(browser: Browser, server: Server, stream: str) -> None:
    with browser.open(f"{server.origin}/live/{stream}?source=test&quality=360&fps=15", PHONE) as host:
        wait_for_state(host, "ready")
        assert not is_seen(host, "#close-backstage")
        open_backstage(host, "Not tonight")
        host.wait_for("() => document.getElementById('close-backstage').checkVisibility()", what="it can be closed")
        assert host.text("#close-backstage").strip() == "Close the backstage…"
        assert_fits(host)
        host.screenshot(LOGS / f"studio-backstage-{browser.name}.png")
        # By keyboard alone; Escape and the first choice leave it open.
        for key in ("Escape", "Enter"):
            host.evaluate("() => document.getElementById('close-backstage').focus()")
            host.press("Enter")
            host.wait_for("() => document.querySelector('dialog[data-name=end]')?.open", what="the host is asked")
            assert host.text("dialog[data-name=end] h2") == "Close the backstage?"
            assert host.evaluate("() => document.activeElement.dataset.value") == "no"
            host.press(key)
            host.wait_for("() => !document.querySelector('dialog[data-name=end]')", what="the question is gone")
            assert host.evaluate("() => document.activeElement.id") == "close-backstage"
        assert server.json(f"/v1/streams/{stream}")["state"] == "backstage"
        host.press("Enter")
        host.wait_for("() => document.querySelector('dialog[data-name=end]')?.open", what="the host is asked again")
        assert host.text("dialog[data-name=end] [data-value=yes]") == "Close it"
        host.click("dialog[data-name=end] [data-value=yes]")
        wait_for_state(host, "ended")
        over = server.json(f"/v1/streams/{stream}")
        assert (over["state"], over["startedAt"], over["endReason"]) == ("ended", None, "ended")
        host.wait_for("() => !document.getElementById('close-backstage').checkVisibility()", what="there is nothing to close")
        host.wait_for("() => document.activeElement === document.querySelector('main')", what="the focus is not lost")
        assert host.text("#notice") == "The stream has ended."
        check_no_complaints(host)


def test_an_admin_ends_what_somebody_else_presents(chromium: Browser, server: Server, stream: str) -> None:
    with go_live(chromium, server, stream, source="test"):
        token = server.token(stream, "admin", "Root")
        with chromium.open(f"{server.origin}/live/{stream}?source=test&quality=360&fps=15#token={token}") as admin:
            admin.wait_for("() => document.getElementById('stop')?.checkVisibility()", what="the admin can end it")
            end_stream(admin)
            wait_until(lambda: server.json(f"/v1/streams/{stream}")["state"] == "ended", 15, "the stream has ended")


def test_one_tile_fills_the_space(browser: Browser, server: Server, stream: str) -> None:
    with browser.open(f"{server.origin}/live/{stream}?source=test&quality=360&fps=15", WIDE) as host:
        wait_for_state(host, "ready")
        # What else is shown from now on takes its space first.
        host.wait_for(
            """() => {
                const space = document.querySelector('.grid').getBoundingClientRect();
                const tile = document.querySelector('.tile').getBoundingClientRect();
                const share = Math.max(tile.width / space.width, tile.height / space.height);
                return share >= 0.98 && share <= 1;
            }""", what="the tile fills the space")
        fit = "async (...given) => (await import('/assets/widgets/grid.js')).fitTiles(...given).tile"
        # Two beside each other, or one above the other, whichever makes them larger.
        assert host.evaluate(fit, 1000, 400, 2) == 494
        assert host.evaluate(fit, 500, 800, 2) == 500
        assert host.evaluate(fit, 1000, 800, 4) == 494


def test_a_host_who_reloads_is_back_on_the_air(browser: Browser, server: Server, stream: str) -> None:
    token = server.token(stream)
    headers = {"Authorization": f"Bearer {token}", "Content-Type": "application/json"}
    body = json.dumps({"title": "Made", "programme": "composed"}).encode()
    assert server.request("POST", "/v1/streams", body, headers)[0] == 201
    with browser.open(f"{server.origin}/live/{stream}?source=test&quality=360&fps=15#token={token}") as host:
        press_go_live(host)
        host.evaluate("() => { location.reload(); }")
        host.wait_for(
            "() => performance.getEntriesByType('navigation')[0].type === 'reload' && document.body.dataset.state === 'live'",
            seconds=15, what="the host is back on the air")
        # Where a question would be in the way, the host is told instead.
        host.evaluate("() => { sessionStorage.removeItem(`rostrum:on-air:${rostrum.room.stream}`); rostrum.room.onAir.stop(); }")
        host.wait_for("() => document.getElementById('badge').innerText.toLowerCase() === 'off air'", what="the badge says it")
        host.wait_for(
            "() => document.getElementById('notice').innerText.includes('Viewers see a paused picture')",
            what="the host is told what viewers see")
        assert host.text("#go") == "Back on air"


def test_a_dead_link_offers_nothing_and_opens_no_camera(browser: Browser, server: Server, stream: str) -> None:
    page = browser.open(f"{server.origin}/live/{stream}#token=abc.def.ghi", WIDE)
    with page:
        wait_for_state(page, "expired")
        assert "no longer valid" in page.text("#notice")
        for tool in ("#go", "#sources", "#schedule", "#lobby", "#settings", "#preview", "#share", "#record"):
            assert not is_seen(page, tool), tool
        assert is_seen(page, "#next")
        assert page.evaluate("() => rostrum.room.own.source === null")


#: Contrast of an element's text and its background, by WCAG 2.
CONTRAST = """selector => {
    const style = getComputedStyle(document.querySelector(selector));
    const light = colour => {
        const [r, g, b] = colour.match(/[\\d.]+/g).slice(0, 3)
            .map(value => value / 255).map(value => value <= 0.04045 ? value / 12.92 : ((value + 0.055) / 1.055) ** 2.4);
        return 0.2126 * r + 0.7152 * g + 0.0722 * b;
    };
    const [a, b] = [light(style.color), light(style.backgroundColor)].sort((a, b) => b - a);
    return (a + 0.05) / (b + 0.05);
}"""


def test_what_is_red_can_be_read(chromium: Browser, server: Server, stream: str) -> None:
    with chromium.open(f"{server.origin}/live/{stream}?source=test&quality=360&fps=15") as host:
        wait_for_state(host, "ready")
        assert host.evaluate(CONTRAST, "#go") >= 4.5
        press_go_live(host)
        assert host.evaluate(CONTRAST, "#badge") >= 4.5


def test_after_the_end_the_host_learns_how_it_was(chromium: Browser, server: Server, stream: str) -> None:
    with chromium.open(f"{server.origin}/live/{stream}?source=test&quality=360&fps=15", WIDE) as host:
        press_go_live(host)
        with watch(chromium, server, stream) as viewer:
            wait_for_state(viewer, "live")
            host.wait_for("() => rostrum.room.mostViewers === 1", what="a viewer is counted")
        end_stream(host)
        wait_for_state(host, "ended")
        host.wait_for(
            "() => document.getElementById('summary').innerText.includes('up to 1 viewer at once')", what="the sum of it")
        # On a busy machine it takes more than a minute.
        seconds = host.evaluate(
            "() => Math.floor((Date.parse(rostrum.room.info.endedAt) - Date.parse(rostrum.room.info.startedAt)) / 1000)")
        assert f"Live for {seconds // 60:02}:{seconds % 60:02}" in host.text("#summary")
        assert host.text("#notice") == "The stream has ended."
        assert_within(host, "#notice")


def test_who_watches_is_told_without_contradictions(chromium: Browser, server: Server, stream: str) -> None:
    with go_live(chromium, server, stream, source="test") as host:
        people = "() => document.getElementById('viewer-list').parentElement.innerText"
        assert "No one is watching yet." in host.evaluate(people)
        with watch(chromium, server, stream) as viewer:
            wait_for_state(viewer, "live")
            host.wait_for(f"() => ({people})().includes('1 person without a name.')", what="a viewer is counted")
            viewer.evaluate("() => { rostrum.room.naming.choose('Vic'); return rostrum.room.raiseHand(); }")
            host.wait_for(f"() => ({people})().includes('1 person, listed above.')", what="Vic is above")
            assert "Watching · 1" in host.evaluate(people)
            viewer.evaluate("() => localStorage.removeItem('rostrum:name')")


@pytest.mark.parametrize("scheme", ["light", "dark"])
def test_the_studio_is_as_light_as_its_user_likes(chromium: Browser, server: Server, stream: str, scheme: str) -> None:
    # A screen is not shown before its user wants it to be.
    with chromium.open(f"{server.origin}/live/{stream}?source=screen") as host:
        host.wait_for("() => document.getElementById('show-preview')?.checkVisibility()", what="there is no preview yet")
        host._command("Emulation.setEmulatedMedia", features=[{"name": "prefers-color-scheme", "value": scheme}])
        host.wait_for(
            """isLight => {
                const [red] = getComputedStyle(document.body).backgroundColor.match(/\\d+/g).map(Number);
                return (isLight ? red > 200 : red < 50) && document.getAnimations().every(each => each.playState !== 'running');
            }""", scheme == "light", what="the page has its colours")
        for selector in ("#open-backstage", "#stream-title", "#show-preview"):
            assert host.evaluate(CONTRAST, selector) >= 4.5, selector


#: Sends no DELETE before `release()` is called; `held` is what one was for, `ended` its status.
LATE_DELETE = """() => {
    const real = window.fetch, released = new Promise(resolve => { window.release = resolve; });
    window.fetch = async (resource, options) => {
        if (options?.method !== 'DELETE') return real(resource, options);
        window.held = String(resource);
        await released;
        const response = await real(resource, options);
        window.ended = response.status;
        return response;
    };
}"""


def test_a_delete_that_comes_after_the_end_is_no_failure(browser: Browser, server: Server, stream: str) -> None:
    """A page closes its connection and sends DELETE at once: whichever comes first, its console stays empty."""
    with browser.open(f"{server.origin}/live/{stream}?quality=360&fps=15", before_load=LATE_DELETE) as host:
        press_go_live(host)
        end_stream(host)
        resource = urlsplit(host.wait_for("() => window.held", what="the page ends its session")).path
        token = {"Authorization": f"Bearer {server.token(stream)}"}
        wait_until(lambda: server.request("GET", resource, headers=token)[0] == 404, 15, "the server has ended it before")
        host.evaluate("() => window.release()")
        assert host.wait_for("() => window.ended", what="the DELETE is answered") == 200
        check_no_complaints(host)


#: The next word to the server about what this page's person sends gets lost, once.
LOSE_ONE_WORD = """() => {
    const original = fetch;
    globalThis.lost = 0;
    globalThis.fetch = (address, options) => {
        const isMeant = options?.method === 'PATCH' && String(address).includes('/speakers/');
        if (lost || !isMeant) return original(address, options);
        lost++;
        return Promise.reject(new TypeError('there is no network'));
    };
}"""


def test_what_a_network_swallowed_of_a_picture_that_is_back_is_told_again(
    chromium: Browser, server: Server, stream: str
) -> None:
    with go_live(chromium, server, stream, source="test") as host:
        host.wait_for("() => rostrum.room.you?.videoMuted === false", what="the server knows of the picture")
        host.click("#dark")
        host.wait_for("() => rostrum.room.you.videoMuted === true", what="the picture is off for everybody")
        host.evaluate(LOSE_ONE_WORD)
        host.click("#dark")
        host.wait_for("() => lost === 1", what="the word is lost")
        host.wait_for("() => rostrum.room.you.videoMuted === false", what="the picture is on for everybody")
        assert host.evaluate("() => rostrum.room.own.muted.video") is False
        check_no_complaints(host)


def test_a_microphone_that_was_unplugged_is_told_and_the_picture_goes_on(
    chromium: Browser, server: Server, stream: str
) -> None:
    pictures = f"async () => (await ({STATISTICS})())?.['outbound-video']?.framesEncoded ?? 0"
    with go_live(chromium, server, stream) as host:
        # A track that the page stops itself tells nobody.
        host.evaluate(
            """() => {
                const [microphone] = rostrum.room.own.source.media.getAudioTracks();
                globalThis.microphone = microphone;
                globalThis.unplug = () => { microphone.dispatchEvent(new Event('ended')); };
                microphone.stop();
                unplug();
            }""")
        host.wait_for("() => document.getElementById('error').checkVisibility()", what="the host is told")
        assert host.text("#error-title") == "The microphone was disconnected"
        assert not is_seen(host, "#error-test") and not is_seen(host, "#error-sound")
        sent = host.evaluate(pictures)
        host.wait_for(f"async sent => await ({pictures})() > sent + 10", sent, what="the picture goes on")
        assert server.json(f"/v1/streams/{stream}")["state"] == "live"
        assert host.evaluate("() => rostrum.room.own.source.media.getVideoTracks()[0].readyState") == "live"
        host.click("#error-retry")
        host.wait_for(
            """() => {
                const [now] = rostrum.room.own.source.media.getAudioTracks();
                return now !== microphone && now.readyState === 'live'
                    && rostrum.connection.session.peer.getSenders().some(({track}) => track === now);
            }""", what="another microphone is on the air")
        # What is heard of the old one concerns nobody any more.
        host.evaluate("() => unplug()")
        assert not is_seen(host, "#error") and host.evaluate("() => rostrum.room.own.problem === null")
        wait_for_state(host, "live")
        check_no_complaints(host)
