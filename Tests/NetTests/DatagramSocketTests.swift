import Base
import Glibc
import Testing

@testable import Net

@Suite struct `A datagram socket` {
    @Test func `says that its address is in use, and how to mend it`() throws {
        let first = try DatagramSocket(bind: TransportAddress(ip: .loopback, port: 0))
        let error = #expect(throws: NetError.addressInUse(first.localAddress)) {
            try DatagramSocket(bind: first.localAddress)
        }
        let text = try #require(error?.description)
        #expect(
            text.contains("in use") && text.contains("\(first.localAddress)")
                && text.contains("stop that program, or choose another port"))
    }

    @Test func `says that an address is not of this machine`() throws {
        // 192.0.2.0/24 belongs to nobody (RFC 5737).
        let address = TransportAddress(ip: IPAddress(ipv4: 0xC000_0201), port: 0)
        #expect(throws: NetError.addressNotLocal(address)) { try DatagramSocket(bind: address) }
    }

    @Test(arguments: [
        (EACCES, "choose a port above 1023"), (EAFNOSUPPORT, "or 0.0.0.0 for all"),
        (EMFILE, "raise the limit (ulimit"), (ENODEV, "No such device"),
        (EADDRNOTAVAIL, "is not an address of this machine; choose one that is"),
    ])
    func `explains each refusal`(code: Int32, hint: String) {
        let address = TransportAddress(ip: .any, port: 443)
        #expect(NetError(binding: address, code: code).description.contains(hint))
    }

    @Test func `shares its port with those who join it, and with nobody else`() throws {
        let first = try DatagramSocket(bind: TransportAddress(ip: .loopback, port: 0), sharing: true)
        let second = try DatagramSocket(joining: first, bufferBytes: 100_000)
        #expect(second.localAddress == first.localAddress)
        // A second server, started by mistake.
        #expect(throws: NetError.addressInUse(first.localAddress)) {
            try DatagramSocket(bind: first.localAddress, sharing: true)
        }
        let alone = try DatagramSocket(bind: TransportAddress(ip: .loopback, port: 0))
        #expect(throws: NetError.addressInUse(alone.localAddress)) {
            try DatagramSocket(joining: alone, bufferBytes: 100_000)
        }

        // Each client's datagrams go to one of the two, and of many clients both have some.
        var counters = TrafficCounters()
        var clients: [[TransportAddress: Int]] = []
        // All are open at once: of two that came one after the other both might have the same port.
        var open: [DatagramSocket] = []
        for _ in 0..<64 {
            var remote = try Remote()
            remote.send([[1], [2], [3]], to: first.localAddress)
            open.append(remote.socket)
        }
        defer { withExtendedLifetime(open) {} }
        for socket in [first, second] {
            var found: [TransportAddress: Int] = [:]
            var arrivals = ReceiveBatch(coalesces: socket.coalesces)
            var hasMore = true
            while hasMore {
                hasMore = arrivals.fill(from: socket, counting: &counters)
                arrivals.forEach(counting: &counters) { _, source, _ in found[source, default: 0] += 1 }
            }
            clients.append(found)
        }
        #expect(clients.allSatisfy { !$0.isEmpty && $0.values.allSatisfy { $0 == 3 } })
        #expect(clients.reduce(0) { $0 + $1.count } == 64)
    }

    @Test func `gives its port back when it is let go`() throws {
        var socket: DatagramSocket? = try DatagramSocket(bind: TransportAddress(ip: .loopback, port: 0))
        let address = try #require(socket?.localAddress)
        socket = nil
        #expect(try DatagramSocket(bind: address).localAddress == address)
    }

    @Test func `asks for large buffers and takes what it gets`() throws {
        let small = try DatagramSocket(bind: TransportAddress(ip: .loopback, port: 0), bufferBytes: 10_000)
        let large = try DatagramSocket(bind: TransportAddress(ip: .loopback, port: 0))
        #expect(large.receiveBufferBytes > small.receiveBufferBytes)
        #expect(large.sendBufferBytes > small.sendBufferBytes)
    }

    @Test func `counts what arrives while its receive buffer is full`() throws {
        let socket = try DatagramSocket(bind: TransportAddress(ip: .loopback, port: 0), bufferBytes: 10_000)
        var remote = try Remote()
        remote.send((0..<200).map { datagram($0, size: 1_000) }, to: socket.localAddress)
        var counters = TrafficCounters()
        var arrivals = ReceiveBatch(coalesces: socket.coalesces)
        while arrivals.fill(from: socket, counting: &counters) {
            arrivals.forEach(counting: &counters) { _, _, _ in }
        }
        arrivals.forEach(counting: &counters) { _, _, _ in }
        #expect(socket.droppedByKernel > 0)
        #expect(counters.datagramsIn < 200)
    }
}

