"""Clients of the feed that say whatever they like, as fast as they can; who swipes properly does not notice.

The clients are pages of a browser with the web client's own session and no manners. What they get is judged by what
came: packets of each receiver, and the colour of each frame, which names its stream.

`ROSTRUM_FLOOD` multiplies the amount (default 1, which takes some seconds).
"""

from __future__ import annotations

import json
import os
import random
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from drivers import Browser, Chromium, Page, wait_until
from feed import STORIES, Studio, assert_shows, open_feed, place, wait_for_story
from server import Server

SECONDS = 6 * float(os.environ.get("ROSTRUM_FLOOD", "1"))
#: A stream that is over, and one that nobody may see of those who are tested; then those that are for everybody.
OVER, FORBIDDEN = "rude-1", "rude-2"
OPEN = ["rude-3", "rude-4", "rude-5"]

#: `rude.open(token, stream)` opens a session; everything it is told and shown is noted.
RUDE = """async colours => {
    const {openFeedSession} = await import('/assets/feed/session.js');
    const rude = globalThis.rude = {all: [], mostAtOnce: 0};
    const canvas = new OffscreenCanvas(3, 3), context = canvas.getContext('2d', {willReadFrequently: true});
    const watch = (one, slot) => {
        const video = document.createElement('video');
        Object.assign(video, {muted: true, srcObject: slot.media});
        // Small ones take less of the machine, and all of them lie where they are drawn.
        video.style.width = '120px';
        document.body.append(video);
        video.play().catch(() => {});
        const check = () => {
            video.requestVideoFrameCallback(check);
            context.drawImage(video, 0, 0, 3, 3);
            const seen = [...context.getImageData(1, 1, 1, 1).data];
            const name = Object.keys(colours).find(
                name => colours[name].every((value, index) => Math.abs(value - seen[index]) < 35));
            one.shown[name ?? 'unclear'] = (one.shown[name ?? 'unclear'] ?? 0) + 1;
        };
        video.requestVideoFrameCallback(check);
    };
    // From the beginning: the first message may be there before a session is open. Much of the same is not kept.
    const create = RTCPeerConnection.prototype.createDataChannel;
    RTCPeerConnection.prototype.createDataChannel = function(...given) {
        const channel = create.apply(this, given), said = channel.said = [];
        channel.addEventListener('message', ({data}) => said.length < 5000 && said.push(JSON.parse(data)));
        return channel;
    };
    rude.open = async (token, stream) => {
        const session = await openFeedSession({origin: location.origin, stream, preload: 'eager', token});
        const one = {session, said: session.control.said, shown: {}, packets: [0, 0], grows: [0, 0]};
        session.listen();
        for (const slot of session.slots) watch(one, slot);
        rude.all.push(one);
        return rude.all.length - 1;
    };
    rude.say = (number, messages) => {
        const {control} = rude.all[number].session;
        for (const message of messages) {
            if (control.readyState !== 'open' || control.bufferedAmount > 1 << 20) return;
            if (Array.isArray(message)) control.send(new Uint8Array(message)); else control.send(message);
        }
    };
    /** As fast as it goes, until told otherwise. */
    rude.flood = (number, messages) => {
        const turn = () => {
            if (rude.isOver) return;
            rude.say(number, messages);
            rude.sent = (rude.sent ?? 0) + messages.length;
            setTimeout(turn, 5);
        };
        turn();
    };
    rude.post = async (number, type, body, token) => {
        const answer = await fetch(`${rude.all[number].session.resource}/${type}`, {
            method: 'POST', body, headers: {'Content-Type': 'application/json', Authorization: `Bearer ${token}`}});
        return [answer.status, (await answer.json()).rule ?? null];
    };
    /**
     * How many pictures come, by what comes over the wire: those of which more packets came by each of three looks in a
     * row. A busy browser makes the reports of one look at different moments, so by two of them the last packets of a
     * session and the first of the next one may seem to come together. By three, some came before and some after the
     * pause between two looks, which is one and the same moment for all.
     */
    const look = async () => {
        const reports = await Promise.all(rude.all.map(({session: {peer}}) => peer.getStats()));
        for (const [number, one] of rude.all.slice(0, reports.length).entries()) {
            const entries = [...reports[number].values()].filter(({type}) => type === 'inbound-rtp');
            for (const [index, {media}] of one.session.slots.entries()) {
                const [track] = media.getVideoTracks();
                const packets = entries.find(entry => entry.trackIdentifier === track.id)?.packetsReceived ?? 0;
                one.grows[index] = packets > one.packets[index] ? one.grows[index] + 1 : 0;
                one.packets[index] = packets;
            }
        }
        rude.now = rude.all.flatMap(({grows}) => grows).filter(count => count >= 3).length;
        rude.mostAtOnce = Math.max(rude.mostAtOnce, rude.now);
        setTimeout(look, 300);
    };
    look();
    rude.report = () => ({
        mostAtOnce: rude.mostAtOnce, now: rude.now, sent: rude.sent ?? 0,
        all: rude.all.map(({session, said, shown}) => ({
            said, shown, state: session.state, isOpen: session.control.readyState === 'open'})),
    });
}"""


