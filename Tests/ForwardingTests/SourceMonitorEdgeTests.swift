import Base
import Peer
import Testing

@testable import Forwarding

/// What control is told of a publisher, at the edges of pauses, windows and levels.
@Suite struct `What a monitor tells` {
    private var monitor = SourceMonitor(sources: 3)

    private func time(_ milliseconds: Int64) -> MonotonicTime {
        MonotonicTime(nanoseconds: 1_000_000_000 + milliseconds * 1_000_000)
    }

    // MARK: Voices

    /// Opus with DTX sends a packet of silence each 400 ms: words before it must not be heard in it again.
    @Test mutating func `a new report of speech leaves out words from before the pause`() {
        for milliseconds in [0, 20, 40, 60] as [Int64] {
            monitor.note(source: 0, level: 20, at: time(milliseconds))
        }
        monitor.advance(to: time(360))
        #expect(monitor.takeNotices() == [.changed(source: 0, isActive: true), .voice(107), .voice(0)])
        monitor.note(source: 0, level: 127, at: time(460))
        #expect(!monitor.hasNotices, "it goes on being silent")
    }

    @Test mutating func `a word too short to be reported does not count later`() {
        monitor.note(source: 0, level: 127, at: time(0))
        monitor.note(source: 0, level: 10, at: time(20))
        monitor.advance(to: time(1_000))
        _ = monitor.takeNotices()
        monitor.note(source: 0, level: 97, at: time(1_020))
        #expect(monitor.takeNotices() == [.voice(30)])
    }

    @Test mutating func `the reported level is the mean since the last report, of all microphones`() {
        monitor.note(source: 0, level: 27, at: time(0))
        monitor.note(source: 0, level: 27, at: time(50))
        monitor.note(source: 1, level: 127, at: time(60))
        monitor.note(source: 0, level: 27, at: time(99))
        monitor.note(source: 0, level: 27, at: time(100))
        #expect(
            monitor.takeNotices() == [
                .changed(source: 0, isActive: true), .voice(100), .changed(source: 1, isActive: true),
                .voice(75),
            ])
    }

    @Test(arguments: [(0x00, 127), (0x7F, 0), (0x80, 127), (0x80 | 27, 100), (0xFF, 0)] as [(UInt8, UInt8)])
    mutating func `the level is read without the voice activity bit`(level: UInt8, loudness: UInt8) {
        monitor.note(source: 0, level: level, at: time(0))
        let voices = Array(monitor.takeNotices().dropFirst())
        let expected: [SourceMonitor.Notice] = loudness == 0 ? [] : [.voice(loudness)]
        #expect(voices == expected)
    }

    @Test mutating func `speech after a reported silence is reported again`() {
        var told: [SourceMonitor.Notice] = []
        for start in [0, 1_000, 2_000] as [Int64] {
            monitor.note(source: 0, level: 40, at: time(start))
            monitor.note(source: 0, level: 40, at: time(start + 120))
            monitor.advance(to: time(start + 420))
            told += monitor.takeNotices()
        }
        let voices = Array(told.dropFirst())
        #expect(voices == [.voice(87), .voice(0), .voice(87), .voice(0), .voice(87), .voice(0)])
    }

    // MARK: Sources

    @Test mutating func `the deadline is the earliest end of a voice or a source`() {
        #expect(monitor.deadline == .distantFuture)
        monitor.note(source: 1, level: nil, at: time(0))
        #expect(monitor.deadline == time(2_000))
        monitor.note(source: 0, level: 27, at: time(100))
        #expect(monitor.deadline == time(400))
        _ = monitor.takeNotices()
        monitor.advance(to: time(400))
        #expect(monitor.takeNotices() == [.voice(0)])
        #expect(monitor.deadline == time(2_000))
        monitor.advance(to: time(2_000))
        #expect(monitor.takeNotices() == [.changed(source: 1, isActive: false)])
        #expect(monitor.deadline == time(2_100), "the other one has packets of its own")
        monitor.advance(to: time(9_000))
        #expect(monitor.takeNotices() == [.changed(source: 0, isActive: false)])
        #expect(monitor.deadline == .distantFuture)
        // It comes back like a new one.
        monitor.note(source: 1, level: nil, at: time(9_001))
        #expect(monitor.takeNotices() == [.changed(source: 1, isActive: true)])
    }

    @Test mutating func `an unknown source is never reported`() {
        for source in [-1, 3, Int.max] { monitor.note(source: source, level: 1, at: time(0)) }
        #expect(!monitor.hasNotices && monitor.deadline == .distantFuture)
        monitor.advance(to: time(60_000))
        #expect(!monitor.hasNotices)
    }

    @Test mutating func `a clock that goes back ends no source`() {
        monitor.note(source: 0, level: nil, at: time(5_000))
        _ = monitor.takeNotices()
        monitor.note(source: 0, level: nil, at: time(0))
        monitor.advance(to: time(1_999))
        #expect(!monitor.hasNotices)
        monitor.advance(to: time(2_000))
        #expect(monitor.takeNotices() == [.changed(source: 0, isActive: false)])
    }

    // MARK: Uplinks

    struct Uplink: Sendable {
        /// Packets each second, and how many of them are lost.
        let packets: Int
        let lost: Int
        /// The seconds of the first ten at which it is said to be weak.
        let weakAt: [Int64]
    }

    /// A share of few packets says little, so it takes twice as long; one of hardly any says nothing.
    @Test(arguments: [
        Uplink(packets: 60, lost: 2, weakAt: []), Uplink(packets: 60, lost: 4, weakAt: [5, 10]),
        Uplink(packets: 30, lost: 3, weakAt: [6]), Uplink(packets: 15, lost: 1, weakAt: [10]),
        Uplink(packets: 10, lost: 1, weakAt: [10]), Uplink(packets: 9, lost: 9, weakAt: []),
        Uplink(packets: 60, lost: -5, weakAt: []), Uplink(packets: 0, lost: 5, weakAt: []),
    ])
    mutating func `an uplink is judged only by enough packets`(_ uplink: Uplink) {
        var weakAt: [Int64] = []
        for second in Int64(0)...10 {
            monitor.note(
                ReceiveStream.LossInterval(expected: uplink.packets, lost: uplink.lost),
                at: time(second * 1_000))
            if monitor.takeNotices().contains(.weakUplink) { weakAt.append(second) }
        }
        #expect(weakAt == uplink.weakAt)
    }

    @Test mutating func `losses that a client makes up never break the monitor`() {
        for second in Int64(0)..<12 {
            monitor.note(
                ReceiveStream.LossInterval(expected: Int.max, lost: Int.max), at: time(second * 1_000))
        }
        let notices = monitor.takeNotices()
        let others = notices.filter { $0 != .weakUplink }
        #expect(others.isEmpty)
    }
}
