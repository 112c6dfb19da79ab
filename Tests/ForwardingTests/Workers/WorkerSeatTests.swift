import Base
import Peer
import TestSupport
import Testing
import Wire

@testable import Forwarding

/// The seats of a feed's session: which streams they carry, and what is told of it.
@Suite struct `A seat of the feed` {
    private let rig: WorkerRig
    private let one: StreamID
    private let two: StreamID
    private let feed: SessionID

    init() throws {
        rig = try WorkerRig()
        one = try #require(StreamID("one"))
        two = try #require(StreamID("two"))
        feed = rig.view(nil, pairs: 2)
    }

    private var worker: Worker { rig.workers[0] }

    private func sit(
        _ pair: Int, on stream: StreamID?, isPreview: Bool = false, requested: MonotonicTime? = nil
    ) {
        rig.perform(.seat(feed, pair: pair, stream, isPreview: isPreview, requested: requested))
    }

    private func tracks(of id: SessionID) throws -> [TrackKey?] {
        try rig.session(id).sources.map { $0.track.key }
    }

    /// The pairs and streams that were said to have begun.
    private func begun() -> [String] {
        rig.endBatches()
        return rig.events().compactMap { event in
            guard case .begun(_, let pair, let stream, _) = event else { return nil }
            return "\(pair) \(stream)"
        }
    }

    // MARK: Streams

    @Test func `carries its stream alone, and the other one its own`() throws {
        let (first, second) = (rig.publish(one), rig.publish(two))
        #expect(try rig.carried(by: feed) == [nil, nil, nil, nil])
        sit(0, on: one)
        sit(1, on: two)
        let wanted = try tracks(of: first) + tracks(of: second)
        #expect(try rig.carried(by: feed) == wanted)
        // They change places, as when somebody swipes back.
        sit(0, on: two)
        sit(1, on: one)
        let swapped = try tracks(of: second) + tracks(of: first)
        #expect(try rig.carried(by: feed) == swapped)
        #expect(worker.counters.seatsTaken == 4)
    }

    @Test func `stops at once when it is given up, and keeps nobody's programme`() throws {
        let publisher = rig.publish(one)
        sit(0, on: one)
        rig.send("v", from: publisher, isKey: true)
        let slot = try rig.slot("v0", of: feed)
        #expect(slot.current != nil)
        sit(0, on: nil)
        #expect(slot.current == nil && slot.track == nil && slot.awaited == nil)
        rig.perform(.close(publisher))
        #expect(worker.programmes.isEmpty)
        #expect(worker.counters.seatsTaken == 1, "none is taken when one is given up")
    }

    @Test func `of two on one stream each goes its own way`() throws {
        let publisher = rig.publish(one)
        sit(0, on: one)
        sit(1, on: one)
        let wanted = try tracks(of: publisher)
        #expect(try rig.carried(by: feed) == wanted + wanted)
        sit(0, on: nil)
        #expect(try rig.carried(by: feed) == [nil, nil] + wanted)
        #expect(worker.programmes[one]?.followers.count == 1)
        sit(1, on: nil)
        #expect(worker.programmes[one]?.followers.isEmpty == true)
    }

    @Test func `waits for a stream that nobody publishes yet`() throws {
        sit(1, on: one)
        #expect(try rig.carried(by: feed) == [nil, nil, nil, nil])
        let wanted = try tracks(of: rig.publish(one))
        #expect(try rig.carried(by: feed) == [nil, nil] + wanted)
    }

    @Test func `is none that a session does not have`() throws {
        let player = rig.view(two)
        for pair in [-1, 2, Int.max] { sit(pair, on: one) }
        rig.perform(.seat(player, pair: 1, one, isPreview: false, requested: nil))
        rig.perform(.seat(rig.newID(), pair: 0, one, isPreview: false, requested: nil))
        #expect(worker.programmes[one] == nil && worker.counters.seatsTaken == 0)
        #expect(try rig.session(player).seats.map(\.stream) == [two])
    }

    @Test func `is left by a session that ends`() throws {
        sit(0, on: one)
        sit(1, on: two, isPreview: true)
        #expect(worker.programmes.count == 2)
        rig.perform(.close(feed))
        #expect(worker.programmes.isEmpty)
    }

    // MARK: Previews

    @Test func `has no sound and the lowest frame rate of a stream that is not looked at yet`() throws {
        let publisher = rig.publish(one)
        sit(1, on: one, isPreview: true)
        let wanted = try tracks(of: publisher)
        #expect(try rig.carried(by: feed) == [nil, nil, nil, wanted[1]])
        let slot = try rig.slot("v1", of: feed)
        #expect(slot.isThinned && slot.maximumHeight == 1)
        sit(1, on: one)
        #expect(try rig.carried(by: feed) == [nil, nil] + wanted)
        #expect(!slot.isThinned && slot.maximumHeight == nil)
        #expect(worker.counters.seatsTaken == 1, "it is the same stream")
    }

