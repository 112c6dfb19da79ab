"""A whole evening on one stage: backstage, live, hands, invitations, mutes, removals, the end."""

from __future__ import annotations

from collections.abc import Iterator
from datetime import datetime, timedelta, timezone
import json
from pathlib import Path
import re

import pytest

from conftest import run_browser
from drivers import DESKTOP, PHONE, Browser, DesktopChromium, Page
from drivers.patience import patient
from media import check_no_complaints, end_stream, go_live, wait_for_frames, wait_for_sound, wait_for_state, watch
from server import Server
from test_pages import assert_fits


@pytest.fixture(scope="module")
def chromium(logs: Path) -> Iterator[Browser]:
    """The main story is seen in what people have, windows and all."""
    yield from run_browser(DesktopChromium, logs)


def enter(
    browser: Browser, server: Server, page: str, stream: str, name: str, role: str, viewport=DESKTOP, source="test"
) -> Page:
    """Somebody opens the link they were given; the page is marked, so that a reload would show."""
    token = server.token(stream, role, name)
    opened = browser.open(f"{server.origin}/{page}/{stream}?source={source}&quality=360&fps=15#token={token}", viewport)
    opened.evaluate("() => { globalThis.neverReloaded = true; }")
    return opened


def assert_never_reloaded(page: Page) -> None:
    assert page.evaluate("() => globalThis.neverReloaded === true")


def open_backstage(host: Page, title: str) -> None:
    wait_for_state(host, "ready")
    host.click("#open-backstage")
    host.evaluate("title => { document.querySelector('dialog input[name=title]').value = title; }", title)
    # What is composed has tests of its own, and leaves browsers less of a small machine.
    host.evaluate("() => { document.querySelector('dialog select[name=programme]').value = 'host'; }")
    host.click("dialog[data-name=stream] [data-value=open]")
    wait_for_state(host, "backstage")


def choose(page: Page, opener: str, value: str) -> None:
    """Opens the host's menu about somebody, and chooses."""
    page.click(opener)
    page.click(f"dialog[data-name=manage] [data-value={value}]")


def invite(host: Page, name: str) -> None:
    host.click(f"#hands [data-participant={name}] [data-action=invite]")


def raise_hand(page: Page, host: Page, name: str) -> None:
    page.click("#hand")
    page.wait_for("() => document.getElementById('hand').ariaPressed === 'true'", what=f"{name}'s hand is up")
    host.wait_for("name => document.querySelector(`#hands [data-participant=${name}]`) !== null", name, what="the host sees it")


def accept(page: Page) -> None:
    page.wait_for("() => document.querySelector('dialog[data-name=invitation]')?.open", what="the invitation is asked")
    assert page.evaluate("() => document.activeElement.dataset.value") == "accept"
    page.click("dialog[data-name=invitation] [data-value=accept]")
    page.wait_for(
        "() => document.getElementById('own-preview')?.videoWidth > 0", seconds=15, what="they see themselves first")
    page.click("dialog[data-name=lobby] [data-value=enter]")
    page.wait_for("() => document.body.classList.contains('studio')", what="the page is a studio")
    wait_for_state(page, "live")


def wait_until_seen(page: Page, name: str) -> None:
    """Waits until somebody's picture moves in their tile, and is not black."""
    page.wait_for(
        """async name => {
            const video = document.querySelector(`.tile[data-participant=${name}] video`);
            if (video.hidden || !video.videoWidth) return false;
            const context = new OffscreenCanvas(8, 8).getContext('2d');
            context.drawImage(video, 0, 0, 8, 8);
            const light = Math.max(...context.getImageData(0, 0, 8, 8).data.filter((_, index) => index % 4 < 3));
            globalThis.seen ??= {};
            const times = globalThis.seen[name] ??= new Set();
            times.add(video.currentTime);
            return light > 60 && times.size > 3;
        }""",
        name, seconds=20, what=f"{name} is seen")


def wait_until_heard(page: Page) -> None:
    page.wait_for(
        """async () => {
            const report = await rostrum.connection.session.peer.getStats();
            return [...report.values()].some(entry =>
                entry.type === 'inbound-rtp' && entry.kind === 'audio' && entry.totalAudioEnergy > 1e-6);
        }""",
        seconds=20, what="a voice is heard")


