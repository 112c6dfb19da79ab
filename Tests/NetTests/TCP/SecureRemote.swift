import Base
import COpenSSL
import Crypto
import Foundation
import Testing

@testable import Net

/// A client's end of TLS over a TCP connection; it checks no certificate.
final class SecureRemote {
    let remote: RemoteStream
    private let ssl: OpaquePointer
    private let input: OpaquePointer
    private let output: OpaquePointer

    /// - Parameter protocols: what it names by ALPN.
    init(to address: TransportAddress, protocols: [String] = []) throws {
        remote = try RemoteStream(to: address)
        let context = try #require(SSL_CTX_new(TLS_client_method()))
        defer { SSL_CTX_free(context) }
        ssl = try #require(SSL_new(context))
        input = try #require(BIO_new(BIO_s_mem()))
        output = try #require(BIO_new(BIO_s_mem()))
        SSL_set_bio(ssl, input, output)
        SSL_set_connect_state(ssl)
        let names = protocols.flatMap { [UInt8($0.utf8.count)] + Array($0.utf8) }
        if !names.isEmpty { SSL_set_alpn_protos(ssl, names, UInt32(names.count)) }
    }

    deinit { SSL_free(ssl) }

    /// What a client says first, without saying it.
    func hello() -> [UInt8] {
        SSL_do_handshake(ssl)
        return takeOutput()
    }

    /// - Returns: whether there are keys now.
    func shakeHands() -> Bool {
        while SSL_do_handshake(ssl) != 1 {
            remote.send(raw: takeOutput())
            let bytes = remote.receiveRaw()
            guard !bytes.isEmpty else { return false }
            BIO_write(input, bytes, Int32(bytes.count))
        }
        remote.send(raw: takeOutput())
        return true
    }

    func send(_ plain: [UInt8]) {
        SSL_write(ssl, plain, Int32(plain.count))
        remote.send(raw: takeOutput())
    }

    /// Waits until so many plain bytes have come, or the connection is closed.
    func receive(_ count: Int) -> [UInt8] {
        var plain: [UInt8] = []
        var buffer = [UInt8](repeating: 0, count: 16_384)
        while plain.count < count {
            let found = SSL_read(ssl, &buffer, Int32(buffer.count))
            if found > 0 {
                plain += buffer.prefix(Int(found))
                continue
            }
            guard SSL_get_error(ssl, found) == SSL_ERROR_WANT_READ else { break }
            let bytes = remote.receiveRaw()
            guard !bytes.isEmpty else { break }
            BIO_write(input, bytes, Int32(bytes.count))
        }
        return plain
    }

    private func takeOutput() -> [UInt8] {
        var bytes = [UInt8](repeating: 0, count: BIO_ctrl_pending(output))
        let count = bytes.isEmpty ? 0 : BIO_read(output, &bytes, Int32(bytes.count))
        return Array(bytes.prefix(Int(max(0, count))))
    }
}

extension TLSIdentity {
    /// One that nobody vouches for.
    static func fresh() throws -> TLSIdentity {
        func pem(_ name: String, _ bytes: [UInt8]) -> [UInt8] {
            let lines = Data(bytes).base64EncodedString(options: .lineLength64Characters)
            return Array("-----BEGIN \(name)-----\n\(lines)\n-----END \(name)-----\n".utf8)
        }
        let identity = try DTLSIdentity()
        return try TLSIdentity(
            chain: pem("CERTIFICATE", identity.certificate),
            key: pem("EC PRIVATE KEY", identity.privateKey.exposed))
    }
}
