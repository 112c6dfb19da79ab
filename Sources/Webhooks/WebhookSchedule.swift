import Base
import Store

/// Decides what of one receiver's outbox is sent when, and what an answer means; no I/O and no clock.
///
/// At most one event of a lane is under way, so that a stream's events arrive in order. A receiver that cannot be
/// reached is tried with one event at a time until it answers, instead of with every stream's. Times are milliseconds
/// since 1970.
package struct WebhookSchedule: Sendable {
    /// How hard a receiver is tried; times in milliseconds.
    package struct Settings: Sendable, Equatable {
        /// Events under way at once.
        package var concurrency = 4
        /// Before the second attempt; doubles with each further one.
        package var firstDelay: Int64 = 1_000
        /// Between two attempts, whatever the receiver's `Retry-After` says.
        package var longestDelay: Int64 = 600_000
        /// An event that could not be delivered for this long is dropped, so that those after it get their turn.
        package var patience: Int64 = 3 * 24 * 3_600_000

        package init() {}
    }

    /// Its URL.
    package let receiver: String
    private let settings: Settings
    private var underWay: [Int64: Delivery] = [:]
    /// Attempts since the receiver last answered anything.
    private var silences = 0
    private var silentUntil: Int64 = .min
    /// The receiver wants nothing any more (410).
    package private(set) var isOver = false

    package init(receiver: String, settings: Settings = Settings()) {
        self.receiver = receiver
        self.settings = settings
    }

    /// How many due events to look at: those under way are due until they are settled.
    package func demand(at now: Int64) -> Int {
        let free = room(at: now)
        return free == 0 ? 0 : free + underWay.count
    }

    private func room(at now: Int64) -> Int {
        guard !isOver, now >= silentUntil else { return 0 }
        return max((silences == 0 ? settings.concurrency : 1) - underWay.count, 0)
    }

    /// When to look again though nothing happened; nil if only an answer or a new event can change anything.
    package func deadline(at now: Int64) -> Int64? {
        isOver || silentUntil <= now ? nil : silentUntil
    }

    /// Chooses what to send now.
    /// - Parameter due: the heads of lanes that are due, the longest due first.
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

    /// Says what an answer means for the event it answers.
    ///
    /// The event stays under way until `settled`: if the outcome cannot be written, it must not be sent again at once.
    package mutating func take(
        _ answer: WebhookAnswer, to number: Int64, at now: Int64,
        using random: inout some RandomNumberGenerator
    ) -> DeliveryOutcome? {
        guard let delivery = underWay[number] else { return nil }
        switch answer {
        case .status(let status, let retryAfter):
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

    /// The outcome of an event was written, or can no more be.
    package mutating func settled(_ number: Int64) {
        underWay[number] = nil
    }

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

    /// Exponential, and between half and all of it, so that many lanes do not come back in one moment.
    private func delay(after attempts: Int, using random: inout some RandomNumberGenerator) -> Int64 {
        let doublings = min(max(attempts, 0), 30)
        let (grown, overflow) = settings.firstDelay.multipliedReportingOverflow(by: 1 << doublings)
        let whole = max(overflow ? settings.longestDelay : min(grown, settings.longestDelay), 1)
        return whole - Int64(random.next(upperBound: UInt64(whole / 2 + 1)))
    }
}
