"""How a page plays HLS, in parts that need no stream: playlists, boxes, and when to go which way."""

from __future__ import annotations

import random
import struct
import subprocess
from typing import Any

import pytest

from drivers import Browser, Page
from server import Server

PLAYLIST = """#EXTM3U
#EXT-X-VERSION:9
#EXT-X-TARGETDURATION:2
#EXT-X-SERVER-CONTROL:CAN-BLOCK-RELOAD=YES,CAN-SKIP-UNTIL=12.0,PART-HOLD-BACK=1.500
#EXT-X-PART-INF:PART-TARGET=0.500
#EXT-X-MEDIA-SEQUENCE:7
#EXT-X-DISCONTINUITY-SEQUENCE:0
#EXT-X-MAP:URI="a-i0.mp4"
#EXT-X-PROGRAM-DATE-TIME:2026-01-01T00:00:00.000Z
#EXTINF:2.000,
a-s7.m4s
#EXT-X-DISCONTINUITY
#EXT-X-MAP:URI="a-i1.mp4"
#EXT-X-PART:DURATION=0.500,URI="a-p8-0.m4s",INDEPENDENT=YES
#EXT-X-PART:DURATION=0.500,URI="a-p8-1.m4s"
#EXTINF:1.000,
a-s8.m4s
#EXT-X-PART:DURATION=0.500,URI="a-p9-0.m4s",INDEPENDENT=YES
#EXT-X-PRELOAD-HINT:TYPE=PART,URI="a-p9-1.m4s"
"""
MASTER = """#EXTM3U
#EXT-X-STREAM-INF:BANDWIDTH=1000000,CODECS="avc1.42C01F,mp4a.40.2",RESOLUTION=640x360,FRAME-RATE=30.000
media.m3u8
"""


@pytest.fixture
def page(chromium: Browser, server: Server) -> Page:
    return chromium.open(server.origin + "/healthz")


def parse(page: Page, text: str, position: dict[str, int] | None = None) -> Any:
    """The playlist, where it ends, and what is loaded of it; a word for what is no playlist."""
    return page.evaluate(
        """async (text, position) => {
            const {parsePlaylist, endOf, chunksFrom, PlaylistError} = await import('/assets/hls/playlist.js');
            try {
                const playlist = parsePlaylist(text);
                return {...playlist, end: endOf(playlist), ...chunksFrom(playlist, position)};
            } catch (error) {
                if (error instanceof PlaylistError) return 'refused';
                throw error;
            }
        }""", text, position)


def loaded(page: Page, number: int | None = None, part: int = 0, text: str = PLAYLIST) -> tuple[list[str], bool]:
    read = parse(page, text, None if number is None else {"number": number, "part": part})
    return [chunk["uri"] for chunk in read["chunks"]], read["isJump"]


def test_a_playlist_says_what_there_is(page: Page) -> None:
    read = parse(page, PLAYLIST)
    assert [(s["number"], s["uri"], s["map"], s["isDiscontinuous"], len(s["parts"])) for s in read["segments"]] == [
        (7, "a-s7.m4s", "a-i0.mp4", False, 0), (8, "a-s8.m4s", "a-i1.mp4", True, 2), (9, None, "a-i1.mp4", False, 1)]
    assert (read["holdBack"], read["canBlock"], read["hasEnded"]) == (1.5, True, False)
    assert (read["hint"], read["end"]) == ("a-p9-1.m4s", {"number": 9, "part": 1})
    assert parse(page, PLAYLIST + "#EXT-X-ENDLIST\n")["hasEnded"] is True
    variants = "async text => (await import('/assets/hls/playlist.js')).parseVariants(text)"
    assert page.evaluate(variants, MASTER) == [
        {"uri": "media.m3u8", "codecs": "avc1.42C01F,mp4a.40.2", "bitrate": 1_000_000, "height": 360}]
    several = MASTER + (
        '#EXT-X-STREAM-INF:BANDWIDTH=86000,CODECS="mp4a.40.2"\nmedia.m3u8?rendition=sound\n'
        '#EXT-X-STREAM-INF:BANDWIDTH=9000000,AVERAGE-BANDWIDTH=400000,CODECS="avc1.42C01F",RESOLUTION=320x180\nlow.m3u8\n')
    assert [(v["uri"], v["bitrate"], v["height"]) for v in page.evaluate(variants, several)] == [
        ("media.m3u8", 1_000_000, 360), ("low.m3u8", 400_000, 180), ("media.m3u8?rendition=sound", 86_000, None)]


