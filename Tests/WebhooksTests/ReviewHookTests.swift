import Base
import Foundation
import Store
import Synchronization
import TestSupport
import Testing

@testable import Webhooks

/// Answers when, and what, the test says.
private final class HeldTransport: WebhookTransport {
    struct State: Sendable {
        var waiting: [CheckedContinuation<WebhookAnswer, Never>] = []
        var headers: [[String]] = []
    }

    let state = Watched(State())

    func post(to url: String, headers: [String], body: [UInt8]) async -> WebhookAnswer {
        await withCheckedContinuation { continuation in
            state.change { state in
                state.waiting.append(continuation)
                state.headers.append(headers)
            }
        }
    }

    func answer(_ answer: WebhookAnswer) async throws {
        try await state.wait { !$0.waiting.isEmpty }
        state.change { $0.waiting.removeFirst() }.resume(returning: answer)
    }
}

@Suite(.timeLimit(.minutes(10))) struct `A review webhook` {
    private let transport = HeldTransport()
    private let event = OutboxEvent(id: "e1", type: "comment.review", committedAt: 0, body: Array("{}".utf8))
    /// Which no test waits for.
    private static let never = Duration.seconds(3_600)

    private func hook(
        _ fallback: ReviewHook.Fallback = .allow, timeout: Duration = Self.never
    ) -> ReviewHook {
        ReviewHook(
            url: "http://receiver.example/", secret: Secret("s"), fallback: fallback, transport: transport,
            timeout: timeout, log: .silent, now: { 1_000_000 })
    }

    private func ask(_ hook: ReviewHook, of stream: String = "talk") -> Task<Bool, Never> {
        Task { [event] in await hook.ask(event, of: stream) }
    }

    @Test(arguments: ReviewHook.Fallback.allCases)
    func `says by its status what may be shown, or the default counts`(fallback: ReviewHook.Fallback)
        async throws
    {
        let hook = hook(fallback)
        for (answer, verdict) in [
            (WebhookAnswer.status(200, retryAfter: nil), true), (.status(204, retryAfter: nil), true),
            (.status(403, retryAfter: nil), false), (.status(302, retryAfter: nil), fallback == .allow),
            (.status(500, retryAfter: 5), fallback == .allow), (.unreachable("refused"), fallback == .allow),
        ] {
            let question = ask(hook)
            try await transport.answer(answer)
            #expect(await question.value == verdict)
        }
        let counters = hook.counters
        #expect((counters.allowed, counters.denied, counters.failed) == (2, 1, 3))
        let headers = try #require(transport.state.value.headers.first)
        let signature = WebhookSignature(secret: Secret("s")).value(for: event.body, at: 1_000)
        #expect(headers.contains("Rostrum-Signature: \(signature)"))
        #expect(headers.contains("Rostrum-Event: comment.review") && headers.contains("Rostrum-Delivery: e1"))
    }

    @Test(arguments: ReviewHook.Fallback.allCases)
    func `is not waited for any longer than it may take`(fallback: ReviewHook.Fallback) async throws {
        let hook = hook(fallback, timeout: .milliseconds(20))
        let question = try #require(hook.pose(event, of: "talk"))
        #expect(await hook.answer(to: question) == (fallback == .allow))
        #expect(hook.counters.late == 1 && hook.counters.underWay == 1, "its place is not free yet")
        try await transport.answer(.status(403, retryAfter: nil))
        await question.asking.value
        #expect(hook.counters.underWay == 0)
        #expect(hook.counters.denied == 0, "what comes too late counts for nothing")
    }

    @Test func `is asked no more than it may be, in all and by one stream`() async throws {
        let hook = hook(.deny)
        var questions = (0..<ReviewHook.streamLimit).map { _ in ask(hook) }
        try await transport.state.wait { $0.waiting.count == ReviewHook.streamLimit }
        #expect(await hook.ask(event, of: "talk") == false, "the default, at once")
        for number in 0..<ReviewHook.limit - ReviewHook.streamLimit {
            questions.append(ask(hook, of: "s\(number)"))
        }
        try await transport.state.wait { $0.waiting.count == ReviewHook.limit }
        #expect(await hook.ask(event, of: "quiz") == false)
        #expect(hook.counters.skipped == 2 && hook.counters.underWay == ReviewHook.limit)
        for _ in questions { try await transport.answer(.status(200, retryAfter: nil)) }
        for question in questions { #expect(await question.value) }
        // Before those who asked hear of it.
        #expect(hook.counters.underWay == 0)
        let next = ask(hook)
        try await transport.answer(.status(200, retryAfter: nil))
        #expect(await next.value, "places are free again")
    }

    /// The first of many comments tells an operator that the receiver fails; the others only count.
    @Test func `says once that it fails, and once that it is back`() async throws {
        let lines = Mutex<[String]>([])
        let hook = ReviewHook(
            url: "http://user:word@receiver.example/hook?key=1", secret: Secret("s"), fallback: .deny,
            transport: transport, timeout: Self.never,
            log: Log(level: .info) { entry in lines.withLock { $0.append(entry.text) } }, now: { 0 })
        let failing = "warning review review.failing receiver=http://receiver.example/hook"
        let back = "info review review.back receiver=http://receiver.example/hook"
        let steps: [(WebhookAnswer, [String])] = [
            (.status(200, retryAfter: nil), []),
            (
                .status(500, retryAfter: nil),
                [#"\#(failing) reason="status 500" each-comment-counts-as=deny"#]
            ),
            (.unreachable("refused"), []), (.status(404, retryAfter: nil), []),
            // That it withholds a comment shows that it is there.
            (.status(403, retryAfter: nil), [back]), (.status(200, retryAfter: nil), []),
            (.unreachable("refused"), ["\(failing) reason=refused each-comment-counts-as=deny"]),
        ]
        var said: [String] = []
        for (answer, more) in steps {
            let question = ask(hook)
            try await transport.answer(answer)
            _ = await question.value
            said += more
            #expect(lines.withLock { $0 } == said)
        }
    }

    @Test func `that nobody listens at costs no more than its time, with real sockets`() async throws {
        let poster = HTTPPoster(timeout: ReviewHook.timeout)
        defer { poster.close() }
        let hook = ReviewHook(
            url: "http://127.0.0.1:9/", secret: Secret("s"), fallback: .allow, transport: poster,
            timeout: Self.never, log: .silent, now: { 1_000_000 })
        #expect(await hook.ask(event, of: "talk"))
        #expect(hook.counters.failed == 1 && hook.counters.underWay == 0)
    }
}
