import Base
import Testing

@testable import Net

@Suite struct `Local addresses` {
    private let wired = LocalAddresses.Entry(ip: IPAddress(ipv4: 0xC0A8_0114), isUp: true, isLoopback: false)
    private let sixth = LocalAddresses.Entry(
        ip: IPAddress(high: 0x2001_0DB8_0000_0000, low: 1), isUp: true, isLoopback: false)
    private let linkLocal = LocalAddresses.Entry(
        ip: IPAddress(high: 0xFE80_0000_0000_0000, low: 1), isUp: true, isLoopback: false)
    private let unplugged = LocalAddresses.Entry(
        ip: IPAddress(ipv4: 0x0A00_0001), isUp: false, isLoopback: false)
    private let loopback = LocalAddresses.Entry(ip: .loopback, isUp: true, isLoopback: true)

    private func advertised(
        _ bound: IPAddress, _ entries: [LocalAddresses.Entry], includeLoopback: Bool = false
    ) -> [IPAddress] {
        LocalAddresses.advertised(for: bound, includeLoopback: includeLoopback, among: entries)
    }

    @Test func `are the bound one if there is one`() {
        #expect(advertised(wired.ip, [wired, sixth]) == [wired.ip])
        #expect(LocalAddresses.advertised(for: .loopback) == [.loopback])
    }

    @Test func `are those of interfaces that are up, IPv4 first, without link-local ones`() {
        let all = [loopback, linkLocal, sixth, wired, unplugged, wired]
        #expect(advertised(IPAddress(high: 0, low: 0), all) == [wired.ip, sixth.ip])
        #expect(advertised(.any, all) == [wired.ip])
    }

    @Test func `have the loopback one among them if there is no other, or it is asked for`() {
        #expect(advertised(.any, [loopback, unplugged]) == [.loopback])
        #expect(advertised(.any, []) == [.loopback])
        #expect(advertised(.any, [loopback, wired], includeLoopback: true) == [wired.ip, .loopback])
    }

    @Test func `are found on this machine`() {
        let found = LocalAddresses.advertised(for: .any, includeLoopback: true)
        #expect(found.contains(.loopback))
        #expect(found.allSatisfy { $0.ipv4 != nil && !$0.isUnspecified })
    }
}

@Suite struct `Resources of the process` {
    @Test func `are read from the system`() throws {
        let limit = try #require(ProcessResources.raiseOpenFileLimit())
        #expect(limit >= 256)
        #expect(ProcessResources.raiseOpenFileLimit() == limit)
        let resident = try #require(ProcessResources.residentBytes())
        #expect((1 << 20..<1 << 40).contains(resident))
        #expect(!ProcessResources.processors().isEmpty)
    }

    @Test func `count time forward`() {
        let (clock, cpu) = (MonotonicClock.now(), ProcessorClock.threadNanoseconds())
        var work: UInt64 = 1
        while ProcessorClock.threadNanoseconds() == cpu { work &*= 3 }
        #expect(work != 0)
        #expect(MonotonicClock.now() > clock)
        #expect(ProcessorClock.processNanoseconds() >= ProcessorClock.threadNanoseconds() - cpu)
    }
}