def test_who_begins_does_so_at_a_key_frame_near_the_end(page: Page) -> None:
    # 1.5 s are to be held back, and just so much lies behind the beginning of the discontinuity.
    assert loaded(page) == (["a-p8-0.m4s", "a-p8-1.m4s", "a-p9-0.m4s"], True)
    assert loaded(page, text=PLAYLIST.replace("BACK=1.500", "BACK=0.500")) == (["a-p9-0.m4s"], True)
    # There is no more than all.
    assert loaded(page, text=PLAYLIST.replace("BACK=1.500", "BACK=9.000"))[0][0] == "a-s7.m4s"


def test_who_plays_goes_on_where_they_are_or_jumps(page: Page) -> None:
    assert loaded(page, 8, 1) == (["a-p8-1.m4s", "a-p9-0.m4s"], False)
    assert loaded(page, 9, 0) == (["a-p9-0.m4s"], False)
    assert loaded(page, 9, 1) == ([], False), "nothing is new"
    for gone in ((7, 2), (3, 0), (12, 0)):
        assert loaded(page, *gone) == (["a-p8-0.m4s", "a-p8-1.m4s", "a-p9-0.m4s"], True)
    long = PLAYLIST.replace("#EXTINF:2.000,\na-s7.m4s\n", "#EXTINF:8.000,\na-s7.m4s\n")
    assert loaded(page, 7, 0, long)[1], "far behind"
    # What follows each of them is told with it.
    chunks = parse(page, PLAYLIST, {"number": 7, "part": 0})["chunks"]
    assert [(c["next"]["number"], c["next"]["part"]) for c in chunks] == [(8, 0), (8, 1), (9, 0), (9, 1)]
    assert [c["isDiscontinuous"] for c in chunks] == [False, True, False, False]


def test_who_goes_back_begins_in_the_segment_of_that_time(page: Page) -> None:
    def behind(seconds: float, position: dict[str, int] | None = None) -> tuple[list[str], float]:
        read = page.evaluate(
            """async (text, seconds, position) => {
                const {parsePlaylist, chunksFromBehind} = await import('/assets/hls/playlist.js');
                return chunksFromBehind(parsePlaylist(text), seconds, position);
            }""", PLAYLIST, seconds, position)
        return [chunk["uri"] for chunk in read["chunks"]], round(read["offset"], 3)
    assert behind(2) == (["a-s7.m4s", "a-p8-0.m4s", "a-p8-1.m4s", "a-p9-0.m4s"], 1.5)
    assert behind(1.2) == (["a-p8-0.m4s", "a-p8-1.m4s", "a-p9-0.m4s"], 0.3)
    assert behind(99) == (["a-s7.m4s", "a-p8-0.m4s", "a-p8-1.m4s", "a-p9-0.m4s"], 0)
    # Who plays goes on, however far behind.
    assert behind(2, {"number": 8, "part": 1}) == (["a-p8-1.m4s", "a-p9-0.m4s"], 0)
    assert behind(2, {"number": 9, "part": 0}) == (["a-p9-0.m4s"], 0)


#: 2026-01-01 in milliseconds, when the first segment was captured.
BEGINNING_OF_2026 = 1_767_225_600_000
DATED = PLAYLIST.replace(
    "#EXT-X-DISCONTINUITY\n", "#EXT-X-DISCONTINUITY\n#EXT-X-PROGRAM-DATE-TIME:2026-01-01T00:00:02.000Z\n").replace(
    '#EXT-X-PART:DURATION=0.500,URI="a-p9-0', '#EXT-X-PROGRAM-DATE-TIME:2026-01-01T00:00:03.000Z\n#EXT-X-PART:DURATION=0.500,URI="a-p9-0')


