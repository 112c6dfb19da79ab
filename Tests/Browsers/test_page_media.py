"""What a person's page sends and plays: devices that come and go, screens, and recordings on a bad network."""

from __future__ import annotations

import pytest

from clock import CLOCK
from drivers import Browser, Page
from server import Server
from test_modules import FAKE_SOCKETS
from test_page_modules import ON_AIR
from test_page_widgets import UNHEARD


@pytest.fixture
def page(chromium: Browser, server: Server):
    with chromium.open(server.origin + "/healthz", before_load=FAKE_SOCKETS) as page:
        page.evaluate(UNHEARD)
        yield page


REFUSED = (
    "This page can’t use your camera. "
    "Allow the camera and microphone next to the page’s address, then try again.")

#: A browser whose devices are those that the test names; `wanted` is what was asked of them.
DEVICES = """async () => {
    const {OwnMedia} = await import('/assets/own-media.js');
    globalThis.wanted = [];
    globalThis.found = [];
    navigator.mediaDevices.enumerateDevices = async () => found;
    navigator.mediaDevices.getUserMedia = async constraints => { wanted.push(constraints); return new MediaStream(); };
    globalThis.own = new OwnMedia(new URLSearchParams());
    globalThis.device = (kind, deviceId) => ({kind, deviceId, label: `${kind} ${deviceId}`});
}"""


def test_a_device_that_is_gone_keeps_no_other_from_opening(page: Page) -> None:
    page.evaluate(DEVICES)
    assert page.evaluate("""async () => {
        Object.assign(own, {camera: 'cam', microphone: 'headset'});
        found = [device('videoinput', 'cam'), device('audioinput', 'built-in')];
        const isOpen = await own.open();
        return [isOpen, wanted[0].video.deviceId, wanted[0].audio, own.camera, own.microphone];
    }""") == [True, {"exact": "cam"}, True, "cam", ""]
    # A browser that names none yet says nothing of what is gone.
    assert page.evaluate("""async () => {
        own.microphone = 'headset';
        found = [{kind: 'audioinput', deviceId: '', label: ''}];
        await own.open();
        return wanted[1].audio;
    }""") == {"deviceId": {"exact": "headset"}}


def test_a_camera_that_is_chosen_while_another_is_looked_for_is_opened(page: Page) -> None:
    page.evaluate(DEVICES)
    assert page.evaluate("""async () => {
        own.camera = 'gone';
        found = [device('videoinput', 'cam')];
        const opened = own.open();
        own.choose({camera: 'cam'});
        await opened;
        return [own.camera, wanted.map(({video}) => video.deviceId)];
    }""") == ["cam", [{"exact": "cam"}]]


def test_a_choice_that_could_not_be_opened_is_not_shown_as_the_one_that_is_sent(page: Page) -> None:
    """Such as a camera that another program uses: the one of before goes on, and viewers see that."""
    page.evaluate(DEVICES)
    assert page.evaluate("""async () => {
        const {devices} = await import('/assets/widgets/devices.js');
        const open = navigator.mediaDevices.getUserMedia;
        navigator.mediaDevices.getUserMedia = constraints =>
            constraints.video.deviceId?.exact === 'used' || constraints.video.height.ideal === 1080
                ? Promise.reject(new DOMException('in use', 'NotReadableError')) : open(constraints);
        found = [device('videoinput', 'cam'), device('videoinput', 'used'), device('audioinput', 'headset')];
        Object.assign(own, {camera: 'cam', microphone: 'headset'});
        devices.mount({own, onAir: Object.assign(new EventTarget(), {isOn: true})}, document.body);
        await own.open();
        await turns();
        const fields = ['camera', 'microphone', 'quality', 'frame-rate'].map(id => document.getElementById(id));
        const shown = () => fields.map(({value}) => value);
        const choose = async (field, value) => {
            field.value = value;
            field.dispatchEvent(new Event('change'));
            await turns();
        };
        const seen = [shown()];
        await choose(fields[0], 'used');
        seen.push(shown(), own.problem.title);
        await choose(fields[2], '1080');
        seen.push(shown(), own.maxBitrate);
        // What is gone is nobody's choice.
        found = [device('videoinput', 'used'), device('audioinput', 'headset')];
        navigator.mediaDevices.dispatchEvent(new Event('devicechange'));
        await turns();
        return [...seen, fields[0].selectedOptions[0].textContent];
    }""") == [
        ["cam", "headset", "720", "30"], ["cam", "headset", "720", "30"], "The camera isn’t available",
        ["cam", "headset", "720", "30"], 2_500_000, "Default"]


