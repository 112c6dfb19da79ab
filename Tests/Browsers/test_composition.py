"""Composed programmes: everybody on stage in one picture and one mix, from real browsers to a real browser."""

from __future__ import annotations

import json
import os
import signal
from bisect import bisect
from pathlib import Path

import pytest

from drivers import Browser, Page, wait_until
from drivers.patience import patient
from server import Server
from stage import COLOURS, join
from test_previews import pixels

#: Watches what is rendered: when, and whether the sound has certain tones.
LISTEN = """() => {
    const mid = Object.keys(speaker.videos)[0];
    const video = speaker.viewed = speaker.videos[mid];
    speaker.shown = [];
    const note = now => { speaker.shown.push(performance.timeOrigin + now); video.requestVideoFrameCallback(note); };
    video.requestVideoFrameCallback(note);
    const receiver = speaker.peer.getReceivers().find(({track}) => track.kind === 'audio');
    const context = new AudioContext();
    context.resume();
    speaker.analyser = context.createAnalyser();
    speaker.analyser.fftSize = 8192;
    context.createMediaStreamSource(new MediaStream([receiver.track])).connect(speaker.analyser);
}"""

#: Decibels of some tones above what lies between them.
TONES = """frequencies => {
    const {analyser} = speaker, bins = new Float32Array(analyser.frequencyBinCount);
    analyser.getFloatFrequencyData(bins);
    const at = frequency => {
        const bin = Math.round(frequency * analyser.fftSize / analyser.context.sampleRate);
        return Math.max(...bins.slice(bin - 2, bin + 3));
    };
    return frequencies.map(at);
}"""

#: The colour at a place of the picture, in hundredths of its width and height.
COLOUR_AT = """(x, y) => {
    const video = speaker.viewed;
    if (!video || !video.videoWidth) return null;
    const canvas = document.createElement('canvas');
    [canvas.width, canvas.height] = [video.videoWidth, video.videoHeight];
    const context = canvas.getContext('2d');
    context.drawImage(video, 0, 0);
    return [...context.getImageData(x * canvas.width / 100, y * canvas.height / 100, 1, 1).data.slice(0, 3)];
}"""

SIZE = {"width": 640, "height": 360, "bitrate": 800000, "fps": 20}
TONE = {"ann": 500, "bob": 1300, "cid": 2300}


def make(server: Server, stream: str, **details: object) -> None:
    headers = {
        "Authorization": f"Bearer {server.token(stream)}", "Content-Type": "application/json"}
    body = json.dumps({"title": "Composed", "programme": "composed", "composition": SIZE, **details}).encode()
    status, _, answer = server.request("POST", "/v1/streams", body, headers)
    assert status == 201, (status, answer)
    assert json.loads(answer)["composition"]["fps"] == 20
    status, _, answer = server.request("POST", f"/v1/streams/{stream}/live", b"", headers)
    assert status == 200, (status, answer)


def enter(browser: Browser, server: Server, stream: str, name: str) -> Page:
    page = join(
        browser, server, stream, name, role="host" if name == "ann" else "speaker", audio=0, video=0)
    page.evaluate("frequency => { speaker.tone.frequency.value = frequency; }", TONE[name])
    return page


def view(browser: Browser, server: Server, stream: str) -> Page:
    page = join(browser, server, stream, "dan", role="viewer", audio=1, video=1, publishes=False)
    page.evaluate(LISTEN)
    return page


def wait_for_picture(page: Page, places: dict[tuple[int, int], str | None], seconds: float = 20) -> None:
    """Waits until each place has its speaker's colour, and nobody's where there is none."""
    page.wait_for(
        f"""(places, colours) => places.every(([x, y, name]) => {{
            const colour = ({COLOUR_AT})(x, y);
            const is = wanted => wanted.every((value, index) => Math.abs(value - colour[index]) < 55);
            return colour && (name ? is(colours[name]) : !Object.values(colours).some(is));
        }})""",
        [[x, y, name] for (x, y), name in places.items()], {name: list(value) for name, value in COLOURS.items()},
        seconds=seconds, what=f"the picture shows {places}")


