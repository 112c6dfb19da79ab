import Base
import Store

/// Decides which events of one receiver are sent when, and what an answer means; no I/O and no clock.
///
/// At most one event per stream (a lane of the outbox) is under way, so that a stream's events arrive in order. An
/// unreachable receiver is tried with one event at a time until it answers, rather than with one of every stream.
/// Times are milliseconds since 1970.
package struct WebhookSchedule: Sendable {
    /// Concurrency and delays of delivery; times in milliseconds.
    package struct Settings: Sendable, Equatable {
        /// Limit of events under way.
        package var concurrency = 4
        /// Delay before the second attempt; doubles with each further one.
        package var firstDelay: Int64 = 1_000
        /// Limit of the delay between two attempts, including the receiver's `Retry-After`: 10 minutes.
        package var longestDelay = OutboxLimits.longestDelay
        /// An undelivered event is dropped at this age, three days, so that the stream's later events can be sent.
        package var patience: Int64 = 3 * 24 * 3_600_000

        package init() {}
    }

    /// The receiver's URL, by which the outbox knows it.
    package let receiver: String
    private let settings: Settings
    /// Events sent and not settled yet, by their number in the outbox.
    private var underWay: [Int64: Delivery] = [:]
    /// Attempts without any response since the receiver last answered.
    private var silences = 0
    /// No event is sent before this time.
    private var silentUntil: Int64 = .min
    /// Whether the receiver has answered 410: nothing is sent to it any more (RFC 9110 §15.5.11).
    package private(set) var isOver = false

    package init(receiver: String, settings: Settings = Settings()) {
        self.receiver = receiver
        self.settings = settings
    }

    /// How many due events to read from the outbox; events under way stay due until settled, so they are added.
    package func demand(at now: Int64) -> Int {
        let free = room(at: now)
        return free == 0 ? 0 : free + underWay.count
    }

    /// How many more events may be sent now.
    private func room(at now: Int64) -> Int {
        guard !isOver, !isSilent(at: now) else { return 0 }
        return max((silences == 0 ? settings.concurrency : 1) - underWay.count, 0)
    }

    /// When to call `begin` again without an event; nil if only an answer or a new event can change anything.
    package func deadline(at now: Int64) -> Int64? {
        isOver || !isSilent(at: now) ? nil : silentUntil
    }

    /// Whether nothing is sent because the receiver was unreachable.
    ///
    /// A time further away than any delay is from before the clock was set back, and counts as passed.
    private func isSilent(at now: Int64) -> Bool {
        now < silentUntil && silentUntil &- settings.longestDelay <= now
    }

    /// Chooses the events to send now and marks them as under way.
    /// - Parameter due: the oldest undelivered event of each stream whose time has come, longest due first.
    package mutating func begin(_ due: [Delivery], at now: Int64) -> [Delivery] {
        var chosen: [Delivery] = []
        for delivery in due where room(at: now) > 0 {
            let isBusy = underWay.values.contains { $0.stream == delivery.stream }
            guard !isBusy, delivery.receiver == receiver else { continue }
            underWay[delivery.number] = delivery
            chosen.append(delivery)
        }
        return chosen
    }

    /// Turns an answer into the outcome for its event.
    ///
    /// The event stays under way until `settled`: while its outcome cannot be stored, it must not be sent again.
    /// - Parameter number: of the event in the outbox.
    /// - Returns: nil if the event is not under way.
    package mutating func take(
        _ answer: WebhookAnswer, to number: Int64, at now: Int64,
        using random: inout some RandomNumberGenerator
    ) -> DeliveryOutcome? {
        guard let delivery = underWay[number] else { return nil }
        switch answer {
        case .status(let status, let retryAfter):
            // Any status shows that the receiver is up, even if it refuses this event.
            silences = 0
            silentUntil = .min
            if 200..<300 ~= status { return .delivered(number) }
            if status == 410 {
                isOver = true
                return .gone(receiver)
            }
            return retry(delivery, at: now, notBefore: retryAfter, using: &random)
        case .unreachable:
            silentUntil = now &+ delay(after: silences, using: &random)
            silences += 1
            return retry(delivery, at: now, notBefore: nil, using: &random)
        }
    }

    /// Ends an event, because its outcome has been stored or can no longer be.
    package mutating func settled(_ number: Int64) {
        underWay[number] = nil
    }

    /// Schedules the next attempt, or drops the event if that would be beyond `patience`.
    private func retry(
        _ delivery: Delivery, at now: Int64, notBefore wish: Int64?,
        using random: inout some RandomNumberGenerator
    ) -> DeliveryOutcome {
        let wait = max(
            delay(after: delivery.attempts, using: &random), min(max(wish ?? 0, 0), settings.longestDelay))
        let next = now &+ wait
        guard next &- delivery.event.committedAt < settings.patience else {
            return .dropped(delivery.number)
        }
        return .failed(delivery.number, nextAttemptAt: next)
    }

    /// Exponential backoff with jitter: between half and all of the delay, so that many streams do not retry in one
    /// moment.
    private func delay(after attempts: Int, using random: inout some RandomNumberGenerator) -> Int64 {
        let doublings = min(max(attempts, 0), 30)
        let (grown, overflow) = settings.firstDelay.multipliedReportingOverflow(by: 1 << doublings)
        let whole = max(overflow ? settings.longestDelay : min(grown, settings.longestDelay), 1)
        return whole - Int64(random.next(upperBound: UInt64(whole / 2 + 1)))
    }
}
