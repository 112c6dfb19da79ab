import Base
import Store
import Synchronization

/// Asks one receiver about comments before anybody is shown them, and waits no longer than it may.
///
/// `200` to `299` lets a comment be shown, `403` keeps it away; for all else, and without an answer in time, what the
/// operator said counts. No more are asked about at once than `limit`, and of one stream than `streamLimit`, so that a
/// receiver that is slow or dead costs nobody anything but that time.
package final class ReviewHook: Sendable {
    /// What counts where the receiver says nothing of it.
    package enum Fallback: String, Sendable, CaseIterable {
        case allow, deny
    }

    /// What became of questions, for metrics.
    package struct Counters: Sendable, Equatable {
        package var allowed: UInt64 = 0
        package var denied: UInt64 = 0
        /// Without an answer in time.
        package var late: UInt64 = 0
        /// The receiver could not be reached, or said something else.
        package var failed: UInt64 = 0
        /// Not asked at all: as many questions as may be were under way.
        package var skipped: UInt64 = 0
        /// Now, those included that nobody waits for any more.
        package var underWay = 0
    }

    private struct State {
        var counters = Counters()
        /// By stream.
        var underWay: [String: Int] = [:]
        /// Whether the last question was in vain.
        var isFailing = false
    }

    /// From a comment to what counts.
    package static let timeout = Duration.milliseconds(200)
    /// Questions under way, of all streams.
    package static let limit = 64
    /// Questions under way, of one stream.
    package static let streamLimit = 16
    private let url: String
    private let signature: WebhookSignature
    private let transport: any WebhookTransport
    private let fallback: Fallback
    private let timeout: Duration
    private let log: Log
    private let now: @Sendable () -> Int64
    private let state = Mutex(State())

    /// - Parameters:
    ///   - timeout: another one is for tests.
    ///   - now: milliseconds since 1970.
    package init(
        url: String, secret: Secret<String>, fallback: Fallback, transport: any WebhookTransport,
        timeout: Duration = ReviewHook.timeout, log: Log, now: @escaping @Sendable () -> Int64
    ) {
        self.url = url
        signature = WebhookSignature(secret: secret)
        self.fallback = fallback
        self.transport = transport
        self.timeout = timeout
        self.log = log.subsystem("review")
        self.now = now
    }

    /// For metrics.
    package var counters: Counters { state.withLock { $0.counters } }

    /// A question that is under way.
    struct Question: Sendable {
        fileprivate let verdict: FirstAnswer
        /// Ends once the receiver has answered, or cannot be reached: one that answers too late only frees its place.
        let asking: Task<Void, Never>
    }

    /// Whether what an event tells of may be shown.
    package func ask(_ event: OutboxEvent, of stream: String) async -> Bool {
        guard let question = pose(event, of: stream) else { return fallback == .allow }
        return await answer(to: question)
    }

    /// Begins to ask.
    /// - Returns: nil if as many questions as may be are under way.
    func pose(_ event: OutboxEvent, of stream: String) -> Question? {
        guard begin(stream) else { return nil }
        let verdict = FirstAnswer()
        return Question(
            verdict: verdict,
            asking: Task {
                let answer = await post(event)
                end(stream)
                verdict.complete(answer)
            })
    }

    /// What counts, as soon as it is known, and no later than in the time that a question may take.
    func answer(to question: Question) async -> Bool {
        let waiting = Task { [timeout] in
            // Cancelled once there is an answer.
            do { try await Task.sleep(for: timeout) } catch { return }
            question.verdict.complete(nil)
        }
        let answer = await question.verdict.value()
        waiting.cancel()
        return note(answer)
    }

    private func begin(_ stream: String) -> Bool {
        state.withLock { state in
            let ofStream = state.underWay[stream, default: 0]
            guard state.counters.underWay < Self.limit, ofStream < Self.streamLimit else {
                state.counters.skipped += 1
                return false
            }
            state.counters.underWay += 1
            state.underWay[stream] = ofStream + 1
            return true
        }
    }

    private func end(_ stream: String) {
        state.withLock { state in
            state.counters.underWay -= 1
            let left = state.underWay[stream, default: 1] - 1
            state.underWay[stream] = left > 0 ? left : nil
        }
    }

    private func post(_ event: OutboxEvent) async -> WebhookAnswer {
        let headers = [
            "Content-Type: application/json",
            "\(WebhookSignature.header): \(signature.value(for: event.body, at: now() / 1_000))",
            "Rostrum-Event: \(event.type)", "Rostrum-Delivery: \(event.id)",
        ]
        return await transport.post(to: url, headers: headers, body: event.body)
    }

    /// - Parameter answer: nil for none in time.
    private func note(_ answer: WebhookAnswer?) -> Bool {
        var isShown = fallback == .allow
        let change = state.withLock { state -> Bool? in
            var isInVain = true
            switch answer {
            case nil: state.counters.late += 1
            case .status(200..<300, _):
                state.counters.allowed += 1
                (isShown, isInVain) = (true, false)
            case .status(403, _):
                state.counters.denied += 1
                (isShown, isInVain) = (false, false)
            case .status, .unreachable: state.counters.failed += 1
            }
            guard state.isFailing != isInVain else { return nil }
            state.isFailing = isInVain
            return isInVain
        }
        switch change {
        case true?:
            log.warning(
                "review.failing",
                [
                    "receiver": WebhookURL.shown(url), "reason": reason(answer),
                    "each-comment-counts-as": fallback.rawValue,
                ])
        case false?: log.info("review.back", ["receiver": WebhookURL.shown(url)])
        case nil: break
        }
        return isShown
    }

    private func reason(_ answer: WebhookAnswer?) -> String {
        switch answer {
        case nil: "no answer within \(timeout)"
        case .status(let status, _): "status \(status)"
        case .unreachable(let text): text
        }
    }
}

/// Waits for whichever answer comes first; later ones are nothing to it.
fileprivate final class FirstAnswer: Sendable {
    private enum State {
        case open
        case awaited(CheckedContinuation<WebhookAnswer?, Never>)
        case done(WebhookAnswer?)
    }

    private let state = Mutex(State.open)

    /// - Parameter answer: nil for none in time.
    func complete(_ answer: WebhookAnswer?) {
        let waiter: CheckedContinuation<WebhookAnswer?, Never>? = state.withLock { state in
            if case .done = state { return nil }
            defer { state = .done(answer) }
            if case .awaited(let continuation) = state { return continuation }
            return nil
        }
        waiter?.resume(returning: answer)
    }

    func value() async -> WebhookAnswer? {
        await withCheckedContinuation { continuation in
            let isDone: (WebhookAnswer?)? = state.withLock { state in
                if case .done(let answer) = state { return .some(answer) }
                state = .awaited(continuation)
                return nil
            }
            if case .some(let answer) = isDone { continuation.resume(returning: answer) }
        }
    }
}
