import Base
import COpenSSL
import Crypto
import Foundation
import TestSupport
import Testing

/// A client of OpenSSL's, between bytes.
private final class TLSClient {
    private let ssl: OpaquePointer
    private let input: OpaquePointer
    private let output: OpaquePointer

    init(version: Int32 = TLS1_3_VERSION) throws {
        let context = try #require(SSL_CTX_new(TLS_client_method()))
        defer { SSL_CTX_free(context) }
        _ = SSL_CTX_ctrl(context, SSL_CTRL_SET_MIN_PROTO_VERSION, Int(version), nil)
        _ = SSL_CTX_ctrl(context, SSL_CTRL_SET_MAX_PROTO_VERSION, Int(version), nil)
        // OpenSSL's own clients do not even ask by old versions.
        if version < TLS1_2_VERSION { SSL_CTX_set_security_level(context, 0) }
        ssl = try #require(SSL_new(context))
        input = try #require(BIO_new(BIO_s_mem()))
        output = try #require(BIO_new(BIO_s_mem()))
        SSL_set_bio(ssl, input, output)
        SSL_set_connect_state(ssl)
    }

    deinit { SSL_free(ssl) }

    /// - Returns: plain bytes.
    func receive(_ bytes: [UInt8]) -> [UInt8] {
        if !bytes.isEmpty { BIO_write(input, bytes, Int32(bytes.count)) }
        guard SSL_do_handshake(ssl) == 1 else { return [] }
        var plain = [UInt8](repeating: 0, count: 100_000)
        let count = SSL_read(ssl, &plain, Int32(plain.count))
        return Array(plain.prefix(max(0, Int(count))))
    }

    func send(_ plain: [UInt8]) { SSL_write(ssl, plain, Int32(plain.count)) }
    func close() { SSL_shutdown(ssl) }

    func takeOutput() -> [UInt8] {
        var bytes = [UInt8](repeating: 0, count: BIO_ctrl_pending(output))
        let count = bytes.isEmpty ? 0 : BIO_read(output, &bytes, Int32(bytes.count))
        return Array(bytes.prefix(Int(max(0, count))))
    }
}

@Suite struct `A TLS server` {
    private static func pem(_ name: String, _ bytes: [UInt8]) -> [UInt8] {
        let lines = Data(bytes).base64EncodedString(options: .lineLength64Characters)
        return Array("-----BEGIN \(name)-----\n\(lines)\n-----END \(name)-----\n".utf8)
    }

    private static func files(_ identity: DTLSIdentity) -> (chain: [UInt8], key: [UInt8]) {
        (pem("CERTIFICATE", identity.certificate), pem("EC PRIVATE KEY", identity.privateKey.exposed))
    }

    private let identity: TLSIdentity
    private let server: TLSConnection

    init() throws {
        let files = Self.files(try DTLSIdentity())
        identity = try TLSIdentity(chain: files.chain, key: files.key)
        server = try TLSConnection(identity)
    }

    /// Hands everything to and fro until nobody says anything more.
    /// - Parameter step: bytes at a time.
    /// - Returns: what was plain on either side.
    private func talk(_ client: TLSClient, step: Int = .max) -> (server: [UInt8], client: [UInt8]) {
        var heard: (server: [UInt8], client: [UInt8]) = ([], [])
        while true {
            heard.client += client.receive(server.takeOutput())
            let bytes = client.takeOutput()
            guard !bytes.isEmpty else { return heard }
            var place = 0
            while place < bytes.count {
                let end = place + min(step, bytes.count - place)
                heard.server += server.receive(Array(bytes[place..<end]).span)
                place = end
            }
        }
    }

    @Test(arguments: [(TLS1_2_VERSION, Int.max), (TLS1_3_VERSION, Int.max), (TLS1_3_VERSION, 1)])
    func `says and hears what is plain`(version: Int32, step: Int) throws {
        let client = try TLSClient(version: version)
        // What is said before there are keys waits for them.
        server.send([1, 2, 3])
        #expect(server.takeOutput().isEmpty)
        #expect(talk(client, step: step).client == [1, 2, 3])
        let long = (0..<50_000).map { UInt8(truncatingIfNeeded: $0 &* 31) }
        client.send(long)
        #expect(talk(client, step: step).server == long)
        server.send(long)
        var heard: [UInt8] = []
        while heard.count < long.count {
            let more = talk(client, step: step).client
            guard !more.isEmpty else { break }
            heard += more
        }
        #expect(heard == long && !server.isClosed)
        client.close()
        _ = talk(client, step: step)
        #expect(server.isClosed)
    }

    @Test func `refuses what is no TLS, and old versions`() throws {
        var random = SeededGenerator(seed: 7)
        for _ in 0..<200 {
            let server = try TLSConnection(identity)
            let bytes = (0..<Int.random(in: 1...400, using: &random)).map { _ in
                UInt8.random(in: 0...255, using: &random)
            }
            #expect(server.receive(bytes.span).isEmpty)
        }
        let plain = try TLSConnection(identity)
        #expect(plain.receive([UInt8](repeating: 3, count: 1_537).span).isEmpty && plain.isClosed)
        let old = try TLSClient(version: TLS1_1_VERSION)
        _ = talk(old)
        #expect(server.isClosed)
    }

    @Test func `survives broken records`() throws {
        var random = SeededGenerator(seed: 8)
        for _ in 0..<100 {
            let server = try TLSConnection(identity)
            let client = try TLSClient()
            _ = client.receive([])
            for _ in 0..<4 {
                var bytes = client.takeOutput()
                if !bytes.isEmpty, Bool.random(using: &random) {
                    bytes[Int.random(in: bytes.indices, using: &random)] ^= 1
                }
                _ = server.receive(bytes.span)
                _ = client.receive(server.takeOutput())
                client.send([9, 9])
            }
        }
    }

    @Test func `is not made of what does not belong together`() throws {
        let (one, other) = (Self.files(try DTLSIdentity()), Self.files(try DTLSIdentity()))
        #expect(throws: CryptoError.self) { try TLSIdentity(chain: one.chain, key: other.key) }
        #expect(throws: CryptoError.self) { try TLSIdentity(chain: one.chain, key: []) }
        #expect(throws: CryptoError.self) { try TLSIdentity(chain: Array("no PEM".utf8), key: one.key) }
        #expect(throws: CryptoError.self) { try TLSIdentity(chain: one.key, key: one.chain) }
        // With the chain in one file, as servers have it.
        _ = try TLSIdentity(chain: one.chain + other.chain, key: one.key)
    }

    /// Hands everything to and fro between two ends of ours.
    private func talk(_ client: TLSConnection) {
        while true {
            let bytes = client.takeOutput()
            if !bytes.isEmpty { _ = server.receive(bytes.span) }
            let answer = server.takeOutput()
            guard !answer.isEmpty else { return }
            _ = client.receive(answer.span)
        }
    }

    @Test(arguments: ["live.example.org", "127.0.0.1", "2001:db8::1"])
    func `says nothing to who cannot prove who they are`(host: String) throws {
        let client = try TLSConnection(to: host)
        client.send(Array("a secret".utf8))
        talk(client)
        // Nobody trusts a certificate that says so itself.
        #expect(client.isClosed && !client.isReady && client.complaint != nil)
    }

    @Test func `tells no certificate from a bad one`() throws {
        let client = try TLSConnection(to: "live.example.org")
        #expect(!client.takeOutput().isEmpty)
        _ = client.receive(Array("HTTP/1.1 400 Bad Request".utf8).span)
        #expect(client.isClosed && client.complaint == nil)
    }
}