def test_another_rendition_goes_on_where_the_first_was_left(page: Page) -> None:
    def after(seconds: float | None, text: str = DATED, map: str = "b-i0.mp4") -> list[str]:
        return page.evaluate(
            """async (text, map, date) => {
                const {parsePlaylist, chunksAfter} = await import('/assets/hls/playlist.js');
                return chunksAfter(parsePlaylist(text), {map, date}).map(({uri}) => uri);
            }""", text, map, None if seconds is None else BEGINNING_OF_2026 + seconds * 1000)
    # With a key frame, not later than what was loaded.
    assert after(3) == after(9) == ["a-p9-0.m4s"]
    assert after(2.9) == ["a-p8-0.m4s", "a-p8-1.m4s", "a-p9-0.m4s"]
    # Or with its first one, where all of it is later, or nothing tells when it was.
    everything = ["a-s7.m4s", "a-p8-0.m4s", "a-p8-1.m4s", "a-p9-0.m4s"]
    assert after(-1) == after(None) == after(1) == everything
    # Not with what it took over from the rendition that was left.
    assert after(1, map="a-i0.mp4") == everything[1:]
    assert after(1, "".join(DATED.partition("#EXT-X-DISCONTINUITY")[:1]), map="a-i0.mp4") == [], "it has nothing of its own yet"
    # What is far behind is left out.
    assert after(1, DATED.replace("INF:2.000", "INF:20.000")) == everything[1:]
    dates = """async text => {
        const {parsePlaylist, chunksAfter} = await import('/assets/hls/playlist.js');
        return chunksAfter(parsePlaylist(text), {map: null, date: null}).map(({date}) => date);
    }"""
    assert page.evaluate(dates, DATED) == [BEGINNING_OF_2026 + more for more in (0, 2000, 2500, 3000)]
    assert page.evaluate(dates, DATED.replace("T00:00:02.000Z", "T25:61"))[1:] == [None, None, BEGINNING_OF_2026 + 3000]


def test_who_begins_takes_nothing_that_a_rendition_took_over(page: Page) -> None:
    first = """async text => {
        const {parsePlaylist, firstChunks} = await import('/assets/hls/playlist.js');
        return firstChunks(parsePlaylist(text)).map(({uri}) => uri);
    }"""
    assert page.evaluate(first, PLAYLIST.replace("BACK=1.500", "BACK=9.000")) == ["a-p8-0.m4s", "a-p8-1.m4s", "a-p9-0.m4s"]
    assert page.evaluate(first, PLAYLIST.replace("BACK=1.500", "BACK=0.500")) == ["a-p9-0.m4s"]


#: Takes steps of a rule, each a time in seconds and what happens then; tells the index after each of them.
RENDITIONS = """async steps => {
    const {RenditionRule} = await import('/assets/hls/renditions.js');
    const rule = new RenditionRule();
    const variants = [[2e6, 720], [400e3, 360], [80e3, null]].map(([bitrate, height]) => ({bitrate, height}));
    let index = 0;
    return steps.map(([now, {rate, bitrate, stood, choice = 'auto', count = 3}]) => {
        // Half a second of what is taken, at what the link carries.
        const bytes = Math.round((bitrate ?? variants[index].bitrate) * 0.5 / 8);
        if (rate) rule.note(bytes, bytes * 8 / rate, 0.5, now);
        if (stood) rule.stood();
        return index = rule.choose(variants.slice(0, count), choice, now);
    });
}"""


def test_a_player_takes_what_its_link_carries(page: Page) -> None:
    take = lambda *steps: page.evaluate(RENDITIONS, steps)  # noqa: E731
    assert take((0, {}), (1, {"rate": 5e6}), (2, {"rate": 5e6})) == [0, 0, 0]
    # Down at once, as far as it takes.
    assert take((0, {}), (1, {"rate": 1e6}), (2, {})) == [0, 1, 1]
    assert take((0, {}), (1, {"rate": 300e3})) == [0, 2]
    assert take((0, {}), (1, {"rate": 300e3, "count": 1})) == [0, 0], "there is nothing else"
    # One poor transfer among good ones says little; what stands still says enough.
    good = tuple((at, {"rate": 20e6}) for at in range(8))
    assert take(*good, (8, {"rate": 1.5e6})) == [0] * 9
    assert take(*((at, {"rate": 4e6}) for at in range(8)), (8, {"stood": True})) == [0] * 8 + [1]
    assert take(*good, (8, {"stood": True})) == [0] * 9, "it was not the link"
    # What was said of it may be more than it is.
    assert take(*((at, {"rate": 1e6, "bitrate": 500e3}) for at in range(4))) == [0] * 4
    # Up after a while, where there is room.
    middle = ((0, {"rate": 1e6}),)
    assert take(*middle, *((at / 2, {"rate": 9e6}) for at in range(1, 21)))[-3:] == [1, 1, 0]
    full = tuple((at / 2, {"rate": 2.5e6}) for at in range(1, 120))
    assert take(*middle, *full)[-1] == 1, "there is no room"


