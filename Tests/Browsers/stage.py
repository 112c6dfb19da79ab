"""A speaker on a stage, in a real browser: a coloured picture, a tone, and slots for the others."""

from __future__ import annotations

from typing import Any

from drivers import Browser, Page
from lossy import LossyPath
from server import Server

#: Joins with one offer; everything it learns is in `speaker`.
JOIN = """async (path, token, options) => {
    const peer = new RTCPeerConnection({bundlePolicy: 'max-bundle'});
    const speaker = globalThis.speaker = {peer, messages: [], slots: {}, videos: {}, opened: []};
    const control = speaker.control = peer.createDataChannel('control', {negotiated: true, id: 0});
    control.onmessage = ({data}) => {
        const message = JSON.parse(data);
        speaker.messages.push({...message, at: Date.now()});
        if (message.type === 'slots') for (const slot of message.slots) speaker.slots[slot.mid] = slot;
    };
    peer.ondatachannel = ({channel}) => {
        const track = {label: channel.label, protocol: channel.protocol, messages: [], closed: false};
        channel.binaryType = 'arraybuffer';
        channel.onmessage = ({data}) => track.messages.push(data);
        channel.onclose = () => { track.closed = true; };
        speaker.opened.push(track);
    };
    const canvas = document.createElement('canvas');
    // Below 960 × 540 Chromium does not make three layers.
    [canvas.width, canvas.height] = options.layers ? [960, 540] : [640, 360];
    const paint = canvas.getContext('2d', {willReadFrequently: true});
    // Chromium takes the network for little more than what it sends. Of a picture that hardly moves that may be too
    // little for the largest layer for ever, where a busy machine was slow at first: what flickers takes what there is.
    const noise = new OffscreenCanvas(canvas.width + 64, 128 + 64);
    const flicker = noise.getContext('2d', {willReadFrequently: true});
    for (let x = 0; options.layers && x < noise.width; x += 8) {
        for (let y = 0; y < noise.height; y += 8) {
            flicker.fillStyle = `hsl(${360 * Math.random()} 90% 50%)`;
            flicker.fillRect(x, y, 8, 8);
        }
    }
    let count = 0;
    speaker.drawn = [];
    const draw = () => {
        speaker.drawn.push(Date.now());
        if (speaker.drawn.length > 5000) speaker.drawn.splice(0, 1000);
        paint.fillStyle = options.colour;
        paint.fillRect(0, 0, canvas.width, canvas.height);
        if (options.layers) {
            // Below the middle, of which tests look at the colour.
            paint.drawImage(noise, Math.floor(64 * Math.random()), Math.floor(64 * Math.random()), canvas.width, 128,
                0, canvas.height - 128, canvas.width, 128);
        }
        paint.fillStyle = 'white';
        paint.fillRect(count++ % 640, 0, 8, 8);
    };
    draw();
    speaker.timer = setInterval(draw, 50);
    const audio = new AudioContext(), tone = audio.createOscillator();
    speaker.tone = tone;
    speaker.options = options;
    speaker.gain = audio.createGain();
    speaker.gain.gain.value = options.volume;
    const output = audio.createMediaStreamDestination();
    tone.connect(speaker.gain).connect(output);
    tone.start();
    audio.resume();
    if (options.publishes) {
        const stream = canvas.captureStream(20);
        peer.addTransceiver(output.stream.getAudioTracks()[0], {direction: 'sendonly'});
        const sendEncodings = options.layers ? [
            {rid: 'h'}, {rid: 'm', scaleResolutionDownBy: 2}, {rid: 'l', scaleResolutionDownBy: 4}] : [{}];
        peer.addTransceiver(stream.getVideoTracks()[0], {direction: 'sendonly', sendEncodings});
    }
    for (const kind of ['audio', 'video']) {
        for (let index = 0; index < options[kind]; index++) peer.addTransceiver(kind, {direction: 'recvonly'});
    }
    await peer.setLocalDescription();
    const answer = await fetch(path, {
        method: 'POST', body: peer.localDescription.sdp,
        headers: {'Content-Type': 'application/sdp', Authorization: `Bearer ${token}`},
    });
    if (answer.status !== 201) throw new Error(`${answer.status} ${await answer.text()}`);
    speaker.location = answer.headers.get('Location');
    await peer.setRemoteDescription({type: 'answer', sdp: await answer.text()});
    for (const {mid, receiver, currentDirection} of peer.getTransceivers()) {
        if (currentDirection !== 'recvonly') continue;
        const element = document.createElement(receiver.track.kind);
        element.srcObject = new MediaStream([receiver.track]);
        element.autoplay = element.muted = element.playsInline = true;
        document.body.append(element);
        element.play().catch(() => {});
        if (receiver.track.kind !== 'video') continue;
        speaker.videos[mid] = element;
        // What is looked at is its pictures, whatever their size: a browser without a graphics card draws small ones sooner.
        element.style.width = '160px';
    }
}"""

