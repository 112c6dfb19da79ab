import Base
import Store
import TestSupport
import Testing

@testable import Webhooks

private let receiver = "http://receiver.example/"

private func delivery(_ number: Int64, _ name: String, attempts: Int = 0, committedAt: Int64 = 0) -> Delivery
{
    guard let stream = StreamID(name) else { preconditionFailure("\(name) names no stream") }
    return Delivery(
        number: number, receiver: receiver, stream: stream,
        event: OutboxEvent(id: "e\(number)", type: "stream.live", committedAt: committedAt, body: []),
        attempts: attempts)
}

@Suite struct `A webhook schedule` {
    private var schedule = WebhookSchedule(receiver: receiver)
    private var random = SeededGenerator(seed: 1)

    @Test mutating func `sends as many as it may, one of each stream`() {
        let due = ["a", "b", "a", "c", "d", "e"].enumerated().map { delivery(Int64($0), $1) }
        #expect(schedule.demand(at: 0) == 4)
        #expect(schedule.begin(due, at: 0).map(\.number) == [0, 1, 3, 4])
        #expect(schedule.demand(at: 0) == 0)
        #expect(schedule.begin(due, at: 0) == [])
    }

    @Test mutating func `sends nothing of a stream until the outcome is written`() {
        _ = schedule.begin([delivery(1, "a")], at: 0)
        #expect(schedule.take(.status(204, retryAfter: nil), to: 1, at: 5, using: &random) == .delivered(1))
        #expect(schedule.begin([delivery(1, "a")], at: 5) == [])
        schedule.settled(1)
        #expect(schedule.begin([delivery(2, "a")], at: 5).map(\.number) == [2])
    }

    @Test mutating func `takes no answer to what it did not send`() {
        #expect(schedule.take(.status(200, retryAfter: nil), to: 7, at: 0, using: &random) == nil)
    }

    @Test(arguments: [301, 400, 404, 408, 429, 500, 503, 599])
    mutating func `tries again after a refusal, later each time`(_ status: Int) throws {
        var longest: Int64 = 0
        for attempts in 0..<40 {
            _ = schedule.begin([delivery(1, "a", attempts: attempts, committedAt: 1_000)], at: 1_000)
            let outcome = schedule.take(
                .status(status, retryAfter: nil), to: 1, at: 1_000, using: &random)
            guard case .failed(1, let next) = outcome else {
                Issue.record("\(String(describing: outcome))")
                return
            }
            let whole = min(Int64(1_000) << min(attempts, 20), 600_000)
            #expect((whole / 2)...whole ~= next - 1_000)
            longest = max(longest, next - 1_000)
            schedule.settled(1)
            // Others are not held up.
            #expect(schedule.demand(at: 1_000) == 4)
        }
        #expect(longest > 300_000)
    }

    @Test mutating func `waits as long as the receiver asks, within reason`() {
        _ = schedule.begin([delivery(1, "a"), delivery(2, "b")], at: 0)
        #expect(
            schedule.take(.status(503, retryAfter: 90_000), to: 1, at: 0, using: &random)
                == .failed(1, nextAttemptAt: 90_000))
        #expect(
            schedule.take(.status(429, retryAfter: 86_400_000), to: 2, at: 0, using: &random)
                == .failed(2, nextAttemptAt: 600_000))
    }

    @Test mutating func `gives an event up that could not be delivered for days`() {
        let patience = WebhookSchedule.Settings().patience
        _ = schedule.begin([delivery(1, "a", attempts: 400), delivery(2, "b")], at: patience)
        #expect(
            schedule.take(.status(500, retryAfter: nil), to: 1, at: patience, using: &random) == .dropped(1))
        #expect(schedule.take(.unreachable("down"), to: 2, at: patience, using: &random) == .dropped(2))
    }

    @Test mutating func `tries a receiver that is down with one event at a time`() throws {
        let due = ["a", "b", "c", "d"].enumerated().map { delivery(Int64($0), $1) }
        #expect(schedule.begin(due, at: 0).count == 4)
        for number in 0..<4 as Range<Int64> {
            _ = schedule.take(.unreachable("connection refused"), to: number, at: 0, using: &random)
            schedule.settled(number)
        }
        let deadline = try #require(schedule.deadline(at: 0))
        // The fourth silence in a row: between four and eight seconds.
        #expect(4_000...8_000 ~= deadline)
        #expect(schedule.demand(at: deadline - 1) == 0)
        #expect(schedule.begin(due, at: deadline - 1) == [])
        #expect(schedule.demand(at: deadline) == 1)
        #expect(schedule.begin(due, at: deadline).map(\.number) == [0])
        // Whatever it says, it is there again.
        _ = schedule.take(.status(500, retryAfter: nil), to: 0, at: deadline, using: &random)
        schedule.settled(0)
        #expect(schedule.begin(due, at: deadline).count == 4)
        #expect(schedule.deadline(at: deadline) == nil)
    }

    @Test mutating func `does not stay silent for years when the clock was set back`() {
        let year: Int64 = 365 * 86_400_000
        _ = schedule.begin([delivery(1, "a", committedAt: year)], at: year)
        _ = schedule.take(.unreachable("connection refused"), to: 1, at: year, using: &random)
        schedule.settled(1)
        #expect(schedule.demand(at: year) == 0)
        #expect(schedule.demand(at: 5_000) == 1)
        #expect(schedule.deadline(at: 5_000) == nil)
        #expect(schedule.begin([delivery(1, "a")], at: 5_000).map(\.number) == [1])
    }

    @Test mutating func `sends nothing more to a receiver that is gone`() {
        _ = schedule.begin([delivery(1, "a")], at: 0)
        #expect(schedule.take(.status(410, retryAfter: nil), to: 1, at: 0, using: &random) == .gone(receiver))
        schedule.settled(1)
        #expect(schedule.isOver)
        #expect(schedule.demand(at: .max) == 0)
        #expect(schedule.begin([delivery(2, "b")], at: 9) == [])
        #expect(schedule.deadline(at: 0) == nil)
    }

    @Test mutating func `survives absurd numbers`() {
        _ = schedule.begin([delivery(1, "a", attempts: .max, committedAt: .min)], at: .max)
        _ = schedule.take(.status(500, retryAfter: .min), to: 1, at: .max, using: &random)
        _ = schedule.begin([delivery(2, "b", attempts: .min, committedAt: .max)], at: .min)
        _ = schedule.take(.unreachable(""), to: 2, at: .min, using: &random)
    }
}

