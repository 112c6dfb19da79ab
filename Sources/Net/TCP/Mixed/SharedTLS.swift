import Crypto
import Synchronization

/// The server's end of a TLS connection that may be begun by one thread and gone on with by another.
///
/// One at a time uses it: the lock is there for the compiler's sake, and never waited for.
package final class SharedTLS: Sendable {
    private let connection: Mutex<TLSConnection>

    /// - Throws: for a certificate or key that cannot be used.
    init(_ identity: TLSIdentity) throws(CryptoError) {
        connection = Mutex(try TLSConnection(identity))
    }

    /// Whether nothing is read from it any more.
    var isClosed: Bool { connection.withLock { $0.isClosed } }

    /// Takes bytes of the network in.
    /// - Returns: plain ones.
    func receive(_ bytes: Span<UInt8>) -> [UInt8] { connection.withLock { $0.receive(bytes) } }

    /// Encrypts plain bytes, once the handshake is done.
    func send(_ plain: [UInt8]) { connection.withLock { $0.send(plain) } }

    /// Says that nothing more comes.
    func close() { connection.withLock { $0.close() } }

    /// What is to go over the network since the last call.
    func takeOutput() -> [UInt8] { connection.withLock { $0.takeOutput() } }
}

/// TLS that was begun to see what comes by it.
package struct BegunTLS: Sendable {
    let tls: SharedTLS
    /// What came by it so far.
    let plain: [UInt8]
    /// What the network has not taken so far.
    let output: [UInt8]
}
