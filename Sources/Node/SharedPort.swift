import Base
import Forwarding
import Net
import Synchronization
import Wire

/// The UDP port that all workers of a node share, each with its own socket, so that a firewall has to open one port
/// only.
///
/// The kernel chooses the socket by the client's address and port, regardless of the client's session. ICE checks
/// name the session's worker in their ufrag. For all other datagrams, the worker is known once a check was answered.
/// A datagram that arrives at another worker is copied and handed over, in order, once per batch. What a worker sends
/// leaves by its own socket.
final class SharedPort: Sendable {
    /// Which worker an address belongs to.
    private struct Place {
        var worker: Int
        /// When the last datagram came from there, or a check was answered; nil once the session is over.
        var heard: MonotonicTime?
    }

    /// One table for all workers, which is locked for each datagram that finds no session where it arrived.
    private let places = Mutex<[TransportAddress: Place]>([:])
    /// The datagrams that other workers hand to each worker, by the worker's number.
    let mailboxes: [DatagramMailbox]

    init(workers: Int) {
        mailboxes = (0..<workers).map { _ in DatagramMailbox() }
    }

    /// The worker whose session is at an address; nil if there is none.
    ///
    /// Counts as hearing from the address.
    fileprivate func worker(at address: TransportAddress, now: MonotonicTime) -> Int? {
        places.withLock { places in
            guard let place = places[address] else { return nil }
            if place.heard != nil { places[address]?.heard = now }
            return place.worker
        }
    }

    /// Whether a session of another worker than `worker` was heard at an address within the last `Worker.ownership`.
    fileprivate func isTaken(_ address: TransportAddress, from worker: Int, at now: MonotonicTime) -> Bool {
        places.withLock { Self.isTaken($0[address], from: worker, at: now) }
    }

    /// Assigns an address to a worker.
    /// - Returns: false if a session of another worker was heard there lately, so that a check with a forged source
    ///   address cannot take it over.
    fileprivate func claim(_ address: TransportAddress, for worker: Int, at now: MonotonicTime) -> Bool {
        places.withLock { places in
            guard !Self.isTaken(places[address], from: worker, at: now) else { return false }
            places[address] = Place(worker: worker, heard: now)
            return true
        }
    }

    /// Marks an address as free; datagrams still in flight go to `worker` until the address is forgotten.
    fileprivate func release(_ address: TransportAddress, of worker: Int) {
        places.withLock { if $0[address]?.worker == worker { $0[address]?.heard = nil } }
    }

    /// Removes released addresses, except those that were claimed again since.
    fileprivate func forget(_ addresses: some Sequence<TransportAddress>, of worker: Int) {
        places.withLock { places in
            for address in addresses {
                if let place = places[address], place.worker == worker, place.heard == nil {
                    places[address] = nil
                }
            }
        }
    }

    /// The number of addresses in the table, including those of sessions that ended lately.
    var knownAddresses: Int { places.withLock { $0.count } }

    private static func isTaken(_ place: Place?, from worker: Int, at now: MonotonicTime) -> Bool {
        guard let place, place.worker != worker, let heard = place.heard else { return false }
        return now < heard + Worker.ownership
    }
}

/// One worker's side of the shared port; used only on that worker's thread.
final class PortSharer: PortNeighbours {
    /// Reports from unknown addresses that are copied to all other workers in one batch; attackers could send any
    /// number.
    private static let offersPerBatch = 16
    /// How long datagrams that a client sent before it learned of its session's end still go to the session's worker.
    private static let releaseTime = Duration.seconds(2)

    private let port: SharedPort
    private let index: Int
    /// What the current batch has for each other worker.
    private var bundles: [DatagramBundle]
    /// Reports that the current batch has offered to the others.
    private var offers = 0
    /// Addresses of ended sessions, the earliest first.
    private var released: [(address: TransportAddress, at: MonotonicTime)] = []

    init(_ port: SharedPort, index: Int) {
        self.port = port
        self.index = index
        bundles = port.mailboxes.map { _ in DatagramBundle() }
    }

    func pass(
        _ datagram: Span<UInt8>, _ kind: DatagramKind, from source: TransportAddress, isOccupied: Bool,
        at now: MonotonicTime
    ) -> Bool {
        // Only checks carry a ufrag; everything else is found by its source address.
        let named =
            kind == .stun
            ? STUNMessage.localUfrag(ofRequest: datagram).flatMap(WorkerTag.worker(ofUfrag:)) : nil
        if let named {
            // A client that was heard from this address keeps it, even if a check claims to come from there.
            guard named != index, bundles.indices.contains(named), !isOccupied,
                !port.isTaken(source, from: named, at: now)
            else { return false }
            hand(datagram, from: source, to: named)
            return true
        }
        guard let worker = port.worker(at: source, now: now), worker != index else { return false }
        hand(datagram, from: source, to: worker)
        return true
    }

    func offer(_ report: Span<UInt8>, from source: TransportAddress) -> Bool {
        guard offers < Self.offersPerBatch else { return false }
        offers += 1
        for worker in bundles.indices where worker != index { hand(report, from: source, to: worker) }
        return true
    }

    func claim(_ address: TransportAddress, at now: MonotonicTime) -> Bool {
        port.claim(address, for: index, at: now)
    }

    func release(_ address: TransportAddress, at now: MonotonicTime) {
        port.release(address, of: index)
        released.append((address, now))
    }

    /// Hands over what the batch has for other workers, and forgets addresses that were released long enough ago.
    func flush(at now: MonotonicTime) {
        offers = 0
        for worker in bundles.indices where worker != index && !bundles[worker].isEmpty {
            port.mailboxes[worker].post(&bundles[worker])
        }
        guard let first = released.first, first.at + Self.releaseTime <= now else { return }
        let over = released.prefix { $0.at + Self.releaseTime <= now }
        port.forget(over.lazy.map(\.address), of: index)
        released.removeFirst(over.count)
    }

    private func hand(_ datagram: Span<UInt8>, from source: TransportAddress, to worker: Int) {
        bundles[worker].append(datagram, from: source)
    }
}
