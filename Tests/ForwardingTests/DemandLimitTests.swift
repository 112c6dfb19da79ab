import Base
import Peer
import TestSupport
import Testing

@testable import Forwarding

/// What keeps viewers and sources from costing others too much.
@Suite struct `Limits of demands` {
    private func time(_ milliseconds: Int64) -> MonotonicTime {
        MonotonicTime(nanoseconds: 1_000_000_000 + milliseconds * 1_000_000)
    }

    // MARK: Restarts

    @Test func `let a source restart four times at once, and then once a second`() {
        var budget = RestartBudget()
        var taken: [Int64] = []
        for step in Int64(0)...60 where budget.take(at: time(step * 100)) { taken.append(step * 100) }
        #expect(taken == [0, 100, 200, 300, 1_000, 2_000, 3_000, 4_000, 5_000, 6_000])
    }

    @Test func `let a source that was calm for a while restart four times again`() {
        var budget = RestartBudget()
        for milliseconds in [0, 1, 2, 3] as [Int64] { _ = budget.take(at: time(milliseconds)) }
        let early = (0..<9).count { _ in budget.take(at: time(2_000)) }
        #expect(early == 2)
        let late = (0..<9).count { _ in budget.take(at: time(60_000)) }
        #expect(late == 4)
        // A clock that goes back gives nothing back.
        let before = (0..<9).count { _ in budget.take(at: time(59_000)) }
        #expect(before == 0)
    }

    // MARK: Key frames

    @Test func `pass on a demand each 50 ms, and at once what is more urgent`() {
        var gate = DemandGate()
        var passed: [Int64] = []
        for milliseconds in Int64(0)...200 where gate.admit(.repetition, at: time(milliseconds)) {
            passed.append(milliseconds)
        }
        #expect(passed == [0, 50, 100, 150, 200])
        let later = [
            gate.admit(.beginning, at: time(201)), gate.admit(.repetition, at: time(202)),
            gate.admit(.loss, at: time(203)), gate.admit(.loss, at: time(252)),
            gate.admit(.renewal, at: time(253)), gate.admit(.renewal, at: time(254)),
        ]
        #expect(later == [true, false, true, false, true, false])
        gate.noteKeyFrame()
        let behind = [gate.admit(.renewal, at: time(254)), gate.admit(.renewal, at: time(200))]
        #expect(behind == [true, false], "the second one at a time that was before")
    }

    /// In milliseconds, of a viewer who asks all the time.
    private func beginnings(
        _ gate: inout ReplayGate, from start: Int64, for duration: Int64
    ) -> [Int64] {
        var times: [Int64] = []
        for step in 0...(duration / 100) where gate.mayBeginAnew(at: time(start + step * 100)) {
            times.append(start + step * 100)
        }
        return times
    }

    @Test func `let one viewer alone have key frames ever more seldom, until it was content for a while`() {
        var gate = ReplayGate()
        let times = beginnings(&gate, from: 0, for: 40_000)
        let pauses = zip(times, times.dropFirst()).map { $1 - $0 }
        #expect(pauses == [700, 1_400, 2_800, 5_600, 8_000, 8_000, 8_000])
        let later = (times.last ?? 0) + 20_000
        let again = beginnings(&gate, from: later, for: 2_000)
        #expect(again == [later, later + 700])
    }

    @Test func `answer one viewer with one replay at a time, whatever the clock does`() {
        var gate = ReplayGate()
        let source = RestartedSource()
        let id = ObjectIdentifier(source)
        var taken = gate.admit(5, of: id, rtt: nil, at: time(1_000))
        #expect(taken && gate.isUnderWay(rtt: nil, at: time(1_499)))
        #expect(!gate.isUnderWay(rtt: nil, at: time(1_500)))
        taken = gate.admit(6, of: id, rtt: nil, at: time(0))
        #expect(!taken, "a time before the last replay")
        #expect(gate.isUnderWay(rtt: .seconds(3), at: time(3_999)))
        taken = gate.admit(6, of: id, rtt: .seconds(3), at: time(4_000))
        #expect(taken && !gate.isInVain)
    }

