/// URIs of a stream's media playlists, relative to the multivariant playlist.
///
/// The gateway supplies them: the node knows no URLs.
package struct HLSNames: Sendable {
    /// The media playlist of the source; other renditions have the same URI with a query.
    package let media: String
    /// The media playlist of the source that also lists the segments on disk, for viewers who go back.
    package let window: String

    package init(media: String, window: String) {
        self.media = media
        self.window = window
    }
}

/// The content of a part, segment or initialization segment, or where it is on disk.
package enum HLSFile: Equatable, Sendable {
    /// The whole file, from memory.
    case bytes([UInt8])
    /// A segment on disk. The shelf may delete it before the caller opens it.
    case stored(path: String)
}
