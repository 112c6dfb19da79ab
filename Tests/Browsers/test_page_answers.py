"""Answers that get lost, come late or were asked for twice: what pages say and do then."""

from __future__ import annotations

import pytest

from clock import CLOCK
from drivers import Browser, Page
from server import Server
from test_feed_modules import BEGIN, STAND_INS
from test_modules import FAKE_SOCKETS
from test_page_connections import JOINING
from test_page_widgets import AUDIENCE, NOT_THERE, UNHEARD


@pytest.fixture
def page(chromium: Browser, server: Server):
    with chromium.open(server.origin + "/healthz", before_load=FAKE_SOCKETS) as page:
        page.evaluate(UNHEARD)
        yield page


# Another link, opened in the same tab: the page stays, because only what is behind the # differs.


#: Opens links; `answers` are what the server says to invitations, each once it is there.
LINKS = """() => {
    const part = btoa(JSON.stringify({use: 'invitation', stream: 's1', role: 'viewer'}));
    globalThis.invitation = name => `x.${part}.${name}`;
    globalThis.open = token => history.replaceState(null, '', token ? `#token=${token}` : location.pathname);
    globalThis.answers = [];
    globalThis.fetch = async () => await answers.shift();
    const expiresAt = new Date(Date.now() + 3_600_000).toISOString();
    globalThis.given = token => new Response(JSON.stringify({token, expiresAt}), {status: 201});
}"""


def test_what_became_of_one_link_says_nothing_of_the_next(page: Page) -> None:
    page.evaluate(LINKS)
    assert page.evaluate("""async () => {
        const {deathOfLink, ensureToken} = await import('/assets/tokens.js');
        const seen = [];
        answers.push(new Response('{}', {status: 401}));
        open(invitation('old'));
        seen.push(await ensureToken('s1', 'viewer'), deathOfLink());
        // A host's own link, and the address without any: neither is exchanged, so nothing else would tell.
        for (const token of ['mine', '']) {
            open(token);
            seen.push(deathOfLink());
        }
        open(invitation('old'));
        return [...seen, deathOfLink()];
    }""") == [None, "expired", None, None, "expired"]


def test_a_link_gets_a_token_of_its_own_while_another_waits_for_one(page: Page) -> None:
    page.evaluate(LINKS)
    assert page.evaluate("""async () => {
        const {ensureToken, knownToken} = await import('/assets/tokens.js');
        let answerLate = null;
        answers.push(new Promise(resolve => { answerLate = resolve; }), given('second'));
        open(invitation('first'));
        const first = ensureToken('s1', 'viewer');
        open(invitation('second'));
        const second = ensureToken('s1', 'viewer');
        await turns();
        answerLate(given('first'));
        await first;
        return [await second, knownToken('s1', 'viewer')];
    }""") == ["second", "second"]


@pytest.mark.parametrize(("status", "state"), [(401, "failed"), (403, "missing")])
def test_the_feed_begins_anew_with_a_token_that_may_watch(page: Page, status: int, state: str) -> None:
    page.evaluate(STAND_INS)
    page.evaluate("""status => {
        const open = fetch;
        globalThis.isWelcome = false;
        live = ['s1'];
        globalThis.fetch = async (address, how) => {
            // A token that is for another stream opens the feed all the same.
            const isOpen = status === 403 && !String(address).includes('/v1/streams/');
            if (isWelcome || isOpen) return open(address, how);
            const headers = {'Content-Type': 'application/problem+json'};
            return new Response(JSON.stringify({status, title: 'No', detail: 'No.'}), {status, headers});
        };
    }""", status)
    page.evaluate(BEGIN, {"stream": "s3"})
    page.wait_for("state => feed.state === state", state, what="the viewer may not watch")
    assert page.evaluate("""() => {
        isWelcome = true;
        live = ['s1', 's3'];
        feed.showToken();
        return feed.state;
    }""") == "connecting"
    page.wait_for("() => peers.at(-1).remoteDescription && feed.current?.id === 's3'", what="the story of the link is there")


def test_an_invitation_to_another_address_of_the_feed_is_not_left_at_once(page: Page) -> None:
    assert page.evaluate("""async () => {
        const {uninvitedForm} = await import('/assets/feed/uninvited.js');
        document.body.append(...uninvitedForm());
        const field = document.getElementById('invitation'), went = [];
        navigation.addEventListener('navigate', event => {
            const {navigationType, destination} = event;
            went.push(navigationType === 'reload' ? 'again' : destination.url.slice(location.origin.length));
            event.preventDefault();
        });
        for (const link of ['/healthz?stream=tea#token=a.b.c', '/healthz#token=a.b.c']) {
            field.value = location.origin + link;
            field.form.requestSubmit();
            await turns();
        }
        return went;
    }""") == ["/healthz?stream=tea#token=a.b.c", "/healthz#token=a.b.c", "again"]


