/// What a player wants of a media playlist.
/// - Source: RFC 8216bis §6.2.5.2 (blocking), §6.2.5.1 (delta updates).
package struct PlaylistQuery: Equatable, Sendable {
    /// The first thing that the player does not have.
    package struct Position: Equatable, Sendable {
        package var sequenceNumber: Int
        /// Nil for the whole segment.
        package var part: Int?

        package init(sequenceNumber: Int, part: Int?) {
            self.sequenceNumber = sequenceNumber
            self.part = part
        }
    }

    /// Whose media playlist it is, by the name that requests give it.
    package enum Rendition: String, Sendable {
        case source, original, low, sound
    }

    /// What makes no sense.
    package enum Failure: Error, Equatable, Sendable {
        /// A number that is none, or too large.
        case malformed
        /// `_HLS_part` without `_HLS_msn`.
        case partAlone
        case unknownRendition
    }

    package var rendition = Rendition.source

    /// What has to be there before there is an answer; nil for the playlist as it is.
    package var position: Position?
    /// Whether older segments are to be skipped.
    package var skips: Bool

    /// - Parameters: the values of `_HLS_msn`, `_HLS_part`, `_HLS_skip` and `rendition`, where the request has them.
    package init(
        sequenceNumber: String?, part: String?, skip: String?, rendition: String? = nil
    ) throws(Failure) {
        if let rendition {
            guard let known = Rendition(rawValue: rendition) else { throw .unknownRendition }
            self.rendition = known
        }
        // Date ranges are skipped by `v2` too: there are none.
        skips = skip == "YES" || skip == "v2"
        guard let sequenceNumber else {
            guard part == nil else { throw .partAlone }
            return
        }
        guard let number = Self.number(sequenceNumber) else { throw .malformed }
        var index: Int?
        if let part {
            guard let value = Self.number(part) else { throw .malformed }
            index = value
        }
        position = Position(sequenceNumber: number, part: index)
    }

    /// Up to twelve digits, which no arithmetic here overflows.
    static func number(_ text: some StringProtocol) -> Int? {
        guard (1...12).contains(text.utf8.count),
            text.utf8.allSatisfy({ (UInt8(ascii: "0")...UInt8(ascii: "9")).contains($0) })
        else { return nil }
        return Int(text)
    }
}
