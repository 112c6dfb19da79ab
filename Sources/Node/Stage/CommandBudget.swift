import Base
import Stage

/// How often each participant of a stream may do what all others are told of: one change is one message to each of
/// them, and one who toggles a hand would be everybody's work.
struct CommandBudget {
    /// Changes at once, and then a second.
    struct Allowance: Equatable {
        let burst: Double
        let rate: Double

        static let viewer = Allowance(burst: 10, rate: 0.5)
        /// Whoever talks by pressing a key mutes and unmutes all the time.
        static let speaker = Allowance(burst: 20, rate: 1)
        static let host = Allowance(burst: 100, rate: 5)
    }

    private struct Entry {
        /// Less than nothing for who went on with what is never refused, down to another burst.
        var left: Double
        var at: MonotonicTime
    }

    /// Participants who are remembered; beyond it others are not counted: who has so many names is not held by this.
    private static let limit = 10_000
    /// After so long without a change nobody owes anything.
    private static let memory = Duration.seconds(40)

    private var entries: [ParticipantID: Entry] = [:]
    private var sweptAt = MonotonicTime.zero

    /// - Returns: nil for who may go on, else in how many seconds they may.
    func wait(of id: ParticipantID, _ allowance: Allowance, at now: MonotonicTime) -> Int? {
        guard let entry = entries[id] else { return nil }
        let left = refilled(entry, allowance, at: now)
        guard left < 1 else { return nil }
        return max(1, Int(((1 - left) / allowance.rate).rounded(.up)))
    }

    /// Notes a change.
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

    private func refilled(_ entry: Entry, _ allowance: Allowance, at now: MonotonicTime) -> Double {
        let seconds = Double(max(now.nanoseconds(since: entry.at), 0)) / 1e9
        return min(allowance.burst, entry.left + seconds * allowance.rate)
    }
}

extension CommandBudget.Allowance {
    /// - Returns: nil for those without a limit: who may make tokens for as many as they like.
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
    /// Whether it can be put off.
    ///
    /// What takes something back, keeps somebody out, or hides oneself, never is: nobody stays heard, on stage or among
    /// others for want of an allowance.
    func canWait(for standing: Stage.Standing) -> Bool {
        switch self {
        case .edit, .place, .makeLink, .replaceKey, .raiseHand, .moveHand, .holdHand, .invite, .unban: true
        // Whoever is on stage connects anew by the same command.
        case .join, .accept, .acceptSoundOnly, .publish: standing == .viewer
        case .setMuted(_, let isOn), .setPaused(let isOn): !isOn
        case .revokeLinks, .goLive, .end, .leave, .lowerHand, .withdrawInvitation, .decline, .stepDown,
            .moveToViewers, .remove, .ban, .requestMute:
            false
        }
    }
}
