import Base
import Foundation
import TestSupport
import Testing

@testable import Interaction

/// Two streams that share nothing, each with its own clock and disk, and a network between them.
struct DuelRig {
    struct Stream {
        var side: DuelSide
        var durable: [Duel] = []
        var situation = DuelSide.Situation(
            isLive: true, isHostThere: true, name: "Ann", tally: DuelTally())
        /// Ahead of the other's clock, in milliseconds.
        var skew: Int64 = 0

        mutating func keep(_ duel: Duel?) {
            if let duel { DuelSide.keep(duel, in: &durable) }
        }
    }

    static let ann = id("ann")
    static let bob = id("bob")

    var streams = [
        Self.ann: Stream(side: DuelSide(of: Self.ann)), Self.bob: Stream(side: DuelSide(of: Self.bob)),
    ]
    var elapsed = MonotonicTime.zero
    private(set) var network: [DuelMessage] = []

    static func id(_ name: String) -> StreamID {
        guard let id = StreamID(name) else { preconditionFailure("\(name) is no stream") }
        return id
    }

    static func terms(seconds: Int = 30, penalty: Int = 10) -> DuelTerms {
        var terms = DuelTerms()
        terms.seconds = seconds
        terms.penaltySeconds = penalty
        return terms
    }

    subscript(stream: StreamID) -> Stream {
        get { streams[stream] ?? Stream(side: DuelSide(of: stream)) }
        set { streams[stream] = newValue }
    }

    func now(_ stream: StreamID) -> Moment {
        let wall = 1_800_000_000_000 + elapsed.nanoseconds(since: .zero) / 1_000_000 + self[stream].skew
        return Moment(elapsed: elapsed, wall: WallTime(milliseconds: wall))
    }

    /// The latest of a stream.
    func duel(_ stream: StreamID) throws -> Duel { try #require(self[stream].durable.last) }

    func phase(_ stream: StreamID) -> Duel.Phase? { self[stream].durable.last?.phase(at: now(stream).wall) }

    // MARK: What happens

    @discardableResult
    mutating func apply(
        _ command: DuelSide.Command, on stream: StreamID
    ) throws(Interaction.Refusal) -> Duel {
        var place = self[stream]
        let duel = try place.side.apply(command, place.situation, at: now(stream))
        place.keep(duel)
        self[stream] = place
        speak(stream)
        return duel
    }

    private mutating func speak(_ stream: StreamID) {
        var place = self[stream]
        network += place.side.takeMessages(place.durable, place.situation, at: now(stream))
        self[stream] = place
    }

    mutating func receive(_ message: DuelMessage) {
        var place = self[message.to]
        let (change, answer) = place.side.receive(message, place.situation, at: now(message.to))
        place.keep(change)
        self[message.to] = place
        if let answer { network.append(answer) }
        speak(message.to)
    }

    mutating func advance(_ stream: StreamID, isLast: Bool = false) {
        var place = self[stream]
        place.keep(place.side.advance(to: now(stream), place.situation, isLast: isLast))
        self[stream] = place
        speak(stream)
    }

    mutating func restart(_ stream: StreamID) {
        self[stream].side = DuelSide(of: stream, restoring: self[stream].durable)
    }

    /// Takes one message off the network; maybe it is there once more.
    mutating func takeMessage(at index: Int, isRepeated: Bool = false) -> DuelMessage? {
        guard network.indices.contains(index) else { return nil }
        return isRepeated ? network[index] : network.remove(at: index)
    }

    mutating func forgetMessages() { network = [] }

    /// Lets time pass, with a network that delivers everything in order.
    mutating func wait(_ time: Duration, step: Duration = .milliseconds(100)) {
        let end = elapsed + time
        while elapsed < end {
            elapsed = min(elapsed + step, end)
            for stream in [Self.ann, Self.bob] { advance(stream) }
            deliver()
        }
    }

    /// Everything that is on its way, and what follows from it at once.
    mutating func deliver() {
        // What never ends would be a fault of its own.
        for _ in 0..<network.count * 4 + 20 {
            guard let message = takeMessage(at: 0) else { return }
            receive(message)
        }
        Issue.record("the two never stop talking")
    }
}
