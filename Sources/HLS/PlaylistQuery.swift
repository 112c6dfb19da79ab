/// The query of a request for a media playlist.
/// - Source: RFC 8216bis §6.2.5.2 (blocking), §6.2.5.1 (delta updates).
package struct PlaylistQuery: Equatable, Sendable {
    /// The first segment or part that the player does not have.
    package struct Position: Equatable, Sendable {
        package var sequenceNumber: Int
        /// Index in the segment; nil for the whole segment.
        package var part: Int?

        package init(sequenceNumber: Int, part: Int?) {
            self.sequenceNumber = sequenceNumber
            self.part = part
        }
    }

    /// The requested rendition, as requests spell it.
    package enum Rendition: String, Sendable {
        case source, original, low, sound
    }

    /// Why a query is refused.
    package enum Failure: Error, Equatable, Sendable {
        /// A value is not a number, or is too large.
        case malformed
        /// `_HLS_part` without `_HLS_msn`.
        case partAlone
        case unknownRendition
    }

    package var rendition = Rendition.source

    /// What the playlist must contain before the request is answered; nil to answer immediately.
    package var position: Position?
    /// Whether older segments may be omitted.
    package var skips: Bool

    /// - Parameters: the values of `_HLS_msn`, `_HLS_part`, `_HLS_skip` and `rendition`; nil for those that are absent.
    package init(
        sequenceNumber: String?, part: String?, skip: String?, rendition: String? = nil
    ) throws(Failure) {
        if let rendition {
            guard let known = Rendition(rawValue: rendition) else { throw .unknownRendition }
            self.rendition = known
        }
        // `v2` also omits date ranges, and our playlists contain none.
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

    /// A number of up to twelve digits, with which no calculation here overflows.
    static func number(_ text: some StringProtocol) -> Int? {
        guard (1...12).contains(text.utf8.count),
            text.utf8.allSatisfy({ (UInt8(ascii: "0")...UInt8(ascii: "9")).contains($0) })
        else { return nil }
        return Int(text)
    }
}
