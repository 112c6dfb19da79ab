import Crypto
import Synchronization

/// By what certificate a port answers now.
final class SharedIdentity: Sendable {
    private let identity: Mutex<TLSIdentity?>

    init(_ identity: TLSIdentity?) {
        self.identity = Mutex(identity)
    }

    /// Nil where nobody is answered.
    var current: TLSIdentity? { identity.withLock { $0 } }

    func set(_ identity: TLSIdentity) { self.identity.withLock { $0 = identity } }
}
