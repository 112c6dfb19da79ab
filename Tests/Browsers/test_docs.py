"""The documentation that the server serves: all of the API is drawn, found and led to; examples of the guide run."""

from __future__ import annotations

import hashlib
import hmac
import json
import os
import re
import shutil
import subprocess
import time
import urllib.error
import urllib.request
from collections.abc import Iterator
from pathlib import Path

import pytest

from drivers import DESKTOP, PHONE, Browser, Page, wait_until
from drivers.patience import patient
from drivers.process import Process
from media import check_no_complaints
from server import ROOT, Server, binary, free_port
from test_links import KEY, Production
from test_pages import assert_fits

DOCUMENTS = ROOT / "Sources" / "Gateway" / "OpenAPI"
EXAMPLES = ROOT / "Sources" / "Gateway" / "Web" / "assets" / "docs" / "examples"
API = json.loads((DOCUMENTS / "openapi.json").read_text())
MESSAGES = json.loads((DOCUMENTS / "asyncapi.json").read_text())
GROUPS = [tag["name"] for tag in API["tags"]]


def open_docs(browser: Browser, server: Server, place: str = "", viewport=DESKTOP) -> Page:
    page = browser.open(server.origin + "/docs" + (f"#{place}" if place else ""), viewport)
    page.wait_for("() => document.body.dataset.state === 'ready'", seconds=20, what="the page is drawn")
    return page


def go(page: Page, place: str) -> None:
    page.evaluate("place => { location.hash = place; }", place)
    page.wait_for(
        "place => !document.getElementById('reference').hidden && document.getElementById(place)?.isConnected !== false",
        place, what=f"{place} is shown")


def shown(page: Page, kind: str) -> list[str]:
    return page.evaluate("kind => [...document.querySelectorAll(`#reference .${kind}`)].map(e => e.id)", kind)


def check_hosts(page: Page, server: Server) -> None:
    """Nothing comes from anywhere else."""
    addresses = page.evaluate("() => performance.getEntriesByType('resource').map(entry => entry.name)")
    assert addresses and all(address.startswith(server.origin + "/") for address in addresses), addresses


def test_draws_all_of_the_api(browsers: dict[str, Browser], server: Server) -> None:
    wanted = {
        f"api/{operation['operationId']}": operation
        for item in API["paths"].values() for method, operation in item.items() if method != "parameters"
    }
    for browser in browsers.values():
        with open_docs(browser, server) as page:
            seen: list[str] = []
            for group in GROUPS:
                go(page, f"group/{group}")
                page.wait_for("group => document.querySelector('#reference h1').textContent === group", group, what=group)
                seen += shown(page, "operation")
                # Each with a line to copy, and with an example where an answer has one.
                counts = page.evaluate(
                    """() => [...document.querySelectorAll('#reference .operation')].map(one => [
                        one.id, one.querySelector('.code code').textContent,
                        one.querySelectorAll('.answers > details').length, one.querySelectorAll('.code').length])""")
                for name, line, answers, blocks in counts:
                    assert line.startswith("curl ") and server.origin in line, (name, line)
                    assert answers == len(wanted[name]["responses"]), name
                    assert blocks > (1 if '"example"' in json.dumps(wanted[name]["responses"]) else 0), name
                marks = page.evaluate(
                    """() => [...document.querySelectorAll('#reference .operation')].map(one => [
                        one.id, [...one.querySelectorAll('h4 small')].map(mark => mark.textContent.trim())])""")
                for name, words in marks:
                    body = wanted[name].get("requestBody")
                    assert words == (["optional"] if body and not body.get("required") else []), name
            assert sorted(seen) == sorted(wanted)
            check_hosts(page, server)
            check_no_complaints(page)


def test_draws_all_messages(chromium: Browser, server: Server) -> None:
    with open_docs(chromium, server) as page:
        for channel, described in MESSAGES["channels"].items():
            go(page, f"socket/{channel}")
            page.wait_for("title => document.querySelector('#reference h1').textContent === title",
                          described["title"], what=channel)
            assert sorted(shown(page, "message")) == sorted(f"message/{channel}/{name}" for name in described["messages"])
        go(page, "webhook/receiveEvent")
        assert shown(page, "operation") == [f"webhook/{item['post']['operationId']}" for item in API["webhooks"].values()]
        assert "stream.live" in page.evaluate("() => document.querySelector('#reference .code').textContent")
        check_no_complaints(page)


