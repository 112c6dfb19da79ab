import Foundation

/// The results of a run of `sfu-bench interact`, in the form that `--json` writes.
///
/// Times are in milliseconds unless a name says otherwise.
struct InteractReport: Codable, Equatable, Sendable, WritableReport {
    /// What the server used during a phase; values are nil if that is unknown.
    struct Use: Codable, Equatable, Sendable {
        var seconds: Double
        /// CPU seconds per second.
        var serverCores: Double?
        var residentBytesBefore: Int?
        var residentBytesAfter: Int?
    }

    struct Hearts: Codable, Equatable, Sendable {
        /// Taps that were sent, and the sum that the viewers were given at the end.
        var sent = 0
        var counted = 0
        var perSecond = 0.0
    }

    struct Comments: Codable, Equatable, Sendable {
        var sent = 0
        /// Comments that were acknowledged as durable.
        var accepted = 0
        var perSecond = 0.0
        /// What each viewer received: `told` comments, and that `more` were left out.
        var told = 0
        var more = 0
        /// From a comment's first byte until it was acknowledged as durable.
        var answered: Quantiles?
        /// From a comment's first byte until each viewer had read it.
        ///
        /// `arrived` ends when the comment had arrived there, and `waited` is the difference.
        var seen: Quantiles?
        var arrived: Quantiles?
        var waited: Quantiles?
    }

    struct Gifts: Codable, Equatable, Sendable {
        /// Different gifts, without repetitions.
        var acknowledged = 0
        var perSecond = 0.0
        /// Gifts that were sent a second time under the same key.
        var repeated = 0
        /// Until a gift was acknowledged.
        var answered: Quantiles?
        /// From a gift's first byte until each viewer had it.
        var arrived: Quantiles?
    }

    struct Votes: Codable, Equatable, Sendable {
        var acknowledged = 0
        var perSecond = 0.0
        /// By the poll; -1 if the sum of its options is not the number of voters.
        var counted = 0
    }

    var tool = "sfu-bench"
    var version = 1
    var command = "interact"
    var server: String
    var viewers: Int
    var connected = 0
    var failed = 0
    /// Connected viewers that were lost before the end of the run.
    var lost = 0
    /// Viewers that read too slowly and got a snapshot instead of messages.
    var behind = 0
    /// Why sockets failed or were lost, and how often.
    var reasons: [String: Int] = [:]
    var connectSeconds = 0.0
    /// While viewers only watched; `busy` is while they were active.
    var quiet = Use(seconds: 0)
    var busy = Use(seconds: 0)
    /// The beginning and the end of the busy phase, in seconds since 1970.
    var began = 0.0
    var ended = 0.0
    /// Messages that viewers received.
    var messages = 0
    var hearts = Hearts()
    var comments = Comments()
    var gifts = Gifts()
    var votes = Votes()
    /// Of this tool, in the busy phase.
    var generator: Report.GeneratorUse?
    var verdict = Report.Verdict()

    init(_ options: Options) {
        server = options.server.url.absoluteString
        viewers = options.audience.viewers
    }

    // MARK: Filling

    /// Evaluates what was sent and received, and judges the run.
    /// - Parameters:
    ///   - hearings: of the viewers that are connected at the end.
    ///   - ledger: the shop's keys of all gifts, by number.
    mutating func conclude(
        _ tally: AudienceTally, _ asked: AskTally, _ hearings: [Hearing], _ ledger: [Int: String]
    ) {
        let sockets = tally.sockets
        (connected, failed, lost, messages) = (
            sockets.connected, sockets.failed, sockets.lost, sockets.messages
        )
        reasons = sockets.reasons
        let seconds = max(busy.seconds, 0.001)
        // The messages that a slow viewer missed are unknown, so it does not count.
        let stayed = hearings.filter { !$0.fellBehind }
        behind = hearings.count - stayed.count
        hearts = Hearts(
            sent: tally.hearts, counted: hearings.map(\.hearts).max() ?? 0,
            perSecond: Double(tally.hearts) / seconds)
        comments = Comments(
            sent: tally.comments, accepted: tally.accepted, perSecond: Double(tally.accepted) / seconds,
            told: stayed.map(\.told).max() ?? 0, more: stayed.map(\.more).max() ?? 0,
            answered: Quantiles(milliseconds: tally.answered), seen: Quantiles(milliseconds: tally.seen),
            arrived: Quantiles(milliseconds: tally.arrived), waited: Quantiles(milliseconds: tally.waited))
        gifts = Gifts(
            acknowledged: asked.gifts.count, perSecond: Double(asked.gifts.count) / seconds,
            repeated: asked.repeated, answered: Quantiles(milliseconds: asked.giftTimes),
            arrived: Quantiles(milliseconds: tally.gifts))
        votes.acknowledged = asked.votes
        votes.perSecond = Double(asked.votes) / seconds
        judge(tally, asked, stayed, ledger)
        // Viewers that read late measure this tool, as followers do.
        verdict.reasons = SyncReport.voidReasons(seen: comments.seen, waited: comments.waited, [])
        if let generator { verdict.reasons += VoidRule.pressure(generator) }
        verdict.isVoid = !verdict.reasons.isEmpty
    }

