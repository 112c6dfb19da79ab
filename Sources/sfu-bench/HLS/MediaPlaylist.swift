import Foundation

/// What a media playlist of HLS tells a player, with absolute addresses; durations are in nanoseconds.
/// - Source: RFC 8216bis §4.4 (tags), §6.2.5.1 (delta updates).
struct MediaPlaylist: Equatable, Sendable {
    struct Part: Equatable, Sendable {
        var url: String
        var duration: Int64
        /// Whether a decoder can begin with it.
        var isIndependent: Bool
    }

    struct Segment: Equatable, Sendable {
        /// Its media sequence number.
        let number: Int
        /// Nil while it is under way.
        var url: String?
        var duration: Int64 = 0
        /// Empty where it is only to be had as a whole.
        var parts: [Part] = []
        /// Nil where the playlist does not say, which after a delta update means the one before.
        var initialization: String?
        /// When its first picture was made, in milliseconds since 1970.
        var date: Int64?
    }

    var targetDuration: Int64 = 0
    /// No part is longer; nil without parts.
    var partTarget: Int64?
    /// How far from the end players stay.
    var holdBack: Int64?
    var partHoldBack: Int64?
    var canBlock = false
    var canSkip = false
    var hasEnded = false
    /// Numbers follow one another; the last one may be under way.
    var segments: [Segment] = []
    /// What comes next, and may be asked for already.
    var hint: String?
    /// The number of the next segment where there is none.
    var firstNumber = 0
    /// Segments that were left out because whoever asked knows them.
    var skipped = 0

    init() {}

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

    /// Goes through the lines of one playlist.
    private struct Reader {
        let base: URL
        private var playlist = MediaPlaylist()
        private var next: Segment?
        private var duration: Int64?
        private var initialization: String?
        private var number = 0
        private var count = 0

        init(base: URL) { self.base = base }

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

        /// The address in a tag.
        private func resource(
            _ attributes: [Substring: Substring], _ name: Substring
        ) throws(PlaylistFailure) -> String {
            let ranges = ["BYTERANGE", "BYTERANGE-START", "BYTERANGE-LENGTH"]
            guard ranges.allSatisfy({ attributes[$0[...]] == nil }) else { throw .unsupported("byte ranges") }
            return try Self.wanted(
                attributes["URI"].flatMap { PlaylistText.url($0, relativeTo: base) }, name)
        }

        private static func wanted<Value>(
            _ value: Value?, _ name: Substring
        ) throws(PlaylistFailure) -> Value {
            guard let value else { throw .malformed(String(name.dropFirst())) }
            return value
        }

        private mutating func take() throws(PlaylistFailure) {
            count += 1
            guard count <= PlaylistText.segmentLimit else { throw .tooLong }
        }

        /// Changes the segment that is being read.
        private mutating func change(_ body: (inout Segment) -> Void) {
            var segment = next ?? Segment(number: number)
            body(&segment)
            next = segment
        }

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

        private mutating func append() {
            guard var segment = next else { return }
            segment.initialization = initialization
            playlist.segments.append(segment)
            number += 1
            next = nil
        }

        mutating func finish() throws(PlaylistFailure) -> MediaPlaylist {
            // What has parts, and no address yet, is under way.
            if next?.parts.isEmpty == false { append() }
            guard playlist.targetDuration > 0 else { throw .malformed("EXT-X-TARGETDURATION") }
            return playlist
        }
    }
}
