"""What tests do with the two pages: go live, watch, and look at what really arrived."""

from __future__ import annotations

import json
from dataclasses import dataclass
from typing import Any
from urllib.parse import urlencode

from drivers import Browser, Page
from drivers.page import Viewport
from server import Server

#: Statistics of the page's peer connection by direction and kind, the largest layer of each.
STATISTICS = """async () => {
    const peer = rostrum.connection.session?.peer;
    if (!peer) return null;
    let timer;
    // Firefox never answers where the page closes the connection meanwhile.
    const isClosed = new Promise(resolve => {
        timer = setInterval(() => { if (peer.signalingState === 'closed') resolve(null); }, 50);
    });
    const report = await Promise.race([peer.getStats(), isClosed]).finally(() => clearInterval(timer));
    if (!report) return null;
    const result = {};
    for (const entry of report.values()) {
        if (entry.type !== 'inbound-rtp' && entry.type !== 'outbound-rtp') continue;
        const key = `${entry.type.split('-')[0]}-${entry.kind}`;
        if (result[key] && (result[key].frameHeight ?? 0) > (entry.frameHeight ?? 0)) continue;
        result[key] = {...entry, codec: report.get(entry.codecId)?.mimeType?.split('/')[1] ?? null};
    }
    return result;
}"""

#: Of pages whose size no test looks at, as all of Firefox have it: where nothing but a processor draws, each picture
#: costs by how large it is shown. Wide enough for two columns, and high enough for all dialogs.
USUAL_VIEWPORT = Viewport(960, 600)

#: What the page shows to people, as one word.
STATE = "() => document.body?.dataset.state"


#: What keeps a studio from being live, as far as its page knows.
STUDIO = """() => {
    const {room} = globalThis.rostrum ?? {}, {connection, isOn, hasConnected} = room?.onAir ?? {};
    const {peer, state} = connection?.session ?? {}, go = document.getElementById('go');
    return {
        state: document.body?.dataset.state, stream: room?.info?.state, you: room?.you?.role, socket: room?.sync.isOpen,
        refusal: room?.sync.refusal, source: room?.own.source?.kind, isOpening: room?.own.isOpening,
        isGoingLive: room?.isGoingLive, isOn, hasConnected, connection: connection?.state, why: connection?.error?.message,
        session: state, peer: peer && [peer.connectionState, peer.iceConnectionState, peer.signalingState],
        go: go && {text: go.innerText, seen: go.checkVisibility(), ariaDisabled: go.ariaDisabled},
        notice: document.getElementById('notice')?.innerText,
        dialogs: [...document.querySelectorAll('dialog[open]')].map(dialog => dialog.dataset.name ?? dialog.id),
    };
}"""


def address(path: str, query: dict[str, Any]) -> str:
    given = {name: value for name, value in query.items() if value is not None}
    return f"{path}?{urlencode(given)}" if given else path


def go_live(browser: Browser, server: Server, stream: str, **query: Any) -> Page:
    """Opens the studio and presses the one button; returns once the page says it is live.

    Its picture is small and moves slowly, which leaves the machine to the other tests, unless `quality` says otherwise.
    """
    cheap = {} if "quality" in query else {"quality": 360, "fps": 15}
    page = browser.open(server.origin + address(f"/live/{stream}", {**cheap, **query}), USUAL_VIEWPORT)
    press_go_live(page)
    return page


def press_go_live(page: Page) -> None:
    page.click("#go")
    outcome = page.wait_for(
        f"() => ({STATE})() === 'live' ? 'live' : !document.getElementById('error').hidden && 'refused'",
        seconds=15, what="the studio is live", about=STUDIO)
    assert outcome == "live", page.text("#error")


