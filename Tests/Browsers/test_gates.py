"""Streams that take a tier: free seconds, the card, a token that lets in on the same connection, and no other way in."""

from __future__ import annotations

import io
import json
from pathlib import Path
from typing import Any

import pytest
from PIL import Image

from drivers import DESKTOP, PHONE, Browser, Page, wait_until
from feed import STORIES, Studio, open_feed, wait_for_story
from media import STATISTICS, go_live, wait_for_frames, wait_for_state
from server import Server
from test_player import App, address, app, wait_for, wait_for_pictures  # noqa: F401
from test_recordings import ask, grown, keeper  # noqa: F401

UNLOCK = "https://shop.example/gold"
OFFER = Path(__file__).parents[1] / "Fixtures" / "Offers" / "chrome-play.sdp"


@pytest.fixture(params=["chromium", "firefox"])
def browser(request: pytest.FixtureRequest) -> Browser:
    return request.getfixturevalue(request.param)


def set_gate(server: Server, stream: str, gate: dict[str, Any] | None) -> None:
    token = server.token(stream, "admin", "root")
    status, _, body = server.request(
        "PATCH", f"/v1/streams/{stream}", json.dumps({"gate": gate}).encode(),
        {"Content-Type": "application/json", "Authorization": f"Bearer {token}"})
    assert status == 200, (status, body)


def gate(seconds: int) -> dict[str, Any]:
    return {"tier": "gold", "freeSeconds": seconds, "unlock": UNLOCK}


def packets(page: Page) -> int:
    entries = page.evaluate(STATISTICS) or {}
    return sum(entry.get("packetsReceived", 0) for name, entry in entries.items() if name.startswith("inbound"))


def assert_nothing_comes(host: Page, page: Page) -> None:
    """Nothing, while the host's picture goes on for two seconds of film."""
    before = packets(page)
    sent = "async () => (await (" + STATISTICS + ")())?.['outbound-video']?.framesSent ?? 0"
    count = host.evaluate(sent)
    host.wait_for(f"async from => await ({sent})() > from + 50", count, what="the host sends on")
    # What was on its way when it was counted.
    assert packets(page) - before < 20


def test_who_lacks_the_tier_sees_the_free_seconds_the_card_and_then_the_stream(
    browser: Browser, chromium: Browser, server: Server, stream: str, logs: Path
) -> None:
    host = go_live(chromium, server, stream, source="test")
    # Long enough to be seen, however busy the machine is, and then soon over.
    set_gate(server, stream, gate(600))
    poor = server.token(stream, "viewer", "Bob")
    page = browser.open(f"{server.origin}/watch/{stream}#token={poor}", PHONE)
    wait_for_state(page, "live")
    page.wait_for("() => document.getElementById('free').checkVisibility()", what="it says what is free")
    assert "Free preview" in page.text("#free")
    page.screenshot(logs / f"gate-free-{browser.name}.png")
    # After six seconds without a picture the page would ask for another session: a busy studio makes none for so long.
    page.evaluate("() => { rostrum.connection.renew = () => {}; }")
    resource = page.evaluate("() => rostrum.connection.session.resource")
    set_gate(server, stream, gate(6))
    wait_for_state(page, "gated", seconds=20)
    assert page.evaluate("() => document.getElementById('unlock').href") == UNLOCK
    assert "gold" in page.text("#state")
    page.screenshot(logs / f"gate-card-phone-{browser.name}.png")
    page.resize(DESKTOP)
    page.screenshot(logs / f"gate-card-desktop-{browser.name}.png")
    assert_nothing_comes(host, page)
    # Coming back gives no second time, by this page or another player.
    with browser.open(f"{server.origin}/watch/{stream}#token={poor}") as again:
        wait_for_state(again, "gated")
        assert again.evaluate("() => rostrum.connection.session") is None
    # A new token comes, and the picture with it, on the connection that there is.
    rich = server.token(stream, "viewer", "Bob", tiers=("gold",))
    page.evaluate("token => { location.hash = `token=${token}`; }", rich)
    wait_for_state(page, "live")
    assert wait_for_frames(page).frames > 0
    assert page.evaluate("() => rostrum.connection.session.resource") == resource
    # Its host takes it away from everybody, and gives it back.
    set_gate(server, stream, {"tier": "platinum"})
    wait_for_state(page, "gated")
    set_gate(server, stream, None)
    wait_for_state(page, "live")


#: Keeps what the server answers about the gate from the page, once it `holds`, until `release()` is called.
LATE_ANSWER = """() => {
    const real = window.fetch, released = new Promise(resolve => { window.release = resolve; });
    window.fetch = async (resource, options) => {
        const response = await real(resource, options);
        if (!window.holds || !String(resource).endsWith('/gate')) return response;
        window.held = true;
        await released;
        return response;
    };
}"""


