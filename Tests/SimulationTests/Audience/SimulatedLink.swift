import Base
import Foundation
import Node
import Synchronization
import TestSupport

/// A message to followers, parsed once for all who are told the same.
final class ToldMessage: Sendable {
    let json: JSON
    let size: Int
    /// In which order different ones were told.
    let number: UInt64

    init(json: JSON, size: Int, number: UInt64) {
        (self.json, self.size, self.number) = (json, size, number)
    }
}

/// What is of the audience in a message; all else of a snapshot, which names a thousand viewers, is not looked at.
private struct AudiencePart: Decodable {
    private static let names = [
        "type", "version", "interaction", "comments", "deleted", "pinned", "reactions", "poll", "ranks",
        "gifts",
        "giftTotals",
    ]

    private struct Name: CodingKey {
        let stringValue: String
        var intValue: Int? { nil }

        init(stringValue: String) { self.stringValue = stringValue }
        init?(intValue: Int) { nil }
    }

    let json: JSON

    init(from decoder: any Decoder) throws {
        let container = try decoder.container(keyedBy: Name.self)
        var members: [String: JSON] = [:]
        for name in Self.names.map(Name.init(stringValue:)) where container.contains(name) {
            members[name.stringValue] = try container.decode(JSON.self, forKey: name)
        }
        json = .object(members)
    }
}

/// What the server tells, in order, and what was told last.
final class ToldMessages: Sendable {
    private struct State {
        var text = ""
        var last: ToldMessage?
        var count: UInt64 = 0
    }

    private let state = Mutex(State())

    func message(_ text: String) -> ToldMessage {
        state.withLock { state in
            if let last = state.last, state.text == text { return last }
            // What followers are told is JSON; tests of the hosts see to that.
            let json = (try? JSONDecoder().decode(AudiencePart.self, from: Data(text.utf8)))?.json ?? .null
            state.count += 1
            let message = ToldMessage(json: json, size: text.utf8.count, number: state.count)
            (state.text, state.last) = (text, message)
            return message
        }
    }
}

/// The server's end of one connection: it keeps the order, may be slow, and what is on its way when it breaks is lost.
final class SimulatedLink: SyncFollower {
    private struct State {
        var random: SeededGenerator
        var waiting: [(due: MonotonicTime, message: ToldMessage)] = []
        var bytes = 0
        /// Nothing comes through any more, which the server does not know.
        var isBroken = false
        var isClosed = false
    }

    private let state: Mutex<State>
    private let messages: ToldMessages
    private let clock: @Sendable () -> MonotonicTime
    /// Bytes on their way at most, and milliseconds that each message takes.
    private let window: Int
    private let delays: ClosedRange<Int>

    init(
        seed: UInt64, isSlow: Bool, _ messages: ToldMessages, clock: @escaping @Sendable () -> MonotonicTime
    ) {
        state = Mutex(State(random: SeededGenerator(seed: seed)))
        (self.messages, self.clock) = (messages, clock)
        (window, delays) = isSlow ? (3_000, 300...1_500) : (64 * 1_024, 5...120)
    }

    func send(_ text: String) -> SyncDelivery {
        let now = clock()
        return state.withLock { state in
            guard !state.isClosed else { return .closed }
            guard state.bytes <= window else { return .full }
            let message = messages.message(text)
            state.bytes += message.size
            // One in fifty has to be sent again by TCP, and holds up those behind it.
            let isLate = Int.random(in: 0..<50, using: &state.random) == 0
            let delay = Int.random(in: delays, using: &state.random) + (isLate ? 1_000 : 0)
            let due = max(state.waiting.last?.due ?? .zero, now + .milliseconds(delay))
            state.waiting.append((due, message))
            return .queued
        }
    }

    var isDrained: Bool { state.withLock { $0.bytes == 0 } }

    func close(_ reason: SyncClose) { state.withLock { $0.isClosed = true } }

    /// What has come until now.
    func receive(at now: MonotonicTime) -> [ToldMessage] {
        state.withLock { state in
            guard !state.isBroken else { return [] }
            let count = state.waiting.prefix { $0.due <= now }.count
            guard count > 0 else { return [] }
            let come = state.waiting.prefix(count).map(\.message)
            state.waiting.removeFirst(count)
            state.bytes -= come.reduce(0) { $0 + $1.size }
            return come
        }
    }

    func breakDown() { state.withLock { $0.isBroken = true } }
}
