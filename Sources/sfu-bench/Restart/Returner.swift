import Base

/// A client of a run whose server is restarted: its identity, the model of its page, and its current session.
struct Returner: Sendable {
    let isViewer: Bool
    /// Whether a viewer waits for a complete key frame; without video it waits for the first packet.
    let awaitsFrame: Bool
    /// Of the current session.
    private(set) var ticket: Entrance.Ticket
    private(set) var session: Participant
    var page = ReturningPage()
    /// Requests for a session since the restart.
    private(set) var attempts = 0
    /// Whether its page knows that the server went away.
    var hasNoticed = false
    /// Whether its session survived the restart.
    private(set) var isKept = false
    /// Whether its session was created after the restart.
    private(set) var isNew = false

    init(_ ticket: Entrance.Ticket, _ session: Participant, isViewer: Bool, awaitsFrame: Bool) {
        (self.ticket, self.session, self.isViewer, self.awaitsFrame) = (
            ticket, session, isViewer, awaitsFrame
        )
    }

    mutating func asks() { attempts += 1 }

    /// Notes that the server, once ready, still has this session: if it is from before the restart, it survived.
    mutating func keeps(_ id: Int) {
        if !isNew, session.id == id { isKept = true }
    }

    /// Replaces the session by one that the server has created.
    mutating func take(_ session: Participant, by ticket: Entrance.Ticket) {
        (self.ticket, self.session) = (ticket, session)
        isNew = true
        page.made()
    }

    /// When the new session had media; nil before that, and for a session from before the restart.
    func media(_ times: JoinTimes?) -> MonotonicTime? {
        guard isNew, let times else { return nil }
        return isViewer ? awaitsFrame ? times.firstFrame : times.firstPacket : times.taken
    }

    var isRefused: Bool { page.state == .refused }
}

extension Report.Restart.Group {
    /// Evaluates the clients of one role.
    /// - Parameters:
    ///   - up: when the server was ready again.
    ///   - log: has the steps of each client's latest session.
    init(_ clients: [Returner], since up: MonotonicTime, by log: JoinLog) {
        count = clients.count
        kept = clients.count(where: \.isKept)
        // A session that survived has no times of a return.
        let times = clients.filter { !$0.isKept }.map { (client: $0, steps: log[$0.session.id]) }
        let back = times.filter { $0.client.media($0.steps) != nil }
        self.back = back.count + kept
        func quantiles(_ value: (Returner, JoinTimes) -> MonotonicTime?) -> Quantiles? {
            Quantiles(
                back.compactMap { client, steps in
                    steps.flatMap { value(client, $0) }.map {
                        max(Double($0.nanoseconds(since: up)), 0) / 1e6
                    }
                })
        }
        asked = quantiles { $1.requested }
        firstPacket = quantiles { $1.firstPacket }
        media = quantiles { $0.media($1) }
        attempts = Quantiles(clients.map { Double($0.attempts) })
    }
}
