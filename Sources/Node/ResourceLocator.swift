import Base
import Recordings

/// Returns the URLs under which clients find what a node makes.
///
/// The node does not know any URL: paths belong to the HTTP server in front of it.
package protocol ResourceLocator: Sendable {
    /// The URL of a stream's preview that was taken at `time`; each picture needs a new URL, so that caches do not
    /// return the old one.
    func preview(of stream: StreamID, takenAt time: WallTime) -> String
    /// The URL of a recording's file; nil before the file exists.
    func recording(_ entry: RecordingEntry) -> String?
    /// The URL of a recording's playlist; nil for a recording that HLS cannot play, or not yet.
    func playlist(of entry: RecordingEntry) -> String?
}
