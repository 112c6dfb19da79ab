import Crypto
import Synchronization

/// The TLS certificate of a port, which can be renewed while the port is open.
///
/// Connections that begin after `set` use the new certificate; earlier ones keep theirs.
final class SharedIdentity: Sendable {
    private let identity: Mutex<TLSIdentity?>

    init(_ identity: TLSIdentity?) {
        self.identity = Mutex(identity)
    }

    /// Nil if the port is not served.
    var current: TLSIdentity? { identity.withLock { $0 } }

    func set(_ identity: TLSIdentity) { self.identity.withLock { $0 = identity } }
}
