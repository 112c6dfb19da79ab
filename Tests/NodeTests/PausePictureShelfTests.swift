import Base
import Foundation
import TestSupport
import Testing

@testable import Node

/// As a node does it: in memory first, and then on the disk.
private actor Chooser {
    private let shelf: PausePictureShelf
    private(set) var last: [UInt8] = []

    init(_ shelf: PausePictureShelf) {
        self.shelf = shelf
    }

    func choose(_ file: [UInt8], for stream: StreamID) async -> Bool {
        last = file
        return await shelf.set(file, of: stream)
    }
}

@Suite struct `Pause pictures on the disk` {
    private let directory = FileManager.default.temporaryDirectory.appending(path: "pauses-\(UUID())").path
    private let show: StreamID

    init() throws {
        show = try #require(StreamID("show"))
    }

    /// A restart would bring back a picture that the host has replaced.
    @Test func `are those that were chosen last, however many are chosen at once`() async throws {
        defer { try? FileManager.default.removeItem(atPath: directory) }
        let shelf = PausePictureShelf(directory: directory)
        let chooser = Chooser(shelf)
        for _ in 0..<5 {
            let areKept = await withTaskGroup(of: Bool.self) { [show] group in
                for number in UInt8(1)...20 {
                    group.addTask { await chooser.choose([number], for: show) }
                }
                return await group.allSatisfy { $0 }
            }
            #expect(areKept)
            let last = await chooser.last
            #expect(await shelf.load(limit: 9, total: 9) == [show: last])
        }
    }

    @Test func `are removed, and read as far as there is room`() async throws {
        defer { try? FileManager.default.removeItem(atPath: directory) }
        let shelf = PausePictureShelf(directory: directory)
        let other = try #require(StreamID("other"))
        let areKept = [await shelf.set([1, 2, 3], of: show), await shelf.set([4, 5], of: other)]
        #expect(areKept == [true, true])
        #expect(await shelf.load(limit: 9, total: 9) == [show: [1, 2, 3], other: [4, 5]])
        // In the order of their names.
        #expect(await shelf.load(limit: 9, total: 4) == [other: [4, 5]])
        #expect(await shelf.load(limit: 2, total: 9) == [other: [4, 5]])
        let isRemoved = await shelf.set(nil, of: other)
        #expect(isRemoved)
        #expect(await shelf.load(limit: 9, total: 9) == [show: [1, 2, 3]])
    }
}
