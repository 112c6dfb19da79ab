import Base
import Foundation
import Store
import Synchronization

/// Delivers one receiver's webhooks: reads the outbox, posts events and stores the outcomes.
///
/// Receivers share only the outbox, so a slow or unreachable one does not delay the others. What is sent when is
/// decided by `WebhookSchedule`; this actor does the I/O.
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
    /// Answers that the next step has to process.
    private var answers: [(delivery: Delivery, answer: WebhookAnswer)] = []
    /// Outcomes that the outbox has not stored yet; kept while the store fails.
    private var outcomes: [(number: Int64, outcome: DeliveryOutcome)] = []
    /// When to run the next step without a wake-up, in milliseconds since 1970; nil for never.
    private(set) var deadline: Int64?
    private var timer: Task<Void, Never>?
    /// Wake-ups; several before a step count as one.
    private let wakes: AsyncStream<Void>
    private let waker: AsyncStream<Void>.Continuation

    /// Milliseconds before the outbox is tried again after an error.
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

    /// Requests a step, because the outbox may have new events or an answer has arrived.
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

    /// Processes the answers received so far and chooses the events to send next.
    ///
    /// Steps must not overlap: what the outbox reports as due must still hold when the schedule chooses.
    func step() async -> [Delivery] {
        let time = now()
        for (delivery, answer) in answers { take(answer, to: delivery, at: time) }
        answers = []
        do throws(StoreError) {
            // Outcomes are stored before the outbox is read, so that a settled event is not reported as due again.
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
            // A busy store or a full disk: events stay marked as under way, so that none is sent twice.
            deadline = error == .closed ? nil : time + Self.storeDelay
            return []
        }
    }

    /// Queues an answer for the next step.
    func finish(_ delivery: Delivery, with answer: WebhookAnswer) {
        answers.append((delivery, answer))
        wake()
    }

    /// Posts one event, signed at the time of sending so that each attempt is fresh to the receiver.
    private func deliver(_ delivery: Delivery) async {
        let signed = signature.value(for: delivery.event.body, at: now() / 1_000)
        let headers = [
            "Content-Type: application/json", "\(WebhookSignature.header): \(signed)",
            "Rostrum-Event: \(delivery.event.type)", "Rostrum-Delivery: \(delivery.event.id)",
        ]
        let answer = await transport.post(to: url, headers: headers, body: delivery.event.body)
        // The server is stopping: the event stays in the outbox and is delivered after the restart.
        guard !Task.isCancelled else { return }
        finish(delivery, with: answer)
    }

    /// Turns an answer into an outcome, counts it and logs it.
    private func take(_ answer: WebhookAnswer, to delivery: Delivery, at time: Int64) {
        guard let outcome = schedule.take(answer, to: delivery.number, at: time, using: &random) else {
            return
        }
        outcomes.append((delivery.number, outcome))
        counters.note(outcome)
        switch outcome {
        case .delivered: break
        // One warning per event: further failed attempts are logged for debugging only.
        case .failed where delivery.attempts == 0:
            log.warning("webhook.failed", fields(delivery, answer))
        case .failed: log.debug("webhook.failed", fields(delivery, answer))
        case .dropped: log.error("webhook.dropped", fields(delivery, answer))
        case .gone: log.error("webhook.gone", fields(delivery, answer))
        }
    }

    /// Fields of a log line; the receiver's URL without its secrets.
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

    /// Starts the timer for `deadline`, replacing an earlier one.
    private func setTimer() {
        timer?.cancel()
        guard let deadline else { return }
        // At least once a minute, because the wall clock may be set meanwhile.
        let milliseconds = min(max(deadline - now(), 1), 60_000)
        let waker = waker
        timer = Task {
            do { try await Task.sleep(for: .milliseconds(milliseconds)) } catch { return }
            waker.yield()
        }
    }
}

/// Outcomes of attempts, for metrics.
package final class WebhookCounters: Sendable {
    /// Totals since the start, over all receivers.
    package struct Values: Sendable, Equatable {
        /// Events answered with 2xx.
        package var delivered: UInt64 = 0
        /// Failed attempts that will be repeated.
        package var failed: UInt64 = 0
        /// Events dropped because they could not be delivered in time.
        package var dropped: UInt64 = 0
        /// Receivers that unsubscribed by answering 410.
        package var gone: UInt64 = 0
    }

    private let values = Mutex(Values())

    package init() {}

    /// A copy for metrics.
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
