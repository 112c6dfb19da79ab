import Foundation

/// A parsed HLS media playlist, with absolute URLs; durations are in nanoseconds.
/// - Source: RFC 8216bis §4.4 (tags), §6.2.5.1 (delta updates).
struct MediaPlaylist: Equatable, Sendable {
    /// A partial segment.
    struct Part: Equatable, Sendable {
        var url: String
        var duration: Int64
        /// Whether a decoder can start with it.
        var isIndependent: Bool
    }

    struct Segment: Equatable, Sendable {
        /// Its media sequence number.
        let number: Int
        /// Nil while the segment is incomplete; then it can be loaded by parts alone.
        var url: String?
        var duration: Int64 = 0
        /// Empty if the segment can be loaded only as a whole.
        var parts: [Part] = []
        /// URL of the initialization segment; nil if the playlist names none.
        ///
        /// After a delta update, nil means the one of the previous segment.
        var initialization: String?
        /// When its first picture was captured, in milliseconds since 1970; nil without a date.
        var date: Int64?
    }

    /// `EXT-X-TARGETDURATION`: about the longest segment, by which players pace their reloads.
    var targetDuration: Int64 = 0
    /// The longest duration of a part; nil if there are no parts.
    var partTarget: Int64?
    /// How far from the end players start, by segments and by parts; nil to use the standard's values.
    var holdBack: Int64?
    var partHoldBack: Int64?
    /// Whether the server supports blocking reloads.
    var canBlock = false
    /// Whether the server supports delta updates.
    var canSkip = false
    /// Whether the playlist is final.
    var hasEnded = false
    /// With consecutive numbers; the last one may be incomplete.
    var segments: [Segment] = []
    /// URL of the next part, which may be requested before it exists; nil without a hint.
    var hint: String?
    /// Number of the next segment if the list is empty.
    var firstNumber = 0
    /// Segments that a delta update leaves out, because the client knows them.
    var skipped = 0

    init() {}

    /// Parses the lines of a media playlist, of which the first is `#EXTM3U`.
    init(lines: [Substring], at base: URL) throws(PlaylistFailure) {
        var reader = Reader(base: base)
        for line in lines.dropFirst() {
            if line.first == "#" {
                try reader.readTag(line)
            } else {
                try reader.endSegment(at: line)
            }
        }
        self = try reader.finish()
    }

    /// The state while a playlist is read line by line.
    private struct Reader {
        let base: URL
        private var playlist = MediaPlaylist()
        /// The segment that is being read; nil between two segments.
        private var next: Segment?
        /// Of `EXTINF`, for the URL that follows.
        private var duration: Int64?
        /// Applies to all segments from its tag on.
        private var initialization: String?
        /// Of the segment that is being read.
        private var number = 0
        /// Segments and parts so far, which are limited.
        private var count = 0

        init(base: URL) { self.base = base }

        /// Applies a tag; unknown tags are ignored, as HLS demands.
        mutating func readTag(_ line: Substring) throws(PlaylistFailure) {
            let name = line.prefix { $0 != ":" }
            let value = line.dropFirst(name.count + 1)
            switch name {
            case "#EXT-X-TARGETDURATION":
                playlist.targetDuration = try Self.wanted(PlaylistText.nanoseconds(value), name)
            case "#EXT-X-MEDIA-SEQUENCE":
                number = try Self.wanted(PlaylistText.number(value), name)
                playlist.firstNumber = number
            case "#EXT-X-PART-INF":
                let target = PlaylistText.nanoseconds(PlaylistText.attributes(value)["PART-TARGET"])
                playlist.partTarget = try Self.wanted(target, name)
            case "#EXT-X-SERVER-CONTROL": readControl(PlaylistText.attributes(value))
            case "#EXT-X-SKIP":
                let skipped = PlaylistText.number(PlaylistText.attributes(value)["SKIPPED-SEGMENTS"])
                playlist.skipped = try Self.wanted(skipped, name)
                number += playlist.skipped
                playlist.firstNumber = number
            case "#EXT-X-MAP": initialization = try resource(PlaylistText.attributes(value), name)
            case "#EXT-X-PROGRAM-DATE-TIME":
                let date = PlaylistText.milliseconds(date: value)
                change { $0.date = date }
            case "#EXT-X-PART": try readPart(PlaylistText.attributes(value), name)
            case "#EXTINF":
                duration = try Self.wanted(PlaylistText.nanoseconds(value.prefix { $0 != "," }), name)
            case "#EXT-X-PRELOAD-HINT":
                let attributes = PlaylistText.attributes(value)
                guard attributes["TYPE"] == "PART" else { return }
                playlist.hint = try resource(attributes, name)
            // A server that packs segments into one file would be loaded wrongly, so this is not ignored.
            case "#EXT-X-BYTERANGE": throw .unsupported("byte ranges")
            case "#EXT-X-ENDLIST": playlist.hasEnded = true
            default: break
            }
        }

