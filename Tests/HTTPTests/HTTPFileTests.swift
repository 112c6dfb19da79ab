import Foundation
import HTTPTestSupport
import Synchronization
import Testing

@testable import HTTP

/// Gives the path of a file with these bytes, in a directory of its own.
private func withFile(_ bytes: [UInt8], _ body: (String) async throws -> Void) async throws {
    let directory = FileManager.default.temporaryDirectory.appendingPathComponent(UUID().uuidString)
    try FileManager.default.createDirectory(at: directory, withIntermediateDirectories: true)
    defer { try? FileManager.default.removeItem(at: directory) }
    let path = directory.appendingPathComponent("file").path
    try Data(bytes).write(to: URL(fileURLWithPath: path))
    try await body(path)
}

private func bytes(_ count: Int) -> [UInt8] {
    (0..<count).map { UInt8(truncatingIfNeeded: $0 &* 31 ^ $0 >> 8) }
}

extension HTTPFile {
    /// The next piece, as the service thread gets it.
    fileprivate func piece(from place: Int) async -> [UInt8] {
        await withCheckedContinuation { continuation in
            read(from: place) { continuation.resume(returning: $0) }
        }
    }

    /// All pieces up to the first that is empty, or to the end.
    fileprivate func pieces() async -> [[UInt8]] {
        var pieces: [[UInt8]] = []
        var place = 0
        while place < count {
            let next = await piece(from: place)
            guard !next.isEmpty else { break }
            pieces.append(next)
            place += next.count
        }
        return pieces
    }
}

@Suite struct `A file that is sent` {
    @Test func `is read in pieces, from the first byte of its range to the last`() async throws {
        let all = bytes(700_000)
        try await withFile(all) { path in
            let file = try #require(HTTPFile(path: path, choose: { 1_000..<$0.bytes - 1 }))
            #expect(file.count == 698_999)
            let pieces = await file.pieces()
            #expect(pieces.map(\.count) == [262_144, 262_144, 174_711])
            #expect(Array(pieces.joined()) == Array(all[1_000..<699_999]))
            // What is behind the range is not read, and neither is what is before it.
            let behind = await file.piece(from: file.count)
            #expect(behind.isEmpty)
            let one = try #require(HTTPFile(path: path, choose: { _ in 5..<6 }))
            let only = await one.pieces()
            #expect(only == [[all[5]]])
        }
    }

    @Test func `is changed on its way by where its bytes are in the file`() async throws {
        let all = bytes(300_000)
        try await withFile(all) { path in
            let seen = Mutex<[Int64]>([])
            let edit: HTTPFile.Edit = { bytes, offset in
                seen.withLock { $0.append(offset) }
                for index in bytes.indices where (offset + Int64(index)) % 1_000 == 0 { bytes[index] = 0xEE }
            }
            let file = try #require(HTTPFile(path: path, edit: edit, choose: { 100..<$0.bytes }))
            let sent = Array(await file.pieces().joined())
            var expected = all
            for index in stride(from: 0, to: expected.count, by: 1_000) { expected[index] = 0xEE }
            #expect(sent == Array(expected[100...]))
            let offsets = seen.withLock { $0 }
            #expect(offsets == [100, 262_244])
        }
    }

    @Test func `is the one that was opened, whatever becomes of its name`() async throws {
        let all = bytes(10_000)
        try await withFile(all) { path in
            let file = try #require(HTTPFile(path: path, choose: { 0..<$0.bytes }))
            try FileManager.default.removeItem(atPath: path)
            try Data([1, 2, 3]).write(to: URL(fileURLWithPath: path))
            let pieces = await file.pieces()
            #expect(pieces == [all])
        }
    }

    @Test func `ends where it has become shorter meanwhile`() async throws {
        let all = bytes(400_000)
        try await withFile(all) { path in
            let file = try #require(HTTPFile(path: path, choose: { 0..<$0.bytes }))
            try #require(truncate(path, 300_000) == 0)
            let pieces = await file.pieces()
            #expect(pieces.map(\.count) == [262_144, 37_856])
            try #require(truncate(path, 0) == 0)
            let none = await file.pieces()
            #expect(none.isEmpty)
        }
    }