def test_a_guest_whose_camera_was_refused_can_try_again_before_going_on_stage(page: Page) -> None:
    """They are told to allow it and to try again; whatever else they press brings them on stage, or away."""
    page.evaluate(DEVICES)
    assert page.evaluate("""async () => {
        const {preview} = await import('/assets/widgets/lobby.js');
        let allow = null;
        navigator.mediaDevices.getUserMedia = () => new Promise((resolve, refuse) => {
            const refusal = new DOMException('no', 'NotAllowedError');
            allow = isAllowed => isAllowed ? resolve(new MediaStream()) : refuse(refusal);
        });
        const answer = async isAllowed => {
            while (!allow) await turns();
            const decide = allow;
            allow = null;
            decide(isAllowed);
            await turns();
        };
        const room = {own, naming: {name: 'Bob', choose() {}}};
        const isWanted = preview(room, new AbortController().signal);
        const retry = document.getElementById('lobby-retry'), trouble = document.querySelector('dialog [role=alert]');
        const look = () => [retry.checkVisibility(), retry.ariaDisabled, trouble.textContent];
        const seen = [look()];
        await answer(false);
        retry.focus();
        seen.push(look());
        retry.click();
        await turns();
        seen.push(look(), document.activeElement === retry);
        await answer(true);
        seen.push(look(), own.source !== null);
        document.querySelector('dialog [data-value=enter]').click();
        return [...seen, await isWanted];
    }""") == [
        [False, "false", ""], [True, "false", REFUSED], [True, "true", ""], True, [False, "false", ""], True, True]


def test_a_screen_is_asked_for_within_the_gesture(page: Page) -> None:
    """Safari shares none once a page has waited for anything else."""
    page.evaluate(DEVICES)
    assert page.evaluate("""() => {
        let asked = 0;
        navigator.mediaDevices.getDisplayMedia = () => { asked++; return new Promise(() => {}); };
        Object.assign(own, {kind: 'screen', camera: 'cam', microphone: 'headset'});
        own.open();
        return asked;
    }""") == 1


def test_a_screen_that_is_no_longer_shared_when_the_microphone_is_there_is_told(page: Page) -> None:
    page.evaluate(DEVICES)
    assert page.evaluate("""async () => {
        const screen = document.createElement('canvas').captureStream();
        const sound = new AudioContext().createMediaStreamDestination().stream;
        let allow = null;
        navigator.mediaDevices.getDisplayMedia = async () => screen;
        navigator.mediaDevices.getUserMedia = () => new Promise(resolve => { allow = () => resolve(sound); });
        own.kind = 'screen';
        const opened = own.open();
        while (!allow) await turns();
        // The browser tells those who listen by then, and nobody does.
        screen.getVideoTracks()[0].stop();
        allow();
        return [await opened, own.source, own.problem.title];
    }""") == [False, None, "Screen sharing has ended"]


def test_a_screen_is_asked_for_once_at_a_time(page: Page) -> None:
    page.evaluate(ON_AIR)
    assert page.evaluate("""async () => {
        const asked = [], screen = () => document.createElement('canvas').captureStream();
        navigator.mediaDevices.getDisplayMedia = () => new Promise(resolve => asked.push(resolve));
        onAir.room.say = () => {};
        await onAir.start();
        onAir.toggleScreen();
        onAir.toggleScreen();
        const first = screen();
        asked[0](first);
        await turns();
        const shared = [asked.length, onAir.screen === first];
        onAir.toggleScreen();
        onAir.toggleScreen();
        asked.at(-1)(screen());
        await turns();
        return [...shared, asked.length, first.getTracks()[0].readyState];
    }""") == [1, True, 2, "ended"]