    /// The sound of a stream that is left must not go on below the one that is looked at.
    @Test func `has no sound any more of a stream that becomes a preview`() throws {
        let ann = try #require(ParticipantID("ann"))
        let publisher = rig.publish(one)
        rig.send("a", from: publisher)
        sit(0, on: one)
        rig.send("a", from: publisher)
        let sound = try rig.slot("a0", of: feed)
        #expect(sound.current != nil)
        sit(0, on: one, isPreview: true)
        #expect(sound.track == nil && sound.current == nil)
        #expect(try rig.slot("v0", of: feed).track != nil)
        // The same where control chose who is heard.
        let guest = rig.publish(nil, stage: one, participant: ann)
        sit(0, on: one)
        rig.perform(.setProgramme(one, [try rig.track("a", of: guest)]))
        #expect(sound.assigned != nil)
        sit(0, on: one, isPreview: true)
        #expect(sound.track == nil && sound.assigned == nil)
        rig.perform(.setProgramme(one, []))
        #expect(sound.track == nil, "it stays so, whatever is chosen")
    }

    @Test func `gets what control chose for its stream, a preview without the sound`() throws {
        let ann = try #require(ParticipantID("ann"))
        let host = rig.publish(one)
        let guest = rig.publish(nil, stage: one, participant: ann)
        sit(0, on: one)
        sit(1, on: one, isPreview: true)
        let (own, others) = (try tracks(of: host), try tracks(of: guest))
        rig.perform(.setProgramme(one, [try rig.track("a", of: guest), try rig.track("v", of: guest)]))
        #expect(try rig.carried(by: feed) == others + [nil, others[1]])
        let limits = try [rig.slot("v0", of: feed), rig.slot("v1", of: feed)].map(\.maximumHeight)
        #expect(limits == [nil, 1])
        rig.perform(.setProgramme(one, []))
        #expect(try rig.carried(by: feed) == own + [nil, own[1]])
        // Nothing of the last stream's choice is left on a seat that goes on.
        rig.perform(.setProgramme(one, [try rig.track("v", of: guest)]))
        let next = rig.publish(two)
        sit(0, on: two)
        let wanted = try tracks(of: next)
        #expect(try Array(rig.carried(by: feed).prefix(2)) == wanted)
        #expect(try rig.slot("v0", of: feed).assigned == nil)
    }

    // MARK: What is told

    @Test func `is said to have begun once for a stream, whatever its source does`() throws {
        let publisher = rig.publish(one)
        sit(0, on: one)
        #expect(begun().isEmpty)
        rig.send("v", from: publisher, isKey: true)
        #expect(begun() == ["0 one"])
        // Its source begins anew.
        rig.send("v", from: publisher, isKey: true, ssrc: 99)
        #expect(begun().isEmpty)
        sit(0, on: nil)
        sit(0, on: one)
        #expect(begun() == ["0 one"], "from what is cached")
        sit(1, on: one, isPreview: true)
        #expect(begun() == ["1 one"])
        sit(1, on: one)
        #expect(begun().isEmpty, "it has been there as a preview")
    }

    @Test func `says nothing of a stream that was left before it began`() {
        let (first, second) = (rig.publish(one), rig.publish(two))
        sit(0, on: one)
        sit(0, on: two)
        rig.send("v", from: first, isKey: true)
        #expect(begun().isEmpty)
        rig.send("v", from: second, isKey: true)
        sit(0, on: nil)
        #expect(begun() == ["0 two"], "it had begun, and is told with the batch")
    }

    @Test func `measures how long a viewer waits for a stream that was not there`() {
        let publisher = rig.publish(one)
        sit(0, on: one, requested: rig.now)
        rig.pass(.milliseconds(300))
        rig.send("v", from: publisher)
        #expect(worker.statistics.switches.cold.count == 0)
        rig.pass(.milliseconds(100))
        rig.send("v", from: publisher, isKey: true)
        let times = worker.statistics.switches
        #expect(times.cold.count == 1 && times.cold.nanoseconds == 400_000_000)
        #expect(times.preloaded.count == 0)
        // A source that begins anew is no switch of the viewer's.
        rig.send("v", from: publisher, isKey: true, ssrc: 99)
        #expect(worker.statistics.switches == times)
    }

    @Test func `measures separately what was a preview, and nothing that nobody asked for`() {
        let publisher = rig.publish(one)
        rig.send("v", from: publisher, isKey: true)
        sit(0, on: one, isPreview: true, requested: rig.now)
        #expect(worker.statistics.switches == SwitchTimes(), "a preview is not waited for")
        let requested = rig.now
        rig.pass(.milliseconds(20))
        sit(0, on: one, requested: requested)
        let times = worker.statistics.switches
        #expect(times.preloaded.count == 1 && times.preloaded.nanoseconds == 20_000_000)
        #expect(times.cold.count == 0)
        sit(0, on: two)
        sit(0, on: one)
        #expect(worker.statistics.switches == times, "control moved it")
    }

    @Test func `measures no switch that the viewer gave up`() {
        let publisher = rig.publish(one)
        sit(0, on: one, requested: rig.now)
        rig.pass(.seconds(1))
        sit(0, on: two, requested: rig.now)
        rig.send("v", from: publisher, isKey: true)
        rig.pass(.seconds(1))
        sit(0, on: one)
        #expect(worker.statistics.switches == SwitchTimes())
    }
}