def test_a_rendition_that_did_not_last_is_tried_again_later_each_time(page: Page) -> None:
    """What sound alone takes tells nothing of the link: whether it carries more is tried."""
    steps = [(0, {"rate": 300e3})]
    steps += [(at, {}) for at in range(1, 12)]
    assert page.evaluate(RENDITIONS, steps)[-2:] == [2, 1], "nothing is known any more after ten seconds"
    tried = []
    steps, now = [(0, {"rate": 300e3})], 0
    for rest in (11, 20, 40, 80, 160, 160):
        steps += [(now + rest - 1, {}), (now + rest, {}), (now + rest + 1, {"stood": True})]
        tried.append(len(steps) - 2)
        now += rest + 1
    found = page.evaluate(RENDITIONS, steps)
    assert [found[at - 1:at + 2] for at in tried] == [[2, 1, 2]] * 6, found


def test_what_a_viewer_chooses_is_what_is_taken(page: Page) -> None:
    steps = [(at, {"choice": choice, "rate": 100e3}) for at, choice in enumerate(("high", "low", "sound", "high"))]
    assert page.evaluate(RENDITIONS, steps) == [0, 1, 2, 0]
    # A stream has no smaller picture than it sends.
    assert page.evaluate(RENDITIONS, [(0, {"choice": "low", "count": 1}), (1, {"choice": "sound", "count": 1})]) == [0, 0]


#: What there is to choose from, by the ends of names: one near its end, one who went back.
CHOICES = """async (variants, played) => {
    const {LivePace, PastPace} = await import('/assets/hls/pace.js');
    const plays = codecs => played.includes(codecs);
    return [new LivePace(), new PastPace(60)].map(
        pace => pace.variants(variants, plays).map(({uri, codecs}) => `${uri.split('=').at(-1)} ${codecs}`));
}"""


def test_what_is_sent_takes_the_place_of_what_would_be_made_where_a_browser_plays_it(page: Page) -> None:
    def choices(bitrate: int, *played: str, codec: str = "vp09") -> list[list[str]]:
        variants = [
            {"uri": "media.m3u8", "codecs": "avc1", "bitrate": 2_000_000, "height": 720},
            {"uri": "media.m3u8?rendition=original", "codecs": codec, "bitrate": bitrate, "height": 1080},
            {"uri": "media.m3u8?rendition=low", "codecs": "avc1", "bitrate": 400_000, "height": 360},
            {"uri": "media.m3u8?rendition=sound", "codecs": "mp4a", "bitrate": 76_000, "height": None}]
        return page.evaluate(CHOICES, sorted(variants, key=lambda variant: -int(str(variant["bitrate"]))), list(played))
    past = ["dvr.m3u8 avc1"]
    for bitrate in (4_000_000, 900_000):
        assert choices(bitrate, "vp09", "avc1", "mp4a") == [["original vp09", "low avc1", "sound mp4a"], past]
        assert choices(bitrate, "avc1", "mp4a") == [["media.m3u8 avc1", "low avc1", "sound mp4a"], past]
    # What takes no less than the original is no use.
    assert choices(300_000, "vp09", "avc1") == [["original vp09", "sound mp4a"], past]
    assert choices(300_000, "avc1") == [["media.m3u8 avc1", "low avc1", "sound mp4a"], past]
    # A browser that plays nothing of it finds out when it begins.
    assert choices(900_000)[0] == ["media.m3u8 avc1", "low avc1", "sound mp4a"]


def test_what_comes_too_slowly_is_given_up(page: Page) -> None:
    hopeless = """async (...given) => {
        const {RenditionRule} = await import('/assets/hls/renditions.js');
        return new RenditionRule().isHopeless(...given);
    }"""
    assert page.evaluate(hopeless, 20_000, 100_000, 1.0, 1.5) is True
    assert page.evaluate(hopeless, 20_000, 100_000, 0.9, 0.0) is False, "nothing is known so early"
    assert page.evaluate(hopeless, 80_000, 100_000, 1.0, 1.5) is False, "it comes in time"
    assert page.evaluate(hopeless, 20_000, 0, 2.0, 0.0) is False, "nobody said how much it is"


