import Synchronization

/// The keys that sign and verify tokens; an operator may replace them while the server runs.
package final class SigningKeys: Sendable {
    private let keys: Mutex<[TokenAuthority.Key]>

    /// - Parameter keys: the first one signs, all verify. Several may share a name, for a change of keys.
    package init(_ keys: [TokenAuthority.Key]) {
        self.keys = Mutex(keys)
    }

    /// A copy of the keys in force.
    package var current: [TokenAuthority.Key] { keys.withLock { $0 } }

    /// Tokens signed with any other key are refused from now on.
    package func replace(with keys: [TokenAuthority.Key]) {
        self.keys.withLock { $0 = keys }
    }
}
