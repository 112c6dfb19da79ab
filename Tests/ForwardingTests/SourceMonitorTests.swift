import Base
import Peer
import Testing

@testable import Forwarding

@Suite struct SourceMonitors {
    private var monitor = SourceMonitor(sources: 2)

    private func time(_ milliseconds: Int64) -> MonotonicTime { .zero + .milliseconds(milliseconds) }

    @Test mutating func `tell at once that a source is alive, and once`() {
        monitor.note(source: 1, level: nil, at: time(0))
        #expect(monitor.takeNotices() == [.changed(source: 1, isActive: true)])
        monitor.note(source: 1, level: nil, at: time(20))
        monitor.note(source: 7, level: nil, at: time(20))
        #expect(!monitor.hasNotices)
    }

    @Test mutating func `tell of a voice ten times a second`() {
        var levels: [SourceMonitor.Notice] = []
        for packet in 0..<50 as Range<Int64> {
            monitor.note(source: 0, level: packet % 2 == 0 ? 20 : 30, at: time(packet * 20))
            levels += monitor.takeNotices()
        }
        let voices = levels.dropFirst()
        #expect((5...11).contains(voices.count))
        #expect(voices.allSatisfy { if case .voice(97...107) = $0 { true } else { false } })
    }

    /// Every quarter of a second, 50 packets of which so many do not come.
    private mutating func lose(_ lost: Int, of expected: Int = 50, for seconds: Int64, from start: Int64) {
        for look in 0..<(seconds * 4) {
            monitor.note(
                ReceiveStream.LossInterval(expected: expected, lost: lost),
                at: time(start * 1_000 + look * 250))
        }
    }

    @Test mutating func `tell of an uplink that loses a twentieth, every five seconds`() {
        lose(2, for: 60, from: 0)
        #expect(!monitor.hasNotices)
        lose(3, for: 60, from: 60)
        let notices = monitor.takeNotices()
        #expect((11...12).contains(notices.count) && notices.allSatisfy { $0 == .weakUplink })
        lose(0, for: 60, from: 120)
        #expect(monitor.takeNotices().count <= 1)
        // Somebody who sends next to nothing.
        lose(1, of: 2, for: 60, from: 180)
        #expect(!monitor.hasNotices)
    }

    @Test mutating func `silence is reported once, when it begins`() {
        monitor.note(source: 0, level: 20, at: time(0))
        _ = monitor.takeNotices()
        for packet in 1..<50 as Range<Int64> { monitor.note(source: 0, level: 127, at: time(packet * 20)) }
        let notices = monitor.takeNotices()
        #expect(notices.last == .voice(0))
        #expect(notices.count <= 2)
    }

    @Test mutating func `a source without packets is silent first, and ended later`() {
        monitor.note(source: 0, level: 20, at: time(0))
        _ = monitor.takeNotices()
        #expect(monitor.deadline == time(300))
        monitor.advance(to: time(299))
        #expect(!monitor.hasNotices)
        monitor.advance(to: time(300))
        #expect(monitor.takeNotices() == [.voice(0)])
        #expect(monitor.deadline == time(2_000))
        monitor.advance(to: time(2_000))
        #expect(monitor.takeNotices() == [.changed(source: 0, isActive: false)])
        #expect(monitor.deadline == .distantFuture)
    }
}

@Suite struct MessageGates {
    @Test func `let a burst through and then so many a second`() {
        var gate = MessageGate(.init(messages: 10, bytes: 1_000, burst: 2), at: .zero)
        let first = (0..<100).count { _ in gate.admit(bytes: 1, at: .zero) }
        #expect(first == 20)
        let later = (1...1_000 as ClosedRange<Int64>).count {
            gate.admit(bytes: 1, at: .zero + .milliseconds($0))
        }
        #expect((9...11).contains(later))
    }

    @Test func `count bytes as well`() {
        var gate = MessageGate(.init(messages: 10, bytes: 1_000, burst: 2), at: .zero)
        let admitted = [(1_900, 0), (200, 0), (200, 200), (5_000, 100_000)].map { size, milliseconds in
            gate.admit(bytes: size, at: .zero + .milliseconds(milliseconds))
        }
        #expect(admitted == [true, false, true, false])
    }
}