def test_no_screen_stays_on_for_who_went_on_the_air_twice(page: Page) -> None:
    page.evaluate(ON_AIR)
    assert page.evaluate("""async () => {
        const waiting = [], held = [];
        navigator.wakeLock.request = () => new Promise(resolve => waiting.push(resolve));
        onAir.start();
        onAir.stop();
        onAir.start();
        for (const resolve of waiting) {
            const lock = {isReleased: false, release() { this.isReleased = true; }};
            held.push(lock);
            resolve(lock);
        }
        await turns();
        const before = held.map(({isReleased}) => isReleased);
        onAir.stop();
        return [before, held.map(({isReleased}) => isReleased)];
    }""") == [[True, False], [True, True]]


def test_numbers_that_come_after_the_end_are_not_told(page: Page) -> None:
    page.evaluate(ON_AIR)
    assert page.evaluate("""async () => {
        let answer = null;
        await onAir.start();
        onAir.connection.state = 'connected';
        onAir.stats = {read: () => new Promise(resolve => { answer = resolve; })};
        onAir.room.dispatchEvent(new Event('second'));
        const wasAsked = answer !== null;
        onAir.stop();
        answer({bitrate: 9, limitation: null});
        await turns();
        return [wasAsked, onAir.numbers, unheard];
    }""") == [True, None, []]


#: A video that loads nothing: `loaded` are the addresses of its files, `is` how it stands, and `fail` an error of it.
FAKE_VIDEO = """() => {
    globalThis.loaded = [];
    globalThis.is = {error: null, time: 0, paused: true};
    globalThis.fake = video => {
        globalThis.fail = code => { is.error = {code}; video.dispatchEvent(new Event('error')); };
        video.play = async () => { is.paused = false; };
        return Object.defineProperties(video, {
            src: {set: address => { Object.assign(is, {error: null, time: 0, paused: true}); loaded.push(address); }},
            error: {get: () => is.error}, paused: {get: () => is.paused},
            currentTime: {get: () => is.time, set: time => { is.time = time; }},
        });
    };
    globalThis.token = 'first';
    globalThis.recording = {
        id: 'r1', part: 1, state: 'ended', duration: 600, size: 1_000_000, url: '/r1.mp4', hls: null,
        startedAt: '2030-01-01T00:00:00Z',
    };
    // A stream that is over.
    globalThis.stream = Object.assign(new EventTarget(), {
        info: {state: 'ended'}, addressOf: path => `${path}?access_token=${token}`,
        api: {
            recordings: async () => ({recordings: [recording]}),
            recordedComments: async () => ({comments: [], more: false}),
        },
    });
}"""
#: Its page, five minutes into its one recording.
RECORDED = """async () => {
    const {playback} = await import('/assets/widgets/playback.js');
    globalThis.unmount = playback.mount(stream, document.body);
    globalThis.video = fake(document.getElementById('playback'));
    await settled();
    Object.assign(is, {time: 300, paused: false});
}"""


def test_a_recording_goes_on_where_the_network_or_its_token_ended(page: Page) -> None:
    page.evaluate(CLOCK)
    page.evaluate(FAKE_VIDEO)
    page.evaluate(RECORDED)
    assert page.evaluate("""async () => {
        token = 'second';
        fail(MediaError.MEDIA_ERR_NETWORK);
        await passTime(900);
        const before = loaded.length;
        await passTime(100);
        return [before, loaded, is.time, is.paused];
    }""") == [1, ["/r1.mp4?access_token=first", "/r1.mp4?access_token=second"], 300, False]
    # Whoever has paused is not played to.
    assert page.evaluate("""async () => {
        is.paused = true;
        fail(MediaError.MEDIA_ERR_NETWORK);
        await passTime(2_000);
        return [loaded.length, is.time, is.paused];
    }""") == [3, 300, True]