#: What a slot's picture looks like in its middle: red, green, blue; null while there is none.
COLOUR = """mid => {
    const video = speaker.videos[mid];
    if (!video || !video.videoWidth) return null;
    const canvas = document.createElement('canvas');
    [canvas.width, canvas.height] = [16, 16];
    const context = canvas.getContext('2d');
    context.drawImage(video, 0, 0, 16, 16);
    return [...context.getImageData(8, 8, 1, 1).data.slice(0, 3)];
}"""

COLOURS = {"ann": (220, 20, 20), "bob": (20, 180, 20), "cid": (20, 20, 220), "dan": (200, 180, 20)}


def join(
    browser: Browser, server: Server, stream: str, name: str, role: str = "speaker", audio: int = 2, video: int = 2,
    volume: float = 0.3, publishes: bool = True, layers: bool = False, path: LossyPath | None = None,
) -> Page:
    page = browser.open(
        (path or server).origin + "/healthz", before_load=path.rewrite if path else None)
    red, green, blue = COLOURS[name]
    options = {
        "colour": f"rgb({red}, {green}, {blue})", "audio": audio, "video": video, "volume": volume,
        "publishes": publishes, "layers": layers,
    }
    token = server.token(stream, role, name.capitalize())
    for _ in range(5):
        page.evaluate(JOIN, f"/v1/streams/{stream}/sessions", token, options)
        state = page.wait_for(
            """() => speaker.control.readyState === 'open' ? 'open'
                : ['failed', 'closed'].includes(speaker.peer.connectionState) && 'failed'""",
            seconds=15, what=f"{name}'s control channel is open")
        if state == "open":
            return page
        # A browser that gets no processor is late with its handshake, and the server gives it up.
        page.goto((path or server).origin + "/healthz")
    raise TimeoutError(f"{name} does not connect")


def slots(page: Page, kind: str) -> list[dict[str, Any]]:
    return [slot for slot in page.evaluate("() => Object.values(speaker.slots)") if slot["kind"] == kind]


def wait_for_people(page: Page, kind: str, people: set[str], seconds: float = 15) -> dict[str, str]:
    """Waits until exactly these are in the slots of a kind; gives their mids."""
    page.wait_for(
        """(kind, people) => {
            const shown = Object.values(speaker.slots)
                .filter(slot => slot.kind === kind && slot.participant).map(slot => slot.participant);
            return JSON.stringify(shown.sort()) === JSON.stringify(people);
        }""",
        kind, sorted(people), seconds=seconds, what=f"{sorted(people)} are in the {kind} slots")
    return {slot["participant"]: slot["mid"] for slot in slots(page, kind) if slot.get("participant")}


def wait_for_colour(page: Page, mid: str, name: str, seconds: float = 15) -> None:
    page.wait_for(
        f"""(mid, wanted) => {{
            const colour = ({COLOUR})(mid);
            return colour && wanted.every((value, index) => Math.abs(value - colour[index]) < 50);
        }}""",
        mid, list(COLOURS[name]), seconds=seconds, what=f"{name} is seen in slot {mid}")
