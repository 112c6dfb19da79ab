import Base

/// Names one duel for ever: the stream that invited, and which of its duels it is.
///
/// Whoever has the name knows where the duel can be asked for, without a list that all streams would share.
package struct DuelID: Hashable, Sendable, CustomStringConvertible, Codable {
    /// The stream whose host asked for it.
    package let inviter: StreamID
    /// Grows from duel to duel of that stream, also over a restart.
    package let number: Int

    package init(inviter: StreamID, number: Int) {
        self.inviter = inviter
        self.number = number
    }

    /// - Returns: nil for what no duel is called.
    package init?(_ text: some StringProtocol) {
        let parts = text.split(separator: ".", omittingEmptySubsequences: false)
        guard parts.count == 2, let inviter = StreamID(parts[0]), let number = Int(parts[1]), number > 0,
            "\(number)" == parts[1]
        else { return nil }
        self.init(inviter: inviter, number: number)
    }

    /// `stream.number`, which stands in a URL path as it is.
    package var description: String { "\(inviter).\(number)" }
}

/// What the two hosts agree to.
package struct DuelTerms: Equatable, Sendable, Codable {
    /// For how long scores count.
    package var seconds = 300
    /// For how long both stay together after the result; 0 for not at all.
    package var penaltySeconds = 60
    /// Points for the smallest unit of the currency that is given.
    package var giftWeight = 1
    /// Points for a tap, of whatever kind.
    package var reactionWeight = 1

    package init() {}

    /// Thirty seconds to a quarter of an hour.
    package static let secondsRange = 30...900
    /// At most ten minutes.
    package static let penaltyRange = 0...600
    /// 0 for what does not count.
    package static let weightRange = 0...1_000

    /// - Throws: `.invalid`, naming the first field that is out of its range.
    func validate() throws(Interaction.Refusal) {
        guard Self.secondsRange.contains(seconds) else { throw .invalid("duelSeconds") }
        guard Self.penaltyRange.contains(penaltySeconds) else { throw .invalid("penaltySeconds") }
        guard Self.weightRange.contains(giftWeight), Self.weightRange.contains(reactionWeight),
            giftWeight + reactionWeight > 0
        else { throw .invalid("weights") }
    }
}

/// What a stream was given and how often it was tapped so far, of which a duel counts the difference.
package struct DuelTally: Equatable, Sendable, Codable {
    /// In the smallest unit of the stream's currency.
    package var gifts: Int
    /// Taps of all kinds.
    package var reactions: Int

    package init(gifts: Int = 0, reactions: Int = 0) {
        self.gifts = gifts
        self.reactions = reactions
    }

    /// What came since `base` is worth; never negative, and no more than JSON has whole numbers for.
    func points(since base: DuelTally, by terms: DuelTerms) -> Int {
        Self.sum(
            Self.worth(gifts, base.gifts, terms.giftWeight),
            Self.worth(reactions, base.reactions, terms.reactionWeight))
    }

    private static func worth(_ now: Int, _ before: Int, _ weight: Int) -> Int {
        let (difference, isFar) = now.subtractingReportingOverflow(before)
        guard !isFar, difference > 0 else { return 0 }
        let (product, isMuch) = difference.multipliedReportingOverflow(by: weight)
        return isMuch ? GiftTotals.highest : min(product, GiftTotals.highest)
    }

    private static func sum(_ one: Int, _ other: Int) -> Int { min(one + other, GiftTotals.highest) }
}
