import Base
import COpenSSL
import Crypto
import Testing

/// A handshake over a network that does not lose anything.
@Suite struct DTLSHandshake {
    @Test func `gives both ends the same keys in two round trips`() throws {
        var pair = try DTLSPair()
        let begin = pair.now
        pair.start()
        pair.run()
        try pair.expectSameKeys()
        #expect(pair.now - begin == DTLSPair.latency * 4)
        #expect(pair.longestDatagram <= DTLSContext.defaultMTU)
        #expect(pair.sentByClient == 2)
        #expect(pair.sentByServer == 2)
        #expect(pair.client.deadline == nil)
        #expect(pair.server.deadline == nil)
    }

    @Test func `has a library of its own, which knows few key types`() throws {
        let library = try #require(rostrum_dtls_library())
        #expect(library == rostrum_dtls_library())
        for (name, isKnown) in [("EC", true), ("RSA", true), ("X25519", true), ("DH", false), ("SM2", false)]
        {
            let type = EVP_KEYMGMT_fetch(library, name, nil)
            #expect((type != nil) == isKnown, "\(name)")
            EVP_KEYMGMT_free(type)
        }
        ERR_clear_error()
    }

    @Test(arguments: [256, 300, 400, 600, 900])
    func `works in small datagrams`(_ mtu: Int) throws {
        var pair = try DTLSPair(mtu: mtu)
        pair.start()
        pair.run()
        try pair.expectSameKeys()
        #expect(pair.longestDatagram <= mtu)
    }

    @Test func `lets the server choose the SRTP profile`() throws {
        var pair = try DTLSPair(
            clientProfiles: [.aes128CMHMACSHA1_80, .aeadAES256GCM, .aeadAES128GCM],
            serverProfiles: [.aeadAES128GCM, .aeadAES256GCM])
        pair.start()
        pair.run()
        #expect(pair.serverMaterial?.profile == .aeadAES128GCM)
        try pair.expectSameKeys()
    }

    @Test(arguments: SRTPProfile.allCases)
    func `agrees on the only common profile`(_ profile: SRTPProfile) throws {
        var pair = try DTLSPair(clientProfiles: [profile])
        pair.start()
        pair.run()
        #expect(pair.serverMaterial?.profile == profile)
        try pair.expectSameKeys()
    }

    @Test func `fails without a common profile`() throws {
        var pair = try DTLSPair(clientProfiles: [.aes128CMHMACSHA1_80], serverProfiles: [.aeadAES128GCM])
        pair.start()
        pair.run { $0.clientClosed != nil && $0.serverClosed != nil }
        #expect(pair.serverClosed == .noSRTPProfile)
        #expect(pair.clientClosed != nil)
        #expect(pair.serverMaterial == nil)
    }

    @Test func `fails at both ends when the server expects another certificate`() throws {
        let identity = try TestIdentities.first.get()
        let other = try TestIdentities.third.get()
        var pair = try DTLSPair()
        pair.server = DTLSEndpoint(
            context: try DTLSContext(identity: TestIdentities.second.get()), role: .server,
            expectedFingerprints: [other.fingerprint])
        #expect(identity.fingerprint != other.fingerprint)
        pair.start()
        pair.run { $0.clientClosed != nil && $0.serverClosed != nil }
        #expect(pair.serverClosed == .wrongFingerprint)
        #expect(pair.serverMaterial == nil)
        guard case .handshakeFailed(let reason) = pair.clientClosed else {
            Issue.record("the client was not told")
            return
        }
        #expect(reason.contains("bad certificate"))
    }

    @Test func `fails at both ends when the client expects another certificate`() throws {
        var pair = try DTLSPair()
        pair.client = DTLSEndpoint(
            context: try DTLSContext(identity: TestIdentities.first.get()), role: .client,
            expectedFingerprints: [try TestIdentities.third.get().fingerprint])
        pair.start()
        pair.run { $0.clientClosed != nil && $0.serverClosed != nil }
        #expect(pair.clientClosed == .wrongFingerprint)
        #expect(pair.serverClosed != nil)
    }

    @Test func `fails when no certificate was announced`() throws {
        var pair = try DTLSPair()
        pair.server = DTLSEndpoint(
            context: try DTLSContext(identity: TestIdentities.second.get()), role: .server,
            expectedFingerprints: [])
        pair.start()
        pair.run { $0.serverClosed != nil }
        #expect(pair.serverClosed == .wrongFingerprint)
    }

    @Test func `takes any of several fingerprints`() throws {
        let identity = try TestIdentities.first.get()
        var pair = try DTLSPair()
        pair.server = DTLSEndpoint(
            context: try DTLSContext(identity: TestIdentities.second.get()), role: .server,
            expectedFingerprints: [try TestIdentities.third.get().fingerprint, identity.fingerprint])
        pair.start()
        pair.run()
        try pair.expectSameKeys()
    }

    @Test func `carries application data both ways`() throws {
        var pair = try DTLSPair()
        pair.start()
        pair.run()
        let longest = [UInt8](repeating: 7, count: pair.client.maximumApplicationData)
        pair.perform(pair.client.send(longest.span), of: .client)
        pair.perform(pair.server.send(([1, 2, 3] as [UInt8]).span), of: .server)
        pair.settle()
        #expect(pair.serverData == [longest])
        #expect(pair.clientData == [[1, 2, 3]])
        #expect(pair.longestDatagram <= DTLSContext.defaultMTU)
        let tooLong = longest + [7]
        #expect(pair.client.send(tooLong.span).isEmpty)
    }

    @Test func `gives up after 30 s`() throws {
        var pair = try DTLSPair()
        let begin = pair.now
        pair.fate = { _, _ in .lose }
        pair.start()
        pair.run { $0.clientClosed != nil }
        #expect(pair.clientClosed == .timedOut)
        #expect(pair.now - begin == DTLSEndpoint.handshakeTimeout)
        // 100, 200, 400, 800, 1,600 ms, then every 2 s, and the goodbye.
        #expect(pair.sentByClient == 20)
    }
}
