/// Adds up sound, and limits the sum to what can be encoded.
///
/// A limiter with a look-ahead of one block: where the sum would clip, its gain falls quickly but without a step, and
/// recovers slowly. Sound that fits is not changed.
struct Mixer {
    /// Highest sample value in the output: -1 dB.
    static let ceiling: Float = 0.891
    /// Recovery of the gain per sample; from zero to full in a quarter of a second.
    private static let release: Float = 1.0 / (48_000 * 0.25)

    private var gain: Float = 1

    /// Mixes blocks of interleaved samples.
    /// - Parameter count: samples in the result, of both channels.
    mutating func mix(_ blocks: [[Float]], count: Int) -> [Float] {
        var sum = [Float](repeating: 0, count: count)
        for block in blocks {
            for index in 0..<min(count, block.count) { sum[index] += block[index] }
        }
        limit(&sum)
        return sum
    }

    /// Applies the gain that keeps the block below `ceiling`.
    private mutating func limit(_ sum: inout [Float]) {
        var peak: Float = 0
        for index in sum.indices {
            // A NaN or infinity would remain in the gain forever.
            if !sum[index].isFinite { sum[index] = 0 }
            peak = max(peak, abs(sum[index]))
        }
        let wanted = peak > Self.ceiling ? Self.ceiling / peak : 1
        guard wanted < 1 || gain < 1 else { return }
        // The gain falls within the first 5 ms, in which the peak may already occur; samples are clamped until then.
        let attack = max((gain - wanted) / 240, 0)
        var index = 0
        while index + 1 < sum.count {
            if gain > wanted {
                gain = max(gain - attack, wanted)
            } else {
                gain = min(gain + Self.release, wanted)
            }
            for channel in 0..<2 {
                let sample = sum[index + channel] * gain
                sum[index + channel] = min(max(sample, -Self.ceiling), Self.ceiling)
            }
            index += 2
        }
    }
}
