"""A guest whom the host invites is seen and heard by the audience, in the settings that nobody touched."""

from __future__ import annotations

import json

import pytest

from drivers import DESKTOP, Browser, Page
from media import check_no_complaints, press_go_live, wait_for_state, watch
from server import Server
from test_composition import SIZE
from test_gifts import ask
from test_people import here
from test_story import accept, enter, invite, raise_hand

#: A camera of one colour in place of the browser's; its microphone stays. The browser knows nobody's name from before.
FACE = """() => {
    if (location.protocol === 'http:') localStorage.clear();
    const open = navigator.mediaDevices.getUserMedia.bind(navigator.mediaDevices);
    navigator.mediaDevices.getUserMedia = async ({audio}) => {
        const canvas = document.createElement('canvas');
        [canvas.width, canvas.height] = [640, 360];
        const context = canvas.getContext('2d');
        let count = 0;
        setInterval(() => {
            context.fillStyle = 'rgb(20, 180, 20)';
            context.fillRect(0, 0, 640, 360);
            context.fillStyle = 'white';
            context.fillRect(count++ % 640, 0, 8, 8);
        }, 50);
        const media = canvas.captureStream(20);
        media.addTrack((await open({audio})).getAudioTracks()[0]);
        return media;
    };
}"""

#: Whether the guest's colour fills some of the picture, and the host's picture is there too.
IS_SEEN = """() => {
    const video = document.getElementById('video');
    if (!video?.videoWidth) return false;
    const context = new OffscreenCanvas(16, 9).getContext('2d', {willReadFrequently: true});
    context.drawImage(video, 0, 0, 16, 9);
    const {data} = context.getImageData(0, 0, 16, 9);
    let green = 0;
    for (let at = 0; at < data.length; at += 4) {
        if (data[at + 1] > 120 && data[at] < 90 && data[at + 2] < 90) green++;
    }
    return green > 20 && green < 120;
}"""

#: The power of what this page heard in the last seconds; null while that is not known. Behind the volume in Chromium.
LOUDNESS = """async () => {
    const energy = [...(await rostrum.connection.session.peer.getStats()).values()]
        .find(entry => entry.type === 'inbound-rtp' && entry.kind === 'audio')?.totalAudioEnergy ?? 0;
    const heard = globalThis.heard ??= [];
    const at = performance.now();
    heard.push({at, energy});
    // Longer than from one of the fake microphone's beeps to the next.
    const before = heard.findLast(each => at - each.at > 1500);
    return before ? (energy - before.energy) * 1000 / (at - before.at) : null;
}"""


def wait_for_voice(page: Page, isThere: bool) -> None:
    page.wait_for(
        f"""async isThere => {{
            const power = await ({LOUDNESS})();
            return power !== null && (power > 1e-6) === isThere;
        }}""",
        isThere, seconds=30, what=f"a voice is heard: {isThere}")


@pytest.mark.parametrize(("guests", "viewers"), [("firefox", "chromium"), ("chromium", "firefox")])
def test_the_audience_sees_and_hears_an_invited_guest(
    browsers: dict[str, Browser], server: Server, stream: str, guests: str, viewers: str
) -> None:
    # As from the feed's menu: nobody made the stream, nobody has a token or changes a setting.
    host = browsers["chromium"].open(f"{server.origin}/live/{stream}?source=test&quality=360&fps=15")
    press_go_live(host)
    host.wait_for("() => rostrum.room.info?.programme === 'composed'", what="everybody on stage is in the programme")
    # As large as a build for tests can compose beside three browsers.
    host.evaluate("size => rostrum.room.edit({composition: size})", SIZE)
    guest = browsers[guests].open(f"{server.origin}/watch/{stream}", DESKTOP, before_load=FACE)
    wait_for_state(guest, "live")
    viewer = watch(browsers[viewers], server, stream)
    wait_for_state(viewer, "live")
    name = raise_my_hand(guest, host)
    invite(host, name)
    guest.wait_for("() => document.querySelector('dialog[data-name=invitation]') !== null", what="the invitation is asked")
    assert "Everyone will see and hear you" in guest.text("dialog[data-name=invitation]")
    accept(guest)
    assert guest.evaluate("() => rostrum.room.you.name") == "Gus"
    viewer.wait_for(IS_SEEN, seconds=40, what="the guest is seen beside the host")
    viewer.click("#unmute")
    host.click("#mute")
    guest.click("#mute")
    wait_for_voice(viewer, False)
    guest.click("#mute")
    wait_for_voice(viewer, True)
    assert server.json(f"/v1/streams/{stream}")["programme"] == "composed"
    assert not host.evaluate("() => document.getElementById('alone').checkVisibility()")
    check_no_complaints(host)


