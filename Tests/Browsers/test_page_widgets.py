"""What pages show and ask, one part at a time, with fakes around it: words, keys, focus, and what is read aloud."""

from __future__ import annotations

import pytest

from clock import CLOCK
from drivers import Browser, Page
from drivers.page import Viewport
from server import Server
from test_modules import FAKE_SOCKETS
from test_page_modules import press_at

NOT_THERE = "The server isn’t responding. Try again in a moment."

#: What is rejected and nobody hears of: `unheard`.
UNHEARD = """() => {
    globalThis.unheard = [];
    addEventListener('unhandledrejection', event => {
        event.preventDefault();
        unheard.push(String(event.reason));
    });
    // A picture and a few turns of the event loop: a dialog tells of its end with the next picture, and what nobody
    // hears of is told in a turn of its own.
    globalThis.turns = async () => {
        await new Promise(requestAnimationFrame);
        for (let turn = 0; turn < 3; turn++) await new Promise(done => setTimeout(done));
    };
}"""

#: A live stream's audience as one of its people sees it; the test says who that is, and answers for the API.
AUDIENCE = """async you => {
    const {Audience} = await import('/assets/audience.js');
    const role = {id: 'bob', name: 'Bob', role: 'viewer', mayModerate: false, isModerator: false, tiers: []};
    globalThis.sync = Object.assign(new EventTarget(), {
        you: {...role, ...you}, refusal: null, isOpen: true, stream: {state: 'live'}, known: null,
    });
    globalThis.api = {stream: 'talk'};
    globalThis.said = [];
    globalThis.audience = new Audience(sync, api);
    globalThis.part = {audience, identify: async () => true, say: text => said.push(text), shows: () => true};
    globalThis.hear = detail => sync.dispatchEvent(new CustomEvent('interaction', {detail}));
    const settings = {
        comments: true, reactions: [], slowMode: 0, commentTier: null, gifts: null, duels: true,
        widgets: ['comments', 'barrage', 'composer', 'poll', 'card'],
    };
    hear({type: 'snapshot', interaction: {
        comments: [], pinned: null, reactions: {}, settings, card: null, duel: null, ranks: {givers: [], fans: []},
        gifts: {recent: [], totals: {gifts: 0, value: 0, currency: null, last: 0}}, poll: null,
    }});
}"""


@pytest.fixture
def page(chromium: Browser, server: Server):
    with chromium.open(server.origin + "/healthz", before_load=FAKE_SOCKETS) as page:
        page.evaluate(UNHEARD)
        yield page


# Without a network.


def test_a_hand_that_the_server_does_not_hear_of_is_told(page: Page) -> None:
    assert page.evaluate("""async () => {
        const {Room} = await import('/assets/room.js');
        const room = new Room('audience'), said = [];
        room.addEventListener('say', ({detail}) => said.push(detail));
        await room.raiseHand();
        return said;
    }""") == [NOT_THERE]


def test_a_full_screen_that_the_browser_refuses_is_no_fault_of_the_page(page: Page) -> None:
    assert page.evaluate("""async () => {
        const {audienceControls} = await import('/assets/widgets/audience-controls.js');
        let asked = 0;
        document.documentElement.requestFullscreen = () => { asked++; return Promise.reject(new TypeError('no')); };
        const viewing = {video: null, state: 'live', isBlocked: false, toggleSound() {}};
        audienceControls.mount(Object.assign(new EventTarget(), {viewing}), document.body);
        document.getElementById('full').click();
        dispatchEvent(new KeyboardEvent('keydown', {key: 'f'}));
        await turns();
        return [asked, unheard];
    }""") == [2, []]


def test_what_was_written_while_a_comment_was_sent_stays(page: Page) -> None:
    page.evaluate(AUDIENCE, {})
    assert page.evaluate("""async () => {
        const {makeComments} = await import('/assets/talk.js');
        let answer = null;
        api.writeComment = (id, text) => new Promise(resolve => {
            answer = () => resolve({number: 1, id, author: 'bob', name: 'Bob', role: 'viewer', moderator: false, text});
        });
        const {root} = makeComments(part);
        document.body.append(root);
        const field = root.querySelector('[name=comment]'), left = [];
        for (const meanwhile of ['Second, half wri', null]) {
            field.value = 'First';
            field.form.requestSubmit();
            await turns();
            if (meanwhile) field.value = meanwhile;
            answer();
            await turns();
            left.push(field.value);
        }
        return left;
    }""") == ["Second, half wri", ""]


