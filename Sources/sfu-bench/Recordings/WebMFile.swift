import Wire

/// The frames of a WebM file's first VP8 track and first Opus track.
///
/// One loop over the elements, which enters those that hold others, so that it needs no sizes of segments and
/// clusters; live recordings have none.
/// - Source: RFC 8794 §4 to §6 (EBML), RFC 9559 §5, §10 (Matroska); the WebM container guidelines.
struct WebMFile {
    enum Problem: Error, Equatable, CustomStringConvertible {
        case notWebM, truncated, laced, encoded, tooLarge

        var description: String {
            switch self {
            case .notWebM: "is no WebM file"
            case .truncated: "ends in the middle of an element"
            case .laced: "uses lacing, which is not supported"
            case .encoded: "has compressed or encrypted tracks"
            case .tooLarge: "is larger than 512 MB"
            }
        }
    }

    /// One frame, as it lay in its block.
    struct Block {
        let bytes: [UInt8]
        /// In nanoseconds.
        let time: Int64
    }

    private struct Track {
        var number: UInt64 = 0
        var codec = ""
        /// Of a frame, in nanoseconds; nil if the file does not say.
        var duration: Int64?
    }

    private enum ID {
        static let header: UInt64 = 0x1A45_DFA3
        static let segment: UInt64 = 0x1853_8067
        static let info: UInt64 = 0x1549_A966
        static let timestampScale: UInt64 = 0x2AD7B1
        static let tracks: UInt64 = 0x1654_AE6B
        static let trackEntry: UInt64 = 0xAE
        static let trackNumber: UInt64 = 0xD7
        static let codec: UInt64 = 0x86
        static let defaultDuration: UInt64 = 0x23E383
        static let contentEncodings: UInt64 = 0x6D80
        static let cluster: UInt64 = 0x1F43_B675
        static let clusterTime: UInt64 = 0xE7
        static let simpleBlock: UInt64 = 0xA3
        static let blockGroup: UInt64 = 0xA0
        static let block: UInt64 = 0xA1
        /// Those that are entered, not passed over.
        static let masters: Set<UInt64> = [segment, info, tracks, trackEntry, cluster, blockGroup]
    }

    static let maximumSize = 512 << 20
    private(set) var video: [Block] = []
    private(set) var audio: [Block] = []
    private(set) var hasVP8 = false
    private(set) var hasOpus = false
    /// Between frames of video, in nanoseconds, if the file says.
    private(set) var frameInterval: Int64?
    private let file: [UInt8]
    private var tracks: [Track] = []
    /// Nanoseconds in one tick.
    private var scale: UInt64 = 1_000_000
    private var clusterTime: UInt64 = 0

    static func isWebM(_ file: [UInt8]) -> Bool { file.starts(with: [0x1A, 0x45, 0xDF, 0xA3]) }

    init(parsing file: [UInt8]) throws(Problem) {
        guard Self.isWebM(file) else { throw .notWebM }
        guard file.count <= Self.maximumSize else { throw .tooLarge }
        self.file = file
        var offset = 0
        while offset < file.count {
            let (id, idLength) = try number(at: offset, keepsMarker: true)
            let (size, sizeLength) = try number(at: offset + idLength, keepsMarker: false)
            let start = offset + idLength + sizeLength
            if ID.masters.contains(id) {
                if id == ID.trackEntry { tracks.append(Track()) }
                offset = start
                continue
            }
            guard let length = Int(exactly: size), length <= file.count - start else { throw .truncated }
            try take(id, start..<(start + length))
            offset = start + length
        }
        hasVP8 = tracks.contains { $0.codec == "V_VP8" }
        hasOpus = tracks.contains { $0.codec == "A_OPUS" }
        frameInterval = tracks.first { $0.codec == "V_VP8" }?.duration
    }

    private mutating func take(_ id: UInt64, _ range: Range<Int>) throws(Problem) {
        let value = integer(range)
        let bytes = file[range]
        switch id {
        case ID.timestampScale: scale = max(value, 1)
        case ID.trackNumber: changeTrack { $0.number = value }
        case ID.codec: changeTrack { $0.codec = String(decoding: bytes, as: UTF8.self) }
        case ID.defaultDuration: changeTrack { $0.duration = Int64(clamping: value) }
        case ID.contentEncodings: throw .encoded
        case ID.clusterTime: clusterTime = value
        case ID.simpleBlock, ID.block: try takeBlock(range)
        default: break
        }
    }

    private mutating func changeTrack(_ change: (inout Track) -> Void) {
        guard !tracks.isEmpty else { return }
        change(&tracks[tracks.count - 1])
    }

    /// Track number, 16-bit time since the cluster's, flags, and the frame.
    private mutating func takeBlock(_ range: Range<Int>) throws(Problem) {
        let (track, length) = try number(at: range.lowerBound, keepsMarker: false)
        let head = range.lowerBound + length
        guard head + 3 <= range.upperBound else { throw .truncated }
        guard file[head + 2] & 0x06 == 0 else { throw .laced }
        let relative = Int64(Int16(bitPattern: UInt16(file[head]) << 8 | UInt16(file[head + 1])))
        let ticks = Int64(clamping: clusterTime) &+ relative
        let block = Block(
            bytes: Array(file[(head + 3)..<range.upperBound]), time: ticks &* Int64(clamping: scale))
        if track == number(of: "V_VP8") { video.append(block) }
        if track == number(of: "A_OPUS") { audio.append(block) }
    }

    private func number(of codec: String) -> UInt64? { tracks.first { $0.codec == codec }?.number }

    /// An unsigned integer of at most eight bytes.
    private func integer(_ range: Range<Int>) -> UInt64 {
        file[range].suffix(8).reduce(0) { $0 << 8 | UInt64($1) }
    }

    /// A number of variable length: as many zeros before the first one as bytes follow.
    private func number(at offset: Int, keepsMarker: Bool) throws(Problem) -> (UInt64, Int) {
        guard offset < file.count else { throw .truncated }
        let first = file[offset]
        let length = first.leadingZeroBitCount + 1
        guard length <= 8, offset + length <= file.count else { throw .truncated }
        let marker: UInt8 = 0x80 >> UInt8(length - 1)
        var value = UInt64(keepsMarker ? first : first & ~marker)
        for index in 1..<length { value = value << 8 | UInt64(file[offset + index]) }
        return (value, length)
    }
}
