"""Bitstreams that break decoders are sent by a real publisher; the server and everybody else never notice."""

from __future__ import annotations

import os
from contextlib import suppress
from pathlib import Path

import pytest

import udp
from aiortc_client import Aiortc
from drivers import Browser, wait_until
from media import wait_for_frames, wait_for_state, watch
from server import Server
from test_composition import make
from test_recordings import aiortc, keeper, listed, start  # noqa: F401

#: Publishes a picture that moves and a tone, encoded as asked, and turns bits of what was encoded: of most key frames,
#: of some others, and of every other packet of sound. What is sent can be repeated as far as encoders repeat themselves.
PUBLISH = """async (path, token, codec, seed) => {
    const poison = {keyFrames: 0, frames: 0, sounds: 0};
    (globalThis.enemies ??= []).push(poison);
    const random = () => {
        seed = seed + 0x6D2B79F5 | 0;
        let t = Math.imul(seed ^ seed >>> 15, 1 | seed);
        t = t + Math.imul(t ^ t >>> 7, 61 | t) ^ t;
        return ((t ^ t >>> 14) >>> 0) / 4294967296;
    };
    const spoil = (data, from) => {
        const bytes = new Uint8Array(data);
        if (bytes.length <= from) return data;
        const place = () => from + Math.floor(random() ** 3 * (bytes.length - from));
        switch (Math.floor(random() * 5)) {
            case 0: return bytes.slice(0, Math.max(from + 1, place())).buffer;
            case 1: bytes.copyWithin(place(), place()); break;
            case 2: bytes.fill(random() < 0.5 ? 0 : 255, place(), place()); break;
            default: for (let n = 1 + random() * 24; n > 0; n--) bytes[place()] ^= 1 << Math.floor(random() * 8);
        }
        return bytes.buffer;
    };
    const peer = poison.peer = new RTCPeerConnection({bundlePolicy: 'max-bundle', encodedInsertableStreams: true});
    const canvas = document.createElement('canvas');
    [canvas.width, canvas.height] = [320, 240];
    const paint = canvas.getContext('2d');
    let count = 0;
    poison.timer = setInterval(() => {
        for (let n = 0; n < 12; n++) {
            paint.fillStyle = `hsl(${random() * 360} 80% 50%)`;
            paint.fillRect(random() * 320, random() * 240, 60, 60);
        }
        count++;
    }, 80);
    const audio = new AudioContext(), tone = audio.createOscillator(), output = audio.createMediaStreamDestination();
    tone.connect(output);
    tone.start();
    audio.resume();
    const through = (sender, change) => {
        const {readable, writable} = sender.createEncodedStreams();
        readable.pipeThrough(new TransformStream({
            transform: (frame, out) => { change(frame); out.enqueue(frame); },
        })).pipeTo(writable);
    };
    const sound = peer.addTransceiver(output.stream.getAudioTracks()[0], {direction: 'sendonly'});
    through(sound.sender, frame => {
        if (random() < 0.5) return;
        poison.sounds++;
        frame.data = spoil(frame.data, random() < 0.5 ? 0 : 1);
    });
    const video = peer.addTransceiver(canvas.captureStream(12).getVideoTracks()[0], {direction: 'sendonly'});
    const known = RTCRtpSender.getCapabilities('video').codecs.filter(({mimeType}) =>
        [`video/${codec}`, 'video/rtx'].includes(mimeType.toLowerCase()));
    video.setCodecPreferences(known);
    through(video.sender, frame => {
        const isKey = frame.type === 'key';
        if (random() > (isKey ? 0.8 : 0.2)) return;
        poison[isKey ? 'keyFrames' : 'frames']++;
        // The first bytes say what it is: without them nobody would try to decode it.
        frame.data = spoil(frame.data, {vp8: 10, h264: 5}[codec] ?? 3);
    });
    await peer.setLocalDescription();
    const answer = await fetch(path, {
        method: 'POST', body: peer.localDescription.sdp,
        headers: {'Content-Type': 'application/sdp', Authorization: `Bearer ${token}`},
    });
    if (answer.status !== 201) throw new Error(`${answer.status} ${await answer.text()}`);
    await peer.setRemoteDescription({type: 'answer', sdp: await answer.text()});
    // Encoders make key frames when their picture changes its size.
    poison.keys = setInterval(() => {
        const parameters = video.sender.getParameters();
        if (!parameters.encodings?.length) return;
        parameters.encodings[0].scaleResolutionDownBy = parameters.encodings[0].scaleResolutionDownBy === 2 ? 1 : 2;
        video.sender.setParameters(parameters).catch(() => {});
    }, 300);
}"""