#: From now on the page is told nothing new of itself, as where the server's word is late; `hearAgain` ends that.
HEAR_LATE = """() => {
    const {sync} = rostrum.room, {you} = sync;
    let latest = you;
    Object.defineProperty(sync, 'you', {configurable: true, get: () => you, set: value => { latest = value; }});
    globalThis.hearAgain = () => {
        Object.defineProperty(sync, 'you', {configurable: true, enumerable: true, writable: true, value: latest});
    };
}"""


@pytest.fixture
def evening(browsers: dict[str, Browser], server: Server, stream: str):
    """A host in Chromium who is live, and Bob, who watches in Firefox."""
    host = enter(browsers["chromium"], server, "live", stream, "Ann", "host")
    open_backstage(host, "An evening")
    # Firefox lets a page make no sound of its own that only a script asked for; its camera's microphone may.
    bob = enter(browsers["firefox"], server, "watch", stream, "Bob", "viewer", PHONE, source="camera")
    wait_for_state(bob, "backstage")
    host.wait_for("() => document.querySelector('#schedule').innerText.includes('1 person is waiting')")
    host.click("#go")
    wait_for_state(host, "live")
    wait_for_state(bob, "live")
    return host, bob


def test_the_whole_story(browsers: dict[str, Browser], server: Server, stream: str, evening) -> None:
    host, bob = evening
    assert bob.text("#name") == "An evening"
    wait_for_frames(bob)
    wait_for_sound(bob)

    raise_hand(bob, host, "bob")
    invite(host, "bob")
    accept(bob)
    host.wait_for("() => document.querySelector('.tile[data-participant=bob]') !== null", what="Bob is on the host's stage")
    bob.wait_for("() => document.querySelector('.tile[data-participant=ann]') !== null", what="the host is on Bob's")
    for page, other in ((host, "bob"), (bob, "ann")):
        wait_until_seen(page, other)
        wait_until_heard(page)

    bob.evaluate(HEAR_LATE)
    choose(host, ".tile[data-participant=bob] .more", "mute-audio")
    bob.wait_for("() => document.getElementById('mute').ariaPressed === 'true'", what="Bob's page muted itself")
    host.wait_for(
        "() => document.querySelector('.tile[data-participant=bob]').dataset.audioMuted === 'true'",
        what="the host sees that")
    assert bob.evaluate("() => rostrum.room.own.source.media.getAudioTracks().every(track => !track.enabled)")
    # A request, not a prohibition; also before the server's word on it has come.
    bob.click("#mute")
    host.wait_for("() => document.querySelector('.tile[data-participant=bob]').dataset.audioMuted === 'false'")
    bob.evaluate("() => hearAgain()")

    choose(host, ".tile[data-participant=bob] .more", "move")
    bob.wait_for("() => document.body.classList.contains('player')", what="Bob is in the audience")
    wait_for_state(bob, "live")
    wait_for_frames(bob)
    host.wait_for("() => !document.querySelector('.tile[data-participant=bob]')", what="Bob is off the host's stage")

    cid = enter(browsers["chromium"], server, "watch", stream, "Cid", "viewer")
    wait_for_state(cid, "live")
    raise_hand(cid, host, "cid")
    choose(host, "#hands [data-participant=cid] button:last-child", "ban")
    host.click("dialog[data-name=remove] [data-value=yes]")
    wait_for_state(cid, "removed")
    host.wait_for(
        "() => !document.querySelector('#people :not(#bans) > [data-participant=cid]')", what="nothing of Cid is left")
    cid.close()
    cid = enter(browsers["chromium"], server, "watch", stream, "Cid", "viewer")
    wait_for_state(cid, "removed")
    assert "removed" in cid.text("#state")
    host.click("#bans [data-participant=cid] [data-action=unban]")
    host.wait_for("() => !document.querySelector('#bans li')", what="Cid is not kept out any more")
    cid.close()
    cid = enter(browsers["chromium"], server, "watch", stream, "Cid", "viewer")
    wait_for_state(cid, "live")
    cid.close()

    assert_never_reloaded(bob)
    check_no_complaints(host)
    end_stream(host)
    for page in (host, bob):
        wait_for_state(page, "ended")
        assert "ended" in page.text("#state" if page is bob else "#notice")
    assert_never_reloaded(host)
    # Its end is final: nothing offers what the server would refuse.
    assert host.evaluate("() => document.getElementById('go').hidden")


