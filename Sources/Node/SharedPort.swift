import Base
import Forwarding
import Net
import Synchronization
import Wire

/// The UDP port that all workers of a node have, each by a socket of its own: one port to open in a firewall.
///
/// The kernel chooses the socket by the client's address and port, which says nothing of the client's session. Checks
/// name its worker by their ufrag; where all else belongs is known since a check was answered. What comes to another
/// worker is copied and handed over, in order, once a batch; what a worker sends leaves by its own socket.
final class SharedPort: Sendable {
    private struct Place {
        var worker: Int
        /// When something came from there, or a check was answered; nil once the session is over.
        var heard: MonotonicTime?
    }

    private let places = Mutex<[TransportAddress: Place]>([:])
    /// What each worker gets from the others.
    let mailboxes: [DatagramMailbox]

    init(workers: Int) {
        mailboxes = (0..<workers).map { _ in DatagramMailbox() }
    }

    /// The worker whose session is at an address; nil if there is none.
    fileprivate func worker(at address: TransportAddress, now: MonotonicTime) -> Int? {
        places.withLock { places in
            guard let place = places[address] else { return nil }
            if place.heard != nil { places[address]?.heard = now }
            return place.worker
        }
    }

    /// Whether a session of another worker than `worker` was heard there just now.
    fileprivate func isTaken(_ address: TransportAddress, from worker: Int, at now: MonotonicTime) -> Bool {
        places.withLock { Self.isTaken($0[address], from: worker, at: now) }
    }

    fileprivate func claim(_ address: TransportAddress, for worker: Int, at now: MonotonicTime) -> Bool {
        places.withLock { places in
            guard !Self.isTaken(places[address], from: worker, at: now) else { return false }
            places[address] = Place(worker: worker, heard: now)
            return true
        }
    }

    /// What is still on its way from there leads to `worker` until it is forgotten.
    fileprivate func release(_ address: TransportAddress, of worker: Int) {
        places.withLock { if $0[address]?.worker == worker { $0[address]?.heard = nil } }
    }

    fileprivate func forget(_ addresses: some Sequence<TransportAddress>, of worker: Int) {
        places.withLock { places in
            for address in addresses {
                if let place = places[address], place.worker == worker, place.heard == nil {
                    places[address] = nil
                }
            }
        }
    }

    /// Addresses of sessions, also of some that ended.
    var knownAddresses: Int { places.withLock { $0.count } }

    private static func isTaken(_ place: Place?, from worker: Int, at now: MonotonicTime) -> Bool {
        guard let place, place.worker != worker, let heard = place.heard else { return false }
        return now < heard + Worker.ownership
    }
}

/// One worker's way to those that have the same port; lives on its thread.
final class PortSharer: PortNeighbours {
    /// Reports of unknown addresses that go to all others in one batch: strangers could send any number.
    private static let offersPerBatch = 16
    /// So long what a client sent before it heard of the end of its session goes where that was.
    private static let releaseTime = Duration.seconds(2)

    private let port: SharedPort
    private let index: Int
    private var bundles: [DatagramBundle]
    private var offers = 0
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
        let named =
            kind == .stun
            ? STUNMessage.localUfrag(ofRequest: datagram).flatMap(WorkerTag.worker(ofUfrag:)) : nil
        if let named {
            // Who is heard here keeps the address, whatever a check in their name says.
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

    /// Hands over what the batch brought for others.
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