def test_opens_every_member(chromium: Browser, server: Server) -> None:
    """Members within members are drawn when they are opened; references lead somewhere, in both documents."""
    with open_docs(chromium, server) as page:
        places = [f"group/{name}" for name in GROUPS] + [f"socket/{name}" for name in MESSAGES["channels"]]
        for place in places:
            go(page, place)
            opened = page.evaluate(
                """async () => {
                    let count = 0;
                    // Some schemas hold themselves.
                    for (let depth = 0; depth < 6; depth++) {
                        const closed = [...document.querySelectorAll('#reference details:not([open])')];
                        // What is in them is drawn when they tell that they are open, in a turn of their own.
                        await Promise.all(closed.map(one => new Promise(drawn => {
                            one.addEventListener('toggle', drawn, {once: true});
                            one.open = true;
                        })));
                        count += closed.length;
                    }
                    return count;
                }""", seconds=60)
            assert opened > 0, place
            assert page.evaluate("() => document.querySelector('#reference').textContent.includes('undefined')") is False
            assert page.evaluate("() => document.documentElement.scrollWidth <= innerWidth"), place
        check_no_complaints(page)


def test_finds_what_is_looked_for(browsers: dict[str, Browser], server: Server) -> None:
    for browser in browsers.values():
        with open_docs(browser, server) as page:
            for query, first in [
                ("create a stream", "#api/createStream"), ("/hands raise", "#api/raiseHand"),
                ("idempotency retries", "#errors"),
                ("webhooks", "#webhooks"), ("slow-mode", "#message/stream/refused"), ("uplink", "#message/stageControl/uplink"),
            ]:
                page.evaluate(
                    """query => {
                        const field = document.getElementById('search');
                        field.value = query;
                        field.dispatchEvent(new Event('input'));
                    }""", query)
                targets = page.evaluate("() => [...document.querySelectorAll('#results a')].map(a => a.getAttribute('href'))")
                assert first in targets[:3], (query, targets)
            page.evaluate("() => { document.getElementById('search').value = ''; }")


def test_is_led_by_the_keyboard(chromium: Browser, server: Server) -> None:
    with open_docs(chromium, server) as page:
        page.press("/")
        assert page.evaluate("() => document.activeElement.id") == "search"
        for letter in "raise":
            page.press(letter)
        page.wait_for("() => document.querySelectorAll('#results [role=option]').length > 0", what="results")
        page.press("ArrowDown")
        assert page.evaluate(
            "() => document.getElementById(document.getElementById('search').getAttribute('aria-activedescendant')).ariaSelected") == "true"
        page.press("Enter")
        page.wait_for("() => location.hash === '#api/raiseHand'", what="the first result")
        page.wait_for("() => document.activeElement.textContent.startsWith('Raise')", what="its heading has the focus")
        page.press("/")
        page.press("x")
        page.press("Escape")
        assert page.evaluate("() => document.getElementById('search').value") == ""
        assert page.evaluate("() => document.getElementById('results').hidden")
        # Tabs go by arrows.
        page.evaluate("() => { location.hash = 'tokens'; }")
        page.wait_for("() => document.activeElement.textContent.startsWith('Tokens')", what="the heading has the focus")
        page.evaluate("() => document.querySelector('[role=tab]').focus()")
        page.press("ArrowRight")
        assert page.evaluate("() => document.activeElement.textContent") == "JavaScript"
        assert page.evaluate("() => [...document.querySelectorAll('#guide [role=tabpanel]')].filter(e => !e.hidden).length") == 1