def raise_my_hand(page: Page, host: Page) -> str:
    """Raises the hand of somebody without a token; gives the identity that they got."""
    page.click("#hand")
    if page.evaluate("() => rostrum.room.naming.name") == "":
        page.evaluate("() => { document.querySelector('dialog[data-name=name] input').value = 'Gus'; }")
        page.click("dialog[data-name=name] [data-value=yes]")
    page.wait_for("() => rostrum.room.you?.handRaised", what="the hand is up")
    name: str = page.evaluate("() => rostrum.room.you.id")
    host.wait_for(
        "name => document.querySelector(`#hands [data-participant=${name}]`) !== null", name, what="the host sees it")
    return name


def test_a_host_is_told_when_viewers_do_not_see_the_guests(
    chromium: Browser, server: Server, stream: str
) -> None:
    host = chromium.open(f"{server.origin}/live/{stream}?source=test&quality=360&fps=15")
    press_go_live(host)
    host.wait_for("() => rostrum.room.info?.programme === 'composed'", what="everybody on stage is in the programme")
    host.evaluate("() => rostrum.room.edit({programme: 'host'})")
    guest = chromium.open(f"{server.origin}/watch/{stream}", DESKTOP, before_load=FACE)
    wait_for_state(guest, "live")
    assert not host.evaluate("() => document.getElementById('alone').checkVisibility()")
    invite(host, raise_my_hand(guest, host))
    guest.wait_for("() => document.querySelector('dialog[data-name=invitation]') !== null", what="the invitation is asked")
    assert "Viewers see and hear only the host" in guest.text("dialog[data-name=invitation]")
    host.click("#show-everybody")
    host.wait_for("() => rostrum.room.info.programme === 'composed'", what="everybody is shown")
    host.wait_for("() => !document.getElementById('alone').checkVisibility()", what="nothing is left to be told")


#: A browser that asks its user about the camera, and waits until the test answers; what it gave is kept.
ASKING = f"""() => {{
    ({FACE})();
    const open = navigator.mediaDevices.getUserMedia;
    const answer = new Promise(allow => (globalThis.allowCamera = allow));
    navigator.mediaDevices.getUserMedia = async wishes => {{
        await answer;
        return globalThis.given = await open(wishes);
    }};
}}"""


def test_a_camera_that_is_allowed_too_late_is_let_go_of(chromium: Browser, server: Server, stream: str) -> None:
    host = chromium.open(f"{server.origin}/live/{stream}?source=test&quality=360&fps=15")
    press_go_live(host)
    guest = chromium.open(f"{server.origin}/watch/{stream}", DESKTOP, before_load=ASKING)
    wait_for_state(guest, "live")
    invite(host, raise_my_hand(guest, host))
    guest.click("dialog[data-name=invitation] [data-value=accept]")
    guest.wait_for("() => rostrum.room.own.isOpening", what="the camera is asked for")
    guest.click("dialog[data-name=lobby] [data-value=no]")
    guest.evaluate("() => allowCamera()")
    guest.wait_for(
        "() => globalThis.given?.getTracks().every(track => track.readyState === 'ended')", what="it is off again")
    assert guest.evaluate("() => [rostrum.room.own.source, rostrum.room.own.problem]") == [None, None]


def test_a_guest_who_finds_the_stage_full_may_come_once_there_is_room(
    chromium: Browser, server: Server, stream: str
) -> None:
    headers = {"Authorization": f"Bearer {server.token(stream)}", "Content-Type": "application/json"}
    body = json.dumps({"title": "One chair", "programme": "host", "maxSpeakers": 1}).encode()
    assert server.request("POST", "/v1/streams", body, headers)[0] == 201
    host = enter(chromium, server, "live", stream, "Ann", "host")
    press_go_live(host)
    guest = enter(chromium, server, "watch", stream, "Bob", "viewer")
    wait_for_state(guest, "live")
    raise_hand(guest, host, "bob")
    invite(host, "bob")
    guest.wait_for("() => document.querySelector('dialog[data-name=invitation]')?.open", what="the invitation is asked")
    guest.evaluate(
        "() => { globalThis.said = []; rostrum.room.addEventListener('say', ({detail}) => { said.push(detail); }); }")
    # Somebody who came by a link takes the place meanwhile.
    with here(server, stream, "Sam", "speaker") as sam:
        ask(server, sam, "POST", f"/v1/streams/{stream}/participants")
        guest.click("dialog[data-name=invitation] [data-value=accept]")
        guest.wait_for("() => rostrum.room.own.source !== null", what="they see themselves first")
        guest.click("dialog[data-name=lobby] [data-value=enter]")
        guest.wait_for("() => said.some(text => text.includes('The stage is full'))", what="the guest is told why not")
        guest.wait_for(
            "() => document.querySelector('dialog[data-name=invitation]')?.open", what="the invitation is asked again")
        assert guest.evaluate("() => [rostrum.room.isOnStage, rostrum.room.own.source]") == [False, None]
        host.evaluate("() => rostrum.room.edit({maxSpeakers: 2})")
        guest.wait_for("() => rostrum.room.info.maxSpeakers === 2", what="there is room")
        accept(guest)
        host.wait_for("() => document.querySelector('.tile[data-participant=bob]') !== null", what="Bob is on stage")
        check_no_complaints(host)
