import Base
import Store
import Synchronization
import TestSupport
import Testing

@testable import Webhooks

private let url = "http://receiver.example/"

/// Never used: these tests answer in the transport's place.
private struct NoTransport: WebhookTransport {
    func post(to url: String, headers: [String], body: [UInt8]) async -> WebhookAnswer { .unreachable("") }
}

/// An outbox that can be asked but not written to, as on a full disk.
private final class FullOutbox: Outbox {
    let store = MemoryStore()
    let isFull = Mutex(false)
    var changes: AsyncStream<Void> { store.changes }

    func setReceivers(_ receivers: [String]) async throws(StoreError) {
        try await store.setReceivers(receivers)
    }

    func due(for receiver: String, at now: Int64, limit: Int) async throws(StoreError) -> [Delivery] {
        try await store.due(for: receiver, at: now, limit: limit)
    }

    func nextDue(for receiver: String, after now: Int64) async throws(StoreError) -> Int64? {
        try await store.nextDue(for: receiver, after: now)
    }

    func settle(_ outcomes: [DeliveryOutcome]) async throws(StoreError) {
        guard !isFull.withLock({ $0 }) else { throw .unavailable("the disk is full") }
        try await store.settle(outcomes)
    }

    func drop(committedBefore time: Int64) async throws(StoreError) -> Int {
        try await store.drop(committedBefore: time)
    }
}

/// Time that stands still until it is moved.
private final class VirtualTime: Sendable {
    private let time = Mutex<Int64>(1_000_000)
    var now: Int64 { time.withLock { $0 } }
    func move(to later: Int64) { time.withLock { $0 = max($0, later) } }
}

