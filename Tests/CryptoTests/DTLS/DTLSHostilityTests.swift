import Base
import Crypto
import MallocCounter
import TestSupport
import Testing
import Wire

/// What strangers and broken clients send.
@Suite struct DTLSHostility {
    /// First flights of browsers, in two datagrams each, since they offer DTLS 1.3 with post-quantum keys too.
    static func browserFlights() throws -> [[[UInt8]]] {
        try PacketCapture("DTLS/client-hellos.hex").packets.map { line in
            var datagrams: [[UInt8]] = []
            var offset = 0
            while let length = try? line.span.uint16(at: offset) {
                datagrams.append(Array(line[(offset + 2)..<(offset + 2 + Int(length))]))
                offset += 2 + Int(length)
            }
            return datagrams
        }
    }

    @Test(arguments: try browserFlights(), [[0, 1], [0, 0, 1], [1, 0], [1, 1, 0]])
    func `answers a browser's ClientHello in two datagrams, in any order, with DTLS 1.2`(
        _ flight: [[UInt8]], _ order: [Int]
    ) throws {
        #expect(flight.count == 2)
        let server = try makeServer()
        var answer: [DTLSEndpoint.Effect] = []
        for number in order {
            let datagram = flight[number]
            answer += server.receive(datagram.span, at: .zero)
        }
        guard case .send(let bytes) = answer.first else {
            Issue.record("no answer")
            return
        }
        #expect(answer.count == 1)
        // ServerHello: version 1.2, cipher suite, use_srtp with AEAD_AES_128_GCM.
        #expect(bytes[0] == 22 && bytes[13] == 2)
        #expect(Array(bytes[25..<27]) == [0xFE, 0xFD])
        let session = Int(bytes[59])
        #expect(Array(bytes[(60 + session)..<(62 + session)]) == [0xC0, 0x2B])
        let extensions: [UInt8] = [0, 14, 0, 5, 0, 2, 0, 7, 0]
        #expect(bytes.indices.contains { bytes[$0...].starts(with: extensions) })
    }

    @Test func `makes nothing for what is no ClientHello`() throws {
        let server = try makeServer()
        let flight = try #require(try Self.browserFlights().first)
        let alert: [UInt8] = [21, 0xFE, 0xFD, 0, 0, 0, 0, 0, 0, 0, 9, 0, 2, 2, 40]
        let finished: [UInt8] = [22, 0xFE, 0xFD, 0, 1, 0, 0, 0, 0, 0, 0, 0, 1, 1]
        for datagram in [alert, finished, [], [22], Array(flight[0].prefix(500))] {
            #expect(server.receive(datagram.span, at: .zero).isEmpty)
            #expect(server.deadline == nil)
        }
    }

    @Test(arguments: 0..<30)
    func `is not disturbed by garbage between the records`(_ seed: Int) throws {
        var random = SeededGenerator(seed: UInt64(seed))
        var pair = try DTLSPair(mtu: 300)
        pair.start()
        for _ in 0..<2_000 where !pair.isConnected {
            var garbage = (0..<Int.random(in: 1...200, using: &random)).map { _ in
                UInt8.random(in: 0...255, using: &random)
            }
            garbage[0] = UInt8.random(in: 20...63, using: &random)
            pair.perform(pair.server.receive(garbage.span, at: pair.now), of: .server)
            pair.perform(pair.client.receive(garbage.span, at: pair.now), of: .client)
            pair.run(for: .milliseconds(2))
            pair.now = pair.now + .milliseconds(2)
        }
        try pair.expectSameKeys()
    }

    /// Whatever happens to the handshake, nothing traps, and no more comes out than went in would explain.
    @Test(arguments: 0..<200)
    func `survives damaged, cut and repeated records`(_ seed: Int) throws {
        var random = SeededGenerator(seed: UInt64(seed))
        var pair = try DTLSPair(mtu: seed % 2 == 0 ? 1_200 : 300)
        pair.start()
        for _ in 0..<100 {
            for index in pair.flying.indices {
                damage(&pair.flying[index].bytes, using: &random)
            }
            pair.run(for: .milliseconds(20)) { _ in false }
            pair.now = pair.now + .milliseconds(20)
            if pair.clientMaterial != nil, Int.random(in: 0..<4, using: &random) == 0 {
                pair.perform(pair.client.send(([1, 2, 3] as [UInt8]).span), of: .client)
            }
            if Int.random(in: 0..<10, using: &random) == 0 { pair.server.releaseHandshake() }
        }
        #expect(pair.sentByServer < 500)
        #expect(pair.sentByClient < 500)
    }

    private func damage(_ bytes: inout [UInt8], using random: inout SeededGenerator) {
        switch Int.random(in: 0..<8, using: &random) {
        case 0:
            bytes[Int.random(in: 0..<bytes.count, using: &random)] ^=
                1 << UInt8.random(in: 0..<8, using: &random)
        case 1:
            bytes.removeLast(Int.random(in: 0..<bytes.count, using: &random))
        case 2:
            bytes += bytes
        case 3:
            // The fields of the handshake header: type, length, number, fragment.
            guard bytes.count > 25 else { return }
            bytes[Int.random(in: 13..<25, using: &random)] = UInt8.random(in: 0...255, using: &random)
        default: break
        }
    }

    @Test func `leaves nothing behind after 1,000 handshakes`() throws {
        guard malloc_counter_is_on() == 1 else { return }
        let identities = try (client: TestIdentities.first.get(), server: TestIdentities.second.get())
        let client = try DTLSContext(identity: identities.client)
        let server = try DTLSContext(identity: identities.server)
        func run(_ count: Int) throws {
            for number in 0..<count {
                var pair = DTLSPair(
                    client: DTLSEndpoint(
                        context: client, role: .client, expectedFingerprints: [identities.server.fingerprint]),
                    server: DTLSEndpoint(
                        context: server, role: .server,
                        expectedFingerprints: [
                            number % 4 == 3 ? identities.server.fingerprint : identities.client.fingerprint
                        ]))
                pair.start()
                // All of them end somewhere else: half-way, connected, released, closed, refused.
                pair.run { number % 3 == 0 ? $0.sentByServer > 0 : $0.isConnected || $0.serverClosed != nil }
                if number % 2 == 0 { pair.server.releaseHandshake() }
                if number % 5 == 0 { pair.perform(pair.server.close(), of: .server) }
            }
        }
        try run(100)
        let before = malloc_counter_live_bytes()
        try run(1_000)
        let grown = malloc_counter_live_bytes() - before
        #expect(grown < 4_096, "1,000 handshakes left \(grown) bytes")
    }

    @Test func `keeps little of a connection that was released`() throws {
        guard malloc_counter_is_on() == 1 else { return }
        var pair = try DTLSPair()
        pair.start()
        pair.run()
        let connected = malloc_counter_live_bytes()
        pair.server.releaseHandshake()
        let freed = connected - malloc_counter_live_bytes()
        #expect(freed > 40_000)
    }

    private func makeServer() throws -> DTLSEndpoint {
        DTLSEndpoint(
            context: try DTLSContext(identity: TestIdentities.second.get()), role: .server,
            expectedFingerprints: [try TestIdentities.first.get().fingerprint])
    }
}
