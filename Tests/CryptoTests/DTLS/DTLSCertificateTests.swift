import Base
import Testing

@testable import Crypto

/// Which certificates are believed.
@Suite struct DTLSCertificates {
    @Test(arguments: CertificateFingerprint.Algorithm.allCases)
    func `are recognised by a digest of any known kind`(
        _ algorithm: CertificateFingerprint.Algorithm
    ) throws {
        let identity = try TestIdentities.first.get()
        let bytes = try #require(CertificateFingerprint(of: identity.certificate, algorithm: algorithm)).bytes
        let expected = try #require(
            CertificateFingerprint(algorithm: algorithm.rawValue.uppercased(), bytes: bytes))
        var pair = try DTLSPair()
        pair.server = try server(expecting: [expected])
        pair.start()
        pair.run()
        try pair.expectSameKeys()
    }

    @Test func `are needed, of a client too`() throws {
        var pair = try DTLSPair()
        pair.client = DTLSEndpoint(
            context: try DTLSContext(), role: .client,
            expectedFingerprints: [try TestIdentities.second.get().fingerprint])
        pair.start()
        pair.run { $0.clientClosed != nil && $0.serverClosed != nil }
        #expect(pair.serverMaterial == nil)
        guard case .handshakeFailed(let reason) = pair.serverClosed else {
            Issue.record("the server did not end it")
            return
        }
        #expect(reason.contains("did not return a certificate"))
    }

    @Test func `have fingerprints of the right length`() {
        #expect(CertificateFingerprint(algorithm: "sha-256", bytes: Array(repeating: 0, count: 31)) == nil)
        #expect(CertificateFingerprint(algorithm: "md5", bytes: Array(repeating: 0, count: 16)) == nil)
    }

    @Test func `differ from each other`() throws {
        let (first, second) = (try TestIdentities.first.get(), try TestIdentities.second.get())
        #expect(first.certificate != second.certificate)
        #expect(first.fingerprint != second.fingerprint)
        #expect("\(first.privateKey)" == "<secret>")
    }

    private func server(expecting fingerprints: [CertificateFingerprint]) throws -> DTLSEndpoint {
        DTLSEndpoint(
            context: try DTLSContext(identity: TestIdentities.second.get()), role: .server,
            expectedFingerprints: fingerprints)
    }
}