@pytest.fixture(scope="module")
def studio(logs: Path) -> Iterator[Studio]:
    """Four live streams, of which one is for nobody here, and one that is over."""
    server, browser = Server(logs / "server-feed-hostile.log", "--viewers", "token"), Chromium(logs)
    try:
        studio = Studio(browser, server, "rude", [STORIES[1], STORIES[0], STORIES[4], STORIES[6], STORIES[2]])
        studio.end(OVER)
        host = server.token(FORBIDDEN, "host", studio.stories[FORBIDDEN].host)
        for name in ("fast", "wild", "twin"):
            status, _, body = server.request(
                "POST", f"/v1/streams/{FORBIDDEN}/bans", json.dumps({"participant": name}).encode(),
                {"Content-Type": "application/json", "Authorization": f"Bearer {host}"})
            assert status == 200, body
        yield studio
    finally:
        browser.close()
    assert server.is_running, "the server died"
    assert server.stop() == 0


class Rude:
    """A page full of sessions without manners."""

    def __init__(self, browser: Browser, studio: Studio) -> None:
        self.server = studio.server
        # By another name, which is another site: its pages share no process with those of honest people, whom it would
        # keep from their work.
        origin = self.server.origin.replace("127.0.0.1", "localhost")
        self.page: Page = browser.open(origin + "/healthz")
        self.page.evaluate(RUDE, {name: story.colour for name, story in studio.stories.items()})

    def open(self, name: str, stream: str, scope: str = "*") -> tuple[int, str]:
        """Number of a new session whose channel is open, and the token it has."""
        token = self.server.token(scope, "viewer", name)
        for _ in range(5):
            number = self.page.evaluate("(...given) => rude.open(...given)", token, stream)
            state = self.page.wait_for(
                """number => {
                    const {isOpen, state} = rude.report().all[number];
                    return isOpen ? 'open' : state === 'lost' && state;
                }""", number, seconds=15, what=f"{name}'s channel is open")
            if state == "open":
                return number, token
            # A browser that gets no processor is late with its handshake, and the server gives it up.
        raise TimeoutError(f"{name} does not connect")

    def say(self, number: int, messages: list[Any]) -> None:
        self.page.evaluate("(...given) => rude.say(...given)", number, messages)

    def post(self, number: int, verb: str, body: str, token: str) -> tuple[int, str | None]:
        return tuple(self.page.evaluate("(...given) => rude.post(...given)", number, verb, body, token))

    def report(self) -> dict[str, Any]:
        return self.page.evaluate("() => rude.report()")

    def told(self, number: int) -> list[dict[str, Any]]:
        return self.report()["all"][number]["said"]

    def refusals(self, number: int) -> set[str]:
        return {message["reason"] for message in self.told(number) if message["type"] == "refused"}

    def streams(self, number: int) -> list[set[str]]:
        """What each message about the slots named."""
        return [
            {slot["stream"] for slot in message["slots"] if slot.get("stream")}
            for message in self.told(number) if message["type"] == "slots"]

    def wait_for_refusal(self, number: int, reason: str, message: str) -> None:
        """Says something, again where it was one message too many, until it is refused for this reason."""
        def is_refused() -> bool:
            self.say(number, [message])
            return reason in self.refusals(number)
        wait_until(is_refused, 15, f"{message} is refused as {reason}")

    def wait_for_focus(self, number: int, stream: str) -> None:
        """Asks for a stream, again where it was one message too many, until it is in focus."""
        def is_there() -> bool:
            self.say(number, [json.dumps({"type": "focus", "stream": stream})])
            return self.page.evaluate("number => rude.all[number].session.focus", number) == stream
        wait_until(is_there, 15, f"{stream} is in focus")

    def close(self) -> None:
        self.page.evaluate("() => { rude.isOver = true; for (const {session} of rude.all) session.close(); }")
        self.page.close()