def test_leads_to_every_place(chromium: Browser, server: Server) -> None:
    """An address with a place shows it at once; links within the guide lead somewhere."""
    for place in ("api/createStream", "message/feed/watch", "tokens"):
        with open_docs(chromium, server, place) as page:
            top = page.evaluate("place => document.getElementById(place).getBoundingClientRect().top", place)
            assert -2 <= top <= DESKTOP.height / 2, (place, top)
    with open_docs(chromium, server) as page:
        targets = page.evaluate("() => [...document.querySelectorAll('#guide a[href^=\"#\"]')].map(a => a.getAttribute('href').slice(1))")
        for target in dict.fromkeys(targets):
            page.evaluate("target => { location.hash = target; }", target)
            page.wait_for(
                "target => target.startsWith('socket/') ? !document.getElementById('reference').hidden : document.getElementById(target) !== null",
                target, what=f"#{target} is there")


@pytest.mark.parametrize("viewport", [PHONE, DESKTOP], ids=["phone", "desktop"])
def test_fits(browsers: dict[str, Browser], server: Server, viewport) -> None:
    for browser in browsers.values():
        with open_docs(browser, server, viewport=viewport) as page:
            for place in ("tokens", "api/editStream", "socket/stream"):
                page.evaluate("place => { location.hash = place; }", place)
                # The heading of the place before had the focus, too; a channel has its heading on its page, not in a part.
                page.wait_for(
                    """place => {
                        const {activeElement} = document, part = document.getElementById(place);
                        return activeElement.matches('h1, h2, h3')
                            && (part ? part.contains(activeElement) : activeElement.matches('#reference > h1'));
                    }""", place, what=f"{place} is shown")
                assert_fits(page)
            if viewport == PHONE:
                page.click("#menu")
                assert_fits(page)
                assert page.evaluate("() => document.getElementById('contents').checkVisibility()")
                page.press("Escape")
                assert not page.evaluate("() => document.getElementById('contents').checkVisibility()")
            check_no_complaints(page)


def test_is_linked_to_from_the_start(chromium: Browser, server: Server) -> None:
    with chromium.open(server.origin + "/") as page:
        assert page.evaluate("() => document.querySelector('#menu a[href=\"/docs\"]') !== null")


# The guide's examples.


@pytest.fixture
def production(logs: Path, tmp_path: Path) -> Iterator[Production]:
    server = Production(logs / "server-docs.log", "--data", str(tmp_path / "data"))
    yield server
    server.stop()


def check_token(server: Server, token: str) -> None:
    """It is the host's of a stream: with it one is made."""
    headers = {"Authorization": f"Bearer {token.strip()}"}
    status, _, answer = server.request("POST", "/v1/streams", b"", headers)
    assert status == 201, answer
    stream = json.loads(answer)
    assert (stream["id"], stream["host"], stream["hostName"]) == ("talk", "ann", "Ann")


@pytest.mark.parametrize(("program", "file"), [
    (["python3"], "make_token.py"), (["go", "run"], "make_token.go"), (["php"], "make_token.php"),
    (["node"], "make-token.mjs"), (["java"], "MakeToken.java"),
], ids=["python", "go", "php", "node", "java"])
def test_a_token_is_made(production: Production, program: list[str], file: str, tmp_path: Path) -> None:
    if program[0] in ("node", "java") and shutil.which(program[0]) is None:
        pytest.skip(f"{program[0]} is not among the packages of the tests; JavaScript is run in a browser")
    made = subprocess.run(
        [*program, str(EXAMPLES / file)], env={**os.environ, **KEY, "GOCACHE": str(tmp_path / "go")}, capture_output=True, text=True,
        timeout=patient(60))
    assert made.returncode == 0, made.stderr
    check_token(production, made.stdout)


def test_a_token_is_made_in_javascript(chromium: Browser, production: Production) -> None:
    with chromium.open(production.origin + "/docs") as page:
        token = page.evaluate(
            """async (keyID, secret) => {
                const { makeToken } = await import('/assets/docs/examples/make-token.mjs');
                return makeToken({keyID, secret}, {sub: 'ann', name: 'Ann', role: 'host', stream: 'talk'});
            }""", KEY["ROSTRUM_KEY_ID"], KEY["ROSTRUM_SECRET"])
    check_token(production, token)


