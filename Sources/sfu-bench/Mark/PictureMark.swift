import Base
import Codecs

/// When a picture was made, as bright and dark cells in its upper left corner, which survive encoding and scaling.
///
/// Tenths of a millisecond of civil time, of which the lower 40 bits are kept (a day and six hours), and a checksum:
/// what else is in a picture is hardly ever taken for a mark. Who marks and who reads need clocks that agree: one
/// machine, or NTP.
struct PictureMark: Equatable, Sendable {
    private static let columns = 12
    private static let rows = 4
    /// Cells that stand one above the other in a picture; heights in which they are even are multiples of 36.
    private static let cellsHigh = 18
    private static let timeBits: UInt64 = 40
    private static let mask: UInt64 = 1 << timeBits - 1
    private static let (dark, bright): (UInt8, UInt8) = (30, 220)
    /// What lies between is neither.
    private static let (darkest, brightest) = (90, 160)

    /// Modulo 2^40, in tenths of a millisecond.
    let ticks: UInt64

    /// - Parameter nanoseconds: since 1970.
    init(nanoseconds: Int64) {
        ticks = UInt64(bitPattern: nanoseconds / 100_000) & Self.mask
    }

    /// How long before a point in time it was made, in nanoseconds; negative if later.
    /// - Parameter nanoseconds: since 1970, less than 15 hours away.
    func age(at nanoseconds: Int64) -> Int64 {
        let difference = (UInt64(bitPattern: nanoseconds / 100_000) &- ticks) & Self.mask
        let half: UInt64 = 1 << (Self.timeBits - 1)
        let ticks = difference < half ? Int64(difference) : Int64(difference) - Int64(Self.mask) - 1
        return ticks * 100_000
    }

    private static func checksum(_ ticks: UInt64) -> UInt64 {
        // A product spreads each bit over the upper ones; of darkness alone it is not the one that darkness says.
        ((ticks &+ 1) &* 0x9E37_79B9_7F4A_7C15) >> 56
    }

    // MARK: Drawing

    /// Draws it.
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

    /// In pixels; even, as what is drawn has to be.
    private static func cell(_ picture: Picture) -> Int { max(picture.height / cellsHigh & ~1, 2) }

    // MARK: Reading

    /// Reads what `draw` drew, also out of a picture that was scaled since.
    init?(in picture: Picture) {
        var bits: UInt64 = 0
        let cell = Double(picture.height) / Double(Self.cellsHigh)
        for index in 0..<(Self.columns * Self.rows) {
            let x = Int((Double(index % Self.columns) + 0.5) * cell)
            let y = Int((Double(index / Self.columns) + 0.5) * cell)
            var sum = 0
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
