import Base
import Testing
import Wire

@testable import sfu_bench

private func time(_ milliseconds: Int64) -> MonotonicTime {
    MonotonicTime(nanoseconds: milliseconds * 1_000_000)
}

@Suite struct `A frame of a follower` {
    @Test(arguments: [0, 1, 30, 125, 126, 4_000]) func `is masked with zeros, and short`(length: Int) {
        let payload = (0..<length).map { UInt8(truncatingIfNeeded: $0) }
        let frame = ServerFrames.clientFrame(.pong, payload)
        let kept = min(length, 125)
        #expect(Array(frame[..<6]) == [0x8A, 0x80 | UInt8(kept), 0, 0, 0, 0])
        #expect(Array(frame[6...]) == Array(payload.prefix(125)))
    }

    private func kind(_ opcode: UInt8) throws -> ServerFrames.Kind? {
        let bytes: [UInt8] = [0x80 | opcode, 0]
        let frame = try ServerFrames.frame(in: bytes.span, at: 0)
        return try #require(frame).kind
    }

    @Test func `knows the opcodes that are used, and has room for others`() throws {
        let known: [UInt8: ServerFrames.Kind] = [1: .text, 8: .close, 9: .ping, 10: .pong]
        for opcode in 0...15 as ClosedRange<UInt8> {
            let found = try kind(opcode)
            #expect(found == known[opcode], "\(opcode)")
        }
    }

    @Test(arguments: [2, 3, 100]) func `is none behind the end`(offset: Int) throws {
        let bytes: [UInt8] = [0x81, 0]
        let frame = try ServerFrames.frame(in: bytes.span, at: offset)
        #expect(frame == nil)
    }

    /// A snapshot of a large stream is long; nothing else that is longer makes sense.
    @Test func `may be four megabytes long, and no longer`() throws {
        func head(_ length: UInt32) -> [UInt8] {
            var bytes: [UInt8] = [0x81, 127, 0, 0, 0, 0]
            bytes.append(bigEndian: length)
            return bytes
        }
        let (longest, longer) = (head(4 << 20), head(4 << 20 + 1))
        let frame = try ServerFrames.frame(in: longest.span, at: 0)
        #expect(frame == nil)
        #expect(throws: ServerFrames.Failure.tooLong) {
            _ = try ServerFrames.frame(in: longer.span, at: 0)
        }
    }

    @Test func `is searched to its last byte, and not beyond`() {
        let bytes = Array("aab,aaab".utf8)
        let isFound = { (pattern: String, range: Range<Int>) in
            bytes.span.contains(Array(pattern.utf8), in: range)
        }
        #expect(isFound("aaab", 0..<8) && isFound("aaab", 4..<8) && isFound("b", 7..<8))
        #expect(!isFound("aaab", 0..<7) && !isFound("b", 3..<7) && !isFound("aab,aaab", 1..<8))
        #expect(isFound("", 3..<3) && !isFound("a", 3..<3))
    }
}

@Suite struct `The handshake of a follower` {
    @Test func `names its server, and its token if it has one`() throws {
        let address = try #require(TransportAddress("[::1]:8080"))
        let plain = String(decoding: SocketCrowd.handshake("/a?b=c", to: address), as: UTF8.self)
        #expect(plain.hasPrefix("GET /a?b=c HTTP/1.1\r\nHost: [::1]:8080\r\n"))
        #expect(plain.hasSuffix("\r\n\r\n") && !plain.contains("Authorization"))
        let named = String(decoding: SocketCrowd.handshake("/", to: address, token: "t"), as: UTF8.self)
        #expect(named.hasSuffix("\r\nAuthorization: Bearer t\r\n\r\n"))
    }

    @Test(
        arguments: [
            ("HTTP/1.1 101 X\r\nA: b\r\n\r\nrest", 24), ("\r\n\r\n", 4), ("a\n\r\n\r\n\r\n", 6),
            ("a\r\nb\n\n", nil), ("a\r\n\r", nil), ("", nil), ("\r\n", nil),
        ] as [(String, Int?)])
    func `ends with an empty line`(text: String, end: Int?) {
        let bytes = Array(text.utf8)
        #expect(SocketCrowd.endOfHead(bytes, bytes.count) == end)
    }