        private mutating func readControl(_ attributes: [Substring: Substring]) {
            playlist.canBlock = attributes["CAN-BLOCK-RELOAD"] == "YES"
            playlist.canSkip = PlaylistText.nanoseconds(attributes["CAN-SKIP-UNTIL"]) != nil
            playlist.holdBack = PlaylistText.nanoseconds(attributes["HOLD-BACK"])
            playlist.partHoldBack = PlaylistText.nanoseconds(attributes["PART-HOLD-BACK"])
        }

        /// Adds a part to the segment that is being read.
        private mutating func readPart(
            _ attributes: [Substring: Substring], _ name: Substring
        ) throws(PlaylistFailure) {
            let part = Part(
                url: try resource(attributes, name),
                duration: try Self.wanted(PlaylistText.nanoseconds(attributes["DURATION"]), name),
                isIndependent: attributes["INDEPENDENT"] == "YES")
            try take()
            change { $0.parts.append(part) }
        }

        /// The absolute URL in a tag.
        /// - Throws: `unsupported` for a byte range, `malformed` without a valid URL.
        private func resource(
            _ attributes: [Substring: Substring], _ name: Substring
        ) throws(PlaylistFailure) -> String {
            let ranges = ["BYTERANGE", "BYTERANGE-START", "BYTERANGE-LENGTH"]
            guard ranges.allSatisfy({ attributes[$0[...]] == nil }) else { throw .unsupported("byte ranges") }
            return try Self.wanted(
                attributes["URI"].flatMap { PlaylistText.url($0, relativeTo: base) }, name)
        }

        /// Returns the value, or throws `malformed` with the tag's name.
        private static func wanted<Value>(
            _ value: Value?, _ name: Substring
        ) throws(PlaylistFailure) -> Value {
            guard let value else { throw .malformed(String(name.dropFirst())) }
            return value
        }

        /// Counts a segment or a part against the limit.
        private mutating func take() throws(PlaylistFailure) {
            count += 1
            guard count <= PlaylistText.segmentLimit else { throw .tooLong }
        }

        /// Changes the segment that is being read, and begins one if there is none.
        private mutating func change(_ body: (inout Segment) -> Void) {
            var segment = next ?? Segment(number: number)
            body(&segment)
            next = segment
        }

        /// Ends a segment with the URL that follows its tags.
        mutating func endSegment(at line: Substring) throws(PlaylistFailure) {
            guard let length = duration, let url = PlaylistText.url(line, relativeTo: base) else {
                throw .malformed("EXTINF")
            }
            try take()
            change { segment in
                segment.url = url
                segment.duration = length
            }
            append()
            duration = nil
        }

        /// Adds the segment that was read to the playlist.
        private mutating func append() {
            guard var segment = next else { return }
            segment.initialization = initialization
            playlist.segments.append(segment)
            number += 1
            next = nil
        }

        /// Checks what a playlist must have.
        mutating func finish() throws(PlaylistFailure) -> MediaPlaylist {
            // A segment with parts but without a URL is incomplete.
            if next?.parts.isEmpty == false { append() }
            guard playlist.targetDuration > 0 else { throw .malformed("EXT-X-TARGETDURATION") }
            return playlist
        }
    }
}
