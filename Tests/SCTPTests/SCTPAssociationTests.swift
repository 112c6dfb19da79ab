import Base
import SCTP
import TestTraits
import Testing
import Wire

@Suite(.sctpTurn) struct SCTPAssociations {
    private func message(_ stream: UInt16, _ count: Int, seed: UInt8 = 1, payload: UInt32 = 53) -> SCTPMessage
    {
        SCTPMessage(
            stream: stream, payload: payload,
            bytes: (0..<count).map { UInt8(truncatingIfNeeded: $0 &* 31 &+ Int(seed)) })
    }

    @Test func `are made by two that both begin`() throws {
        let pair = try AssociationPair()
        #expect(pair.establish())
    }

    @Test func `carry messages both ways with stream and payload type`() throws {
        let pair = try AssociationPair()
        #expect(pair.establish())
        let (there, back) = (message(3, 100, payload: 51), message(7, 1, payload: 56))
        try pair.left.send(there, at: pair.now)
        try pair.right.send(back, at: pair.now)
        #expect(pair.run { !pair.rightMessages.isEmpty && !pair.leftMessages.isEmpty })
        #expect(pair.rightMessages == [there])
        #expect(pair.leftMessages == [back])
    }

    @Test func `send what was given to them before they were established`() throws {
        let pair = try AssociationPair()
        let early = message(0, 20)
        try pair.left.send(early, at: pair.now)
        #expect(pair.run { pair.rightMessages == [early] })
    }

    @Test func `carry 256 KiB in packets that DTLS can carry`() throws {
        let pair = try AssociationPair()
        #expect(pair.establish())
        let (there, back) = (message(0, 262_144), message(0, 262_144, seed: 9))
        try pair.left.send(there, at: pair.now)
        try pair.right.send(back, at: pair.now)
        #expect(pair.run { !pair.rightMessages.isEmpty && !pair.leftMessages.isEmpty })
        #expect(pair.rightMessages == [there])
        #expect(pair.leftMessages == [back])
        #expect(pair.longestPacket <= 1_160)
        #expect(pair.longestPacket > 1_100)
    }

    @Test func `let no control message wait for more than the long message under way`() throws {
        let pair = try AssociationPair()
        #expect(pair.establish())
        let long = (0..<2).map { message(UInt16($0 + 1), 262_144, seed: UInt8($0)) }
        let short = (0..<60).map { message(3, 4_000, seed: UInt8($0)) }
        let control = message(0, 100)
        for message in long + short { try pair.left.send(message, at: pair.now) }
        try pair.left.send(control, at: pair.now)
        #expect(pair.run { pair.rightMessages.count == 63 })
        let place = try #require(pair.rightMessages.firstIndex(of: control))
        #expect(place <= 1)
    }