def hold_answer(page: Page, method: str, ending: str, until: str, change: str = "{}") -> None:
    """Holds up what the server answers to the next request of this kind, until the page has heard something else.

    `until` and `change` are expressions in JavaScript, of the page's `audience`; members of `change` replace those of the
    answer. Once the page has taken the answer in, `hasAnswered` is true.
    """
    page.evaluate(f"""() => {{
        const {{fetch}} = window, {{audience}} = rostrum.room;
        globalThis.hasAnswered = false;
        window.fetch = async (address, options) => {{
            if (options?.method !== {json.dumps(method)} || !String(address).endsWith({json.dumps(ending)})) {{
                return fetch(address, options);
            }}
            window.fetch = fetch;
            // From before the request on: a busy page may hear of what comes of it sooner than of the answer.
            const heard = new Promise(resolve => {{
                const look = () => {{ if ({until}) resolve(); }};
                audience.addEventListener('change', look);
                look();
            }});
            const response = await fetch(address, options);
            const answer = await response.json();
            await heard;
            const told = {{...answer, ...{change}}};
            // What is left to do with it is done in microtasks, before the next task.
            const json = async () => (setTimeout(() => {{ globalThis.hasAnswered = true; }}), told);
            return {{ok: true, status: response.status, json}};
        }};
    }}""")


def end_stream(page: Page) -> None:
    """Presses the host's End, and confirms it."""
    page.click("#stop")
    page.click("dialog[data-name=end] [data-value=yes]")


def watch(browser: Browser, server: Server, stream: str, **query: Any) -> Page:
    return browser.open(server.origin + address(f"/watch/{stream}", query), USUAL_VIEWPORT)


def wait_for_state(page: Page, state: str, seconds: float = 15) -> None:
    page.wait_for(f"wanted => ({STATE})() === wanted", state, seconds=seconds, what=f"the page is {state}")


@dataclass(frozen=True)
class Received:
    """What a viewer decoded since its session began."""

    frames: int
    width: int
    height: int
    video_codec: str | None
    audio_energy: float
    audio_packets: int
    packets_lost: int
    key_frames: int
    key_frame_requests: int
    freezes: int


def received(page: Page) -> Received:
    entries = page.evaluate(STATISTICS) or {}
    video, audio = entries.get("inbound-video", {}), entries.get("inbound-audio", {})
    return Received(
        frames=video.get("framesDecoded", 0),
        width=video.get("frameWidth", 0),
        height=video.get("frameHeight", 0),
        video_codec=video.get("codec"),
        audio_energy=audio.get("totalAudioEnergy", 0.0),
        audio_packets=audio.get("packetsReceived", 0),
        packets_lost=video.get("packetsLost", 0) + audio.get("packetsLost", 0),
        key_frames=video.get("keyFramesDecoded", 0),
        key_frame_requests=video.get("pliCount", 0),
        freezes=video.get("freezeCount", 0),
    )


def wait_for_frames(page: Page, more: int = 30, seconds: float = 20) -> Received:
    """Waits until so many further frames were decoded, whatever came before."""
    page.wait_for(
        f"""async wanted => {{
            const count = async () => (await ({STATISTICS})())?.['inbound-video']?.framesDecoded ?? 0;
            const session = rostrum.connection.session;
            if (globalThis.countedSession !== session) {{
                globalThis.countedSession = session;
                globalThis.countedFrom = null;
            }}
            globalThis.countedFrom ??= await count();
            if (await count() < globalThis.countedFrom + wanted) return false;
            globalThis.countedFrom = null;
            return true;
        }}""",
        more, seconds=seconds, what=f"{more} more frames are decoded")
    return received(page)


def wait_for_sound(page: Page, seconds: float = 15) -> float:
    """Turns the sound on, as a viewer's tap does, and waits until it has energy; silence has none.

    Chromium counts energy behind the volume: what is muted stays at 0.
    """
    if page.evaluate("() => document.getElementById('video').muted"):
        page.click("#unmute", seconds=seconds)
    return page.wait_for(
        f"""async () => {{
            const energy = (await ({STATISTICS})())?.['inbound-audio']?.totalAudioEnergy ?? 0;
            return energy > 1e-6 ? energy : null;
        }}""",
        seconds=seconds, what="sound is heard")


def check_no_complaints(*pages: Page) -> None:
    """Nothing in the console: no exception, no refused resource, no failed request."""
    for page in pages:
        assert page.errors == []
