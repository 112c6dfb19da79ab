import Base
import Wire

/// Whether the publisher lets a simulcast layer rest, and what is remembered of it meanwhile.
struct LayerRest {
    /// What one has to know of a layer to choose it while nothing of it comes.
    struct Memory: Equatable, Sendable {
        /// In bits a second, when it was last sent.
        let bitrate: Int
        let resolution: VideoResolution?
    }

    /// Longer than a publisher takes to cease or to begin: what is measured until then is not what the layer takes.
    static let settlingTime = Duration.seconds(2)

    private enum State {
        case sent
        case resting(since: MonotonicTime)
        /// The publisher was asked for it again.
        case calledBack(at: MonotonicTime)
    }

    private var state = State.sent
    private var known: Memory?

    /// Nil unless it rests.
    var memory: Memory? { if case .resting = state { known } else { nil } }

    /// What it took before, in bits a second, for as long as that is worth more than what is measured.
    /// - Parameter isSent: whether it comes all the same, because its publisher need not let it rest.
    func bitrate(isSent: Bool, at now: MonotonicTime) -> Int? {
        switch state {
        case .sent: nil
        case .resting(let start): isSent && now >= start + Self.settlingTime ? nil : known?.bitrate
        case .calledBack(let start): now < start + Self.settlingTime ? known?.bitrate : nil
        }
    }

    mutating func begin(_ memory: Memory, at now: MonotonicTime) {
        known = memory
        state = .resting(since: now)
    }

    /// - Parameter isSent: whether it never ceased to come: then nothing has to be remembered.
    mutating func callBack(isSent: Bool, at now: MonotonicTime) {
        guard case .resting = state else { return }
        state = isSent ? .sent : .calledBack(at: now)
    }
}
