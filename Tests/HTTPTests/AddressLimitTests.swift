import Base
import TestSupport
import Testing

@testable import HTTP

private func client(_ text: String, isForwarded: Bool = false) -> AddressLimits.Client {
    guard let ip = IPAddress(text) else {
        Issue.record("\(text) is no address")
        return AddressLimits.Client(ip: .any)
    }
    return AddressLimits.Client(ip: ip, isForwarded: isForwarded)
}

@Suite struct `What is left to an address` {
    private var limits: AddressLimits

    init() {
        limits = Self.limits { _ in }
    }

    /// Ten connections, and ten requests with one more each second.
    private static func limits(_ change: (inout HTTPServerSettings) -> Void) -> AddressLimits {
        var settings = HTTPServerSettings(address: TransportAddress(ip: .loopback, port: 0))
        settings.maximumConnectionsPerAddress = 10
        settings.requestBurstPerAddress = 10
        settings.requestRatePerAddress = 1
        change(&settings)
        return AddressLimits(settings)
    }

    /// How many of so many requests pass.
    private mutating func passed(_ client: AddressLimits.Client, of count: Int = 100, at now: UInt64) -> Int {
        var sum = 0
        for _ in 0..<count where limits.request(client, at: now) == nil { sum += 1 }
        return sum
    }

    private mutating func connected(_ client: AddressLimits.Client, of count: Int = 100) -> Int {
        var sum = 0
        for _ in 0..<count where limits.connect(client, at: 0) { sum += 1 }
        return sum
    }

    @Test mutating func `grows by the second, up to a burst`() {
        let ann = client("192.0.2.1")
        let first = passed(ann, at: 0)
        let half = passed(ann, at: 500)
        let second = passed(ann, at: 1_000)
        let early = passed(ann, at: 1_500)
        let third = passed(ann, at: 2_000)
        #expect([first, half, second, early, third] == [10, 0, 1, 0, 1])
        let hourLater = passed(ann, at: 3_600_000)
        #expect(hourLater == 10)
    }

    @Test mutating func `is told with the wait for the next request, in whole seconds`() {
        let ann = client("192.0.2.1")
        _ = passed(ann, at: 0)
        let waits = [0, 250, 999].map { limits.request(ann, at: $0) }
        #expect(waits == [1, 1, 1])
        limits.charge(2.5, to: ann, at: 1_000)
        // One is there, and two and a half are owed of it.
        let owed = limits.request(ann, at: 1_000)
        #expect(owed == 3)
        let stillOwed = limits.request(ann, at: 3_000)
        let free = limits.request(ann, at: 4_000)
        #expect(stillOwed == 1 && free == nil)
    }

    /// Who shares a site with a flood must not pay for the requests that were refused because of it.
    @Test mutating func `is not taken of a network where the site has nothing left`() {
        for index in 0..<16 {
            let all = passed(client("2001:db8:0:\(String(index * 256, radix: 16))::1"), at: 0)
            #expect(all == 10)
        }
        let ann = client("2001:db8:0:ffff::1")
        let none = passed(ann, at: 0)
        #expect(none == 0)
        // The site gets 16 a second, and all ten of this network are there.
        let later = passed(ann, at: 1_000)
        #expect(later == 10)
        let others = passed(client("2001:db8:0:fffe::1"), at: 1_000)
        #expect(others == 6)
    }

    @Test mutating func `may come back for a cheap request, but no more than it was counted as`() {
        let ann = client("192.0.2.1")
        _ = passed(ann, at: 0)
        limits.charge(-0.5, to: ann, at: 0)
        let half = passed(ann, at: 0)
        limits.charge(-0.5, to: ann, at: 0)
        let whole = passed(ann, at: 0)
        limits.charge(-1_000, to: ann, at: 0)
        let most = passed(ann, at: 0)
        #expect([half, whole, most] == [0, 1, 1])
        // Never more than a burst.
        for _ in 0..<5 { limits.charge(-1, to: ann, at: 1_000_000) }
        let burst = passed(ann, at: 1_000_000)
        #expect(burst == 10)
    }

    @Test mutating func `is not charged of who is not known, and nobody is remembered for it`() {
        limits.charge(100, to: client("192.0.2.1"), at: 0)
        #expect(limits.count == 0)
        let all = passed(client("192.0.2.1"), at: 0)
        #expect(all == 10)
    }

    @Test mutating func `is its own, whoever is next to it`() {
        let first = passed(client("192.0.2.1"), at: 0)
        let next = passed(client("192.0.2.2"), at: 0)
        // The same address, written as one of IPv6.
        let same = passed(client("::ffff:192.0.2.1"), at: 0)
        #expect([first, next, same] == [10, 10, 0])
        let forwarded = passed(client("192.0.2.3", isForwarded: true), at: 0)
        let direct = passed(client("192.0.2.3"), at: 0)
        #expect(forwarded == 10 && direct == 0)
    }

