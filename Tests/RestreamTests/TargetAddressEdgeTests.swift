import Base
import Foundation
import Restream
import TestSupport
import Testing

@Suite struct `The address of a target at its edges` {
    private static let letters = String(repeating: "a", count: 63)

    /// What is stored is the text; a target must not have another address after a restart.
    @Test(arguments: [
        ("rtmp://live.example.org/app//", "rtmp://live.example.org/app"),
        ("rtmp://live.example.org/app///", "rtmp://live.example.org/app"),
        ("rtmp://live.example.org/a//b//", "rtmp://live.example.org/a//b"),
        ("rtmp://live.example.org//app/", "rtmp://live.example.org//app"),
        ("rtmp://live.example.org:01935/app", "rtmp://live.example.org/app"),
        ("rtmps://live.example.org:443/app", "rtmps://live.example.org/app"),
        ("rtmps://live.example.org:1935/app", "rtmps://live.example.org:1935/app"),
        ("rtmp://live.example.org:443/app", "rtmp://live.example.org:443/app"),
        ("rtmp://[2001:DB8:0:0::7]:1935/app", "rtmp://[2001:db8::7]/app"),
    ]) func `is the same when it is read again`(text: String, normalized: String) throws {
        let address = try RestreamAddress(text)
        #expect(address.description == normalized)
        let again = try RestreamAddress(address.description)
        #expect(again == address)
    }

    @Test(arguments: ["rtmp://live.example.org//", "rtmp://live.example.org////"])
    func `needs more than slashes for an application`(text: String) {
        #expect(throws: RestreamAddress.Failure.application) { try RestreamAddress(text) }
    }

    @Test(arguments: [80, 443, 1_024, 1_935, 65_535] as [UInt16])
    func `may name these ports`(port: UInt16) throws {
        let address = try RestreamAddress("rtmp://live.example.org:\(port)/app")
        #expect(address.port == port)
    }

    @Test(arguments: ["0", "1", "22", "25", "79", "81", "442", "444", "1023", "65536", "1935 ", "19.35"])
    func `names no port of another service, and none that does not exist`(port: String) {
        #expect(throws: RestreamAddress.Failure.port) {
            try RestreamAddress("rtmp://live.example.org:\(port)/app")
        }
    }

    @Test(arguments: [
        "\(letters).org", "a.\(letters)", "x_y.example.org", "xn--bcher-kva.example", "1and1.com",
        "\(letters).\(letters).\(letters).\(letters.dropLast(2))",
    ]) func `may have a host as long as DNS allows`(host: String) throws {
        let address = try RestreamAddress("rtmp://\(host)/app")
        #expect(address.host == host)
    }

    /// A last label that begins with a digit makes some libraries read the host as an IPv4 address.
    @Test(arguments: [
        "\(letters)a.org", "\(letters).\(letters).\(letters).\(letters)", "example.1", "example.0x7f",
        "1.2.3", "1.2.3.4.5", "256.1.1.1", "01.2.3.4", "exämple.org", "a%41.org", ".org", "a.", "[]",
        "[::1]x", "[::g]", "::1", "2001:db8::7",
    ]) func `has no host that libraries read differently`(host: String) {
        #expect(throws: RestreamAddress.Failure.self) { try RestreamAddress("rtmp://\(host)/app") }
    }

    @Test func `is as long as it may be, and no longer`() throws {
        let start = "rtmp://live.example.org/"
        let room = RestreamAddress.lengthLimit - start.utf8.count
        let longest = try RestreamAddress(start + String(repeating: "a", count: room))
        #expect(longest.application.utf8.count == room)
        #expect(throws: RestreamAddress.Failure.tooLong) {
            try RestreamAddress(start + String(repeating: "a", count: room + 1))
        }
    }

    /// Where a secret is, its complaint comes before any other that would repeat less of what is wrong.
    @Test(arguments: [
        "rtmp://ann@live.example.org/app", "rtmp://ann:pw@[::1/app", "rtmp://live.example.org:25/app?key=1",
        "rtmp://?key=1", "rtmp://#x",
    ]) func `is refused for its secret before anything else`(text: String) {
        #expect(throws: RestreamAddress.Failure.secret) { try RestreamAddress(text) }
    }

    /// In a path an `@` begins no host.
    @Test func `may have signs in its application that separate hosts`() throws {
        let address = try RestreamAddress("rtmp://live.example.org/a@b:c/d;e=f")
        #expect(address.host == "live.example.org")
        #expect(address.application == "a@b:c/d;e=f")
    }

    @Test(arguments: ["\"\"", "\"http://a.example/app\"", "5", "null", "{}"])
    func `is not read from a store that has no such address`(text: String) {
        #expect(throws: (any Error).self) {
            try JSONDecoder().decode([RestreamAddress].self, from: Data("[\(text)]".utf8))
        }
    }
}

