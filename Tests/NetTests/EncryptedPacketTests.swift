import Base
import Crypto
import Glibc
import Testing

@testable import Net

/// Encrypts packets with keys of its own, and knows what they must look like on the network.
private final class Viewer {
    static let room = 1_452

    private var batched: SRTPOutbound
    private var plain: SRTPOutbound
    /// Of the first packet; the roll-over counter is not 0.
    static let first: UInt64 = 70_001
    private var index = first

    init(_ profile: SRTPProfile, seed: UInt8) throws {
        let keys = try #require(
            SRTPKeys(
                profile: profile, masterKey: Array(repeating: seed, count: profile.keyLength),
                masterSalt: Array(repeating: seed ^ 0x5A, count: profile.saltLength)))
        batched = try SRTPOutbound(.openSSL, keys)
        plain = try SRTPOutbound(.openSSL, keys)
    }

    /// Encrypts as forwarding does, and leaves the tag to the sink.
    func encrypt(_ body: [UInt8], into buffer: inout MutableSpan<UInt8>) -> EncryptedPacket {
        defer { index += 1 }
        for byte in 0..<12 { buffer[byte] = UInt8(truncatingIfNeeded: byte &* 17) }
        let packet = try? batched.encrypt(
            &buffer, headerLength: 12, prefixLength: 0, body: body.span, index: index)
        return packet ?? EncryptedPacket(length: 0)
    }

    /// A packet as it must arrive.
    func expected(_ body: [UInt8], at index: UInt64) throws -> [UInt8] {
        var bytes = (0..<Self.room).map { UInt8(truncatingIfNeeded: $0 &* 17) }
        var span = bytes.mutableSpan
        let length = try plain.protect(
            &span, headerLength: 12, prefixLength: 0, body: body.span, index: index)
        return Array(bytes.prefix(length))
    }
}

/// Whoever writes into a send batch may leave the tags to it.
@Suite struct `Tags that packets lack` {
    private static let bodies = [1_100, 1_100, 1_100, 420, 60].map { (size: Int) in
        (0..<size).map { UInt8(truncatingIfNeeded: $0 &* 7 &+ size) }
    }

    private let viewers: [Viewer]

    init() throws {
        viewers = try (1...4).map { try Viewer(.aes128CMHMACSHA1_80, seed: $0) }
    }

    private func send(_ count: Int, of viewer: Viewer, to address: TransportAddress, through batch: Sender) {
        batch.append(count, to: address, capacity: Viewer.room) { number, buffer in
            viewer.encrypt(Self.bodies[number % Self.bodies.count], into: &buffer)
        }
    }

    /// What arrives of a viewer's first `count` packets.
    private func arrivals(_ count: Int, of viewer: Viewer) throws -> [[UInt8]] {
        try (0..<count).map {
            try viewer.expected(Self.bodies[$0 % Self.bodies.count], at: Viewer.first + UInt64($0))
        }
    }

    @Test(arguments: [1, 2, 3, 4, 5, 7, 15, 16, 17, 40])
    func `are made before datagrams leave`(_ count: Int) throws {
        var near = try Remote()
        var far = try Remote()
        let batch = try Sender()
        for viewer in viewers.dropLast() { send(count, of: viewer, to: near.address, through: batch) }
        send(count, of: viewers[3], to: far.address, through: batch)
        batch.flush()
        let expectedNear = try viewers.dropLast().flatMap { try arrivals(count, of: $0) }
        let expectedFar = try arrivals(count, of: viewers[3])
        #expect(near.receiveWaiting().map(\.bytes) == expectedNear)
        #expect(far.receiveWaiting().map(\.bytes) == expectedFar)
    }

    @Test func `are made before datagrams wait for room`() throws {
        var remote = try Remote()
        let batch = try Sender()
        batch.kernel.answer = { _ in EAGAIN }
        // The first finds the socket full, the second finds it known to be.
        for viewer in viewers.prefix(2) {
            send(5, of: viewer, to: remote.address, through: batch)
            batch.flush()
        }
        batch.kernel.answer = { _ in nil }
        batch.becameWritable()
        let expected = try viewers.prefix(2).flatMap { try arrivals(5, of: $0) }
        #expect(remote.receiveWaiting().map(\.bytes) == expected)
    }

    @Test func `are made where the arena is too small for all`() throws {
        var remote = try Remote()
        var capacity = SendBatch.Capacity()
        capacity.datagrams = 7
        let batch = try Sender(capacity)
        for viewer in viewers.dropLast() { send(5, of: viewer, to: remote.address, through: batch) }
        send(20, of: viewers[3], to: remote.address, through: batch)
        batch.flush()
        var expected = try viewers.dropLast().flatMap { try arrivals(5, of: $0) }
        expected += try arrivals(20, of: viewers[3])
        #expect(remote.receiveWaiting().map(\.bytes) == expected)
    }
}
