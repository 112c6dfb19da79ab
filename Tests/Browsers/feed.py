"""Stories to swipe through: streams of every codec and shape, each with its colour, a counter and a tone."""

from __future__ import annotations

import io
import base64
import json
import re
import time
from collections import Counter
from dataclasses import dataclass
from typing import Any

from PIL import Image

from drivers import Browser, Page, wait_until
from drivers.page import PHONE, Viewport
from server import Server


@dataclass(frozen=True)
class Story:
    """What a stream looks and sounds like."""

    codec: str
    width: int
    height: int
    colour: tuple[int, int, int]
    tone: int
    title: str
    host: str


STORIES = [
    Story("vp8", 270, 480, (200, 40, 50), 330, "Sunday market walk", "Ann Lindqvist"),
    Story("vp9", 480, 270, (30, 140, 70), 370, "Baking bread with grandmother, part two", "Bob Okafor"),
    Story("h264", 270, 480, (50, 80, 200), 415, "Night drive along the coast", "Cid"),
    Story("av1", 270, 480, (190, 140, 30), 440, "Chess with Mika", "Mika Aalto"),
    Story("vp8", 480, 270, (130, 60, 170), 495, "Studio four", "Dana Reyes"),
    Story("h264", 480, 360, (30, 140, 160), 555, "Harbour camera", "Harbour"),
    Story("vp9", 270, 480, (210, 100, 40), 590, "Ask me anything about telescopes", "Eli"),
    Story("av1", 360, 270, (110, 110, 130), 660, "Late show", "Fay"),
]

#: Publishes several streams from one page; `studio.end(stream)` ends one.
PUBLISH = """async streams => {
    const {useOnlyCodec} = await import('/assets/session.js');
    const studio = globalThis.studio = {peers: {}, counts: {}};
    const audio = new AudioContext();
    audio.resume();
    const publish = async ({stream, token, codec, width, height, colour, tone, interval}) => {
        const canvas = document.createElement('canvas');
        [canvas.width, canvas.height] = [width, height];
        const paint = canvas.getContext('2d', {willReadFrequently: true});
        // What does not change from picture to picture, drawn once.
        const ground = new OffscreenCanvas(width, height), base = ground.getContext('2d', {willReadFrequently: true});
        const [r, g, b] = colour, shade = base.createLinearGradient(0, 0, width, height);
        shade.addColorStop(0, `rgb(${r * 1.15} ${g * 1.15} ${b * 1.15})`);
        shade.addColorStop(0.5, `rgb(${r} ${g} ${b})`);
        shade.addColorStop(1, `rgb(${r * 0.75} ${g * 0.75} ${b * 0.75})`);
        base.fillStyle = shade;
        base.fillRect(0, 0, width, height);
        let count = 0;
        const draw = () => {
            studio.counts[stream] = ++count;
            paint.drawImage(ground, 0, 0);
            paint.fillStyle = 'rgb(255 255 255 / 0.85)';
            paint.font = `700 ${height / 9}px sans-serif`;
            paint.textAlign = 'center';
            paint.fillText(String(count), width / 2, height * 0.3);
            paint.beginPath();
            paint.arc(width / 2 + Math.cos(count / 9) * width / 5, height * 0.72, height / 28, 0, 7);
            paint.fill();
        };
        draw();
        // A worker's clock goes on where nobody looks.
        const ticker = new Worker('/assets/ticker.js', {type: 'module'});
        ticker.onmessage = () => { draw(); ticker.postMessage(null); };
        ticker.postMessage(interval);
        const sound = audio.createMediaStreamDestination(), voice = audio.createOscillator(), gain = audio.createGain();
        voice.frequency.value = tone;
        gain.gain.value = 0.2;
        voice.connect(gain).connect(sound);
        voice.start();
        const open = async () => {
            const peer = new RTCPeerConnection({bundlePolicy: 'max-bundle'});
            peer.addTransceiver(sound.stream.getAudioTracks()[0], {direction: 'sendonly'});
            const video = peer.addTransceiver(canvas.captureStream().getVideoTracks()[0], {
                direction: 'sendonly', sendEncodings: [{maxBitrate: 400_000}]});
            useOnlyCodec(video, RTCRtpSender.getCapabilities('video'), codec);
            await peer.setLocalDescription();
            const answer = await fetch(`/whip/${stream}`, {
                method: 'POST', body: peer.localDescription.sdp,
                headers: {'Content-Type': 'application/sdp', Authorization: `Bearer ${token}`}});
            if (answer.status !== 201) throw new Error(`${answer.status} ${await answer.text()}`);
            const location = answer.headers.get('Location');
            await peer.setRemoteDescription({type: 'answer', sdp: await answer.text()});
            studio.peers[stream] = {peer, location, token, ticker, voice};
            // A browser that gets no processor is late with its handshake, and the server gives it up.
            for (let tries = 0; tries < 1000; tries++) {
                if (peer.connectionState === 'connected') return true;
                if (['failed', 'closed'].includes(peer.connectionState)) break;
                await new Promise(resolve => setTimeout(resolve, 20));
            }
            peer.close();
            await fetch(location, {method: 'DELETE', headers: {Authorization: `Bearer ${token}`}});
            return false;
        };
        for (let tries = 0; !await open(); tries++) if (tries === 4) throw new Error(`${stream} does not connect`);
    };
    studio.publish = publish;
    studio.end = stream => {
        const {peer, location, token, ticker} = studio.peers[stream];
        delete studio.peers[stream];
        ticker.terminate();
        peer.close();
        return fetch(location, {method: 'DELETE', headers: {Authorization: `Bearer ${token}`}}).then(() => null);
    };
    for (const stream of streams) await publish(stream);
}"""


