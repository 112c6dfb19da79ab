import Base
import TestSupport
import Testing

@testable import Forwarding

@Suite struct `Reports from where nobody is known` {
    private var senders = ReportSenders()
    private let ann: SessionID
    private let bob: SessionID

    init() {
        var random = SeededGenerator(seed: 1)
        ann = SessionID(using: &random)
        bob = SessionID(using: &random)
    }

    private func report(_ ssrc: UInt8, length: Int = 8) -> [UInt8] {
        Array(([0x80, 201, 0, 1, 0, 0, 0, ssrc] as [UInt8]).prefix(length))
    }

    private mutating func note(_ ssrc: UInt8, of session: SessionID) {
        senders.note(report(ssrc).span, of: session)
    }

    private mutating func find(_ datagram: [UInt8], at milliseconds: Int64 = 0) -> SessionID? {
        senders.find(datagram.span, at: MonotonicTime(nanoseconds: milliseconds * 1_000_000))
    }

    @Test mutating func `are those of who sent as the same before, and is still there`() {
        note(7, of: ann)
        note(8, of: bob)
        // As many do who receive only.
        note(1, of: bob)
        note(1, of: ann)
        var found = [7, 8, 1, 9].map { find(report($0)) }
        #expect(found == [ann, bob, bob, nil])
        senders.remove(ann)
        found = [7, 8, 1].map { find(report($0)) }
        #expect(found == [nil, bob, bob])
        senders.remove(bob)
        found = [7, 8, 1].map { find(report($0)) }
        #expect(found == [nil, nil, nil])
    }

    @Test mutating func `are remembered of a few senders of a session`() {
        for ssrc in UInt8(1)...100 { note(ssrc, of: ann) }
        let found = (UInt8(1)...100).filter { find(report($0)) != nil }
        #expect(found == [1, 2, 3, 4])
    }

    @Test mutating func `are looked at a few times a second`() {
        note(7, of: ann)
        for second in 0..<3 as Range<Int64> {
            let looks = (0..<200 as Range<Int64>).count { find(report(7), at: 1_000 * second + $0) != nil }
            #expect(looks == ReportSenders.looksPerSecond)
        }
    }

    @Test(arguments: 0..<8) mutating func `are nobody's where they are cut off`(length: Int) {
        note(7, of: ann)
        senders.note(report(7, length: length).span, of: bob)
        let found = find(report(7, length: length))
        #expect(found == nil)
    }
}