#: Stands for the browser's own choice of a screen, which differs from machine to machine.
FAKE_SCREEN = """() => {
    navigator.mediaDevices.getDisplayMedia = async () => {
        const canvas = document.createElement('canvas');
        [canvas.width, canvas.height] = [640, 400];
        const context = canvas.getContext('2d');
        let count = 0;
        globalThis.painting = setInterval(() => {
            context.fillStyle = 'rgb(20, 180, 20)';
            context.fillRect(0, 0, 640, 400);
            context.fillStyle = 'white';
            context.fillRect(count++ % 640, 0, 8, 8);
        }, 50);
        return globalThis.fakeScreen = canvas.captureStream(20);
    };
}"""

#: Whether what a video shows in its middle is that screen.
IS_GREEN = """selector => {
    const video = document.querySelector(selector);
    if (!video?.videoWidth) return false;
    const context = new OffscreenCanvas(8, 8).getContext('2d');
    context.drawImage(video, 0, 0, 8, 8);
    const [red, green, blue] = context.getImageData(4, 4, 1, 1).data;
    return green > 120 && red < 90 && blue < 90;
}"""


def test_a_screen_is_shared_beside_the_camera(
    browsers: dict[str, Browser], server: Server, stream: str, evening
) -> None:
    host, bob = evening
    raise_hand(bob, host, "bob")
    invite(host, "bob")
    accept(bob)
    wait_until_seen(bob, "ann")
    viewer = enter(browsers["chromium"], server, "watch", stream, "Cid", "viewer")
    wait_for_state(viewer, "live")
    host.evaluate(FAKE_SCREEN)
    host.click("#share-screen")
    host.wait_for("() => document.getElementById('share-screen').ariaPressed === 'true'", what="it is shared")
    bob.wait_for(IS_GREEN, ".tile[data-screen-of=ann] video", seconds=20, what="Bob sees the screen")
    wait_until_seen(bob, "ann")
    viewer.wait_for(IS_GREEN, "#video", seconds=20, what="viewers get the screen instead of the face")
    assert_fits(bob)

    # A pinned tile is large, comes first, and can be let go of from the keyboard.
    bob.evaluate("() => document.querySelector('.tile[data-screen-of=ann] .pin').focus()")
    bob.press("Enter")
    bob.wait_for("() => document.querySelector('.grid > li.pinned')?.dataset.screenOf === 'ann'", what="it is pinned")
    assert bob.evaluate("() => document.querySelector('.grid').firstElementChild.classList.contains('pinned')")
    assert bob.evaluate("""() => {
        const [pinned, other] = ['.tile.pinned', '.tile.own'].map(each => document.querySelector(each).clientHeight);
        return pinned >= other;
    }""")
    assert bob.evaluate("() => document.activeElement.getAttribute('aria-pressed')") == "true"
    assert_fits(bob)
    bob.press("Enter")
    bob.wait_for("() => !document.querySelector('.tile.pinned')", what="it is like the others")

    # Ended from outside the page, as by the browser's own bar.
    host.evaluate("() => { fakeScreen.getTracks()[0].stop(); fakeScreen.getTracks()[0].dispatchEvent(new Event('ended')); }")
    bob.wait_for("() => !document.querySelector('[data-screen-of]')", seconds=20, what="the screen is gone")
    viewer.wait_for(f"selector => !({IS_GREEN})(selector)", "#video", seconds=20, what="viewers see the host again")
    wait_for_frames(viewer)
    check_no_complaints(host)


def test_a_speaker_steps_down_and_a_declined_invitation_goes(
    browsers: dict[str, Browser], server: Server, stream: str, evening
) -> None:
    host, bob = evening
    raise_hand(bob, host, "bob")
    invite(host, "bob")
    bob.click("dialog[data-name=invitation] [data-value=decline]")
    host.wait_for("() => !document.querySelector('#invitations li, #hands li')", what="hand and invitation are gone")
    # The host may know it first, and a press would lower the hand that is still up.
    bob.wait_for("() => document.getElementById('hand').ariaPressed === 'false'", what="his hand is down")
    raise_hand(bob, host, "bob")
    invite(host, "bob")
    bob.wait_for("() => document.querySelector('dialog') !== null", what="the invitation is asked")
    host.click("#invitations [data-participant=bob] [data-action=withdraw]")
    bob.wait_for("() => !document.querySelector('dialog')", what="the question goes with the invitation")
    choose(host, "#people [data-participant=bob] button:last-child", "invite")
    accept(bob)
    assert_fits(bob)
    bob.click("#stop")
    bob.wait_for("() => document.body.classList.contains('player')", what="Bob is in the audience")
    wait_for_state(bob, "live")
    wait_for_frames(bob)
    host.wait_for("() => !document.querySelector('.tile[data-participant=bob]')", what="Bob has left the stage")
    assert_never_reloaded(bob)


