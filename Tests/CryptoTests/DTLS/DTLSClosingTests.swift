import Base
import Crypto
import Testing

/// The end of an association, with and without OpenSSL's state.
@Suite struct DTLSClosing {
    static let suites: [DTLSCipherSuite] = [.ecdsaAES128GCM, .ecdsaChaCha20Poly1305]

    @Test(arguments: suites, [false, true])
    func `is noticed by the server when the client says goodbye`(
        _ suite: DTLSCipherSuite, _ isReleased: Bool
    ) throws {
        var pair = try connected(suite)
        if isReleased { pair.server.releaseHandshake() }
        pair.perform(pair.client.close(), of: .client)
        pair.settle()
        #expect(pair.clientClosed == .closedHere)
        #expect(pair.serverClosed == .closedByPeer)
        #expect(pair.server.isClosed)
    }

    @Test(arguments: suites, [false, true])
    func `is noticed by the client when the server says goodbye`(
        _ suite: DTLSCipherSuite, _ isReleased: Bool
    ) throws {
        var pair = try connected(suite)
        pair.client.releaseHandshake()
        if isReleased { pair.server.releaseHandshake() }
        pair.perform(pair.server.close(), of: .server)
        pair.settle()
        #expect(pair.serverClosed == .closedHere)
        #expect(pair.clientClosed == .closedByPeer)
    }

    @Test func `is noticed after application data`() throws {
        var pair = try connected(.ecdsaAES128GCM)
        for number in 0..<5 {
            pair.perform(pair.client.send(([UInt8(number)] as [UInt8]).span), of: .client)
            pair.settle()
        }
        pair.server.releaseHandshake()
        pair.perform(pair.client.send(([9] as [UInt8]).span), of: .client)
        pair.settle()
        #expect(pair.serverData == [[0], [1], [2], [3], [4]])
        #expect(pair.serverClosed == nil)
        pair.perform(pair.client.close(), of: .client)
        pair.settle()
        #expect(pair.serverClosed == .closedByPeer)
    }

    @Test(arguments: suites, [false, true])
    func `is not believed when the goodbye was damaged or is not encrypted`(
        _ suite: DTLSCipherSuite, _ isReleased: Bool
    ) throws {
        var pair = try connected(suite)
        if isReleased { pair.server.releaseHandshake() }
        guard case .send(let goodbye) = pair.client.close().first else {
            Issue.record("nothing was sent")
            return
        }
        for index in goodbye.indices {
            for bit in 0..<8 {
                var damaged = goodbye
                damaged[index] ^= 1 << bit
                pair.perform(pair.server.receive(damaged.span, at: pair.now), of: .server)
                try #require(pair.serverClosed == nil, "after bit \(bit) of byte \(index)")
            }
            pair.perform(pair.server.receive(goodbye.span.extracting(0..<index), at: pair.now), of: .server)
        }
        let plain: [UInt8] = [21, 0xFE, 0xFD, 0, 0, 0, 0, 0, 0, 0, 9, 0, 2, 2, 40]
        pair.perform(pair.server.receive(plain.span, at: pair.now), of: .server)
        #expect(pair.serverClosed == nil)
        pair.perform(pair.server.receive(goodbye.span, at: pair.now), of: .server)
        #expect(pair.serverClosed == .closedByPeer)
    }

    @Test func `ends a handshake that has begun, at both ends`() throws {
        var pair = try DTLSPair()
        pair.start()
        pair.run { $0.sentByServer == 1 }
        pair.flying = []
        pair.perform(pair.server.close(), of: .server)
        pair.settle()
        #expect(pair.serverClosed == .closedHere)
        #expect(pair.clientClosed != nil)
        #expect(pair.server.deadline == nil)
    }

    @Test func `is final`() throws {
        var pair = try connected(.ecdsaAES128GCM)
        pair.perform(pair.server.close(), of: .server)
        #expect(pair.server.close().isEmpty)
        #expect(pair.server.advance(to: pair.now).isEmpty)
        #expect(pair.server.send(([1] as [UInt8]).span).isEmpty)
        let hello: [UInt8] = [22, 0xFE, 0xFD, 0, 0, 0, 0, 0, 0, 0, 9, 0, 1, 1]
        #expect(pair.server.receive(hello.span, at: pair.now).isEmpty)
    }

    @Test(arguments: [false, true])
    func `of the handshake is repeated for a client that missed it, but not often`(_ isReleased: Bool) throws
    {
        var pair = try DTLSPair()
        // The server's second datagram is its last flight.
        pair.fate = { $0 == .server && $1 == 1 ? .lose : .deliver }
        pair.start()
        pair.run { $0.serverMaterial != nil }
        #expect(pair.clientMaterial == nil)
        if isReleased { pair.server.releaseHandshake() }
        pair.run()
        try pair.expectSameKeys()

        let record: [UInt8] = [22, 0xFE, 0xFD, 0, 0, 0, 0, 0, 0, 0, 9, 0, 1, 11]
        let before = pair.sentByServer
        pair.now = pair.now + .seconds(1)
        for _ in 0..<100 {
            pair.perform(pair.server.receive(record.span, at: pair.now), of: .server)
            pair.now = pair.now + .milliseconds(1)
        }
        #expect(pair.sentByServer - before == 3)
    }

    private func connected(_ suite: DTLSCipherSuite) throws -> DTLSPair {
        let identities = try (client: TestIdentities.first.get(), server: TestIdentities.second.get())
        var pair = DTLSPair(
            client: DTLSEndpoint(
                context: try DTLSContext(identity: identities.client, cipherSuites: [suite]), role: .client,
                expectedFingerprints: [identities.server.fingerprint]),
            server: DTLSEndpoint(
                context: try DTLSContext(identity: identities.server), role: .server,
                expectedFingerprints: [identities.client.fingerprint]))
        pair.start()
        pair.run()
        try pair.expectSameKeys()
        return pair
    }
}
