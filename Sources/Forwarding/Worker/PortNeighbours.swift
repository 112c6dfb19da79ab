import Base
import Wire

/// What a worker needs of the others with which it shares a UDP port.
///
/// The kernel gives each client's datagrams to one worker, by the client's address: which one need not be that of the
/// client's session. So that nobody takes somebody else's packets by a check in their name, the worker that gets a
/// client's datagrams is the one that sees all of them, and decides.
package protocol PortNeighbours: AnyObject {
    /// Takes a datagram that belongs to no session of this worker to the one whose it may be.
    /// - Parameter isOccupied: whether a session of this worker was heard from `source` just now.
    /// - Returns: false if it is nobody's.
    func pass(
        _ datagram: Span<UInt8>, _ kind: DatagramKind, from source: TransportAddress, isOccupied: Bool,
        at now: MonotonicTime
    ) -> Bool

    /// Takes a report from an address that nobody knows to all others: a client that a NAT gave another address.
    /// - Returns: false if too many came at once.
    func offer(_ report: Span<UInt8>, from source: TransportAddress) -> Bool

    /// Asks for an address for a session of this worker.
    /// - Returns: false if a session of another worker was heard there just now.
    func claim(_ address: TransportAddress, at now: MonotonicTime) -> Bool

    /// No session of this worker is at an address any more.
    func release(_ address: TransportAddress, at now: MonotonicTime)
}
