import Base

/// Divides what a path takes between the pictures that are sent over it.
///
/// Steps down are made at once, because what does not fit breaks everything else; steps up only where the estimate has
/// shown that there is room, and each one that failed makes the next wait longer. What is sent is kept a little longer
/// than it would be begun, so that a link on the border of two layers does not have pictures jump between them.
struct LayerAllocator {
    /// One picture that somebody wants.
    struct Wish {
        /// Bit rates of what could be sent, each with its headers, the best last; one at least.
        var steps: [Int]
        /// Which of them is sent; nil for none.
        var granted: Int?
        /// Gets something only when all that are not have the best there is: what nobody looks at yet.
        var isLast = false
        /// Asked for since the last time: that it gets less than the best says nothing of the path.
        var isNew = false
        /// Nothing of `granted` was sent yet, which waits for its key frame.
        var isWaiting = false

        /// Bit rate of what is sent.
        fileprivate var cost: Int { granted.map { steps[$0] } ?? 0 }
    }

    struct Limits {
        /// Percent of what there is room for that a picture which is sent already may take.
        var kept = 112
        /// The same for the least there is: without it there would be nothing to see.
        var keptLeast = 150
        /// Percent of a picture's bit rate that have to be free for it to begin.
        var begun = 110
        /// The least there is may take too much for so long, and for so long where it is more than `hopeless` percent.
        var patience = Duration.milliseconds(2_500)
        var shortPatience = Duration.milliseconds(800)
        var hopeless = 250
        /// The same where much is lost besides.
        var lossyPatience = Duration.milliseconds(300)
        /// After a step down no other goes up for so long.
        var minimumHold = Duration.seconds(2)
        /// Where a step up was the cause about as much is not tried again for longer, doubled each time.
        var failureHold = Duration.seconds(5)
        var maximumHold = Duration.seconds(60)
        /// Nobody is without a picture for longer than this because one failed.
        var longestEmpty = Duration.seconds(5)
        /// A step up that lasted for so long did not fail.
        var trial = Duration.seconds(10)
        /// The same where the path takes less than this of it, in percent: so much too much is seen sooner.
        var shortTrial = Duration.seconds(5)
        var muchLess = 75
    }

    private let limits: Limits
    private var heldUntil = MonotonicTime.zero
    private var failures: FailedSteps
    /// The same for who has no picture at all.
    private var emptyUntil = MonotonicTime.zero
    private var lastStepUp: MonotonicTime?
    /// Since when the least there is takes more than there is.
    private var excessSince: MonotonicTime?
    private var others = PathSharing()
    /// Bit rate of all pictures with the next step up; nil while all are the best there are.
    private(set) var wanted: Int?

    init(limits: Limits = Limits()) {
        self.limits = limits
        failures = FailedSteps(shortest: limits.failureHold, longest: limits.maximumHold)
    }

    /// Whether the last steps up failed: not whether something fell because the path became slower.
    func hasFailed(at now: MonotonicTime) -> Bool { failures.isHolding(at: now) }

    /// Forgets that steps up failed: there are others to take now.
    mutating func release() {
        heldUntil = .zero
        failures.forget()
        emptyUntil = .zero
    }

