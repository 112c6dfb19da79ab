"""Turns from story to story in Chromium, timed."""

from __future__ import annotations

from pathlib import Path

from drivers import PHONE, Chromium
from feed import STORIES, Studio, open_feed, wait_for_preload, wait_for_story
from server import Server

#: Turns to a story and waits for its first frame and its first sound; in milliseconds since the turn was decided.
TURN = """async id => {
    const {feed, cube, gestures} = rostrum;
    const place = feed.stories.findIndex(story => story.id === id) - feed.index;
    const slot = feed.slotOf(id)?.index ?? null;
    const side = cube.backSide;
    const start = performance.now();
    if (slot === null) feed.go(id);
    else gestures.step(place > 0 ? 'forward' : 'backward');
    const picture = new Promise(resolve => {
        if (slot === null) cube.addEventListener('frame', ({detail}) => resolve(detail.at - start), {once: true});
        else side.video.requestVideoFrameCallback(now => resolve(now - start));
    });
    const sound = new Promise(resolve => {
        const look = () => {
            const track = feed.slotOf(id)?.media.getAudioTracks()[0];
            const receiver = feed.connection.session.peer.getReceivers().find(each => each.track === track);
            const [source] = receiver?.getSynchronizationSources() ?? [];
            if (source && source.audioLevel > 0.01 && source.timestamp - performance.timeOrigin > start
                || source && source.audioLevel > 0.01 && source.timestamp > start && source.timestamp < 1e9) {
                return resolve(performance.now() - start);
            }
            if (performance.now() - start > 5000) return resolve(null);
            setTimeout(look, 2);
        };
        look();
    });
    return [await picture, await sound];
}"""


class Turns:
    """A feed of five streams in VP8, VP9, H.264 and AV1, 30 frames a second, with the sound on."""

    def __init__(self, logs: Path) -> None:
        self.server = Server(logs / "server-feed.log")
        self._browser = Chromium(logs)
        Studio(self._browser, self.server, "story", STORIES[:5], interval=33)
        self.page = open_feed(self._browser, self.server, PHONE)
        self.page.wait_for("() => rostrum.feed.stories.length === 5 && rostrum.cube.frontSide.isUncovered", seconds=20)
        self.page.click("#unmute")

    def close(self) -> None:
        self._browser.close()
        self.server.stop()

    def take(self, is_preloaded: bool, count: int = 30) -> list[tuple[float, float | None]]:
        """Goes to a neighbour that is playing already, or to a story that is none; first frame and first sound."""
        page = self.page
        times: list[tuple[float, float | None]] = []
        order = page.evaluate("() => rostrum.feed.stories.map(({id}) => id)")
        here = 0
        page.evaluate("id => rostrum.feed.go(id)", order[here])
        while len(times) < count:
            wait_for_story(page, order[here])
            if is_preloaded and here + 1 == len(order):
                here = 0
                page.evaluate("id => rostrum.feed.go(id)", order[here])
                continue
            there = here + 1 if is_preloaded else (here + 2) % len(order)
            if is_preloaded:
                wait_for_preload(page, order[there])
            else:
                page.wait_for(
                    "id => rostrum.feed.slots.some(({stream}) => stream !== null) && !rostrum.feed.slotOf(id)",
                    order[there], what="the story is not preloaded")
            picture, sound = page.evaluate(TURN, order[there])
            times.append((picture, sound))
            here = there
        return times
