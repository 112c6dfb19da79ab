import Base

/// A client of a run whose server is restarted: who it is, what its page would do, and what became of it.
struct Returner: Sendable {
    let isViewer: Bool
    /// What it waits for: a complete key frame, or its first packet where there is no video.
    let awaitsFrame: Bool
    private(set) var ticket: Entrance.Ticket
    private(set) var session: Participant
    var page = ReturningPage()
    private(set) var attempts = 0
    /// Whether its page knows that the server is away.
    var hasNoticed = false
    /// Its session outlived the restart.
    private(set) var isKept = false
    /// Whether this session is another one than before the restart.
    private(set) var isNew = false

    init(_ ticket: Entrance.Ticket, _ session: Participant, isViewer: Bool, awaitsFrame: Bool) {
        (self.ticket, self.session, self.isViewer, self.awaitsFrame) = (
            ticket, session, isViewer, awaitsFrame
        )
    }

    mutating func asks() { attempts += 1 }

    /// The server, ready again, knows this session: where it is one of before, the restart did not end it.
    mutating func keeps(_ id: Int) {
        if !isNew, session.id == id { isKept = true }
    }

    /// The server made a session for it.
    mutating func take(_ session: Participant, by ticket: Entrance.Ticket) {
        (self.ticket, self.session) = (ticket, session)
        isNew = true
        page.made()
    }

    /// When its media was there again, by the steps of its session.
    func media(_ times: JoinTimes?) -> MonotonicTime? {
        guard isNew, let times else { return nil }
        return isViewer ? awaitsFrame ? times.firstFrame : times.firstPacket : times.taken
    }

    var isRefused: Bool { page.state == .refused }
}

extension Report.Restart.Group {
    /// - Parameters:
    ///   - up: when the server was ready again.
    ///   - log: of all sessions, also of the last one of each of them.
    init(_ clients: [Returner], since up: MonotonicTime, by log: JoinLog) {
        count = clients.count
        kept = clients.count(where: \.isKept)
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
