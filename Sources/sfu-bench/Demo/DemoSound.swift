import Codecs
import Foundation

/// A few quiet notes for a demo, which go round without a seam.
struct DemoSound: Sendable {
    /// What sounds all the time, in hertz.
    let chord: [Double]
    /// What is plucked one after the other, in hertz, at equal distances.
    let melody: [Double]

    static let rate = 48_000

    /// Left and right in turn, at 48 kHz.
    /// - Parameter seconds: of the loop; whole, so that each note fits into it.
    func samples(seconds: Int) -> [Float] {
        let count = seconds * Self.rate
        var samples = [Float](repeating: 0, count: count * 2)
        for (index, note) in chord.enumerated() {
            let frequency = Self.fitted(note, seconds)
            let swell = 2 * .pi * Double(index % 3 + 1) / Double(count)
            // The left side swells while the right one ebbs.
            for frame in 0..<count {
                let wave = 0.045 * sin(2 * .pi * frequency * Double(frame) / Double(Self.rate))
                let balance = 0.3 * sin(swell * Double(frame) + Double(index))
                samples[2 * frame] += Float(wave * (0.7 + balance))
                samples[2 * frame + 1] += Float(wave * (0.7 - balance))
            }
        }
        let distance = count / max(melody.count, 1)
        for (index, note) in melody.enumerated() {
            let frequency = Self.fitted(note, seconds)
            for offset in 0..<min(distance, count) {
                let time = Double(offset) / Double(Self.rate)
                // Begins softly and dies away before the next one.
                let strength = 0.07 * min(time * 60, 1) * exp(-time * 4)
                let value = Float(strength * sin(2 * .pi * frequency * time))
                let frame = (index * distance + offset) % count
                samples[2 * frame] += value
                samples[2 * frame + 1] += value
            }
        }
        return samples
    }

    /// The nearest frequency of which the loop holds whole waves.
    private static func fitted(_ note: Double, _ seconds: Int) -> Double {
        (note * Double(seconds)).rounded() / Double(seconds)
    }
}
