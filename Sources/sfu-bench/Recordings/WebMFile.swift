import Wire

/// Extracts the frames of a WebM file's first VP8 track and first Opus track.
///
/// A single loop over all elements enters those that contain others. It therefore does not need the sizes of segments
/// and clusters, which live recordings do not have.
/// - Source: RFC 9559 §5, §10 (Matroska); the WebM container guidelines.
struct WebMFile {
    /// Why a file cannot be read; the text continues a sentence that begins with its path.
    enum Problem: Error, Equatable, CustomStringConvertible {
        case notWebM, truncated, laced, encoded, tooLarge

        var description: String {
            switch self {
            case .notWebM: "is not a WebM file"
            case .truncated: "ends in the middle of an element"
            case .laced: "uses lacing, which is not supported"
            case .encoded: "has compressed or encrypted tracks"
            case .tooLarge: "is larger than 512 MB"
            }
        }
    }

    /// One frame, as it is stored in a block.
    struct Block {
        let bytes: [UInt8]
        /// In nanoseconds.
        let time: Int64
    }

    /// A track, with what its elements have said so far.
    private struct Track {
        var number: UInt64 = 0
        var codec = ""
        /// Duration of a frame in nanoseconds; nil if the file does not have it.
        var duration: Int64?
    }

    /// Elements whose contents are read; all others are skipped or evaluated as a whole.
    private static let masters: Set<UInt32> = [
        MatroskaID.segment, MatroskaID.info, MatroskaID.tracks, MatroskaID.trackEntry, MatroskaID.cluster,
        MatroskaID.blockGroup,
    ]

    /// In bytes: the file is read into memory as a whole.
    static let maximumSize = 512 << 20
    private(set) var video: [Block] = []
    private(set) var audio: [Block] = []
    private(set) var hasVP8 = false
    private(set) var hasOpus = false
    /// Between frames of video, in nanoseconds; nil if the file does not have it.
    private(set) var frameInterval: Int64?
    private let file: [UInt8]
    private var tracks: [Track] = []
    /// Nanoseconds in a tick of the file's timestamps.
    private var scale: UInt64 = 1_000_000
    /// Timestamp of the current cluster in ticks; those of blocks are relative to it.
    private var clusterTime: UInt64 = 0

    /// Whether a file begins with the ID of an EBML header.
    static func isWebM(_ file: [UInt8]) -> Bool { file.starts(with: [0x1A, 0x45, 0xDF, 0xA3]) }

    /// Parses a file.
    /// - Throws: `Problem` if it is not WebM, is cut off, or uses a feature that is not supported.
    init(parsing file: [UInt8]) throws(Problem) {
        guard Self.isWebM(file) else { throw .notWebM }
        guard file.count <= Self.maximumSize else { throw .tooLarge }
        self.file = file
        var offset = 0
        while offset < file.count {
            let element = try Self.element(file.span.extracting(offset..<file.count), at: offset)
            let start = Int(element.dataStart)
            if Self.masters.contains(element.id) {
                if element.id == MatroskaID.trackEntry { tracks.append(Track()) }
                offset = start
                continue
            }
            guard let end = element.end, end <= file.count else { throw .truncated }
            try take(element.id, start..<Int(end))
            offset = Int(end)
        }
        hasVP8 = tracks.contains { $0.codec == "V_VP8" }
        hasOpus = tracks.contains { $0.codec == "A_OPUS" }
        frameInterval = tracks.first { $0.codec == "V_VP8" }?.duration
    }

    private static func element(_ bytes: Span<UInt8>, at offset: Int) throws(Problem) -> EBMLElement {
        do throws(WireError) {
            return try EBMLElement(parsing: bytes, at: Int64(offset))
        } catch {
            throw .truncated
        }
    }

    /// Evaluates an element without children; unknown ones are ignored.
    private mutating func take(_ id: UInt32, _ range: Range<Int>) throws(Problem) {
        let bytes = file[range]
        switch id {
        case MatroskaID.timestampScale: scale = max(EBMLElement.unsignedInteger(bytes), 1)
        case MatroskaID.trackNumber: changeTrack { $0.number = EBMLElement.unsignedInteger(bytes) }
        case MatroskaID.codecID:
            // Strings may be padded with zeros (RFC 8794 §7.4).
            changeTrack { $0.codec = String(decoding: bytes.prefix { $0 != 0 }, as: UTF8.self) }
        case MatroskaID.defaultDuration:
            changeTrack { $0.duration = Int64(clamping: EBMLElement.unsignedInteger(bytes)) }
        case MatroskaID.contentEncodings: throw .encoded
        case MatroskaID.timestamp: clusterTime = EBMLElement.unsignedInteger(bytes)
        case MatroskaID.simpleBlock, MatroskaID.block: try takeBlock(range)
        default: break
        }
    }

    /// Changes the track whose elements are being read, which is the latest.
    private mutating func changeTrack(_ change: (inout Track) -> Void) {
        guard !tracks.isEmpty else { return }
        change(&tracks[tracks.count - 1])
    }

    /// Adds a block to the frames, if it belongs to one of the two tracks.
    private mutating func takeBlock(_ range: Range<Int>) throws(Problem) {
        let header: MatroskaBlock
        do throws(WireError) {
            header = try MatroskaBlock(parsing: file.span.extracting(range))
        } catch {
            throw .truncated
        }
        guard !header.isLaced else { throw .laced }
        let ticks = Int64(clamping: clusterTime) &+ Int64(header.timestamp)
        let block = Block(
            bytes: Array(file[range].dropFirst(header.headerLength)), time: ticks &* Int64(clamping: scale))
        if header.trackNumber == number(of: "V_VP8") { video.append(block) }
        if header.trackNumber == number(of: "A_OPUS") { audio.append(block) }
    }

    private func number(of codec: String) -> UInt64? { tracks.first { $0.codec == codec }?.number }
}