def test_a_second_tap_on_share_asks_for_nothing(page: Page) -> None:
    assert page.evaluate("""async () => {
        const {share} = await import('/assets/feed/share.js');
        globalThis.fetch = async () => new Response('{"viewers": "public"}');
        globalThis.matchMedia = () => ({matches: true});
        const shown = [];
        globalThis.prompt = text => shown.push(text);
        for (const name of ['InvalidStateError', 'AbortError', 'NotAllowedError']) {
            const refuse = async () => { throw new DOMException('no', name); };
            Object.defineProperty(navigator, 'share', {value: refuse, configurable: true});
            await share({id: 's1', title: 'Tea'}, text => shown.push(text));
            shown.push(name);
        }
        return shown;
    }""") == ["InvalidStateError", "AbortError", "Copy this link", "NotAllowedError"]


# Invitations, and going live.


def test_an_invitation_that_was_declined_without_a_network_is_put_again(page: Page) -> None:
    """The host waits for the answer, and there is no button that could give it later."""
    assert page.evaluate("""async () => {
        const {invitation} = await import('/assets/widgets/invitation.js');
        const answers = [null, {}], declined = [];
        const room = Object.assign(new EventTarget(), {
            you: {id: 'bob', invited: true}, isOnStage: false, info: {hostName: 'Ann', programme: 'composed'}, own: {stop() {}},
            attempt: action => action(), api: {endInvitation: async id => { declined.push(id); return answers.shift(); }},
        });
        invitation.mount(room);
        const seen = [];
        for (let time = 0; time < 2; time++) {
            document.querySelector('dialog[open] [data-value=decline]')?.click();
            await turns();
            await turns();
            seen.push(document.querySelector('dialog[open]') !== null);
        }
        return [seen, declined, unheard];
    }""") == [[True, False], ["bob", "bob"], []]


def test_who_is_on_stage_although_the_answer_got_lost_goes_on_the_air(page: Page) -> None:
    assert page.evaluate("""async () => {
        const {Room} = await import('/assets/room.js');
        const room = new Room('audience'), told = [];
        room.addEventListener('say', ({detail}) => told.push(detail));
        room.own.source = {kind: 'test', media: new MediaStream(), notice: null, stop: () => told.push('stopped')};
        room.onAir.start = async () => void told.push('on the air');
        const accept = isThere => {
            room.api.accept = async () => {
                room.sync.you = {id: 'bob', role: isThere ? 'speaker' : 'viewer'};
                throw new TypeError('there is no network');
            };
            return room.accept('bob');
        };
        return [await accept(true), await accept(false), told];
    }""") == [True, False, [NOT_THERE, "on the air", NOT_THERE, "stopped"]]


def test_an_invitation_that_was_declined_in_the_feed_without_a_network_is_still_there(page: Page) -> None:
    page.evaluate(CLOCK)
    page.evaluate(JOINING)
    assert page.evaluate("""async () => {
        const lost = fetch;
        globalThis.fetch = async () => new Response('{}');
        await raise();
        await hear(true);
        said.length = 0;
        sockets.at(-1).say({type: 'you', you: {id: 'bob', role: 'viewer', handRaised: true, invited: true}});
        const decline = async () => {
            document.querySelector('dialog[data-name=invited] [data-value=decline]').click();
            await rest();
        };
        globalThis.fetch = lost;
        await decline();
        const before = [joining.stateIn('s1'), [...said]];
        globalThis.fetch = async () => new Response(null, {status: 204});
        joining.press(story);
        await decline();
        return [before, joining.stateIn('s1'), said.length];
    }""") == [["invited", [NOT_THERE]], "down", 1]


def test_a_stream_that_was_refused_does_not_go_live_from_its_backstage(page: Page) -> None:
    """Whoever could not go live, and then opens a backstage, wants nobody to see it yet."""
    assert page.evaluate("""async () => {
        const {Room} = await import('/assets/room.js');
        const room = new Room('studio'), {onAir, sync} = room, lives = [];
        room.own.source = {kind: 'test', media: new MediaStream(), notice: null, stop() {}};
        room.api.goLive = async () => { lives.push('live'); return {}; };
        onAir.start = async () => { onAir.isOn = true; };
        const become = async (isOn, state) => {
            onAir.isOn = isOn;
            onAir.connection.state = state;
            onAir.dispatchEvent(new Event('change'));
            await turns();
        };
        await room.goLive();
        await become(false, 'failed');
        sync.known = {
            stream: {id: '', state: 'backstage', title: 'Tea', programme: 'composed'}, counts: {}, programme: {},
            speakers: {}, viewers: {}, raisedHands: {}, invitations: {},
        };
        sync.you = {id: 'ann', role: 'host', isModerator: true};
        await room.enterStage();
        await become(true, 'connected');
        const before = [...lives];
        await room.goLive();
        await turns();
        return [before, lives];
    }""") == [[], ["live"]]