    /// A link could lead to any file, and a pipe would keep the server waiting.
    @Test func `is nothing but a file`() async throws {
        try await withFile(bytes(10)) { path in
            let manager = FileManager.default
            func file(_ path: String) -> HTTPFile? { HTTPFile(path: path, choose: { 0..<$0.bytes }) }
            #expect(file(path) != nil)
            try manager.createSymbolicLink(atPath: path + ".link", withDestinationPath: path)
            try #require(mkfifo(path + ".pipe", 0o600) == 0)
            try manager.createDirectory(atPath: path + ".folder", withIntermediateDirectories: false)
            for name in [".link", ".pipe", ".folder", ".none", "/x"] {
                #expect(file(path + name) == nil, "\(name)")
            }
            #expect(HTTPFile(path: path, choose: { _ in nil }) == nil)
        }
    }

    @Test func `tells its size and age to whoever chooses a part of it`() async throws {
        try await withFile(bytes(77)) { path in
            try FileManager.default.setAttributes(
                [.modificationDate: Date(timeIntervalSince1970: 1_700_000_000)], ofItemAtPath: path)
            var told: HTTPFile.Size?
            let file = HTTPFile(
                path: path,
                choose: { size in
                    told = size
                    return 10..<10
                })
            #expect(told?.bytes == 77 && told?.changedAt == 1_700_000_000_000_000_000)
            #expect(file?.count == 0)
        }
    }
}

@Suite(.timeLimit(.minutes(5))) struct `A server of files` {
    /// Answers with a part of a file, and does something to the file before it is sent.
    private static func handler(
        _ path: String, _ range: Range<Int>?, then change: @escaping @Sendable () -> Void = {}
    ) -> ClosureHandler {
        ClosureHandler(answer: { _ in
            var response = HTTPResponse(status: 200)
            response.file = HTTPFile(path: path, choose: { range ?? 0..<$0.bytes })
            change()
            return response
        })
    }

    @Test func `sends each whole, one after the other on a connection`() async throws {
        let all = bytes(600_001)
        try await withFile(all) { path in
            try await withServer(Self.handler(path, 1..<600_001)) { server in
                let client = try RawClient(server.address)
                let request = "GET / HTTP/1.1\r\nHost: h\r\n\r\n"
                try await client.send(request + request)
                for _ in 0..<2 {
                    let response = try await client.response()
                    #expect(response.status == 200 && response.headers["content-length"] == "600000")
                    #expect(response.body == Array(all[1...]))
                }
            }
        }
    }

    @Test func `sends no body for HEAD, and none of an empty part`() async throws {
        try await withFile(bytes(500)) { path in
            try await withServer(Self.handler(path, 0..<500)) { server in
                let client = try RawClient(server.address)
                for _ in 0..<2 {
                    try await client.send("HEAD / HTTP/1.1\r\nHost: h\r\n\r\n")
                    let head = try await client.response(toHead: true)
                    #expect(head.status == 200 && head.headers["content-length"] == "500")
                }
                try await client.send("GET / HTTP/1.1\r\nHost: h\r\n\r\n")
                let whole = try await client.response()
                #expect(whole.body == bytes(500))
            }
            try await withServer(Self.handler(path, 7..<7)) { server in
                let client = try RawClient(server.address)
                for _ in 0..<2 {
                    try await client.send("GET / HTTP/1.1\r\nHost: h\r\n\r\n")
                    let empty = try await client.response()
                    #expect(empty.status == 200 && empty.headers["content-length"] == "0")
                }
            }
        }
    }

    /// The length is told by then, and a client must not take the next answer for the rest.
    @Test(arguments: [0, 10, 262_144, 300_000])
    func `ends the connection where a file has become shorter than was told`(length: Int) async throws {
        let all = bytes(400_000)
        try await withFile(all) { path in
            let handler = Self.handler(path, nil, then: { truncate(path, off_t(length)) })
            try await withServer(handler) { server in
                let client = try RawClient(server.address)
                try await client.send("GET / HTTP/1.1\r\nHost: h\r\n\r\n")
                let received = try await client.receiveToEnd()
                let text = Array("content-length: 400000\r\n".utf8)
                let head = received.prefix(500)
                let hasLength = head.indices.contains { head[$0...].starts(with: text) }
                #expect(hasLength)
                #expect(received.suffix(length).elementsEqual(all.prefix(length)))
                #expect(received.count < length + 500)
            }
        }
    }
}