def wait_for_tones(page: Page, heard: set[str], seconds: float = 15) -> None:
    page.wait_for(
        f"""(wanted, others) => {{
            const least = Math.min(...({TONES})(wanted));
            return least > -65 && ({TONES})(others).every(level => level < least - 15);
        }}""",
        [TONE[name] for name in heard], [TONE[name] for name in set(TONE) - heard] + [900],
        seconds=seconds, what=f"{heard} are heard")


def wait_for_people(page: Page, people: list[str]) -> None:
    """Waits until the control channel says who is in the picture and in the mix, and names nobody alone."""
    page.wait_for(
        """people => {
            const slots = Object.values(speaker.slots);
            return slots.length === 2 && slots.every(slot => people.length > 1
                ? !slot.participant && String(slot.participants) === String(people)
                : !slot.participants && slot.participant === people[0]);
        }""", people, what=f"the slots name {people}")


def longest_gap(page: Page, source: Page) -> int:
    """How many pictures a speaker drew between two that were shown, at most, since the last call.

    A machine that stands still for a moment draws none.
    """
    shown = page.evaluate(
        """() => {
            const times = [...speaker.shown, performance.timeOrigin + performance.now()];
            speaker.shown = speaker.shown.slice(-1);
            return times;
        }""")
    drawn = source.evaluate("() => speaker.drawn")
    places = [bisect(drawn, time) for time in shown]
    return max(after - before for before, after in zip(places, places[1:]))


#: Milliseconds by which the picture is shown before the sound of the same moment; null while that is not known.
SKEW = """async () => {
    const times = {};
    for (const entry of (await speaker.peer.getStats()).values()) {
        if (entry.type === 'inbound-rtp') times[entry.kind] = entry.estimatedPlayoutTimestamp;
    }
    return times.audio && times.video ? times.audio - times.video : null;
}"""


def screenshot(page: Page, logs: Path, name: str) -> None:
    page.evaluate("() => { speaker.viewed.style.width = '640px'; scrollTo(0, 0); }")
    page.screenshot(logs / f"composition-{name}.png")


