import Base
import Store
import Synchronization
import Testing

@testable import Webhooks

private let url = "http://receiver.example/"

/// Never used: these tests answer in the transport's place.
private struct NoTransport: WebhookTransport {
    func post(to url: String, headers: [String], body: [UInt8]) async -> WebhookAnswer { .unreachable("") }
}

/// An outbox in memory whose calls fail as the test wants, one kind of call at a time.
private final class FaultyOutbox: Outbox {
    enum Part: Sendable { case due, nextDue, settle }

    let store = MemoryStore()
    private let faults = Mutex<[Part: StoreError]>([:])
    private let settled = Mutex<[[DeliveryOutcome]]>([])
    var changes: AsyncStream<Void> { store.changes }
    /// What was written, by call.
    var written: [[DeliveryOutcome]] { settled.withLock { $0 } }

    func fail(_ part: Part, with error: StoreError?) {
        faults.withLock { $0[part] = error }
    }

    private func check(_ part: Part) throws(StoreError) {
        if let error = faults.withLock({ $0[part] }) { throw error }
    }

    func setReceivers(_ receivers: [String]) async throws(StoreError) {
        try await store.setReceivers(receivers)
    }

    func due(for receiver: String, at now: Int64, limit: Int) async throws(StoreError) -> [Delivery] {
        try check(.due)
        return try await store.due(for: receiver, at: now, limit: limit)
    }

    func nextDue(for receiver: String, after now: Int64) async throws(StoreError) -> Int64? {
        try check(.nextDue)
        return try await store.nextDue(for: receiver, after: now)
    }

    func settle(_ outcomes: [DeliveryOutcome]) async throws(StoreError) {
        try check(.settle)
        settled.withLock { $0.append(outcomes) }
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
    func move(by milliseconds: Int64) { time.withLock { $0 += milliseconds } }
}

@Suite struct `A webhook receiver with a store that fails` {
    private let outbox = FaultyOutbox()
    private let time = VirtualTime()
    private let counters = WebhookCounters()

    /// A receiver, and two events of each stream for it.
    private func makeReceiver(_ streams: [String]) async throws -> WebhookReceiver {
        try await outbox.setReceivers([url])
        for name in streams {
            var commit = StreamCommit(stream: try #require(StreamID(name)), basis: 0, records: [[0]])
            commit.listing = StreamListing(stream: commit.stream, state: "", host: "", createdAt: 0)
            commit.events = [1, 2].map { number in
                OutboxEvent(id: "\(name)\(number)", type: "t", committedAt: 1_000_000, body: [])
            }
            try await outbox.store.commit(commit)
        }
        let time = time
        return WebhookReceiver(
            url: url, outbox: outbox, transport: NoTransport(),
            signature: WebhookSignature(secret: Secret("s")), settings: WebhookSchedule.Settings(),
            counters: counters, log: .silent, now: { time.now })
    }

    /// Nothing was marked as under way, so nothing is lost and nothing is sent twice.
    @Test(arguments: [StoreError.busy, .unavailable("the disk is broken")])
    func `sends everything once when it can read it again`(error: StoreError) async throws {
        let receiver = try await makeReceiver(["a", "b"])
        for part in [FaultyOutbox.Part.due, .nextDue] {
            outbox.fail(part, with: error)
            #expect(await receiver.step() == [])
            let later = time.now + 1_000
            #expect(await receiver.deadline == later)
            outbox.fail(part, with: nil)
            time.move(by: 1_000)
        }
        let sent = await receiver.step()
        #expect(sent.map(\.event.id) == ["a1", "b1"])
        #expect(await receiver.step() == [])
    }

    @Test(arguments: [false, true])
    func `does not wake again for a store that is closed`(isLater: Bool) async throws {
        let receiver = try await makeReceiver(["a"])
        outbox.fail(isLater ? .nextDue : .due, with: .closed)
        #expect(await receiver.step() == [])
        #expect(await receiver.deadline == nil)
    }

    /// Answers that come meanwhile wait with the first, and all are written in one call.
    @Test func `keeps the outcomes that it could not write, in their order`() async throws {
        let receiver = try await makeReceiver(["a", "b", "c"])
        let sent = await receiver.step()
        try #require(sent.map(\.event.id) == ["a1", "b1", "c1"])
        outbox.fail(.settle, with: .busy)
        for delivery in sent {
            await receiver.finish(delivery, with: .status(204, retryAfter: nil))
            #expect(await receiver.step() == [])
        }
        #expect(outbox.written.isEmpty)
        outbox.fail(.settle, with: nil)
        let next = await receiver.step()
        #expect(next.map(\.event.id) == ["a2", "b2", "c2"])
        let expected = [sent.map { DeliveryOutcome.delivered($0.number) }]
        #expect(outbox.written == expected)
        // Counted once each, however often they were written in vain.
        #expect(counters.copy == WebhookCounters.Values(delivered: 3, failed: 0, dropped: 0, gone: 0))
    }

    /// The outcome is written; that the read behind it fails must not write it again.
    @Test(arguments: [false, true])
    func `writes no outcome twice where the read after it fails`(isLater: Bool) async throws {
        let part = isLater ? FaultyOutbox.Part.nextDue : .due
        let receiver = try await makeReceiver(["a"])
        let sent = try #require(await receiver.step().first)
        await receiver.finish(sent, with: .status(200, retryAfter: nil))
        outbox.fail(part, with: .busy)
        #expect(await receiver.step() == [])
        outbox.fail(part, with: nil)
        let next = await receiver.step()
        #expect(next.map(\.event.id) == ["a2"])
        let expected: [[DeliveryOutcome]] = [[.delivered(sent.number)]]
        #expect(outbox.written == expected)
    }

    @Test func `wakes for the event that may be tried again first`() async throws {
        let receiver = try await makeReceiver(["a", "b"])
        let sent = await receiver.step()
        try #require(sent.count == 2)
        let (first, second) = (time.now + 30_000, time.now + 90_000)
        await receiver.finish(sent[0], with: .status(429, retryAfter: 90_000))
        await receiver.finish(sent[1], with: .status(503, retryAfter: 30_000))
        #expect(await receiver.step() == [])
        #expect(await receiver.deadline == first)
        time.move(by: 29_999)
        #expect(await receiver.step() == [])
        time.move(by: 1)
        let again = await receiver.step()
        #expect(again.map(\.event.id) == ["b1"])
        #expect(again.map(\.attempts) == [1])
        #expect(await receiver.deadline == second)
    }
}