def nonsense(chance: random.Random) -> list[Any]:
    """Messages that no client should send."""
    def one() -> Any:
        stream = chance.choice([*OPEN, OVER, FORBIDDEN, "nobody", "", "x" * 200, "../..", "\0"])
        kind = chance.choice(["peek", "focus", "release", "swipe", "", "slots"])
        good = json.dumps({"type": kind, "stream": stream, "direction": chance.choice(["forward", "sideways", 3])})
        return chance.choice([
            good, good[:chance.randrange(len(good))], "[" * 5000, "{}", "null", "", '{"type":7}', '{"type":"peek"}',
            "\ud7ff" * 50, list(good.encode()), [chance.randrange(256) for _ in range(60)],
            '{"type":"peek","stream":"' + "a" * 20_000 + '"}'])
    return [one() for _ in range(200)]


def swipes(chance: random.Random) -> list[str]:
    streams = [*OPEN, OVER, FORBIDDEN]
    return [
        json.dumps({"type": chance.choice(["peek", "focus", "focus", "release"]), "stream": chance.choice(streams)})
        for _ in range(100)]


def wait_for_sessions(studio: Studio, viewers: int) -> None:
    """Waits until there are these viewers' sessions and the publishers', and no more."""
    # One of them has ended.
    publishers = len(studio.stories) - 1

    def counts() -> tuple[int, int]:
        metrics = studio.server.metrics()
        return int(metrics["rostrum_feed_sessions"]), int(sum(
            value for name, value in metrics.items() if name.startswith("rostrum_sessions{")))
    wait_until(lambda: counts() == (viewers, viewers + publishers), 20, f"there are {viewers} viewers' sessions")


def test_a_flood_of_messages_is_the_floods_problem(chromium: Browser, studio: Studio) -> None:
    server, chance = studio.server, random.Random(7)
    honest = open_feed(chromium, server)
    wait_for_story(honest, place(honest)["current"] or honest.wait_for("() => rostrum.feed.current?.id"))
    connection = honest.evaluate("() => rostrum.connection.session.resource")
    wait_for_sessions(studio, 1)
    files, memory = server.open_files(), server.resident_kilobytes()
    rude = Rude(chromium, studio)
    (fast, fast_token), (wild, wild_token) = rude.open("fast", OPEN[0]), rude.open("wild", OPEN[1])
    # May see one stream alone.
    nosy, _ = rude.open("nosy", OPEN[2], scope=OPEN[2])
    for number, messages in ((fast, swipes(chance)), (wild, nonsense(chance))):
        rude.page.evaluate("(...given) => rude.flood(...given)", number, messages)

    # Meanwhile: somebody swipes, and everything is as it should be.
    end, turns, statuses = time.monotonic() + SECONDS, 0, set()
    order = [stream for stream in place(honest)["stories"] if stream != OVER]
    while time.monotonic() < end or turns < len(order):
        story = order[turns % len(order)]
        honest.evaluate("id => rostrum.feed.go(id)", story)
        wait_for_story(honest, story)
        assert_shows(honest, studio.stories[story])
        turns += 1
        statuses.add(rude.post(fast, "focus", json.dumps({"stream": chance.choice(OPEN)}), fast_token))
        assert rude.post(wild, "peek", chance.choice(["{", "[]", '{"stream":3}']), wild_token)[0] in (400, 422)
    assert honest.evaluate("() => rostrum.connection.session.resource") == connection, "it never had to come back"
    def is_refused() -> bool:
        statuses.add(rude.post(fast, "focus", json.dumps({"stream": chance.choice(OPEN)}), fast_token))
        return (429, "too-many-messages") in statuses
    wait_until(is_refused, 15, "who sends too much is told so over HTTP, too")
    assert {status for status, _ in statuses} <= {200, 429}, statuses
    report = rude.report()
    assert report["sent"] > 500 * SECONDS, "it was a flood"

    # Who sends too much is told so, once, and not for each message.
    assert "too-many-messages" in rude.refusals(fast)
    assert any(message["type"] == "error" and message["rule"] == "malformed" for message in rude.told(wild))
    rude.page.evaluate("() => { rude.isOver = true; }")
    elapsed = time.monotonic() - end + SECONDS
    for number in (fast, wild):
        assert len(rude.told(number)) < 100 + 60 * elapsed, "answers are no flood"
    # Once it is quiet, each is heard again, and told why not.
    rude.wait_for_refusal(fast, "not-live", json.dumps({"type": "focus", "stream": OVER}))
    rude.wait_for_refusal(fast, "not-permitted", json.dumps({"type": "focus", "stream": FORBIDDEN}))
    for stream in (*OPEN[:2], FORBIDDEN):
        rude.wait_for_refusal(nosy, "not-permitted", json.dumps({"type": "peek", "stream": stream}))
    for number in (fast, wild):
        rude.wait_for_focus(number, OPEN[2])

    # What it got, by what it was told and by what it saw.
    allowed = ((fast, set(OPEN)), (wild, set(OPEN)), (nosy, {OPEN[2]}))

    def is_shown() -> bool:
        seen = rude.report()["all"]
        return all(
            sum(count for name, count in seen[number]["shown"].items() if name in may) > 20 for number, may in allowed)
    wait_until(is_shown, 30, "each is shown what it may see")
    report = rude.report()
    for number, may in allowed:
        told, shown = rude.streams(number), report["all"][number]["shown"]
        assert told and all(len(streams) <= 2 and streams <= may for streams in told), told
        assert not set(shown) & ({OVER, *OPEN, FORBIDDEN} - may), shown
    rude.close()
    wait_for_sessions(studio, 1)
    wait_until(lambda: server.open_files() <= files + 2, 10, "connections are closed again")
    grown = server.resident_kilobytes() - memory
    assert grown < 30 * 1024, f"{grown} kB more memory"
    honest.close()


