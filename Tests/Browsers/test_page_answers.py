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
    page.wait_for(
        "() => peers.at(-1).remoteDescription && feed.current?.id === 's3'", what="the story of the link is there")


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


@pytest.mark.parametrize(("status", "again"), [(None, True), (503, True), (409, False)], ids=["lost", "busy", "gone"])
def test_an_invitation_that_could_not_be_declined_is_put_again(page: Page, status: int | None, again: bool) -> None:
    """The host waits for the answer, and there is no button that could give it later.

    What is gone already is not put again: sync may tell of that much later.
    """
    assert page.evaluate("""async status => {
        const {invitation} = await import('/assets/widgets/invitation.js');
        const {SignallingError} = await import('/assets/session.js');
        const declined = [];
        const room = Object.assign(new EventTarget(), {
            you: {id: 'bob', invited: true}, isOnStage: false, info: {hostName: 'Ann', programme: 'composed'},
            own: {stop() {}}, attempt: action => action().catch(() => null),
            api: {endInvitation: async id => {
                declined.push(id);
                if (declined.length > 1) return {};
                throw status === null ? new TypeError('there is no network') : new SignallingError(status, 'No.', null);
            }},
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
    }""", status) == [[again, False], ["bob", "bob"] if again else ["bob"], []]


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


@pytest.mark.parametrize("told", ["while the other asks", "while this one waits"])
def test_an_invitation_that_is_accepted_in_two_tabs_at_once_leads_one_of_them_to_the_stage(
    page: Page, told: str,
) -> None:
    """The server accepts it twice, and the second to send takes the place of the first, in the middle of a sentence."""
    assert page.evaluate("""async told => {
        const {Room} = await import('/assets/room.js');
        const onStage = {id: 'bob', role: 'speaker'}, seen = [];
        const open = name => {
            const room = new Room('audience');
            const stop = () => seen.push(`${name} stops`);
            room.own.source = {kind: 'test', media: new MediaStream(), notice: null, stop};
            room.onAir.start = async () => void seen.push(`${name} is on the air`);
            room.api.accept = async () => { seen.push(`${name} asks`); return {}; };
            return room;
        };
        const [one, other] = [open('one'), open('other')];
        if (told === 'while the other asks') {
            let answer = null;
            one.api.accept = () => new Promise(resolve => { answer = () => resolve({}); });
            const first = one.accept('bob');
            while (!answer) await turns();
            const second = await other.accept('bob');
            answer();
            return [await first, second, seen];
        }
        // It tells the server its name first, and meanwhile is told that the first has come.
        other.naming.use = async () => { other.sync.you = onStage; };
        return [await one.accept('bob'), await other.accept('bob'), seen];
    }""", told) == [True, False, [
        "other stops", "one is on the air",
    ] if told == "while the other asks" else ["one asks", "one is on the air", "other stops"]]


def test_a_tab_lets_go_of_the_camera_when_another_one_goes_on_stage(page: Page) -> None:
    assert page.evaluate("""async () => {
        const {invitation} = await import('/assets/widgets/invitation.js');
        const told = [];
        const own = Object.assign(new EventTarget(), {
            source: {kind: 'camera', media: new MediaStream()}, kind: 'camera', camera: '', microphone: '',
            muted: {audio: false, video: false}, hasPicture: true, isOpening: false, problem: null,
            stop: () => told.push('stopped'),
        });
        const room = Object.assign(new EventTarget(), {
            you: {id: 'bob', invited: true}, isOnStage: false, info: {hostName: 'Ann', programme: 'composed'}, own,
            onAir: {isOn: false}, naming: {name: 'Bob', choose() {}}, accept: async () => void told.push('accepted'),
        });
        const asked = () => [...document.querySelectorAll('dialog[open]')].map(({dataset}) => dataset.name);
        invitation.mount(room);
        document.querySelector('dialog [data-value=accept]').click();
        await turns();
        await turns();
        const before = asked();
        Object.assign(room, {you: {id: 'bob', role: 'speaker', invited: false}, isOnStage: true});
        room.dispatchEvent(new Event('change'));
        await turns();
        await turns();
        return [before, asked(), told, unheard];
    }""") == [["lobby"], [], ["stopped"], []]