def test_whoever_came_back_without_a_network_learns_later_what_they_chose(page: Page) -> None:
    page.evaluate(AUDIENCE, {})
    assert page.evaluate("""async () => {
        const {SignallingError} = await import('/assets/session.js');
        const poll = number => ({
            number, question: 'Tea?', options: [{text: 'Yes'}, {text: 'No'}], multiple: false, results: 'live', voters: 1,
            quiz: false, openedAt: '2030-01-01T00:00:00Z', closesAt: null, closedAt: null,
        });
        const asked = [], failures = [new TypeError('there is no network'), null, new SignallingError(403, 'no', null)];
        api.poll = async number => {
            asked.push(number);
            const failure = failures.shift();
            if (failure) throw failure;
            return {...poll(number), vote: [1]};
        };
        const news = async () => { sync.dispatchEvent(new Event('change')); await turns(); };
        hear({type: 'interaction', poll: poll(1)});
        await turns();
        const before = audience.vote;
        await news();
        const {vote} = audience;
        await news();
        // What the server refuses is not asked again.
        hear({type: 'interaction', poll: poll(2)});
        await turns();
        await news();
        return [before, vote, asked];
    }""") == [None, [1], [1, 1, 2]]


def test_lists_that_come_again_take_the_trouble_away(page: Page) -> None:
    page.evaluate(CLOCK)
    page.evaluate(AUDIENCE, {"isModerator": True})
    assert page.evaluate("""async () => {
        const {makeModeration} = await import('/assets/moderation.js');
        let isAway = true;
        api.interaction = async () => { if (isAway) throw new TypeError('there is no network'); return {silenced: {}}; };
        api.audit = async () => ({entries: []});
        makeModeration(part).root.click();
        const words = () => document.querySelector('dialog [role=status]').textContent;
        await settled();
        const seen = [words()];
        isAway = false;
        await passTime(3_000);
        return [...seen, words()];
    }""") == [NOT_THERE, ""]


#: Invites the stream of the page to a duel; the test answers for the server, which is told `tried` times.
DUEL = """async () => {
    const {makeDuelDesk} = await import('/assets/duel.js');
    const {SignallingError} = await import('/assets/session.js');
    const now = Date.now(), side = (stream, name) => ({stream, name, score: 0});
    const duel = {
        id: 'd1', state: 'invited', from: side('quiz', 'Ann'), to: side('talk', 'Bob'), seconds: 300, penaltySeconds: 60,
        expiresAt: new Date(now + 3_600_000).toISOString(), startsAt: null, endsAt: null, overAt: null, winner: null,
        reason: null, at: new Date(now).toISOString(),
    };
    globalThis.tried = 0;
    globalThis.failure = new TypeError('there is no network');
    globalThis.refusal = new SignallingError(409, 'It is too late.', null);
    api.acceptDuel = async () => {
        tried++;
        if (failure) throw failure;
        return {...duel, state: 'countdown'};
    };
    audience.showDuel(duel);
    document.body.append(makeDuelDesk(part).root);
}"""


def test_an_answer_to_a_duel_that_got_lost_can_be_given_again(page: Page) -> None:
    page.evaluate(AUDIENCE, {"isModerator": True})
    page.evaluate(DUEL)
    accept = "() => document.querySelector('dialog[data-name=duel-invitation][open] [data-value=accept]')"
    page.wait_for(f"() => ({accept})() !== null", what="the host is asked")
    page.evaluate(f"() => ({accept})().click()")
    page.wait_for(f"() => tried === 1 && ({accept})() !== null", what="the host is asked again")
    assert page.evaluate("() => said") == [NOT_THERE]
    # What the server refuses is decided.
    page.evaluate(f"() => {{ failure = refusal; ({accept})().click(); }}")
    page.wait_for("() => said.length === 2", what="it is told why")
    assert page.evaluate("async () => { await turns(); return [tried, document.querySelector('dialog')]; }") == [2, None]
    assert page.evaluate("() => said.at(-1)") == "It is too late."


# Keys, focus, and what is read aloud.


def test_arrow_keys_go_back_in_a_stream_and_come_back(page: Page) -> None:
    page.evaluate("""async () => {
        const {rewind} = await import('/assets/widgets/rewind.js');
        globalThis.went = [];
        const past = {
            behind: null, reach: 600, leave() {},
            go(seconds) { went.push(seconds); this.behind = seconds < 5 ? null : seconds; },
        };
        rewind.mount(Object.assign(new EventTarget(), {viewing: {state: 'live', rewind: past}}), document.body);
        document.getElementById('position').focus();
    }""")
    for key in ("ArrowLeft", "ArrowDown", "ArrowRight", "ArrowUp"):
        page.press(key)
    page.wait_for("() => went.length === 4", what="each key is heard")
    assert page.evaluate("() => went") == [10, 20, 10, 0]


