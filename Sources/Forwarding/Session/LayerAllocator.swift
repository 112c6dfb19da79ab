import Base

/// Divides a path's capacity between the pictures that are sent over it.
///
/// Steps down happen immediately, because too much traffic harms everything on the path. Steps up happen only when
/// the estimate shows room, and each failed one makes the next wait longer. A layer that is sent may take a little
/// more room than it needed to begin, so that a path on the border between two layers does not make pictures
/// alternate.
struct LayerAllocator {
    /// One picture that a viewer wants.
    struct Wish {
        /// Bit rates of the available choices, in bits a second including headers, in ascending order; at least one.
        var steps: [Int]
        /// Index of the step that is sent; nil for none.
        var granted: Int?
        /// Whether it gets bandwidth only after all other pictures have their best step: a preview that is not on
        /// screen yet.
        var isLast = false
        /// Whether it was requested since the last allocation; then a lower step is no evidence about the path.
        var isNew = false
        /// Whether nothing of `granted` has been sent yet, because its key frame has not arrived.
        var isWaiting = false

        /// Bit rate of the step that is sent, in bits a second.
        fileprivate var cost: Int { granted.map { steps[$0] } ?? 0 }
    }

    /// Thresholds and times of the allocation.
    struct Limits {
        /// Percentage of the available room that a picture already being sent may take.
        var kept = 112
        /// The same for the lowest step, without which there would be no picture.
        var keptLeast = 150
        /// Percentage of a picture's bit rate that must be free before it begins.
        var begun = 110
        /// How long the lowest step may exceed `keptLeast`; `shortPatience` if it exceeds `hopeless` percent of the
        /// room.
        var patience = Duration.milliseconds(2_500)
        var shortPatience = Duration.milliseconds(800)
        var hopeless = 250
        /// The same for a step beyond `hopeless` while much is lost.
        var lossyPatience = Duration.milliseconds(300)
        /// No step up happens for this long after a step down.
        var minimumHold = Duration.seconds(2)
        /// After a failed step up, similar rates are not tried for this long, doubled with each failure up to
        /// `maximumHold`.
        var failureHold = Duration.seconds(5)
        var maximumHold = Duration.seconds(60)
        /// Longest time without any picture because of a failed step.
        var longestEmpty = Duration.seconds(5)
        /// A step up that lasted this long counts as successful.
        var trial = Duration.seconds(10)
        /// The same if the path carries less than `muchLess` percent of what is sent, because such an excess shows
        /// sooner.
        var shortTrial = Duration.seconds(5)
        var muchLess = 75
    }

    private let limits: Limits
    private var heldUntil = MonotonicTime.zero
    private var failures: FailedSteps
    /// No picture begins, and no step goes up, before this time; shorter than `heldUntil` lets a step up wait.
    private var emptyUntil = MonotonicTime.zero
    private var lastStepUp: MonotonicTime?
    /// When the lowest step began to exceed the room.
    private var excessSince: MonotonicTime?
    private var others = PathSharing()
    /// Total bit rate with the next step up, which the estimator probes for; nil while all pictures are at their
    /// best.
    private(set) var wanted: Int?

    init(limits: Limits = Limits()) {
        self.limits = limits
        failures = FailedSteps(shortest: limits.failureHold, longest: limits.maximumHold)
    }

    /// Whether a step up failed recently, as opposed to a path that became slower.
    func hasFailed(at now: MonotonicTime) -> Bool { failures.isHolding(at: now) }

    /// Forgets failed steps up, because other steps are available now.
    mutating func release() {
        heldUntil = .zero
        failures.forget()
        emptyUntil = .zero
    }

    /// Chooses a step for each wish.
    /// - Parameters:
    ///   - wishes: in order of importance.
    ///   - available: capacity of the path for pictures, in bits a second.
    ///   - isLimited: whether the path has reached its limit; otherwise pictures that are sent go on.
    ///   - isOverused: whether the path's queue grows, which excludes steps up.
    ///   - isLossy: whether much of what is sent is lost.
    ///   - losesSome: whether more is lost than can be repaired for long.
    ///   - burstRate: rate at which the path delivers bursts, whoever else uses it, in bits a second; nil if unknown.
    /// - Returns: a step for each wish, in their order; nil for no picture.
    mutating func allocate(
        _ wishes: [Wish], available: Int, isLimited: Bool, isOverused: Bool, isLossy: Bool = false,
        losesSome: Bool = false, burstRate: Int? = nil, at now: MonotonicTime
    ) -> [Int?] {
        var grants = [Int?](repeating: nil, count: wishes.count)
        var room = available
        let mayBegin = !isOverused && now >= emptyUntil
        if let burstRate { failures.forgetSlower(than: burstRate) }
        // A total from this rate on would repeat what failed.
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
            // Previews wait until all other pictures have their best step.
            if isLast, zip(wishes, grants).contains(where: { !$0.isLast && $1 != $0.steps.indices.last }) {
                break
            }
            let chosen = wishes.indices.filter { wishes[$0].isLast == isLast }
            // Every picture gets its lowest step before any gets a higher one.
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

    /// Whether a picture's lowest step goes on although it does not fit.
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

    /// Evaluates the new allocation: which steps succeeded or failed, how long to hold, and what to probe for.
    private mutating func note(
        _ grants: [Int?], instead wishes: [Wish], available: Int, burstRate: Int?, at now: MonotonicTime
    ) {
        var hasRisen = false
        var hasFallen = false
        // A step that was never sent is no evidence of what the path can carry.
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
        // Bandwidth moved to a more important picture is no evidence about the path.
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
