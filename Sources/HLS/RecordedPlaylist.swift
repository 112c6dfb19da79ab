import Base

/// The media playlist of a recording: its segments are byte ranges of files, and it never changes.
///
/// No I/O and no clock.
/// - Source: RFC 8216bis (draft-pantos-hls-rfc8216bis-16) §4.4.3.5 (`EXT-X-PLAYLIST-TYPE`), §4.4.4.2
///   (`EXT-X-BYTERANGE`), §4.4.4.5 (`EXT-X-MAP`).
package struct RecordedPlaylist: Equatable, Sendable {
    /// A range of a part's file.
    package struct Segment: Equatable, Sendable {
        /// Position in the file.
        package var bytes: Range<Int64>
        package var milliseconds: Int64

        package init(bytes: Range<Int64>, milliseconds: Int64) {
            self.bytes = bytes
            self.milliseconds = milliseconds
        }
    }

    /// The segments of one file.
    package struct Part: Equatable, Sendable {
        /// The file's address, relative to the playlist.
        package var uri: String
        /// Position of what a decoder needs before any segment.
        package var initialization: Range<Int64>
        package var segments: [Segment]
        /// When viewers saw the beginning.
        package var date: WallTime

        package init(uri: String, initialization: Range<Int64>, segments: [Segment], date: WallTime) {
            self.uri = uri
            self.initialization = initialization
            self.segments = segments
            self.date = date
        }
    }

    /// In order; each begins with a discontinuity, because it has its own time line and perhaps another codec.
    package var parts: [Part]
    /// Whether a decoder can start with each segment.
    package var isIndependent: Bool

    package init(_ parts: [Part], isIndependent: Bool) {
        self.parts = parts
        self.isIndependent = isIndependent
    }

    /// The playlist, with a line feed after each line.
    package var text: String {
        let longest = parts.flatMap(\.segments).map(\.milliseconds).max() ?? 0
        var lines = [
            "#EXTM3U", "#EXT-X-VERSION:9", "#EXT-X-TARGETDURATION:\(max((longest + 999) / 1_000, 1))",
            "#EXT-X-PLAYLIST-TYPE:VOD", "#EXT-X-MEDIA-SEQUENCE:0",
        ]
        if isIndependent { lines.append("#EXT-X-INDEPENDENT-SEGMENTS") }
        for (index, part) in parts.enumerated() {
            if index > 0 { lines.append("#EXT-X-DISCONTINUITY") }
            let map = Self.range(part.initialization)
            lines += [
                "#EXT-X-MAP:URI=\"\(part.uri)\",BYTERANGE=\"\(map)\"",
                "#EXT-X-PROGRAM-DATE-TIME:\(part.date.text)",
            ]
            for segment in part.segments {
                lines += [
                    "#EXTINF:\(LivePlaylist.seconds(Int(segment.milliseconds))),",
                    "#EXT-X-BYTERANGE:\(Self.range(segment.bytes))", part.uri,
                ]
            }
        }
        lines.append("#EXT-X-ENDLIST")
        return lines.joined(separator: "\n") + "\n"
    }

    /// The syntax of byte ranges: length, then offset.
    private static func range(_ bytes: Range<Int64>) -> String { "\(bytes.count)@\(bytes.lowerBound)" }
}
