import Interaction
import Stage

/// Why a request to a stream was not carried out.
package enum StageRefusal: Error, Equatable, Sendable {
    /// The rules of the stage forbid it.
    case rejected(Rejection)
    /// The rules for the audience forbid it.
    case interaction(Interaction.Refusal)
    case unknownStream
    case streamExists
    /// The idempotency key was used before with another request.
    case keyReused
    /// A request with the same idempotency key is still being answered.
    case busy
    /// The sender made too many changes in a short time, and may continue after `wait` seconds.
    case tooManyCommands(wait: Int)
    /// The change could not be made durable, so it did not happen.
    ///
    /// Media is not affected.
    case storage(String)
    /// A limit is reached, such as that of streams in memory or of waiting changes, or the server is stopping.
    case overloaded
}

/// The reply to a command, as of the durable state.
package struct StageAnswer: Sendable {
    /// Followers receive the result with this version at the latest.
    package let version: UInt64
    /// The sender's own state.
    package let you: SyncYou
    /// The public state of the stream.
    package let stream: StreamSnapshot
    /// Whether the sender's token still admits to the stage, although the sender is not on it.
    package let isStageToken: Bool
    /// The revoked links, for tokens that were made from links.
    package let linkRevocations: StageRecord.LinkRevocations
}