def unread() -> int:
    """Datagrams that found no room in this program's own sockets: where it gets no processor it does not read."""
    own = set()
    for file in Path("/proc/self/fd").iterdir():
        with suppress(OSError):
            own.add(os.readlink(file))
    return sum(count for inode, count in udp.dropped().items() if f"socket:[{inode}]" in own)


SPOILED = "() => enemies.map(({keyFrames, frames, sounds}) => ({keyFrames, frames, sounds}))"


@pytest.mark.parametrize("codec", ["vp8", "vp9", "h264", "av1"])
def test_poison(aiortc: Aiortc, chromium: Browser, keeper: Server, codec: str) -> None:  # noqa: F811
    aiortc.publish(keeper, "healthy")
    healthy = aiortc.play(keeper, "healthy")
    wait_until(lambda: healthy.frames > 20, 20, "the healthy stream plays")

    # As much of the transcoder as there is: previews, recordings, and a composition, which decodes every frame.
    # It is live before its host is there, who may be a while beside all that.
    make(keeper, "both", hostGraceSeconds=3600)
    enemy = chromium.open(keeper.origin + "/healthz")
    places = [("/whip/relayed", "relayed", "host"), ("/v1/streams/both/sessions", "both", "host"),
              ("/v1/streams/both/sessions", "both", "speaker")]
    for number, (path, name, role) in enumerate(places):
        token = keeper.token(name, role, "Ann" if role == "host" else "Mal")
        enemy.evaluate(PUBLISH, path, token, codec, 7 * number + 1)
    victim = watch(chromium, keeper, "both")
    for name in ("relayed", "both"):
        wait_until(
            lambda: keeper.request("GET", f"/v1/streams/{name}")[0] == 200
            and keeper.json(f"/v1/streams/{name}")["state"] == "live", 20, f"{name} is live")
        start(keeper, name)
    wait_for_state(victim, "live", seconds=40)
    wait_until(
        lambda: all(each["keyFrames"] >= 12 and each["sounds"] >= 100 for each in enemy.evaluate(SPOILED)), 120,
        "enough was spoiled")
    deaths = keeper.metrics()["rostrum_transcoder_restarts_total"]
    print(f"{codec}: {enemy.evaluate(SPOILED)}, the transcoder died {deaths:g} times")

    # The server goes on, everybody is connected, the healthy stream goes on, and so does what is made of the others.
    assert keeper.is_running
    # A browser that is late with its checks calls itself disconnected for a moment; what the server has closed stays so.
    enemy.wait_for(
        "() => enemies.filter(({peer}) => peer.connectionState === 'connected').length === 3", what="everybody is connected")
    frames = healthy.frames
    wait_until(lambda: healthy.frames > frames + 40, 20, "the healthy stream goes on")
    # What the player did not read in time is none of the server's losses.
    assert healthy.state == "connected" and healthy.lost() <= unread()
    wait_for_frames(victim, 10, seconds=30)
    # Pictures of others are made after all that.
    taken = keeper.json("/v1/streams/healthy")["preview"]["capturedAt"]
    wait_until(
        lambda: keeper.json("/v1/streams/healthy")["preview"]["capturedAt"] != taken, 40, "previews are made")
    enemy.close()
    for name in ("relayed", "both"):
        assert listed(keeper, name)
