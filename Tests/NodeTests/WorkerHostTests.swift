import Base
import Crypto
import Forwarding
import Net
import Peer
import Synchronization
import TestSupport
import Testing

@testable import Node

@Suite struct WorkerHosts {
    @Test func `a worker that falls idle reports its last events, and then sleeps`() throws {
        let report = WorkerReport(events: Inbox(limit: 16))
        let environment = WorkerEnvironment(
            clock: WallClock(unixNanoseconds: 0, at: .zero), random: SeededGenerator(seed: 1),
            connection: .init(dtls: try DTLSContext(identity: try DTLSIdentity())))
        let worker = Worker(environment: environment)
        var host = WorkerHost(worker: worker, report: report, at: .zero)
        let address = TransportAddress(ip: .loopback, port: 0)
        var sink = SendBatch(socket: try DatagramSocket(bind: address), hashKey: 1)

        host.advance(to: .zero, into: &sink)
        var deadline = host.deadline
        #expect(deadline == nil)

        let now = MonotonicTime.zero + .milliseconds(100)
        var stranger: [UInt8] = [1, 2, 3]
        var datagram = stranger.mutableSpan
        host.receive(&datagram, from: address, at: now, into: &sink)
        host.endOfBatch(at: now, into: &sink)
        #expect(report.counters.withLock { $0.strangers } == 0)

        deadline = host.deadline
        let due = try #require(deadline)
        #expect(due <= .zero + .seconds(1))
        host.advance(to: due, into: &sink)
        #expect(report.counters.withLock { $0.strangers } == 1)
        deadline = host.deadline
        #expect(deadline == nil)
    }
}