def test_an_answer_that_comes_late_shuts_nobody_out(chromium: Browser, server: Server, stream: str) -> None:
    go_live(chromium, server, stream, source="test")
    set_gate(server, stream, gate(600))
    poor = server.token(stream, "viewer", "Bob")
    page = chromium.open(f"{server.origin}/watch/{stream}#token={poor}", before_load=LATE_ANSWER)
    wait_for_state(page, "live")
    page.wait_for("() => document.getElementById('free').checkVisibility()", what="it says what is free")
    page.evaluate("() => { window.holds = true; }")
    set_gate(server, stream, gate(0))
    page.wait_for("() => window.held", what="the page has asked how it stands")
    set_gate(server, stream, None)
    page.wait_for("() => !rostrum.room.info.gate", what="the page knows that there is no gate")
    page.evaluate("() => window.release()")
    wait_for_frames(page)
    wait_for_state(page, "live")


#: Gives a page another token, and keeps whose gates it opened with it. Answers with the session's address.
SHOW_TOKEN = """token => {
    window.shown = [];
    const real = window.fetch;
    window.fetch = async (address, options) => {
        const response = await real(address, options);
        if (response.ok && String(address).endsWith('/gate') && options?.method === 'POST') shown.push(String(address));
        return response;
    };
    location.hash = `token=${token}`;
    return rostrum.connection.session?.resource;
}"""


def test_a_gated_story_shows_its_card_and_the_next_one_plays(
    browser: Browser, chromium: Browser, server: Server, stream: str, logs: Path
) -> None:
    studio = Studio(chromium, server, stream, [STORIES[0], STORIES[4]])
    shut, open_ = studio.stories
    set_gate(server, shut, gate(0))
    poor = server.token("*", "viewer", "Bob")
    page = open_feed(browser, server, path=f"/?stream={open_}#token={poor}")
    wait_for_story(page, open_)
    page.evaluate("stream => { rostrum.feed.go(stream); }", shut)
    page.wait_for("() => rostrum.cube.frontSide.root.querySelector('.gate-card').checkVisibility()", what="the card is shown")
    link = "() => rostrum.cube.frontSide.root.querySelector('.gate-card a').href"
    assert page.evaluate(link) == UNLOCK
    page.screenshot(logs / f"gate-story-phone-{browser.name}.png")
    assert not page.evaluate("() => rostrum.cube.frontSide.isUncovered")
    page.evaluate("stream => { rostrum.feed.go(stream); }", open_)
    wait_for_story(page, open_)
    assert not page.evaluate("() => rostrum.cube.frontSide.root.querySelector('.gate-card').checkVisibility()")
    page.evaluate("stream => { rostrum.feed.go(stream); }", shut)
    page.wait_for("() => rostrum.cube.frontSide.root.querySelector('.gate-card').checkVisibility()", what="the card is back")
    page.resize(DESKTOP)
    page.screenshot(logs / f"gate-story-desktop-{browser.name}.png")
    # A page that gets no processor for some seconds gives its session up, and opens the next: before, or just after.
    page.wait_for("() => rostrum.connection.session?.resource", what="the feed has a session")
    resource = page.evaluate(SHOW_TOKEN, server.token("*", "viewer", "Bob", tiers=("gold",)))
    page.wait_for("() => shown.length", what="the token was shown to the server")
    assert page.evaluate("() => shown") == [f"{resource}/gate"], "by the session that there was"
    wait_for_story(page, shut)


def test_the_player_of_other_sites_shows_the_card_and_takes_a_token(
    browser: Browser, chromium: Browser, server: Server, stream: str, app: App, logs: Path  # noqa: F811
) -> None:
    go_live(chromium, server, stream, source="test")
    set_gate(server, stream, gate(600))
    page = app.open(browser, server, {
        "src": address(server, stream), "token": server.token(stream, "viewer", "Bob"), "controls": True, "autoplay": True,
        "muted": True,
    })
    wait_for(page, "live")
    page.wait_for("() => p0.shadowRoot.querySelector('.free').checkVisibility()", what="it says what is free")
    assert page.evaluate("() => [p0.gate.state, p0.gate.tier, p0.gate.unlock]") == ["free", "gold", UNLOCK]
    page.screenshot(logs / f"gate-player-free-{browser.name}.png")
    set_gate(server, stream, gate(5))
    wait_for(page, "gated")
    assert page.evaluate("() => p0.shadowRoot.querySelector('[part=unlock]').href") == UNLOCK
    page.screenshot(logs / f"gate-player-{browser.name}.png")
    page.evaluate("token => { p0.token = token; }", server.token(stream, "viewer", "Bob", tiers=("gold",)))
    wait_for(page, "live")
    wait_for_pictures(page)
    assert page.evaluate("() => p0.gate") is None
    said = page.evaluate("() => heard.filter(([, type]) => type === 'statechange').map(([, , state]) => state)")
    assert said[-3:] == ["live", "gated", "live"], "it was never away"


