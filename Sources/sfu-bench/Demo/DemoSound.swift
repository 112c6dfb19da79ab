import Codecs
import Foundation

/// A few quiet notes for a demo, which loop without a seam.
struct DemoSound: Sendable {
    /// Notes that sound all the time, in hertz.
    let chord: [Double]
    /// Notes that are plucked one after the other at equal intervals, in hertz.
    let melody: [Double]

    static let rate = 48_000

    /// Interleaved samples for left and right, at 48 kHz.
    /// - Parameter seconds: length of the loop; a whole number, so that whole waves fit into it.
    func samples(seconds: Int) -> [Float] {
        let count = seconds * Self.rate
        var samples = [Float](repeating: 0, count: count * 2)
        for (index, note) in chord.enumerated() {
            let frequency = Self.fitted(note, seconds)
            let swell = 2 * .pi * Double(index % 3 + 1) / Double(count)
            // The left side gets louder while the right one gets softer.
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
                // Each note starts softly and fades before the next one.
                let strength = 0.07 * min(time * 60, 1) * exp(-time * 4)
                let value = Float(strength * sin(2 * .pi * frequency * time))
                let frame = (index * distance + offset) % count
                samples[2 * frame] += value
                samples[2 * frame + 1] += value
            }
        }
        return samples
    }

    /// The nearest frequency with a whole number of waves in the loop.
    private static func fitted(_ note: Double, _ seconds: Int) -> Double {
        (note * Double(seconds)).rounded() / Double(seconds)
    }
}