    private final class RestartedSource {}

    // MARK: What key frames cost

    @Test func `measure a key frame when it ends, and again when it is alone no more`() {
        var cost = KeyFrameCost()
        let alone = 10 + RateMeter.window.wholeNanoseconds / 1_000_000
        let first = [
            cost.note(nil, at: time(0)), cost.note(9_000, at: time(10)), cost.note(nil, at: time(alone)),
            cost.note(nil, at: time(alone + 1)), cost.note(nil, at: time(5_000)),
        ]
        #expect(first == [nil, 9_000, nil, 9_000, nil])
        // Of two key frames that end close together, only the later one is measured again.
        let second = [
            cost.note(4_000, at: time(6_000)), cost.note(5_000, at: time(6_100)),
            cost.note(nil, at: time(7_500)),
        ]
        #expect(second == [4_000, 5_000, 5_000])
    }

    // MARK: Messages

    @Test func `a clock that goes back lets a client send no more messages`() {
        var gate = MessageGate(.init(messages: 10, bytes: 1_000, burst: 1), at: time(0))
        let first = (0..<20).count { _ in gate.admit(bytes: 1, at: time(0)) }
        #expect(first == 10)
        let back = (0..<20).count { _ in gate.admit(bytes: 1, at: time(-10_000)) }
        #expect(back == 0)
    }

    @Test func `a message that is too long is refused and uses no budget`() {
        var gate = MessageGate(.control, at: time(0))
        let limit = Int(MessageGate.Limits.control.bytes * MessageGate.Limits.control.burst)
        let sizes = [limit + 1, .max, limit, 1].map { gate.admit(bytes: $0, at: time(0)) }
        #expect(sizes == [false, false, true, false])
        #expect(SessionChannels.maximumControlMessage <= limit, "or a client could never send one")
    }
}

/// The channels of a client, of which it may open any.
@Suite struct `Data tracks of a session` {
    private var channels = SessionChannels(isOnStage: true, at: .zero)
    private let others: [SessionID]

    init() {
        var random = SeededGenerator(seed: 12)
        others = (0..<3).map { _ in SessionID(using: &random) }
    }

    private mutating func open(_ label: String, on stream: UInt16) -> Bool {
        channels.sends(label, on: stream, at: .zero)
    }

    @Test mutating func `a session has at most four data tracks, each with its own label`() {
        var opened: [Bool] = []
        for (stream, label) in [(1, "a"), (3, "b"), (5, "a"), (7, "c"), (9, "d"), (11, "e")] {
            opened.append(open(label, on: UInt16(stream)))
        }
        #expect(opened == [true, true, false, true, true, false])
        let known = [1, 3, 5, 7, 9, 11].map { channels.label(of: $0) }
        #expect(known == ["a", "b", nil, "c", "d", nil])
        let closed = [channels.closed(3), channels.closed(3), channels.closed(5)]
        #expect(closed == ["b", nil, nil])
        let isOpen = open("b", on: 13)
        #expect(isOpen, "there is room again")
        let labels = channels.takeLabels()
        #expect(labels == ["a", "b", "c", "d"])
        let isEmpty = channels.takeLabels().isEmpty
        #expect(isEmpty)
    }

    @Test mutating func `a client that closes another's data track does not get it again`() {
        let keys = others.map { SessionChannels.Incoming(session: $0, label: "x") }
        for (index, key) in keys.enumerated() { channels.incoming[key] = UInt16(2 * index) }
        channels.forgetIncoming(2)
        let refused = keys.map { channels.incoming[$0].map(channels.isRefused) }
        #expect(refused == [false, true, false])
        let closed = channels.closed(4)
        #expect(closed == nil)
        let isRefused = channels.incoming[keys[2]].map(channels.isRefused)
        #expect(isRefused == true)
        #expect(channels.incoming.count == 3, "or they would be opened again")
        channels.forgetIncoming(100)
        #expect(channels.incoming[keys[0]] == 0)
    }
}