def test_media_whose_token_expired_are_asked_for_with_another(page: Page) -> None:
    """The address of a part has the token of its playlist in it: refused, it only says that this one is old."""
    assert page.evaluate("""async () => {
        const {askForMedia} = await import('/assets/hls/fetching.js');
        const seen = [];
        for (const status of [200, 401, 403, 404]) {
            globalThis.fetch = async () => new Response('', {status});
            await askForMedia('/hls/s1/t/old/p1.m4s', new AbortController().signal)
                .then(({status}) => seen.push(status), ({name, isTemporary}) => seen.push([name, isTemporary ?? null]));
        }
        return seen;
    }""") == [200, ["PlaylistError", None], ["SignallingError", False], ["SignallingError", True]]


def test_what_shows_nothing_of_what_it_has_is_helped_for_a_while(page: Page) -> None:
    """Looks as [seconds, readyState, seconds ahead], and whether another source is wanted."""
    looks = """async looks => {
        const {StuckRule} = await import('/assets/hls/stuck.js');
        const rule = new StuckRule();
        return looks.map(([now, readyState, ahead]) => {
            if (readyState === 'another source') return rule.startAnew();
            return rule.look({ahead}, {readyState}, now);
        });
    }"""
    assert page.evaluate(looks, [[0, 1, 5], [9, 1, 9], [10, 1, 9], [19, 1, 9], [20, 1, 9]]) == [False, False, True, False, True]
    # What shows something, or has nothing to show, is not stuck.
    assert not any(page.evaluate(looks, [[0, 1, 5], [9, 2, 5], [18, 1, 5]]))
    assert not any(page.evaluate(looks, [[0, 1, 5], [9, 1, 0.5], [18, 1, 5]]))
    # Nothing is known of what was not looked at, nor of another source.
    assert not any(page.evaluate(looks, [[0, 2, 5], [5, 1, 5], [30, 1, 5], [39, 1, 5]]))
    assert not any(page.evaluate(looks, [[0, 1, 5], [9, 1, 5], [9, 'another source', 0], [12, 1, 5], [21, 1, 5]]))
    # What did not help three times does not help, until something was shown.
    assert page.evaluate(looks, [[0, 1, 5], [10, 1, 5], [20, 1, 5], [30, 1, 5], [40, 1, 5], [50, 1, 5]]) == [
        False, True, True, True, False, False]
    assert page.evaluate(looks, [[0, 1, 5], [10, 1, 5], [20, 1, 5], [30, 1, 5], [40, 4, 5], [45, 1, 5], [50, 1, 5]])[-1]


def test_what_is_no_playlist_is_refused(page: Page) -> None:
    for wrong in (
        "", "<html>", PLAYLIST[1:], PLAYLIST.replace("#EXT-X-TARGETDURATION:2\n", ""), PLAYLIST.replace("INF:2.000", "INF:-2"),
        PLAYLIST.replace("SEQUENCE:7", "SEQUENCE:x"), PLAYLIST.replace("#EXTINF:1.000,\n", ""),
        PLAYLIST.replace('URI="a-p9-0.m4s"', "URI="), PLAYLIST + "#EXT-X-SKIP:SKIPPED-SEGMENTS=3\n",
        "#EXTM3U\n" + "#\n" * 2**20,
    ):
        assert parse(page, wrong) == "refused", wrong[:80]
    dice = random.Random(8216)
    texts = [PLAYLIST[:length] for length in range(0, len(PLAYLIST), 7)]
    for _ in range(200):
        letters = list(PLAYLIST)
        for _ in range(dice.randrange(1, 9)):
            letters[dice.randrange(len(letters))] = chr(dice.choice([10, 34, 44, 45, 58, 61, dice.randrange(32, 512)]))
        texts.append("".join(letters))
    # Nothing else is thrown, whatever comes.
    assert page.evaluate(
        """async texts => {
            const {parsePlaylist, parseVariants, chunksAfter, chunksFrom, chunksFromBehind, PlaylistError} = await import('/assets/hls/playlist.js');
            for (const text of texts) {
                const readers = [
                    text => chunksFromBehind(parsePlaylist(text), 3, {number: 8, part: 1}),
                    text => chunksFromBehind(parsePlaylist(text), 3, null),
                    text => chunksFrom(parsePlaylist(text), {number: 8, part: 1}), parseVariants,
                    text => chunksAfter(parsePlaylist(text), {map: null, date: 1.77e12})];
                for (const read of readers) {
                    try { read(text); } catch (error) { if (!(error instanceof PlaylistError)) return text; }
                }
            }
            return texts.length;
        }""", texts) == len(texts)


