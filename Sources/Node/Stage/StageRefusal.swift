import Interaction
import Stage

/// Why something that was asked of a stream was not done.
package enum StageRefusal: Error, Equatable, Sendable {
    /// The stage's rules stand against it.
    case rejected(Rejection)
    /// The rules of the audience stand against it.
    case interaction(Interaction.Refusal)
    case unknownStream
    case streamExists
    /// The same idempotency key came with another request.
    case keyReused
    /// The same request is under way.
    case busy
    /// The sender did much in a short time; may go on after so many seconds.
    case tooManyCommands(wait: Int)
    /// It could not be made durable, so it did not happen; media is not concerned.
    case storage(String)
    /// As many streams as can be.
    case overloaded
}

/// What a command is answered; all of it is durable.
package struct StageAnswer: Sendable {
    /// Followers learn of it with this version at the latest.
    package let version: UInt64
    /// The sender's own state.
    package let you: SyncYou
    /// What everybody may know.
    package let stream: StreamSnapshot
    /// Whether the token that was shown still opens the stage to its bearer, who is not there.
    package let isStageToken: Bool
    /// For tokens that were made from links.
    package let linkRevocations: StageRecord.LinkRevocations
}