def test_letters_can_be_turned_off_as_keys(page: Page) -> None:
    """Whoever dictates presses them without meaning to."""
    assert page.evaluate("""async () => {
        const {audienceControls} = await import('/assets/widgets/audience-controls.js');
        const {pictureOnly} = await import('/assets/widgets/picture-only.js');
        const {letterSwitch} = await import('/assets/keys.js');
        const pressed = [];
        const viewing = {video: null, state: 'live', isBlocked: false, toggleSound: () => pressed.push('m')};
        const room = Object.assign(new EventTarget(), {
            viewing, isPictureOnly: false, showPictureOnly: () => pressed.push('p'),
        });
        for (const widget of [audienceControls, pictureOnly]) widget.mount(room, document.body);
        const box = letterSwitch('m sound').querySelector('input'), field = document.createElement('input');
        document.body.append(box, field);
        const press = (from, more = {}) => {
            for (const key of ['m', 'p', 'constructor', 'Enter']) {
                from.dispatchEvent(new KeyboardEvent('keydown', {key, bubbles: true, ...more}));
            }
            return pressed.splice(0);
        };
        const seen = [box.checked, press(document.body), press(field), press(document.body, {ctrlKey: true})];
        box.click();
        seen.push(press(document.body), letterSwitch('m sound').querySelector('input').checked);
        box.click();
        return [...seen, press(document.body)];
    }""") == [True, ["m", "p"], [], [], [], False, ["m", "p"]]


def test_comments_can_be_scrolled_with_keys_alone(page: Page) -> None:
    page.evaluate(AUDIENCE, {})
    assert page.evaluate("""async () => {
        const {makeComments} = await import('/assets/talk.js');
        const {root} = makeComments(part), list = root.querySelector('.comments'), heard = [];
        document.body.append(root);
        addEventListener('keydown', ({key}) => heard.push(key));
        list.focus();
        const place = document.activeElement;
        const press = key => {
            const event = new KeyboardEvent('keydown', {key, bubbles: true, cancelable: true});
            list.dispatchEvent(event);
            return event.defaultPrevented;
        };
        // The story turns with these; those that scroll are the list's.
        const taken = ['ArrowUp', 'ArrowDown', 'PageUp', 'PageDown', 'Home', 'End', ' ', 'ArrowLeft', 'm'].filter(press);
        return [place === list, list.tabIndex, list.role, list.ariaLabel, taken, heard];
    }""") == [True, 0, "log", "Comments", [], ["ArrowLeft", "m"]]


def test_voices_begin_with_a_key_too(page: Page) -> None:
    assert page.evaluate("""async () => {
        const {voices} = await import('/assets/widgets/voices.js');
        let isAllowed = false, plays = 0;
        HTMLMediaElement.prototype.play = () => {
            plays++;
            return isAllowed ? Promise.resolve() : Promise.reject(new DOMException('no gesture', 'NotAllowedError'));
        };
        const room = Object.assign(new EventTarget(), {stage: {voices: [new MediaStream(), new MediaStream()]}});
        voices.mount(room, document.body);
        await turns();
        const seen = [plays];
        const press = async () => {
            dispatchEvent(new KeyboardEvent('keydown', {key: 'Tab'}));
            await turns();
            seen.push(plays);
        };
        isAllowed = true;
        await press();
        // Whoever plays is left alone.
        await press();
        return [seen, unheard];
    }""") == [[2, 4, 4], []]


