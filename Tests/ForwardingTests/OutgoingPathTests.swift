import Base
import Peer
import Testing

@testable import Forwarding

@Suite struct `A path to a client by TCP` {
    private let path = OutgoingPath()
    private let start = MonotonicTime(nanoseconds: 1_000_000_000)

    private func address(_ port: UInt16) -> TransportAddress {
        TransportAddress(ip: .loopback, port: port, transport: .tcp)
    }

    private func tell(_ acknowledged: UInt64, waiting: Int, from port: UInt16, after milliseconds: Int64) {
        path.receive(
            StreamBacklog(acknowledged: acknowledged, waiting: waiting, roundTrip: .milliseconds(40)),
            from: address(port), at: start + .milliseconds(milliseconds))
    }

    @Test(arguments: [5_001, 5_000] as [UInt16])
    func `is measured anew over another connection, even one from the same port`(port: UInt16) {
        tell(1_000_000, waiting: 50_000, from: 5_000, after: 0)
        tell(1_000_100, waiting: 50_000, from: 5_000, after: 500)
        #expect(path.isOverused)
        tell(0, waiting: 0, from: port, after: 520)
        #expect(!path.isOverused)
        // 4 Mbit/s are acknowledged, and fewer bytes than over the connection before.
        for step in 1...50 as ClosedRange<Int64> {
            tell(UInt64(step) * 10_000, waiting: 0, from: port, after: 520 + 20 * step)
        }
        #expect(path.bitrate > 3_500_000, "\(path.bitrate)")
    }
}
