import Base
import Foundation
import Stage
import TestSupport
import Testing

@testable import Node

/// Is gone with what is in it when its test is over.
private final class TemporaryFolder: Sendable {
    let path = FileManager.default.temporaryDirectory.appending(path: "shelf-\(UUID().uuidString)").path

    init() throws {
        try FileManager.default.createDirectory(atPath: path, withIntermediateDirectories: false)
    }

    deinit { try? FileManager.default.removeItem(atPath: path) }
}

@Suite struct `A shelf of segments` {
    private let folder: TemporaryFolder
    private let show: StreamID
    private let begin = MonotonicTime.zero + .seconds(1_000)

    init() throws {
        show = try #require(StreamID("show"))
        folder = try TemporaryFolder()
    }

    private var directory: String { "\(folder.path)/dvr" }

    private func shelf(reserve: Int64 = 0) -> SegmentShelf {
        var settings = DVRSettings(directory: directory, secondsLimit: 7_200)
        settings.reserve = reserve
        return SegmentShelf(settings, log: .silent)
    }

    private func write(_ name: String, _ bytes: [UInt8], on shelf: SegmentShelf) async -> Bool {
        let isStored = Watched(false)
        shelf.write(name, bytes, of: show) { isStored.change { $0 = true } }
        await shelf.settled()
        return isStored.value
    }

    @Test func `keeps what it is given until some time after nobody names it`() async {
        let shelf = shelf()
        #expect(await write("a-s1.m4s", [1, 2, 3], on: shelf))
        let path = shelf.path(of: "a-s1.m4s", in: show)
        #expect(FileManager.default.contents(atPath: path) == Data([1, 2, 3]))
        #expect(shelf.counters == SegmentShelf.Counters(bytes: 3, failed: 0))
        shelf.remove(["a-s1.m4s"], of: show, at: begin)
        shelf.advance(at: begin + .seconds(29))
        await shelf.settled()
        #expect(FileManager.default.fileExists(atPath: path))
        shelf.advance(at: begin + .seconds(30))
        await shelf.settled()
        #expect(!FileManager.default.fileExists(atPath: path))
        // The stream's folder goes with the last of them.
        #expect(!FileManager.default.fileExists(atPath: "\(directory)/show"))
        #expect(shelf.counters.bytes == 0)
    }

    @Test func `leaves the disk its reserve`() async {
        let shelf = shelf(reserve: .max)
        #expect(await !write("a-s1.m4s", [1], on: shelf))
        #expect(!FileManager.default.fileExists(atPath: shelf.path(of: "a-s1.m4s", in: show)))
        #expect(shelf.counters == SegmentShelf.Counters(bytes: 0, failed: 1))
    }

    @Test func `a segment that could not be written is not announced`() async throws {
        try Data().write(to: URL(fileURLWithPath: "\(folder.path)/file"))
        var settings = DVRSettings(directory: "\(folder.path)/file/dvr", secondsLimit: 7_200)
        settings.reserve = 0
        let shelf = SegmentShelf(settings, log: .silent)
        #expect(await !write("a-s1.m4s", [1], on: shelf))
        #expect(shelf.counters.failed == 1)
    }

    @Test func `the backlog of writes is bounded`() async {
        let shelf = shelf()
        let large = [UInt8](repeating: 0, count: 33 << 20)
        #expect(await !write("a-s1.m4s", large, on: shelf))
        #expect(shelf.counters.failed == 1)
        #expect(await write("a-s2.m4s", [1], on: shelf))
    }

    @Test func `removes what an earlier server left`() async {
        #expect(await write("a-s1.m4s", [1], on: shelf()))
        let next = shelf()
        await next.settled()
        #expect(!FileManager.default.fileExists(atPath: next.path(of: "a-s1.m4s", in: show)))
    }
}
