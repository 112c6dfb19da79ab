import Base
import Synchronization

/// Datagrams that lie one behind the other, each with where it came from.
package struct DatagramBundle: Sendable {
    /// Together with what is kept of each, what one may hold: a third of a second at 25 Mbit/s.
    package static let capacity = 1 << 20
    /// Counted for each beside its bytes, so that a flood of empty ones has a bound, too.
    private static let overhead = 64

    private var bytes: [UInt8] = []
    private var items: [(source: TransportAddress, end: Int)] = []
    /// Datagrams that found no room since it was emptied.
    fileprivate private(set) var dropped: UInt64 = 0

    package init() {}

    package var isEmpty: Bool { items.isEmpty }
    package var count: Int { items.count }
    private var size: Int { bytes.count + items.count * Self.overhead }

    /// Drops it where there is no room.
    package mutating func append(_ datagram: Span<UInt8>, from source: TransportAddress) {
        guard size + datagram.count + Self.overhead <= Self.capacity else {
            dropped &+= 1
            return
        }
        unsafe datagram.withUnsafeBufferPointer { unsafe bytes.append(contentsOf: $0) }
        items.append((source, bytes.count))
    }

    /// Adds all of another, as far as there is room.
    fileprivate mutating func append(_ other: borrowing DatagramBundle) {
        let datagrams = other.bytes.span
        var start = 0
        for item in other.items {
            append(datagrams.extracting(start..<item.end), from: item.source)
            start = item.end
        }
    }

    /// Visits each, in order; it may be changed in place.
    package mutating func forEach(_ body: (inout MutableSpan<UInt8>, TransportAddress) -> Void) {
        let items = items
        unsafe bytes.withUnsafeMutableBufferPointer { bytes in
            var start = 0
            for item in items {
                // The ends are those of what was appended.
                let datagram = unsafe UnsafeMutableBufferPointer(rebasing: bytes[start..<item.end])
                var span = unsafe datagram.mutableSpan
                body(&span, item.source)
                start = item.end
            }
        }
    }

    /// Keeps its room.
    package mutating func removeAll() {
        bytes.removeAll(keepingCapacity: true)
        items.removeAll(keepingCapacity: true)
        dropped = 0
    }
}

/// Datagrams that other workers took from a port that they share, on their way to the worker whose they are.
///
/// Bounded: what comes when it is full is dropped and counted, as by a socket whose buffer is full.
package final class DatagramMailbox: Sendable {
    private struct State {
        var waiting = DatagramBundle()
        var dropped: UInt64 = 0
        var waker: Waker?
    }

    private let state = Mutex(State())

    package init() {}

    /// Takes all of a bundle, and wakes the worker.
    ///
    /// A lock is taken once for each bundle, not for each datagram.
    /// - Parameter bundle: empty afterwards.
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

    /// Swaps what has come with `bundle`, which must be empty; both keep their room.
    func swapContents(with bundle: inout DatagramBundle) {
        state.withLock { swap(&$0.waiting, &bundle) }
    }

    /// Datagrams that did not fit.
    package var dropped: UInt64 { state.withLock { $0.dropped } }

    func setWaker(_ waker: Waker) {
        state.withLock { $0.waker = waker }
    }
}
