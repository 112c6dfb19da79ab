"""Forms that keep what was typed until it is saved, and answers that keep the place of who gave them."""

from __future__ import annotations

import pytest

from drivers import Browser, Page
from server import Server
from test_modules import FAKE_SOCKETS
from test_page_widgets import AUDIENCE, NOT_THERE, UNHEARD

REFUSAL = "The server does not take that."

#: Requests that fail twice before they are granted: without a network, and by the server; `sent` are their bodies.
FAILURES = """async () => {
    const {SignallingError} = await import('/assets/session.js');
    const failures = [new TypeError('there is no network'), new SignallingError(422, 'The server does not take that.', null)];
    globalThis.sent = [];
    globalThis.request = async body => {
        sent.push(body);
        if (failures.length) throw failures.shift();
    };
}"""
#: Writes into the open form, and keeps the field in `field`.
WRITE = """(name, text) => {
    globalThis.field = document.querySelector(`dialog [name=${name}]`);
    field.value = text;
}"""
SAVE = "() => document.querySelector('dialog .actions button').click()"


@pytest.fixture
def page(chromium: Browser, server: Server):
    with chromium.open(server.origin + "/healthz", before_load=FAKE_SOCKETS) as page:
        page.evaluate(UNHEARD)
        page.evaluate(FAILURES)
        yield page


def save_in_the_end(page: Page, text: str) -> None:
    """Saves until that succeeds; the form says each time why it did not, and has what was typed."""
    for reason in (NOT_THERE, REFUSAL):
        page.evaluate(SAVE)
        page.wait_for(
            "reason => document.querySelector('dialog[open] [role=alert]')?.textContent === reason", reason,
            what="why it was not saved is said")
        assert page.evaluate("() => [document.querySelector('dialog').contains(field), field.value]") == [True, text]
    page.evaluate(SAVE)
    page.wait_for("() => sent.length === 3 && !document.querySelector('dialog')", what="it is saved")
    assert page.evaluate("() => unheard") == []


@pytest.mark.parametrize(
    ("module", "maker", "request_name", "field"),
    [
        ("talk", "makeAsking", "openPoll", "question"), ("card", "makeShowing", "showCard", "title"),
        ("gift-catalogue", "makeCatalogue", "editInteraction", "currency"),
    ],
    ids=["poll", "card", "gifts"])
def test_what_is_asked_of_the_audience_is_typed_once(
    page: Page, module: str, maker: str, request_name: str, field: str
) -> None:
    page.evaluate(AUDIENCE, {"id": "ann", "role": "host", "isModerator": True, "mayModerate": True})
    page.evaluate("""async (module, maker, name) => {
        api[name] = request;
        const make = (await import(`/assets/${module}.js`))[maker];
        make(part).root.click();
    }""", module, maker, request_name)
    page.evaluate(WRITE, field, "COINS")
    save_in_the_end(page, "COINS")
    assert page.evaluate("() => said") == []


def test_a_gift_that_cannot_be_is_mended_in_the_form(page: Page) -> None:
    page.evaluate(AUDIENCE, {"id": "ann", "role": "host", "isModerator": True, "mayModerate": True})
    page.evaluate("""async () => {
        api.editInteraction = async body => void sent.push(body);
        const {makeCatalogue} = await import('/assets/gift-catalogue.js');
        makeCatalogue(part).root.click();
    }""")
    page.evaluate(WRITE, "picture", "javascript:alert(1)")
    page.evaluate(SAVE)
    page.wait_for(
        "() => document.querySelector('dialog[open] [role=alert]')?.textContent.includes('picture for Rose')", what="why not")
    assert page.evaluate("() => [document.querySelector('dialog').contains(field), sent.length]") == [True, 0]
    page.evaluate("() => { field.value = '🌷'; }")
    page.evaluate(SAVE)
    page.wait_for("() => sent.length === 1", what="it is saved")
    assert page.evaluate("() => sent[0].gifts.kinds[0].picture") == "🌷"


@pytest.mark.parametrize(("action", "request_name"), [("editStream", "edit"), ("openBackstage", "create")])
def test_settings_of_a_stream_are_typed_once(page: Page, action: str, request_name: str) -> None:
    page.evaluate("""async (action, name) => {
        const settings = await import('/assets/widgets/stream-settings.js');
        const wishes = {title: null, programme: 'composed'};
        const room = {
            info: null, isOpen: false, wishes, title: 'talk', audience: {settings: null}, api: {},
            attempt: action => action(), enterStage: async () => {}, [name]: request,
        };
        settings[action](room);
    }""", action, request_name)
    page.evaluate(WRITE, "title", "Tea at five")
    save_in_the_end(page, "Tea at five")
    assert page.evaluate("() => sent.map(({title}) => title)") == ["Tea at five"] * 3


