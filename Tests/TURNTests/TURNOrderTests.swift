import Base
import TestSupport
import Testing
import Wire

@testable import TURN

/// What comes twice, too late, or when nobody asked for it.
@Suite struct `A relay's agent` {
    private var client = TURNTestClient()

    private static func time(_ seconds: Int64) -> MonotonicTime { TURNTestClient.time(seconds) }

    private mutating func request() -> [UInt8] {
        client.signed(.allocateRequest) { writer, _ in writer.append(.requestedTransport, [17, 0, 0, 0]) }
    }

    private mutating func receive(_ message: [UInt8], at seconds: Int64 = 1) -> [TURNAgent.Effect] {
        client.agent.receive(
            message.span, at: Self.time(seconds), second: TURNTestClient.second,
            by: TURNTestClient.authenticator)
    }

    private mutating func open(_ relayed: TransportAddress?, at seconds: Int64 = 1) -> [TURNAgent.Effect] {
        client.agent.open(relayed, at: Self.time(seconds), by: TURNTestClient.authenticator)
    }

    /// The answers among effects.
    private static func answers(_ effects: [TURNAgent.Effect]) throws -> [ReceivedSTUN] {
        var found: [ReceivedSTUN] = []
        for case .answer(let bytes) in effects { found.append(try ReceivedSTUN(bytes)) }
        return found
    }

    @Test mutating func `makes no allocation of an address that nobody asked for`() throws {
        let early = open(TURNTestClient.relayed)
        #expect(early.isEmpty && !client.agent.hasAllocation)
        _ = try client.allocate()
        let late = open(TURNTestClient.otherPeer)
        #expect(late.isEmpty)
        let counters = client.agent.takeCounters()
        #expect(counters.allocations == 1 && counters.refusedQuota == 0)
    }

    @Test mutating func `answers the latest of two requests that wait for an address, once`() throws {
        try client.learnNonce()
        let (first, second) = (request(), request())
        let asked = receive(first) + receive(second)
        #expect(asked == [.allocate(isIPv4: true, isEven: false), .allocate(isIPv4: true, isEven: false)])
        let answered = try Self.answers(open(TURNTestClient.relayed))
        let expected = try ReceivedSTUN(second).message.transactionID
        #expect(answered.map(\.message.transactionID) == [expected])
        #expect(answered.first?.kind == STUNKind.allocateRequest.success)
        let again = open(TURNTestClient.otherPeer)
        #expect(again.isEmpty)
        // The first one is another request for an address that there is already.
        let repeated = try Self.answers(receive(first))
        #expect(try repeated.first?.errorCode() == .allocationMismatch)
    }

    @Test mutating func `may be asked again after it had no room`() throws {
        try client.learnNonce()
        let message = request()
        _ = receive(message)
        let refused = try Self.answers(open(nil))
        #expect(try refused.first?.errorCode() == .quotaReached)
        let asked = receive(message, at: 2)
        #expect(asked == [.allocate(isIPv4: true, isEven: false)])
        _ = open(TURNTestClient.relayed, at: 2)
        let end = Self.time(602)
        #expect(client.agent.deadline == end)
    }

    @Test mutating func `lets an address go once, whoever ends it`() throws {
        _ = try client.allocate()
        let early = client.agent.advance(to: Self.time(600))
        #expect(early.isEmpty)
        let due = client.agent.advance(to: Self.time(601))
        #expect(due == [.release])
        let again = client.agent.advance(to: Self.time(700))
        #expect(again.isEmpty && client.agent.deadline == nil)
        _ = try client.allocate(at: 701)
        _ = try client.refresh(0, at: 702)
        #expect(client.releases == 1)
        // The address is gone, and so is all that led to it.
        let after = client.agent.advance(to: Self.time(2_000))
        #expect(after.isEmpty && client.releases == 1)
        #expect(try client.refresh(0, at: 703)?.errorCode() == .allocationMismatch)
    }

    @Test mutating func `keeps what is relayed to an old address from a new one`() throws {
        _ = try client.allocate()
        _ = try client.bind(0x4000, to: TURNTestClient.peer)
        _ = try client.refresh(0)
        _ = try client.allocate(at: 2)
        try client.say([1], by: 0x4000, at: 3)
        #expect(client.relayed.isEmpty)
        #expect(client.hear([2], from: TURNTestClient.peer, at: 3).isEmpty)
        #expect(client.agent.openChannels(at: Self.time(3)).isEmpty)
        #expect(client.agent.takeCounters().refusedPeers == 2)
    }
}

@Suite struct `A limit per second` {
    @Test func `begins each second with the first use after the last one`() {
        var limit = RateLimit(3)
        func uses(at milliseconds: Int64) -> Int {
            var count = 0
            while limit.take(at: .zero + .milliseconds(milliseconds)) { count += 1 }
            return count
        }
        let counts = [500, 1_499, 1_500, 2_400, 9_000, 9_999, 10_000].map { uses(at: $0) }
        #expect(counts == [3, 0, 3, 0, 3, 0, 3])
    }

    @Test func `is used by no more than fits into what is left`() {
        var limit = RateLimit(100)
        let taken = [60, 41, 40, 1, 0].map { limit.take($0, at: .zero) }
        #expect(taken == [true, false, true, false, true])
    }

    @Test func `is never enough for more than itself, and not spoiled by asking`() {
        var limit = RateLimit(100)
        let tooMuch = limit.take(101, at: .zero)
        let most = limit.take(Int.max, at: .zero)
        let all = limit.take(100, at: .zero)
        #expect(!tooMuch && !most && all)
    }
}

@Suite struct `A stream of a relay's client` {
    private static let channelData: [UInt8] = [0x40, 0, 0, 2, 7, 8, 0, 0]

    @Test func `stays over once it is broken`() throws {
        var reader = TURNFrameReader()
        var found = 0
        let broken = Self.channelData + [0x80, 0, 0, 0]
        #expect(throws: WireError.self) { try reader.read(broken.span) { _ in found += 1 } }
        #expect(found == 1)
        for _ in 0..<3 {
            #expect(throws: WireError.self) {
                try reader.read(Self.channelData.span) { _ in found += 1 }
            }
        }
        #expect(found == 1)
    }

    @Test(
        arguments: [
            // The longest message of each kind, and what is a word longer.
            ([0x40, 0, 0x07, 0xFC], 2_048), ([0x40, 0, 0x07, 0xFD], nil), ([0, 1, 0x07, 0xEC], 2_048),
            ([0, 1, 0x07, 0xF0], nil), ([0, 1, 0, 2], nil), ([0x40, 0, 0, 1], 8),
            ([0x7F, 0xFE, 0, 0], 4), ([0x7F, 0xFF, 0, 0], nil),
        ] as [([UInt8], Int?)])
    func `has messages as long as their beginnings say`(head: [UInt8], length: Int?) {
        var reader = TURNFrameReader()
        var found: [Int] = []
        let bytes = head + [UInt8](repeating: 0, count: 2_048 - 4)
        let isRead = (try? reader.read(bytes.span) { found.append($0.count) }) != nil
        #expect(found.first == length)
        if length == nil { #expect(!isRead && found.isEmpty) }
    }
}
