"""The feed's rules that need no server: gestures, the list, BlurHash."""

from __future__ import annotations

import math
from typing import Any

import pytest

from drivers import Browser
from server import Server

#: Plays a gesture: `p` press, `m` move, `l` lift, `t` tick, `a` abandon, `s` step; each with its time.
GESTURE = """async (steps, way = {forward: true, backward: true}) => {
    const {Swipe} = await import('/assets/story-feed.js');
    const said = [];
    const swipe = new Swipe({
        peek: direction => said.push(`peek ${direction}`), commit: direction => said.push(`commit ${direction}`),
        cancel: () => said.push('cancel'), tap: (x, y) => said.push(`tap ${x} ${y}`)});
    const seen = [];
    for (const [what, at, ...rest] of steps) {
        if (what === 'p') swipe.press({x: rest[0], y: rest[1], at}, {width: 400, height: 800});
        if (what === 'm') swipe.move({x: rest[0], y: rest[1], at}, way);
        if (what === 'l') swipe.lift({x: rest[0], y: rest[1], at});
        if (what === 't') swipe.tick(at);
        if (what === 'a') swipe.abandon(at);
        if (what === 's') swipe.step(rest[0], rest[1], at, way);
        seen.push([swipe.state, Math.round(swipe.progress * 1000) / 1000, swipe.axis]);
    }
    return {said, seen};
}"""


def play(chromium: Browser, server: Server, *gestures: tuple[list[Any], ...]) -> list[dict[str, Any]]:
    with chromium.open(server.origin + "/healthz") as page:
        return [page.evaluate(GESTURE, *gesture) for gesture in gestures]


def slow(start: tuple[int, int], end: tuple[int, int], lift: bool = True) -> list[Any]:
    """A finger that goes there within a second and rests before it leaves."""
    steps: list[Any] = [["p", 0, *start]]
    for n in range(1, 21):
        steps.append(["m", n * 50, *(a + (b - a) * n / 20 for a, b in zip(start, end))])
    return [*steps, ["m", 1300, *end], *([["l", 1300, *end]] if lift else [])]


def test_a_third_of_the_screen_turns_to_the_other_story(chromium: Browser, server: Server) -> None:
    further, less, back, up = play(
        chromium, server, (slow((380, 400), (100, 400)),), (slow((380, 400), (250, 400)),),
        (slow((20, 400), (172, 400)),), (slow((200, 700), (200, 420)),))
    assert further["said"] == ["peek forward", "commit forward"]
    assert less["said"] == ["peek forward", "cancel"]
    assert back["said"] == ["peek backward", "commit backward"]
    assert up["said"] == ["peek forward", "commit forward"] and up["seen"][-1][2] == "y"
    # It follows the finger, and what is left runs out from where the finger was.
    assert further["seen"][10][1] == pytest.approx((140 - 8) / 400, abs=0.002)
    assert further["seen"][-1][0] == "settling" and further["seen"][-1][1] == pytest.approx(0.68 - 1, abs=0.01)


def test_a_flick_decides_by_its_speed(chromium: Browser, server: Server) -> None:
    flick = [["p", 0, 300, 400], ["m", 16, 280, 400], ["m", 32, 255, 400], ["m", 48, 230, 400], ["l", 50, 230, 400]]
    # Slower, as a thumb does it from below: half a screen's height in a second.
    thumb = [["p", 0, 200, 700], *(["m", 16 * n, 200, 700 - 9 * n] for n in range(1, 13)), ["l", 194, 200, 592]]
    # Far out, and flung back.
    flung = [*slow((380, 400), (120, 400), lift=False), ["m", 1316, 150, 400], ["m", 1332, 190, 400], ["l", 1334, 190, 400]]
    forth, up, back = play(chromium, server, (flick,), (thumb,), (flung,))
    assert forth["said"] == ["peek forward", "commit forward"]
    assert up["said"] == ["peek forward", "commit forward"]
    assert back["said"] == ["peek forward", "cancel"]