def test_a_first_stream_is_made_as_the_guide_says(chromium: Browser, own_server: Server) -> None:
    if shutil.which("curl") is None:
        pytest.skip("curl is not among the packages of the tests")
    with open_docs(chromium, own_server) as page:
        commands = page.evaluate("() => document.querySelector('#first-stream pre').textContent")
    done = subprocess.run(["bash", "-ec", commands], capture_output=True, text=True, timeout=patient(20))
    assert done.returncode == 0, done.stderr
    stream = own_server.json("/v1/streams/talk")
    assert (stream["state"], stream["title"], stream["hostName"]) == ("live", "Evening talk", "Ann")


def test_the_module_of_the_guide_asks_this_server_from_any_page(chromium: Browser, server: Server) -> None:
    with open_docs(chromium, server) as page:
        example = page.evaluate("() => document.querySelector('#feed pre').textContent")
    assert f'import {{ StoryFeed }} from "{server.origin}/assets/v1/story-feed.js";' in example
    assert f'new StoryFeed({{ origin: "{server.origin}" }})' in example


def test_the_list_of_a_search_goes_when_the_focus_does(chromium: Browser, server: Server) -> None:
    with chromium.open(server.origin + "/healthz") as page:
        page.evaluate("""async () => {
            const {Finder} = await import('/assets/docs/search.js');
            document.body.innerHTML = `<div><input id="field"><ul id="results" hidden></ul><p id="status"></p></div>
                <button id="next">Next</button>`;
            const [field, list, status] = ['field', 'results', 'status'].map(id => document.getElementById(id));
            new Finder(field, list, status).fill([{title: 'Tokens', kind: 'Guide', text: '', target: '#tokens'}]);
            field.value = 'tok';
            field.focus();
            field.dispatchEvent(new Event('input'));
        }""")
        page.wait_for("() => document.querySelectorAll('#results [role=option]').length === 1", what="it is found")
        page.press("ArrowDown")
        page.wait_for("() => field.getAttribute('aria-activedescendant') === 'result-0'", what="it is marked")
        page.press("Tab")
        page.wait_for("() => document.activeElement.id === 'next'", what="the focus goes on")
        assert page.evaluate("() => [results.hidden, field.ariaExpanded, field.getAttribute('aria-activedescendant')]") == [
            True, "false", None]


def test_an_address_that_is_encoded_badly_shows_the_guide(chromium: Browser, server: Server) -> None:
    with open_docs(chromium, server, "%E0%A4%A") as page:
        assert page.evaluate("() => [guide.hidden, reference.hidden, document.getElementById('toast').textContent]") == [
            False, True, ""]
        # A link within the page goes on working.
        go(page, "group/Streams")
        check_no_complaints(page)


def test_a_stream_is_followed_through_an_interruption(chromium: Browser, own_server: Server) -> None:
    headers = {"Authorization": f"Bearer {own_server.token('talk')}", "Content-Type": "application/json"}
    assert own_server.request("POST", "/v1/streams", b'{"title":"One"}', headers)[0] == 201
    with open_docs(chromium, own_server) as page:
        page.evaluate(
            """async token => {
                const { follow } = await import('/assets/docs/examples/follow.js');
                const Socket = globalThis.WebSocket;
                globalThis.WebSocket = class extends Socket {
                    constructor(...all) { super(...all); globalThis.last = this; }
                };
                globalThis.stop = follow(location.origin, 'talk', token, known => { globalThis.known = known; });
            }""", own_server.token("talk", "viewer", "Bob"))
        page.wait_for("() => globalThis.known?.stream.title === 'One'", what="the snapshot")
        page.evaluate("() => last.close()")
        assert own_server.request("PATCH", "/v1/streams/talk", b'{"title":"Two"}', headers)[0] == 200
        page.wait_for("() => known.stream.title === 'Two' && known.stream.host === 'ann'", what="what was missed")
        page.evaluate("() => stop()")