    @Test(arguments: ["127.0.0.1", "127.255.0.9", "::1", "::ffff:127.0.0.1"])
    mutating func `has no limit on this machine, unless it comes from elsewhere`(address: String) {
        let own = passed(client(address), at: 0)
        let ownConnections = connected(client(address))
        #expect(own == 100 && ownConnections == 100 && limits.count == 0)
        // Nothing is counted, and so nothing is taken away.
        limits.disconnect(client(address))
        limits.charge(5, to: client(address), at: 0)
        let forwarded = passed(client(address, isForwarded: true), at: 0)
        #expect(forwarded == 10)
        limits = Self.limits { $0.limitsLoopback = true }
        let limited = passed(client(address), at: 0)
        let limitedConnections = connected(client(address))
        #expect(limited == 10 && limitedConnections == 10)
    }

    @Test mutating func `are connections until they end, however long they last`() {
        let ann = client("192.0.2.1")
        let first = connected(ann)
        #expect(first == 10)
        limits.forgetIdle(at: .max)
        #expect(limits.count == 1)
        let full = connected(ann)
        limits.disconnect(ann)
        limits.disconnect(ann)
        let again = connected(ann)
        #expect(full == 0 && again == 2)
        for _ in 0..<10 { limits.disconnect(ann) }
        limits.forgetIdle(at: .max)
        #expect(limits.count == 0)
        let anew = connected(ann)
        #expect(anew == 10)
    }

    /// Refused connections are not counted anywhere, or a site would be full for ever.
    @Test mutating func `are connections of a site that are counted once and taken back once`() {
        let networks = (0..<20).map { client("2001:db8:0:\(String($0, radix: 16))::1") }
        // All of one /56, which may have 40.
        let counts = networks.map { connected($0, of: 20) }
        let expected = [10, 10, 10, 10] + [Int](repeating: 0, count: 16)
        #expect(counts == expected)
        for network in networks[0..<4] {
            for _ in 0..<10 { limits.disconnect(network) }
        }
        limits.forgetIdle(at: .max)
        #expect(limits.count == 0)
        let later = connected(networks[19])
        #expect(later == 10)
    }

    @Test mutating func `is remembered only until nothing is missing`() {
        let ann = client("192.0.2.1")
        _ = passed(ann, of: 3, at: 0)
        limits.forgetIdle(at: 2_999)
        #expect(limits.count == 1)
        limits.forgetIdle(at: 3_000)
        #expect(limits.count == 0)
        let site = client("2001:db8::1")
        _ = passed(site, of: 8, at: 4_000)
        #expect(limits.count == 3)
        // The site's wider networks are full again sooner.
        limits.forgetIdle(at: 4_500)
        #expect(limits.count == 2)
        limits.forgetIdle(at: 6_000)
        #expect(limits.count == 1)
        limits.forgetIdle(at: 12_000)
        #expect(limits.count == 0)
    }

    /// A flood from many addresses takes no more memory, and is no harm to those who are known.
    @Test mutating func `is nothing for new addresses once too many are known`() {
        var refused = 0
        for address in 0..<65_536 as Range<UInt32> {
            let client = AddressLimits.Client(ip: IPAddress(ipv4: 0x0A00_0000 + address))
            if limits.request(client, at: 0) != nil { refused += 1 }
        }
        #expect(refused == 0 && limits.count == 65_536)
        let new = client("192.0.2.1")
        let wait = limits.request(new, at: 0)
        let isConnected = limits.connect(new, at: 0)
        let site = limits.request(client("2001:db8::1"), at: 0)
        #expect(wait == 1 && !isConnected && site == 1 && limits.count == 65_536)
        let known = client("10.0.0.9")
        let isKnownConnected = limits.connect(known, at: 0)
        let knownPassed = passed(known, at: 0)
        #expect(isKnownConnected && knownPassed == 9)
        limits.forgetIdle(at: 1_000)
        #expect(limits.count == 1)
        let later = limits.request(new, at: 1_000)
        #expect(later == nil)
    }
}

@Suite struct `The usual limits of an address` {
    private let settings = HTTPServerSettings(address: TransportAddress(ip: .loopback, port: 0))

    /// Each has a WebSocket and loads a page by two more connections, and joins with two requests.
    @Test func `are enough for an office of three hundred who join in the same moment`() {
        var limits = AddressLimits(settings)
        let office = client("192.0.2.1")
        let connected = (0..<900).count { _ in limits.connect(office, at: 0) }
        let joined = (0..<600).count { _ in limits.request(office, at: 0) == nil }
        #expect(connected == 900 && joined == 600)
    }

    @Test func `leave half of all connections to others, however many networks a site has`() {
        #expect(settings.maximumConnectionsPerAddress * 16 <= settings.maximumConnections)
        var small = settings
        (small.maximumConnections, small.maximumConnectionsPerAddress) = (1_000, 100)
        var limits = AddressLimits(small)
        var taken = 0
        for network in 0..<64 {
            let one = client("2001:db8:0:\(String(network * 64, radix: 16))::1")
            taken += (0..<110).count { _ in limits.connect(one, at: 0) }
        }
        #expect(taken == 500)
        let others = (0..<200).count { _ in limits.connect(client("198.51.100.7"), at: 0) }
        #expect(others == 100)
    }
}