def test_the_picture_comes_to_rest(chromium: Browser, server: Server) -> None:
    steps = [*slow((380, 400), (100, 400)), *(["t", 1300 + 16 * n] for n in range(60))]
    [played] = play(chromium, server, (steps,))
    run = [progress for _, progress, _ in played["seen"][23:]]
    assert run == sorted(run), "it never turns back"
    assert played["seen"][-1] == ["resting", 0, "x"]
    # Within two thirds of a second, and not at once.
    assert run[5] < -0.02 and run[42] == 0


def test_nothing_is_asked_for_where_nothing_is(chromium: Browser, server: Server) -> None:
    end = {"forward": False, "backward": True}
    dragged, stepped = play(
        chromium, server, (slow((380, 400), (20, 400)), end),
        ([["s", 0, "forward", "x"], ["t", 60], ["t", 3000]], end))
    assert dragged["said"] == [] and stepped["said"] == []
    # The picture gives a little, and comes back.
    assert 0.1 < dragged["seen"][-1][1] < 0.3
    assert 0 < stepped["seen"][1][1] < 0.06 and stepped["seen"][2] == ["resting", 0, "x"]


def test_a_turn_of_the_finger_asks_for_the_other_side(chromium: Browser, server: Server) -> None:
    steps = [*slow((200, 400), (100, 400), lift=False), ["m", 1400, 150, 400], ["m", 1500, 300, 400], ["a", 1600]]
    [played] = play(chromium, server, (steps,))
    assert played["said"] == ["peek forward", "peek backward", "cancel"]


def test_taps_are_no_swipes(chromium: Browser, server: Server) -> None:
    tap, held, moved = play(
        chromium, server, ([["p", 0, 30, 40], ["m", 10, 33, 42], ["l", 90, 33, 42]],),
        ([["p", 0, 30, 40], ["l", 900, 30, 40]],), ([["m", 0, 30, 40], ["l", 10, 30, 40]],))
    assert tap["said"] == ["tap 33 42"] and tap["seen"][-1] == ["resting", 0, "x"]
    assert held["said"] == [] and moved["said"] == []


def test_steps_may_follow_faster_than_the_picture(chromium: Browser, server: Server) -> None:
    steps = [["s", 0, "forward", "x"], ["t", 50], ["s", 60, "forward", "x"], ["t", 120], ["s", 130, "backward", "x"], ["t", 900]]
    # A second swipe while the first still runs: no request for what has just been left.
    chased = [
        *slow((380, 400), (100, 400)), ["t", 1330], ["p", 1340, 300, 400],
        ["m", 1356, 280, 400], ["m", 1372, 250, 400], ["m", 1388, 215, 400], ["m", 1404, 150, 400], ["l", 1406, 150, 400]]
    keys, fingers = play(chromium, server, (steps,), (chased,))
    assert keys["said"] == ["commit forward", "commit forward", "commit backward"]
    assert all(abs(progress) <= 1 for _, progress, _ in keys["seen"]) and keys["seen"][-1] == ["resting", 0, "x"]
    assert fingers["said"].count("commit forward") == 2 and "peek backward" not in fingers["said"]


#: What is told of a picture, second by second: pictures decoded, packets arrived and packets lost in each.
HEALTH = """async seconds => {
    const {Health} = await import('/assets/feed/health.js');
    const health = new Health(), total = {frames: 0, packets: 0, lost: 0};
    return seconds.map(([frames, packets, lost]) => {
        total.frames += frames;
        total.packets += packets;
        total.lost += lost;
        return health.take({...total});
    });
}"""


def test_a_picture_that_stands_still_is_told_why(chromium: Browser, server: Server) -> None:
    with chromium.open(server.origin + "/healthz") as page:
        fine, weak, silent, heard = (page.evaluate(HEALTH, seconds) for seconds in (
            [[25, 90, 0], [25, 90, 4], [0, 90, 4], [0, 90, 4], [25, 90, 0], [1, 3, 0]],
            [[25, 90, 0], [0, 12, 9], [0, 0, 0], [0, 9, 3], [0, 0, 0], [1, 20, 0], [0, 20, 5], [9, 20, 1], [25, 90, 0]],
            [[25, 90, 0], [0, 0, 0], [0, 0, 0], [0, 0, 0], [0, 0, 0], [25, 90, 0], [25, 90, 0]],
            [[25, 90, 0], *[[0, 50, 0]] * 6],
        ))
    assert fine == ["fine"] * 6
    # One picture between is no recovery; two seconds with pictures are.
    assert weak == ["fine"] * 3 + ["weak"] * 5 + ["fine"]
    assert silent == ["fine"] * 3 + ["silent"] * 3 + ["fine"]
    # A host who has turned the camera off.
    assert heard == ["fine"] * 7