/// What holds whatever a receiver answers, and in whatever order.
@Suite struct `A webhook schedule with any answers` {
    private static let names = ["a", "b", "c", "d", "e", "f"]

    @Test(arguments: 0..<40 as Range<UInt64>)
    func `has one event of a stream under way, few in all, and one where nobody answers`(seed: UInt64) {
        var random = SeededGenerator(seed: seed)
        var settings = WebhookSchedule.Settings()
        settings.concurrency = Int.random(in: 1...5, using: &random)
        var schedule = WebhookSchedule(receiver: receiver, settings: settings)
        var now: Int64 = 0
        var number: Int64 = 0
        var underWay: [Delivery] = []
        var silences = 0
        // When an unreachable receiver may be tried again.
        var quiet: ClosedRange<Int64>?
        for _ in 0..<400 {
            let due = Self.names.shuffled(using: &random).map { name in
                number += 1
                return delivery(number, name)
            }
            let demand = schedule.demand(at: now)
            let sent = schedule.begin(due, at: now)
            // There are more streams than may be under way, so one is always free.
            #expect(sent.isEmpty == (demand == 0))
            if let quiet, now < quiet.lowerBound { #expect(sent.isEmpty) }
            if let quiet, now >= quiet.upperBound { #expect(!sent.isEmpty || !underWay.isEmpty) }
            underWay += sent
            #expect(Set(underWay.map(\.stream)).count == underWay.count)
            #expect(underWay.count <= settings.concurrency)
            // After a silence one at a time, beside those that were under way before.
            if silences > 0 { #expect(sent.count <= 1) }

            guard let index = underWay.indices.randomElement(using: &random) else {
                now = schedule.deadline(at: now) ?? now
                continue
            }
            let answered = underWay.remove(at: index)
            now += Int64.random(in: 0...500, using: &random)
            let isSilent = Int.random(in: 0...2, using: &random) == 0
            let status = seed.isMultiple(of: 2) ? 500 : 200
            let answer: WebhookAnswer =
                isSilent ? .unreachable("down") : .status(status, retryAfter: nil)
            let outcome = schedule.take(answer, to: answered.number, at: now, using: &random)
            #expect(outcome != nil)
            schedule.settled(answered.number)
            if isSilent {
                let whole = min(Int64(1_000) << min(silences, 20), settings.longestDelay)
                let pause = (now + whole / 2)...(now + whole)
                #expect(pause.contains(schedule.deadline(at: now) ?? now))
                quiet = pause
                silences += 1
            } else {
                (silences, quiet) = (0, nil)
                #expect(schedule.deadline(at: now) == nil)
            }
        }
    }

    /// With a delay of one millisecond there is nothing random in the time of the next attempt.
    @Test(arguments: [1, 2, 999, 1_000] as [Int64])
    func `gives up at the very age, and not before`(age: Int64) {
        var settings = WebhookSchedule.Settings()
        settings.firstDelay = 1
        settings.patience = 1_000
        var random = SeededGenerator(seed: 3)
        for answer in [WebhookAnswer.status(503, retryAfter: nil), .unreachable("down")] {
            var schedule = WebhookSchedule(receiver: receiver, settings: settings)
            _ = schedule.begin([delivery(1, "a", committedAt: 50)], at: 50)
            let outcome = schedule.take(answer, to: 1, at: 50 + age - 1, using: &random)
            let next = age < 1_000 ? DeliveryOutcome.failed(1, nextAttemptAt: 50 + age) : .dropped(1)
            #expect(outcome == next)
        }
    }

    @Test func `never tries again before the receiver wants it, nor before its own time`() {
        var random = SeededGenerator(seed: 4)
        let settings = WebhookSchedule.Settings()
        for attempts in 0..<14 {
            for wish in [nil, -1, 0, 1, 5_000, 200_000, 599_999, 600_000, 600_001, .max] as [Int64?] {
                var schedule = WebhookSchedule(receiver: receiver, settings: settings)
                _ = schedule.begin([delivery(1, "a", attempts: attempts)], at: 10)
                let outcome = schedule.take(.status(429, retryAfter: wish), to: 1, at: 10, using: &random)
                guard case .failed(1, let next) = outcome else {
                    Issue.record("\(String(describing: outcome))")
                    return
                }
                let whole = min(Int64(1_000) << attempts, settings.longestDelay)
                let wanted = min(max(wish ?? 0, 0), settings.longestDelay)
                #expect(next - 10 >= max(whole / 2, wanted))
                #expect(next - 10 <= max(whole, wanted))
            }
        }
    }
}