def test_a_stream_that_could_not_be_made_leaves_no_wishes(page: Page) -> None:
    """What is deleted in the form afterwards would be wished for all the same."""
    assert page.evaluate("""async () => {
        const {Room} = await import('/assets/room.js');
        const room = new Room('audience'), refused = [];
        room.api.create = room.api.edit = request;
        await room.create({title: 'Tea at five'}).catch(({message}) => refused.push(message));
        await room.edit({title: 'Tea at six'}).catch(({message}) => refused.push(message));
        return [refused, sent.map(({title}) => title), room.wishes.title];
    }""") == [["there is no network", REFUSAL], ["Tea at five", "Tea at six"], None]


def test_whoever_answers_a_poll_with_a_key_hears_of_it_and_goes_on_from_there(page: Page) -> None:
    page.evaluate(AUDIENCE, {})
    assert page.evaluate("""async () => {
        const {makePoll} = await import('/assets/poll.js');
        const poll = {
            number: 1, question: 'Tea?', options: [{text: 'Yes'}, {text: 'No'}], multiple: false, results: 'live',
            voters: 0, quiz: false, openedAt: '2030-01-01T00:00:00Z', closesAt: null, closedAt: null,
        };
        api.poll = async () => ({...poll, vote: null});
        api.vote = async () => ({...poll, voters: 1});
        const {root} = makePoll(part), option = () => root.querySelector('.option');
        document.body.append(root);
        hear({type: 'interaction', poll});
        await turns();
        option().focus();
        const before = document.activeElement === option();
        option().click();
        await turns();
        const {activeElement: place} = document;
        return [before, option().disabled, root.contains(place), place.textContent];
    }""") == [True, True, True, "1 answer"]


def test_a_capture_that_failed_says_why_and_can_be_made_again(page: Page) -> None:
    page.evaluate("""async () => {
        document.body.innerHTML = '<dialog id="dossier"></dialog>';
        globalThis.captures = [];
        const dossier = {
            state: 'live', purpose: 'publish', since: '2030-01-01T00:00:00Z', localAddresses: [], events: [], eventsDropped: 0,
            phases: {answer: null, check: null, dtls: null, media: null}, loss: null, quality: null, offer: '', answer: '',
        };
        globalThis.isKnown = true;
        globalThis.fetch = async address => {
            const path = String(address);
            if (path.includes('/capture')) return new Promise((answer, fail) => captures.push({path, answer, fail}));
            if (!path.startsWith('/v1/sessions/')) return new Response('{}');
            if (!isKnown) return new Response('{"detail": "There is none."}', {status: 404});
            return new Response(JSON.stringify({...dossier, id: path.split('/').at(-1)}));
        };
        sessionStorage.setItem('rostrum:token:admin', 'a token');
        const {DossierPanel} = await import('/assets/admin/dossier.js');
        globalThis.told = [];
        globalThis.panel = new DossierPanel(async () => {}, text => told.push(text));
        await panel.open('one');
        globalThis.button = [...document.querySelectorAll('#dossier header button')].find(each => each.textContent === 'Capture');
        globalThis.look = () => [button.textContent, button.ariaDisabled, button.hidden, document.activeElement === button];
    }""")
    assert page.evaluate("""async () => {
        button.focus();
        button.click();
        button.click();
        await turns();
        const seen = [captures.length, look()];
        captures[0].answer(new Response('{"detail": "There are too many."}', {status: 429}));
        await turns();
        await turns();
        seen.push(look());
        button.click();
        await turns();
        // Whoever looks at another session is not told of it on its button.
        await panel.open('two');
        captures[1].fail(new TypeError('there is no network'));
        await turns();
        await turns();
        return [...seen, captures[1].path.includes('/one/'), look().slice(0, 3), told];
    }""") == [
        1, ["Capturing…", "true", False, True], ["Capture", "false", False, True], True, ["Capture", "false", False],
        ["Session one wasn’t captured: There are too many.", f"Session one wasn’t captured: {NOT_THERE}"],
    ]
    # What the server no longer knows can be neither captured nor ended.
    assert page.evaluate("""async () => {
        isKnown = false;
        await panel.refresh();
        return [...document.querySelectorAll('#dossier header button')].map(({hidden}) => hidden);
    }""") == [True, True, False]