class Studio:
    """A page that publishes stories, in their order: whoever has been live for longer comes first or last alike."""

    def __init__(self, browser: Browser, server: Server, prefix: str, stories: list[Story], interval: int = 80) -> None:
        self.server = server
        self.prefix = prefix
        self.interval = interval
        #: By the stream's name.
        self.stories: dict[str, Story] = {}
        self.page: Page = browser.open(server.origin + "/healthz")
        self.page.evaluate(PUBLISH, [])
        for story in stories:
            self.publish(story)

    def publish(self, story: Story) -> str:
        name = f"{self.prefix}-{len(self.stories) + 1}"
        self.stories[name] = story
        token = self.server.token(name, "host", story.host)
        status, _, body = self.server.request(
            "POST", "/v1/streams", json.dumps({"title": story.title}).encode(),
            {"Content-Type": "application/json", "Authorization": f"Bearer {token}"})
        assert status == 201, (status, body)
        self.send(name, token)
        return name

    def send(self, name: str, token: str | None = None) -> None:
        """Publishes a stream's story, and puts it on the air."""
        story = self.stories[name]
        token = token or self.server.token(name, "host", story.host)
        self.page.evaluate(
            "stream => studio.publish(stream)",
            {
                "stream": name, "token": token, "codec": story.codec, "width": story.width, "height": story.height,
                "colour": story.colour, "tone": story.tone, "interval": self.interval,
            })
        status, _, body = self.server.request(
            "POST", f"/v1/streams/{name}/live", b"", {"Authorization": f"Bearer {token}"})
        assert status == 200, (status, body)

    def restart(self, names: list[str]) -> None:
        """Publishes these anew, to a server that was started again and may still know of them."""
        self.page.evaluate(PUBLISH, [])
        for name in names:
            token = self.server.token(name, "host", self.stories[name].host)
            self.server.request(
                "POST", "/v1/streams", json.dumps({"title": self.stories[name].title}).encode(),
                {"Content-Type": "application/json", "Authorization": f"Bearer {token}"})
            self.send(name, token)

    def end(self, name: str) -> None:
        token = self.server.token(name, "host", self.stories[name].host)
        status, _, body = self.server.request(
            "POST", f"/v1/streams/{name}/end", b"", {"Authorization": f"Bearer {token}"})
        assert status == 200, (status, body)

    def key_frames_asked(self) -> dict[str, int]:
        """Key-frame requests that each of the hosts got since they came, by how the log names their sessions."""
        return self.page.evaluate(
            """async () => {
                const asked = {};
                for (const {peer, location} of Object.values(studio.peers)) {
                    const report = await peer.getStats();
                    const session = location.split('/').pop().slice(0, 8);
                    asked[session] = [...report.values()].filter(entry => entry.type === 'outbound-rtp' && entry.kind === 'video')
                        .reduce((sum, entry) => sum + entry.pliCount + (entry.firCount ?? 0), 0);
                }
                return asked;
            }""")