def test_an_app_in_swift_follows_and_writes(chromium: Browser, own_server: Server, tmp_path: Path) -> None:
    """What is shown is what is compiled, against the library as it was built, and it writes what it says."""
    headers = {"Authorization": f"Bearer {own_server.token('talk')}", "Content-Type": "application/json"}
    assert own_server.request("POST", "/v1/streams", b'{"title":"Evening talk"}', headers)[0] == 201
    assert own_server.request("POST", "/v1/streams/talk/live", b"", headers)[0] == 200
    with open_docs(chromium, own_server, "swift") as page:
        package, example = page.evaluate("() => [...document.querySelectorAll('#swift pre')].map(each => each.textContent)")
    assert example == (EXAMPLES / "Follow.swift").read_text().rstrip()
    # The product has this name.
    product = re.search(r'product\(name: "(\w+)", package: "rostrum"\)', package)
    assert product and f'.library(name: "{product[1]}"' in (ROOT / "Package.swift").read_text()
    build = binary().resolve().parent
    # Of a whole module there is one file, else one for each of its sources.
    objects = sorted((build / "RostrumClient.build").glob("*.o")) or [build / "Modules/RostrumClient.o"]
    program = tmp_path / "follow"
    compiled = subprocess.run(
        ["swiftc", "-swift-version", "6", "-warnings-as-errors", "-parse-as-library", "-I", build / "Modules",
         EXAMPLES / "Follow.swift", *objects, "-o", program], capture_output=True, text=True)
    assert compiled.returncode == 0, compiled.stderr
    # By lines, as on a terminal.
    app = Process(["stdbuf", "-oL", str(program), own_server.origin, "talk"], tmp_path / "follow.log", "^we are Zoe$", 20)
    try:
        comments = own_server.json("/v1/streams/talk/comments")["comments"]
        assert [(each["name"], each["text"]) for each in comments] == [("Zoe", "Good evening!")]
    finally:
        app.stop()


def deliver(port: int, body: bytes, sent: int, secret: str, signed: bytes | None = None) -> int:
    """Posts an event as the server does; somebody else signs with another secret, or something else.

    Returns the status of the answer.
    """
    code = hmac.new(secret.encode(), f"{sent}.".encode() + (signed or body), hashlib.sha256).hexdigest()
    request = urllib.request.Request(
        f"http://127.0.0.1:{port}/", body, {"Rostrum-Signature": f"t={sent},v1={code}"}, method="POST")
    try:
        with urllib.request.urlopen(request, timeout=patient(10)) as answer:
            return answer.status
    except urllib.error.HTTPError as error:
        return error.code


def test_webhooks_are_received_and_forged_ones_refused(logs: Path) -> None:
    port, secret = free_port(), "what webhooks are signed with"
    receiver = Process(
        ["python3", str(EXAMPLES / "receive_webhooks.py"), str(port)], logs / "receiver-docs.log", "^listening", 10,
        {"WEBHOOK_SECRET": secret})
    try:
        server = Server(
            logs / "server-docs-webhooks.log", "--webhook", f"http://127.0.0.1:{port}/", "--webhook-secret", secret)
        headers = {"Authorization": f"Bearer {server.token('talk')}", "Content-Type": "application/json"}
        assert server.request("POST", "/v1/streams", b"{}", headers)[0] == 201
        assert server.request("POST", "/v1/streams/talk/live", b"", headers)[0] == 200
        wait_until(lambda: "stream.live talk" in receiver.log.read_text(), 20, "the events have come")
        told = [line for line in receiver.log.read_text().splitlines() if line.startswith("stream.")]
        assert told == ["stream.created talk", "stream.live talk"]
        assert server.stop() == 0
        event = json.dumps({"id": "1", "type": "stream.ended", "stream": "talk"}).encode()
        now = int(time.time())
        assert deliver(port, event, now, secret) == 204
        assert deliver(port, event, now, "another secret") == 401
        assert deliver(port, event, now - 1_000, secret) == 401
        assert deliver(port, event + b" ", now, secret, signed=event) == 401
        # A thread of ours writes the log, a moment after the receiver has answered.
        wait_until(lambda: receiver.log.read_text().splitlines()[-1] == "stream.ended talk", 10, "the event is taken")
    finally:
        receiver.stop()
