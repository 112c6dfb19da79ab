import Base
import Codecs

/// The time at which a picture was made, as bright and dark cells in its upper left corner.
///
/// The cells survive encoding and scaling. They contain the lower 40 bits of the wall-clock time in tenths of a
/// millisecond (a range of a day and six hours), and a checksum, so that other content is hardly ever taken for a mark.
/// The clocks of writer and reader must agree: they are on one machine, or use NTP.
struct PictureMark: Equatable, Sendable {
    /// Cells of the mark: one for each of its 48 bits.
    private static let columns = 12
    private static let rows = 4
    /// Cells that fit into the height of a picture; they have an even size if the height is a multiple of 36.
    private static let cellsHigh = 18
    private static let timeBits: UInt64 = 40
    private static let mask: UInt64 = 1 << timeBits - 1
    private static let (dark, bright): (UInt8, UInt8) = (30, 220)
    /// Luma between these is neither dark nor bright, and the picture has no mark.
    private static let (darkest, brightest) = (90, 160)

    /// In tenths of a millisecond, modulo 2^40.
    let ticks: UInt64

    /// - Parameter nanoseconds: since 1970.
    init(nanoseconds: Int64) {
        ticks = UInt64(bitPattern: nanoseconds / 100_000) & Self.mask
    }

    /// The age of the picture at a point in time, in nanoseconds; negative if it was made later.
    /// - Parameter nanoseconds: since 1970, at most 15 hours away from the mark.
    func age(at nanoseconds: Int64) -> Int64 {
        let difference = (UInt64(bitPattern: nanoseconds / 100_000) &- ticks) & Self.mask
        let half: UInt64 = 1 << (Self.timeBits - 1)
        let ticks = difference < half ? Int64(difference) : Int64(difference) - Int64(Self.mask) - 1
        return ticks * 100_000
    }

    private static func checksum(_ ticks: UInt64) -> UInt64 {
        // The product spreads each bit over the higher ones. A black area is no mark, because the checksum of 0 is not
        // 0.
        ((ticks &+ 1) &* 0x9E37_79B9_7F4A_7C15) >> 56
    }

    // MARK: Drawing

    /// Draws the mark into a picture.
    func draw(on picture: inout Picture) {
        let cell = Self.cell(picture)
        let bits = ticks << 8 | Self.checksum(ticks)
        for index in 0..<(Self.columns * Self.rows) {
            let luma = bits >> UInt64(index) & 1 == 1 ? Self.bright : Self.dark
            picture.fill(
                x: index % Self.columns * cell, y: index / Self.columns * cell, width: cell, height: cell,
                with: DrawingColor(luma: luma, u: 128, v: 128))
        }
    }

    /// Size of a cell in pixels; even, because chroma has half the resolution.
    private static func cell(_ picture: Picture) -> Int { max(picture.height / cellsHigh & ~1, 2) }

    // MARK: Reading

    /// Reads a mark, even if the picture was scaled since; nil if there is none.
    init?(in picture: Picture) {
        var bits: UInt64 = 0
        // Not rounded, so that it matches a picture of any height.
        let cell = Double(picture.height) / Double(Self.cellsHigh)
        for index in 0..<(Self.columns * Self.rows) {
            let x = Int((Double(index % Self.columns) + 0.5) * cell)
            let y = Int((Double(index / Self.columns) + 0.5) * cell)
            var sum = 0
            // The mean of five pixels in the middle tolerates artifacts of compression.
            for (dx, dy) in [(0, 0), (-1, 0), (1, 0), (0, -1), (0, 1)] {
                guard let luma = picture.luma(x: x + dx, y: y + dy) else { return nil }
                sum += Int(luma)
            }
            let mean = sum / 5
            guard mean <= Self.darkest || mean >= Self.brightest else { return nil }
            if mean >= Self.brightest { bits |= 1 << UInt64(index) }
        }
        let ticks = bits >> 8
        guard bits & 0xFF == Self.checksum(ticks) else { return nil }
        self.ticks = ticks
    }
}