def test_the_player_speaks_of_unlocking_only_where_there_is_a_link(chromium: Browser, server: Server) -> None:
    with chromium.open(server.origin + "/healthz") as page:
        said = page.evaluate(
            """async unlock => {
                const {Middle} = await import('/assets/player/middle.js');
                const {STRINGS} = await import('/assets/player/strings.js');
                const nothing = () => {};
                const middle = new Middle({play: nothing, turnSoundOn: nothing, retry: nothing, playRecording: nothing});
                const look = gate => {
                    middle.update({
                        playback: {recording: null, gate, isPaused: false, stream: {info: null}}, state: 'gated',
                        problem: null, strings: STRINGS, offersSound: false,
                    });
                    const [title, hint] = middle.element.querySelectorAll('[role=status] p');
                    const link = middle.element.querySelector('.unlock');
                    return [title.textContent, hint.textContent, link.hidden];
                };
                return [look({tier: 'gold', unlock}), look({tier: 'gold', unlock: null}), look({tier: 'gold', unlock})];
            }""", UNLOCK)
    title = "This stream requires the “gold” tier"
    linked = [title, "Once you unlock it, it plays here automatically.", False]
    assert said == [linked, [title, "To watch, you need an invitation that includes this tier.", True], linked]


def test_nothing_gets_out_by_another_way(chromium: Browser, keeper: Server) -> None:  # noqa: F811
    host = go_live(chromium, keeper, "show", source="test")
    assert ask(keeper, "POST", "/v1/streams/show/recording", "show", "admin")[0] == 201
    entry = grown(keeper, "show", 1)
    set_gate(keeper, "show", gate(0))
    bearer = [
        {"Authorization": f"Bearer {keeper.token('show', 'viewer', name, tiers=tiers)}"}
        for name, tiers in (("Bob", ()), ("Eve", ("silver", "Gold")), ("Vip", ("gold",)))
    ]
    # Hosts and speakers of other streams are nobody here.
    bearer.insert(0, {"Authorization": f"Bearer {keeper.token('*', 'host', 'Fay')}"})
    bearer.insert(0, {"Authorization": f"Bearer {keeper.token('*', 'speaker', 'Sue')}"})
    outsiders: list[dict[str, str]] = [{}, *bearer[:-1]]
    member = bearer[-1]
    offer = OFFER.read_bytes()
    sdp = {"Content-Type": "application/sdp"}
    wait_until(lambda: keeper.json("/v1/streams/show")["preview"], 15, "there is a preview")
    for who in outsiders:
        for method, path, body, headers in (
            ("POST", "/whep/show?wait=5", offer, sdp), ("GET", "/hls/show/index.m3u8", None, {}),
            ("GET", "/hls/show/media.m3u8", None, {}), ("GET", entry["url"], None, {}),
            ("GET", entry["url"], None, {"Range": "bytes=0-99"}),
        ):
            status, _, answer = keeper.request(method, path, body, {**headers, **who})
            assert (status, json.loads(answer)["rule"]) == (403, "gated"), (path, who)
            assert json.loads(answer)["unlock"] == UNLOCK
        for kind in ("webp", "jpg"):
            _, headers, picture = keeper.request("GET", f"/v1/streams/show/preview.{kind}", headers=who)
            assert max(Image.open(io.BytesIO(picture)).size) <= 32 and "public" not in headers["cache-control"]
    assert keeper.request("POST", "/whep/show?wait=5", offer, {**sdp, **member})[0] == 201
    assert keeper.request("GET", entry["url"], headers=member)[0] == 200
    _, _, picture = keeper.request("GET", "/v1/streams/show/preview.webp", headers=member)
    assert max(Image.open(io.BytesIO(picture)).size) > 200
    # A guest's name is anybody's: it comes with no tier, whatever is asked for.
    status, _, answer = keeper.request(
        "POST", "/v1/streams/show/tokens", json.dumps({"name": "Gus"}).encode(), {"Content-Type": "application/json"})
    guest = {"Authorization": f"Bearer {json.loads(answer)['token']}"}
    assert keeper.request("POST", "/whep/show?wait=5", offer, {**sdp, **guest})[0] == 403
    assert ask(keeper, "DELETE", "/v1/streams/show/recording", "show", "admin")[0] == 200
    assert host.evaluate("() => document.body.dataset.state") == "live"