@pytest.mark.alone
def test_a_composition_follows_its_stage(
    browsers: dict[str, Browser], server: Server, stream: str, logs: Path
) -> None:
    make(server, stream)
    ann = enter(browsers["chromium"], server, stream, "ann")
    viewer = view(browsers["chromium"], server, stream)
    # One speaker: relayed, as large as it was sent.
    wait_for_picture(viewer, {(25, 30): "ann", (75, 30): "ann"})
    wait_for_tones(viewer, {"ann"})
    wait_for_people(viewer, ["ann"])
    # The element has its first picture before the page is told of one.
    viewer.wait_for("() => speaker.shown.length > 0")
    longest_gap(viewer, ann)
    viewer.wait_for("() => speaker.shown.length > 60", seconds=20, what="60 frames are shown")
    # What this machine does to a picture that nobody touches; frames of the speakers come every 50 ms.
    steady = longest_gap(viewer, ann)
    bob = enter(browsers["chromium"], server, stream, "bob")
    wait_for_picture(viewer, {(25, 30): "ann", (75, 30): "bob"})
    wait_for_tones(viewer, {"ann", "bob"})
    wait_for_people(viewer, ["ann", "bob"])
    screenshot(viewer, logs, "two")
    gaps = {"relay to composition": longest_gap(viewer, ann)}
    viewer.wait_for(
        f"async () => {{ const skew = await ({SKEW})(); return skew !== null && Math.abs(skew) <= 40; }}",
        seconds=20, what="sound and picture are together")
    # Somebody who only glances at it gets the small copy.
    height = "wanted => speaker.viewed.videoHeight === wanted"
    mid = viewer.evaluate("() => Object.keys(speaker.videos)[0]")
    ask = "(mid, maxHeight) => speaker.control.send(JSON.stringify({type: 'slot', mid, maxHeight}))"
    viewer.evaluate(ask, mid, 90)
    viewer.wait_for(height, 90, what="the small copy is shown")
    wait_for_picture(viewer, {(25, 30): "ann", (75, 30): "bob"})
    viewer.evaluate(ask, mid, 1080)
    viewer.wait_for(height, 360, what="the full picture is shown")
    # The composer reports once a second.
    wait_until(
        lambda: server.metrics()["rostrum_composition_picture_height"] >= 180, 5, "the composer reports its picture")
    metrics = server.metrics()
    assert metrics["rostrum_compositions"] == 1
    assert 0 < metrics["rostrum_composition_latency_seconds"] < 1
    longest_gap(viewer, ann)
    cid = enter(browsers["firefox"], server, stream, "cid")
    wait_for_picture(viewer, {(25, 20): "ann", (75, 20): "bob", (50, 70): "cid"})
    # Firefox plays no tone that nobody clicked for.
    wait_for_tones(viewer, {"ann", "bob"})
    screenshot(viewer, logs, "three")
    gaps["a third joins"] = longest_gap(viewer, ann)
    bob.evaluate("() => { clearInterval(speaker.timer); speaker.peer.getSenders()[1].replaceTrack(null); }")
    wait_for_picture(viewer, {(25, 20): "ann", (75, 20): None, (50, 70): "cid"})
    screenshot(viewer, logs, "camera-off")
    gaps["a camera goes off"] = longest_gap(viewer, ann)
    cid.close()
    wait_for_picture(viewer, {(25, 30): "ann", (75, 30): None}, seconds=30)
    gaps["one leaves"] = longest_gap(viewer, ann)
    bob.close()
    wait_for_picture(viewer, {(25, 30): "ann", (75, 30): "ann"}, seconds=30)
    wait_for_tones(viewer, {"ann"})
    gaps["composition to relay"] = longest_gap(viewer, ann)
    print(steady, gaps)
    # One is drawn every 50 ms.
    assert max(gaps.values()) <= 2 + 2 * steady, (steady, gaps)


def transcoder(server: Server) -> int | None:
    """The process that decodes, by its parent."""
    for entry in Path("/proc").iterdir():
        if not entry.name.isdigit():
            continue
        try:
            fields = (entry / "stat").read_text().rpartition(")")[2].split()
            command = (entry / "cmdline").read_bytes()
        except OSError:
            continue
        if int(fields[1]) == server.pid and b"transcoder" in command:
            return int(entry.name)
    return None


@pytest.mark.alone
def test_a_composition_comes_back_when_its_process_is_killed(
    browsers: dict[str, Browser], server: Server, stream: str
) -> None:
    make(server, stream)
    ann = enter(browsers["chromium"], server, stream, "ann")
    enter(browsers["chromium"], server, stream, "bob")
    viewer = view(browsers["chromium"], server, stream)
    wait_for_picture(viewer, {(25, 30): "ann", (75, 30): "bob"})
    before = transcoder(server)
    assert before is not None
    viewer.evaluate("() => { speaker.shown = speaker.shown.slice(-1); }")
    os.kill(before, signal.SIGKILL)
    wait_until(lambda: transcoder(server) not in (None, before), 5, "there is another transcoder")
    back = viewer.evaluate("() => performance.timeOrigin + performance.now()")
    viewer.wait_for("since => speaker.shown.at(-1) > since", back, seconds=10, what="frames come again")
    wait_for_picture(viewer, {(25, 30): "ann", (75, 30): "bob"}, seconds=10)
    gap = longest_gap(viewer, ann)
    print("longest gap", gap)
    # Two seconds, where the new process gets its time.
    assert gap < patient(40)
    assert server.is_running


