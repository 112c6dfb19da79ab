"""Several speakers in real browsers: slots, pins, control messages and data tracks."""

from __future__ import annotations

import asyncio
import json

import pytest
from aiortc import RTCConfiguration, RTCDataChannel, RTCPeerConnection, RTCSessionDescription

from aiortc_client import Aiortc
from drivers import Browser, wait_until
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
    wait_for_people(ann, "audio", {"bob"})
    ann.evaluate("mid => speaker.control.send(JSON.stringify({type: 'pin', mid}))", mid)
    wait_for_people(ann, "video", {"bob"}, seconds=3)
    # Bob falls silent, and Cid speaks.
    bob.evaluate("() => { speaker.gain.gain.value = 0; }")
    cid.evaluate("() => { speaker.gain.gain.value = 0.3; }")
    wait_for_people(ann, "video", {"cid"}, seconds=8)
    wait_for_people(ann, "audio", {"cid"}, seconds=8)
    wait_for_colour(ann, mid, "cid")


@pytest.mark.parametrize("name", ["chromium", "firefox"])
def test_a_viewer_gets_the_programme_and_sends_nothing(
    browsers: dict[str, Browser], server: Server, stream: str, name: str
) -> None:
    ann = join(browsers["chromium"], server, stream, "ann", role="host", video=1, audio=1)
    # The same offer as a speaker's; what the token says counts.
    dan = join(browsers[name], server, stream, "dan", role="viewer")
    for kind in ("audio", "video"):
        wait_for_people(dan, kind, {"ann"})
        assert [slot.get("participant") for slot in slots(dan, kind)] == ["ann", None]
    wait_for_colour(dan, wait_for_people(dan, "video", {"ann"})["ann"], "ann")
    dan.wait_for(ENERGY, seconds=15, what="the viewer hears the host")
    directions = "() => speaker.peer.getTransceivers().map(({currentDirection}) => currentDirection).sort()"
    assert dan.evaluate(directions) == ["inactive", "inactive", *["recvonly"] * 4]
    dan.evaluate("() => speaker.control.send(JSON.stringify({type: 'pin', mid: '3', participant: 'ann'}))")
    dan.wait_for("() => speaker.messages.some(m => m.rule === 'not-on-stage')", what="a viewer pins nobody")
    assert slots(ann, "video")[0].get("participant") is None

    def ask(method: str, path: str, who: str, role: str, body: bytes | None = None) -> None:
        status, _, answer = server.request(
            method, f"/v1/streams/{stream}/{path}", body,
            {"Authorization": f"Bearer {server.token(stream, role, who)}", "Content-Type": "application/json"})
        assert status == 200, (status, answer)

    watched = dan.evaluate("() => speaker.location")
    ask("POST", "invitations", "Ann", "host", b'{"participant": "dan"}')
    ask("POST", "invitations/dan/accept", "Dan", "viewer")
    speaking = join(browsers[name], server, stream, "dan")
    wait_for_colour(ann, wait_for_people(ann, "video", {"dan"})["dan"], "dan")
    wait_for_people(speaking, "video", {"ann"})
    token = server.token(stream, "viewer", "Dan")

    def status() -> int:
        return server.request("GET", watched, headers={"Authorization": f"Bearer {token}"})[0]

    wait_until(lambda: status() == 404, 10, "the session as a viewer has ended")


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
        // Again and again: what is lost on the way to a busy reader does not come later.
        lossy.onopen = () => setInterval(() => lossy.send(new Uint8Array([1, 2, 3])), 100);
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


@pytest.mark.alone
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


class Listener:
    """An aiortc peer on a stage that has data channels alone."""

    def __init__(self, home: Aiortc, server: Server, stream: str, name: str) -> None:
        self._home = home
        self._path = f"/v1/streams/{stream}/sessions"
        self._token = server.token(stream, "speaker", name)
        self._server = server
        self.control: list[dict[str, object]] = []
        self.tracks: dict[str, list[str | bytes]] = {}
        home.run(self._open())

    async def _open(self) -> None:
        self._connection = RTCPeerConnection(RTCConfiguration(iceServers=[]))
        self._control = self._connection.createDataChannel("control", negotiated=True, id=0)
        self._control.on("message", lambda text: self.control.append(json.loads(text)))
        self._connection.on("datachannel", self._take)
        await self._connection.setLocalDescription(await self._connection.createOffer())
        status, _, body = await asyncio.to_thread(
            self._server.request, "POST", self._path, self._connection.localDescription.sdp.encode(),
            {"Content-Type": "application/sdp", "Authorization": f"Bearer {self._token}"})
        assert status == 201, body
        await self._connection.setRemoteDescription(RTCSessionDescription(body.decode(), "answer"))

    def _take(self, channel: RTCDataChannel) -> None:
        messages = self.tracks.setdefault(f"{channel.protocol}/{channel.label}", [])
        channel.on("message", messages.append)

    @property
    def is_open(self) -> bool:
        return self._control.readyState == "open"

    def say(self, message: dict[str, object]) -> None:
        async def send() -> None:
            self._control.send(json.dumps(message))
        self._home.run(send())

    def send(self, label: str, messages: list[str | bytes]) -> None:
        async def send() -> None:
            channel = self._connection.createDataChannel(label)
            channel.on("open", lambda: [channel.send(message) for message in messages])
        self._home.run(send())

    def close(self) -> None:
        self._home.run(self._connection.close())


def test_aiortc_speaks_on_data_channels(server: Server, stream: str) -> None:
    home = Aiortc()
    ann, bob = (Listener(home, server, stream, name) for name in ("Ann", "Bob"))
    wait_until(lambda: ann.is_open and bob.is_open, 15, "the control channels are open")
    ann.say({"type": "ping"})
    wait_until(lambda: {"type": "pong"} in ann.control, 5, "the server answers")
    # aiortc says that it takes 64 KiB.
    sent = ["hello", "", b"", bytes(range(256)) * 240]
    ann.send("data:chat", sent)
    wait_until(lambda: len(bob.tracks.get("ann/data:chat", [])) == 4, 15, "Bob gets the messages")
    assert bob.tracks["ann/data:chat"] == sent
    assert ann.tracks == {}
    for peer in (ann, bob):
        peer.close()
    home.close()


def test_a_slot_takes_the_layer_that_fits(chromium: Browser, server: Server, stream: str) -> None:
    join(chromium, server, stream, "bob", video=0, audio=0, layers=True)
    ann = join(chromium, server, stream, "ann", role="host", video=1, audio=1)
    mid = wait_for_people(ann, "video", {"bob"})["bob"]
    width = "(mid, width) => speaker.videos[mid].videoWidth === width"
    ann.wait_for(width, mid, 960, seconds=30, what="the largest layer")
    limit = """(mid, maxHeight) => speaker.control.send(JSON.stringify({type: 'slot', mid, maxHeight}))"""
    for height, wanted in ((270, 480), (135, 240), (None, 960)):
        ann.evaluate(limit, mid, height)
        ann.wait_for(width, mid, wanted, seconds=15, what=f"the layer {wanted} wide")
    wait_for_colour(ann, mid, "bob")
