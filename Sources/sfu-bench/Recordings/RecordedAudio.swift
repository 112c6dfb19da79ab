import Wire

/// An Opus recording, which publishers repeat.
/// - Source: RFC 3533 §6 (Ogg pages), RFC 7845 §3 (Opus in Ogg).
struct RecordedAudio: Sendable {
    /// Why a file cannot be played; the text continues a sentence that begins with its path.
    enum Problem: Error, Equatable, CustomStringConvertible {
        case unknown, notOpus, truncated, empty, tooLarge
        case webM(WebMFile.Problem)

        var description: String {
            switch self {
            case .unknown: "is neither an Ogg nor a WebM file"
            case .webM(let problem): problem.description
            case .notOpus: "contains audio other than Opus"
            case .truncated: "ends in the middle of a page"
            case .empty: "contains no audio"
            case .tooLarge: "is larger than 512 MB"
            }
        }
    }

    /// In bytes: the file is read into memory as a whole.
    static let maximumSize = 512 << 20
    /// In bytes; longer packets do not fit into a datagram.
    private static let maximumPacket = 1_150

    let packets: [[UInt8]]
    /// In nanoseconds; all packets are assumed to be as long as the first.
    let packetInterval: Int64

    /// Parses an Ogg or a WebM file.
    init(parsing file: [UInt8]) throws(Problem) {
        guard file.count <= Self.maximumSize else { throw .tooLarge }
        try self.init(packets: WebMFile.isWebM(file) ? Self.packets(ofWebM: file) : Self.packets(ofOgg: file))
    }

    /// - Parameter all: packets of Opus; those that do not fit into a datagram are left out.
    /// - Throws: `empty` if none is left.
    init(packets all: [[UInt8]]) throws(Problem) {
        packets = all.filter { (1...Self.maximumPacket).contains($0.count) }
        guard let first = packets.first, let ticks = try? OpusPayload.duration(first.span) else {
            throw .empty
        }
        // Ticks of 48 kHz.
        packetInterval = Int64(ticks) * 1_000_000 / 48
    }

    private static func packets(ofWebM file: [UInt8]) throws(Problem) -> [[UInt8]] {
        do throws(WebMFile.Problem) {
            let file = try WebMFile(parsing: file)
            return file.audio.map(\.bytes)
        } catch {
            throw .webM(error)
        }
    }

    /// The audio packets, which follow the two header packets.
    private static func packets(ofOgg file: [UInt8]) throws(Problem) -> [[UInt8]] {
        var all = try pages(of: file)
        guard let head = all.first, head.starts(with: Array("OpusHead".utf8)) else { throw .notOpus }
        all.removeFirst(min(2, all.count))
        return all
    }

    /// The packets in the pages of an Ogg file; a packet may continue on the next page.
    private static func pages(of file: [UInt8]) throws(Problem) -> [[UInt8]] {
        var packets: [[UInt8]] = []
        var open: [UInt8] = []
        var offset = 0
        while offset < file.count {
            // A page has a header of 27 bytes and a table with the lengths of its segments.
            guard offset + 27 <= file.count else { throw .truncated }
            guard file[offset...].starts(with: Array("OggS".utf8)) else { throw .unknown }
            let segments = Int(file[offset + 26])
            var start = offset + 27 + segments
            guard start <= file.count else { throw .truncated }
            for length in file[(offset + 27)..<start] {
                guard start + Int(length) <= file.count else { throw .truncated }
                open += file[start..<(start + Int(length))]
                start += Int(length)
                // 255 means that the packet continues in the next segment.
                guard length < 255 else { continue }
                packets.append(open)
                open = []
            }
            offset = start
        }
        return packets
    }

    func player() -> Player { Player(recording: self) }

    /// A publisher's position in the recording.
    struct Player: Sendable {
        private let recording: RecordedAudio
        private var position = 0

        fileprivate init(recording: RecordedAudio) {
            self.recording = recording
        }

        /// The next packet; after the last one, the first.
        mutating func next() -> [UInt8] {
            defer { position = (position + 1) % recording.packets.count }
            return recording.packets[position]
        }
    }
}
