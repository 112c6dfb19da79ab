import Glibc

/// A placeholder for a picture in some thirty characters, which pages draw before any image has loaded.
///
/// Holds the lowest terms of the picture's cosine transform, in linear light, quantized and written in base 83.
/// - Source: https://github.com/woltapp/blurhash, Algorithm.md.
package enum BlurHash {
    /// A color in linear light, or one term of the transform.
    private struct Light {
        var red = 0.0
        var green = 0.0
        var blue = 0.0
    }

    /// The alphabet of base 83, in the order of the algorithm.
    private static let digits = Array(
        "0123456789ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz#$%*+,-.:;=?@[]^_{|}~")

    /// Encodes a picture.
    /// - Parameters:
    ///   - columns: terms across, 1 to 9.
    ///   - rows: terms down, 1 to 9.
    /// - Throws: `.failed` for other numbers of terms.
    package static func encode(
        _ picture: Picture, columns: Int = 4, rows: Int = 3
    ) throws(CodecError) -> String {
        guard (1...9).contains(columns), (1...9).contains(rows) else { throw .failed }
        // Nine waves across need no more than 32 samples, and the cost grows with the number of pixels.
        let small = try picture.scaled(width: min(picture.width, 32), height: min(picture.height, 32))
        let terms = terms(of: try small.bgra(), small.width, small.height, columns: columns, rows: rows)
        var hash = base83(columns - 1 + (rows - 1) * 9, length: 1)
        // All other terms are stored relative to the largest of them; 166 and 82 are the algorithm's constants.
        let others = terms.dropFirst()
        let largest = others.map { max(abs($0.red), abs($0.green), abs($0.blue)) }.max()
        let scale = largest.map { min(max(Int($0 * 166 - 0.5), 0), 82) }
        hash += base83(scale ?? 0, length: 1)
        // The scale as a decoder will read it, so that its rounding does not add to that of the terms.
        let maximum = scale.map { Double($0 + 1) / 166 } ?? 1
        let mean = terms[0]
        hash += base83(gamma(mean.red) << 16 | gamma(mean.green) << 8 | gamma(mean.blue), length: 4)
        for term in others {
            let value =
                (quantised(term.red / maximum) * 19 + quantised(term.green / maximum)) * 19
                + quantised(term.blue / maximum)
            hash += base83(value, length: 2)
        }
        return hash
    }

    /// The terms of the transform, row by row; the first is the mean color.
    /// - Parameter pixels: four bytes a pixel: blue, green, red, and one that is ignored.
    private static func terms(
        of pixels: [UInt8], _ width: Int, _ height: Int, columns: Int, rows: Int
    ) -> [Light] {
        let light = (0..<256).map { linear(Double($0) / 255) }
        var terms: [Light] = []
        for row in 0..<rows {
            for column in 0..<columns {
                var term = Light()
                for y in 0..<height {
                    let vertical = cos(.pi * Double(row) * Double(y) / Double(height))
                    for x in 0..<width {
                        let basis = vertical * cos(.pi * Double(column) * Double(x) / Double(width))
                        let place = (y * width + x) * 4
                        term.blue += basis * light[Int(pixels[place])]
                        term.green += basis * light[Int(pixels[place + 1])]
                        term.red += basis * light[Int(pixels[place + 2])]
                    }
                }
                let share = (row == 0 && column == 0 ? 1.0 : 2.0) / Double(width * height)
                terms.append(
                    Light(red: term.red * share, green: term.green * share, blue: term.blue * share))
            }
        }
        return terms
    }

    /// The linear light of an sRGB sample; both are 0 to 1.
    private static func linear(_ value: Double) -> Double {
        value <= 0.04045 ? value / 12.92 : pow((value + 0.055) / 1.055, 2.4)
    }

    /// The sRGB byte, 0 to 255, of linear light.
    private static func gamma(_ value: Double) -> Int {
        let value = min(max(value, 0), 1)
        let curved = value <= 0.0031308 ? value * 12.92 : 1.055 * pow(value, 1 / 2.4) - 0.055
        return Int(curved * 255 + 0.5)
    }

    /// Quantizes -1...1 to 19 steps, which are finer near zero.
    private static func quantised(_ value: Double) -> Int {
        let root = value < 0 ? -sqrt(-value) : sqrt(value)
        return min(max(Int((root * 9 + 9.5).rounded(.down)), 0), 18)
    }

    /// Writes a number in base 83, the most significant digit first.
    private static func base83(_ value: Int, length: Int) -> String {
        var value = value
        var text: [Character] = []
        for _ in 0..<length {
            text.append(digits[value % 83])
            value /= 83
        }
        return String(text.reversed())
    }
}
