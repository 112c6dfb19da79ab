import Base
import HLS
import Testing

@Suite struct `Segments of a playlist on the disk` {
    private var making = Making()

    init() {
        making.playlist.window = 600_000
    }

    /// The names of the segments that are to be written now.
    private mutating func finished() -> [String] { making.playlist.takeFinished().map(\.name) }

    /// Writes what is to be written.
    /// - Returns: whether each of them is of use.
    private mutating func write() -> [Bool] {
        var isOfUse: [Bool] = []
        for name in finished() { isOfUse.append(making.playlist.noteStored(name)) }
        return isOfUse
    }

    /// Makes segments, each of which is on the disk at once.
    private mutating func segments(_ count: Int) {
        for _ in 0..<count {
            making.parts(4)
            _ = write()
        }
    }

    @Test mutating func `are given to it once they are complete, each once`() {
        making.parts(3)
        let early = finished()
        making.parts(1)
        let first = making.playlist.takeFinished()
        let again = finished()
        making.parts(9)
        let next = finished()
        #expect(early.isEmpty && again.isEmpty)
        #expect(first.map(\.name) == ["abc-s0.m4s"] && first.map(\.bytes) == [[0, 1, 2, 3]])
        #expect(next == ["abc-s1.m4s", "abc-s2.m4s"])
        // The end completes what is under way.
        making.playlist.end()
        let last = finished()
        #expect(last == ["abc-s3.m4s"])
    }

    /// A break ends it before its time.
    @Test mutating func `are given to it where another initialization segment cuts them off`() {
        making.parts(6)
        making.begin()
        let found = finished()
        #expect(found == ["abc-s0.m4s", "abc-s1.m4s"])
    }

    @Test mutating func `are of no use by a name that nobody has`() {
        making.parts(8)
        let known = ["abc-s0.m4s", "abc-s2.m4s", "xyz-s0.m4s", "abc-p0-0.m4s", ""].map {
            making.playlist.noteStored($0)
        }
        #expect(known == [true, false, false, false, false])
    }

    @Test mutating func `are all told once nothing refers to them any more`() {
        segments(15)
        // One is not written yet.
        making.parts(4)
        let pending = finished()
        let all = making.playlist.forgetAll()
        let again = making.playlist.forgetAll()
        let names = (0..<15).map { "abc-s\($0).m4s" }
        #expect(Set(all) == Set(names) && all.count == 15)
        #expect(again.isEmpty && pending == ["abc-s15.m4s"])
    }

    /// The window counts what is in memory, too.
    @Test mutating func `are told when they leave memory, where nobody goes back further than that`() {
        making.playlist.window = 10_000
        segments(12)
        let forgotten = making.playlist.takeForgotten()
        let again = making.playlist.takeForgotten()
        #expect(forgotten == ["abc-s0.m4s"] && again.isEmpty)
        #expect(making.playlist.reach == 22_000)
        #expect(making.playlist.text(reachesBack: true) == making.playlist.text())
        #expect(making.playlist.file(named: "abc-s0.m4s").standing == .nowhere)
        #expect(making.playlist.file(named: "abc-s1.m4s").standing == .there)
    }

    @Test mutating func `become fewer at once where the window becomes smaller`() {
        segments(31)
        let before = making.playlist.takeForgotten()
        #expect(before.isEmpty && making.playlist.reach == 62_000)
        making.playlist.window = 30_000
        let forgotten = making.playlist.takeForgotten()
        let names = (0..<16).map { "abc-s\($0).m4s" }
        #expect(forgotten == names && making.playlist.reach == 30_000)
        #expect(making.playlist.text(reachesBack: true).contains("#EXT-X-MEDIA-SEQUENCE:16\n"))
    }

    @Test mutating func `keep the initialization segment that they begin with, as long as they are there`() {
        segments(3)
        making.begin()
        segments(14)
        #expect(making.playlist.file(named: "abc-i0.mp4").standing == .there)
        #expect(making.playlist.text(reachesBack: true).contains("#EXT-X-DISCONTINUITY-SEQUENCE:0\n"))
        #expect(making.playlist.text().contains("#EXT-X-DISCONTINUITY-SEQUENCE:1\n"))
        making.playlist.window = 24_000
        #expect(making.playlist.file(named: "abc-i0.mp4").standing == .nowhere)
        #expect(making.playlist.file(named: "abc-i1.mp4").standing == .there)
        #expect(making.playlist.text(reachesBack: true).contains("#EXT-X-DISCONTINUITY-SEQUENCE:1\n"))
    }

    /// They are another rendition's, of which nothing is on the disk.
    @Test mutating func `are not those that a playlist has taken over`() {
        making.parts(9)
        var other = LivePlaylist(tag: "xyz", continuing: making.playlist)
        other.window = 600_000
        let before = other.takeFinished()
        other.begin(
            initialization: [8], codecs: "avc1.64001E", width: 640, height: 360, framesPerSecond: 30,
            meant: LivePlaylist.Bitrates(peak: 1, average: nil))
        for place in 0..<52 {
            other.append(
                LivePlaylist.Part(
                    bytes: [77], milliseconds: 500, startsSegment: place % 4 == 0,
                    endsSegment: place % 4 == 3, date: WallTime(milliseconds: 0)))
            for segment in other.takeFinished() {
                let isOfUse = other.noteStored(segment.name)
                #expect(isOfUse && segment.name.hasPrefix("xyz-s"))
            }
        }
        #expect(before.isEmpty)
        // Both segments of the other one are gone.
        let text = other.text(reachesBack: true)
        #expect(text.contains("#EXT-X-MEDIA-SEQUENCE:2\n") && !text.contains("abc"))
        #expect(other.file(named: "xyz-s2.m4s").standing == .onDisk)
        #expect(other.file(named: "abc-s1.m4s").standing == .nowhere)
    }

    @Test mutating func `let memory go as far as they are there, and no further`() {
        segments(5)
        making.parts(4)
        let pending = finished()
        making.parts(4)
        _ = write()
        making.playlist.end()
        making.playlist.releaseStored()
        // What follows one that is not on the disk stays.
        #expect(making.playlist.byteCount == 8)
        let isOfUse = pending.map { making.playlist.noteStored($0) }
        making.playlist.releaseStored()
        #expect(isOfUse == [true] && making.playlist.byteCount == 0)
        #expect(making.playlist.reach == 14_000)
    }
}
