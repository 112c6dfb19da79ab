import Base
import Foundation
import Store
import Synchronization
import Testing

@testable import Webhooks

/// The receiver of `receiver.py`, in a process of its own.
private final class LocalReceiver: Sendable {
    struct Request: Decodable, Sendable {
        let path: String
        let delivery: String
        let attempt: Int
        let status: Int
        let event: String
        let type: String
        let signed: Bool
        let body: String
    }

    static let secret = "a secret of webhooks"
    let port: Int
    let lines: AsyncStream<Data>
    private let process: Mutex<Process>

    init() async throws {
        let process = Process()
        process.executableURL = URL(filePath: "/usr/bin/env")
        let script = URL(filePath: #filePath).deletingLastPathComponent().appending(path: "receiver.py")
        process.arguments = ["python3", script.path, Self.secret]
        let output = Pipe()
        process.standardOutput = output
        process.standardInput = Pipe()
        try process.run()
        let (lines, continuation) = AsyncStream.makeStream(of: Data.self)
        let handle = output.fileHandleForReading
        // Reading waits, which no task may.
        Thread.detachNewThread {
            var rest = Data()
            while case let more = handle.availableData, !more.isEmpty {
                rest += more
                while let end = rest.firstIndex(of: UInt8(ascii: "\n")) {
                    continuation.yield(Data(rest[..<end]))
                    rest = Data(rest[(end + 1)...])
                }
            }
            continuation.finish()
        }
        var iterator = lines.makeAsyncIterator()
        struct Start: Decodable { let port: Int }
        let first = try #require(await iterator.next())
        port = try JSONDecoder().decode(Start.self, from: first).port
        self.lines = lines
        self.process = Mutex(process)
    }

    func url(_ path: String) -> String { "http://127.0.0.1:\(port)\(path)" }

    deinit {
        process.withLock { $0.terminate() }
    }

    /// Waits for requests until `isEnough`.
    func requests(until isEnough: ([Request]) -> Bool) async throws -> [Request] {
        var result: [Request] = []
        for await line in lines {
            result.append(try JSONDecoder().decode(Request.self, from: line))
            if isEnough(result) { break }
        }
        return result
    }
}

/// With real HTTP, threads and time: what the schedule's tests cannot say.
@Suite(
    .serialized, .timeLimit(.minutes(10)),
    .enabled(if: FileManager.default.isExecutableFile(atPath: "/usr/bin/python3"), "wants python3"))
struct `Webhooks over HTTP` {
    private func fill(_ store: any StreamStore, streams: Int, events: Int) async throws {
        for number in 0..<events {
            for index in 0..<streams {
                let name = try #require(StreamID("s\(index)"))
                var commit = StreamCommit(stream: name, basis: UInt64(number), records: [[0]])
                commit.listing = StreamListing(stream: name, state: "", host: "", createdAt: 0)
                commit.events = [
                    OutboxEvent(
                        id: "s\(index)-\(number)", type: "stream.live", committedAt: Self.now(),
                        body: Array(#"{"stream":"s\#(index)","title":"Zoë 🎬"}"#.utf8))
                ]
                try await store.commit(commit)
            }
        }
    }

    @Sendable private static func now() -> Int64 { Int64(Date().timeIntervalSince1970 * 1_000) }

    /// Runs `body` while a sender delivers to these receivers, and tries again soon.
    private func whileSending(
        to urls: [String], from store: any StreamStore, _ body: (WebhookSender) async throws -> Void
    ) async throws {
        var settings = WebhookSchedule.Settings()
        settings.firstDelay = 10
        settings.longestDelay = 80
        // What is given up is sent again, and so comes twice; a busy machine is no slow receiver.
        let poster = HTTPPoster(timeout: .seconds(3_600))
        let sender = WebhookSender(
            outbox: store.outbox, receivers: urls, secret: Secret(LocalReceiver.secret), transport: poster,
            settings: settings, log: .silent, now: Self.now)
        try await sender.prepare()
        let running = Task { await sender.run() }
        do {
            try await body(sender)
        } catch {
            running.cancel()
            throw error
        }
        running.cancel()
        poster.close()
        await running.value
    }

    @Test func `are signed and come in order, though the receiver fails, hangs up and is slow`() async throws
    {
        let receiver = try await LocalReceiver()
        let store = MemoryStore()
        let paths = ["/ok", "/flaky", "/hangup", "/slow"]
        try await whileSending(to: paths.map(receiver.url), from: store) { _ in
            try await fill(store, streams: 3, events: 4)
            let requests = try await receiver.requests { requests in
                requests.count { $0.status == 200 } == paths.count * 12
            }
            let expected = (0..<3).map { index in (0..<4).map { "s\(index)-\($0)" } }
            for path in paths {
                let taken = requests.filter { $0.path == path && $0.status == 200 }.map(\.delivery)
                for (index, order) in expected.enumerated() {
                    #expect(taken.filter { $0.hasPrefix("s\(index)-") } == order, "\(path)")
                }
                // Nothing of a stream was even tried before what came earlier had arrived.
                var arrived: Set<String> = []
                for request in requests where request.path == path {
                    let number = Int(request.delivery.split(separator: "-")[1]) ?? 0
                    let before = (0..<number).map { "\(request.delivery.prefix(3))\($0)" }
                    #expect(arrived.isSuperset(of: before))
                    if request.status == 200 { arrived.insert(request.delivery) }
                }
            }
            #expect(requests.allSatisfy { $0.signed && $0.type == "application/json" })
            #expect(requests.allSatisfy { $0.event == "stream.live" && $0.body.contains("Zoë 🎬") })
            #expect(requests.contains { $0.path == "/flaky" && $0.attempt == 3 })
        }
    }

    @Test func `end for a receiver that is gone, and go on for others`() async throws {
        let receiver = try await LocalReceiver()
        let store = MemoryStore()
        try await whileSending(to: ["/gone", "/ok"].map(receiver.url), from: store) { sender in
            try await fill(store, streams: 1, events: 3)
            let requests = try await receiver.requests { requests in
                requests.count { $0.path == "/ok" } == 3 && requests.contains { $0.path == "/gone" }
            }
            #expect(requests.count { $0.path == "/gone" } == 1)
        }
    }

    @Test func `wait in the store for the next start`() async throws {
        try await withTemporaryDirectory { directory in
            let settings = SQLiteSettings(directory: directory)
            let first = try await SQLiteStore.open(settings, log: .silent)
            let receiver = try await LocalReceiver()
            let url = receiver.url("/ok")
            try await first.outbox.setReceivers([url])
            try await fill(first, streams: 2, events: 2)
            await first.close()

            let second = try await SQLiteStore.open(settings, log: .silent)
            #expect(second.statistics.waitingEvents == 4)
            // Nobody listens on port 9: a receiver that is down holds up none that is not.
            try await whileSending(to: [url, "http://127.0.0.1:9/"], from: second) { _ in
                let requests = try await receiver.requests { $0.count == 4 }
                #expect(requests.allSatisfy { $0.attempt == 1 && $0.status == 200 })
            }
            await second.close()
        }
    }

    @Test func `to a receiver that is down or moved are tried again`() async throws {
        let receiver = try await LocalReceiver()
        let store = MemoryStore()
        try await whileSending(to: [receiver.url("/moved"), "http://127.0.0.1:9/"], from: store) { sender in
            try await fill(store, streams: 1, events: 1)
            let requests = try await receiver.requests { $0.count == 3 }
            // The redirect was not followed: the same event, again and again.
            #expect(requests.map(\.path) == ["/moved", "/moved", "/moved"])
            #expect(requests.map(\.attempt) == [1, 2, 3])
            #expect(store.statistics.waitingEvents == 2)
            #expect(sender.counters.copy.failed >= 2)
        }
    }

    private func withTemporaryDirectory(_ body: (String) async throws -> Void) async throws {
        let directory = FileManager.default.temporaryDirectory.appending(path: "rostrum-webhooks-\(UUID())")
        defer { try? FileManager.default.removeItem(at: directory) }
        try await body(directory.path)
    }
}
