import Base
import Synchronization

/// When one client took each step of joining.
struct JoinTimes: Equatable, Sendable {
    enum Outcome: Equatable, Sendable {
        case joining
        case joined
        case failed(String)
        /// It left, or was asked to.
        case left
    }

    var isViewer: Bool
    var requested: MonotonicTime
    var answered: MonotonicTime?
    var iceConnected: MonotonicTime?
    var dtlsConnected: MonotonicTime?
    var firstPacket: MonotonicTime?
    var firstFrame: MonotonicTime?
    /// Of a publisher: when the server first reported of its media.
    var taken: MonotonicTime?
    var outcome = Outcome.joining

    /// Milliseconds between two steps; nil if one was not taken.
    func milliseconds(
        from: KeyPath<JoinTimes, MonotonicTime?>, to: KeyPath<JoinTimes, MonotonicTime?>
    ) -> Double? {
        guard let start = self[keyPath: from], let end = self[keyPath: to] else { return nil }
        return Double(end.nanoseconds(since: start)) / 1e6
    }

    /// Milliseconds since the request.
    func milliseconds(to: KeyPath<JoinTimes, MonotonicTime?>) -> Double? {
        self[keyPath: to].map { Double($0.nanoseconds(since: requested)) / 1e6 }
    }
}

/// What became of every client of a run.
final class JoinLog: Sendable {
    private let clients = Mutex<[Int: JoinTimes]>([:])
    private let firstFailure = Mutex<String?>(nil)

    func begin(_ id: Int, isViewer: Bool, at now: MonotonicTime) {
        clients.withLock { $0[id] = JoinTimes(isViewer: isViewer, requested: now) }
    }

    func answered(_ id: Int, requested: MonotonicTime, at now: MonotonicTime) {
        clients.withLock { clients in
            clients[id]?.requested = requested
            clients[id]?.answered = now
        }
    }

    func fail(_ id: Int, _ reason: String) {
        let isNew = clients.withLock { clients in
            guard clients[id]?.outcome == .joining || clients[id]?.outcome == .joined else { return false }
            clients[id]?.outcome = .failed(reason)
            return true
        }
        if isNew { firstFailure.withLock { $0 = $0 ?? reason } }
    }

    func left(_ id: Int) {
        clients.withLock { clients in
            if case .failed = clients[id]?.outcome { return }
            clients[id]?.outcome = .left
        }
    }

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
                if clients.withLock({ $0[notice.id]?.outcome != .left }) {
                    fail(notice.id, "the server closed the session")
                }
            }
        }
    }

    private func set(_ notice: Notice, _ step: WritableKeyPath<JoinTimes, MonotonicTime?>) {
        clients.withLock { clients in
            if clients[notice.id]?[keyPath: step] == nil { clients[notice.id]?[keyPath: step] = notice.time }
        }
    }

    subscript(id: Int) -> JoinTimes? { clients.withLock { $0[id] } }

    /// Why the first client failed; nil if none did.
    var reason: String? { firstFailure.withLock { $0 } }

    /// All clients, or those of the ids given.
    func times(of ids: Set<Int>? = nil) -> [JoinTimes] {
        clients.withLock { clients in
            guard let ids else { return Array(clients.values) }
            return ids.compactMap { clients[$0] }
        }
    }
}
