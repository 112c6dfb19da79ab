import Synchronization

/// By which keys tokens are good now: an operator may change them while the server runs.
package final class SigningKeys: Sendable {
    private let keys: Mutex<[TokenAuthority.Key]>

    /// - Parameter keys: the first one signs; all are accepted. Several may have one name.
    package init(_ keys: [TokenAuthority.Key]) {
        self.keys = Mutex(keys)
    }

    package var current: [TokenAuthority.Key] { keys.withLock { $0 } }

    /// What others signed is refused from now on.
    package func replace(with keys: [TokenAuthority.Key]) {
        self.keys.withLock { $0 = keys }
    }
}
