import Base
import Foundation
import Store
import Synchronization
import Testing
import Transcoder
import Wire

@testable import Recordings

@Suite struct `A file of a recording` {
    @Test func `tells when it began by what was durable first`() async {
        let file = RecordingFile(reserve: 0) { _ in }
        #expect(file.status.filmedAt == nil)
        file.note(0, at: WallTime(milliseconds: 9_000))
        #expect(file.status.filmedAt == nil)
        file.note(500, at: WallTime(milliseconds: 10_000))
        // The clock of days may jump.
        file.note(1_000, at: WallTime(milliseconds: 90_000))
        #expect(file.status.filmedAt == 9_500)
    }

    @Test func `ends before it takes what is to stay free, whether or not a moment is said to be good`()
        async throws
    {
        let directory = FileManager.default.temporaryDirectory.appendingPathComponent(UUID().uuidString)
        try FileManager.default.createDirectory(at: directory, withIntermediateDirectories: true)
        defer { try? FileManager.default.removeItem(at: directory) }
        let failures = Mutex<[FileError]>([])
        let file = RecordingFile(reserve: .max) { failure in failures.withLock { $0.append(failure) } }
        file.begin(directory.appendingPathComponent("a.webm").path, "webm")
        for index in 0..<20 as Range<UInt64> {
            file.write([UInt8](repeating: 0, count: 1 << 20), at: index << 20)
            // One after the other, as from a transcoder.
            await file.settled()
        }
        #expect(failures.withLock { $0.count } == 1)
        #expect(file.status.written <= 5 << 20)
        _ = await file.close()
    }

    @Test(arguments: [false, true])
    func `is repaired when it closes, and is complete unless a write failed`(hasFailed: Bool) async throws {
        let path = FileManager.default.temporaryDirectory.appendingPathComponent("\(UUID()).mp4").path
        defer { try? FileManager.default.removeItem(atPath: path) }
        var studio = Studio()
        studio.codec = .h264
        studio.play(50)
        let failures = Mutex<[FileError]>([])
        let file = RecordingFile(reserve: 0) { failure in failures.withLock { $0.append(failure) } }
        file.begin(path, "mp4")
        file.write(studio.file, at: 0)
        // What does not follow on the bytes before is not written.
        if hasFailed { file.write([0], at: UInt64(studio.file.count) + 1) }
        let status = await file.close()
        let codes = failures.withLock { $0.map(\.code) }
        #expect(codes == (hasFailed ? [EINVAL] : []))
        #expect(status.isComplete == !hasFailed)
        let bytes: [UInt8] = FileManager.default.contents(atPath: path).map { Array($0) } ?? []
        #expect(status.size == bytes.count)
        #expect(MP4Fragments(ByteSource(bytes)).isWhole)
    }
}
