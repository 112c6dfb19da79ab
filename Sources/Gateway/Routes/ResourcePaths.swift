import Base
import Node
import Recordings

/// The paths of what answers, messages and webhooks speak of: no other type makes paths of the API.
///
/// `RouteTable.swift` says what answers at each; the paths of pages are `PageLink`'s.
package struct ResourcePaths: ResourceLocator {
    /// Signs those of previews where streams are not public, and checks them.
    let previews: PreviewAddress

    package init(previews: PreviewAddress) {
        self.previews = previews
    }

    /// Changes with each picture, so that caches may keep it.
    package func preview(of stream: StreamID, takenAt time: WallTime) -> String {
        previews.url(of: stream, takenAt: time)
    }

    /// Nil while there is no file.
    package func recording(_ entry: RecordingEntry) -> String? {
        entry.fileName.map { Self.recording($0, of: entry.stream) }
    }

    /// Nil for one that HLS cannot play, or not yet.
    package func playlist(of entry: RecordingEntry) -> String? {
        guard entry.state == .ended, entry.fileExtension == "mp4" else { return nil }
        return "/hls/\(entry.stream)/recordings/\(entry.id).m3u8"
    }

    static func stream(_ stream: some CustomStringConvertible) -> String { "/v1/streams/\(stream)" }

    /// - Parameter name: a file's name, or its recording's id for what is known of it.
    static func recording(_ name: String, of stream: some CustomStringConvertible) -> String {
        "\(Self.stream(stream))/recordings/\(name)"
    }

    static func restream(_ number: Int, of stream: StreamID) -> String {
        "\(Self.stream(stream))/restreams/\(number)"
    }

    /// Without the ending that names the format.
    static func preview(of stream: StreamID) -> String { "\(Self.stream(stream))/preview" }

    /// Where sessions are made; their own paths begin with that.
    static func sessions(_ purpose: SessionRequest.Purpose, of stream: StreamID) -> String {
        switch purpose {
        case .publish: "/whip/\(stream)"
        case .play: "/whep/\(stream)"
        case .stage: "\(Self.stream(stream))/sessions"
        case .feed: "/v1/feed/sessions"
        }
    }
}
