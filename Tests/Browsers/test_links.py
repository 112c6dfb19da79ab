"""A server where nobody gets in without a token: the host's link makes those for speakers and viewers."""

from __future__ import annotations

import os
import subprocess
from collections.abc import Iterator
from pathlib import Path

import pytest

from drivers import DESKTOP, Browser, Page
from drivers.process import Process
from media import check_no_complaints, press_go_live, wait_for_frames, wait_for_state
from server import Server, binary
from test_composition import SIZE
from test_studio import fill, is_seen

KEY = {"ROSTRUM_KEY_ID": "main", "ROSTRUM_SECRET": "a secret for tests that has thirty-two bytes"}


class Production(Server):
    """A server as on the Internet: without --dev, viewers need an invitation."""

    def start(self) -> None:
        os.environ.update(KEY)
        try:
            self._process = Process(
                [
                    str(binary()), "serve", "--http", f"127.0.0.1:{self.http_port}",
                    "--udp", f"0.0.0.0:{self.udp_port}", "--transcoder-nice", "0", *self._arguments,
                ],
                self.log, r"^ready http=", 15)
        finally:
            for name in KEY:
                del os.environ[name]

    def host_link(self, stream: str) -> str:
        """As an operator makes it on the command line."""
        return subprocess.run(
            [str(binary()), "token", "--role", "host", "--stream", stream, "--ttl", "1d", "--link", self.origin],
            env={**os.environ, **KEY}, capture_output=True, text=True, check=True).stdout.strip()


@pytest.fixture
def production(logs: Path, tmp_path: Path) -> Iterator[Production]:
    server = Production(logs / "server-production.log", "--data", str(tmp_path / "data"))
    yield server
    server.stop()


#: Notes what a page puts on the clipboard, which a window without focus may not.
CLIPBOARD = """() => {
    globalThis.copied = [];
    const clipboard = {writeText: async text => { copied.push(text); }};
    Object.defineProperty(navigator, 'clipboard', {value: clipboard, configurable: true});
}"""


def open_link(browser: Browser, link: str, query: str = "") -> Page:
    address, _, fragment = link.partition("#")
    return browser.open(f"{address}{query}#{fragment}", DESKTOP, before_load=CLIPBOARD)


@pytest.mark.parametrize(("hosts", "guests"), [("chromium", "firefox"), ("firefox", "chromium")])
def test_the_hosts_link_leads_to_those_for_everybody_else(
    browsers: dict[str, Browser], production: Production, stream: str, hosts: str, guests: str
) -> None:
    host = open_link(browsers[hosts], production.host_link(stream), "?quality=360&fps=15")
    host.evaluate("() => rostrum.room.own.open()")
    wait_for_state(host, "ready")
    fill(host, "#your-name", "Ann Lindqvist")
    fill(host, "#stream-title", "Friday kitchen")
    press_go_live(host)
    host.wait_for("() => rostrum.room.info?.title === 'Friday kitchen'", what="the stream has its title")
    assert host.evaluate("() => rostrum.room.info.hostName") == "Ann Lindqvist"
    host.evaluate("size => rostrum.room.edit({composition: size})", SIZE)

    # The plain address is not offered, because it would be refused.
    link = host.wait_for("() => document.getElementById('link').value", what="there is a link for viewers")
    assert "/watch/" in link and "#token=" in link
    assert "Anyone with this link can watch" in host.text("#share")
    first, second = (open_link(browsers[guests], link) for _ in range(2))
    for viewer in (first, second):
        wait_for_state(viewer, "live", seconds=25)
        wait_for_frames(viewer, 5)
    # The stream itself says who they are, which may come after its pictures.
    people = [viewer.wait_for("() => rostrum.room.you?.id", what="the viewer is somebody") for viewer in (first, second)]
    assert people[0] != people[1], "one link, two people"
    first.evaluate("() => { location.reload(); }")
    first.wait_for(
        "() => performance.getEntriesByType('navigation')[0].type === 'reload' && rostrum.room.you !== null",
        seconds=15, what="the viewer is back")
    assert first.evaluate("() => rostrum.room.you.id") == people[0], "a reload makes nobody another person"
    second.close()

    host.click("#copy-speaker")
    link = host.wait_for("() => globalThis.copied?.at(-1)", what="the speaker's link is copied")
    assert "/live/" in link
    speaker = open_link(browsers[guests], link, "?quality=360&fps=15")
    speaker.evaluate("() => rostrum.room.own.open()")
    wait_for_state(speaker, "ready")
    assert not is_seen(speaker, "#stream-title") and not is_seen(speaker, "#copy-speaker")
    fill(speaker, "#your-name", "Sue Okafor")
    assert speaker.text("#go") == "Join the stage"
    speaker.click("#go")
    wait_for_state(speaker, "live")
    host.wait_for(
        "() => document.querySelector('.tile[data-participant]')?.innerText.includes('Sue Okafor')", seconds=15,
        what="the speaker is on the host's stage, with her name")
    check_no_complaints(speaker)


def test_a_link_that_was_revoked_says_so(chromium: Browser, production: Production, stream: str) -> None:
    host = open_link(chromium, production.host_link(stream), "?source=test&quality=360&fps=15")
    press_go_live(host)
    link = host.wait_for("() => document.getElementById('link').value", what="there is a link for viewers")
    host.click("#revoke-links")
    host.click("dialog[data-name=revoke-links] [data-value=yes]")
    new = host.wait_for(
        "link => { const {value} = document.getElementById('link'); return value !== link && value; }", link,
        what="there is a new link for viewers")
    viewer = open_link(chromium, link)
    wait_for_state(viewer, "expired")
    assert "no longer valid" in viewer.text("#state")
    assert "host revoked your link" in viewer.text("#hint")
    wait_for_state(open_link(chromium, new), "live", seconds=25)


