import Base
import TestSupport
import Testing
import Wire

@testable import Forwarding

@Suite struct `Data tracks of an audience` {
    private var audience = AudienceData()
    private let talk: StreamID
    private let ann: ParticipantID
    private var sessions: [SessionID]
    private var now = MonotonicTime.zero + .seconds(10)

    init() throws {
        talk = try #require(StreamID("talk"))
        ann = try #require(ParticipantID("ann"))
        var random = SeededGenerator(seed: 4)
        sessions = (0..<4).map { _ in SessionID(using: &random) }
    }

    private func item(_ event: DataTrackEvent, of session: Int = 0, label: String = "data:quiz")
        -> DataTrackItem
    {
        DataTrackItem(
            stage: talk, sender: ann, session: sessions[session], label: label,
            delivery: DataChannelDelivery(), event: event)
    }

    private var opened: DataTrackEvent {
        .opened(DataChannelOpen(label: "data:quiz", subprotocol: "", delivery: DataChannelDelivery()))
    }

    private mutating func admit(_ label: String = "data:quiz", bytes: Int = 10) -> Bool {
        audience.admit(label, bytes: bytes, in: talk, at: now)
    }

    @Test mutating func `reach nobody unless the stream says so`() {
        audience.join(sessions[1], talk)
        audience.join(sessions[2], talk)
        #expect(audience.receivers(of: item(opened), at: now).isEmpty)
        #expect(audience.receivers(of: item(.message(.string([1]))), at: now).isEmpty)
        audience.setAccess(.receive, of: talk)
        #expect(audience.receivers(of: item(.message(.string([1]))), at: now) == [sessions[1], sessions[2]])
        audience.leave(sessions[1], talk)
        #expect(audience.receivers(of: item(.said(.string([1]))), at: now) == [sessions[2]])
        audience.setAccess(.nothing, of: talk)
        #expect(audience.receivers(of: item(.message(.string([1]))), at: now).isEmpty)
        #expect(audience.receivers(of: item(.closed), at: now) == [sessions[2]], "what is open is closed")
    }

    @Test mutating func `are sent on where the stage has them, and the stream says so`() {
        audience.setAccess(.receive, of: talk)
        _ = audience.receivers(of: item(opened), at: now)
        #expect(!admit())
        #expect(!audience.maySend("data:quiz", in: talk))
        audience.setAccess(.send, of: talk)
        let taken = [admit(), admit("data:other"), admit(bytes: 1_024), admit(bytes: 1_025)]
        #expect(taken == [true, false, true, false])
        #expect(!audience.maySend("data:" + String(repeating: "x", count: 60), in: talk))
        // It is the stage's as long as one of them has it.
        _ = audience.receivers(of: item(opened, of: 1), at: now)
        _ = audience.receivers(of: item(.closed), at: now)
        #expect(admit())
        _ = audience.receivers(of: item(.closed, of: 1), at: now)
        #expect(!admit())
    }

    @Test mutating func `carry no more than they may`() {
        audience.setAccess(.send, of: talk)
        _ = audience.receivers(of: item(opened), at: now)
        var taken = (0..<1_000).map { _ in admit() }
        #expect(taken.count(where: \.self) == 100)
        now = now + .milliseconds(500)
        taken = (0..<1_000).map { _ in admit() }
        #expect(taken.count(where: \.self) == 50)
        for _ in 0..<2_500 { audience.join(sessions[3], talk) }
        var reached = 0
        for _ in 0..<10 { reached += audience.receivers(of: item(.said(.string([1]))), at: now).count }
        #expect(reached == 10_000, "whole messages to all, and then none")
        now = now + .milliseconds(250)
        #expect(audience.receivers(of: item(.said(.string([1]))), at: now).count == 2_500)
        #expect(audience.receivers(of: item(.said(.string([1]))), at: now).isEmpty)
    }

    /// More of them than the worker sends messages in a second.
    @Test mutating func `reach a very large audience as well, but not as often`() {
        audience.setAccess(.receive, of: talk)
        for _ in 0..<15_000 { audience.join(sessions[3], talk) }
        var reached: [Int] = []
        for _ in 0..<45 {
            reached.append(audience.receivers(of: item(.message(.string([1]))), at: now).count)
            now = now + .milliseconds(100)
        }
        // The first message's excess is paid back before the next one.
        #expect(reached.indices.filter { reached[$0] == 15_000 } == [0, 15, 30])
        #expect(reached.reduce(0, +) == 45_000)
    }
}
