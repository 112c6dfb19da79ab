import Base
import Wire

/// Creates a clip's file from kept packets.
///
/// The packets pass through a packager once more. Its clock follows their arrival times, as fast as the processor
/// permits.
final class ClipCutter {
    private let slice: ClipRing.Slice
    private let packager: Packager
    /// Index of the next packet of the slice.
    private var next = 0
    /// The time that the packager is given.
    private var clock: MonotonicTime
    /// Bytes of the file so far.
    private var offset: UInt64 = 0
    /// Length of the file so far.
    private var milliseconds = 0

    init(_ slice: ClipRing.Slice, codecs: Packager.Codecs) {
        self.slice = slice
        clock = slice.packets.first?.packet.arrival ?? slice.begin
        packager = Packager(
            at: clock, codecs: codecs, clip: Packager.Clip(begin: slice.begin, canvas: slice.canvas))
        for input in Set(slice.packets.map(\.input)) { packager.open(input) }
    }

    /// Whether the clip is complete or has failed.
    var isOver: Bool { milliseconds >= slice.milliseconds || packager.hasFailed || isLate }
    /// Length in milliseconds; nil unless the clip is complete.
    var length: Int? { milliseconds > 0 && !packager.hasFailed && isOver ? milliseconds : nil }

    /// Whether the packager's clock has passed the slice's end by more than the packager's own delay can explain.
    private var isLate: Bool { clock >= slice.end + .seconds(5) }

    /// Continues by the duration of about one picture.
    /// - Returns: bytes of the file.
    func advance() -> [ClipReport.Content] {
        while next < slice.packets.count {
            let (packet, input) = slice.packets[next]
            guard packet.arrival <= packager.deadline else { break }
            clock = max(clock, packet.arrival)
            packager.receive(packet, of: input, at: clock)
            next += 1
        }
        clock = max(clock, packager.deadline)
        return packager.advance(to: clock).flatMap { report -> [ClipReport.Content] in
            switch report {
            case .began(let beginning): pieces(of: beginning.initialization)
            case .part(let part) where milliseconds < slice.milliseconds: take(part)
            case .part, .format, .sample: []
            }
        }
    }

    private func take(_ part: PackagingReport.Part) -> [ClipReport.Content] {
        milliseconds += Int(part.milliseconds)
        return pieces(of: part.bytes)
    }

    /// Splits bytes into reports that fit into a message.
    private func pieces(of bytes: [UInt8]) -> [ClipReport.Content] {
        stride(from: 0, to: bytes.count, by: RecordingReport.pieceLimit).map { start in
            let piece = Array(bytes[start..<min(start + RecordingReport.pieceLimit, bytes.count)])
            defer { offset += UInt64(piece.count) }
            return .bytes(offset: offset, piece)
        }
    }
}
