import Base
import Recordings

/// Says where clients find what a node tells them of: the paths belong to whoever serves them, not to the node.
package protocol ResourceLocator: Sendable {
    /// The picture of a stream that was taken at that time; each picture has another URL than the one before.
    func preview(of stream: StreamID, takenAt time: WallTime) -> String
    /// A recording's file; nil before there is one.
    func recording(_ entry: RecordingEntry) -> String?
    /// A recording's playlist; nil for one that HLS cannot play, or not yet.
    func playlist(of entry: RecordingEntry) -> String?
}
