import Wire

/// A VP8 recording, which publishers repeat and cut into RTP payloads.
///
/// On a key-frame request the player skips to the next key frame, because a recording cannot make one.
/// - Source: the IVF container of libvpx (`ivfdec.c`); RFC 7741 §4.2. WebM: see `WebMFile`.
struct RecordedVideo: Sendable {
    struct Frame: Sendable {
        let bytes: [UInt8]
        let isKeyFrame: Bool
    }

    /// Why a file cannot be played; the text continues a sentence that begins with its path.
    enum Problem: Error, Equatable, CustomStringConvertible {
        case unknown, notVP8, truncated, noKeyFrame, tooLarge
        case webM(WebMFile.Problem)

        var description: String {
            switch self {
            case .unknown: "is neither an IVF nor a WebM file"
            case .webM(let problem): problem.description
            case .notVP8: "contains video other than VP8"
            case .truncated: "ends in the middle of a frame"
            case .noKeyFrame: "does not begin with a key frame"
            case .tooLarge: "is larger than 512 MB"
            }
        }
    }

    /// In bytes: the file is read into memory as a whole.
    static let maximumSize = 512 << 20
    /// Bytes of VP8 in one RTP packet.
    private static let maximumPayload = 1_150
    /// Of an IVF file, and of a frame in it.
    private static let headerLength = 32
    private static let frameHeaderLength = 12

    let frames: [Frame]
    /// In nanoseconds; the same for all frames.
    let frameInterval: Int64
    /// The mean in bits a second, by which publishers are paced.
    let bitrate: Int

    /// Parses an IVF or a WebM file.
    init(parsing file: [UInt8]) throws(Problem) {
        guard file.count <= Self.maximumSize else { throw .tooLarge }
        if WebMFile.isWebM(file) {
            let film: WebMFile
            do throws(WebMFile.Problem) {
                film = try WebMFile(parsing: file)
            } catch {
                throw .webM(error)
            }
            try self.init(film)
        } else {
            try self.init(ivf: file)
        }
    }

    /// Uses the mean interval of the frames if the file does not name one.
    private init(_ file: WebMFile) throws(Problem) {
        guard file.hasVP8 else { throw .notVP8 }
        let blocks = file.video
        let span = (blocks.last?.time ?? 0) &- (blocks.first?.time ?? 0)
        let mean = blocks.count > 1 ? span / Int64(blocks.count - 1) : 0
        try self.init(
            blocks.compactMap { block in
                // The lowest bit of a VP8 frame is 0 in key frames.
                block.bytes.first.map { Frame(bytes: block.bytes, isKeyFrame: $0 & 1 == 0) }
            }, interval: file.frameInterval ?? mean)
    }

    /// Parses IVF; a header that is cut off at the end is ignored, a frame is not.
    private init(ivf file: [UInt8]) throws(Problem) {
        guard file.count >= Self.headerLength, file.starts(with: Array("DKIF".utf8)) else { throw .unknown }
        guard Array(file[8..<12]) == Array("VP80".utf8) else { throw .notVP8 }
        let rate = Self.littleEndian(file, 16, 4)
        let scale = Self.littleEndian(file, 20, 4)
        var frames: [Frame] = []
        var offset = max(Self.littleEndian(file, 6, 2), Self.headerLength)
        while offset + Self.frameHeaderLength <= file.count {
            let size = Self.littleEndian(file, offset, 4)
            let start = offset + Self.frameHeaderLength
            guard start + size <= file.count else { throw .truncated }
            let bytes = Array(file[start..<(start + size)])
            if let first = bytes.first { frames.append(Frame(bytes: bytes, isKeyFrame: first & 1 == 0)) }
            offset = start + size
        }
        // Rate and scale may be missing or absurd.
        let perSecond = rate > 0 && scale > 0 ? Double(rate) / Double(scale) : 30
        try self.init(frames, interval: Int64(1e9 / min(max(perSecond, 1), 240)))
    }

    /// - Parameter interval: between frames, in nanoseconds; limited to rates from 1 to 240 a second.
    /// - Throws: `noKeyFrame` if the first frame is not one.
    init(_ frames: [Frame], interval: Int64) throws(Problem) {
        guard frames.first?.isKeyFrame == true else { throw .noKeyFrame }
        self.frames = frames
        frameInterval = min(max(interval, 1_000_000_000 / 240), 1_000_000_000)
        let total = frames.reduce(0) { $0 + $1.bytes.count }
        bitrate = Int(Double(total) * 8 / (Double(frames.count) * Double(frameInterval) / 1e9))
    }

    private static func littleEndian(_ bytes: [UInt8], _ offset: Int, _ count: Int) -> Int {
        (0..<count).reduce(0) { $0 | Int(bytes[offset + $1]) << (8 * $1) }
    }

    /// A player with a random RTP timestamp and picture ID, so that publishers of one file differ.
    func player(using random: inout some RandomNumberGenerator) -> Player {
        Player(
            recording: self, timestamp: UInt32.random(in: 0...UInt32.max, using: &random),
            pictureID: UInt16.random(in: 0...0x7FFF, using: &random))
    }

    /// A publisher's position in the recording.
    struct Player: Sendable {
        private let recording: RecordedVideo
        private var position = 0
        /// Of the next frame, in ticks of 90 kHz.
        private var timestamp: UInt32
        /// Of the next frame; 15 bits.
        private var pictureID: UInt16

        fileprivate init(recording: RecordedVideo, timestamp: UInt32, pictureID: UInt16) {
            self.recording = recording
            self.timestamp = timestamp
            self.pictureID = pictureID
        }

        /// Skips to the next key frame; behind the last one, to the first frame.
        mutating func requestKeyFrame() {
            let frames = recording.frames
            position = frames[position...].firstIndex { $0.isKeyFrame } ?? 0
        }

        /// The next frame, cut into packets.
        mutating func nextFrame() -> [MediaPacket] {
            let frame = recording.frames[position]
            position = (position + 1) % recording.frames.count
            defer {
                // Rounded: an interval of 30 frames a second is a third of a nanosecond short.
                timestamp &+= UInt32((recording.frameInterval * 90 + 500_000) / 1_000_000)
                pictureID = (pictureID + 1) & 0x7FFF
            }
            let limit = RecordedVideo.maximumPayload
            let starts = stride(from: 0, to: frame.bytes.count, by: limit)
            return starts.map { start in
                let end = min(start + limit, frame.bytes.count)
                // The VP8 descriptor: X, and S at the start of the frame; then I, which announces the picture ID.
                var payload: [UInt8] = [start == 0 ? 0x90 : 0x80, 0x80]
                // M: the picture ID has 15 bits.
                payload.append(bigEndian: pictureID | 0x8000)
                payload += frame.bytes[start..<end]
                return MediaPacket(
                    payload: payload, timestamp: timestamp, marker: end == frame.bytes.count,
                    isKeyFrame: frame.isKeyFrame, stampOffset: nil)
            }
        }
    }
}
