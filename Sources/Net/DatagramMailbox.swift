import Base
import Synchronization

/// Datagrams in one array of bytes, one after the other, each with its source address.
///
/// The arrays keep their memory, so handing datagrams on costs no allocation per datagram.
package struct DatagramBundle: Sendable {
    /// Most bytes that a bundle holds, overhead included: a third of a second at 25 Mbit/s.
    package static let capacity = 1 << 20
    /// Bytes counted per datagram beside its payload, so that a flood of empty datagrams is bounded, too.
    private static let overhead = 64

    private var bytes: [UInt8] = []
    /// Each datagram's source, and where its bytes end; they begin where those of the one before end.
    private var items: [(source: TransportAddress, end: Int)] = []
    /// Datagrams that found no room since the bundle was last emptied.
    fileprivate private(set) var dropped: UInt64 = 0

    /// An empty bundle, which allocates nothing yet.
    package init() {}

    /// Whether there are no datagrams; some may have been dropped all the same.
    package var isEmpty: Bool { items.isEmpty }
    /// The number of datagrams.
    package var count: Int { items.count }
    /// Bytes as `capacity` counts them.
    private var size: Int { bytes.count + items.count * Self.overhead }

    /// Appends a datagram, or counts it as dropped if there is no room.
    package mutating func append(_ datagram: Span<UInt8>, from source: TransportAddress) {
        guard size + datagram.count + Self.overhead <= Self.capacity else {
            dropped &+= 1
            return
        }
        unsafe datagram.withUnsafeBufferPointer { unsafe bytes.append(contentsOf: $0) }
        items.append((source, bytes.count))
    }

    /// Appends all datagrams of another bundle for which there is room, and counts the rest as dropped.
    fileprivate mutating func append(_ other: borrowing DatagramBundle) {
        let datagrams = other.bytes.span
        var start = 0
        for item in other.items {
            append(datagrams.extracting(start..<item.end), from: item.source)
            start = item.end
        }
    }

    /// Calls `body` with each datagram, in order; `body` may change the bytes in place.
    package mutating func forEach(_ body: (inout MutableSpan<UInt8>, TransportAddress) -> Void) {
        let items = items
        unsafe bytes.withUnsafeMutableBufferPointer { bytes in
            var start = 0
            for item in items {
                // In range: each end was the array's count when its datagram was appended, and only `removeAll`
                // shortens the array.
                let datagram = unsafe UnsafeMutableBufferPointer(rebasing: bytes[start..<item.end])
                var span = unsafe datagram.mutableSpan
                body(&span, item.source)
                start = item.end
            }
        }
    }

    /// Removes all datagrams and resets the drop count; keeps the allocated memory.
    package mutating func removeAll() {
        bytes.removeAll(keepingCapacity: true)
        items.removeAll(keepingCapacity: true)
        dropped = 0
    }
}

/// Datagrams that the kernel gave to other workers on a shared port, on their way to the worker that owns their
/// session.
///
/// Bounded: datagrams that arrive when it is full are dropped and counted, as by a socket whose buffer is full.
package final class DatagramMailbox: Sendable {
    private struct State {
        /// Posted and not yet taken by the worker.
        var waiting = DatagramBundle()
        var dropped: UInt64 = 0
        var waker: Waker?
    }

    private let state = Mutex(State())

    /// A mailbox without a worker; datagrams wait in it until there is one.
    package init() {}

    /// Posts all datagrams of a bundle, and wakes the worker if nothing waited before.
    ///
    /// The lock is taken once per bundle, not per datagram. Usually nothing waits, and the bundles are swapped
    /// without copying. Only if the worker has not taken the bundle before are the datagrams appended to that.
    /// - Parameter bundle: empty afterwards; datagrams without room are dropped.
    package func post(_ bundle: inout DatagramBundle) {
        guard !bundle.isEmpty else { return }
        let waker = state.withLock { state -> Waker? in
            guard state.waiting.isEmpty else {
                state.dropped &+= bundle.dropped
                let before = state.waiting.dropped
                state.waiting.append(bundle)
                state.dropped &+= state.waiting.dropped &- before
                return nil
            }
            swap(&state.waiting, &bundle)
            state.dropped &+= state.waiting.dropped
            return state.waker
        }
        bundle.removeAll()
        waker?.wake()
    }

    /// Swaps the waiting datagrams with `bundle`, which must be empty; both keep their allocated memory.
    func swapContents(with bundle: inout DatagramBundle) {
        state.withLock { swap(&$0.waiting, &bundle) }
    }

    /// Datagrams that were dropped because there was no room, since the start.
    package var dropped: UInt64 { state.withLock { $0.dropped } }

    /// Sets the waker of the worker that takes the datagrams; called while that worker is set up.
    func setWaker(_ waker: Waker) {
        state.withLock { $0.waker = waker }
    }
}
