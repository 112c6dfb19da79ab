import Base
import Store
import Synchronization

/// Asks a receiver about each comment before it is shown, with a short timeout.
///
/// A status of 200 to 299 lets the comment be shown, 403 withholds it. For any other result, or none in time, the
/// operator's fallback applies. At most `limit` questions are under way, and `streamLimit` of one stream, so that a
/// slow or dead receiver delays a comment by the timeout at most and one stream cannot take all places.
package final class ReviewHook: Sendable {
    /// Verdict on a comment if the receiver gives none.
    package enum Fallback: String, Sendable, CaseIterable {
        case allow, deny
    }

    /// Outcomes of questions, for metrics.
    package struct Counters: Sendable, Equatable {
        /// Answered with 2xx.
        package var allowed: UInt64 = 0
        /// Answered with 403.
        package var denied: UInt64 = 0
        /// Not answered in time.
        package var late: UInt64 = 0
        /// The receiver was unreachable, or answered with another status.
        package var failed: UInt64 = 0
        /// Not asked, because too many questions were under way.
        package var skipped: UInt64 = 0
        /// Under way now, including those that have timed out but still hold a connection.
        package var underWay = 0
    }

    private struct State {
        var counters = Counters()
        /// Questions under way, by stream.
        var underWay: [String: Int] = [:]
        /// Whether the last question got no verdict; a change is logged, not each failure.
        var isFailing = false
    }

    /// Time from a comment to its verdict: short, because the comment is not shown before.
    package static let timeout = Duration.milliseconds(200)
    /// Limit of questions under way, over all streams.
    package static let limit = 64
    /// Limit of questions under way of one stream.
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
    ///   - secret: signs questions, as it signs webhooks.
    ///   - timeout: other values are for tests.
    ///   - now: milliseconds since 1970, for the signature.
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

    /// A copy for metrics.
    package var counters: Counters { state.withLock { $0.counters } }

    /// A question under way.
    struct Question: Sendable {
        fileprivate let verdict: FirstAnswer
        /// Ends when the receiver has answered or is unreachable; a late answer only frees the question's place.
        let asking: Task<Void, Never>
    }

    /// Whether the comment that an event describes may be shown; waits for up to the timeout.
    package func ask(_ event: OutboxEvent, of stream: String) async -> Bool {
        guard let question = pose(event, of: stream) else { return fallback == .allow }
        return await answer(to: question)
    }

    /// Starts a question.
    /// - Returns: nil if a limit is reached.
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

    /// The verdict: the receiver's, or the fallback when the timeout has passed.
    func answer(to question: Question) async -> Bool {
        let waiting = Task { [timeout] in
            // Cancelled when the answer is there.
            do { try await Task.sleep(for: timeout) } catch { return }
            question.verdict.complete(nil)
        }
        let answer = await question.verdict.value()
        waiting.cancel()
        return note(answer)
    }

    /// Takes a place for a question; counts it as skipped if there is none.
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

    /// Frees a question's place.
    private func end(_ stream: String) {
        state.withLock { state in
            state.counters.underWay -= 1
            let left = state.underWay[stream, default: 1] - 1
            state.underWay[stream] = left > 0 ? left : nil
        }
    }

    /// Posts the event with the headers of a webhook, so that one receiver can verify both alike.
    private func post(_ event: OutboxEvent) async -> WebhookAnswer {
        let headers = [
            "Content-Type: application/json",
            "\(WebhookSignature.header): \(signature.value(for: event.body, at: now() / 1_000))",
            "Rostrum-Event: \(event.type)", "Rostrum-Delivery: \(event.id)",
        ]
        return await transport.post(to: url, headers: headers, body: event.body)
    }

    /// - Parameter answer: nil for none in time.
    /// - Returns: whether the comment may be shown.
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

    /// Why a question got no verdict, for the log.
    private func reason(_ answer: WebhookAnswer?) -> String {
        switch answer {
        case nil: "no answer within \(timeout)"
        case .status(let status, _): "status \(status)"
        case .unreachable(let text): text
        }
    }
}

/// A value that is set once, by the receiver's answer or the timeout, whichever is first; later ones are ignored.
///
/// A task group would wait for its slower child; this lets the question go on while its comment is decided.
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

    /// Waits for the value; for one caller only.
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
