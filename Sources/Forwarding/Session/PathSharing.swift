import Base

/// What a session does because others send over the same path: it has less where the queue stands, and it goes without
/// pictures no longer than the path is really too slow for them.
///
/// Each session sees its own packets alone, and where all hold what they have whoever came last has nothing. So who has
/// more than the least gives some of it up while the queue stands, and who has nothing begins with the least all the
/// same; that makes a queue, for which the others give something up, as TCP does.
struct PathSharing {
    /// A queue that stood for so long lately, less the time for which it did not, does not drain by itself.
    private static let standing = Duration.seconds(2)
    /// After so long without any the least picture is tried, later each time that it is lost.
    private static let minimumAbstinence = Duration.seconds(5)
    private static let maximumAbstinence = Duration.seconds(60)
    /// For so long others may need to notice.
    private static let patience = Duration.milliseconds(2_500)

    /// For how long the queue stood, less the time for which it did not.
    private var fullness = Duration.zero
    private var lookedAt: MonotonicTime?
    /// Since when there is no picture although one is wanted; nil else.
    private var emptySince: MonotonicTime?
    private var competingSince: MonotonicTime?
    private var abstinence = Self.minimumAbstinence

    /// Whether the least is sent whatever the path is thought to take.
    var isCompeting: Bool { competingSince != nil }

    /// Lets time pass.
    /// - Parameter lacksPictures: whether some are wanted and none is sent.
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

    /// What is sent to compete is given up where it does not arrive.
    mutating func noteLoss(isMuch: Bool, isSome: Bool, at now: MonotonicTime) {
        guard let since = competingSince, isMuch || isSome && now >= since + Self.patience else { return }
        competingSince = nil
        abstinence = min(abstinence * 2, Self.maximumAbstinence)
    }

    /// Begins to compete, where there was no picture for long and the path itself is fast enough for one.
    /// - Parameters:
    ///   - least: bits a second of it.
    ///   - burstRate: bits a second at which the path passes on what leaves at once; nil where that is not known.
    mutating func compete(for least: Int, burstRate: Int?, at now: MonotonicTime) {
        // A path that is too slow by itself passes nothing on at such a rate.
        guard let emptySince, now >= emptySince + abstinence, let burstRate, burstRate / 3 * 2 > least else {
            return
        }
        competingSince = now
    }

    /// There is room for what is sent.
    mutating func succeed() {
        guard isCompeting else { return }
        competingSince = nil
        abstinence = Self.minimumAbstinence
    }

    /// Whether something has to be given up, because the queue stands; then not again before it has stood once more.
    mutating func takeYield() -> Bool {
        guard fullness >= Self.standing else { return false }
        fullness = .zero
        return true
    }
}