def box(kind: str, *content: bytes) -> bytes:
    body = b"".join(content)
    return struct.pack(">I4s", 8 + len(body), kind.encode()) + body


def track(number: int, scale: int, version: int = 0) -> bytes:
    times = bytes(16 if version else 8)
    return box(
        "trak", box("tkhd", bytes([version, 0, 0, 7]), times, struct.pack(">I", number)),
        box("mdia", box("mdhd", bytes([version, 0, 0, 0]), times, struct.pack(">I", scale))))


INITIALIZATION = box("ftyp", b"iso6") + box("moov", box("mvhd", bytes(100)), track(1, 90_000), track(2, 48_000, version=1))
FRAGMENT = box(
    "moof", box("mfhd", bytes(8)),
    box("traf", box("tfhd", bytes(4), struct.pack(">I", 1)), box("tfdt", bytes(4), struct.pack(">I", 900_000))),
    box("traf", box("tfhd", bytes(4), struct.pack(">I", 2)), box("tfdt", bytes([1, 0, 0, 0]), struct.pack(">Q", 477_600))),
) + box("mdat", b"media")
BEGINNING = """async (initialization, fragment) => {
    const {timescalesOf, beginningOf, BoxError} = await import('/assets/hls/boxes.js');
    const bytes = list => new Uint8Array(list).buffer;
    try {
        const scales = timescalesOf(bytes(initialization));
        return [[...scales], beginningOf(bytes(fragment), scales)];
    } catch (error) {
        if (error instanceof BoxError) return 'refused';
        throw error;
    }
}"""


def test_a_piece_begins_once_each_of_its_tracks_has(page: Page) -> None:
    later = FRAGMENT.replace(struct.pack(">I", 900_000), struct.pack(">I", 945_000))
    for piece in (FRAGMENT, FRAGMENT + later):
        assert page.evaluate(BEGINNING, list(INITIALIZATION), list(piece)) == [[[1, 90_000], [2, 48_000]], 10]


def recorded(delay: int) -> tuple[bytes, bytes]:
    """The head and a second of fragmented MP4, whose pictures begin so many milliseconds after its sound."""
    file = subprocess.run(
        [
            "ffmpeg", "-v", "error", "-f", "lavfi", "-i", "sine=duration=1:sample_rate=48000",
            "-f", "lavfi", "-i", "testsrc=duration=1:size=320x180:rate=15",
            "-c:v", "libx264", "-profile:v", "baseline", "-pix_fmt", "yuv420p", "-c:a", "aac",
            "-video_track_timescale", "15000", "-movflags", "empty_moov+default_base_moof", "-f", "mp4", "-",
        ], check=True, stdout=subprocess.PIPE).stdout
    cut = file.index(b"moof") - 4
    fragment = bytearray(file[cut:])
    # Sound comes first; each has a time of eight bytes.
    times = fragment.rindex(b"tfdt") + 4
    assert fragment[times:times + 12] == bytes([1]) + bytes(11)
    struct.pack_into(">Q", fragment, times + 4, delay * 15)
    return file[:cut], bytes(fragment)


def test_what_is_joined_has_no_gap_although_its_sound_begins_before_its_pictures(page: Page) -> None:
    pieces = [list(piece) for delay in (0, 200) for piece in recorded(delay)]
    ranges = page.evaluate(
        """async pieces => {
            const {LiveBuffer} = await import('/assets/hls/buffer.js');
            const [firstHead, first, secondHead, second] = pieces.map(each => new Uint8Array(each).buffer);
            const video = document.createElement('video');
            const buffer = new LiveBuffer(video);
            await buffer.open();
            const codecs = 'avc1.42C00C,mp4a.40.2';
            await buffer.begin(firstHead, codecs);
            await buffer.append(first);
            buffer.join();
            await buffer.begin(secondHead, codecs);
            await buffer.append(second);
            return [...Array(video.buffered.length).keys()].map(i => [video.buffered.start(i), video.buffered.end(i)]);
        }""", pieces)
    assert len(ranges) == 1 and ranges[0][1] > 1.7, ranges


