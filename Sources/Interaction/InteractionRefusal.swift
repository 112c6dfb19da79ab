import Base

extension Interaction {
    /// Why something that somebody of the audience wants is not done: one case for each rule.
    package enum Refusal: Error, Equatable, Sendable {
        /// Nobody is let in yet, or it is over.
        case notOpen
        case commentsOff
        /// The host lets only those comment whose token names a tier.
        case membersOnly
        case unknownReaction
        case emptyComment
        case longComment
        case forbiddenWord
        /// Whoever the server asks about comments does not want it shown.
        case reviewDenied
        /// For so many seconds more.
        case silenced(wait: Int)
        case slowMode(wait: Int)
        case tooFast(wait: Int)
        case unknownComment
        case notModerator
        /// Hosts silence others, not each other.
        case moderatorSpeaks
        case notSilenced
        case tooManySilenced
        case unknownPoll
        /// There is one at a time.
        case pollOpen
        case pollClosed
        case alreadyVoted
        case pollFull
        /// Whoever sees what is right in a quiz does not answer it.
        case knowsAnswer
        /// Only who sells gifts can say that one was given.
        case notShop
        case unknownGift
        /// A stream has one, which is named.
        case otherCurrency(String)
        /// The key came before, with another gift.
        case giftKeyReused
        case unknownDuel
        /// A host is in one at a time.
        case inDuel
        /// Of either stream, or without its host.
        case notLive
        /// It is the other side's to say.
        case notInvited
        case duelOver
        /// Who lost asks for another one when the penalty is over.
        case penalty
        /// The field that is out of its range.
        case invalid(String)

        /// What the API makes its status of.
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

        /// Stays the same for ever, for programs to compare.
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

        /// For people.
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

        /// Seconds until it may go on; nil where time alone does not help.
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
