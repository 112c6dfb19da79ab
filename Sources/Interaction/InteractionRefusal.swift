import Base

extension Interaction {
    /// Why a request of the audience is refused: one case for each rule.
    package enum Refusal: Error, Equatable, Sendable {
        /// No viewers are let in yet, or the stream is over.
        case notOpen
        case commentsOff
        /// The host permits comments only to participants whose token names a tier.
        case membersOnly
        case unknownReaction
        case emptyComment
        case longComment
        case forbiddenWord
        /// The external review did not permit the comment.
        case reviewDenied
        /// Silenced for this many more seconds.
        case silenced(wait: Int)
        /// The participant must wait this many seconds between comments.
        case slowMode(wait: Int)
        /// The rate limit permits the request in this many seconds.
        case tooFast(wait: Int)
        case unknownComment
        case notModerator
        /// Hosts can silence others, but not each other.
        case moderatorSpeaks
        case notSilenced
        case tooManySilenced
        case unknownPoll
        /// There is one poll at a time.
        case pollOpen
        case pollClosed
        case alreadyVoted
        case pollFull
        /// A participant who sees the right answer of a quiz must not answer it.
        case knowsAnswer
        /// Only shops can report gifts.
        case notShop
        case unknownGift
        /// The stream's gifts have this currency.
        case otherCurrency(String)
        /// The key was used before, for another gift.
        case giftKeyReused
        case unknownDuel
        /// A stream is in one duel at a time.
        case inDuel
        /// One of the two streams is not live, or has no host present.
        case notLive
        /// Only the other side can do this.
        case notInvited
        case duelOver
        /// The loser can request a rematch only after the penalty.
        case penalty
        /// The field with this name is out of range.
        case invalid(String)

        /// The general reason, from which the API derives its status.
        package var kind: RefusalKind {
            switch self {
            case .membersOnly, .silenced, .notModerator, .knowsAnswer, .notShop, .notInvited: .forbidden
            case .unknownComment, .notSilenced, .unknownPoll, .unknownDuel: .missing
            case .notOpen, .commentsOff, .moderatorSpeaks, .pollOpen, .pollClosed, .alreadyVoted,
                .giftKeyReused, .inDuel, .notLive, .duelOver, .penalty:
                .conflict
            case .unknownGift, .otherCurrency, .unknownReaction, .emptyComment, .longComment, .forbiddenWord,
                .reviewDenied, .invalid:
                .invalid
            case .slowMode, .tooFast, .tooManySilenced, .pollFull: .limit
            }
        }

        /// A stable identifier, which programs compare.
        package var name: String {
            switch self {
            case .notOpen: "not-open"
            case .commentsOff: "comments-off"
            case .membersOnly: "members-only"
            case .unknownReaction: "unknown-reaction"
            case .emptyComment: "empty-comment"
            case .longComment: "long-comment"
            case .forbiddenWord: "forbidden-word"
            case .reviewDenied: "review-denied"
            case .silenced: "silenced"
            case .slowMode: "slow-mode"
            case .tooFast: "too-fast"
            case .unknownComment: "unknown-comment"
            case .notModerator: "not-host"
            case .moderatorSpeaks: "host-speaks"
            case .notSilenced: "not-silenced"
            case .tooManySilenced: "too-many-silenced"
            case .unknownPoll: "unknown-poll"
            case .pollOpen: "poll-open"
            case .pollClosed: "poll-closed"
            case .alreadyVoted: "already-voted"
            case .pollFull: "poll-full"
            case .knowsAnswer: "knows-answer"
            case .notShop: "not-shop"
            case .unknownGift: "unknown-gift"
            case .otherCurrency: "other-currency"
            case .giftKeyReused: "gift-key-reused"
            case .unknownDuel: "unknown-duel"
            case .inDuel: "in-duel"
            case .notLive: "not-live"
            case .notInvited: "not-invited"
            case .duelOver: "duel-over"
            case .penalty: "penalty"
            case .invalid: "invalid-field"
            }
        }

        /// A sentence for people.
        package var explanation: String {
            switch self {
            case .notOpen: "The audience can talk when the stream lets viewers in, until it ends."
            case .commentsOff: "Comments are switched off in this stream."
            case .membersOnly: "Only members can comment."
            case .unknownReaction: "This stream does not have this reaction."
            case .emptyComment: "There is nothing in this comment that could be seen."
            case .longComment:
                "A comment has at most \(CommentText.length) characters and \(CommentText.byteLength) bytes."
            case .forbiddenWord: "The host does not want one of these words here."
            case .reviewDenied: "This comment was not let through."
            case .silenced(let wait): "The host has silenced you; you can write again in \(Self.words(wait))."
            case .slowMode(let wait): "Slow mode is on: you can write again in \(Self.words(wait))."
            case .tooFast(let wait): "That was very fast; try again in \(Self.words(wait))."
            case .unknownComment: "There is no such comment any more."
            case .notModerator: "Only the host may do this."
            case .moderatorSpeaks: "Nobody can silence the host or an admin."
            case .notSilenced: "This participant is not silenced."
            case .tooManySilenced: "\(Interaction.silenceLimit) participants are silenced already."
            case .unknownPoll: "There is no such poll any more."
            case .pollOpen: "A poll is open already; close it first."
            case .pollClosed: "This poll is over."
            case .alreadyVoted: "You have answered this poll already."
            case .pollFull: "\(Poll.voterLimit) have answered this poll; it takes no more."
            case .knowsAnswer: "Hosts see the right answer of a quiz, and do not answer it."
            case .notShop: "This takes a shop's token, with the capability give-gifts, or an admin's."
            case .unknownGift: "This gift is not in the stream's catalogue."
            case .otherCurrency(let currency): "Gifts of this stream are counted in \(currency)."
            case .giftKeyReused: "This key came before, with another gift."
            case .unknownDuel: "There is no such duel any more."
            case .inDuel: "This stream is in a duel already."
            case .notLive: "A duel is one of two live streams whose hosts are there."
            case .notInvited: "This is for the other stream's host to say."
            case .duelOver: "It is too late for that in this duel."
            case .penalty: "Who lost can ask for a rematch when the penalty is over."
            case .invalid(let field): "\(field) is missing, of another type, or out of its range."
            }
        }

        /// Seconds until the request may succeed; nil if waiting alone does not help.
        package var wait: Int? {
            switch self {
            case .silenced(let wait), .slowMode(let wait), .tooFast(let wait): wait
            default: nil
            }
        }

        private static func words(_ seconds: Int) -> String {
            if seconds == 1 { return "a second" }
            return seconds <= 120 ? "\(seconds) seconds" : "\((seconds + 59) / 60) minutes"
        }
    }
}