#: What the server asked a host for, as it logs it at the level `debug`; the age is the latest key frame's, by its clock.
KEY_FRAME_REQUEST = re.compile(r" key-frame\.requested session=(\w+) .*reason=(\w+) attempt=(\d+) age-ms=(\w+)")


def check_key_frame_requests(server: Server, since: int, asked: dict[str, int], began: float) -> None:
    """Hosts were asked for no key frame too much since `began`, when the server's log was so long.

    Of what each host was `asked` ever, the log tells: a busy one may get only now what was on its way to it at `began`. A
    busy host, who has not answered yet, may be asked again for viewers.
    """
    def told(start: int) -> list[tuple[str, str, str, str]]:
        with server.log.open("rb") as log:
            log.seek(start)
            return KEY_FRAME_REQUEST.findall(log.read().decode(errors="replace"))

    def is_told() -> bool:
        counts = Counter(session for session, *_ in told(0))
        return all(counts[session] >= count for session, count in asked.items())
    wait_until(is_told, 5, "every request is told")
    requests, seconds = told(since), time.monotonic() - began
    viewers, previews, first = Counter[str](), Counter[str](), Counter[str]()
    for session, reason, attempt, age in requests:
        if reason == "renewal":
            # Previews are content with a key frame for 5 s. A busy host, who has not answered yet, may be asked by the next one.
            assert int(age) >= 5000, (attempt, age)
            previews[session] += 1
        # What was lost between a host and the server is no viewer's doing.
        elif attempt == "1" and reason != "loss":
            viewers[session] += 1
        if attempt == "1" and reason != "loss":
            first[session] += 1
    # What came since a key frame is kept for whoever comes: a slow machine's swipes take longer than it lasts.
    assert max(viewers.values(), default=0) <= 2 + int(seconds / 20), requests
    # Previews ask each host every ten seconds at most; one that asked before may have waited for its turn.
    assert max(previews.values(), default=0) <= 2 + int(seconds / 10), requests
    if seconds < 20:
        assert max(first.values(), default=0) <= 2, requests


#: What the feed says of itself.
PLACE = """() => ({
    state: rostrum.feed.state, current: rostrum.feed.current?.id ?? null, isAtEnd: rostrum.feed.isAtEnd,
    stories: rostrum.feed.stories.map(({id}) => id), swipe: rostrum.swipe.state, progress: rostrum.swipe.progress,
    slots: rostrum.feed.slots.map(({stream, quality}) => [stream, quality]),
    isUncovered: rostrum.cube.frontSide.isUncovered, muted: rostrum.cube.sides.map(({video}) => video.muted),
})"""

#: Counts frames that were drawn, by `requestVideoFrameCallback`, and notes when which story's first one was.
WATCH_FRAMES = """() => {
    globalThis.frames = [];
    rostrum.cube.sides.forEach((side, index) => {
        let request = 0;
        const listen = () => {
            side.video.cancelVideoFrameCallback(request);
            request = side.video.requestVideoFrameCallback(note);
        };
        const note = (now, {mediaTime, rtpTimestamp, width, height}) => {
            listen();
            frames.push({side: index, story: side.story?.id ?? null, at: now, width, height, isSeen: side.isUncovered,
                isFront: side === rostrum.cube.frontSide});
            if (frames.length > 5000) frames.splice(0, 1000);
        };
        listen();
        // Firefox forgets some requests that were made before a pause.
        side.video.addEventListener('play', listen);
        setInterval(listen, 200);
    });
}"""


def open_feed(browser: Browser, server: Server, viewport: Viewport = PHONE, path: str = "/", **options: Any) -> Page:
    return browser.open(server.origin + path, viewport, **options)


def place(page: Page) -> dict[str, Any]:
    return page.evaluate(PLACE)


def wait_for_story(page: Page, stream: str, seconds: float = 15) -> None:
    """Waits until a story's video is what is seen, and nothing moves any more."""
    page.wait_for(
        """stream => {
            const side = rostrum.cube.frontSide;
            return rostrum.feed.current?.id === stream && !rostrum.feed.isAtEnd && side.story?.id === stream && side.isUncovered
                && rostrum.swipe.state === 'resting';
        }""",
        stream, seconds=seconds, what=f"{stream} is seen")


