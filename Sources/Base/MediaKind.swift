/// What a track carries, and what a participant can mute.
///
/// The raw values are part of the HTTP API and of the stored events of stages.
package enum MediaKind: String, Sendable, Hashable, Codable, CaseIterable {
    case audio, video
}
