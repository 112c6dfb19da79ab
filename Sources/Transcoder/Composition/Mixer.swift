/// Adds voices up, and holds the sum within what can be encoded.
///
/// A limiter with a look-ahead of one block: where the sum would be too loud, all of it becomes quieter, quickly and
/// without a step, and comes back slowly. What fits is not touched.
struct Mixer {
    /// The loudest sample that leaves: -1 dB.
    static let ceiling: Float = 0.891
    /// Of the way back to full loudness, a sample.
    private static let release: Float = 1.0 / (48_000 * 0.25)

    private var gain: Float = 1

    /// The sum of blocks of the same length; left and right in turn.
    mutating func mix(_ blocks: [[Float]], count: Int) -> [Float] {
        var sum = [Float](repeating: 0, count: count)
        for block in blocks {
            for index in 0..<min(count, block.count) { sum[index] += block[index] }
        }
        limit(&sum)
        return sum
    }

    private mutating func limit(_ sum: inout [Float]) {
        var peak: Float = 0
        for index in sum.indices {
            // What is no number would stay in the gain for ever.
            if !sum[index].isFinite { sum[index] = 0 }
            peak = max(peak, abs(sum[index]))
        }
        let wanted = peak > Self.ceiling ? Self.ceiling / peak : 1
        guard wanted < 1 || gain < 1 else { return }
        // Down within the first 5 ms, where the loudest may already be.
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
