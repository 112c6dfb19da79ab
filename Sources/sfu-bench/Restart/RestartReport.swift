import Base

extension Report {
    /// What a restart of the server did to its clients.
    struct Restart: Codable, Equatable, Sendable {
        /// Who was there before.
        struct Group: Codable, Equatable, Sendable {
            var count = 0
            /// Those who have media again.
            var back = 0
            /// Whose session the restart did not end.
            var kept = 0
            /// Times since the server was ready again: until a session was asked for that was made, and until its media
            /// was there.
            ///
            /// That is, for a publisher, the server's first report of what it took; for a viewer, the first packet, and
            /// the first complete key frame (without video, the first packet once more).
            var asked: Quantiles?
            var firstPacket: Quantiles?
            var media: Quantiles?
            /// Requests for a session, of one client.
            var attempts: Quantiles?
        }

        /// Whether the tool ran a command; its status, if it has ended.
        var isCommanded: Bool
        var commandStatus: Int?
        /// Milliseconds until the first sign of it, and for how long the server was not ready.
        var noticed = 0.0
        var notReady = 0.0
        var publishers = Group()
        var viewers = Group()
        /// Why requests brought no session, and sessions no media, and how often.
        var reasons: [String: Int] = [:]
    }
}

extension Report.Restart {
    /// The rows of a table: what is measured, and its quantiles.
    var rows: [(title: String, values: Quantiles)] {
        let rows: [(String, Quantiles?)] = [
            ("publishers ask for their session", publishers.asked),
            ("publishers' media is taken", publishers.media),
            ("viewers ask for their session", viewers.asked),
            ("viewers have a packet", viewers.firstPacket),
            ("viewers have a complete key frame", viewers.media),
        ]
        return rows.compactMap { title, values in values.map { (title, $0) } }
    }

    /// The rest of the table.
    var facts: [(title: String, value: String)] {
        func back(_ group: Group) -> String {
            "\(group.back) of \(group.count)" + (group.kept > 0 ? ", \(group.kept) were never away" : "")
        }
        func attempts(_ group: Group) -> String {
            group.attempts.map { "\(Int($0.p50)) in the middle, \(Int($0.maximum)) at the most" } ?? "none"
        }
        return [
            ("first sign of it after", "\(Format.short(noticed)) ms"),
            ("not ready for", "\(Format.short(notReady)) ms"), ("publishers back", back(publishers)),
            ("viewers back", back(viewers)), ("requests of a publisher", attempts(publishers)),
            ("requests of a viewer", attempts(viewers)),
        ]
            + reasons.sorted { ($1.value, $0.key) < ($0.value, $1.key) }.map { ("  \($0.value) ×", $0.key) }
    }

    /// What fails a run.
    func failures(after seconds: Double) -> [String] {
        [(publishers, "publishers"), (viewers, "viewers")].compactMap { group, name in
            let missing = group.count - group.back
            guard missing > 0 else { return nil }
            let common = reasons.max { ($0.value, $1.key) < ($1.value, $0.key) }
            return
                "\(missing) of \(group.count) \(name) were lost: no media \(Format.short(seconds)) s after the "
                + "server was ready again" + (common.map { "; mostly: \($0.key)" } ?? "")
        }
    }
}
