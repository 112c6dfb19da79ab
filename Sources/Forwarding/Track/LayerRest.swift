import Base
import Wire

/// Whether a simulcast layer rests at the publisher, and what is remembered of it meanwhile.
struct LayerRest {
    /// What is needed to choose a layer while it rests.
    struct Memory: Equatable, Sendable {
        /// Bit rate when it was last sent, in bits a second.
        let bitrate: Int
        let resolution: VideoResolution?
    }

    /// Time in which a publisher surely stops or starts a layer; bit rates measured before are not the layer's usual
    /// one.
    static let settlingTime = Duration.seconds(2)

    private enum State {
        case sent
        case resting(since: MonotonicTime)
        /// The publisher was asked to send it again.
        case calledBack(at: MonotonicTime)
    }

    private var state = State.sent
    private var known: Memory?

    /// The layer's properties before it rested; nil unless it rests.
    var memory: Memory? { if case .resting = state { known } else { nil } }

    /// The layer's earlier bit rate, in bits a second, while it is more reliable than a measurement; nil otherwise.
    /// - Parameter isSent: whether packets arrive nevertheless, because the publisher need not stop sending.
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

    /// Ends the rest, if there is one.
    /// - Parameter isSent: whether the publisher never stopped sending, so that the present measurement is valid.
    mutating func callBack(isSent: Bool, at now: MonotonicTime) {
        guard case .resting = state else { return }
        state = isSent ? .sent : .calledBack(at: now)
    }
}