def test_a_recording_that_cannot_be_had_is_not_asked_for_without_end(page: Page) -> None:
    page.evaluate(CLOCK)
    page.evaluate(FAKE_VIDEO)
    page.evaluate(RECORDED)
    seen = page.evaluate("""async () => {
        const tries = async () => {
            const before = loaded.length;
            for (let count = 0; count < 15; count++) {
                fail(MediaError.MEDIA_ERR_SRC_NOT_SUPPORTED);
                await passTime(16_000);
            }
            return loaded.length - before;
        };
        const seen = [await tries()];
        dispatchEvent(new Event('online'));
        await settled();
        seen.push(loaded.length, is.time);
        // What plays for a while may be lost as often again.
        await tries();
        is.error = null;
        is.time = 310;
        video.dispatchEvent(new Event('timeupdate'));
        seen.push(await tries());
        return seen;
    }""")
    assert seen == [10, 12, 300, 10]


def test_a_recording_that_is_broken_or_left_is_let_be(page: Page) -> None:
    page.evaluate(CLOCK)
    page.evaluate(FAKE_VIDEO)
    page.evaluate(RECORDED)
    assert page.evaluate("""async () => {
        fail(MediaError.MEDIA_ERR_DECODE);
        await passTime(60_000);
        const broken = loaded.length, before = timers();
        fail(MediaError.MEDIA_ERR_NETWORK);
        const waiting = timers() - before;
        unmount();
        dispatchEvent(new Event('online'));
        await settled();
        return [broken, waiting, timers() - before, loaded.length];
    }""") == [1, 1, 0, 1]


def test_a_player_goes_on_with_a_recording_too(page: Page) -> None:
    page.evaluate(CLOCK)
    page.evaluate(FAKE_VIDEO)
    assert page.evaluate("""async () => {
        const {Playback} = await import('/assets/player/playback.js');
        const reception = Object.assign(new EventTarget(), {video: null, rewind: {isOn: false}, detach() {}});
        const watched = Object.assign(stream, {close() {}});
        const playback = new Playback(fake(document.createElement('video')), watched, {open: () => reception});
        playback.playRecording(recording);
        // It asks for the list as soon as it hears that the stream is over.
        stream.dispatchEvent(new Event('change'));
        await settled();
        Object.assign(is, {time: 300, paused: false});
        token = 'second';
        fail(MediaError.MEDIA_ERR_NETWORK);
        await passTime(1_000);
        const seen = [[...loaded], is.time, is.paused];
        fail(MediaError.MEDIA_ERR_NETWORK);
        playback.close();
        await passTime(60_000);
        return [...seen, loaded.length, unheard];
    }""") == [["/r1.mp4?access_token=first", "/r1.mp4?access_token=second"], 300, False, 2, []]


def test_a_browser_that_plays_hls_itself_is_given_nothing_twice(page: Page) -> None:
    """Each reload interrupts what plays."""
    page.evaluate(CLOCK)
    page.evaluate(FAKE_VIDEO)
    assert page.evaluate("""async () => {
        globalThis.MediaSource = globalThis.ManagedMediaSource = undefined;
        const {HLSPlayer} = await import('/assets/hls-player.js');
        globalThis.fetch = async () => new Response('#EXTM3U');
        const rest = async milliseconds => {
            await passTime(milliseconds);
            for (let turn = 0; turn < 4; turn++) await settled();
            return loaded.length;
        };
        const player = new HLSPlayer({base: '/hls/s1/', withToken: action => action(null)});
        const video = fake(document.createElement('video'));
        player.attach(video);
        const seen = [await rest(0)];
        // Some browsers tell of one failure more than once.
        for (let time = 0; time < 3; time++) fail(MediaError.MEDIA_ERR_NETWORK);
        seen.push(await rest(7_000), await rest(2_000));
        fail(MediaError.MEDIA_ERR_NETWORK);
        seen.push(await rest(4_000));
        // What the viewer chooses meanwhile is played at once, and stays.
        player.prefer('low');
        seen.push(await rest(0));
        video.dispatchEvent(new Event('loadeddata'));
        seen.push(await rest(10_000));
        player.detach();
        return [seen, new URL(loaded.at(-1)).search, player.state, player.error];
    }""") == [[1, 1, 2, 2, 3, 3], "?rendition=low", "playing", None]
