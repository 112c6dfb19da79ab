import Base
import Wire

/// The other workers on the same UDP port, as one worker needs them.
///
/// The kernel assigns each client's datagrams to one worker by the client's address, which need not be the worker of
/// the client's session. That worker sees all datagrams of the client, so it decides about a check. Otherwise a check
/// with another client's address as its source could divert that client's packets.
package protocol PortNeighbours: AnyObject {
    /// Passes a datagram that belongs to no session of this worker to the worker whose it may be.
    /// - Parameter isOccupied: whether a session of this worker was heard from `source` just now.
    /// - Returns: false if it belongs to no worker.
    func pass(
        _ datagram: Span<UInt8>, _ kind: DatagramKind, from source: TransportAddress, isOccupied: Bool,
        at now: MonotonicTime
    ) -> Bool

    /// Passes a report from an unknown address to all other workers, because a NAT may have given a client another
    /// address.
    /// - Returns: false if too many came within a short time.
    func offer(_ report: Span<UInt8>, from source: TransportAddress) -> Bool

    /// Claims an address for a session of this worker.
    /// - Returns: false if a session of another worker was heard there just now.
    func claim(_ address: TransportAddress, at now: MonotonicTime) -> Bool

    /// Releases an address that no session of this worker uses any more.
    func release(_ address: TransportAddress, at now: MonotonicTime)
}
