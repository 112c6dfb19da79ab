import Forwarding
import Synchronization

/// Numbers the taps of a node, from any thread.
package final class TapNumbers: Sendable {
    private let last = Atomic<UInt64>(0)

    package init() {}

    /// Returns a number that no tap had before.
    package func next() -> TapID {
        TapID(number: last.wrappingAdd(1, ordering: .relaxed).newValue)
    }
}