def test_the_backstage_counts_down_and_the_doors_open(chromium: Browser, server: Server, stream: str) -> None:
    starts = datetime.now(timezone.utc).replace(microsecond=0) + timedelta(minutes=9)
    body = {"id": stream, "title": "Later", "startsAt": starts.strftime("%Y-%m-%dT%H:%M:%S.000Z")}
    headers = {"Authorization": f"Bearer {server.token(stream)}", "Content-Type": "application/json"}
    status, _, answer = server.request("POST", "/v1/streams", json.dumps(body).encode(), headers)
    assert status == 201, answer
    with enter(chromium, server, "watch", stream, "Bob", "viewer", PHONE) as bob:
        wait_for_state(bob, "backstage")
        bob.wait_for(
            """starts => {
                const [minutes, seconds] = document.getElementById('countdown').textContent.split(':').map(Number);
                return Math.abs(60 * minutes + seconds - (starts - Date.now()) / 1000) < 1.5;
            }""", starts.timestamp() * 1000, what="time runs")
        bob.wait_for("() => document.getElementById('waiting').innerText === '1 person is waiting'")
        assert_fits(bob)
        with enter(chromium, server, "live", stream, "Ann", "host") as host:
            wait_for_state(host, "backstage")
            assert re.match(r"Starts in 0[0-8]:[0-5]\d", host.text("#schedule"))
            host.click("#go")
            wait_for_state(bob, "live")
            wait_for_frames(bob)
            check_no_complaints(host)


def test_layers_of_the_stream_switch_the_viewers_widgets(chromium: Browser, server: Server, stream: str) -> None:
    with go_live(chromium, server, stream, source="test") as host, watch(chromium, server, stream) as viewer:
        wait_for_state(viewer, "live")
        host.click("#edit-stream")
        host.click("dialog details:has(input[value=float]) summary")
        for layer in ("movable", "float"):
            host.click(f"dialog input[value={layer}]")
        host.click("dialog [data-value=save]")
        viewer.wait_for("() => !rostrum.widgets.mounted.includes('audience-controls')", what="the controls are gone")
        mounted = set(viewer.evaluate("() => rostrum.widgets.mounted"))
        assert {"programme", "title", "last-picture"} <= mounted and not mounted & {"numbers", "hand"}
        wait_for_frames(viewer)
        assert "desk" in host.evaluate("() => rostrum.widgets.mounted")


def test_a_viewer_without_a_name_gets_one_by_raising_a_hand(
    chromium: Browser, server: Server, stream: str
) -> None:
    with go_live(chromium, server, stream, source="test") as host, watch(chromium, server, stream) as viewer:
        wait_for_state(viewer, "live")
        # Browsers remember who was here before.
        viewer.evaluate("() => localStorage.removeItem('rostrum:name')")
        # A page may hear that its hand is up before its request is answered.
        viewer.evaluate("""() => {
            const {room} = rostrum, raise = room.raiseHand, pressed = new Promise(done => { globalThis.release = done; });
            room.raiseHand = async () => { await raise.call(room); await pressed; };
        }""")
        viewer.click("#hand")
        viewer.evaluate("() => { document.querySelector('dialog[data-name=name] input').value = 'Vic Okafor'; }")
        viewer.click("dialog[data-name=name] [data-value=yes]")
        host.wait_for("() => document.querySelector('#hands li')?.innerText.includes('Vic Okafor')", what="the hand is seen")
        # The session from before the name is theirs.
        host.wait_for("() => rostrum.sync.known.counts.viewers === 1", what="they are counted once")
        viewer.wait_for("() => /^Lower hand\\s+You’re next$/.test(document.getElementById('hand').innerText)")
        viewer.click("#hand")
        viewer.evaluate("() => release()")
        host.wait_for("() => !document.querySelector('#hands li')", what="the hand is down")