def tap(page: Page, x: float, y: float) -> None:
    """Taps the feed there: a press that a busy machine made longer than a tap is none, and is made again."""
    page.evaluate(
        """() => {
            let began = null;
            addEventListener('pointerdown', event => { began = event.timeStamp; globalThis.pressed = null; }, {capture: true});
            addEventListener('pointerup', event => { globalThis.pressed = event.timeStamp - began; }, {capture: true});
        }""")
    for _ in range(10):
        page.evaluate("() => { globalThis.pressed = null; }")
        page._click_at(x, y)
        if page.wait_for("() => pressed !== null && {milliseconds: pressed}", what="it is pressed")["milliseconds"] <= 350:
            return
    raise TimeoutError("every press of ten took longer than a tap")


def wait_for_preload(page: Page, stream: str, seconds: float = 15) -> None:
    """Waits until a story stands ready on the other side of the cube."""
    page.wait_for(
        """stream => {
            const side = rostrum.cube.backSide;
            return side.story?.id === stream && side.isUncovered && rostrum.feed.slotOf(stream)?.quality === 'preview';
        }""",
        stream, seconds=seconds, what=f"{stream} is preloaded")


def picture(page: Page) -> Image.Image:
    """What is on the screen."""
    return Image.open(io.BytesIO(base64.b64decode(page._screenshot()))).convert("RGB")


def colour_shown(page: Page, height: float = 0.5) -> tuple[int, int, int]:
    """In the middle of the screen, at a share of its height."""
    image = picture(page)
    x, y = image.width // 2, int(image.height * height)
    # A few pixels: codecs are not exact.
    area = image.crop((x - 6, y - 6, x + 6, y + 6))
    return area.resize((1, 1), Image.Resampling.BOX).getpixel((0, 0))  # type: ignore[return-value]


def is_like(seen: tuple[int, int, int], wanted: tuple[int, int, int]) -> bool:
    return all(abs(a - b) < 45 for a, b in zip(seen, wanted))


def assert_shows(page: Page, story: Story, height: float = 0.5) -> None:
    seen: list[tuple[int, int, int]] = []

    def is_shown() -> bool:
        seen.append(colour_shown(page, height))
        return is_like(seen[-1], story.colour)
    try:
        # The preview fades for a moment.
        wait_until(is_shown, 3, story.title)
    except TimeoutError:
        raise AssertionError(f"{story.title} is {story.colour}, seen is {seen[-1]}") from None


#: From here on every frame that is seen must be of the story that is written beside it; `checked` counts them by story.
CHECK_COLOURS = """colours => {
    globalThis.wrong = [];
    globalThis.checked = {};
    const canvas = new OffscreenCanvas(3, 3), context = canvas.getContext('2d', {willReadFrequently: true});
    for (const side of rostrum.cube.sides) {
        let request = 0;
        const listen = () => {
            side.video.cancelVideoFrameCallback(request);
            request = side.video.requestVideoFrameCallback(check);
        };
        const check = () => {
            listen();
            if (!side.isUncovered || !side.story || side.video.paused) return;
            context.drawImage(side.video, 0, 0, 3, 3);
            const seen = [...context.getImageData(1, 1, 1, 1).data.slice(0, 3)];
            checked[side.story.id] = (checked[side.story.id] ?? 0) + 1;
            if (seen.some((value, index) => Math.abs(value - colours[side.story.id][index]) > 60)) {
                wrong.push({story: side.story.id, seen, slots: rostrum.feed.slots.map(({stream}) => stream)});
            }
        };
        listen();
        // Firefox forgets some requests that were made before a pause.
        side.video.addEventListener('play', listen);
        setInterval(listen, 200);
    }
}"""


def watch_colours(page: Page, studio: Studio) -> None:
    page.evaluate(CHECK_COLOURS, {name: story.colour for name, story in studio.stories.items()})


def assert_shows_pictures(page: Page, studio: Studio, stream: str) -> None:
    """A story is seen, and goes on: the quicker a machine, the fewer pictures come while it is looked at once."""
    wait_for_story(page, stream)
    before = page.evaluate("stream => checked[stream] ?? 0", stream)
    assert_shows(page, studio.stories[stream])
    page.wait_for(
        "(stream, count) => checked[stream] >= count", stream, before + 3, what=f"pictures of {stream} are checked")