    /// A buffer may hold what is left of an earlier read.
    @Test func `ends within what was read`() {
        let bytes = Array("HTTP/1.1 101\r\n\r\n".utf8)
        for count in 0..<bytes.count { #expect(SocketCrowd.endOfHead(bytes, count) == nil, "\(count)") }
    }
}

@Suite struct `The candidates that a client tries` {
    private func candidate(_ address: String, _ transport: ICECandidate.Transport = .udp, index: Int = 0)
        throws -> ICECandidate
    {
        ICECandidate(host: try #require(TransportAddress(address)), transport: transport, index: index)
    }

    @Test func `are of one version of IP, that of the first that fits`() throws {
        let six = [try candidate("[::1]:7000"), try candidate("[::1]:7001")]
        let four = [try candidate("127.0.0.1:7000"), try candidate("127.0.0.1:7001")]
        let mixed = [six[0], four[0], six[1], four[1]]
        #expect(try Entrance.usable(mixed, isOwned: false, own: []) == six)
        #expect(try Entrance.usable(mixed.reversed(), isOwned: false, own: []) == [four[1], four[0]])
    }

    @Test func `are eight by UDP, and one by TCP`() throws {
        let udp = try (0..<12).map { try candidate("127.0.0.1:\(7_000 + $0)", index: $0) }
        let tcp = try (0..<3).map { try candidate("127.0.0.1:\(8_000 + $0)", .tcp, index: $0) }
        #expect(try Entrance.usable(tcp + udp, isOwned: false, own: []) == Array(udp[..<8]))
        #expect(try Entrance.usable(udp + tcp, of: .tcp, isOwned: false, own: []) == [tcp[0]])
    }

    @Test func `carry media, and have an address that needs no resolving`() throws {
        var control = try candidate("127.0.0.1:7000")
        control.component = 2
        var hidden = try candidate("127.0.0.1:7001")
        hidden.address = "3f0c7a5e.local"
        let unusable = [control, hidden]
        #expect(throws: SignallingError.unusable("no UDP candidate")) {
            try Entrance.usable(unusable, isOwned: true, own: [])
        }
        let good = try candidate("127.0.0.1:7002")
        #expect(try Entrance.usable(unusable + [good], isOwned: false, own: []) == [good])
    }

    /// What is tried must not depend on what the server claims besides.
    @Test func `elsewhere are tried only where there are none on this machine`() throws {
        let remote = try candidate("198.51.100.1:7000")
        let own = try candidate("192.0.2.7:7000")
        let address = try #require(IPAddress("192.0.2.7"))
        #expect(try Entrance.usable([remote, own], isOwned: true, own: [address]) == [own])
        #expect(try Entrance.usable([remote, own], isOwned: true, own: []) == [remote, own])
        let error = #expect(throws: SignallingError.self) {
            try Entrance.usable([remote], isOwned: false, own: [address])
        }
        let words = try #require(error).description
        #expect(words.contains("198.51.100.1:7000 is not this machine"))
    }
}

@Suite struct `A page between two sessions` {
    private var page = ReturningPage()
    private var random = Steady()

    /// Makes every pause as long as it is named: a number in the middle of a range of `Double`.
    private struct Steady: RandomNumberGenerator {
        mutating func next() -> UInt64 { 1 << 52 }
    }

    private mutating func actions(at milliseconds: Int64) -> [ReturningPage.Action] {
        page.actions(at: time(milliseconds))
    }

    @Test mutating func `does nothing while it has a session`() {
        let idle = actions(at: 1_000_000)
        page.made()
        page.failed(.unreachable(""), at: time(0), using: &random)
        #expect(idle.isEmpty && page.state == .playing(since: nil))
    }

    @Test mutating func `counts a session from its first handshake, and loses it once`() {
        page.connected(at: time(100))
        page.connected(at: time(900))
        #expect(page.state == .playing(since: time(100)))
        page.lost(at: time(1_000), using: &random)
        let paused = page.state
        page.lost(at: time(1_300), using: &random)
        page.connected(at: time(1_300))
        #expect(page.state == paused)
    }

    @Test mutating func `asks for nothing more once it was refused`() {
        page.lost(at: time(0), using: &random)
        _ = actions(at: 10_000)
        page.failed(.refused(status: 403, detail: ""), at: time(10_000), using: &random)
        page.lost(at: time(10_001), using: &random)
        page.socketLost(at: time(10_002), using: &random)
        let isWanted = page.socketTried(isTaken: true, at: time(12_000), using: &random)
        let after = actions(at: 100_000)
        #expect(page.state == .refused && !isWanted && after.isEmpty)
    }

    @Test mutating func `is not disturbed by its socket while it asks`() {
        page.socketLost(at: time(0), using: &random)
        page.lost(at: time(0), using: &random)
        let both = actions(at: 10_000)
        #expect(both == [.openSocket, .connect])
        let isWanted = page.socketTried(isTaken: true, at: time(10_000), using: &random)
        let after = actions(at: 20_000)
        #expect(!isWanted && after.isEmpty && page.state == .asking)
    }

    @Test mutating func `tries its socket after pauses of its own, which begin anew once it is open`() {
        page.socketLost(at: time(0), using: &random)
        // What is lost already is not lost again.
        page.socketLost(at: time(400), using: &random)
        for (early, due) in [(499, 500), (1_499, 1_500), (3_499, 3_500)] as [(Int64, Int64)] {
            let before = actions(at: early)
            let then = actions(at: due)
            #expect(before.isEmpty && then == [.openSocket])
            _ = page.socketTried(isTaken: false, at: time(due), using: &random)
        }
        _ = page.socketTried(isTaken: true, at: time(7_500), using: &random)
        let open = actions(at: 100_000)
        page.socketLost(at: time(100_000), using: &random)
        let before = actions(at: 100_499)
        let then = actions(at: 100_500)
        #expect(open.isEmpty && before.isEmpty && then == [.openSocket])
    }
}
