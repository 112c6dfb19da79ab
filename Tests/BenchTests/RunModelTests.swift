import Base
import TestSupport
import Testing

@testable import sfu_bench

private func time(_ milliseconds: Int64) -> MonotonicTime {
    MonotonicTime(nanoseconds: milliseconds * 1_000_000)
}

@Suite struct `A steady rate` {
    /// How many events are due at each of these times, in milliseconds.
    private func due(_ rate: Double, at times: [Int64]) -> [Int] {
        var cadence = Cadence(rate: rate)
        return times.map { cadence.due(at: time($0)) }
    }

    @Test func `begins at the first look, whenever that is`() {
        #expect(due(10, at: [50_000, 50_099, 50_100, 50_250]) == [0, 0, 1, 1])
    }

    @Test func `has no events at a rate of none, and few at a low one`() {
        #expect(due(0, at: [0, 1_000_000_000]) == [0, 0])
        #expect(due(0.001, at: [0, 999_999, 1_000_000, 2_500_000]) == [0, 0, 1, 1])
    }

    @Test func `catches up, and does not go back with the clock`() {
        #expect(due(100, at: [0, 10_000, 5_000, 10_000, 10_015]) == [0, 1_000, 0, 0, 1])
    }
}

@Suite struct `A pause that grows` {
    private func pauses(_ count: Int, asked: Int64 = 0, seed: UInt64 = 3) -> [Int64] {
        var random = SeededGenerator(seed: seed)
        var backoff = Backoff(first: .milliseconds(100), longest: .seconds(1))
        return (0..<count).map { _ in backoff.pause(atLeast: asked, using: &random) }
    }

    @Test func `doubles up to its limit, and stays there`() {
        for (pause, nominal) in zip(pauses(8), [100, 200, 400, 800, 1_000, 1_000, 1_000, 1_000] as [Int64]) {
            #expect((nominal * 750_000...nominal * 1_250_000).contains(pause), "\(nominal)")
        }
        #expect(pauses(8) == pauses(8) && pauses(8) != pauses(8, seed: 4))
    }

    @Test func `heeds what it is asked for, but only as long as that is more`() {
        for (pause, nominal) in zip(pauses(5, asked: 500_000_000), [500, 500, 500, 800, 1_000] as [Int64]) {
            #expect((nominal * 750_000...nominal * 1_250_000).contains(pause), "\(nominal)")
        }
        // A server may ask for more than the limit.
        #expect(pauses(1, asked: 60_000_000_000)[0] >= 45_000_000_000)
    }

    @Test func `begins anew once all is well`() {
        var random = SeededGenerator(seed: 3)
        var backoff = Backoff(first: .milliseconds(100), longest: .seconds(1))
        for _ in 0..<6 { _ = backoff.pause(using: &random) }
        backoff.reset()
        #expect(backoff == Backoff(first: .milliseconds(100), longest: .seconds(1)))
        let first = backoff.pause(using: &random)
        #expect(first <= 125_000_000)
    }
}

@Suite struct `A refusal to a page` {
    @Test(arguments: [
        (SignallingError.unreachable("x"), true), (.unusable("x"), false),
        (.refused(status: 400, detail: ""), false), (.refused(status: 401, detail: ""), false),
        (.refused(status: 403, detail: ""), false), (.refused(status: 404, detail: ""), true),
        (.refused(status: 408, detail: ""), true), (.refused(status: 410, detail: ""), false),
        (.refused(status: 429, detail: ""), true), (.refused(status: 500, detail: ""), true),
        (.refused(status: 507, detail: ""), true),
    ])
    func `may pass, or is final`(error: SignallingError, isTemporary: Bool) {
        #expect(error.isTemporary == isTemporary)
        #expect(error.retryAfter == nil)
    }
}

@Suite struct `The log of joins` {
    private let log = JoinLog()

    private func notice(_ id: Int, _ milestone: Milestone, at milliseconds: Int64 = 1) -> Notice {
        Notice(id: id, milestone: milestone, time: time(milliseconds))
    }

    @Test func `knows the first of each step, and nothing of strangers`() {
        log.begin(1, isViewer: true, at: time(0))
        log.take([notice(1, .firstPacket, at: 5), notice(1, .firstPacket, at: 9), notice(2, .firstPacket)])
        log.answered(2, requested: time(0), at: time(1))
        log.fail(2, "unknown")
        log.left(2)
        #expect(log[1]?.firstPacket == time(5) && log[2] == nil && log.reason == nil)
        #expect(log.times().count == 1 && log.times(of: [2, 3]).isEmpty && log.times(of: [1]).count == 1)
    }

    @Test func `tells a session that ended from one that never began`() {
        for id in 1...4 { log.begin(id, isViewer: true, at: time(0)) }
        for id in 1...3 { log.take([notice(id, .iceConnected), notice(id, .dtlsConnected)]) }
        log.take([notice(1, .failed), notice(2, .closedByServer)])
        #expect(log[1]?.outcome == .failed("consent failed"))
        #expect(log[2]?.outcome == .failed("the server closed the session"))
        #expect(log[3]?.outcome == .joined && log[4]?.outcome == .joining)
        // What failed has not left, and comes back as nothing else.
        log.left(1)
        log.take([notice(1, .dtlsConnected)])
        #expect(log[1]?.outcome == .failed("consent failed") && log.reason == "consent failed")
    }

    @Test func `has no time between steps that were not taken`() {
        log.begin(1, isViewer: true, at: time(100))
        log.take([notice(1, .dtlsConnected, at: 150)])
        let times = log[1]
        #expect(times?.milliseconds(to: \.dtlsConnected) == 50)
        #expect(times?.milliseconds(from: \.iceConnected, to: \.dtlsConnected) == nil)
        #expect(times?.milliseconds(from: \.dtlsConnected, to: \.firstFrame) == nil)
        // The request replaces the preliminary time of the beginning.
        log.answered(1, requested: time(120), at: time(130))
        #expect(log[1]?.milliseconds(to: \.dtlsConnected) == 30)
    }

