import Base
import Forwarding
import Foundation
import Glibc
import Store
import Synchronization
import Testing
import Wire

@testable import Recordings
@testable import Transcoder

/// A folder of its own, and the errors that its files have told of.
private final class FolderRig: Sendable {
    private let folder = FileManager.default.temporaryDirectory.appendingPathComponent(UUID().uuidString)
    private let codes = Mutex<[CInt]>([])

    init() throws {
        try FileManager.default.createDirectory(at: folder, withIntermediateDirectories: true)
    }

    deinit {
        try? FileManager.default.removeItem(at: folder)
    }

    var failures: [CInt] { codes.withLock { $0 } }

    func path(_ name: String) -> String { folder.appendingPathComponent(name).path }

    func file() -> RecordingFile {
        RecordingFile(reserve: 0) { [weak self] failure in self?.note(failure) }
    }

    private func note(_ failure: FileError) { codes.withLock { $0.append(failure.code) } }

    func bytes(of name: String) -> [UInt8]? {
        FileManager.default.contents(atPath: path(name)).map { Array($0) }
    }

    func put(_ bytes: [UInt8], as name: String) throws {
        try Data(bytes).write(to: folder.appendingPathComponent(name))
    }
}

@Suite struct `A file of a recording whose transcoder or disk is at fault` {
    /// Or the server would trap as soon as somebody asks when the recording was filmed.
    @Test func `has a playing time with which can be calculated`() async throws {
        let rig = try FolderRig()
        let file = rig.file()
        file.begin(rig.path("a.webm"), "webm")
        file.write([1, 2, 3], at: 0)
        file.note(.max, at: WallTime(milliseconds: 10_000))
        file.flush(.max, isEnd: true)
        let status = await file.close()
        #expect(status.milliseconds == 1 << 40)
        #expect(status.filmedAt == 10_000 - 1 << 40)
        let stream = try #require(StreamID("s1"))
        var entry = RecordingEntry(id: "r1", stream: stream, part: 1, startedAt: 9_000)
        (entry.milliseconds, entry.filmedAt) = (status.milliseconds, status.filmedAt)
        #expect(entry.time.upperBound == WallTime(milliseconds: 10_000))
        entry.filmedAt = nil
        #expect(entry.time.upperBound == WallTime(milliseconds: 9_000 + 1 << 40))
    }

    @Test func `tells of a folder that is not there, once`() async throws {
        let rig = try FolderRig()
        let file = rig.file()
        file.begin(rig.path("missing/a.webm"), "webm")
        file.write([1, 2, 3], at: 0)
        file.write([4], at: 9)
        file.flush(100)
        let status = await file.close()
        #expect(rig.failures == [ENOENT])
        #expect(status == RecordingFile.Status())
    }

    @Test(arguments: ["webm", "mp4"])
    func `leaves alone what is there already`(container: String) async throws {
        let rig = try FolderRig()
        try rig.put([7, 7, 7], as: "a.\(container)")
        let file = rig.file()
        file.begin(rig.path("a.\(container)"), container)
        file.write([1], at: 0)
        _ = await file.close()
        #expect(rig.failures == [EEXIST])
        #expect(rig.bytes(of: "a.\(container)") == [7, 7, 7])
    }

    @Test func `stays where it began`() async throws {
        let rig = try FolderRig()
        let file = rig.file()
        file.begin(rig.path("a.webm"), "webm")
        file.begin(rig.path("b.webm"), "webm")
        file.write([1, 2, 3, 4], at: 0)
        // A muxer comes back to what it has written, and goes on behind it.
        file.write([8, 9], at: 1)
        file.write([5], at: 4)
        file.write([], at: 5)
        file.flush(40, isEnd: true)
        let status = await file.close()
        let again = await file.close()
        #expect(rig.failures.isEmpty && again == status)
        #expect(status.isComplete && status.size == 5 && status.written == 5)
        #expect(rig.bytes(of: "a.webm") == [1, 8, 9, 4, 5])
        #expect(rig.bytes(of: "b.webm") == nil)
    }

    @Test func `takes nothing more behind a gap`() async throws {
        let rig = try FolderRig()
        let file = rig.file()
        file.begin(rig.path("a.webm"), "webm")
        file.write([1, 2], at: 0)
        file.flush(10)
        file.write([3], at: .max)
        file.write([3], at: 2)
        file.flush(20)
        await file.settled()
        #expect(rig.failures == [EINVAL])
        #expect(file.status.written == 2 && file.status.milliseconds == 10)
        _ = await file.close()
    }

    @Test func `fails when a disk is too far behind`() async throws {
        let rig = try FolderRig()
        let file = rig.file()
        file.begin(rig.path("a.webm"), "webm")
        file.write([UInt8](repeating: 0, count: 16 << 20 + 1), at: 0)
        file.write([1], at: 0)
        await file.settled()
        #expect(rig.failures == [EBUSY] && file.status.written == 0)
        _ = await file.close()
    }