    /// Checks that nothing was lost, refused or counted twice; each violation fails the run.
    private mutating func judge(
        _ tally: AudienceTally, _ asked: AskTally, _ stayed: [Hearing], _ ledger: [Int: String]
    ) {
        func fail(_ count: Int, _ text: String) {
            if count > 0 { verdict.failures.append("\(count) \(text)") }
        }
        fail(viewers - connected, "of \(viewers) viewers did not connect")
        fail(lost, "viewers were lost")
        for (rule, count) in tally.refused.sorted(by: { $0.key < $1.key }) { fail(count, "refused: \(rule)") }
        for (reason, count) in asked.refused.sorted(by: { $0.key < $1.key }) {
            fail(count, "gifts or votes failed: \(reason)")
        }
        fail(tally.unknown, "messages were not JSON")
        fail(
            tally.comments - tally.accepted - tally.refused.values.reduce(0, +),
            "comments were not answered")
        fail(asked.doubled, "repeated gifts were counted as new ones")
        fail(stayed.count { $0.wrongGifts > 0 }, "viewers received gifts twice or out of order")
        fail(stayed.count { !$0.isComplete(tally, asked) }, "viewers did not receive the exact totals")
        let byNumber = Dictionary(asked.gifts.map { ($0.value, $0.key) }) { one, _ in one }
        if ledger != byNumber || ledger.count != asked.gifts.count {
            verdict.failures.append(
                "the ledger has \(ledger.count) gifts, which are not those that were acknowledged")
        }
        if votes.counted != asked.votes {
            verdict.failures.append("the poll counts \(votes.counted) votes of \(asked.votes)")
        }
        if behind > 0 {
            verdict.notes.append("\(behind) viewers read too slowly; what they received is not counted")
        }
    }

    // MARK: Writing

    func write(_ options: ReportOptions) throws {
        try ReportWriter.write(text, self, options)
    }

    static func text(of use: Use) -> String {
        let share = use.serverCores.map { "\(Format.short($0 * 100)) % of a core" } ?? "CPU unknown"
        guard let before = use.residentBytesBefore, let after = use.residentBytesAfter else { return share }
        return share + ", memory \(Format.bytes(before)) to \(Format.bytes(after))"
    }

    /// A table for the terminal.
    var text: String {
        var lines = [
            "sfu-bench interact \(server)", "\(viewers) viewers, \(Format.short(busy.seconds)) s", "viewers",
        ]
        func add(_ label: String, _ value: String) { lines.append("  " + label.padded(to: 42) + value) }
        func add(_ label: String, _ values: Quantiles?) {
            guard let values else { return }
            let numbers = [values.p50, values.p95, values.p99, values.maximum].map(Format.short)
            add(label + ", ms (p50, p95, p99, max)", numbers.joined(separator: "  "))
        }
        add("connected", "\(connected) in \(Format.short(connectSeconds)) s")
        add("failed, lost, behind", "\(failed), \(lost), \(behind)")
        for (reason, count) in reasons.sorted(by: { $0.key < $1.key }) { add("  \(count) ×", reason) }
        lines.append("hearts")
        add("per second", Format.count(hearts.perSecond))
        add("sent, counted", "\(hearts.sent), \(hearts.counted)")
        lines.append("comments")
        add("per second", Format.short(comments.perSecond))
        add(
            "accepted; received per viewer, and more",
            "\(comments.accepted); \(comments.told), \(comments.more)")
        add("read", comments.seen)
        add("arrived", comments.arrived)
        add("durable", comments.answered)
        lines.append("gifts")
        add("per second", Format.short(gifts.perSecond))
        add("acknowledged, repeated", "\(gifts.acknowledged), \(gifts.repeated)")
        add("durable", gifts.answered)
        add("arrived", gifts.arrived)
        lines.append("votes")
        add("per second", Format.short(votes.perSecond))
        add("acknowledged, counted", "\(votes.acknowledged), \(votes.counted)")
        lines.append("server")
        add("while quiet", Self.text(of: quiet))
        add("while busy", Self.text(of: busy))
        lines.append("this tool")
        for thread in generator?.threads ?? [] {
            let use = "busy \(Format.short(thread.busy * 100)) %, waiting for a CPU "
            add(thread.name, use + "\(Format.short(thread.waiting * 100)) %")
        }
        lines += verdict.lines
        return lines.joined(separator: "\n") + "\n"
    }
}

extension Hearing {
    /// Whether the viewer received everything that was sent, to the last tap; assumed of a viewer that fell behind.
    func isComplete(_ tally: AudienceTally, _ asked: AskTally) -> Bool {
        fellBehind
            || hearts == tally.hearts && told &+ more == tally.accepted
                && lastGift == (asked.gifts.values.max() ?? 0)
    }
}