    @Test func `makes no phases of joins without any`() {
        #expect(Bench.phases([]).isEmpty && Bench.joins([]) == nil)
        log.begin(1, isViewer: false, at: time(0))
        #expect(Bench.phases(log.times()).isEmpty && Bench.joins(log.times()) == nil)
    }
}

@Suite struct `What can be read of an encrypted packet` {
    /// A packet with these words behind its fixed header, and then its ciphertext.
    private func packet(csrcs: UInt8 = 0, profile: UInt16? = nil, _ elements: [UInt8] = []) -> [UInt8] {
        var bytes: [UInt8] = [0x80 | csrcs | (profile == nil ? 0 : 0x10), 0x80 | 96, 0x12, 0x34]
        bytes += [0xA0, 0, 0, 1, 0xDE, 0xAD, 0xBE, 0xEF]
        bytes += [UInt8](repeating: 0x21, count: Int(csrcs) * 4)
        if let profile {
            bytes += [UInt8(profile >> 8), UInt8(profile & 0xFF), 0, UInt8((elements.count + 3) / 4)]
            bytes += elements + [UInt8](repeating: 0, count: (4 - elements.count % 4) % 4)
        }
        // Were it read, it would be number 1 of extension 2.
        return bytes + [0x21, 0, 1, 0, 0]
    }

    private func number(_ bytes: [UInt8], id: UInt8 = 2) -> UInt16? {
        PublicHeader.transportNumber(in: bytes.span, id: id)
    }

    @Test func `is its fixed header`() throws {
        let bytes = packet(csrcs: 2)
        // A `Span` cannot stand in `#require`.
        let read = PublicHeader(bytes.span)
        let header = try #require(read)
        #expect(header.marker && header.payloadType == 96 && header.sequenceNumber == 0x1234)
        #expect(header.timestamp == 0xA000_0001 && header.ssrc == 0xDEAD_BEEF)
        for count in 0...12 {
            let short = Array(bytes.prefix(count))
            let isRead = PublicHeader(short.span) != nil
            #expect(!isRead)
        }
    }

    @Test func `includes its number among all packets, in either form of extensions`() {
        #expect(number(packet(profile: 0xBEDE, [0x21, 0x02, 0x03])) == 0x0203)
        #expect(number(packet(csrcs: 15, profile: 0xBEDE, [0x10, 9, 0, 0, 0x21, 0xFF, 0xFE])) == 0xFFFE)
        #expect(number(packet(profile: 0x1000, [2, 2, 0x02, 0x03])) == 0x0203)
        #expect(number(packet(profile: 0x1000, [1, 0, 0, 7, 3, 9, 9, 9, 2, 2, 4, 5])) == 0x0405)
        #expect(number(packet(profile: 0x1000, [20, 2, 4, 5]), id: 20) == 0x0405)
    }

    @Test(
        arguments: [
            (nil, []), (0xBEDE, []), (0xBEDE, [0x11, 1, 2]), (0xBEDE, [0x20, 1]), (0xBEDE, [0x22, 1, 2, 3]),
            (0xBEDE, [0x1F, 1]), (0x1000, [2, 3, 1, 2, 3]), (0x1000, [1, 255, 2, 2]), (0x1000, [2]),
        ] as [(UInt16?, [UInt8])])
    func `does not include what has another meaning or length`(profile: UInt16?, elements: [UInt8]) {
        #expect(number(packet(profile: profile, elements)) == nil)
    }

    @Test func `is nothing where the packet is cut off`() {
        let bytes = packet(csrcs: 1, profile: 0xBEDE, [0x11, 1, 2, 0, 0x21, 3, 4])
        #expect(number(bytes) == 0x0304)
        for count in 0..<27 { #expect(number(Array(bytes.prefix(count))) == nil, "\(count)") }
        var long = bytes
        // More words than the packet has.
        long[18] = 0xFF
        #expect(number(long) == 0x0304)
        #expect(number(long, id: 9) == nil)
    }
}

@Suite struct `A buffer at its edges` {
    private var buffer = PlaybackBuffer()

    @Test mutating func `that never began is over at the end of the stream`() {
        buffer.finish(at: time(10))
        #expect(buffer.isOver && buffer.standsSince == nil)
        buffer.append(1_000, at: time(20))
        let stalls = buffer.takeStalls()
        #expect(buffer.isOver && !buffer.isPlaying && stalls == .init())
    }

    @Test mutating func `does not play backwards with the clock, or what has no length`() {
        buffer.append(-5, at: time(0))
        buffer.append(0, at: time(0))
        #expect(!buffer.isPlaying && buffer.end == 0)
        buffer.append(1_000_000_000, at: time(1_000))
        buffer.advance(to: time(1_400))
        buffer.advance(to: time(1_100))
        #expect(buffer.position == 400_000_000)
        buffer.advance(to: time(1_500))
        #expect(buffer.position == 500_000_000)
        // Once it plays, it begins nowhere else.
        buffer.begin(at: 7)
        #expect(buffer.position == 500_000_000)
    }

    @Test mutating func `ends a stall when the stream ends`() {
        buffer.append(1_000_000_000, at: time(0))
        buffer.finish(at: time(3_000))
        #expect(buffer.isOver && buffer.standsSince == nil)
        buffer.advance(to: time(9_000))
        let stalls = buffer.takeStalls()
        #expect(stalls == .init(count: 1, nanoseconds: 2_000_000_000))
    }
}