    @Test(arguments: 1...6 as ClosedRange<UInt64>)
    func `deliver everything in order over a bad network`(seed: UInt64) throws {
        let network = AssociationPair.Network(jitter: .milliseconds(40), loss: 0.1, duplication: 0.1)
        let pair = try AssociationPair(network, seed: seed)
        #expect(pair.establish())
        let sent = (0..<60).map { message(UInt16($0 % 3), 1 + $0 * 97, seed: UInt8($0)) }
        for message in sent { try pair.left.send(message, at: pair.now) }
        #expect(pair.run(for: .seconds(300)) { pair.rightMessages.count >= sent.count })
        for stream in 0..<3 as Range<UInt16> {
            #expect(
                pair.rightMessages.filter { $0.stream == stream } == sent.filter { $0.stream == stream })
        }
    }

    @Test func `tell what was sent without order`() throws {
        let pair = try AssociationPair()
        #expect(pair.establish())
        var free = message(2, 50)
        free.delivery.isOrdered = false
        try pair.left.send(free, at: pair.now)
        #expect(pair.run { pair.rightMessages == [free] })
    }

    @Test func `give up lossy messages, and go on`() throws {
        let pair = try AssociationPair()
        #expect(pair.establish())
        pair.network.loss = 1
        for seed in 0..<5 as Range<UInt8> {
            var lossy = message(1, 200, seed: seed)
            lossy.delivery.reliability = .retransmissions(0)
            try pair.left.send(lossy, at: pair.now)
        }
        pair.run(for: .seconds(5))
        pair.network.loss = 0
        let last = message(1, 10, seed: 99)
        try pair.left.send(last, at: pair.now)
        #expect(pair.run(for: .seconds(60)) { pair.rightMessages.contains(last) })
        #expect(pair.rightMessages == [last])
    }

    @Test func `survive any outage, since ICE decides who is gone`() throws {
        let pair = try AssociationPair()
        #expect(pair.establish())
        // usrsctp repeats only what has waited for a round trip on the system's clock, so let it measure one.
        try pair.left.send(message(1, 10), at: pair.now)
        #expect(pair.run { !pair.rightMessages.isEmpty })
        pair.network.loss = 1
        let late = message(0, 1_000)
        try pair.left.send(late, at: pair.now)
        #expect(!pair.run(for: .seconds(300)) { pair.rightMessages.count > 1 })
        pair.network.loss = 0
        #expect(pair.run(for: .seconds(120)) { pair.rightMessages.last == late })
    }

    @Test func `are made even if nothing arrives for minutes`() throws {
        let pair = try AssociationPair(AssociationPair.Network(loss: 1))
        #expect(!pair.run(for: .seconds(200)) { pair.isEstablished })
        pair.network.loss = 0
        #expect(pair.run(for: .seconds(10)) { pair.isEstablished })
    }

    @Test func `have nothing to do while idle`() throws {
        let pair = try AssociationPair()
        #expect(pair.establish())
        try pair.left.send(message(0, 500), at: pair.now)
        pair.run(for: .seconds(5))
        #expect(pair.left.deadline == nil)
        #expect(pair.right.deadline == nil)
        let count = pair.packetCount
        pair.run(for: .seconds(600))
        #expect(pair.packetCount == count)
    }

    @Test func `close one stream and use it again`() throws {
        let pair = try AssociationPair()
        #expect(pair.establish())
        try pair.left.send(message(4, 3_000), at: pair.now)
        pair.left.reset(4, at: pair.now)
        #expect(throws: SCTPSendError.noStream) { try pair.left.send(message(4, 1), at: pair.now) }
        #expect(pair.run { pair.rightEvents.contains(.incomingReset([4])) })
        // What was sent before the reset came first.
        #expect(pair.rightMessages == [message(4, 3_000)])
        #expect(pair.run { pair.leftEvents.contains(.outgoingReset(4)) })
        try pair.left.send(message(4, 10), at: pair.now)
        #expect(pair.run { pair.rightMessages.count == 2 })
    }

    @Test func `close many streams at once`() throws {
        let pair = try AssociationPair()
        #expect(pair.establish())
        for stream in 0..<40 as Range<UInt16> {
            try pair.left.send(message(stream, 10), at: pair.now)
            pair.left.reset(stream, at: pair.now)
        }
        let done = { (0..<40 as Range<UInt16>).allSatisfy { pair.leftEvents.contains(.outgoingReset($0)) } }
        #expect(pair.run(until: done))
        let reset = pair.rightEvents.flatMap { event in
            if case .incomingReset(let streams) = event { streams } else { [] as [UInt16] }
        }
        #expect(Set(reset) == Set(0..<40))
        #expect(pair.rightMessages.count == 40)
    }

    @Test func `refuse what cannot be sent`() throws {
        let pair = try AssociationPair()
        #expect(pair.establish())
        #expect(throws: SCTPSendError.noStream) { try pair.left.send(message(256, 1), at: pair.now) }
        #expect(throws: SCTPSendError.noStream) { try pair.left.send(message(0, 0), at: pair.now) }
        #expect(throws: SCTPSendError.tooLong) { try pair.left.send(message(0, 262_145), at: pair.now) }
        pair.left.close()
        #expect(throws: SCTPSendError.closed) { try pair.left.send(message(0, 1), at: pair.now) }
    }

    @Test func `keep a bounded amount for a peer that takes nothing`() throws {
        let pair = try AssociationPair()
        #expect(pair.establish())
        pair.network.loss = 1
        var taken = 0
        do {
            while taken < 10_000_000 {
                try pair.left.send(message(0, 10_000), at: pair.now)
                taken += 10_000
            }
            Issue.record("no limit")
        } catch SCTPSendError.bufferFull {
            #expect(taken <= 1_048_576 + 65_536)
            #expect(pair.left.buffered(0) > 450_000)
        }
        pair.network.loss = 0
        #expect(pair.run(for: .seconds(120)) { pair.rightMessages.count == taken / 10_000 })
        #expect(pair.left.buffered(0) == 0)
    }

    @Test func `let the peer wait when nobody takes what came`() throws {
        var configuration = SCTPConfiguration()
        configuration.inboxMessages = 4
        let pair = try AssociationPair(configuration: configuration)
        #expect(pair.establish())
        let sent = (0..<50).map { message(0, 100, seed: UInt8($0)) }
        for message in sent { try pair.left.send(message, at: pair.now) }
        for packet in pair.left.takeOutput() { pair.right.receive(packet.span, at: pair.now) }
        let first = pair.right.takeEvents()
        #expect(first.count == 4)
        #expect(pair.run { pair.rightMessages.count == sent.count - first.count })
    }

    @Test func `end when the other side does`() throws {
        let pair = try AssociationPair()
        #expect(pair.establish())
        pair.left.close()
        #expect(pair.left.deadline == nil)
        for packet in pair.left.takeOutput() { pair.right.receive(packet.span, at: pair.now) }
        #expect(pair.right.takeEvents().last == .ended)
        #expect(pair.right.deadline == nil)
        #expect(throws: SCTPSendError.closed) { try pair.right.send(message(0, 1), at: pair.now) }
    }

    /// Two sides that accept unlike numbers of streams agree on the lower one (RFC 9260 §5.1.1).
    @Test(arguments: [(8, 4), (4, 8), (1, 256)] as [(UInt16, UInt16)])
    func `have the streams that both sides accept`(left: UInt16, right: UInt16) throws {
        var (configuration, other) = (SCTPConfiguration(), SCTPConfiguration())
        (configuration.streams, other.streams) = (left, right)
        let pair = try AssociationPair(configuration: configuration, rightConfiguration: other)
        let streams = min(left, right)
        #expect(
            pair.run {
                pair.leftEvents == [.established(streams: streams)]
                    && pair.rightEvents == [.established(streams: streams)]
            })
        #expect(throws: SCTPSendError.noStream) { try pair.left.send(message(streams, 1), at: pair.now) }
        let (there, back) = (message(streams - 1, 10), message(streams - 1, 20))
        try pair.left.send(there, at: pair.now)
        try pair.right.send(back, at: pair.now)
        #expect(pair.run { pair.rightMessages == [there] && pair.leftMessages == [back] })
    }

    /// What was queued for streams that the other side turns out not to have must not hold up the rest.
    @Test func `go on where there are fewer streams than were thought`() throws {
        var (many, few) = (SCTPConfiguration(), SCTPConfiguration())
        (many.streams, few.streams) = (8, 4)
        let pair = try AssociationPair(configuration: many, rightConfiguration: few)
        let kept = [message(0, 10), message(2, 10), message(3, 10)]
        for early in [kept[0], message(4, 10), kept[2], message(7, 10), kept[1]] {
            try pair.left.send(early, at: pair.now)
        }
        pair.left.reset(6, at: pair.now)
        #expect(pair.run { pair.rightMessages.count == 3 && pair.leftEvents.contains(.outgoingReset(6)) })
        #expect(pair.rightMessages.sorted { $0.stream < $1.stream } == kept)
        #expect(pair.left.buffered(4) == 0 && pair.left.buffered(7) == 0)
        let late = message(1, 10)
        try pair.left.send(late, at: pair.now)
        #expect(pair.run { pair.rightMessages.last == late })
    }

    @Test func `drop what is longer than they take, and say so`() throws {
        var short = SCTPConfiguration()
        short.maximumMessage = 5_000
        let pair = try AssociationPair(rightConfiguration: short)
        #expect(pair.establish())
        let sent = [message(1, 5_000), message(2, 5_001), message(3, 100_000), message(1, 10)]
        for message in sent { try pair.left.send(message, at: pair.now) }
        #expect(pair.run { pair.rightMessages.count == 2 && pair.rightEvents.count == 5 })
        // Streams take turns, so the order of two of them is not said.
        #expect(pair.rightMessages.filter { $0.stream == 1 } == [sent[0], sent[3]])
        #expect(pair.rightEvents.contains(.tooLong(stream: 2)))
        #expect(pair.rightEvents.contains(.tooLong(stream: 3)))
        #expect(throws: SCTPSendError.tooLong) { try pair.right.send(message(1, 5_001), at: pair.now) }
        let back = message(1, 5_000)
        try pair.right.send(back, at: pair.now)
        #expect(pair.run { pair.leftMessages == [back] })
    }

    @Test func `ignore garbage`() throws {
        let pair = try AssociationPair()
        #expect(pair.establish())
        for count in [0, 1, 11, 12, 15, 16, 100, 1_160, 9_000] {
            let garbage = (0..<count).map { _ in UInt8.random(in: 0...255, using: &pair.random) }
            pair.right.receive(garbage.span, at: pair.now)
        }
        let good = message(1, 5)
        try pair.left.send(good, at: pair.now)
        #expect(pair.run { pair.rightMessages == [good] })
    }
}