    @Test(
        arguments: [
            (ENOSPC, .diskFull), (EDQUOT, .diskFull), (EFBIG, .diskFull), (EINVAL, .failed), (EIO, .storage),
            (EROFS, .storage), (EBUSY, .storage), (ENOENT, .storage),
        ] as [(CInt, RecordingEntry.EndReason)])
    func `tells who is to blame`(code: CInt, reason: RecordingEntry.EndReason) {
        #expect(RecordingEntry.EndReason(FileError(code: code)) == reason)
    }

    /// What cannot be read may be whole: a repair must not cut it off.
    @Test func `tells what it could not read from what is not there`() throws {
        let rig = try FolderRig()
        try rig.put([1, 2, 3], as: "a.webm")
        let (folder, file) = (open(rig.path(""), O_RDONLY), open(rig.path("a.webm"), O_RDONLY))
        try #require(folder >= 0 && file >= 0)
        defer {
            close(folder)
            close(file)
        }
        var failures = 0
        let whole = ByteSource(size: 3, of: file) { failures += 1 }
        #expect(whole.bytes(at: 1, count: 9) == [2, 3] && whole.bytes(at: 3, count: 1) == [])
        #expect(failures == 0)
        let unreadable = ByteSource(size: 3, of: folder) { failures += 1 }
        #expect(unreadable.bytes(at: 0, count: 3) == [])
        #expect(failures == 1)
    }
}

@Suite struct `An index of fragments` {
    private func entry(of bytes: [UInt8]) throws -> RecordingEntry {
        let stream = try #require(StreamID("s1"))
        var entry = RecordingEntry(id: "r1", stream: stream, part: 1, startedAt: 0)
        entry.size = Int64(bytes.count)
        return entry
    }

    private var film: [UInt8] {
        var studio = Studio()
        studio.codec = .h264
        studio.play(20)
        studio.stop()
        return studio.file
    }

    @Test func `is made again after the file could not be read, and only then`() async throws {
        let rig = try FolderRig()
        let (indexes, bytes, path) = (FragmentIndexes(), film, rig.path("a.mp4"))
        let recording = try entry(of: bytes)
        let before = try await indexes.index(of: recording, at: path)
        try rig.put(bytes, as: "a.mp4")
        let made = try await indexes.index(of: recording, at: path)
        try FileManager.default.removeItem(atPath: path)
        let kept = try await indexes.index(of: recording, at: path)
        #expect(before == nil && made != nil && kept == made)
    }

    @Test func `follows no link out of its folder`() async throws {
        let rig = try FolderRig()
        let bytes = film
        try rig.put(bytes, as: "a.mp4")
        try FileManager.default.createSymbolicLink(
            atPath: rig.path("b.mp4"), withDestinationPath: rig.path("a.mp4"))
        let recording = try entry(of: bytes)
        let index = try await FragmentIndexes().index(of: recording, at: rig.path("b.mp4"))
        #expect(index == nil)
    }

    @Test func `of a file of another size is another one`() async throws {
        let rig = try FolderRig()
        let (indexes, whole) = (FragmentIndexes(), film)
        let half = Array(whole.prefix(whole.count / 2))
        let (short, long) = (try entry(of: half), try entry(of: whole))
        try rig.put(half, as: "a.mp4")
        let first = try await indexes.index(of: short, at: rig.path("a.mp4"))
        try rig.put(whole, as: "a.mp4")
        let second = try await indexes.index(of: long, at: rig.path("a.mp4"))
        let (before, after) = (first?.size ?? 0, second?.size ?? 0)
        #expect(before >= 1 && before < after)
    }
}

@Suite struct `Readers of recordings` {
    @Test func `are remembered for ten minutes after their latest request`() {
        let readers = RecordingReaders()
        let start = MonotonicTime.zero + .seconds(1_000)
        readers.note("a", at: start)
        readers.note("a", at: start + .seconds(300))
        readers.note("b", at: start)
        #expect(readers.isRead("a", at: start + .seconds(899)))
        #expect(!readers.isRead("a", at: start + .seconds(900)))
        #expect(!readers.isRead("b", at: start + .seconds(600)) && !readers.isRead("c", at: start))
    }

    /// Somebody who asks for all recordings there are must not fill the memory, nor push out who is watching.
    @Test func `are so many at most, of whom the last ones are not remembered`() {
        let readers = RecordingReaders()
        let start = MonotonicTime.zero + .seconds(1_000)
        for number in 0..<10_000 { readers.note("\(number)", at: start) }
        let later = start + .seconds(599)
        readers.note("one more", at: later)
        readers.note("0", at: later)
        #expect(!readers.isRead("one more", at: later) && readers.isRead("9999", at: later))
        // Those who have gone make room.
        let end = start + .seconds(600)
        readers.note("one more", at: end)
        #expect(readers.isRead("one more", at: end) && readers.isRead("0", at: end))
        #expect(!readers.isRead("1", at: end))
    }
}
