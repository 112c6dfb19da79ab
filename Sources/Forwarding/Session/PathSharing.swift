import Base

/// Makes sessions that share a path share it fairly.
///
/// Each session sees its own packets alone. If all sessions kept what they have, the latest one would get nothing. So
/// a session with more than the lowest layer gives some of it up while the path's queue stands. A session without any
/// picture begins with the lowest layer nevertheless; that makes a queue, in response to which the others give
/// something up, as TCP does.
struct PathSharing {
    /// A queue that has stood for this long, minus the time without one, does not drain without a step down.
    private static let standing = Duration.seconds(2)
    /// Time without a picture after which the lowest one is tried; doubled each time that it is lost again.
    private static let minimumAbstinence = Duration.seconds(5)
    private static let maximumAbstinence = Duration.seconds(60)
    /// Time that other sessions may need to react.
    private static let patience = Duration.milliseconds(2_500)

    /// How long the queue has stood, minus the time without a queue.
    private var fullness = Duration.zero
    /// When `look` was last called.
    private var lookedAt: MonotonicTime?
    /// When the last picture was lost although one is wanted; nil while there is one.
    private var emptySince: MonotonicTime?
    /// When it began to compete; nil while it does not.
    private var competingSince: MonotonicTime?
    /// Present time without a picture before the lowest one is tried.
    private var abstinence = Self.minimumAbstinence

    /// Whether the lowest layer is sent regardless of the estimate.
    var isCompeting: Bool { competingSince != nil }

    /// Records the state of the path since the last call.
    /// - Parameters:
    ///   - isQueued: whether the path's queue stands.
    ///   - lacksPictures: whether pictures are wanted and none is sent.
    mutating func look(isQueued: Bool, lacksPictures: Bool, at now: MonotonicTime) {
        let elapsed = min(max(now.nanoseconds(since: lookedAt ?? now), 0), 1_000_000_000)
        lookedAt = now
        fullness = max(fullness + .nanoseconds(isQueued ? elapsed : -elapsed), .zero)
        guard lacksPictures else {
            emptySince = nil
            return
        }
        competingSince = nil
        emptySince = emptySince ?? now
    }

    /// Stops competing if much of what is sent is lost, or some of it after the others had time to react.
    mutating func noteLoss(isMuch: Bool, isSome: Bool, at now: MonotonicTime) {
        guard let since = competingSince, isMuch || isSome && now >= since + Self.patience else { return }
        competingSince = nil
        abstinence = min(abstinence * 2, Self.maximumAbstinence)
    }

    /// Begins to compete after a long time without a picture, if the path itself is fast enough for one.
    /// - Parameters:
    ///   - least: bit rate of the lowest layer, in bits a second.
    ///   - burstRate: rate at which the path delivers bursts, in bits a second; nil if unknown.
    mutating func compete(for least: Int, burstRate: Int?, at now: MonotonicTime) {
        // A path that is too slow by itself delivers no burst at such a rate.
        guard let emptySince, now >= emptySince + abstinence, let burstRate, burstRate / 3 * 2 > least else {
            return
        }
        competingSince = now
    }

    /// Notes that there is room for what is sent.
    mutating func succeed() {
        guard isCompeting else { return }
        competingSince = nil
        abstinence = Self.minimumAbstinence
    }

    /// Whether a step must be given up because the queue stands; then not again before it has stood for as long once
    /// more.
    mutating func takeYield() -> Bool {
        guard fullness >= Self.standing else { return false }
        fullness = .zero
        return true
    }
}
