import Base
import Node
import Recordings

/// Builds the API paths that occur in responses, messages and webhooks; no other type does.
///
/// `RouteTable.swift` contains the route of each; `PageLink` builds the paths of pages.
package struct ResourcePaths: ResourceLocator {
    /// Signs and verifies preview addresses where streams are not public.
    let previews: PreviewAddress

    package init(previews: PreviewAddress) {
        self.previews = previews
    }

    /// The preview's path; it changes with each picture, so that caches may keep it.
    package func preview(of stream: StreamID, takenAt time: WallTime) -> String {
        previews.url(of: stream, takenAt: time)
    }

    /// The file's path; nil while there is no file.
    package func recording(_ entry: RecordingEntry) -> String? {
        entry.fileName.map { Self.recording($0, of: entry.stream) }
    }

    /// The HLS playlist's path; nil for a recording that HLS cannot play, or not yet.
    package func playlist(of entry: RecordingEntry) -> String? {
        guard entry.state == .ended, entry.fileExtension == "mp4" else { return nil }
        return "/hls/\(entry.stream)/recordings/\(entry.id).m3u8"
    }

    /// A stream's own path.
    static func stream(_ stream: some CustomStringConvertible) -> String { "/v1/streams/\(stream)" }

    /// - Parameter name: a file's name, or a recording's id for its description.
    static func recording(_ name: String, of stream: some CustomStringConvertible) -> String {
        "\(Self.stream(stream))/recordings/\(name)"
    }

    /// A restream target's path.
    static func restream(_ number: Int, of stream: StreamID) -> String {
        "\(Self.stream(stream))/restreams/\(number)"
    }

    /// A preview's path without the extension for the format.
    static func preview(of stream: StreamID) -> String { "\(Self.stream(stream))/preview" }

    /// The endpoint that creates sessions; a session's own path is this and its id.
    static func sessions(_ purpose: SessionRequest.Purpose, of stream: StreamID) -> String {
        switch purpose {
        case .publish: "/whip/\(stream)"
        case .play: "/whep/\(stream)"
        case .stage: "\(Self.stream(stream))/sessions"
        case .feed: "/v1/feed/sessions"
        }
    }
}