def test_news_of_one_target_take_nobodys_focus(page: Page) -> None:
    page.evaluate("""async () => {
        globalThis.fetch = async () => new Response('{"restreams": true}');
        const {restream} = await import('/assets/widgets/restream.js');
        const room = Object.assign(new EventTarget(), {
            sync: new EventTarget(), isHost: true, isOut: false, info: {state: 'live'}, say() {},
            attempt: action => action(), api: {listRestreams: async () => ({restreams: []})},
        });
        restream.mount(room, document.body);
        globalThis.tell = (number, state, detail = null) => {
            const target = {number, url: `rtmp://host/${number}`, state, detail, nextTryAt: null, droppedPictures: 0};
            room.sync.dispatchEvent(new CustomEvent('restream', {detail: {restream: target}}));
        };
    }""")
    page.wait_for("() => !document.getElementById('restream').hidden", what="the server restreams")
    page.evaluate("() => { document.getElementById('restream').open = true; }")
    page.wait_for("() => document.getElementById('restream-url').checkVisibility()", what="the panel is open")
    assert page.evaluate("""async () => {
        await turns();
        tell(1, 'connecting');
        tell(2, 'connecting');
        const button = document.querySelector('[data-number="1"] button');
        button.focus();
        tell(2, 'live');
        tell(1, 'failed', 'No answer.');
        const rows = [...document.querySelectorAll('#restream-list li')].map(({dataset, lastElementChild: words}) =>
            [dataset.number, dataset.state, words.className, words.textContent]);
        return [document.activeElement === button, button.ariaLabel, rows];
    }""") == [True, "Remove rtmp://host/1", [["1", "failed", "warning", "No answer."], ["2", "live", "muted", "Live"]]]


def test_what_the_studio_says_is_read_once(page: Page) -> None:
    assert page.evaluate("""async () => {
        const {desk} = await import('/assets/widgets/desk.js');
        const own = {muted: {audio: false, video: false}, source: null};
        const room = Object.assign(new EventTarget(), {
            own, onAir: {isOn: true, screen: null, canShareScreen: false}, state: 'reconnecting', info: null, isHost: true,
        });
        desk.mount(room, document.body);
        const read = () => [...document.querySelectorAll('[role=status], [aria-live]')]
            .map(({textContent}) => textContent).filter(Boolean);
        const said = [read()];
        own.source = {notice: 'No microphone found.', media: new MediaStream()};
        room.state = 'live';
        room.dispatchEvent(new Event('change'));
        return [...said, read(), document.getElementById('notice').textContent];
    }""") == [
        ["The connection was lost. Reconnecting…"], ["You’re live. No microphone found."], "No microphone found."]


def test_of_several_messages_the_new_one_is_read(page: Page) -> None:
    assert page.evaluate("""async () => {
        const {messages} = await import('/assets/widgets/messages.js');
        messages.mount(new EventTarget(), document.body);
        const {role, ariaAtomic} = document.querySelector('.messages');
        return [role, ariaAtomic];
    }""") == ["status", "false"]


def test_numbers_of_an_encoder_are_not_read_aloud(page: Page) -> None:
    assert page.evaluate("""async () => {
        const {encoderReport} = await import('/assets/widgets/encoder-report.js');
        const said = [];
        const room = {sync: Object.assign(new EventTarget(), {known: null}), you: null, say: text => said.push(text)};
        const {element} = encoderReport(room);
        document.body.append(element);
        const video = bitrate => ({codec: 'AV1', profile: null, width: 1280, height: 720, framesPerSecond: 30, bitrate});
        for (const bitrate of [2_000_000, 2_100_000]) {
            const advice = [{code: 'b-frames', text: 'Turn off B-frames.'}];
            const encoder = {participant: 'ann', video: video(bitrate), audio: null, link: null, advice};
            room.sync.dispatchEvent(new CustomEvent('encoder', {detail: {participant: 'ann', encoder}}));
        }
        return [element.textContent.includes('2.1 Mbit/s'), element.closest('[role], [aria-live]'), said];
    }""") == [True, None, ["Turn off B-frames."]]


def test_a_poll_is_read_as_it_comes_and_ends_and_not_with_every_answer(page: Page) -> None:
    page.evaluate(AUDIENCE, {})
    page.evaluate(CLOCK)
    assert page.evaluate("""async () => {
        const {makePoll} = await import('/assets/poll.js');
        const poll = {
            number: 1, question: 'Tea?', options: [{text: 'Yes'}, {text: 'No'}], multiple: false, results: 'live',
            voters: 0, quiz: true, openedAt: '2030-01-01T00:00:00Z', closesAt: null, closedAt: null,
        };
        api.poll = async () => ({...poll, vote: [0]});
        document.body.append(makePoll(part).root);
        const heard = [];
        const news = async change => {
            hear({type: 'interaction', poll: {...poll, ...change}});
            await passTime(500);
            const regions = [...document.querySelectorAll('[role=status]')];
            heard.push(regions.map(({textContent}) => textContent).filter(Boolean));
            await passTime(5_000);
        };
        await news({});
        await news({voters: 1});
        await news({voters: 2});
        const options = [{text: 'Yes', right: true}, {text: 'No', right: false}];
        await news({voters: 2, options, closedAt: '2030-01-01T00:01:00Z'});
        return [heard, document.querySelector('.poll').textContent.includes('2 answers')];
    }""") == [[["Quiz: Tea?"], [], [], ["You got it right.", "The quiz is over."]], True]