def test_the_invitation_can_be_answered_from_the_keyboard(
    browsers: dict[str, Browser], server: Server, stream: str, evening
) -> None:
    host, bob = evening
    bob.evaluate("() => document.getElementById('hand').focus()")
    bob.press("Enter")
    host.wait_for("() => document.querySelector('#hands [data-participant=bob]') !== null", what="the hand is seen")
    invite(host, "bob")
    bob.wait_for("() => document.activeElement.dataset.value === 'accept'", what="the dialog has the focus")
    for choice in ("sound", "decline"):
        bob.press("Tab")
        # A browser may take in a key after it has answered to the press.
        bob.wait_for("choice => document.activeElement.dataset.value === choice", choice, what=f"{choice} has the focus")
    bob.press("Escape")
    host.wait_for("() => !document.querySelector('#invitations li')", what="Escape means no")
    assert bob.evaluate("() => document.activeElement.id") == "hand"


def test_a_speaker_comes_by_a_link_of_their_own(chromium: Browser, server: Server, stream: str) -> None:
    host = enter(chromium, server, "live", stream, "Ann", "host")
    open_backstage(host, "Behind the curtain")
    speaker = enter(chromium, server, "live", stream, "Sue", "speaker", PHONE)
    wait_for_state(speaker, "ready")
    assert speaker.text("#go") == "Join the stage"
    speaker.click("#go")
    # Nobody is live, and yet they meet.
    wait_for_state(speaker, "backstage")
    wait_until_seen(speaker, "ann")
    wait_until_seen(host, "sue")
    assert speaker.evaluate("() => document.getElementById('go').hidden"), "a speaker cannot go live"
    host.click("#go")
    wait_for_state(host, "live")
    wait_for_state(speaker, "live")
    assert_fits(speaker)
    speaker.click("#stop")
    speaker.wait_for("() => document.body.classList.contains('player')", what="Sue is in the audience")
    wait_for_state(speaker, "live")
    wait_for_frames(speaker)


def test_from_accepting_to_being_seen_is_quick(chromium: Browser, server: Server, stream: str) -> None:
    host = enter(chromium, server, "live", stream, "Ann", "host")
    wait_for_state(host, "ready")
    host.click("#go")
    wait_for_state(host, "live")
    bob = enter(chromium, server, "watch", stream, "Bob", "viewer")
    wait_for_state(bob, "live")
    seconds = []
    for _ in range(5):
        host.click("#viewer-list [data-participant=bob] button:last-child")
        host.click("dialog[data-name=manage] [data-value=invite]")
        bob.wait_for("() => document.querySelector('dialog[data-name=invitation]') !== null", what="the invitation is asked")
        # Both windows have one clock; it stops when the first picture is painted.
        host.evaluate(
            """() => {
                globalThis.seenAt = null;
                const look = () => {
                    const video = document.querySelector('.tile[data-participant=bob] video');
                    if (!video) return setTimeout(look, 5);
                    video.requestVideoFrameCallback(() => { seenAt = performance.timeOrigin + performance.now(); });
                };
                look();
            }""")
        bob.click("dialog [data-value=accept]")
        bob.wait_for("() => document.getElementById('own-preview')?.videoWidth > 0", what="Bob sees himself")
        began = bob.evaluate(
            """() => {
                document.querySelector('dialog [data-value=enter]').click();
                return performance.timeOrigin + performance.now();
            }""")
        seconds.append((host.wait_for("() => seenAt", what="Bob is seen") - began) / 1000)
        # Others may see him before his own page has heard that he is on stage, and until then it is a player, too.
        bob.wait_for("() => document.body.classList.contains('studio')", what="Bob's page is a studio")
        choose(host, ".tile[data-participant=bob] .more", "move")
        bob.wait_for("() => document.body.classList.contains('player')", what="Bob is in the audience")
        host.wait_for("() => !document.querySelector('.tile[data-participant=bob]')", what="Bob is off the host's stage")
        host.wait_for("() => document.querySelector('#viewer-list [data-participant=bob]') !== null", what="it shows")
    median = sorted(seconds)[len(seconds) // 2]
    print(f"accept an invitation to own picture seen by another speaker: {median:.2f} s median of {seconds}")
    assert median <= patient(1.5)
