"""The operator's page: what it shows of a live stream, who may see it, and what can be done there."""

from __future__ import annotations

import json
import os
import struct
import subprocess
import time
from collections.abc import Iterator
from ipaddress import IPv4Address
from pathlib import Path

import pytest

from drivers import DESKTOP, PHONE, Browser, Page, wait_until
from media import check_no_complaints, go_live, wait_for_frames, watch
from server import Server, binary
from test_links import KEY, Production
from test_page_widgets import NOT_THERE
from test_pages import assert_fits

#: The text of a figure above the plots.
FIGURE = """name => [...document.querySelectorAll('#figures > div')]
    .find(figure => figure.firstChild.textContent === name).lastChild.textContent"""


@pytest.fixture
def production(logs: Path, tmp_path: Path) -> Iterator[Production]:
    server = Production(logs / "server-operators.log", "--data", str(tmp_path / "data"))
    yield server
    server.stop()


def open_desk(browser: Browser, origin: str, viewport=DESKTOP) -> Page:
    page = browser.open(f"{origin}/admin", viewport)
    page.wait_for("() => document.body.dataset.state === 'live'", what="the numbers are there")
    return page


def search(page: Page, name: str, text: str, rows: int) -> None:
    page.evaluate(
        """(name, text) => {
            const field = document.getElementById(`${name}-search`);
            field.value = text;
            field.dispatchEvent(new Event('input'));
        }""", name, text)
    page.wait_for(
        "(name, rows) => document.getElementById(name).children.length === rows", name, rows,
        what=f"{rows} {name} fit {text}")


def test_shows_a_stream_and_its_sessions(
    chromium: Browser, firefox: Browser, server: Server, stream: str,
) -> None:
    with go_live(chromium, server, stream) as host, watch(chromium, server, stream) as viewer:
        wait_for_frames(viewer)
        with open_desk(firefox, server.origin) as page:
            search(page, "streams", stream, 1)
            search(page, "streams", "no such stream", 0)
            search(page, "sessions", stream, 2)
            # Rates take two looks.
            page.wait_for(f"() => ({FIGURE})('Out').endsWith('bit/s')", what="what is sent")
            assert page.evaluate(FIGURE, "Sessions") != "–"
            kinds = page.evaluate(
                "() => [...document.querySelectorAll('#sessions tr')].map(row => row.children[1].textContent).sort()")
            assert kinds == ["on stage", "player"]
            labels = page.evaluate("() => [...document.querySelectorAll('canvas')].map(plot => plot.ariaLabel)")
            assert len(labels) == 10 and any(label.startswith("Sessions, now: Publishers") for label in labels)

            page.evaluate(
                """() => [...document.querySelectorAll('#sessions tr')]
                    .find(row => row.children[1].textContent === 'player').querySelector('button').click()""")
            page.wait_for(
                "() => document.querySelector('#dossier .phases') && !document.querySelector('#dossier .phases .missing')",
                what="all phases of joining")
            assert page.evaluate("() => document.activeElement.id") == "dossier-title"
            ends = page.evaluate("() => [...document.querySelectorAll('#dossier .hops .end')].map(e => e.textContent)")
            assert ends == ["Publisher", "Server", "Viewer"]
            events = page.evaluate(
                "() => [...document.querySelectorAll('#dossier .events strong')].map(e => e.textContent)")
            assert {"answered", "checked", "connected"} <= set(events)
            assert "a=ice-pwd:<secret>" in page.evaluate(
                "() => document.querySelector('#dossier [data-name=offer] pre').textContent")

            page.click("#dossier .danger")
            page.click("[data-name='end-session'] [data-value=yes]")
            page.wait_for(
                "() => document.querySelector('#dossier .facts dd').textContent === 'ended: operator'",
                what="the session has ended")
            page.press("Escape")
            page.wait_for("() => !document.getElementById('dossier').open", what="the panel is closed")
            check_no_complaints(page)


