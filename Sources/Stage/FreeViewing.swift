import Base

/// How much of one gated stream those have watched who lack its tier.
///
/// A viewer's time runs once, over however many sessions they watch, and is not given anew to whoever comes back. Whose
/// identity says nothing, because anybody gets one, shares the time of all behind their address; the IPv6 networks
/// around it have so many times as much as what one client may do is limited by (see `ClientNetwork`).
///
/// Remembers a bounded number of them, and forgets none: all beyond it share one viewer's time.
package struct FreeViewing: Sendable {
    /// Whose time it is.
    package struct Viewer: Hashable, Sendable {
        fileprivate enum Key: Hashable, Sendable {
            case named(ParticipantID)
            /// Of those without a name, or with one that anybody gets.
            case network(ClientNetwork)
            /// The address is not known.
            case unknown

            /// How many times one viewer's time it has.
            var factor: Int {
                guard case .network(let network) = self else { return 1 }
                return Int(network.factor)
            }
        }

        fileprivate let keys: [Key]

        /// - Parameters:
        ///   - sender: nil for somebody without a name.
        ///   - address: nil where nobody knows it.
        package init(_ sender: Stage.Sender?, at address: IPAddress?) {
            if let sender, !sender.isGuest {
                keys = [.named(sender.id)]
            } else {
                keys = address.map { ClientNetwork.all(of: $0).map { .network($0) } } ?? [.unknown]
            }
        }
    }

    private struct Meter {
        /// Before `since`.
        var spent = Duration.zero
        /// When the first of those began who watch now; nil while nobody does.
        var since: MonotonicTime?
        /// How many sessions watch.
        var watching = 0

        func spent(by now: MonotonicTime) -> Duration {
            since.map { spent + max(now - $0, .zero) } ?? spent
        }
    }

    private let limit: Int
    private var meters: [Viewer.Key: Meter] = [:]
    /// Of all who came when there was no room for one more.
    private var others = Meter()

    /// How many viewers and networks are remembered, which takes a megabyte or so.
    package static let usualLimit = 10_000

    package init(limit: Int = usualLimit) {
        self.limit = limit
    }

    /// Viewers and networks that are remembered.
    package var count: Int { meters.count }

    /// A session of somebody begins to watch.
    package mutating func begin(_ viewer: Viewer, at now: MonotonicTime) {
        for key in viewer.keys {
            change(key) { meter in
                if meter.watching == 0 { meter.since = now }
                meter.watching += 1
            }
        }
    }

    /// A session of somebody watches no more.
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

    private mutating func change(_ key: Viewer.Key, _ body: (inout Meter) -> Void) {
        if var meter = meters[key] ?? (meters.count < limit ? Meter() : nil) {
            body(&meter)
            meters[key] = meter
        } else {
            body(&others)
        }
    }

    /// What somebody may still watch.
    /// - Parameter seconds: what everybody has in all.
    package func remaining(of viewer: Viewer, from seconds: Int, at now: MonotonicTime) -> Duration {
        viewer.keys.map { key in
            let meter = meters[key] ?? (meters.count < limit ? Meter() : others)
            return max(.seconds(Int64(seconds * key.factor)) - meter.spent(by: now), .zero)
        }.min() ?? .zero
    }
}
