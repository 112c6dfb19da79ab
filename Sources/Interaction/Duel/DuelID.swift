import Base

/// The permanent name of a duel: the stream that invited, and the number among its duels.
///
/// The name tells which stream to ask about the duel, without a list that all streams would share.
package struct DuelID: Hashable, Sendable, CustomStringConvertible, Codable {
    /// The stream whose host sent the invitation.
    package let inviter: StreamID
    /// Increases from duel to duel of that stream, also across restarts.
    package let number: Int

    /// - Parameter number: above 0.
    package init(inviter: StreamID, number: Int) {
        self.inviter = inviter
        self.number = number
    }

    /// Parses the form of `description`.
    /// - Returns: nil if the text is not of that form.
    package init?(_ text: some StringProtocol) {
        let parts = text.split(separator: ".", omittingEmptySubsequences: false)
        guard parts.count == 2, let inviter = StreamID(parts[0]), let number = Int(parts[1]), number > 0,
            "\(number)" == parts[1]
        else { return nil }
        self.init(inviter: inviter, number: number)
    }

    /// `stream.number`, which can stand in a URL path unchanged.
    package var description: String { "\(inviter).\(number)" }
}

/// The terms on which the two hosts agree.
package struct DuelTerms: Equatable, Sendable, Codable {
    /// Seconds for which scores count.
    package var seconds = 300
    /// Seconds for which the two streams stay together after the result; 0 for not at all.
    package var penaltySeconds = 60
    /// Points for the smallest unit of the currency in gifts.
    package var giftWeight = 1
    /// Points for a tap, of whatever kind.
    package var reactionWeight = 1

    /// The default terms.
    package init() {}

    /// Thirty seconds to fifteen minutes.
    package static let secondsRange = 30...900
    /// At most ten minutes.
    package static let penaltyRange = 0...600
    /// 0 does not count that kind; at least one of the two must count.
    package static let weightRange = 0...1_000

    /// - Throws: `.invalid` with the name of the first field that is out of range.
    func validate() throws(Interaction.Refusal) {
        guard Self.secondsRange.contains(seconds) else { throw .invalid("duelSeconds") }
        guard Self.penaltyRange.contains(penaltySeconds) else { throw .invalid("penaltySeconds") }
        guard Self.weightRange.contains(giftWeight), Self.weightRange.contains(reactionWeight),
            giftWeight + reactionWeight > 0
        else { throw .invalid("weights") }
    }
}

/// What a stream was given and how often it was tapped; a duel counts the difference between two tallies.
package struct DuelTally: Equatable, Sendable, Codable {
    /// Value of all gifts, in the smallest unit of the stream's currency.
    package var gifts: Int
    /// Taps of all kinds.
    package var reactions: Int

    /// A tally with these values.
    package init(gifts: Int = 0, reactions: Int = 0) {
        self.gifts = gifts
        self.reactions = reactions
    }

    /// Points for what was added since `base`; never negative, and at most the largest integer that JSON keeps exact.
    func points(since base: DuelTally, by terms: DuelTerms) -> Int {
        Self.sum(
            Self.worth(gifts, base.gifts, terms.giftWeight),
            Self.worth(reactions, base.reactions, terms.reactionWeight))
    }

    /// Points for one kind; without overflow, because the values come from sums that only have an upper limit.
    private static func worth(_ now: Int, _ before: Int, _ weight: Int) -> Int {
        let (difference, isFar) = now.subtractingReportingOverflow(before)
        guard !isFar, difference > 0 else { return 0 }
        let (product, isMuch) = difference.multipliedReportingOverflow(by: weight)
        return isMuch ? GiftTotals.highest : min(product, GiftTotals.highest)
    }

    private static func sum(_ one: Int, _ other: Int) -> Int { min(one + other, GiftTotals.highest) }
}
