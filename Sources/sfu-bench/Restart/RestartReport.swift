import Base

extension Report {
    /// What a restart of the server meant for its clients.
    struct Restart: Codable, Equatable, Sendable {
        /// Clients that were connected before the restart: the publishers, or the viewers.
        struct Group: Codable, Equatable, Sendable {
            var count = 0
            /// Clients that have media again.
            var back = 0
            /// Clients whose session survived the restart.
            var kept = 0
            /// Milliseconds from the server's readiness to the request that created a session.
            var asked: Quantiles?
            /// Milliseconds from the server's readiness to the session's first packet.
            var firstPacket: Quantiles?
            /// Milliseconds from the server's readiness to the session's media.
            ///
            /// For a publisher, that is the server's first report of what it received; for a viewer, the first complete
            /// key frame, or without video the first packet.
            var media: Quantiles?
            /// Requests for a session by each client.
            var attempts: Quantiles?
        }

        /// Whether the tool ran a command, and its exit status if it has ended.
        var isCommanded: Bool
        var commandStatus: Int?
        /// Milliseconds until the first sign of the restart, and for how long the server was not ready.
        var noticed = 0.0
        var notReady = 0.0
        var publishers = Group()
        var viewers = Group()
        /// Why requests created no session and new sessions had no media, and how often.
        var reasons: [String: Int] = [:]
    }
}

extension Report.Restart {
    /// Rows of a table: what was measured, and its quantiles.
    var rows: [(title: String, values: Quantiles)] {
        let rows: [(String, Quantiles?)] = [
            ("publishers request their session", publishers.asked),
            ("publishers' media is accepted", publishers.media),
            ("viewers request their session", viewers.asked),
            ("viewers have their first packet", viewers.firstPacket),
            ("viewers have a complete key frame", viewers.media),
        ]
        return rows.compactMap { title, values in values.map { (title, $0) } }
    }

    /// Rows of a table without quantiles.
    var facts: [(title: String, value: String)] {
        func back(_ group: Group) -> String {
            "\(group.back) of \(group.count)" + (group.kept > 0 ? ", \(group.kept) never left" : "")
        }
        func attempts(_ group: Group) -> String {
            group.attempts.map { "median \(Int($0.p50)), at most \(Int($0.maximum))" } ?? "none"
        }
        return [
            ("restart noticed after", "\(Format.short(noticed)) ms"),
            ("not ready for", "\(Format.short(notReady)) ms"), ("publishers back", back(publishers)),
            ("viewers back", back(viewers)), ("requests per publisher", attempts(publishers)),
            ("requests per viewer", attempts(viewers)),
        ]
            + reasons.sorted { ($1.value, $0.key) < ($0.value, $1.key) }.map { ("  \($0.value) ×", $0.key) }
    }

    /// Failures of the run: clients without media this many seconds after the server was ready.
    func failures(after seconds: Double) -> [String] {
        [(publishers, "publishers"), (viewers, "viewers")].compactMap { group, name in
            let missing = group.count - group.back
            guard missing > 0 else { return nil }
            // Equal counts are decided by the text, so that the message does not vary.
            let common = reasons.max { ($0.value, $1.key) < ($1.value, $0.key) }
            return
                "\(missing) of \(group.count) \(name) were lost: no media \(Format.short(seconds)) s after the "
                + "server was ready again" + (common.map { "; mostly: \($0.key)" } ?? "")
        }
    }
}