def test_a_poll_that_came_while_polls_were_hidden_is_read_once_it_is_seen(page: Page) -> None:
    page.evaluate(AUDIENCE, {})
    page.evaluate(CLOCK)
    assert page.evaluate("""async () => {
        const {makePoll} = await import('/assets/poll.js');
        let isSeen = true;
        document.body.append(makePoll({...part, shows: () => isSeen}).root);
        const heard = [];
        const news = async (number, voters, closedAt = null) => {
            hear({type: 'interaction', poll: {
                number, question: `Tea ${number}?`, options: [{text: 'Yes'}, {text: 'No'}], multiple: false,
                results: 'live', voters, quiz: false, openedAt: '2030-01-01T00:00:00Z', closesAt: null, closedAt,
            }});
            await passTime(500);
            const regions = [...document.querySelectorAll('[role=status]')];
            heard.push(regions.map(({textContent}) => textContent).filter(Boolean));
            await passTime(5_000);
        };
        api.poll = async () => ({vote: null});
        await news(1, 0);
        isSeen = false;
        await news(1, 1, '2030-01-01T00:01:00Z');
        await news(2, 0);
        isSeen = true;
        await news(2, 1);
        await news(2, 2);
        return heard;
    }""") == [["Poll: Tea 1?"], [], [], ["Poll: Tea 2?"], []]


def test_lists_of_people_have_names_for_who_listens(page: Page) -> None:
    page.evaluate(AUDIENCE, {})
    assert page.evaluate("""async () => {
        const {openPeople} = await import('/assets/ranks.js');
        api.rank = async () => ({ranks: []});
        openPeople(part, 'givers');
        await turns();
        return [...document.querySelectorAll('dialog fieldset')].map(({ariaLabel}) => ariaLabel);
    }""") == ["List", "Period"]


# What lies over the picture, and beside it.


def test_comments_that_nobody_could_see_do_not_cross_the_picture_later(page: Page) -> None:
    page.evaluate(AUDIENCE, {})
    assert page.evaluate("""async () => {
        const {makeBarrage} = await import('/assets/barrage.js');
        const {root} = makeBarrage(part), layer = document.createElement('div');
        layer.append(root);
        document.body.append(layer);
        let number = 0;
        const say = () => audience.dispatchEvent(new CustomEvent('comment', {
            detail: {number: ++number, author: 'ann', name: 'Ann', text: 'Hello!'},
        }));
        // As while a viewer wants to see the picture only.
        layer.hidden = true;
        for (let count = 0; count < 3; count++) say();
        const meanwhile = root.childElementCount;
        layer.hidden = false;
        const after = root.childElementCount;
        say();
        return [meanwhile, after, root.childElementCount];
    }""") == [0, 0, 1]


def test_a_gifts_name_can_be_read_on_a_small_phone(chromium: Browser, server: Server) -> None:
    with chromium.open(server.origin + "/healthz", Viewport(320, 568)) as page:
        page.evaluate("""async () => {
            const meta = document.createElement('meta');
            Object.assign(meta, {name: 'viewport', content: 'width=device-width, initial-scale=1'});
            document.head.append(meta);
            for (const name of ['style', 'dialog']) {
                const sheet = document.createElement('link');
                Object.assign(sheet, {rel: 'stylesheet', href: `/assets/${name}.css`});
                const loaded = new Promise(done => sheet.addEventListener('load', done));
                document.head.append(sheet);
                await loaded;
            }
        }""")
        page.evaluate(AUDIENCE, {"isModerator": True})
        widths = page.evaluate("""async () => {
            const {makeCatalogue} = await import('/assets/gift-catalogue.js');
            makeCatalogue(part).root.click();
            const dialog = document.querySelector('dialog');
            const row = dialog.querySelector('.gift-kinds li');
            const sizes = [...row.children].map(field => field.getBoundingClientRect());
            return {
                fields: sizes.map(({width}) => Math.round(width)), tops: sizes.map(({top}) => Math.round(top)),
                isWithin: dialog.scrollWidth <= dialog.clientWidth,
            };
        }""")
    picture, name, price, remove = widths["fields"]
    assert name >= 110 and price >= 76 and min(picture, remove) >= 44 and widths["isWithin"], widths
    # The price has a line of its own below.
    assert widths["tops"][0] == widths["tops"][1] < widths["tops"][2], widths