def test_a_guest_whose_link_was_revoked_does_not_come_back(
    chromium: Browser, production: Production, stream: str
) -> None:
    host = open_link(chromium, production.host_link(stream), "?source=test&quality=360&fps=15")
    press_go_live(host)
    host.click("#copy-speaker")
    link = host.wait_for("() => globalThis.copied?.at(-1)", what="the speaker's link is copied")
    guest, late = (open_link(chromium, link, "?source=test&quality=360&fps=15") for _ in range(2))
    for page in (guest, late):
        page.wait_for("() => rostrum.sync.isOpen && rostrum.room.you !== null", what="the guest follows")
    fill(guest, "#your-name", "Sue")
    guest.click("#go")
    wait_for_state(guest, "live")
    token = host.evaluate("() => rostrum.room.token()")
    headers = {"Authorization": f"Bearer {token}"}
    assert production.request("DELETE", f"/v1/streams/{stream}/links", headers=headers)[0] == 200
    # Who has not been on stage is told why not; who is there stays.
    fill(late, "#your-name", "Late")
    late.click("#go")
    wait_for_state(late, "expired")
    assert "The host revoked your link" in late.text("#notice")
    assert guest.evaluate("() => rostrum.room.state") == "live"
    # Once removed there is no way back, by a reload or by opening the link again.
    me = guest.evaluate("() => rostrum.room.you.id")
    assert production.request("DELETE", f"/v1/streams/{stream}/participants/{me}", headers=headers)[0] == 200
    wait_for_state(guest, "removed")
    guest.evaluate("() => { location.reload(); }")
    guest.wait_for(
        "() => performance.getEntriesByType('navigation')[0].type === 'reload' && globalThis.rostrum?.room.state === 'expired'",
        seconds=15, what="the page says that the link is no longer valid")
    assert "The host revoked your link" in guest.text("#notice")


#: Has what the server says of itself come too late, until it shall come.
SILENT = """() => {
    const original = fetch;
    globalThis.isSilent = true;
    globalThis.fetch = async (address, ...more) => {
        if (!isSilent || !String(address).endsWith('/v1/server')) return original(address, ...more);
        throw new DOMException('too late', 'TimeoutError');
    };
}"""


def test_whom_a_server_lets_watch_may_be_known_late(chromium: Browser, production: Production, stream: str) -> None:
    address, _, fragment = production.host_link(stream).partition("#")
    with chromium.open(f"{address}?source=test&quality=360&fps=15#{fragment}", before_load=SILENT) as host:
        host.wait_for("() => document.getElementById('share') !== null", what="the page has asked")
        host.evaluate("() => { isSilent = false; }")
        press_go_live(host)
        link = host.wait_for("() => document.getElementById('link').value", what="there is a link for viewers")
        assert "#token=" in link, "the plain address leads nowhere here"


def test_without_a_token_there_is_no_way_in(chromium: Browser, production: Production, stream: str) -> None:
    host = open_link(chromium, production.host_link(stream), "?source=test&quality=360&fps=15")
    press_go_live(host)
    with chromium.open(f"{production.origin}/watch/{stream}") as viewer:
        wait_for_state(viewer, "failed")
        assert "You need an invitation" in viewer.text("#hint")
        # Nobody is let in for asking again. Until the stream itself has said so, the socket may be tried more than once.
        viewer.wait_for("() => !rostrum.sync.isWanted", what="the server is left alone")
        tried = viewer.evaluate("() => rostrum.sync.interruptions")
        viewer.evaluate("() => new Promise(done => setTimeout(done, 2500))")
        assert viewer.evaluate("() => rostrum.sync.interruptions") == tried


#: Has the first link for each role end just now; `made` counts those for one.
ENDING = f"""() => {{
    ({CLIPBOARD})();
    const original = fetch, roles = [];
    globalThis.made = role => roles.filter(each => each === role).length;
    globalThis.fetch = async (address, options) => {{
        const response = await original(address, options);
        if (options?.method !== 'POST' || !String(address).endsWith('/links')) return response;
        const {{role}} = JSON.parse(options.body), answer = await response.json();
        if (!made(role)) answer.expiresAt = new Date(Date.now() - 1000).toISOString();
        roles.push(role);
        return new Response(JSON.stringify(answer), {{status: response.status, headers: response.headers}});
    }};
}}"""


def test_a_link_that_ends_soon_is_not_handed_out(chromium: Browser, production: Production, stream: str) -> None:
    address, _, fragment = production.host_link(stream).partition("#")
    host = chromium.open(f"{address}?source=test&quality=360&fps=15#{fragment}", DESKTOP, before_load=ENDING)
    with host:
        press_go_live(host)
        host.wait_for("() => made('viewer') > 1", what="there is another link for viewers")
        host.wait_for("() => document.getElementById('link').value.includes('#token=')", what="it can be copied")
        for count in (1, 2, 3):
            host.click("#copy-speaker")
            host.wait_for("count => copied.length >= count", count, what=f"the speaker's link is copied {count} times")
        assert host.evaluate("() => [made('viewer'), made('speaker')]") == [2, 2], "what lasts is made once"
