import Base
import Peer
import TestSupport
import Testing
import Wire

@testable import Forwarding

@Suite struct `Numbers of packets that were sent` {
    @Test func `a number is known until the capacity is used up by later ones, even where 16 bits wrap`() {
        var numbers = RepeatableNumbers()
        for index in Int64(65_400)..<65_800 { numbers.note(index - 60_000, of: index) }
        for index in Int64(65_400)..<65_900 {
            let known = numbers.number(of: index)
            let isKnown = (65_800 - Int64(RepeatableNumbers.usualCapacity)..<65_800).contains(index)
            #expect(known == (isKnown ? index - 60_000 : nil), "\(index)")
        }
    }

    @Test(arguments: [-1, 0, 255, 65_535, -65_536, Int64.max])
    func `the number of a packet that was never sent is unknown`(index: Int64) {
        #expect(RepeatableNumbers().number(of: index) == nil)
        #expect(RepeatableNumbers(capacity: RepeatableNumbers.largeCapacity).number(of: index) == nil)
    }

    @Test func `packets are found by their numbers on the path, oldest first`() {
        var numbers = RepeatableNumbers(capacity: RepeatableNumbers.soundCapacity)
        #expect(numbers.indices(of: [0]).isEmpty)
        for index in Int64(100)..<200 { numbers.note(index * 3, of: index) }
        // The others are of other streams, or too old.
        #expect(numbers.indices(of: [597, 450, 451, 300, 420]) == [140, 150, 199])
        #expect(numbers.indices(of: []).isEmpty)
    }

    @Test func `a packet has the number under which it was sent last`() {
        var numbers = RepeatableNumbers()
        numbers.note(5, of: 1_000)
        numbers.note(9, of: 1_000)
        #expect(numbers.number(of: 1_000) == 9)
        #expect(numbers.number(of: 1_000 - 256) == nil && numbers.number(of: 1_000 + 256) == nil)
    }
}

@Suite struct `Lost sound that may be sent once more` {
    @Test func `is kept in order, up to a limit, until it is taken`() {
        var lost = LostSound()
        #expect(lost.isEmpty)
        let count = Int64(LostSound.limit) + 5
        for index in 0..<count {
            lost.add(LostSound.Packet(index: index, repeated: index % 2 == 0 ? nil : index * 3))
        }
        let taken = lost.takeAll()
        #expect(taken.map(\.index) == Array(5..<count) && taken.first?.repeated == 15)
        #expect(lost.isEmpty)
    }
}

/// What a client says by RTP sequence numbers, of a slot that has sent packets before.
@Suite struct `Reports by sequence number` {
    private let rig: SlotRig
    private let slot: Slot
    /// The number of the first packet.
    private let first: Int64
    /// When the reports were made, on the client's clock.
    private static let time: Int64 = 65_536 * 10

    init() throws {
        let rig = try SlotRig(seed: 11)
        let session = rig.session(reports: true)
        slot = try #require(session.slots.first)
        first = slot.nextSequence
        self.rig = rig
    }

    /// Sends packets; the first one has number 500 on the whole path.
    private func send(_ count: Int64) {
        for number in 0..<count {
            slot.repeatable?.note(500 + number, of: first + number)
            slot.timeline.sent(first + number, timestamp: 0, at: rig.now)
        }
    }

    /// What a report says about packets.
    /// - Parameter place: of the first reported packet, counted from the first one sent.
    private func told(
        from place: Int64, _ metrics: [CongestionControlFeedback.Metric], ssrc: UInt32? = nil
    ) -> [SentPackets.Told] {
        let stream = CongestionControlFeedback.Stream(
            ssrc: ssrc ?? slot.plan.ssrc, firstSequenceNumber: UInt16(truncatingIfNeeded: first + place),
            metrics: metrics)
        var found: [SentPackets.Told] = []
        slot.lookUp(stream, toldAt: Self.time, into: &found)
        return found
    }

    private func arrived(_ count: Int) -> [CongestionControlFeedback.Metric] {
        Array(repeating: .init(offset: 0), count: count)
    }

    @Test(arguments: [20, 40_000, 65_536, 70_000, 200_000] as [Int64])
    func `are of the latest packets with these numbers`(count: Int64) {
        send(count)
        let found = told(from: count - 10, arrived(10))
        #expect(found.map(\.place) == Array((490 + count)..<(500 + count)))
        #expect(found.allSatisfy { $0.arrival == 10_000_000_000 })
    }

    @Test(arguments: [20, 70_000] as [Int64])
    func `say nothing of packets that were not sent, or too long ago`(count: Int64) {
        send(count)
        #expect(told(from: count, arrived(300)).isEmpty)
        #expect(told(from: count - 3, arrived(300)).map(\.place) == Array((497 + count)..<(500 + count)))
        let known = Int64(RepeatableNumbers.largeCapacity)
        let oldest = max(count - known, 0)
        #expect(told(from: oldest - 5, arrived(6)).map(\.place) == [500 + oldest])
    }

    /// A client that starts its report at 65,535, before the first packet, has received nothing.
    @Test func `a report says nothing of a number before the first packet`() {
        send(5)
        let place = 65_535 - first
        #expect(told(from: place, arrived(1)).isEmpty)
        #expect(told(from: place, arrived(2_000)).allSatisfy { (500..<505).contains($0.place) })
    }

    @Test func `tell lost packets from those whose time is not known`() {
        send(4)
        let found = told(
            from: 0, [.missing, .init(offset: nil), .init(offset: 512), .init(offset: UInt16.max)])
        #expect(found == [.init(place: 500, arrival: nil), .init(place: 502, arrival: 9_500_000_000)])
    }

    @Test func `reports on RTX concern retransmissions, and those on unknown streams nothing`() throws {
        send(10)
        let repair = try #require(slot.plan.repairSSRC)
        let index = slot.repairIndex
        slot.repairNumbers?.note(800, of: index)
        slot.repairIndex += 1
        let place = index - first
        #expect(told(from: place, arrived(2), ssrc: repair).map(\.place) == [800])
        #expect(told(from: 0, arrived(10), ssrc: slot.plan.ssrc).count == 10)
    }

    @Test func `are read up to a limit, whatever a client sends`() {
        send(1_024)
        var all: [SentPackets.Told] = []
        let stream = CongestionControlFeedback.Stream(
            ssrc: slot.plan.ssrc, firstSequenceNumber: UInt16(truncatingIfNeeded: first),
            metrics: arrived(CongestionControlFeedback.maximumMetrics))
        for _ in 0..<5 { slot.lookUp(stream, toldAt: Self.time, into: &all) }
        #expect(all.count == SentPackets.maximumCapacity)
    }
}
