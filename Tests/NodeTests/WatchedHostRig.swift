import Base
import Interaction
import Stage
import Store
import TestSupport
import Testing

@testable import Node

/// One stream's host on a clock that tells when the host has looked at it.
///
/// The host decides each request in one turn, in which it looks at the clock. So a test knows that a request was
/// decided, and waits for the store, without the request's answer.
struct WatchedHostRig {
    struct Clock: Sendable {
        var moment = Moment(elapsed: .zero, wall: WallTime(milliseconds: 1_800_000_000_000))
        /// How often the host has looked at it.
        var looks = 0
    }

    let store = SlowStore()
    let clock = Watched(Clock())
    let effects = Shared<[StageEffect]>([])
    let orders = Shared<[DuelOrder]>([])
    let directory = StreamDirectory()
    let host: StreamHost

    /// - Parameter reportsEvents: whether there are webhooks.
    init(reportsEvents: Bool = false) throws {
        host = StreamHost(
            try #require(StreamID("show")),
            Self.environment(
                store, directory, clock, effects, orders, reportsEvents: reportsEvents))
    }

    private static func environment(
        _ store: SlowStore, _ directory: StreamDirectory, _ clock: Watched<Clock>,
        _ effects: Shared<[StageEffect]>, _ orders: Shared<[DuelOrder]>, reportsEvents: Bool
    ) -> StreamHost.Environment {
        StreamHost.Environment(
            store: store, log: .silent, directory: directory,
            now: {
                clock.change { clock in
                    clock.looks += 1
                    return clock.moment
                }
            },
            runsTimer: false, report: reportsEvents ? StageReport.event(_:of:at:) : nil,
            duels: { order in orders.change { $0.append(order) } },
            perform: { effect, _ in effects.change { $0.append(effect) } })
    }

    /// As a restart finds it.
    /// - Parameter reportsEvents: whether there are webhooks.
    func restarted(reportsEvents: Bool = false) async throws -> StreamHost {
        let stored = try #require(try await store.load(.one(host.id)).first)
        return try StreamHost(
            stored,
            Self.environment(
                store, StreamDirectory(), clock, Shared([]), Shared([]), reportsEvents: reportsEvents))
    }

    /// Sends the host a request, and returns once it is decided.
    /// - Returns: its answer, which may wait for the store.
    func decide<Answer: Sendable>(
        _ request: @escaping @Sendable () async throws -> Answer
    ) async throws -> Task<Answer, any Error> {
        let looks = clock.value.looks
        let answer = Task { try await request() }
        try await clock.wait { $0.looks > looks }
        // The turn in which the host looked is over once it answers this.
        _ = await host.deadline
        return answer
    }

    /// Moves the clock, and has the host do what is due then.
    func wait(_ duration: Duration) async {
        pass(duration)
        await host.tick()
    }

    /// Moves the clock, and nobody is woken by it.
    func pass(_ duration: Duration) {
        clock.change { clock in
            let moment = clock.moment
            let milliseconds = duration.wholeNanoseconds / 1_000_000
            clock.moment = Moment(
                elapsed: moment.elapsed + duration,
                wall: WallTime(milliseconds: moment.wall.milliseconds + milliseconds))
        }
    }

    /// The time without a look that counts.
    var now: Moment { clock.value.moment }

    /// The texts of a page of comments, or of a message.
    static func texts(_ page: JSON?) -> [String] {
        guard case .array(let comments) = page?["comments"] else { return [] }
        return comments.compactMap { if case .string(let text) = $0["text"] { text } else { nil } }
    }
}

extension StreamHost {
    /// What is durable; nil while the stream is not made.
    var kept: StreamRecord? { journal.kept }
    /// What the audience's rules go by, durable or not.
    var audienceRecord: InteractionRecord { interaction.machine.record }
    /// The latest duel that its rules know, durable or not.
    var latestDuel: DuelID? { duels.side.duels.last?.id }
}

/// A stream's opponent in duels, as if on another machine: it knows of the stream what its messages say.
struct DuelOpponent {
    private(set) var side: DuelSide
    private let situation = DuelSide.Situation(
        isLive: true, isHostThere: true, name: "Cleo", tally: DuelTally())

    init(_ stream: StreamID) { side = DuelSide(of: stream) }

    /// Does what its host wants.
    mutating func apply(_ command: DuelSide.Command, at now: Moment) throws {
        _ = try side.apply(command, situation, at: now)
    }

    /// Takes the messages that the stream has sent it.
    mutating func receive(_ orders: Shared<[DuelOrder]>, at now: Moment) {
        let waiting = orders.value
        orders.change { $0 = [] }
        for case .message(let message) in waiting { _ = side.receive(message, situation, at: now) }
    }

    /// Does what is due, and takes what it has to tell the stream.
    mutating func takeMessages(at now: Moment) -> [DuelMessage] {
        _ = side.advance(to: now, situation)
        return side.takeMessages(side.duels, situation, at: now)
    }
}
