import Base
import Peer

/// The host of one stream, as the stage of another takes them in: what they send, and how it is just now.
package struct StageGuest: Equatable, Sendable {
    /// Theirs, on their own stream's stage.
    package let session: SessionID
    /// What they are called on the stage that takes them in; nobody else there may have that name.
    package let participant: ParticipantID
    let worker: Int
    let sources: [SourcePlan]
    /// By m-line.
    let tracks: [String: PublishedTrack]
    /// M-lines on which something comes.
    let active: Set<String>
    let hasSent: Bool
    let mute: StageRoom.Mute
}
