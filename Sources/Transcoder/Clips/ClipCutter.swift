import Base
import Wire

/// Makes a clip's file of what was kept: the packets go through a packager once more, by the clock of the time at which
/// they came, as fast as the processor takes it.
final class ClipCutter {
    private let slice: ClipRing.Slice
    private let packager: Packager
    private var next = 0
    private var clock: MonotonicTime
    private var offset: UInt64 = 0
    private var milliseconds = 0

    init(_ slice: ClipRing.Slice, codecs: Packager.Codecs) {
        self.slice = slice
        clock = slice.packets.first?.packet.arrival ?? slice.begin
        packager = Packager(
            at: clock, codecs: codecs, clip: Packager.Clip(begin: slice.begin, canvas: slice.canvas))
        for input in Set(slice.packets.map(\.input)) { packager.open(input) }
    }

    /// Whether there is no more to do, be it that it cannot be done.
    var isOver: Bool { milliseconds >= slice.milliseconds || packager.hasFailed || isLate }
    /// Nil while it is not complete.
    var length: Int? { milliseconds > 0 && !packager.hasFailed && isOver ? milliseconds : nil }

    /// Pictures begin a little later than what they are made of; by more they do not come.
    private var isLate: Bool { clock >= slice.end + .seconds(5) }

    /// Goes on, for the time of one picture or a little more.
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

    private func pieces(of bytes: [UInt8]) -> [ClipReport.Content] {
        stride(from: 0, to: bytes.count, by: RecordingReport.pieceLimit).map { start in
            let piece = Array(bytes[start..<min(start + RecordingReport.pieceLimit, bytes.count)])
            defer { offset += UInt64(piece.count) }
            return .bytes(offset: offset, piece)
        }
    }
}