def test_what_is_no_fragment_is_refused(page: Page) -> None:
    for length in range(0, len(INITIALIZATION), 5):
        assert page.evaluate(BEGINNING, list(INITIALIZATION[:length]), list(FRAGMENT)) in (
            "refused", [[[1, 90_000]], 10]), length
    cut = page.evaluate(
        f"""async (initialization, fragment) => {{
            const read = {BEGINNING}, results = new Set();
            for (let length = 0; length < fragment.length; length++) {{
                results.add(JSON.stringify(await read(initialization, fragment.slice(0, length))));
            }}
            return [...results];
        }}""", list(INITIALIZATION), list(FRAGMENT))
    assert cut[0] == '"refused"' and len(cut) <= 2, cut
    dice = random.Random(14496)
    for whole in (INITIALIZATION, FRAGMENT):
        changed = []
        for _ in range(100):
            each = bytearray(whole)
            for _ in range(dice.randrange(1, 6)):
                each[dice.randrange(len(each))] = dice.choice([0, 1, 8, 255, dice.randrange(256)])
            changed.append(list(each))
        pairs = [(each, list(FRAGMENT)) if whole is INITIALIZATION else (list(INITIALIZATION), each) for each in changed]
        # It throws nothing but what says that it is none.
        page.evaluate(f"async pairs => {{ for (const pair of pairs) await ({BEGINNING})(...pair); }}", pairs)


#: Goes through facts: milliseconds, and what is so then. The facts that are not named stay.
RULE = """async steps => {
    const {FallbackRule} = await import('/assets/fallback.js');
    const rule = new FallbackRule();
    let facts = {isWanted: true, isPossible: true, isConnected: false, isSeen: false, isPlaying: false};
    return steps.map(([now, changes]) => rule.take(facts = {...facts, ...changes}, now));
}"""


def test_what_does_not_connect_within_five_seconds_has_something_beside_it(page: Page) -> None:
    take = lambda *steps: page.evaluate(RULE, steps)  # noqa: E731
    connected, lost = {"isConnected": True, "isSeen": True}, {"isConnected": False, "isSeen": False}
    assert take((0, {}), (4999, {}), (5000, {})) == [False, False, True]
    assert take((0, {"isPossible": False})) == [True]
    assert take((0, {}), (4000, connected), (9000, lost), (13_999, {}), (14_000, {})) == [False] * 4 + [True]
    # Nothing is to be seen: that is no reason.
    nothing, something = {"isWanted": False}, {"isWanted": True}
    assert take((0, nothing), (9000, {}), (10_000, something), (14_999, {}), (15_000, {})) == [False] * 4 + [True]
    # As long as nothing plays the connection is all there is.
    assert take((0, {}), (5000, {}), (6000, connected)) == [False, True, False]


def test_it_comes_back_once_what_comes_is_steady_and_later_each_time(page: Page) -> None:
    take = lambda *steps: page.evaluate(RULE, steps)  # noqa: E731
    connected, lost = {"isConnected": True, "isSeen": True}, {"isConnected": False, "isSeen": False}
    away = ((0, {}), (5000, {}), (6000, {"isPlaying": True}))
    assert take(*away, (7000, connected), (8999, {}), (9000, {}))[3:] == [True, True, False]
    assert take(*away, (7000, connected), (8500, {"isSeen": False}), (9000, connected), (10_999, {}), (11_000, {}))[3:] == [
        True, True, True, True, False]
    # Soon needed again it takes twice as long; after a while of peace as at first.
    back = (*away, (7000, connected), (9000, {"isPlaying": True}), (10_000, {**lost, "isPlaying": False}), (15_000, {}))
    again = ((16_000, {"isPlaying": True}), (20_000, connected), (23_999, {}), (24_000, {}))
    assert take(*back, *again)[-4:] == [True, True, True, False]
    late = (
        (100_000, {**lost, "isPlaying": False}), (105_000, {}), (106_000, {"isPlaying": True}), (107_000, connected),
        (109_000, {}))
    assert take(*back, *again, *late)[-5:] == [False, True, True, True, False]