LIST = """async calls => {
    const {StoryList} = await import('/assets/feed/list.js');
    const list = new StoryList(), answers = [];
    for (const [name, ...given] of calls) {
        if (name === 'current') list.current = given[0];
        else if (name === '?') answers.push(list.stories.map(({id}) => id).join(' '));
        else list[name](...given);
    }
    return answers;
}"""


def stories(names: str) -> list[dict[str, str]]:
    return [{"id": name} for name in names.split()]


def test_what_is_in_view_does_not_move(chromium: Browser, server: Server) -> None:
    with chromium.open(server.origin + "/healthz") as page:
        answers = page.evaluate(LIST, [
            ["append", stories("a b c d e")], ["current", "c"],
            # Passed, next, and further on: what is next is what is being preloaded.
            ["insert", {"id": "n1"}, None], ["?"], ["insert", {"id": "n2"}, "c"], ["?"], ["insert", {"id": "n3"}, "e"], ["?"],
            # Behind a story of a page that was not read yet.
            ["insert", {"id": "n4"}, "z"], ["?"],
            # Nothing twice.
            ["append", stories("e f a")], ["?"],
            ["move", "a", "f"], ["move", "d", "f"], ["move", "e", "n4"], ["move", "f", "a"], ["?"],
            ["remove", "b"], ["remove", "n1"], ["?"],
        ])
    assert answers == [
        "a b c d n1 e", "a b c d n2 n1 e", "a b c d n2 n1 e n3", "a b c d n2 n1 e n3 n4", "a b c d n2 n1 e n3 n4 f",
        "a b c d f n2 n1 n3 n4 e", "a c d f n2 n3 n4 e",
    ]


def test_a_new_order_counts_for_what_lies_ahead(chromium: Browser, server: Server) -> None:
    with chromium.open(server.origin + "/healthz") as page:
        answers = page.evaluate(LIST, [
            ["append", stories("a b c d e f")], ["arrange", stories("f e d c b a")], ["?"],
            # Passed, in view, and next: d and c and b stay.
            ["current", "e"], ["arrange", stories("a b c d e f n1")], ["?"],
            # What was not read goes on behind what was.
            ["current", "f"], ["arrange", stories("n2 c e b")], ["?"],
            ["current", "a"], ["arrange", stories("e a")], ["?"], ["arrange", []], ["?"],
        ])
    assert answers == [
        "f e d c b a", "f e d a b c n1", "f e n2 c b d a n1", "f e n2 c b d a n1", "f e n2 c b d a n1",
    ]


def test_any_order_keeps_every_story_once(chromium: Browser, server: Server) -> None:
    with chromium.open(server.origin + "/healthz") as page:
        broken = page.evaluate(
            """async () => {
                const {StoryList} = await import('/assets/feed/list.js');
                let seed = 7;
                const below = count => (seed = (seed * 48271) % 2147483647) % count;
                for (let round = 0; round < 300; round++) {
                    const list = new StoryList(), count = 1 + below(40);
                    list.append(Array.from({length: count}, (_, n) => ({id: `s${n}`})));
                    if (below(4)) list.current = `s${below(count)}`;
                    const before = list.stories.map(({id}) => id), fixed = list.index < 0 ? 0 : list.index + 2;
                    const order = Array.from({length: below(60)}, () => ({id: `s${below(60)}`}));
                    list.arrange(order);
                    const after = list.stories.map(({id}) => id);
                    const names = new Set([...before, ...order.map(({id}) => id)]);
                    const wanted = [...new Set(order.map(({id}) => id))].filter(id => !before.slice(0, fixed).includes(id));
                    const isRight = after.length === names.size && new Set(after).size === names.size
                        && before.slice(0, fixed).every((id, n) => after[n] === id)
                        && wanted.every((id, n) => after[Math.min(fixed, before.length) + n] === id);
                    if (!isRight) return [round, before, list.current, order.map(({id}) => id), after];
                }
                return null;
            }""")
    assert broken is None


