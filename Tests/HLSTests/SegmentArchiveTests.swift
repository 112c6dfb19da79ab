import Base
import HLS
import TestSupport
import Testing

/// A playlist that viewers can go back in, and a disk that takes what it is given when it is told to.
private struct Rewinding {
    private var making = Making()
    /// Segments that were given to the disk and are not there yet.
    var writing: [LivePlaylist.Finished] = []
    /// What the disk has, by name.
    var files: [String: [UInt8]] = [:]

    /// - Parameter window: in milliseconds.
    init(window: Int) {
        playlist.window = window
    }

    var playlist: LivePlaylist {
        get { making.playlist }
        set { making.playlist = newValue }
    }

    mutating func begin() { making.begin() }

    mutating func part() {
        making.part()
        writing += playlist.takeFinished()
    }

    /// The disk has all that it was given.
    mutating func write() {
        for segment in writing {
            files[segment.name] = segment.bytes
            if !playlist.noteStored(segment.name) { files[segment.name] = nil }
        }
        writing = []
        for name in playlist.takeForgotten() { files[name] = nil }
    }

    mutating func segments(_ count: Int) {
        for _ in 0..<4 * count { part() }
        write()
    }

    /// Whether everything that it names is to be had.
    func names(_ text: String) -> [String] {
        text.split(separator: "\n").filter { $0.hasSuffix(".m4s") && !$0.hasPrefix("#") }.map(String.init)
            .filter { name in
                switch playlist.file(named: name) {
                case (.there, let bytes): bytes.isEmpty
                case (.onDisk, _): files[name] == nil
                default: true
                }
            }
    }
}

@Suite struct SegmentArchives {
    @Test func `reaches back as far as the disk does`() {
        var rewinding = Rewinding(window: 60_000)
        for _ in 0..<25 { rewinding.segments(1) }
        #expect(rewinding.playlist.text().contains("#EXT-X-MEDIA-SEQUENCE:14\n"))
        let text = rewinding.playlist.text(reachesBack: true)
        #expect(text.contains("#EXT-X-MEDIA-SEQUENCE:0\n"))
        #expect(text.contains("#EXTINF:2.000,\nabc-s0.m4s\n#EXT-X-PROGRAM-DATE-TIME"))
        #expect(rewinding.playlist.reach == 50_000)
        #expect(rewinding.playlist.file(named: "abc-s3.m4s").standing == .onDisk)
        #expect(rewinding.names(text) == [])
        // Beyond the window it goes from the disk.
        for _ in 0..<25 { rewinding.segments(1) }
        #expect(rewinding.playlist.text(reachesBack: true).contains("#EXT-X-MEDIA-SEQUENCE:20\n"))
        #expect(rewinding.playlist.file(named: "abc-s19.m4s").standing == .nowhere)
        #expect(rewinding.files["abc-s19.m4s"] == nil)
        #expect(rewinding.files["abc-s20.m4s"] == [80, 81, 82, 83])
    }

    @Test func `asks nobody to write where nobody can go back`() {
        var rewinding = Rewinding(window: 0)
        for _ in 0..<20 { rewinding.segments(1) }
        #expect(rewinding.files.isEmpty)
        #expect(rewinding.playlist.text(reachesBack: true) == rewinding.playlist.text())
        // Once somebody can, from what is in memory then.
        rewinding.playlist.window = 60_000
        rewinding.segments(1)
        #expect(rewinding.files["abc-s10.m4s"] != nil)
        #expect(rewinding.files["abc-s9.m4s"] == nil)
        rewinding.segments(5)
        #expect(rewinding.playlist.text(reachesBack: true).contains("#EXT-X-MEDIA-SEQUENCE:10\n"))
        // And no longer, once nobody can any more.
        rewinding.playlist.window = 0
        rewinding.write()
        #expect(rewinding.playlist.text(reachesBack: true) == rewinding.playlist.text())
        #expect(rewinding.files["abc-s12.m4s"] == nil)
    }

    @Test func `begins anew behind what the disk did not take`() {
        var rewinding = Rewinding(window: 600_000)
        for _ in 0..<20 { rewinding.segments(1) }
        // One segment is lost.
        for _ in 0..<4 { rewinding.part() }
        let lost = rewinding.writing
        rewinding.writing = []
        for _ in 0..<10 { rewinding.segments(1) }
        #expect(rewinding.playlist.text(reachesBack: true).contains("#EXT-X-MEDIA-SEQUENCE:0\n"))
        rewinding.segments(1)
        let text = rewinding.playlist.text(reachesBack: true)
        #expect(text.contains("#EXT-X-MEDIA-SEQUENCE:21\n"))
        #expect(rewinding.names(text) == [])
        #expect(rewinding.files["abc-s5.m4s"] == nil)
        // What comes that late is of no use.
        rewinding.writing = lost
        rewinding.write()
        #expect(rewinding.files["abc-s20.m4s"] == nil)
        #expect(rewinding.playlist.file(named: "abc-s20.m4s").standing == .nowhere)
    }

    @Test func `conforms at every part of a run with breaks and a slow disk`() {
        var rewinding = Rewinding(window: 50_000)
        var random = SeededGenerator(seed: 5)
        var conformance = PlaylistConformance()
        for step in 0..<800 {
            if Int.random(in: 0..<60, using: &random) == 0 { rewinding.begin() }
            rewinding.part()
            // For a while it stands still, longer than memory waits.
            if step % 13 == 0, !(300..<400).contains(step) { rewinding.write() }
            let text = rewinding.playlist.text(reachesBack: true)
            #expect(conformance.check(text) == [], "part \(step)")
            #expect(
                conformance.check(rewinding.playlist.text(skips: true, reachesBack: true)) == [],
                "part \(step), skipped")
            #expect(rewinding.names(text) == [], "part \(step)")
        }
        #expect(rewinding.playlist.reach >= 40_000)
    }

    @Test func `skips what lies behind six target durations wherever that is`() {
        var rewinding = Rewinding(window: 600_000)
        for _ in 0..<40 { rewinding.segments(1) }
        let text = rewinding.playlist.text(skips: true, reachesBack: true)
        #expect(text.contains("#EXT-X-SKIP:SKIPPED-SEGMENTS=34\n"))
        #expect(text.contains("abc-s34.m4s") && !text.contains("abc-s33.m4s"))
    }

    @Test func `lets memory go once it has ended, and stays whole`() {
        var rewinding = Rewinding(window: 600_000)
        for _ in 0..<15 { rewinding.segments(1) }
        rewinding.playlist.releaseStored()
        #expect(rewinding.playlist.byteCount == 44)
        rewinding.playlist.end()
        rewinding.playlist.releaseStored()
        #expect(rewinding.playlist.byteCount == 0)
        let text = rewinding.playlist.text(reachesBack: true)
        #expect(text.contains("#EXT-X-MEDIA-SEQUENCE:0\n") && text.hasSuffix("abc-s14.m4s\n#EXT-X-ENDLIST\n"))
        #expect(rewinding.names(text) == [])
        #expect(rewinding.playlist.file(named: "abc-i0.mp4").bytes == [9])
        var conformance = PlaylistConformance()
        #expect(conformance.check(text) == [])
    }
}