def packets(capture: bytes) -> Iterator[tuple[float, str, bytes, int]]:
    """When each one passed, who sent it, what is there of what UDP carried, and how long that was."""
    magic, _, _, _, _, _, link = struct.unpack("<IHHiIII", capture[:24])
    assert (magic, link) == (0xA1B23C4D, 101)
    place = 24
    while place < len(capture):
        seconds, nanoseconds, kept, length = struct.unpack("<IIII", capture[place:place + 16])
        packet = capture[place + 16:place + 16 + kept]
        assert len(packet) == kept and packet[0] == 0x45 and packet[9] == 17
        yield seconds + nanoseconds / 1e9, str(IPv4Address(packet[12:16])), packet[28:], length - 28
        place += 16 + kept


def test_a_capture_holds_the_headers_of_both_ways_and_nothing_else(
    chromium: Browser, server: Server, stream: str,
) -> None:
    with go_live(chromium, server, stream), watch(chromium, server, stream) as viewer:
        wait_for_frames(viewer)
        admin = {"Authorization": f"Bearer {server.token(stream, 'admin')}"}
        sessions = json.loads(server.request("GET", f"/v1/sessions?stream={stream}", headers=admin)[2])["sessions"]
        [session] = [session["id"] for session in sessions if session["purpose"] == "play"]
        path = f"/v1/sessions/{session}/capture?seconds="

        def holds_a_second() -> bool:
            """Whether a capture, which is as it should be, has pictures, sound and reports: a busy machine may send none."""
            began = time.time()
            status, headers, capture = server.request("GET", path + "2", headers=admin)
            assert (status, headers["content-type"]) == (200, "application/vnd.tcpdump.pcap"), capture
            all_packets = list(packets(capture))
            # The server's clock of days goes on from its start by itself.
            assert all(began - 1 < at < time.time() + 1 for at, _, _, _ in all_packets)
            reports = [kept for _, _, kept, _ in all_packets if 192 <= kept[1] <= 223]
            media = [(kept, length) for _, _, kept, length in all_packets if not 192 <= kept[1] <= 223]
            assert all(len(kept) == 8 for kept in reports)
            # Of all there is nothing here but the headers.
            assert all(12 <= len(kept) <= 80 < length + 68 for kept, length in media)
            numbers: dict[int, list[int]] = {}
            for kept, _ in media:
                number, source = struct.unpack("!2xH4xI", kept[:12])
                numbers.setdefault(source, []).append(number)
            for found in numbers.values():
                assert len(set(found)) == len(found)
            return (
                len(reports) > 0 and len(media) > 60 and max(length for _, length in media) > 500
                and max(map(len, numbers.values())) > 30)

        wait_until(holds_a_second, 20, "a capture holds a second of pictures and sound")
        for wrong in ("0", "61", "x"):
            assert server.request("GET", path + wrong, headers=admin)[0] == 422


def test_an_operator_saves_a_capture(chromium: Browser, server: Server, stream: str) -> None:
    with go_live(chromium, server, stream), open_desk(chromium, server.origin) as page:
        search(page, "sessions", stream, 1)
        page.click("#sessions tr button")
        page.evaluate("""() => {
            // Of the ten seconds that the page asks for, four are enough for what is looked at here.
            const ask = fetch;
            globalThis.fetch = (address, how) => ask(String(address).replace(/capture\\?seconds=10$/, 'capture?seconds=4'), how);
            globalThis.saved = [];
            const make = URL.createObjectURL;
            URL.createObjectURL = blob => { saved.push(blob.size); return make(blob); };
            HTMLAnchorElement.prototype.click = function () { saved.push(this.download); };
        }""")
        page.wait_for("() => document.querySelector('#dossier header button').checkVisibility()", what="it can be captured")
        page.click("#dossier header button")
        page.wait_for("() => saved.length === 2", seconds=30, what="it is saved")
        size, name = page.evaluate("() => saved")
        assert name.endswith(".pcap") and size > 24 + 50 * 60