def test_beyond_the_limit_a_composition_waits_for_room(
    browsers: dict[str, Browser], logs: Path, stream: str
) -> None:
    server = Server(logs / "server-compositions.log", "--max-compositions", "1")
    try:
        first, second = f"{stream}-1", f"{stream}-2"
        for name in (first, second):
            make(server, name)
            enter(browsers["chromium"], server, name, "ann")
        enter(browsers["chromium"], server, first, "bob")
        # What nobody watches is not composed.
        view(browsers["chromium"], server, first)
        wait_until(lambda: server.metrics()["rostrum_compositions"] == 1, 10, "the first one is composed")
        bob = enter(browsers["chromium"], server, second, "bob")
        viewer = view(browsers["chromium"], server, second)
        # Who spoke last, whole.
        viewer.wait_for(
            f"colours => colours.some(colour => [25, 75].every(x => ({COLOUR_AT})(x, 30).every("
            "(value, index) => Math.abs(value - colour[index]) < 55)))",
            [list(COLOURS["ann"]), list(COLOURS["bob"])], seconds=20, what="one speaker fills the picture")
        # Who came second may be on the air a moment after the other one fills the picture.
        wait_until(lambda: server.metrics()["rostrum_compositions_waiting"] == 1, 10, "the second one waits")
        assert server.metrics()["rostrum_compositions"] == 1
        # It is disconnected for as long as a busy machine keeps the answers to its checks.
        bob.wait_for("() => speaker.peer.connectionState === 'connected'", what="who is not composed stays connected")
        token = {"Authorization": f"Bearer {server.token(first)}"}
        status, _, answer = server.request("POST", f"/v1/streams/{first}/end", b"", token)
        assert status == 200, (status, answer)
        wait_for_picture(viewer, {(25, 30): "ann", (75, 30): "bob"})
        wait_until(lambda: server.metrics()["rostrum_compositions_waiting"] == 0, 10, "nothing waits any more")
    finally:
        server.stop()


def shown_in_preview(server: Server, stream: str) -> set[str]:
    """Whose colours a stream's preview has, in the middle of its left and of its right half."""
    about = server.json(f"/v1/streams/{stream}")["preview"]
    if not about:
        return set()
    file = server.request("GET", about["url"])[2]
    # Made anew meanwhile, it may have another size: a busy browser sends smaller pictures.
    if server.json(f"/v1/streams/{stream}")["preview"] != about:
        return set()
    width, height = about["width"], about["height"]
    shown = pixels(file, width, height)
    places = [shown[height // 3, width * x // 100].tolist() for x in (25, 75)]
    return {
        name for name, wanted in COLOURS.items()
        if any(max(abs(a - b) for a, b in zip(place, wanted)) < 55 for place in places)}


def test_a_composition_rests_while_nobody_watches(
    browsers: dict[str, Browser], own_server: Server, stream: str
) -> None:
    # Of all its streams a server counts together.
    server = own_server
    make(server, stream)
    for name in ("ann", "bob"):
        enter(browsers["chromium"], server, stream, name)
    wait_until(lambda: server.metrics()["rostrum_compositions_resting"] == 1, 20, "there is nobody to compose for")
    assert server.metrics()["rostrum_compositions"] == 0
    # Somebody has to be seen in its preview.
    wait_until(lambda: shown_in_preview(server, stream), 20, "the preview shows one of them")
    for _ in range(2):
        viewer = view(browsers["chromium"], server, stream)
        viewer.wait_for("() => speaker.shown.length > 0", seconds=10, what="there is a picture")
        wait_for_picture(viewer, {(25, 30): "ann", (75, 30): "bob"}, seconds=10)
        assert server.metrics()["rostrum_compositions_resting"] == 0
        wait_until(lambda: {"ann", "bob"} <= shown_in_preview(server, stream), 25, "the preview shows both")
        viewer.close()
        wait_until(lambda: server.metrics()["rostrum_compositions_resting"] == 1, 40, "it rests again")
        assert server.metrics()["rostrum_compositions"] == 0
