import Base
import TestSupport
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

    /// A signature by a longer key would be checked while others' media wait.
    @Test(arguments: [
        ("ec-256", true), ("rsa-2048", true), ("rsa-4096", true), ("rsa-8192", false), ("ed25519", false),
    ]) func `have keys that cost little to check`(name: String, isTaken: Bool) throws {
        #expect(CertificateKey.isAffordable(try Fixtures.bytes("Certificates/\(name).der")) == isTaken)
    }

    @Test(arguments: [("sha-1", 20), ("sha-224", 28), ("md5", 16)])
    func `are pinned by no digest that is weaker than SHA-256`(name: String, length: Int) {
        #expect(CertificateFingerprint(algorithm: name, bytes: Array(repeating: 1, count: length)) == nil)
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
