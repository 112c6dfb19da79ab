import Forwarding
import Synchronization

/// Gives each tap of a node a number of its own.
package final class TapNumbers: Sendable {
    private let last = Atomic<UInt64>(0)

    package init() {}

    /// One that no tap had before.
    package func next() -> TapID {
        TapID(number: last.wrappingAdd(1, ordering: .relaxed).newValue)
    }
}
