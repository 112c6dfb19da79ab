"""Several speakers in real browsers: slots, pins, control messages and data tracks."""

from __future__ import annotations

import pytest

from drivers import Browser
from server import Server
from stage import join, slots, wait_for_colour, wait_for_people

ENERGY = """async () => {
    let energy = 0;
    for (const entry of (await speaker.peer.getStats()).values()) {
        if (entry.type === 'inbound-rtp' && entry.kind === 'audio') energy += entry.packetsReceived;
    }
    return energy > 50;
}"""


def test_speakers_see_each_other_and_never_themselves(
    browsers: dict[str, Browser], server: Server, stream: str
) -> None:
    ann = join(browsers["chromium"], server, stream, "ann", role="host")
    bob = join(browsers["firefox"], server, stream, "bob")
    cid = join(browsers["chromium"], server, stream, "cid")
    pages = {"ann": ann, "bob": bob, "cid": cid}
    for name, page in pages.items():
        others = set(pages) - {name}
        wait_for_people(page, "audio", others)
        for other, mid in wait_for_people(page, "video", others).items():
            wait_for_colour(page, mid, other)
        page.wait_for(ENERGY, seconds=15, what=f"{name} hears the others")
    cid.close()
    for name in ("ann", "bob"):
        wait_for_people(pages[name], "video", {"ann", "bob"} - {name}, seconds=25)


def test_a_pin_and_who_speaks_decide_on_the_one_slot(
    browsers: dict[str, Browser], server: Server, stream: str
) -> None:
    bob = join(browsers["chromium"], server, stream, "bob", video=0, audio=1, volume=0.3)
    cid = join(browsers["chromium"], server, stream, "cid", video=0, audio=1, volume=0)
    ann = join(browsers["firefox"], server, stream, "ann", role="host", video=1, audio=1, volume=0)
    mid = wait_for_people(ann, "video", {"bob"})["bob"]
    wait_for_colour(ann, mid, "bob")
    ann.evaluate(
        "mid => speaker.control.send(JSON.stringify({type: 'pin', participant: 'cid', mid, maxHeight: 720}))", mid)
    wait_for_people(ann, "video", {"cid"}, seconds=3)
    wait_for_colour(ann, mid, "cid")
    assert [slot["participant"] for slot in slots(ann, "audio")] == ["bob"]
    ann.evaluate("mid => speaker.control.send(JSON.stringify({type: 'pin', mid}))", mid)
    wait_for_people(ann, "video", {"bob"}, seconds=3)
    # Bob falls silent, and Cid speaks.
    bob.evaluate("() => { speaker.gain.gain.value = 0; }")
    cid.evaluate("() => { speaker.gain.gain.value = 0.3; }")
    wait_for_people(ann, "video", {"cid"}, seconds=8)
    wait_for_people(ann, "audio", {"cid"}, seconds=8)
    wait_for_colour(ann, mid, "cid")


@pytest.mark.parametrize("names", [("chromium", "firefox"), ("firefox", "chromium")])
def test_control_messages_and_data_tracks(
    browsers: dict[str, Browser], server: Server, stream: str, names: tuple[str, str]
) -> None:
    ann = join(browsers[names[0]], server, stream, "ann", role="host", video=0, audio=0)
    bob = join(browsers[names[1]], server, stream, "bob", video=0, audio=0)
    mute = "to => speaker.control.send(JSON.stringify({message_type: 'mute', to_participant_identity: to}))"
    ann.evaluate(mute, "bob")
    bob.wait_for("() => speaker.messages.some(m => m.message_type === 'mute' && m.by === 'ann')", what="Bob is muted")
    bob.evaluate(mute, "ann")
    bob.wait_for("() => speaker.messages.some(m => m.rule === 'not-host')", what="Bob is refused")
    assert not ann.evaluate("() => speaker.messages.some(m => m.message_type === 'mute')")
    ann.evaluate("""() => {
        const channel = speaker.sent = speaker.peer.createDataChannel('data:chat');
        channel.onopen = () => {
            channel.send('hello');
            channel.send('');
            channel.send(new Uint8Array(262144).map((_, index) => index * 7));
        };
        const lossy = speaker.lossy = speaker.peer.createDataChannel(
            'data:cursor', {ordered: false, maxRetransmits: 0});
        lossy.onopen = () => lossy.send(new Uint8Array([1, 2, 3]));
    }""")
    bob.wait_for(
        """() => {
            const track = speaker.opened.find(track => track.label === 'data:chat');
            if (track?.messages.length !== 3 || track.protocol !== 'ann') return false;
            const [text, empty, bytes] = track.messages;
            return text === 'hello' && empty === '' && bytes.byteLength === 262144
                && new Uint8Array(bytes).every((value, index) => value === (index * 7) % 256);
        }""",
        seconds=15, what="Bob gets the data track")
    bob.wait_for("() => speaker.opened.some(t => t.label === 'data:cursor' && t.messages.length)", what="the lossy one")
    assert ann.evaluate("() => speaker.opened.length") == 0
    ann.evaluate("() => speaker.sent.close()")
    bob.wait_for("() => speaker.opened.find(t => t.label === 'data:chat').closed", what="its end")


def test_mute_is_quick(chromium: Browser, server: Server, stream: str) -> None:
    ann = join(chromium, server, stream, "ann", role="host", video=0, audio=0, publishes=False)
    bob = join(chromium, server, stream, "bob", video=0, audio=0, publishes=False)
    sent = []
    for number in range(1, 16):
        sent.append(ann.evaluate("""() => {
            speaker.control.send(JSON.stringify({message_type: 'mute', to_participant_identity: 'bob'}));
            return Date.now();
        }"""))
        bob.wait_for("count => speaker.messages.filter(m => m.message_type === 'mute').length === count", number)
    come = bob.evaluate("() => speaker.messages.filter(m => m.message_type === 'mute').map(m => m.at)")
    median = sorted(after - before for before, after in zip(sent, come))[len(sent) // 2]
    print(f"mute, host's browser to speaker's browser: {median} ms median")
    assert median <= 30