def test_makes_rates_of_totals(chromium: Browser, server: Server) -> None:
    """Totals at seconds 10, 12 and 13, and of a server that began anew."""
    with open_desk(chromium, server.origin) as page:
        samples = page.evaluate(
            """async () => {
                const { Series, quantile } = await import('/assets/admin/series.js');
                const histogram = counts => ({
                    count: counts.at(-1), seconds: 0, buckets: [0.1, 0.2, 0.4].map((bound, i) => [bound, counts[i]]),
                });
                const phases = () => Object.fromEntries(
                    ['answer', 'check', 'dtls', 'media'].map(name => [name, histogram([0, 0, 0])]));
                const at = (seconds, packets, startedAt = 'a') => ({
                    seconds, sessions: { total: 1 }, viewers: 3,
                    received: { packets, bytes: 0, requestedAgain: packets / 10, repaired: 0 },
                    sent: { packets: 0, bytes: 0, requestedAgain: 0, repaired: 0 },
                    workers: [{ index: 0, load: 0.5, bytesReceived: packets * 100, bytesSent: 0, drops: 0 }],
                    process: { residentBytes: 7, cpuSeconds: seconds / 4, startedAt },
                    latency: histogram([packets / 2, packets, packets]), joins: { viewer: phases() },
                });
                const series = new Series();
                const added = [at(10, 100), at(12, 300), at(12, 300), at(13, 400), at(1, 5, 'b'), at(2, 6, 'b')]
                    .map(now => series.add(now)?.values ?? null);
                return [added, quantile(histogram([0, 10, 10]), histogram([0, 0, 0]), 0.5)];
            }""")
        added, middle = samples
        assert [values and values["packetsIn"] for values in added] == [None, 100, None, 100, None, 1]
        assert (added[1]["bitsIn"], added[1]["lossIn"], added[1]["cpu"]) == (80_000, 0.1, 0.25)
        assert (added[1]["worker0"], added[1]["latency50"], added[1]["join-dtls"]) == (0.5, 0.1, None)
        assert middle == pytest.approx(0.15)


def test_moves_a_stream_in_the_feed_and_ends_it(chromium: Browser, server: Server, stream: str) -> None:
    with go_live(chromium, server, stream), open_desk(chromium, server.origin) as page:
        search(page, "streams", stream, 1)
        page.click("#streams .deeds .button:first-child")
        page.click("[data-name=placement] input[type=checkbox]")
        page.click("[data-name=placement] [data-value=save]")
        page.wait_for("() => document.getElementById('toast').textContent === 'Saved.'", what="it is saved")
        page.click("#streams .deeds .button:first-child")
        page.wait_for("() => document.querySelector('[data-name=placement] input:checked') !== null", what="it is pinned")
        page.press("Escape")
        page.click("#streams .deeds .danger")
        page.click("[data-name='end-stream'] [data-value=yes]")
        page.wait_for("() => document.getElementById('streams').children.length === 0", what="it is no more")
        wait_until(lambda: server.json(f"/v1/streams/{stream}")["state"] == "ended", 10, "it has ended")


@pytest.mark.parametrize("viewport", [PHONE, DESKTOP], ids=["phone", "desktop"])
def test_fits(chromium: Browser, server: Server, viewport) -> None:
    with open_desk(chromium, server.origin, viewport) as page:
        assert_fits(page)
        check_no_complaints(page)


def test_rests_while_nobody_sees_it(chromium: Browser, server: Server) -> None:
    with open_desk(chromium, server.origin) as page:
        page.evaluate(
            """() => {
                globalThis.asked = 0;
                const original = fetch;
                globalThis.fetch = (...request) => { asked += 1; return original(...request); };
                Object.defineProperty(document, 'hidden', {get: () => globalThis.isHidden ?? false, configurable: true});
            }""")
        page.wait_for("() => asked > 1", what="it asks")
        page.evaluate("() => { isHidden = true; document.dispatchEvent(new Event('visibilitychange')); asked = 0; }")
        # The seconds of a clock that it would ask by.
        looks = page.evaluate(
            """() => new Promise(resolve => {
                let ticks = 0;
                const clock = setInterval(() => { if (++ticks === 3) { clearInterval(clock); resolve(asked); } }, 1000);
            })""")
        # A look that was under way may have had a list to ask for.
        assert looks <= 3
        page.evaluate("() => { isHidden = false; asked = 0; document.dispatchEvent(new Event('visibilitychange')); }")
        page.wait_for("() => asked > 1", what="it asks again")


