import Base
import Foundation
import Store
import Synchronization

/// Delivers one receiver's webhooks: asks the outbox, posts, and writes down what became of it.
///
/// Receivers have nothing in common but the outbox, so that one which is slow or down holds up no other.
actor WebhookReceiver {
    private let outbox: any Outbox
    private let transport: any WebhookTransport
    private let signature: WebhookSignature
    private let counters: WebhookCounters
    private let log: Log
    private let now: @Sendable () -> Int64
    private let url: String
    private var schedule: WebhookSchedule
    private var random = SystemRandomNumberGenerator()
    private var answers: [(delivery: Delivery, answer: WebhookAnswer)] = []
    /// Outcomes that the outbox has not taken yet.
    private var outcomes: [(number: Int64, outcome: DeliveryOutcome)] = []
    /// When to look again though nobody wakes; nil for never.
    private(set) var deadline: Int64?
    private var timer: Task<Void, Never>?
    private let wakes: AsyncStream<Void>
    private let waker: AsyncStream<Void>.Continuation

    /// Milliseconds until the outbox is asked again after it refused.
    private static let storeDelay: Int64 = 1_000

    init(
        url: String, outbox: any Outbox, transport: any WebhookTransport, signature: WebhookSignature,
        settings: WebhookSchedule.Settings, counters: WebhookCounters, log: Log,
        now: @escaping @Sendable () -> Int64
    ) {
        self.url = url
        self.outbox = outbox
        self.transport = transport
        self.signature = signature
        self.counters = counters
        self.log = log
        self.now = now
        schedule = WebhookSchedule(receiver: url, settings: settings)
        (wakes, waker) = AsyncStream.makeStream(of: Void.self, bufferingPolicy: .bufferingNewest(1))
    }

    /// There may be something new in the outbox.
    nonisolated func wake() {
        waker.yield()
    }

    /// Delivers until the task is cancelled.
    func run() async {
        wake()
        await withDiscardingTaskGroup { group in
            for await _ in wakes {
                for delivery in await step() {
                    group.addTask { await self.deliver(delivery) }
                }
                setTimer()
            }
            timer?.cancel()
            group.cancelAll()
        }
    }

    /// Takes the answers that have come, and chooses what to send next.
    ///
    /// Only one at a time: what the outbox says is due must still be true when the schedule chooses.
    func step() async -> [Delivery] {
        let time = now()
        for (delivery, answer) in answers { take(answer, to: delivery, at: time) }
        answers = []
        do throws(StoreError) {
            if !outcomes.isEmpty {
                let settled = outcomes
                try await outbox.settle(settled.map(\.outcome))
                for (number, _) in settled { schedule.settled(number) }
                outcomes.removeFirst(settled.count)
            }
            let demand = schedule.demand(at: time)
            let due = demand == 0 ? [] : try await outbox.due(for: url, at: time, limit: demand)
            let next = try await outbox.nextDue(for: url, after: time)
            deadline = [schedule.deadline(at: time), next].compactMap { $0 }.min()
            return schedule.begin(due, at: time)
        } catch {
            // Busy or a full disk: what is under way stays so, and nothing is sent twice.
            deadline = error == .closed ? nil : time + Self.storeDelay
            return []
        }
    }

    func finish(_ delivery: Delivery, with answer: WebhookAnswer) {
        answers.append((delivery, answer))
        wake()
    }

    private func deliver(_ delivery: Delivery) async {
        let signed = signature.value(for: delivery.event.body, at: now() / 1_000)
        let headers = [
            "Content-Type: application/json", "\(WebhookSignature.header): \(signed)",
            "Rostrum-Event: \(delivery.event.type)", "Rostrum-Delivery: \(delivery.event.id)",
        ]
        let answer = await transport.post(to: url, headers: headers, body: delivery.event.body)
        guard !Task.isCancelled else { return }
        finish(delivery, with: answer)
    }

    private func take(_ answer: WebhookAnswer, to delivery: Delivery, at time: Int64) {
        guard let outcome = schedule.take(answer, to: delivery.number, at: time, using: &random) else {
            return
        }
        outcomes.append((delivery.number, outcome))
        counters.note(outcome)
        switch outcome {
        case .delivered: break
        case .failed where delivery.attempts == 0:
            log.warning("webhook.failed", fields(delivery, answer))
        case .failed: log.debug("webhook.failed", fields(delivery, answer))
        case .dropped: log.error("webhook.dropped", fields(delivery, answer))
        case .gone: log.error("webhook.gone", fields(delivery, answer))
        }
    }

    private func fields(
        _ delivery: Delivery, _ answer: WebhookAnswer
    ) -> KeyValuePairs<String, any CustomStringConvertible> {
        let reason =
            switch answer {
            case .status(let status, _): "status \(status)"
            case .unreachable(let text): text
            }
        return [
            "receiver": WebhookURL.shown(url), "stream": delivery.stream, "type": delivery.event.type,
            "attempt": delivery.attempts + 1, "reason": reason,
        ]
    }

    private func setTimer() {
        timer?.cancel()
        guard let deadline else { return }
        // Looks at the clock again now and then, as somebody may set it.
        let milliseconds = min(max(deadline - now(), 1), 60_000)
        let waker = waker
        timer = Task {
            do { try await Task.sleep(for: .milliseconds(milliseconds)) } catch { return }
            waker.yield()
        }
    }
}

/// What became of attempts, for metrics.
package final class WebhookCounters: Sendable {
    /// Totals since the start, over all receivers.
    package struct Values: Sendable, Equatable {
        /// Events that were answered with a 2xx.
        package var delivered: UInt64 = 0
        /// Attempts that failed and are repeated.
        package var failed: UInt64 = 0
        /// Events given up after the last attempt.
        package var dropped: UInt64 = 0
        /// Receivers that wanted nothing any more.
        package var gone: UInt64 = 0
    }

    private let values = Mutex(Values())

    package init() {}

    /// For metrics; the receivers go on counting.
    package var copy: Values { values.withLock { $0 } }

    func note(_ outcome: DeliveryOutcome) {
        values.withLock { values in
            switch outcome {
            case .delivered: values.delivered += 1
            case .failed: values.failed += 1
            case .dropped: values.dropped += 1
            case .gone: values.gone += 1
            }
        }
    }
}
