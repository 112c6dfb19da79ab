import Base

/// Whether a stream can be watched.
package enum StreamState: String, Sendable {
    /// Somebody waits for it; nobody publishes yet.
    case waiting
    case live
    /// The publisher is gone; a new one makes it live again.
    case ended
}

/// What everybody may know of a stream at one moment.
package struct StreamSnapshot: Equatable, Sendable {
    package let id: StreamID
    package var state: StreamState
    /// Grows with every change.
    package var version: UInt64
    /// The publisher's identity and what it wants to be called.
    package var host: ParticipantID?
    package var hostName: String?
    /// Seconds since 1970 at which the stream went live the last time.
    package var startedAt: Double?
    package var endedAt: Double?
    /// Connected viewers, anonymous ones included.
    package var viewers: Int
    package var hasAudio: Bool
    package var hasVideo: Bool
}
