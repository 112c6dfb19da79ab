import Foundation

/// Why a response is not a playlist that can be played here.
enum PlaylistFailure: Error, Equatable, CustomStringConvertible {
    /// It does not begin with `#EXTM3U`.
    case noPlaylist
    /// A tag, which is named, has an invalid value.
    case malformed(String)
    /// A feature of HLS, which is named, is not supported here.
    case unsupported(String)
    /// It has too many segments, parts or variants.
    case tooLong

    var description: String {
        switch self {
        case .noPlaylist: "the answer is not a playlist: it does not begin with #EXTM3U"
        case .malformed(let tag): "the playlist has an invalid \(tag)"
        case .unsupported(let what): "the playlist has \(what), which this tool does not support"
        case .tooLong: "the playlist has more than \(PlaylistText.segmentLimit) segments or parts"
        }
    }
}

/// Parses the values of tags.
/// - Source: RFC 8216bis §4.2 (attribute lists), §4.1 (lines).
enum PlaylistText {
    /// The most segments and parts together in a playlist.
    static let segmentLimit = 10_000
    /// The longest duration that is accepted, in seconds: a day.
    private static let longest = 86_400.0

    /// The attributes of a tag, without the quotes around strings; the last one counts if a name is repeated.
    static func attributes(_ text: Substring) -> [Substring: Substring] {
        var attributes: [Substring: Substring] = [:]
        var rest = text
        while let equals = rest.firstIndex(of: "=") {
            let name = rest[..<equals].drop { $0 == " " }
            rest = rest[rest.index(after: equals)...]
            let value: Substring
            // A quoted string may contain commas.
            if rest.first == "\"" {
                rest = rest.dropFirst()
                value = rest.prefix { $0 != "\"" }
                rest = rest[value.endIndex...].drop { $0 != "," }
            } else {
                value = rest.prefix { $0 != "," }
                rest = rest[value.endIndex...]
            }
            rest = rest.dropFirst()
            attributes[name] = value
        }
        return attributes
    }

    /// Parses a decimal number of seconds into nanoseconds; nil if it is invalid, negative or too large.
    static func nanoseconds(_ text: Substring?) -> Int64? {
        guard let text, let seconds = Double(text), seconds >= 0, seconds <= longest else { return nil }
        // Not cut off: the product of 1.001 is a little too small.
        return Int64((seconds * 1e9).rounded())
    }

    /// Parses a number of at most twelve digits, so that no arithmetic here can overflow.
    static func number(_ text: Substring?) -> Int? {
        guard let text, (1...12).contains(text.utf8.count), text.utf8.allSatisfy({ (48...57).contains($0) })
        else { return nil }
        return Int(text)
    }

    /// Parses a date like `2026-11-21T03:40:07.375Z` into milliseconds since 1970; nil for any other form.
    /// - Source: RFC 3339 §5.6; the calendar is Howard Hinnant's `days_from_civil`.
    static func milliseconds(date text: Substring) -> Int64? {
        guard text.last == "Z" else { return nil }
        let parts = text.dropLast().split(separator: "T", omittingEmptySubsequences: false)
        guard parts.count == 2 else { return nil }
        let date = parts[0].split(separator: "-", omittingEmptySubsequences: false).map {
            Int64(number($0) ?? -1)
        }
        let clock = parts[1].split(separator: ":", omittingEmptySubsequences: false)
        guard date.count == 3, clock.count == 3, (0...9_999).contains(date[0]), (1...12).contains(date[1]),
            (1...31).contains(date[2]), let hours = number(clock[0]), let minutes = number(clock[1]),
            let seconds = nanoseconds(clock[2]), hours < 24, minutes < 60, seconds < 61_000_000_000
        else { return nil }
        // Years start in March here, so that a leap day is the last day of its year.
        let year = date[1] <= 2 ? date[0] - 1 : date[0]
        let era = (year >= 0 ? year : year - 399) / 400
        let yearOfEra = year - era * 400
        let dayOfYear = (153 * (date[1] > 2 ? date[1] - 3 : date[1] + 9) + 2) / 5 + date[2] - 1
        let days = era * 146_097 + yearOfEra * 365 + yearOfEra / 4 - yearOfEra / 100 + dayOfYear - 719_468
        // Rounded to the nearest millisecond: fractions of seconds are not exact in floating point.
        return days * 86_400_000 + Int64(hours * 60 + minutes) * 60_000 + (seconds + 500_000) / 1_000_000
    }

    /// Resolves a URL of a playlist; nil unless it is HTTP or HTTPS.
    static func url(_ text: Substring, relativeTo base: URL) -> String? {
        guard !text.isEmpty, let url = URL(string: String(text), relativeTo: base)?.absoluteURL,
            url.scheme == "http" || url.scheme == "https"
        else { return nil }
        return url.absoluteString
    }

    /// The lines without their line ends; empty lines are left out.
    static func lines(_ bytes: [UInt8]) throws(PlaylistFailure) -> [Substring] {
        let text = String(decoding: bytes, as: UTF8.self)
        // Swift treats a carriage return with a line feed as one character.
        let lines = text.split { $0 == "\n" || $0 == "\r\n" }
        guard lines.first == "#EXTM3U" else { throw .noPlaylist }
        return lines
    }
}

/// A stream that a multivariant playlist offers.
struct PlaylistVariant: Equatable, Sendable {
    var url: String
    /// In bits a second.
    var bandwidth: Int
}

/// A playlist of either kind.
enum PlaylistDocument: Equatable, Sendable {
    case multivariant([PlaylistVariant])
    case media(MediaPlaylist)

    /// - Parameter base: the URL that it was loaded from, for relative URLs in it.
    init(parsing bytes: [UInt8], at base: URL) throws(PlaylistFailure) {
        let lines = try PlaylistText.lines(bytes)
        // Only multivariant playlists have this tag.
        let tag = "#EXT-X-STREAM-INF:"
        guard lines.contains(where: { $0.hasPrefix(tag) }) else {
            self = .media(try MediaPlaylist(lines: lines, at: base))
            return
        }
        var variants: [PlaylistVariant] = []
        var bandwidth: Int?
        for line in lines {
            if line.hasPrefix(tag) {
                let attributes = PlaylistText.attributes(line.dropFirst(tag.count))
                guard let bits = PlaylistText.number(attributes["BANDWIDTH"]) else {
                    throw .malformed("EXT-X-STREAM-INF")
                }
                bandwidth = bits
            } else if let bits = bandwidth, !line.hasPrefix("#") {
                // The line after the tag is the variant's URL.
                guard let url = PlaylistText.url(line, relativeTo: base) else {
                    throw .malformed("EXT-X-STREAM-INF")
                }
                guard variants.count < PlaylistText.segmentLimit else { throw .tooLong }
                variants.append(PlaylistVariant(url: url, bandwidth: bits))
                bandwidth = nil
            }
        }
        guard !variants.isEmpty else { throw .malformed("EXT-X-STREAM-INF") }
        self = .multivariant(variants)
    }
}
