import Base
import Synchronization

/// When one client took each step of joining.
struct JoinTimes: Equatable, Sendable {
    /// How a client's attempt to join ended, or that it goes on.
    enum Outcome: Equatable, Sendable {
        /// The handshake is not complete yet.
        case joining
        case joined
        case failed(String)
        /// It left by its own decision, or by the run's.
        case left
    }

    var isViewer: Bool
    /// When the POST with the offer was sent; until then, when the attempt began.
    var requested: MonotonicTime
    /// When the SDP answer arrived.
    var answered: MonotonicTime?
    var iceConnected: MonotonicTime?
    var dtlsConnected: MonotonicTime?
    var firstPacket: MonotonicTime?
    var firstFrame: MonotonicTime?
    /// When the server's RTCP first confirmed a publisher's media.
    var taken: MonotonicTime?
    var outcome = Outcome.joining

    /// Milliseconds between two steps; nil if either was not reached.
    func milliseconds(
        from: KeyPath<JoinTimes, MonotonicTime?>, to: KeyPath<JoinTimes, MonotonicTime?>
    ) -> Double? {
        guard let start = self[keyPath: from], let end = self[keyPath: to] else { return nil }
        return Double(end.nanoseconds(since: start)) / 1e6
    }

    /// Milliseconds from the request to a step; nil if it was not reached.
    func milliseconds(to: KeyPath<JoinTimes, MonotonicTime?>) -> Double? {
        self[keyPath: to].map { Double($0.nanoseconds(since: requested)) / 1e6 }
    }
}

/// The state of every client of a run.
///
/// Signalling tasks and the task that collects milestones write to it, so it is locked.
final class JoinLog: Sendable {
    private let clients = Mutex<[Int: JoinTimes]>([:])
    /// Why the first client failed; the others usually failed for the same reason.
    private let firstFailure = Mutex<String?>(nil)

    func begin(_ id: Int, isViewer: Bool, at now: MonotonicTime) {
        clients.withLock { $0[id] = JoinTimes(isViewer: isViewer, requested: now) }
    }

    /// Notes the times of the POST; they replace the preliminary `requested`.
    func answered(_ id: Int, requested: MonotonicTime, at now: MonotonicTime) {
        clients.withLock { clients in
            clients[id]?.requested = requested
            clients[id]?.answered = now
        }
    }

    /// Marks a client as failed, unless it has left or failed before.
    func fail(_ id: Int, _ reason: String) {
        let isNew = clients.withLock { clients in
            guard clients[id]?.outcome == .joining || clients[id]?.outcome == .joined else { return false }
            clients[id]?.outcome = .failed(reason)
            return true
        }
        if isNew { firstFailure.withLock { $0 = $0 ?? reason } }
    }

    /// Marks a client as gone; one that failed remains failed.
    func left(_ id: Int) {
        clients.withLock { clients in
            if case .failed = clients[id]?.outcome { return }
            clients[id]?.outcome = .left
        }
    }

    /// Records milestones.
    ///
    /// A failure is named after the first phase that was not completed.
    func take(_ notices: [Notice]) {
        for notice in notices {
            switch notice.milestone {
            case .iceConnected: set(notice, \.iceConnected)
            case .dtlsConnected:
                set(notice, \.dtlsConnected)
                clients.withLock { clients in
                    if clients[notice.id]?.outcome == .joining { clients[notice.id]?.outcome = .joined }
                }
            case .firstPacket: set(notice, \.firstPacket)
            case .firstFrame: set(notice, \.firstFrame)
            case .taken: set(notice, \.taken)
            case .failed:
                let times = clients.withLock { $0[notice.id] }
                let phase =
                    times?.iceConnected == nil ? "ICE" : times?.dtlsConnected == nil ? "DTLS" : "consent"
                fail(notice.id, "\(phase) failed")
            case .closedByServer:
                // The server closes a session that was just left: no failure.
                if clients.withLock({ $0[notice.id]?.outcome != .left }) {
                    fail(notice.id, "the server closed the session")
                }
            }
        }
    }

    /// Sets the time of a step once; later milestones of the same kind do not count.
    private func set(_ notice: Notice, _ step: WritableKeyPath<JoinTimes, MonotonicTime?>) {
        clients.withLock { clients in
            if clients[notice.id]?[keyPath: step] == nil { clients[notice.id]?[keyPath: step] = notice.time }
        }
    }

    subscript(id: Int) -> JoinTimes? { clients.withLock { $0[id] } }

    /// Why the first client failed; nil if none did.
    var reason: String? { firstFailure.withLock { $0 } }

    /// Times of all clients, or of those with the given ids; in no particular order.
    func times(of ids: Set<Int>? = nil) -> [JoinTimes] {
        clients.withLock { clients in
            guard let ids else { return Array(clients.values) }
            return ids.compactMap { clients[$0] }
        }
    }
}
