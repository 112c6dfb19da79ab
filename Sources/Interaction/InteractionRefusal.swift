import Base

extension Interaction {
    /// Why a request from the audience is refused: one case for each rule.
    package enum Refusal: Error, Equatable, Sendable {
        /// Viewers aren't let in yet, or the stream has ended.
        case notOpen
        case commentsOff
        /// The host lets only viewers comment whose token has a tier.
        case membersOnly
        case unknownReaction
        case emptyComment
        case longComment
        case forbiddenWord
        /// The reviewer of comments rejected it.
        case reviewDenied
        /// For this many more seconds.
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
        /// People who see a quiz's right answers can't answer it.
        case knowsAnswer
        /// Only a shop that sells gifts can report one.
        case notShop
        case unknownGift
        /// The stream's only currency.
        case otherCurrency(String)
        /// The key was used with a different gift.
        case giftKeyReused
        case unknownDuel
        /// A host can be in one at a time.
        case inDuel
        /// One of the streams isn't live, or its host is absent.
        case notLive
        /// It is up to the other side.
        case notInvited
        case duelOver
        /// The losing side can ask for a rematch only when the penalty is over.
        case penalty
        /// The field that is out of range.
        case invalid(String)

        /// Decides the status of the API's response.
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

        /// Never changes, so that programs can compare it.
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
            case .notOpen: "The stream isn't open to viewers yet, or it has ended."
            case .commentsOff: "Comments are turned off for this stream."
            case .membersOnly: "Only members can comment."
            case .unknownReaction: "This stream doesn't have this reaction."
            case .emptyComment: "The comment has no visible characters."
            case .longComment:
                "A comment can have up to \(CommentText.length) characters and \(CommentText.byteLength) bytes."
            case .forbiddenWord: "Your comment contains a word that the host doesn't allow."
            case .reviewDenied: "Your comment wasn't approved."
            case .silenced(let wait): "The host silenced you. You can comment again in \(Self.words(wait))."
            case .slowMode(let wait): "Slow mode is on. You can comment again in \(Self.words(wait))."
            case .tooFast(let wait): "You're going too fast. Try again in \(Self.words(wait))."
            case .unknownComment: "This comment no longer exists."
            case .notModerator: "Only the host can do this."
            case .moderatorSpeaks: "The host and admins can't be silenced."
            case .notSilenced: "This participant isn't silenced."
            case .tooManySilenced: "\(Interaction.silenceLimit) participants are already silenced."
            case .unknownPoll: "This poll no longer exists."
            case .pollOpen: "A poll is already open. End it first."
            case .pollClosed: "This poll has ended."
            case .alreadyVoted: "You already answered this poll."
            case .pollFull: "This poll has reached its limit of \(Poll.voterLimit) voters."
            case .knowsAnswer: "Hosts can't answer a quiz, because they can see the right answer."
            case .notShop: "This requires a shop's token with the capability give-gifts, or an admin's token."
            case .unknownGift: "This gift isn't in the stream's catalogue."
            case .otherCurrency(let currency): "This stream counts gifts in \(currency)."
            case .giftKeyReused: "This key was used with a different gift."
            case .unknownDuel: "This duel no longer exists."
            case .inDuel: "This stream is already in a duel."
            case .notLive: "A duel requires two live streams with their hosts present."
            case .notInvited: "Only the other stream's host can do this."
            case .duelOver: "It's too late to do this in this duel."
            case .penalty: "The losing side can ask for a rematch when the penalty is over."
            case .invalid(let field): "\(field) is missing, has the wrong type, or is out of range."
            }
        }

        /// Seconds until a retry can succeed; nil where waiting doesn't help.
        package var wait: Int? {
            switch self {
            case .silenced(let wait), .slowMode(let wait), .tooFast(let wait): wait
            default: nil
            }
        }

        private static func words(_ seconds: Int) -> String {
            seconds <= 120 ? seconds.inSeconds : "\((seconds + 59) / 60) minutes"
        }
    }
}
