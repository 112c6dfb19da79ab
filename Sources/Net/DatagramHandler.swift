import Base
import Peer

/// What lives on a worker's thread: it is made there, called there, and never leaves.
///
/// Calls come in batches. In each, commands first, then datagrams, each after the commands that were posted before it
/// was sent, then `endOfBatch` once, then `advance` if `deadline` has come; all with the same `now`. What was written
/// to the sink leaves after that. No call may block.
package protocol DatagramHandler: ~Copyable, SendableMetatype {
    associatedtype Command: Sendable

    /// Carries out one command from the mailbox.
    mutating func perform(_ command: Command, at now: MonotonicTime, into sink: inout SendBatch)

    /// Takes one datagram, whose bytes it may change in place and must not keep.
    mutating func receive(
        _ datagram: inout MutableSpan<UInt8>,
        from source: TransportAddress,
        at now: MonotonicTime,
        into sink: inout SendBatch)

    /// Takes one datagram that came to another worker, which has the same port, and found no session there.
    mutating func receiveHandedOver(
        _ datagram: inout MutableSpan<UInt8>,
        from source: TransportAddress,
        at now: MonotonicTime,
        into sink: inout SendBatch)

    /// Comes once after the commands and datagrams of each batch, also after a wake-up that brought none.
    mutating func endOfBatch(at now: MonotonicTime, into sink: inout SendBatch)

    /// Comes when `deadline` has passed; must move it.
    mutating func advance(to now: MonotonicTime, into sink: inout SendBatch)

    /// When `advance` has to be called next; nil if nothing waits. Read once per batch: keep it cheap.
    var deadline: MonotonicTime? { get }

    /// Whether it left work for later that is due now: then the next turn comes without waiting for an event.
    var wantsTurn: Bool { get }

    /// Whether datagrams from here belong to a session; TCP connections of which this is not so are closed.
    func knows(_ address: TransportAddress) -> Bool

    /// The TCP connection that this address stands for is closed.
    mutating func lose(_ address: TransportAddress, at now: MonotonicTime, into sink: inout SendBatch)

    /// How far the TCP connection has come that this address stands for; told while it has something under way.
    mutating func note(_ backlog: StreamBacklog, of address: TransportAddress, at now: MonotonicTime)

    /// Comes once, last: says goodbye to peers.
    mutating func stop(at now: MonotonicTime, into sink: inout SendBatch)
}

extension DatagramHandler where Self: ~Copyable {
    package var wantsTurn: Bool { false }

    package mutating func receiveHandedOver(
        _ datagram: inout MutableSpan<UInt8>, from source: TransportAddress, at now: MonotonicTime,
        into sink: inout SendBatch
    ) {
        receive(&datagram, from: source, at: now, into: &sink)
    }

    package func knows(_ address: TransportAddress) -> Bool { true }

    package mutating func lose(
        _ address: TransportAddress, at now: MonotonicTime, into sink: inout SendBatch
    ) {}

    package mutating func note(
        _ backlog: StreamBacklog, of address: TransportAddress, at now: MonotonicTime
    ) {}
}

/// What a handler is told when it is made, on its own thread.
package struct WorkerStart: Sendable {
    /// Where its socket is bound.
    package let localAddress: TransportAddress
    package let now: MonotonicTime
}