def test_asks_for_an_admins_token(chromium: Browser, production: Production) -> None:
    def token(*arguments: str) -> str:
        return subprocess.run(
            [str(binary()), "token", *arguments], env={**os.environ, **KEY}, capture_output=True, text=True,
            check=True).stdout.strip()

    def enter(text: str) -> None:
        page.evaluate("text => { document.getElementById('token').value = text; }", text)
        page.click("#entrance button")

    with chromium.open(f"{production.origin}/admin") as page:
        page.wait_for("() => document.body.dataset.state === 'locked'", what="it asks for a token")
        assert_fits(page)
        enter(token("--role", "host", "--stream", "talk"))
        page.wait_for("() => document.getElementById('entrance-reason').textContent.includes('admin')",
                      what="a host's is refused")
        enter(token("--role", "admin"))
        page.wait_for("() => document.body.dataset.state === 'live'", what="an admin's is taken")
    link = token("--role", "admin", "--link", production.origin)
    with chromium.open(link) as page:
        page.wait_for("() => document.body.dataset.state === 'live'", what="the link comes in")
        assert page.evaluate("() => location.hash") == ""
        page.goto(f"{production.origin}/admin")
        page.wait_for("() => document.body.dataset.state === 'live'", what="the tab remembers it")


def test_what_is_said_outlives_the_dialog_that_it_was_said_in(chromium: Browser, server: Server, stream: str) -> None:
    headers = {"Authorization": f"Bearer {server.token(stream)}", "Content-Type": "application/json"}
    assert server.request("POST", "/v1/streams", b"{}", headers)[0] == 201
    with open_desk(chromium, server.origin) as page:
        search(page, "streams", stream, 1)
        page.evaluate("""() => {
            const ask = fetch;
            globalThis.fetch = (address, how) => String(address).endsWith('/placement')
                ? Promise.reject(new TypeError('the network is gone')) : ask(address, how);
            globalThis.fail = () => document.querySelector('#streams button').click();
        }""")
        # While one waits for an answer, another question is open.
        page.evaluate("""async () => {
            const {ask} = await import('/assets/dialog.js');
            ask({name: 'other', title: 'Something else?', choices: [{value: 'no', label: 'No'}]});
            fail();
        }""")
        said = "(selector, words) => document.querySelector(selector)?.textContent === words"
        page.wait_for(said, "dialog[data-name=other] #toast", NOT_THERE, what="it is said over the question")
        page.evaluate("() => document.querySelector('dialog[data-name=other]').close()")
        page.wait_for("() => !document.querySelector('dialog[data-name=other]')", what="the question is gone")
        page.evaluate("() => fail()")
        page.wait_for(said, "body > #toast", NOT_THERE, what="what comes next is said, too")


def test_a_position_that_is_not_saved_stays_in_its_form(chromium: Browser, server: Server, stream: str) -> None:
    headers = {"Authorization": f"Bearer {server.token(stream)}", "Content-Type": "application/json"}
    assert server.request("POST", "/v1/streams", b"{}", headers)[0] == 201
    with open_desk(chromium, server.origin) as page:
        search(page, "streams", stream, 1)
        page.evaluate("""() => {
            const ask = fetch;
            globalThis.failures = [
                () => Promise.reject(new TypeError('the network is gone')),
                async () => new Response('{"detail": "Too far down."}', {status: 422}),
            ];
            globalThis.fetch = (address, how) => how?.method === 'PATCH' && failures.length
                ? failures.shift()() : ask(address, how);
            document.querySelector('#streams .deeds .button').click();
        }""")
        page.wait_for("() => document.querySelector('[data-name=placement]') !== null", what="the form is there")
        page.evaluate("""() => {
            globalThis.steps = document.querySelectorAll('[data-name=placement] input')[2];
            steps.value = '7';
        }""")
        for reason in (NOT_THERE, "Too far down."):
            page.evaluate("() => document.querySelector('[data-name=placement] [data-value=save]').click()")
            page.wait_for(
                "reason => document.querySelector('[data-name=placement] [role=alert]')?.textContent === reason", reason,
                what="why it was not saved is said")
            assert page.evaluate("() => [steps.isConnected, steps.value]") == [True, "7"]
        page.evaluate("() => document.querySelector('[data-name=placement] [data-value=save]').click()")
        page.wait_for("() => document.getElementById('toast').textContent === 'Saved.'", what="it is saved")
        assert page.evaluate("() => document.querySelector('[data-name=placement]')") is None