@Suite struct `The borders of the networks of targets` {
    /// The last address before a block and the first one behind it, and the first and the last one in it.
    @Test(arguments: [
        ("9.255.255.255", "10.0.0.0", "10.255.255.255", "11.0.0.0"),
        ("100.63.255.255", "100.64.0.0", "100.127.255.255", "100.128.0.0"),
        ("126.255.255.255", "127.0.0.0", "127.255.255.255", "128.0.0.0"),
        ("169.253.255.255", "169.254.0.0", "169.254.255.255", "169.255.0.0"),
        ("172.15.255.255", "172.16.0.0", "172.31.255.255", "172.32.0.0"),
        ("191.255.255.255", "192.0.0.0", "192.0.0.255", "192.0.1.0"),
        ("192.0.1.255", "192.0.2.0", "192.0.2.255", "192.0.3.0"),
        ("192.88.98.255", "192.88.99.0", "192.88.99.255", "192.88.100.0"),
        ("192.167.255.255", "192.168.0.0", "192.168.255.255", "192.169.0.0"),
        ("198.17.255.255", "198.18.0.0", "198.19.255.255", "198.20.0.0"),
        ("198.51.99.255", "198.51.100.0", "198.51.100.255", "198.51.101.0"),
        ("203.0.112.255", "203.0.113.0", "203.0.113.255", "203.0.114.0"),
        ("2001:db7:ffff::", "2001:db8::", "2001:db8:ffff:ffff::", "2001:db9::"),
        ("2001:ffff::", "2002::", "2002:ffff:ffff::1", "2003::"),
        ("3ffe:ffff::", "3fff::", "3fff:fff:ffff::", "2600::1"),
    ]) func `are where the registries have them`(
        before: String, first: String, last: String, behind: String
    ) throws {
        for (text, isReachable) in [(before, true), (first, false), (last, false), (behind, true)] {
            let address = try #require(IPAddress(text))
            #expect(TargetNetworks.publicOnly.permits(address) == isReachable, "\(text)")
            #expect(TargetNetworks.all.permits(address), "\(text)")
        }
    }

    /// An IPv4 address is the same in the notation of IPv6.
    @Test(arguments: ["0.0.0.0", "127.0.0.1", "10.1.2.3", "169.254.169.254", "224.0.0.1", "8.8.8.8"])
    func `do not depend on how an IPv4 address is written`(text: String) throws {
        let plain = try #require(IPAddress(text))
        let mapped = try #require(IPAddress("::ffff:\(text)"))
        for networks in [TargetNetworks.publicOnly, .all] {
            #expect(networks.permits(mapped) == networks.permits(plain), "\(networks)")
        }
    }
}

@Suite struct `The list of targets when it is changed and read` {
    private let address: RestreamAddress

    init() throws { address = try RestreamAddress("rtmp://live.example.org/app") }