@Suite struct `A webhook receiver` {
    /// A receiver that answers at random, for streams that go on meanwhile, with a store that sometimes refuses.
    @Test(arguments: 0..<30 as Range<UInt64>)
    func `gets every event at least once, and each stream's in order`(_ seed: UInt64) async throws {
        var random = SeededGenerator(seed: seed)
        let store = MemoryStore()
        let time = VirtualTime()
        let counters = WebhookCounters()
        let receiver = WebhookReceiver(
            url: url, outbox: store.outbox, transport: NoTransport(),
            signature: WebhookSignature(secret: Secret("s")), settings: WebhookSchedule.Settings(),
            counters: counters, log: .silent, now: { time.now })
        try await store.outbox.setReceivers([url])

        let names = (0..<6).compactMap { StreamID("s\($0)") }
        var committed: [StreamID: Int] = [:]
        var delivered: [StreamID: [Int]] = [:]
        var underWay: [Delivery] = []
        var round = 0
        while round < 300 || store.statistics.waitingEvents > 0 {
            round += 1
            try #require(round < 20_000)
            if round < 300, let name = names.randomElement(using: &random) {
                let number = committed[name, default: 0]
                var commit = StreamCommit(stream: name, basis: UInt64(number), records: [[0]])
                commit.listing = StreamListing(stream: name, state: "", host: "", createdAt: 0)
                commit.events = [
                    OutboxEvent(
                        id: "\(name) \(number)", type: "t", committedAt: time.now,
                        body: Array("\(number)".utf8))
                ]
                try await store.commit(commit)
                committed[name] = number + 1
            }
            for delivery in await receiver.step() {
                #expect(!underWay.contains { $0.stream == delivery.stream })
                underWay.append(delivery)
            }
            #expect(underWay.count <= 4)
            if let index = underWay.indices.randomElement(using: &random) {
                let delivery = underWay.remove(at: index)
                let answer = Self.answer(isKind: round > 300, using: &random)
                if case .status(200, _) = answer {
                    delivered[delivery.stream, default: []].append(
                        Int(String(decoding: delivery.event.body, as: UTF8.self)) ?? -1)
                }
                await receiver.finish(delivery, with: answer)
            } else if let deadline = await receiver.deadline {
                time.move(to: deadline)
            }
        }
        for (name, count) in committed { #expect(delivered[name] == Array(0..<count)) }
        #expect(counters.copy.delivered == 299)
        #expect(counters.copy.dropped == 0)
    }

    private static func answer(isKind: Bool, using random: inout SeededGenerator) -> WebhookAnswer {
        switch random.next() % (isKind ? 20 : 6) {
        case 0: .status(500, retryAfter: nil)
        case 1: .status(429, retryAfter: 5_000)
        case 2: .unreachable("connection refused")
        default: .status(200, retryAfter: nil)
        }
    }

    @Test func `is not sent an event again whose outcome cannot be written yet`() async throws {
        let outbox = FullOutbox()
        let time = VirtualTime()
        let receiver = WebhookReceiver(
            url: url, outbox: outbox, transport: NoTransport(),
            signature: WebhookSignature(secret: Secret("s")), settings: WebhookSchedule.Settings(),
            counters: WebhookCounters(), log: .silent, now: { time.now })
        try await outbox.setReceivers([url])
        let name = try #require(StreamID("a"))
        var commit = StreamCommit(stream: name, basis: 0, records: [[0]])
        commit.listing = StreamListing(stream: name, state: "", host: "", createdAt: 0)
        commit.events = ["1", "2"].map { OutboxEvent(id: $0, type: "t", committedAt: 0, body: []) }
        try await outbox.store.commit(commit)
        let sent = try #require(await receiver.step().first)
        outbox.isFull.withLock { $0 = true }
        await receiver.finish(sent, with: .status(200, retryAfter: nil))
        for _ in 0..<5 {
            #expect(await receiver.step() == [])
            #expect(await receiver.deadline == time.now + 1_000)
            time.move(to: time.now + 1_000)
        }
        outbox.isFull.withLock { $0 = false }
        #expect(await receiver.step().map(\.event.id) == ["2"])
    }

    private func makeReceiver(
        of store: MemoryStore, _ time: VirtualTime, settings: WebhookSchedule.Settings = .init(),
        counters: WebhookCounters = WebhookCounters(), log: Log = .silent
    ) -> WebhookReceiver {
        WebhookReceiver(
            url: url, outbox: store.outbox, transport: NoTransport(),
            signature: WebhookSignature(secret: Secret("s")), settings: settings, counters: counters,
            log: log, now: { time.now })
    }

    /// A store with one event of each stream for the receiver.
    private func makeStore(with streams: [String]) async throws -> MemoryStore {
        let store = MemoryStore()
        try await store.outbox.setReceivers([url])
        for name in streams {
            var commit = StreamCommit(stream: try #require(StreamID(name)), basis: 0, records: [[0]])
            commit.listing = StreamListing(stream: commit.stream, state: "", host: "", createdAt: 0)
            commit.events = [OutboxEvent(id: "of \(name)", type: "t", committedAt: 1_000_000, body: [])]
            try await store.commit(commit)
        }
        return store
    }

    @Test(arguments: [200, 410, 500, nil])
    func `that is gone has nothing left, whatever it says to what is under way`(status: Int?) async throws {
        let store = try await makeStore(with: ["a", "b", "c", "d", "e", "f"])
        let counters = WebhookCounters()
        let receiver = makeReceiver(of: store, VirtualTime(), counters: counters)
        let sent = await receiver.step()
        #expect(sent.map(\.event.id) == ["of a", "of b", "of c", "of d"])
        await receiver.finish(sent[1], with: .status(410, retryAfter: nil))
        #expect(await receiver.step() == [])
        #expect(store.statistics.waitingEvents == 0)
        for delivery in [sent[0], sent[2], sent[3]] {
            let answer = status.map { WebhookAnswer.status($0, retryAfter: nil) } ?? .unreachable("down")
            await receiver.finish(delivery, with: answer)
            #expect(await receiver.step() == [])
        }
        #expect(await receiver.deadline == nil)
        #expect(counters.copy.delivered == (status == 200 ? 3 : 0))
        // Nothing more is kept for it.
        var commit = StreamCommit(stream: sent[0].stream, basis: 1, records: [[0]])
        commit.events = [OutboxEvent(id: "late", type: "t", committedAt: 0, body: [])]
        try await store.commit(commit)
        #expect(store.statistics.waitingEvents == 0)
        #expect(await receiver.step() == [])
    }

    @Test func `is complained of once for each event, and once when that is given up`() async throws {
        let store = try await makeStore(with: ["a"])
        let lines = Mutex<[String]>([])
        let log = Log(level: .debug) { entry in
            lines.withLock { $0.append("\(entry.level.rawValue) \(entry.event)") }
        }
        var settings = WebhookSchedule.Settings()
        settings.patience = 20_000
        let time = VirtualTime()
        let receiver = makeReceiver(of: store, time, settings: settings, log: log)
        var attempts = 0
        while store.statistics.waitingEvents > 0 {
            attempts += 1
            try #require(attempts < 20)
            let sent = await receiver.step()
            #expect(sent.map(\.attempts) == [attempts - 1])
            for delivery in sent { await receiver.finish(delivery, with: .status(500, retryAfter: nil)) }
            #expect(await receiver.step() == [])
            if let deadline = await receiver.deadline { time.move(to: deadline) }
        }
        // Waits of 1, 2, 4, 8 and 16 seconds, or up to half less: the fifth or sixth goes beyond 20 in all.
        #expect((5...6).contains(attempts))
        let expected =
            ["warning webhook.failed"] + Array(repeating: "debug webhook.failed", count: attempts - 2)
            + ["error webhook.dropped"]
        #expect(lines.withLock { $0 } == expected)
    }

    /// printf '1700000000.\0\377\n\r' | openssl dgst -sha256 -hmac 'a secret of webhooks', and so on.
    @Test(
        arguments: [
            ([], 0, "be0ddd8384a1f47d6a8597fd2a0da787c82d9566eb75d1e5a71358b56b5dedf6"),
            ([], 1_700_000_000, "590aed4fb7846f2c63475c2ba6a0f48153d5ba148ba874afeea82f7eeeae1885"),
            (
                [0, 255, 10, 13], 1_700_000_000,
                "1267b037e02f0e35063718b27a66977ca24a660d7e2e5ae7a2eb80344fd985a3"
            ),
        ] as [([UInt8], Int64, String)])
    func `knows a signature of any bytes`(body: [UInt8], seconds: Int64, code: String) {
        let signature = WebhookSignature(secret: Secret("a secret of webhooks"))
        #expect(signature.value(for: body, at: seconds) == "t=\(seconds),v1=\(code)")
    }

    @Test func `knows a signature made elsewhere`() {
        // printf '1700000000.{"id":"evt_1"}' | openssl dgst -sha256 -hmac 'a secret of webhooks'
        let signature = WebhookSignature(secret: Secret("a secret of webhooks"))
        #expect(
            signature.value(for: Array(#"{"id":"evt_1"}"#.utf8), at: 1_700_000_000)
                == "t=1700000000,v1=3d5a881a66c3d0cad36328235b9db319ae25afd332ab57f856e44b362b8186fe")
    }

    @Test func `has a URL of HTTP`() {
        for text in ["http://a.example", "https://u:p@a.example:8443/hook?key=1", "http://[::1]:9/x"] {
            #expect(WebhookURL.checked(text) == text)
        }
        for text in [
            "", "a.example/hook", "ftp://a.example/", "http://", "file:///etc/passwd", "http://a b/",
        ] {
            #expect(WebhookURL.checked(text) == nil)
        }
        #expect(WebhookURL.shown("https://u:p@a.example:8443/hook?key=1") == "https://a.example:8443/hook")
    }
}