def test_sessions_of_one_viewer_share_two_streams(chromium: Browser, studio: Studio) -> None:
    wait_for_sessions(studio, 0)
    rude = Rude(chromium, studio)
    # At the end of the list there is one stream to swipe to, too.
    status, _, body = studio.server.request(
        "GET", "/v1/feed", headers={"Authorization": f"Bearer {studio.server.token('*', 'viewer', 'twin')}"})
    assert status == 200, body
    last = [story["id"] for story in json.loads(body)["items"] if story["id"] in OPEN][-1]
    old, _ = rude.open("twin", last)
    wait_until(lambda: any(len(streams) == 2 for streams in rude.streams(old)), 15, "the first one has two streams")
    rude.page.wait_for("() => rude.now === 2", seconds=15, what="both come over the wire")
    new, token = rude.open("twin", OPEN[1])
    # The older one is told, gets nothing more, and is let go.
    rude.page.wait_for("number => rude.report().all[number].said.at(-1)?.type === 'replaced'", old, what="it is told")
    rude.page.wait_for("number => rude.report().all[number].state === 'lost'", old, seconds=15, what="it is let go")
    assert rude.told(old)[-1]["type"] == "replaced", "nothing is said after it"
    assert rude.post(old, "focus", json.dumps({"stream": OPEN[0]}), token)[0] == 404
    rude.page.wait_for("() => rude.now >= 1", seconds=15, what="the newer one plays")
    rude.page.wait_for("number => rude.all[number].session.focus === 'rude-4'", new)

    # Again and again, each as soon as it can, while all of them want a second one all the time.
    greed = [json.dumps({"type": "peek", "stream": stream}) for stream in (*OPEN, FORBIDDEN)]
    for number in range(6):
        latest, _ = rude.open("twin", OPEN[number % 3])
        rude.page.evaluate("(...given) => rude.flood(...given)", latest, greed)
    rude.page.wait_for("number => rude.report().all[number].shown[rude.all[number].session.focus] > 5", latest, seconds=15,
                       what="the newest one plays")
    rude.page.wait_for("() => rude.report().all.filter(({state}) => state === 'connected').length <= 2", what="older ones are let go")
    report = rude.report()
    assert report["mostAtOnce"] == 2, "at most two pictures came, over all sessions"
    assert FORBIDDEN not in {name for each in report["all"] for name in each["shown"]}
    rude.close()
    wait_for_sessions(studio, 0)
