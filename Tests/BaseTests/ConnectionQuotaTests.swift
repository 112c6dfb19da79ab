import Testing

@testable import Base

@Suite struct `A quota of connections` {
    private let quota = ConnectionQuota(total: 1_000, perAddress: 10, share: 500)
    private let bystander = IPAddress(high: 0x2001_0DB8_FFFF_0000, low: 1)

    /// An address of the /48 2001:db8:1::, in one of its 65,536 networks of 64 bits.
    private func address(_ network: UInt64, _ host: UInt64 = 1) -> IPAddress {
        IPAddress(high: 0x2001_0DB8_0001_0000 | network, low: host)
    }

    @Test func `counts an IPv4 address for itself`() {
        for _ in 0..<10 { #expect(quota.take(IPAddress(ipv4: 0xC633_6401))) }
        #expect(!quota.take(IPAddress(ipv4: 0xC633_6401)))
        #expect(quota.take(IPAddress(ipv4: 0xC633_6402)))
    }

    @Test func `counts all addresses of an IPv6 subscriber together`() {
        for host in 0..<10 { #expect(quota.take(address(1, UInt64(host)))) }
        #expect(!quota.take(address(1, 99)))
        #expect(quota.take(address(2)))
    }

    @Test func `gives four times as many to a 56 and sixteen times to a 48, however many networks they have`()
    {
        let inOne = (0..<256).map { quota.take(address(UInt64($0))) }
        #expect(inOne.count { $0 } == 40)
        let inAll = (0..<65_536).map { quota.take(address(UInt64($0))) }
        #expect(inAll.count { $0 } == 120)
        #expect(quota.take(bystander))
        #expect(quota.count == 161)
    }

    @Test func `counts what is added beyond it`() {
        for _ in 0..<10 { #expect(quota.take(bystander)) }
        quota.add(bystander)
        quota.giveBack(bystander)
        #expect(!quota.isOpen(to: bystander) && quota.count == 10)
        quota.giveBack(bystander)
        #expect(quota.isOpen(to: bystander) && quota.count == 9)
    }

    @Test func `never gives a site more than its share`() {
        let quota = ConnectionQuota(total: 1_000, perAddress: 100, share: 500)
        let taken = (0..<65_536).filter { quota.take(address(UInt64($0))) }
        #expect(taken.count == 500)
        #expect(quota.take(bystander))
        for network in taken { quota.giveBack(address(UInt64(network))) }
        #expect(quota.count == 1)
        #expect((0..<65_536).filter { quota.take(address(UInt64($0))) }.count == 500)
    }
}