    /// Chooses a step for each wish.
    /// - Parameters:
    ///   - wishes: the most important first.
    ///   - available: bits a second that the path takes for pictures.
    ///   - isLimited: whether the path has shown that it takes no more; else what is sent goes on.
    ///   - isOverused: whether its queue grows: nothing goes up meanwhile.
    ///   - isLossy: whether much of what is sent does not arrive.
    ///   - losesSome: whether more does not arrive than can be repaired for long.
    ///   - burstRate: bits a second at which the path passes on what leaves at once, whoever else sends over it; nil
    ///     where that is not known.
    /// - Returns: in the wishes' order, nil for nothing.
    mutating func allocate(
        _ wishes: [Wish], available: Int, isLimited: Bool, isOverused: Bool, isLossy: Bool = false,
        losesSome: Bool = false, burstRate: Int? = nil, at now: MonotonicTime
    ) -> [Int?] {
        var grants = [Int?](repeating: nil, count: wishes.count)
        var room = available
        let mayBegin = !isOverused && now >= emptyUntil
        if let burstRate { failures.forgetSlower(than: burstRate) }
        // So much in all is no better than what failed.
        let ceiling = failures.ceiling(at: now)
        var isPatient = false
        let looked = wishes.filter { !$0.isLast }
        let lacksPictures = !looked.isEmpty && looked.allSatisfy { $0.granted == nil }
        others.look(isQueued: isOverused, lacksPictures: lacksPictures, at: now)
        others.noteLoss(isMuch: isLossy, isSome: losesSome, at: now)
        if let least = looked.first?.steps.first {
            others.compete(for: least, burstRate: burstRate, at: now)
        }
        let mustYield = wishes.contains { $0.granted ?? 0 > 0 } && others.takeYield()
        for isLast in [false, true] {
            // What comes last has to wait for the others.
            if isLast, zip(wishes, grants).contains(where: { !$0.isLast && $1 != $0.steps.indices.last }) {
                break
            }
            let chosen = wishes.indices.filter { wishes[$0].isLast == isLast }
            // Something of everything before the best of anything.
            for index in chosen {
                let wish = wishes[index]
                guard let least = wish.steps.first else { continue }
                var fits = fits(wish, 0, into: room, isLimited: isLimited, mayRise: mayBegin)
                if fits, wish.granted != nil { others.succeed() }
                if others.isCompeting, !isLast { fits = true }
                if !fits, wish.granted != nil, !isLast, mayStay(wish, in: room, isLossy: isLossy, at: now) {
                    isPatient = true
                    fits = true
                }
                guard fits else { continue }
                grants[index] = 0
                room -= least
            }
            for index in chosen {
                let wish = wishes[index]
                let top = mustYield ? max(wish.granted ?? 0, 1) : wish.steps.count
                while let step = grants[index], step + 1 < top {
                    let more = wish.steps[step + 1] - wish.steps[step]
                    let mayRise = mayBegin && now >= heldUntil && available - room + more < ceiling
                    let hasRoom = fits(
                        wish, step + 1, into: room + wish.steps[step], isLimited: isLimited, mayRise: mayRise)
                    guard hasRoom else { break }
                    grants[index] = step + 1
                    room -= more
                }
            }
        }
        if !isPatient { excessSince = nil }
        note(grants, instead: wishes, available: available, burstRate: burstRate, at: now)
        return grants
    }

    private func fits(_ wish: Wish, _ step: Int, into room: Int, isLimited: Bool, mayRise: Bool) -> Bool {
        let granted = wish.granted ?? -1
        let cost = wish.steps[step]
        if step > granted { return mayRise && cost * limits.begun / 100 <= room }
        return !isLimited || cost <= (step == granted ? room * limits.kept / 100 : room)
    }

    /// Whether the least of a picture goes on although there is no room for it.
    private mutating func mayStay(
        _ wish: Wish, in room: Int, isLossy: Bool, at now: MonotonicTime
    ) -> Bool {
        let start = excessSince ?? now
        excessSince = start
        if wish.steps[0] <= room * limits.keptLeast / 100 { return true }
        let isHopeless = wish.steps[0] > room * limits.hopeless / 100
        guard isHopeless else { return now < start + limits.patience }
        return now < start + (isLossy ? limits.lossyPatience : limits.shortPatience)
    }

    private mutating func note(
        _ grants: [Int?], instead wishes: [Wish], available: Int, burstRate: Int?, at now: MonotonicTime
    ) {
        var hasRisen = false
        var hasFallen = false
        // Of what was never sent nobody knows whether the path takes it.
        var wasTried = false
        var next: Int?
        var cost = 0
        for (wish, grant) in zip(wishes, grants) {
            hasRisen = hasRisen || (grant ?? -1) > (wish.granted ?? -1)
            if (grant ?? -1) < (wish.granted ?? -1), !wish.isNew {
                hasFallen = true
                wasTried = wasTried || !wish.isWaiting
            }
            let now = grant.map { wish.steps[$0] } ?? 0
            cost += now
            let better = (grant ?? -1) + 1
            if next == nil, better < wish.steps.count { next = wish.steps[better] - now }
        }
        // What one picture gave to a more important one says nothing of the path.
        if hasFallen, !hasRisen {
            let sum = wishes.reduce(0) { $0 + $1.cost }
            let trial = available < sum / 100 * limits.muchLess ? limits.shortTrial : limits.trial
            let isFailure = lastStepUp.map { now < $0 + trial } ?? false
            if !wasTried {
                failures.extend(at: now)
            } else if isFailure {
                failures.fail(with: sum, burstRate: burstRate, at: now)
            } else {
                failures.forget()
            }
            heldUntil = now + limits.minimumHold
            emptyUntil = now + min((failures.latestHold ?? limits.minimumHold) / 4, limits.longestEmpty)
            lastStepUp = nil
        } else if hasRisen {
            lastStepUp = now
        }
        wanted = next.map { (cost + $0) * limits.begun / 100 }
    }
}
