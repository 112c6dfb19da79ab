import Crypto
import Synchronization

/// The server's side of a TLS connection that one thread may begin and another continue.
///
/// Only one thread uses it at a time. The lock satisfies the compiler's checks and never has to wait.
package final class SharedTLS: Sendable {
    private let connection: Mutex<TLSConnection>

    /// - Throws: if the certificate or key cannot be used.
    init(_ identity: TLSIdentity) throws(CryptoError) {
        connection = Mutex(try TLSConnection(identity))
    }

    /// Whether no more input is expected.
    var isClosed: Bool { connection.withLock { $0.isClosed } }

    /// Receives bytes from the network.
    /// - Returns: decrypted bytes.
    func receive(_ bytes: Span<UInt8>) -> [UInt8] { connection.withLock { $0.receive(bytes) } }

    /// Encrypts bytes and adds them to the output, once the handshake is complete.
    func send(_ plain: [UInt8]) { connection.withLock { $0.send(plain) } }

    /// Adds the close_notify alert to the output: nothing more will be sent.
    func close() { connection.withLock { $0.close() } }

    /// Takes the bytes that have to be sent over the network.
    func takeOutput() -> [UInt8] { connection.withLock { $0.takeOutput() } }
}

/// TLS that a mixed port began in order to see what the connection is for.
package struct BegunTLS: Sendable {
    let tls: SharedTLS
    /// Bytes decrypted so far, which the conversation has not seen.
    let plain: [UInt8]
    /// Encrypted bytes that were not sent yet.
    let output: [UInt8]
}
