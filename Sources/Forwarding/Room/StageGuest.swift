import Base
import Peer

/// The host of one stream as a guest on the stage of another: what they send, and their present state.
package struct StageGuest: Equatable, Sendable {
    /// The guest's session on their own stream's stage.
    package let session: SessionID
    /// The guest's identity on the stage that admits them; no one else there may have it.
    package let participant: ParticipantID
    let worker: Int
    let sources: [SourcePlan]
    /// The guest's tracks, keyed by the MIDs of their m-lines.
    let tracks: [String: PublishedTrack]
    /// MIDs of the m-lines on which media arrives.
    let active: Set<String>
    let hasSent: Bool
    let mute: StageRoom.Mute
}
