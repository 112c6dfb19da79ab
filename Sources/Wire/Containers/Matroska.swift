/// IDs of the elements of a Matroska or WebM document that this server reads.
/// - Source: RFC 9559 §5.1 (Segment); RFC 8794 §11.2.1 (EBML), §11.3.2 (Void).
package enum MatroskaID {
    package static let ebml: UInt32 = 0x1A45_DFA3
    package static let void: UInt32 = 0xEC
    package static let segment: UInt32 = 0x1853_8067
    package static let info: UInt32 = 0x1549_A966
    /// Nanoseconds in one Segment Tick.
    package static let timestampScale: UInt32 = 0x2AD7B1
    /// In Segment Ticks, as a floating-point number.
    package static let duration: UInt32 = 0x4489
    package static let tracks: UInt32 = 0x1654_AE6B
    package static let trackEntry: UInt32 = 0xAE
    package static let trackNumber: UInt32 = 0xD7
    package static let codecID: UInt32 = 0x86
    /// Nanoseconds per frame.
    package static let defaultDuration: UInt32 = 0x23E383
    package static let contentEncodings: UInt32 = 0x6D80
    package static let cluster: UInt32 = 0x1F43_B675
    /// The cluster's timestamp, in Segment Ticks.
    package static let timestamp: UInt32 = 0xE7
    package static let simpleBlock: UInt32 = 0xA3
    package static let blockGroup: UInt32 = 0xA0
    package static let block: UInt32 = 0xA1
}

/// The header of a Block or SimpleBlock, before its frames.
/// - Source: RFC 9559 §10.1, §10.2.
package struct MatroskaBlock: Equatable, Sendable {
    /// As in the track's TrackEntry.
    package let trackNumber: UInt64
    /// Relative to the cluster's timestamp, in ticks of the track.
    package let timestamp: Int16
    /// Whether the block may contain several frames.
    package let isLaced: Bool
    /// Octets before the frames.
    package let headerLength: Int

    /// Parses the header.
    /// - Parameter bytes: begin with the block's data; need not include the frames.
    /// - Throws: `WireError.truncated` if the header exceeds `bytes`; `.invalid` if the track number is malformed.
    package init(parsing bytes: Span<UInt8>) throws(WireError) {
        let track = try EBMLVariableInteger(parsing: bytes)
        trackNumber = track.value
        timestamp = Int16(bitPattern: try bytes.uint16(at: track.width))
        isLaced = try bytes.uint8(at: track.width + 2) & 0x06 != 0
        headerLength = track.width + 3
    }

    /// Octets of the longest header: eight for the track number, three for the rest.
    package static let longestHeader = 11
}
