import Base
import Forwarding
import Peer
import Testing
import Wire

@testable import Net
@testable import Node

@Suite struct SharedPorts {
    private let port = SharedPort(workers: 3)
    private let sharers: [PortSharer]
    private let ann = TransportAddress(ip: IPAddress(ipv4: 0xC000_0201), port: 10_001)
    private let ben = TransportAddress(ip: IPAddress(ipv4: 0xC000_0201), port: 10_002)
    private let media: [UInt8] = [0x80, 96, 0, 1]
    private let report: [UInt8] = [0x80, 201, 0, 1]

    init() {
        sharers = [PortSharer(port, index: 0), PortSharer(port, index: 1), PortSharer(port, index: 2)]
    }

    private func time(_ seconds: Int) -> MonotonicTime { .zero + .seconds(seconds) }

    private func check(for worker: Int, _ change: (inout String) -> Void = { _ in }) -> [UInt8] {
        var name = WorkerTag.text(worker) + "abcd:efgh"
        change(&name)
        var writer = STUNWriter(.bindingRequest, transactionID: STUNTransactionID(high: 1, low: 2))
        writer.append(.username, Array(name.utf8))
        return writer.sealed()
    }

    private func pass(
        _ bytes: [UInt8], _ kind: DatagramKind, from source: TransportAddress, by worker: Int,
        isOccupied: Bool = false, at second: Int = 0
    ) -> Bool {
        sharers[worker].pass(bytes.span, kind, from: source, isOccupied: isOccupied, at: time(second))
    }

    private func offer(by worker: Int) -> Bool { sharers[worker].offer(report.span, from: ann) }

    /// What worker *n* finds in its mailbox.
    private func delivered(at second: Int = 0) -> [[[UInt8]]] {
        for sharer in sharers { sharer.flush(at: time(second)) }
        return port.mailboxes.map { mailbox in
            var found: [[UInt8]] = []
            var bundle = DatagramBundle()
            mailbox.swapContents(with: &bundle)
            bundle.forEach { datagram, _ in found.append(datagram.withUnsafeBytes { Array($0) }) }
            return found
        }
    }

    @Test func `take a check to the worker that it names`() {
        let request = check(for: 2)
        #expect(pass(request, .stun, from: ann, by: 0))
        #expect(delivered() == [[], [], [request]])
        // The worker itself knows of no such session, and there are three workers.
        #expect(!pass(check(for: 0), .stun, from: ann, by: 0))
        #expect(!pass(check(for: 3), .stun, from: ann, by: 0))
        #expect(!pass(check(for: 1) { $0 = "zz" + $0.dropFirst(2) }, .stun, from: ann, by: 0))
        #expect(!pass([0, 1, 0, 0], .stun, from: ann, by: 0))
        #expect(delivered() == [[], [], []])
    }

    @Test func `take all else to where a check was answered, in order`() {
        #expect(!pass(media, .rtp, from: ann, by: 0))
        #expect(sharers[1].claim(ann, at: time(0)))
        let second: [UInt8] = [0x80, 96, 0, 2]
        #expect(pass(media, .rtp, from: ann, by: 0) && pass(second, .rtp, from: ann, by: 0))
        #expect(pass([22, 254], .dtls, from: ann, by: 2) && pass(report, .rtcp, from: ann, by: 2))
        #expect(delivered() == [[], [media, second, [22, 254], report], []])
        // The sending worker would have found the session itself.
        #expect(!pass(media, .rtp, from: ann, by: 1) && !pass(media, .rtp, from: ben, by: 1))
        #expect(delivered() == [[], [], []])
    }

    @Test func `let nobody have somebody's address by a check in their name`() {
        #expect(sharers[1].claim(ann, at: time(0)))
        // Of another worker's session, by whichever worker it comes.
        #expect(!sharers[2].claim(ann, at: time(4)))
        #expect(!pass(check(for: 2), .stun, from: ann, by: 0, at: 4))
        // A session that is still heard keeps the address.
        #expect(pass(media, .rtp, from: ann, by: 0, at: 4))
        #expect(!pass(check(for: 2), .stun, from: ann, by: 0, at: 8) && !sharers[2].claim(ann, at: time(8)))
        // Heard by the worker that gets what they send.
        #expect(!pass(check(for: 2), .stun, from: ben, by: 0, isOccupied: true))
        // Their own checks come through.
        #expect(pass(check(for: 1), .stun, from: ann, by: 0, at: 8) && sharers[1].claim(ann, at: time(8)))
        // A NAT gave the address to somebody else.
        #expect(pass(check(for: 2), .stun, from: ann, by: 0, at: 14) && sharers[2].claim(ann, at: time(14)))
        #expect(pass(media, .rtp, from: ann, by: 0, at: 14))
        #expect(delivered(at: 14).map(\.count) == [0, 2, 2])
    }

    @Test func `lead to where a session was for a moment, and forget it`() {
        #expect(sharers[1].claim(ann, at: time(0)) && sharers[1].claim(ben, at: time(0)))
        sharers[1].release(ann, at: time(1))
        sharers[1].release(ben, at: time(1))
        #expect(pass(media, .rtp, from: ann, by: 0, at: 1))
        // Another session may have the address at once.
        #expect(sharers[2].claim(ben, at: time(1)))
        #expect(delivered(at: 2).map(\.count) == [0, 1, 0])
        #expect(port.knownAddresses == 2)
        _ = delivered(at: 4)
        #expect(port.knownAddresses == 1)
        #expect(!pass(media, .rtp, from: ann, by: 0, at: 4) && pass(media, .rtp, from: ben, by: 0, at: 4))
        // A worker cannot release another worker's address.
        sharers[1].release(ben, at: time(5))
        _ = delivered(at: 9)
        #expect(port.knownAddresses == 1)
    }

    @Test func `offer reports of unknown addresses to all others, a few at once`() {
        let taken = (0..<100).count { _ in offer(by: 0) }
        #expect(taken == 16)
        #expect(delivered().map(\.count) == [0, 16, 16])
        #expect(offer(by: 0))
    }
}
