import Base

/// How long viewers without its tier have watched one gated stream.
///
/// All sessions of a viewer share one clock, and a viewer who comes back continues with the time that is left.
/// Identities that anyone can get do not identify a viewer, so all viewers with such identities at one address share
/// one viewer's time. The IPv6 networks around the address have a multiple of it, by the same factors as other limits
/// for one client (see `ClientNetwork`).
///
/// The number of viewers and networks remembered is limited, and none is ever forgotten: all beyond the limit share
/// one viewer's time.
package struct FreeViewing: Sendable {
    /// The identity, or the networks, whose time is consumed.
    package struct Viewer: Hashable, Sendable {
        fileprivate enum Key: Hashable, Sendable {
            case named(ParticipantID)
            /// For anonymous viewers, and for identities that anyone can get.
            case network(ClientNetwork)
            /// The address is not known.
            case unknown

            /// The multiple of one viewer's time that it has.
            var factor: Int {
                guard case .network(let network) = self else { return 1 }
                return Int(network.factor)
            }
        }

        fileprivate let keys: [Key]

        /// - Parameters:
        ///   - sender: nil for an anonymous viewer.
        ///   - address: nil where it is unknown.
        package init(_ sender: Stage.Sender?, at address: IPAddress?) {
            if let sender, !sender.isGuest {
                keys = [.named(sender.id)]
            } else {
                keys = address.map { ClientNetwork.all(of: $0).map { .network($0) } } ?? [.unknown]
            }
        }
    }

    /// The time that one viewer or network has consumed.
    private struct Meter {
        /// Time consumed before `since`.
        var spent = Duration.zero
        /// When the first of the present sessions began; nil while none watches.
        var since: MonotonicTime?
        /// Number of sessions that watch now.
        var watching = 0

        /// All time consumed until now; sessions that watch at the same time count once.
        func spent(by now: MonotonicTime) -> Duration {
            since.map { spent + max(now - $0, .zero) } ?? spent
        }
    }

    private let limit: Int
    private var meters: [Viewer.Key: Meter] = [:]
    /// Shared by all viewers and networks that came after the limit was reached.
    private var others = Meter()

    /// Viewers and networks remembered by default, which takes about a megabyte.
    package static let usualLimit = 10_000

    package init(limit: Int = usualLimit) {
        self.limit = limit
    }

    /// The number of viewers and networks remembered.
    package var count: Int { meters.count }

    /// Starts the viewer's clock, unless another of their sessions watches already.
    package mutating func begin(_ viewer: Viewer, at now: MonotonicTime) {
        for key in viewer.keys {
            change(key) { meter in
                if meter.watching == 0 { meter.since = now }
                meter.watching += 1
            }
        }
    }

    /// Stops the viewer's clock when the last of their sessions stops watching.
    package mutating func end(_ viewer: Viewer, at now: MonotonicTime) {
        for key in viewer.keys {
            change(key) { meter in
                guard meter.watching > 0 else { return }
                meter.watching -= 1
                guard meter.watching == 0 else { return }
                meter.spent = meter.spent(by: now)
                meter.since = nil
            }
        }
    }

    /// Applies a change to the meter of a key, or to the shared one if there is no room for a new key.
    private mutating func change(_ key: Viewer.Key, _ body: (inout Meter) -> Void) {
        if var meter = meters[key] ?? (meters.count < limit ? Meter() : nil) {
            body(&meter)
            meters[key] = meter
        } else {
            body(&others)
        }
    }

    /// How long a viewer may still watch: the least that is left of any of their keys.
    /// - Parameter seconds: what one viewer has in all, as the gate's `freeSeconds`.
    package func remaining(of viewer: Viewer, from seconds: Int, at now: MonotonicTime) -> Duration {
        viewer.keys.map { key in
            let meter = meters[key] ?? (meters.count < limit ? Meter() : others)
            return max(.seconds(Int64(seconds * key.factor)) - meter.spent(by: now), .zero)
        }.min() ?? .zero
    }
}