@Suite struct `A receive batch` {
    @Test(arguments: [false, true])
    func `gives each datagram by itself, coalesced or not`(coalescing: Bool) throws {
        var remote = try Remote(coalescing: coalescing)
        let sender = try Sender()
        var sent: [[UInt8]] = []
        for number in 0..<150 { sent.append(datagram(number, size: number % 40 == 39 ? 77 : 1_100)) }
        for bytes in sent { sender.append(bytes, to: remote.address) }
        sender.flush()
        let received = remote.receiveWaiting()
        #expect(received.map(\.bytes) == sent)
        #expect(received.allSatisfy { $0.source == sender.socket.localAddress })
        #expect(remote.counters.datagramsIn == 150)
        #expect(remote.counters.bytesIn == UInt64(sent.map(\.count).reduce(0, +)))
        let isCoalesced = remote.counters.coalescedMessagesIn > 0
        #expect(isCoalesced == (coalescing && remote.socket.coalesces && sender.socket.canSegment))
    }

    @Test(arguments: [false, true])
    func `tells when each datagram came, however late it is read`(coalescing: Bool) throws {
        var remote = try Remote(coalescing: coalescing, stamping: true)
        let sender = try Sender()
        var latest: (before: MonotonicTime, arrivals: [MonotonicTime?], after: MonotonicTime)?
        // The kernel begins to note the time soon after it was asked, and says until then when it was read.
        for _ in 0..<10_000 {
            let before = MonotonicClock.now()
            for number in 0..<3 { sender.append(datagram(number, size: 1_100), to: remote.address) }
            sender.flush()
            let after = MonotonicClock.now()
            let received = remote.receiveWaiting()
            #expect(received.count == 3)
            let arrivals = received.map(\.arrival)
            latest = (before, arrivals, after)
            if arrivals.allSatisfy({ $0.map { before <= $0 && $0 <= after } ?? false }) { return }
        }
        Issue.record("not between sending and reading: \(String(describing: latest))")
    }

    @Test func `gives an empty datagram as an empty one`() throws {
        var remote = try Remote(coalescing: true)
        let descriptor = socket(AF_INET, Int32(SOCK_DGRAM.rawValue), 0)
        defer { close(descriptor) }
        var address = sockaddr_in()
        address.sin_family = sa_family_t(AF_INET)
        address.sin_port = remote.address.port.bigEndian
        address.sin_addr.s_addr = UInt32(0x7F00_0001).bigEndian
        let sent = withUnsafeBytes(of: &address) { bytes in
            sendto(
                descriptor, nil, 0, 0, bytes.assumingMemoryBound(to: sockaddr.self).baseAddress,
                socklen_t(MemoryLayout<sockaddr_in>.size))
        }
        #expect(sent == 0)
        #expect(remote.receive(1).map(\.bytes) == [[]])
    }

    @Test func `drops and counts what exceeds a buffer`() throws {
        var remote = try Remote()
        let sender = try Sender()
        sender.append(to: remote.address, capacity: 3_000) { _ in 3_000 }
        sender.append([1], to: remote.address)
        sender.flush()
        #expect(remote.receiveWaiting().map(\.bytes) == [[1]])
        #expect(remote.counters.droppedTruncated == 1)
    }
}