#: The feed's menu, with space of its own around what it holds.
MENU = """async () => {
    document.body.innerHTML = `<dialog id="menu" style="width: 300px; height: 300px; padding: 40px">
        <a id="go-live" href="/">Go live</a><button id="menu-close">Close</button><p id="empty"></p><p id="summary"></p>
        <ul id="list"></ul></dialog>`;
    const {makeMenu} = await import('/assets/feed/menu.js');
    makeMenu({addEventListener() {}, stories: [], count: 0, current: null}).open();
}"""


def test_a_press_within_the_menu_leaves_it_open(page: Page) -> None:
    page.evaluate(MENU)
    press_at(page, "[box.left + 12, box.bottom - 12]")
    assert page.evaluate("() => document.getElementById('menu').open")
    press_at(page, "[box.left / 2, box.top / 2]")
    assert not page.evaluate("() => document.getElementById('menu').open")


# Names that every object has.


#: A host's page of a stream whose people are called as members of objects are; as the server would say it.
NAMED = """async () => {
    const known = JSON.parse(`{
        "speakers": {}, "invitations": {}, "programme": {}, "counts": {"viewers": 4},
        "viewers": {"constructor": {"name": "Con"}, "__proto__": {"name": "Pro"}, "toString": {"name": "Tos"}},
        "raisedHands": {"valueOf": {"name": "Val", "since": "2030", "order": 1, "held": false}}
    }`);
    globalThis.room = Object.assign(new EventTarget(), {
        sync: {known}, isOpen: true, isOnStage: true, isHost: true, info: {state: 'live', programme: 'composed'},
        audience: {givers: [], fans: [], rankOf: () => 0}, bans: {}, say() {}, api: {},
    });
}"""


def test_nobody_hides_behind_a_name_that_every_object_has(page: Page) -> None:
    page.evaluate(NAMED)
    assert page.evaluate("""async () => {
        const {people} = await import('/assets/widgets/people.js');
        people.mount(room, document.body);
        const listed = id => [...document.querySelectorAll(`#${id} li`)].map(({dataset}) => dataset.participant);
        return [listed('hands'), listed('viewer-list')];
    }""") == [["valueOf"], ["constructor", "__proto__", "toString"]]


@pytest.mark.parametrize("who, name", [("constructor", "Con"), ("__proto__", "Pro"), ("toString", "Tos")])
def test_a_viewer_of_such_a_name_can_be_invited(page: Page, who: str, name: str) -> None:
    page.evaluate(NAMED)
    assert page.evaluate("""async who => {
        const {manage} = await import('/assets/widgets/manage.js');
        manage(room, who);
        const dialog = document.querySelector('dialog');
        return [dialog.querySelector('h2').textContent, dialog.querySelector('button').dataset.value];
    }""", who) == [name, "invite"]


def test_changes_of_whoever_is_called_so_arrive(page: Page) -> None:
    assert page.evaluate("""async () => {
        const {mergePatch} = await import('/assets/sync.js');
        const patch = text => JSON.parse(text);
        const before = {viewers: {ann: {name: 'Ann'}}};
        const came = mergePatch(before, patch('{"viewers": {"__proto__": {"name": "Eve"}}}'));
        const renamed = mergePatch(came, patch('{"viewers": {"__proto__": {"name": "Eva"}}}'));
        const left = mergePatch(renamed, patch('{"viewers": {"__proto__": null}}'));
        const named = ({viewers}) => Object.entries(viewers).map(([id, {name}]) => `${id} ${name}`);
        return [named(came), named(renamed), named(left), {}.name === undefined];
    }""") == [["ann Ann", "__proto__ Eve"], ["ann Ann", "__proto__ Eva"], ["ann Ann"], True]


def test_a_reaction_of_such_a_name_is_one_like_others(page: Page) -> None:
    page.evaluate(CLOCK)
    page.evaluate(AUDIENCE, {})
    assert page.evaluate("""async () => {
        const {makeReactions} = await import('/assets/talk.js');
        const told = [];
        sync.say = message => told.push(message);
        hear({type: 'interaction', settings: {...audience.settings, reactions: ['constructor']}});
        const {root} = makeReactions(part);
        document.body.append(root);
        const button = root.querySelector('[data-kind=constructor]');
        button.click();
        button.click();
        await passTime(500);
        return [button.textContent, button.querySelector('svg') !== null, told];
    }""") == ["", True, [{"type": "react", "reactions": {"constructor": 2}}]]