def test_an_invitation_that_was_declined_in_the_feed_without_a_network_is_still_there(page: Page) -> None:
    page.evaluate(CLOCK)
    page.evaluate(JOINING)
    assert page.evaluate("""async () => {
        await raiseAndHear();
        said.length = 0;
        sockets.at(-1).say({type: 'you', you: {id: 'bob', role: 'viewer', handRaised: true, invited: true}});
        const decline = async () => {
            document.querySelector('dialog[data-name=invited] [data-value=decline]').click();
            await rest();
        };
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


# What is pressed twice, or while something else is under way.


def test_what_is_pressed_twice_is_asked_once(page: Page) -> None:
    """Before the question, the server is asked, which takes a while on a slow network."""
    page.evaluate(AUDIENCE, {"id": "ann", "role": "host", "isModerator": True})
    assert page.evaluate("""async () => {
        const {makeDuelDesk} = await import('/assets/duel.js');
        let answer = null;
        const streams = new Promise(resolve => { answer = resolve; });
        api.liveStreams = () => streams;
        const {button} = makeDuelDesk(part);
        button.click();
        button.click();
        answer([{id: 'quiz', title: 'Quiz', hostName: 'Eve'}]);
        await turns();
        const count = document.querySelectorAll('dialog').length;
        document.querySelector('dialog [data-value=no]').click();
        await turns();
        button.click();
        await turns();
        return [count, document.querySelectorAll('dialog[open]').length, unheard];
    }""") == [1, 1, []]


#: A host's panel for encoders, open and with a key; the test answers for the server by `answers`.
ENCODER = """async () => {
    globalThis.fetch = async () => new Response('{"rtmp": true, "srt": true}');
    const {encoder} = await import('/assets/widgets/encoder.js');
    globalThis.answers = [];
    globalThis.ingest = key => ({
        rtmp: {server: 'rtmp://host/live', key}, srt: {url: `srt://host?streamid=${key}`, passphrase: false},
        encoders: [],
    });
    const wait = name => () => new Promise(resolve => answers.push(Object.assign(resolve, {of: name})));
    const room = Object.assign(new EventTarget(), {
        stream: 's1', isHost: true, isOver: false, isOut: false, sync: new EventTarget(), say() {},
        attempt: action => action(),
        api: {showIngest: wait('show'), replaceIngestKey: wait('replace')},
    });
    encoder.mount(room, document.body);
    globalThis.$ = id => document.getElementById(id);
    globalThis.replaceKey = async () => {
        $('replace-key').click();
        await turns();
        document.querySelector('dialog [data-value=yes]').click();
        await turns();
        await turns();
    };
    await turns();
    $('encoder').open = true;
    while (!answers.length) await turns();
}"""


def test_a_key_that_could_not_be_replaced_stays(page: Page) -> None:
    page.evaluate(ENCODER)
    assert page.evaluate("""async () => {
        answers.shift()(ingest('one'));
        await turns();
        await replaceKey();
        answers.shift()(null);
        await turns();
        return ['encoder-server', 'encoder-key', 'encoder-srt'].map(id => $(id).value).concat($('encoder-code').hidden);
    }""") == ["rtmp://host/live", "one", "srt://host?streamid=one", False]


def test_a_new_key_is_made_also_while_the_panel_is_still_loading(page: Page) -> None:
    page.evaluate(ENCODER)
    assert page.evaluate("""async () => {
        await replaceKey();
        answers.shift()(ingest('one'));
        await turns();
        const names = answers.map(answer => answer.of);
        answers.shift()?.(ingest('two'));
        await turns();
        return [names, $('encoder-key').value];
    }""") == [["replace"], "two"]


def test_each_target_is_removed_that_was_pressed_and_what_was_typed_meanwhile_stays(page: Page) -> None:
    assert page.evaluate("""async () => {
        globalThis.fetch = async () => new Response('{"restreams": true}');
        const {restream} = await import('/assets/widgets/restream.js');
        const target = number => ({number, url: `rtmp://host/${number}`, state: 'live', droppedPictures: 0});
        const asked = [];
        const wait = () => new Promise(resolve => asked.push(resolve));
        const removed = [];
        const room = Object.assign(new EventTarget(), {
            sync: new EventTarget(), isHost: true, isOut: false, info: {state: 'live'}, say() {},
            attempt: action => action(),
            api: {
                listRestreams: async () => ({restreams: [target(1), target(2)]}), addRestream: wait,
                removeRestream: number => { removed.push(number); return wait(); },
            },
        });
        restream.mount(room, document.body);
        const $ = id => document.getElementById(id), rows = () => document.querySelectorAll('#restream-list li button');
        $('restream').open = true;
        while (rows().length < 2) await turns();
        for (const button of [...rows(), rows()[0]]) button.click();
        const [url, key] = [$('restream-url'), $('restream-key')];
        [url.value, key.value] = ['rtmp://host/3', 'third'];
        const form = $('restream-add').closest('form');
        const add = () => form.dispatchEvent(new SubmitEvent('submit', {cancelable: true}));
        add();
        [url.value, key.value] = ['rtmp://host/4', 'half'];
        asked.at(-1)(target(3));
        await turns();
        const typed = key.value;
        add();
        asked.at(-1)(target(4));
        await turns();
        return [removed, typed, key.value];
    }""") == [[1, 2], "half", ""]


def test_the_next_try_of_a_target_comes_nearer(page: Page) -> None:
    assert page.evaluate("""async () => {
        globalThis.fetch = async () => new Response('{"restreams": true}');
        const {restream} = await import('/assets/widgets/restream.js');
        let now = Date.parse('2030-01-01T00:00:00Z');
        Date.now = () => now;
        const target = {
            number: 1, url: 'rtmp://host/1', state: 'failed', detail: 'No answer.', droppedPictures: 0,
            nextTryAt: '2030-01-01T00:00:30Z',
        };
        const room = Object.assign(new EventTarget(), {
            sync: new EventTarget(), isHost: true, isOut: false, info: {state: 'live'}, say() {},
            attempt: action => action(),
            api: {listRestreams: async () => ({restreams: [target]})},
        });
        restream.mount(room, document.body);
        document.getElementById('restream').open = true;
        const words = () => document.querySelector('#restream-list p')?.textContent;
        while (!words()) await turns();
        const seen = [words()];
        now += 20_000;
        room.dispatchEvent(new Event('second'));
        return [...seen, words()];
    }""") == ["No answer. Trying again in 30 seconds.", "No answer. Trying again in 10 seconds."]


def test_a_timeline_that_was_dragged_back_to_its_place_moves_on(page: Page) -> None:
    assert page.evaluate("""async () => {
        const {rewind} = await import('/assets/widgets/rewind.js');
        const past = {behind: 100, reach: 600, leave() {}, go() {}};
        const room = Object.assign(new EventTarget(), {viewing: {state: 'live', rewind: past}});
        rewind.mount(room, document.body);
        const position = document.getElementById('position'), seen = [];
        position.dispatchEvent(new PointerEvent('pointerdown'));
        position.dispatchEvent(new Event('input'));
        past.behind = 90;
        const look = () => { room.dispatchEvent(new Event('second')); seen.push(Number(position.value)); };
        // The page does not pull it out of the finger, and goes on once that has left.
        look();
        position.dispatchEvent(new PointerEvent('pointerup'));
        await turns();
        look();
        return seen;
    }""") == [500, 510]


# What is shown of one thing while another is asked for, and where messages are seen.


def test_no_list_stands_under_the_name_of_another(page: Page) -> None:
    page.evaluate(AUDIENCE, {})
    assert page.evaluate("""async () => {
        const {openPeople} = await import('/assets/ranks.js');
        const answers = {};
        hear({type: 'interaction', settings: {...audience.settings, widgets: ['ranks']}});
        api.rank = rank => new Promise((resolve, reject) => { answers[rank] = {resolve, reject}; });
        openPeople(part, 'givers');
        answers.givers.resolve({ranks: [{participant: 'eve', name: 'Eve', value: 5}]});
        await turns();
        const list = document.querySelector('dialog .ranked');
        const words = document.querySelector('dialog [role=status]:not([hidden])');
        const read = () => [list.ariaLabel, list.textContent.includes('Eve'), words.textContent];
        const choose = name => document.querySelector(`dialog input[value=${name}]`).click();
        const seen = [read()];
        choose('fans');
        seen.push(read());
        answers.fans.resolve({ranks: [{participant: 'bob', name: 'Bob', value: 9}]});
        await turns();
        // Back and forth on a bad network: the answer to what is not asked for any more comes last.
        choose('givers');
        const old = answers.givers;
        choose('fans');
        answers.fans.resolve({ranks: [{participant: 'bob', name: 'Bob', value: 9}]});
        await turns();
        old.reject(new TypeError('there is no network'));
        await turns();
        return [...seen, read(), unheard];
    }""") == [["Top givers", True, ""], ["Top fans", False, ""], ["Top fans", False, ""], []]


#: The widget for messages, in `root`; `said` has it show one, and `ask` opens dialogs.
MESSAGES = """async () => {
    const {messages} = await import('/assets/widgets/messages.js');
    const layer = document.createElement('div'), room = new EventTarget();
    document.body.append(layer);
    messages.mount(room, layer);
    globalThis.ask = (await import('/assets/dialog.js')).ask;
    globalThis.root = layer.firstElementChild;
    globalThis.said = detail => room.dispatchEvent(new CustomEvent('say', {detail}));
}"""


def test_a_message_is_seen_and_read_also_while_something_is_asked(page: Page) -> None:
    page.evaluate(MESSAGES)
    assert page.evaluate("""async () => {
        const place = () => root.parentElement?.localName ?? null;
        const seen = [place()];
        ask({name: 'test', title: 'Really?', choices: [{value: 'no', label: 'No'}]});
        said('Bob wants to speak.');
        seen.push(place());
        document.querySelector('dialog button').click();
        await turns();
        await turns();
        said('Eve wants to speak.');
        return [...seen, place(), [...root.children].map(line => line.textContent)];
    }""") == ["div", "dialog", "div", ["Bob wants to speak.", "Eve wants to speak."]]


def test_a_message_stays_over_the_dialog_that_is_left(page: Page) -> None:
    """Whichever of two dialogs closes first, and whichever the message was said in."""
    page.evaluate(MESSAGES)
    assert page.evaluate("""async () => {
        const say = () => said('The network is slow.');
        const open = name => ask({name, title: 'Really?', choices: [{value: 'no', label: 'No'}]});
        const close = async name => {
            document.querySelector(`dialog[data-name=${name}]`).close();
            await turns();
            await turns();
        };
        const seen = [];
        const look = () => seen.push(root.parentElement?.dataset.name ?? root.parentElement?.localName ?? null);
        for (const first of ['lower', 'upper']) {
            open('lower');
            say();
            open('upper');
            say();
            look();
            await close(first);
            look();
            await close(first === 'lower' ? 'upper' : 'lower');
            look();
        }
        return seen;
    }""") == ["upper", "upper", "div", "upper", "lower", "div"]


def test_a_code_stands_under_the_name_of_what_it_is(page: Page) -> None:
    assert page.evaluate("""async () => {
        const {showCode} = await import('/assets/qr.js');
        const answers = [new Blob(['one']), null, new Blob(['two'])];
        const room = {attempt: action => action(), api: {qrCode: async () => answers.shift()}};
        const choices = [{label: 'RTMP', text: 'rtmp:'}, {label: 'SRT', text: 'srt:'}];
        showCode(room, {title: 'Scan', hint: '', choices});
        await turns();
        const select = document.querySelector('dialog select'), picture = document.getElementById('qr');
        const first = picture.src, chosen = [];
        for (let time = 0; time < 2; time++) {
            select.value = '1';
            select.dispatchEvent(new Event('change'));
            await turns();
            chosen.push([select.value, picture.src === first]);
        }
        return chosen;
    }""") == [["0", True], ["1", False]]


def test_whoever_wants_the_picture_alone_keeps_the_focus(page: Page) -> None:
    assert page.evaluate("""async () => {
        const {pictureOnly} = await import('/assets/widgets/picture-only.js');
        document.body.innerHTML = `<style>.picture-only .other { display: none; }</style>
            <button class="other">Other</button>`;
        const room = Object.assign(new EventTarget(), {
            isPictureOnly: false,
            showPictureOnly(isWanted) { this.isPictureOnly = isWanted; this.dispatchEvent(new Event('change')); },
        });
        pictureOnly.mount(room, document.body);
        document.querySelector('.other').focus();
        dispatchEvent(new KeyboardEvent('keydown', {key: 'p'}));
        return document.activeElement.id;
    }""") == "show-all"


def test_a_players_timeline_that_was_dragged_back_to_its_place_moves_on(page: Page) -> None:
    assert page.evaluate("""async () => {
        const {Bar} = await import('/assets/player/bar.js');
        const {STRINGS} = await import('/assets/player/strings.js');
        const rewind = {behind: 100, reach: 600}, video = document.createElement('video');
        const playback = {
            isPaused: false, recording: null, state: 'live', video,
            stream: {info: {state: 'live'}, sync: {known: null}},
            reception: {rewind, isDelayed: false, delay: null, weakness: null, choice: {name: 'auto'}},
        };
        const bar = new Bar({seek() {}, choose() {}}), position = bar.element.querySelector('.position');
        document.body.append(bar.element);
        const look = () => {
            bar.update(playback, STRINGS, {isFull: false, isPip: false, mayPip: false});
            return Number(position.value);
        };
        const seen = [look()];
        position.dispatchEvent(new Event('input'));
        rewind.behind = 90;
        seen.push(look());
        position.dispatchEvent(new PointerEvent('pointerup'));
        await turns();
        return [...seen, look()];
    }""") == [500, 500, 510]


def test_a_file_is_fetched_with_the_token_of_now(page: Page) -> None:
    """Tokens are renewed, and the ones before expire, while a list of files stays where it is."""
    page.evaluate(CLOCK)
    assert page.evaluate("""async () => {
        const {kept} = await import('/assets/widgets/playback.js');
        const {makeClipper} = await import('/assets/widgets/clipper.js');
        globalThis.fetch = async () => new Response('{"clips": true}');
        let token = 'first';
        const file = id => ({
            id, kind: 'recording', title: null, part: 1, state: 'ended', duration: 60, size: 1_000_000,
            url: `/files/${id}.mp4`, startedAt: '2030-01-01T00:00:00Z',
        });
        const room = Object.assign(new EventTarget(), {
            stream: 's1', title: 'Tea', isHost: true, info: {state: 'ended'}, you: {mayModerate: true}, say() {},
            attempt: action => action(), identify: async () => true, addressOf: path => `${path}?access_token=${token}`,
            api: {
                recordings: async () => ({recordings: [file('whole')]}), makeClip: async () => ({id: 'clip'}),
                recording: async id => file(id),
            },
        });
        kept.mount(room, document.body);
        const clipper = makeClipper(room).root;
        document.body.append(clipper);
        clipper.querySelector('button').click();
        await passTime(1_000);
        token = 'second';
        addEventListener('click', event => event.preventDefault());
        return [...document.querySelectorAll('a[download], a[target]')].map(link => {
            link.click();
            return link.getAttribute('href');
        });
    }""") == [f"/files/{name}.mp4?access_token=second" for name in ("whole", "clip", "clip")]


def test_who_wrote_in_the_feed_keeps_a_place_there_when_the_field_goes(chromium: Browser, server: Server) -> None:
    with chromium.open(server.origin + "/", before_load=FAKE_SOCKETS) as page:
        page.wait_for("() => globalThis.rostrum !== undefined", what="the page is there")
        assert page.evaluate("""async () => {
            const field = document.createElement('input');
            document.body.append(field);
            field.focus();
            field.hidden = true;
            await new Promise(done => setTimeout(done));
            return document.activeElement.id;
        }""") == "stage"


def test_the_studio_says_why_connecting_takes_so_long(page: Page) -> None:
    assert page.evaluate("""async () => {
        const {desk} = await import('/assets/widgets/desk.js');
        const room = Object.assign(new EventTarget(), {
            own: {muted: {audio: false, video: false}, source: null}, state: 'starting', info: null, isHost: true,
            onAir: {isOn: true, screen: null, canShareScreen: false, trouble: null},
        });
        desk.mount(room, document.body);
        const told = trouble => {
            room.onAir.trouble = trouble;
            room.dispatchEvent(new Event('change'));
            return ['notice', 'state'].map(id => document.getElementById(id).textContent.split('.')[0]);
        };
        const seen = [told(null), told('server'), told('busy'), told('blocked')];
        room.state = 'live';
        return [...seen, told('blocked')];
    }""") == [
        ["Connecting…"] * 2, ["Can’t reach the server"] * 2, ["The server is busy"] * 2,
        ["Live video isn’t getting through"] * 2, ["", "You’re live"]]


#: What was recorded of a stream; `serve` answers for the server.
RECORDED = """async () => {
    const {Recordings} = await import('/assets/recordings.js');
    globalThis.file = {
        id: 'whole', kind: 'recording', title: null, part: 1, state: 'ended', duration: 60, size: 1_000_000,
        url: '/files/1.mp4', startedAt: '2030-01-01T00:00:00Z',
    };
    globalThis.recordings = new Recordings({
        info: {state: 'ended'}, addressOf: path => path, api: {recordings: () => serve()},
    });
}"""


def test_recordings_are_shown_once_the_network_is_back_however_long_it_was_gone(page: Page) -> None:
    page.evaluate(CLOCK)
    page.evaluate(RECORDED)
    assert page.evaluate("""async () => {
        let asked = 0;
        globalThis.serve = async () => { asked++; throw new TypeError('there is no network'); };
        recordings.update();
        await passTime(300_000);
        const count = asked;
        serve = async () => ({recordings: [file]});
        await passTime(40_000);
        return [count < 20, recordings.list.length, timers()];
    }""") == [True, 1, 0]


def test_a_late_list_brings_no_deleted_recording_back(page: Page) -> None:
    page.evaluate(RECORDED)
    assert page.evaluate("""async () => {
        const answers = [];
        globalThis.serve = () => new Promise(resolve => answers.push(resolve));
        recordings.update();
        recordings.ask();
        answers[1]({recordings: []});
        await turns();
        answers[0]({recordings: [file]});
        await turns();
        return recordings.list.length;
    }""") == 0


@pytest.mark.parametrize(("currency", "most"), [("EUR", 1_000_000), ("COINS", 100_000_000)])
def test_the_highest_price_is_that_of_the_currency(page: Page, currency: str, most: int) -> None:
    """Currencies of an app's own have no decimals."""
    assert page.evaluate("""async (currency, most) => {
        const {troubleWith} = await import('/assets/gift-catalogue.js');
        const words = price => troubleWith({currency, kinds: [{id: 'rose', name: 'Rose', picture: '🌹', price}]});
        return [words(100_000_000), words(100_000_001).includes(` ${new Intl.NumberFormat().format(most)}.`)];
    }""", currency, most) == [None, True]
