/// What a stream's media playlists are called, relative to the one that names them.
package struct HLSNames: Sendable {
    /// The source's; the other renditions' have a query.
    package let media: String
    /// The one that begins with what is on the disk.
    package let window: String

    package init(media: String, window: String) {
        self.media = media
        self.window = window
    }
}

/// A part, segment or initialization segment.
package enum HLSFile: Equatable, Sendable {
    case bytes([UInt8])
    /// A file of the disk, which may go at any time.
    case stored(path: String)
}
