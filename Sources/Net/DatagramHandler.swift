import Base
import Peer

/// The protocol logic that runs on a worker's thread: it is made there, called there, and never leaves it.
///
/// The loop calls it in batches. In each batch commands come first, then datagrams; a command that was posted before
/// a datagram was sent is always performed before that datagram is received. Then come one `endOfBatch` and, if
/// `deadline` has passed, one `advance`. All calls of a batch get the same `now`. The loop sends what was written to
/// the sink after the last of them. No call may block: every session of the worker would wait.
package protocol DatagramHandler: ~Copyable, SendableMetatype {
    associatedtype Command: Sendable

    /// Performs one command from the mailbox.
    mutating func perform(_ command: Command, at now: MonotonicTime, into sink: inout SendBatch)

    /// Receives one datagram, whose bytes it may change in place and must not keep after the call.
    mutating func receive(
        _ datagram: inout MutableSpan<UInt8>,
        from source: TransportAddress,
        at now: MonotonicTime,
        into sink: inout SendBatch)

    /// Receives a datagram that the kernel gave to another worker on the same port, which has no session for it.
    ///
    /// By default it is treated like any other datagram.
    mutating func receiveHandedOver(
        _ datagram: inout MutableSpan<UInt8>,
        from source: TransportAddress,
        at now: MonotonicTime,
        into sink: inout SendBatch)

    /// Ends a batch: called once after its commands and datagrams, also when a wake-up brought none.
    mutating func endOfBatch(at now: MonotonicTime, into sink: inout SendBatch)

    /// Does what is due; called when `deadline` has passed.
    ///
    /// It must move `deadline` or clear it. Otherwise the loop calls again every millisecond.
    mutating func advance(to now: MonotonicTime, into sink: inout SendBatch)

    /// When `advance` has to be called next; nil if nothing is scheduled.
    ///
    /// The loop reads it at least once per batch, so it must be cheap.
    var deadline: MonotonicTime? { get }

    /// Whether it postponed work that is due now: the next batch then begins without waiting for an event.
    var wantsTurn: Bool { get }

    /// Whether this address belongs to a session.
    ///
    /// The loop asks about the address of each TCP connection once a second, and closes connections of no session.
    func knows(_ address: TransportAddress) -> Bool

    /// The TCP connection that this address stands for is closed.
    mutating func lose(_ address: TransportAddress, at now: MonotonicTime, into sink: inout SendBatch)

    /// Reports how much of a TCP connection's data was acknowledged and how much still waits.
    ///
    /// Called every 20 ms while data is queued or unacknowledged, and once more when all of it is acknowledged.
    mutating func note(_ backlog: StreamBacklog, of address: TransportAddress, at now: MonotonicTime)

    /// Stops: the last call, in which it may still send goodbyes to peers.
    mutating func stop(at now: MonotonicTime, into sink: inout SendBatch)
}

extension DatagramHandler where Self: ~Copyable {
    /// By default a handler postpones no work.
    package var wantsTurn: Bool { false }

    /// By default a datagram that was handed over is like any other.
    package mutating func receiveHandedOver(
        _ datagram: inout MutableSpan<UInt8>, from source: TransportAddress, at now: MonotonicTime,
        into sink: inout SendBatch
    ) {
        receive(&datagram, from: source, at: now, into: &sink)
    }

    /// By default no TCP connection is closed for lack of a session.
    package func knows(_ address: TransportAddress) -> Bool { true }

    /// By default the loss of a TCP connection needs no reaction.
    package mutating func lose(
        _ address: TransportAddress, at now: MonotonicTime, into sink: inout SendBatch
    ) {}

    /// By default backlogs are ignored.
    package mutating func note(
        _ backlog: StreamBacklog, of address: TransportAddress, at now: MonotonicTime
    ) {}
}

/// What a handler gets when it is made, on its own thread.
package struct WorkerStart: Sendable {
    /// Where its socket is bound.
    package let localAddress: TransportAddress
    /// When the thread started.
    package let now: MonotonicTime
}
