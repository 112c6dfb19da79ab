import Base
import Foundation
import Store
import Testing

@testable import Recordings
@testable import Transcoder

/// A folder of recordings, which is gone with the test.
private final class ShelfRig: Sendable {
    let directory = FileManager.default.temporaryDirectory.appendingPathComponent(UUID().uuidString)

    deinit { try? FileManager.default.removeItem(at: directory) }

    /// As after a start of the server.
    func shelf() -> RecordingShelf {
        RecordingShelf(RecordingSettings(directory: directory.path), log: .silent)
    }

    func put(_ bytes: some Sequence<UInt8>, _ name: String, in folder: String) throws {
        let folder = directory.appendingPathComponent(folder)
        try FileManager.default.createDirectory(at: folder, withIntermediateDirectories: true)
        try Data(bytes).write(to: folder.appendingPathComponent(name))
    }

    func putEntry(_ id: String, of stream: String, as name: String, in folder: String, state: String) throws {
        let entry =
            #"{"id":"\#(id)","stream":"\#(stream)","part":1,"state":"\#(state)","startedAt":7000,"#
            + #""milliseconds":0,"size":0}"#
        try put(entry.utf8, name, in: folder)
    }

    func size(of name: String, in folder: String) throws -> Int {
        try Data(contentsOf: directory.appendingPathComponent(folder).appendingPathComponent(name)).count
    }
}

@Suite struct `A shelf of recordings` {
    private let rig = ShelfRig()

    private func entry(_ id: String) throws -> RecordingEntry {
        let stream = try #require(StreamID("s1"))
        return RecordingEntry(id: id, stream: stream, part: 1, startedAt: 7_000)
    }

    /// The codec decides on the container, and so on how it is repaired.
    @Test(arguments: [(InputCodec.vp8, "webm"), (.h264, "mp4")])
    func `completes what a crash interrupted, once`(codec: InputCodec, container: String) async throws {
        var studio = Studio()
        studio.codec = codec
        studio.play(30)
        // Nobody completed it, and its last bytes are missing.
        let whole = studio.file.count
        try rig.put(studio.file.dropLast(5), "r1.\(container)", in: "s1")
        try rig.putEntry("r1", of: "s1", as: "r1.json", in: "s1", state: "recording")
        let found = await rig.shelf().load()
        let recording = try #require(found.first)
        #expect(found.count == 1 && recording.state == .ended && recording.endReason == .interrupted)
        #expect(recording.fileExtension == container)
        #expect((1_500...3_100).contains(recording.milliseconds))
        let end = 7_000 + recording.milliseconds
        #expect(recording.endedAt == end)
        let size = try rig.size(of: "r1.\(container)", in: "s1")
        #expect(size == Int(recording.size) && size > whole / 3)
        let again = await rig.shelf().load()
        #expect(again == found)
    }

    @Test func `completes a recording of which there was nothing yet`() async throws {
        try rig.putEntry("r1", of: "s1", as: "r1.json", in: "s1", state: "recording")
        let found = await rig.shelf().load()
        #expect(found.map(\.endReason) == [.interrupted] && found.map(\.endedAt) == [7_000])
        #expect(found.first?.fileName == nil)
    }

    @Test func `has what it can read, and leaves everything else alone`() async throws {
        try rig.putEntry("r2", of: "s2", as: "r2.json", in: "s2", state: "ended")
        try rig.putEntry("r1", of: "s1", as: "r1.json", in: "s1", state: "ended")
        // Of another stream; under another name; not whole; of another kind; of no stream.
        try rig.putEntry("r3", of: "s2", as: "r3.json", in: "s1", state: "ended")
        try rig.putEntry("r4", of: "s1", as: "r5.json", in: "s1", state: "ended")
        try rig.put(#"{"id":"r6","stream":"s1""#.utf8, "r6.json", in: "s1")
        try rig.putEntry("r7", of: "s1", as: "r7.txt", in: "s1", state: "ended")
        try rig.putEntry("r8", of: "no stream", as: "r8.json", in: "no stream", state: "ended")
        let found = await rig.shelf().load()
        #expect(found.map(\.id) == ["r1", "r2"])
        let rest = [("r3.json", "s1"), ("r5.json", "s1"), ("r6.json", "s1"), ("r8.json", "no stream")]
        for (name, folder) in rest {
            let size = try rig.size(of: name, in: folder)
            #expect(size > 0, "\(name)")
        }
    }

    @Test func `of a folder that is not there is empty`() async {
        let found = await rig.shelf().load()
        #expect(found.isEmpty)
    }

    /// The latest words of each, and none of what was removed meanwhile.
    @Test func `keeps what ended while the disk failed, once it does not fail any more`() async throws {
        // Where its folder belongs there is a file.
        try Data().write(to: rig.directory)
        let shelf = rig.shelf()
        let stream = try #require(StreamID("s1"))
        var (first, second) = (try entry("r1"), try entry("r2"))
        (first.state, first.endReason) = (.ended, .continued)
        (second.state, second.endReason) = (.ended, .stopped)
        let failures = [
            await shelf.conclude(first), await shelf.conclude(second),
        ]
        first.endReason = .streamEnded
        let third = await shelf.conclude(first)
        let haveFailed = failures.allSatisfy { $0 != nil }
        #expect(haveFailed && third != nil)
        #expect(shelf.unkeptStreams == [stream])
        let early = await shelf.keepUnkept(of: stream)
        #expect(early.isEmpty && shelf.unkeptStreams == [stream])
        try FileManager.default.removeItem(at: rig.directory)
        let kept = await shelf.keepUnkept(of: stream)
        #expect(kept == [second, first] && shelf.unkeptStreams.isEmpty)
        let found = await rig.shelf().load()
        #expect(found == [first, second])
        let again = await shelf.keepUnkept(of: stream)
        #expect(again.isEmpty)
    }
}
