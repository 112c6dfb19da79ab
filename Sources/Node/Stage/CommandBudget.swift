import Base
import Stage

/// Limits how often each participant may make changes of which all followers are notified.
///
/// One change is one message to each follower, so a participant who toggles a raised hand could keep the server busy.
/// Each participant has a token bucket.
struct CommandBudget {
    /// The size and the rate of a participant's token bucket.
    struct Allowance: Equatable {
        /// Changes that are possible in a row.
        let burst: Double
        /// Changes a second after that.
        let rate: Double

        static let viewer = Allowance(burst: 10, rate: 0.5)
        /// Speakers who use push-to-talk mute and unmute all the time.
        static let speaker = Allowance(burst: 20, rate: 1)
        static let host = Allowance(burst: 100, rate: 5)
    }

    /// A participant's bucket as of the last change.
    private struct Entry {
        /// Changes left.
        ///
        /// Negative after changes that are never refused, down to minus `burst`.
        var left: Double
        var at: MonotonicTime
    }

    /// Participants with an entry at most; further ones are not limited.
    ///
    /// A sender who can use that many identities would not be stopped by a limit for each identity anyway.
    private static let limit = 10_000
    /// How long after the last change an entry is kept: by then even a bucket that was a full burst below zero is
    /// full again.
    private static let memory = Duration.seconds(40)

    private var entries: [ParticipantID: Entry] = [:]
    /// When expired entries were last removed.
    private var sweptAt = MonotonicTime.zero

    /// Returns how long a participant has to wait before the next change.
    /// - Returns: in seconds, at least 1; nil if the change is allowed now.
    func wait(of id: ParticipantID, _ allowance: Allowance, at now: MonotonicTime) -> Int? {
        guard let entry = entries[id] else { return nil }
        let left = refilled(entry, allowance, at: now)
        guard left < 1 else { return nil }
        return max(1, Int(((1 - left) / allowance.rate).rounded(.up)))
    }

    /// Counts a change, also one that may not be refused.
    mutating func charge(_ id: ParticipantID, _ allowance: Allowance, at now: MonotonicTime) {
        if sweptAt + Self.memory <= now {
            sweptAt = now
            entries = entries.filter { $0.value.at + Self.memory > now }
        }
        let entry = entries[id]
        guard entry != nil || entries.count < Self.limit else { return }
        let left = entry.map { refilled($0, allowance, at: now) } ?? allowance.burst
        entries[id] = Entry(left: max(-allowance.burst, left - 1), at: now)
    }

    /// The changes that are left now, with those that have been added since the entry was written.
    private func refilled(_ entry: Entry, _ allowance: Allowance, at now: MonotonicTime) -> Double {
        let seconds = Double(max(now.nanoseconds(since: entry.at), 0)) / 1e9
        return min(allowance.burst, entry.left + seconds * allowance.rate)
    }
}

extension CommandBudget.Allowance {
    /// The allowance of a sender in a stream.
    /// - Returns: nil for admins, who are not limited: they can make tokens for any number of participants.
    init?(of sender: Stage.Sender, in stage: Stage) {
        guard sender.authority != .admin else { return nil }
        switch stage.standing(of: sender) {
        case .host: self = .host
        case .speaker: self = .speaker
        case .viewer: self = .viewer
        }
    }
}

extension Stage.Command {
    /// Whether the command may be refused for lack of allowance.
    ///
    /// Commands that take something back, keep a participant out, or hide the sender always pass: no participant
    /// stays audible, on stage or in the stream because of a limit.
    func canWait(for standing: Stage.Standing) -> Bool {
        switch self {
        case .edit, .place, .makeLink, .replaceKey, .raiseHand, .moveHand, .holdHand, .invite, .unban: true
        // Participants on stage reconnect with the same commands.
        case .join, .accept, .acceptSoundOnly, .publish: standing == .viewer
        case .setMuted(_, let isOn), .setPaused(let isOn): !isOn
        case .revokeLinks, .goLive, .end, .leave, .lowerHand, .withdrawInvitation, .decline, .stepDown,
            .moveToViewers, .remove, .ban, .requestMute:
            false
        }
    }
}