def test_the_list_is_bounded(chromium: Browser, server: Server) -> None:
    with chromium.open(server.origin + "/healthz") as page:
        length, has_current, first = page.evaluate(
            """async () => {
                const {StoryList} = await import('/assets/feed/list.js');
                const list = new StoryList();
                list.append([{id: 'first'}]);
                list.current = 'first';
                for (let n = 0; n < 3000; n++) {
                    list.append([{id: `s${n}`}]);
                    if (n === 1500) list.current = 's600';
                }
                return [list.length, list.get('s600') !== null, list.stories[0].id];
            }""")
    assert length == 1000 and has_current and first == "s600"


def decoded(hash: str, x: float, y: float) -> list[int]:
    """One point of a BlurHash, from 0 to 1, by the format's description."""
    digits = "0123456789ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz#$%*+,-.:;=?@[]^_{|}~"

    def value(part: str) -> int:
        total = 0
        for letter in part:
            total = total * 83 + digits.index(letter)
        return total
    size, greatest = value(hash[0]), (value(hash[1]) + 1) / 166
    columns, rows = size % 9 + 1, size // 9 + 1
    average = value(hash[2:6])
    colours = [[((c / 255 + 0.055) / 1.055) ** 2.4 if c > 10 else c / 255 / 12.92
                for c in (average >> 16, average >> 8 & 255, average & 255)]]
    for index in range(1, columns * rows):
        part = value(hash[4 + 2 * index:6 + 2 * index])
        colours.append([
            math.copysign(((c - 9) / 9) ** 2, c - 9) * greatest for c in (part // 361, part // 19 % 19, part % 19)])
    result = []
    for c in range(3):
        light = sum(
            colours[j * columns + i][c] * math.cos(math.pi * x * i) * math.cos(math.pi * y * j)
            for j in range(rows) for i in range(columns))
        light = min(1.0, max(0.0, light))
        result.append(round((light * 12.92 if light <= 0.0031308 else 1.055 * light ** (1 / 2.4) - 0.055) * 255))
    return result


@pytest.mark.parametrize("hash", ["LEHV6nWB2yk8pyo0adR*.7kCMdnj", "LGF5]+Yk^6#M@-5c,1J5@[or[Q6.", "00H=.}"])
def test_blurred_pictures_are_decoded(chromium: Browser, server: Server, hash: str) -> None:
    with chromium.open(server.origin + "/healthz") as page:
        pixels = page.evaluate(
            "async hash => [...(await import('/assets/story-feed.js')).decodeBlurHash(hash, 8, 4)]", hash)
    assert len(pixels) == 8 * 4 * 4
    for y in range(4):
        for x in range(8):
            at = (y * 8 + x) * 4
            assert pixels[at:at + 3] == pytest.approx(decoded(hash, x / 8, y / 4), abs=1)
            assert pixels[at + 3] == 255


def test_what_is_no_blurred_picture_is_refused(chromium: Browser, server: Server) -> None:
    bad = ["", "LEHV6", "LEHV6nWB2yk8pyo0adR*.7kCMdn", "LEHV6nWB2yk8pyo0adR*.7kCMdnjj", "LEHV6nWB2yk8pyo0adR*.7kCMdn\\", None, 7]
    with chromium.open(server.origin + "/healthz") as page:
        answers = page.evaluate(
            """async hashes => {
                const {decodeBlurHash, isBlurHash} = await import('/assets/story-feed.js');
                return hashes.map(hash => {
                    try { decodeBlurHash(hash, 4, 4); return 'decoded'; } catch (error) { return `${isBlurHash(hash)} ${error.name}`; }
                });
            }""", bad)
    assert answers == ["false RangeError"] * len(bad)