    @Test func `tells keys of one address apart, and addresses with one key`() throws {
        var list = RestreamList()
        let other = try RestreamAddress("rtmps://live.example.org/app")
        _ = try list.add(address, key: Secret("k"))
        _ = try list.add(other, key: Secret("k"))
        _ = try list.add(address, key: Secret("K"))
        let same = try RestreamAddress("RTMP://LIVE.example.org:1935/app/")
        #expect(throws: RestreamList.Refusal.duplicate) { try list.add(same, key: Secret("k")) }
        #expect(list.targets.map(\.number) == [1, 2, 3])
    }

    @Test func `gives no number again that a removed target had, also after it was stored`() throws {
        var list = RestreamList()
        for key in ["a", "b", "c"] { _ = try list.add(address, key: Secret(key)) }
        for number in 1...3 {
            let isRemoved = list.remove(number)
            #expect(isRemoved)
        }
        let stored = try JSONEncoder().encode(list)
        var read = try JSONDecoder().decode(RestreamList.self, from: stored)
        #expect(read.targets.isEmpty)
        let target = try read.add(address, key: Secret("a"))
        #expect(target.number == 4)
    }

    @Test func `is unchanged by what it refuses`() throws {
        var list = RestreamList()
        for number in 0..<RestreamList.limit { _ = try list.add(address, key: Secret("\(number)")) }
        let before = list
        #expect(throws: RestreamList.Refusal.full) { try list.add(address, key: Secret("x")) }
        #expect(throws: RestreamList.Refusal.duplicate) { try list.add(address, key: Secret("0")) }
        let isRemoved = list.remove(99)
        #expect(!isRemoved)
        #expect(list == before)
    }

    @Test func `does not equal a list with another key`() throws {
        var one = RestreamList()
        var other = RestreamList()
        _ = try one.add(address, key: Secret("a"))
        _ = try other.add(address, key: Secret("b"))
        #expect(one != other)
    }
}

@Suite struct `The schedule of a target at its edges` {
    /// Adds nothing to a wait. (With zeros Swift would draw again for ever.)
    private struct Ones: RandomNumberGenerator {
        mutating func next() -> UInt64 { 1 }
    }

    @Test func `waits exactly twice as long each time where chance adds nothing`() {
        var random = Ones()
        var schedule = RestreamSchedule()
        var waits: [Duration] = []
        for _ in 0..<9 { waits.append(schedule.fail(after: .zero, using: &random)) }
        let seconds: [Int] = [1, 2, 4, 8, 16, 32, 60, 60, 60]
        let expected = seconds.map { Duration.seconds($0) }
        #expect(waits == expected)
    }

    /// A target that accepts the stream and drops it again at once is no steady one.
    @Test func `begins anew only after half a minute, to the nanosecond`() {
        var random = Ones()
        var schedule = RestreamSchedule()
        for _ in 0..<3 { _ = schedule.fail(after: .zero, using: &random) }
        let short = RestreamSchedule.steadyTime - .nanoseconds(1)
        let eighth = schedule.fail(after: short, using: &random)
        #expect(eighth == .seconds(8))
        let first = schedule.fail(after: RestreamSchedule.steadyTime, using: &random)
        #expect(first == .seconds(1))
        #expect(schedule.failures == 1)
        let second = schedule.fail(after: .zero, using: &random)
        #expect(second == .seconds(2))
    }

    @Test func `goes on for ever without a trap`() {
        var random = SeededGenerator(seed: 5)
        var schedule = RestreamSchedule()
        for _ in 0..<500 {
            let wait = schedule.fail(after: .seconds(-1), using: &random)
            #expect(wait >= .seconds(1) && wait <= .seconds(73))
        }
        #expect(schedule.failures == 32)
    }

    /// Of two that failed at once.
    @Test func `does not try targets again at one moment`() {
        var random = SeededGenerator(seed: 6)
        var waits: Set<Duration> = []
        for _ in 0..<20 {
            var schedule = RestreamSchedule()
            waits.insert(schedule.fail(after: .zero, using: &random))
        }
        #expect(waits.count == 20)
    }
}
