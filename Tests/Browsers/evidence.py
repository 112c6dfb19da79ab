"""What a failed test leaves behind to be understood by: each page's picture, words, console and statistics, and what the servers
logged meanwhile and know of the sessions."""

from __future__ import annotations

import json
import os
from pathlib import Path

from drivers import Browser, Page
from server import Server

#: Lines of a console or a log that are printed; the files have all of it.
LAST_LINES = 25
#: Longest time a page may take to tell of itself, before patience; a dead one must not hide why the test failed.
SECONDS = 2

#: What a page shows, and how each of its peer connections goes.
ABOUT = """async () => {
    const own = globalThis.rostrum ?? {};
    const found = [
        own.connection?.session?.peer, own.room?.onAir?.connection?.session?.peer, globalThis.speaker?.peer,
        globalThis.peer,
        ...Object.values(globalThis.studio?.peers ?? {}).map(({peer}) => peer),
    ];
    const wanted = [
        'type', 'kind', 'mid', 'rid', 'framesSent', 'framesReceived', 'framesDecoded', 'framesDropped', 'keyFramesDecoded',
        'keyFramesEncoded', 'packetsSent', 'packetsReceived', 'packetsLost', 'nackCount', 'pliCount', 'freezeCount',
        'frameHeight', 'framesPerSecond', 'targetBitrate', 'active', 'availableOutgoingBitrate',
        'qualityLimitationReason', 'totalAudioEnergy', 'currentRoundTripTime', 'state', 'dtlsState',
    ];
    const peers = [];
    for (const peer of new Set(found.filter(each => each?.getStats))) {
        const entries = [...(await peer.getStats()).values()].filter(({type, nominated}) =>
            ['inbound-rtp', 'outbound-rtp', 'transport'].includes(type) || type === 'candidate-pair' && nominated);
        peers.push({
            connection: peer.connectionState, ice: peer.iceConnectionState, signaling: peer.signalingState,
            statistics: entries.map(entry => Object.fromEntries(wanted.filter(name => entry[name] !== undefined).map(name => [name, entry[name]]))),
        });
    }
    return {
        address: location.href, state: document.body?.dataset.state, text: document.body?.innerText.slice(0, 600),
        feed: own.feed && {
            state: own.feed.state, current: own.feed.current?.id, error: own.feed.error?.message,
            slots: own.feed.slots.map(({stream, quality}) => [stream, quality]), swipe: own.swipe?.state,
            sides: own.cube?.sides.map(side => ({story: side.story?.id, uncovered: side.isUncovered, front: side === own.cube.frontSide})),
        },
        videos: [...document.querySelectorAll('video')].map(({paused, ended, readyState, currentTime, muted, videoHeight, srcObject}) => ({
            paused, ended, readyState, currentTime, muted, height: videoHeight, tracks: srcObject?.getTracks().map(({kind, readyState, muted}) => [kind, readyState, muted]),
        })),
        peers,
    };
}"""


def marks() -> dict[Path, int]:
    """How long the servers' logs are now."""
    return {server.log: length(server.log) for server in Server.all}


def length(log: Path) -> int:
    return log.stat().st_size if log.exists() else 0


def of_servers(before: dict[Path, int]) -> list[tuple[str, str]]:
    """The end of what each server logged since then."""
    found = []
    for server in Server.all:
        start = before.get(server.log, 0)
        if length(server.log) <= start:
            continue
        with server.log.open(errors="replace") as log:
            log.seek(start)
            lines = log.read().splitlines()
        state = "" if server.is_running else ", which is not running"
        found.append((f"server at {server.origin}{state} ({server.log})", end(lines)))
    return found


def of_sessions(stream: str | None) -> list[tuple[str, str]]:
    """What each server knows of the stream's sessions: what they are sent, and why it is no more."""
    found = []
    for server in Server.all:
        if stream is None or not server.is_running:
            continue
        try:
            admin = {"Authorization": f"Bearer {server.token(stream, 'admin')}"}
            # Those of feeds are of no single stream.
            sessions = [
                session for of in (stream, "~feed")
                for session in json.loads(server.request("GET", f"/v1/sessions?stream={of}", headers=admin)[2])["sessions"]]
            for session in sessions:
                dossier = server.request("GET", f"/v1/sessions/{session['id']}", headers=admin)[2]
                found.append((f"{session['purpose']} session {session['id']} at {server.origin}", dossier.decode()))
        except Exception as error:  # A server that does not answer must not hide why the test failed.
            found.append((f"sessions at {server.origin}", f"it does not answer: {error}"))
    return found


def of_pages(browsers: list[Browser], folder: Path, name: str) -> list[tuple[str, str]]:
    """Takes a picture of each page that is open, and asks it about itself."""
    found = []
    for browser in browsers:
        for page in browser.pages:
            page_name = f"{browser.name}-{len(found)}"
            found.append((f"page {page_name}", "\n".join(of_page(page, folder / f"{name}-{page_name}.png"))))
    return found


def of_page(page: Page, path: Path) -> list[str]:
    lines = []
    try:
        page.screenshot(path)
        lines.append(f"picture: {path}")
        path.with_suffix(".txt").write_text("\n".join(page.console))
        about = page.evaluate(ABOUT, seconds=SECONDS)
        peers = about.pop("peers")
        lines.append(json.dumps(about, ensure_ascii=False))
        for peer in peers:
            statistics = peer.pop("statistics")
            lines.append(f"connection: {json.dumps(peer)}")
            lines += [f"    {json.dumps(entry)}" for entry in statistics]
    except Exception as error:  # A dead page must not hide why the test failed.
        lines.append(f"it does not answer: {error}")
    return [*lines, "console:", end(page.console)]


def of_machine() -> str:
    """Whether others kept it busy."""
    return f"load {' '.join(f'{load:.1f}' for load in os.getloadavg())} on {os.cpu_count()} processors"


def end(lines: list[str]) -> str:
    omitted = [f"… {len(lines) - LAST_LINES} lines before"] if len(lines) > LAST_LINES else []
    return "\n".join([*omitted, *lines[-LAST_LINES:]])
