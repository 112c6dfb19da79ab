import Wire

/// Extracts AAC frames from a stream in which each has an ADTS header.
struct ADTSReader: Sendable {
    /// One frame without its header.
    struct Frame: Equatable {
        /// The AudioSpecificConfig that corresponds to the header.
        let configuration: [UInt8]
        /// One access unit.
        let bytes: [UInt8]
        /// Samples before this frame, counted from the first frame that began in the bytes passed to `read`.
        let offset: Int
        /// In hertz.
        let sampleRate: Int
    }

    /// Without the optional CRC, in bytes.
    private static let headerLength = 7
    private static let samplesPerFrame = 1_024
    /// In hertz, by `sampling_frequency_index`.
    private static let sampleRates = [
        96_000, 88_200, 64_000, 48_000, 44_100, 32_000, 24_000, 22_050, 16_000, 12_000, 11_025, 8_000, 7_350,
    ]

    /// The incomplete frame at the end of the input, less than 8 KB.
    private var rest: [UInt8] = []

    /// Extracts the frames that are complete.
    /// - Returns: whole frames; other bytes are skipped. A frame that began before `bytes` has a negative offset.
    mutating func read(_ bytes: [UInt8]) -> [Frame] {
        let carried = rest.count
        let all = rest + bytes
        rest = []
        var frames: [Frame] = []
        var start = 0
        var samples = carried > 0 ? -Self.samplesPerFrame : 0
        while start + Self.headerLength <= all.count {
            // Sync word of 12 bits, and layer 0.
            guard all[start] == 0xFF, all[start + 1] & 0xF6 == 0xF0 else {
                start += 1
                if start == carried { samples = 0 }
                continue
            }
            // The length is 13 bits across three bytes, header included.
            let length =
                Int(all[start + 3] & 3) << 11 | Int(all[start + 4]) << 3 | Int(all[start + 5] >> 5)
            let header = all[start + 1] & 1 == 0 ? Self.headerLength + 2 : Self.headerLength
            guard length > header else {
                start += 1
                if start == carried { samples = 0 }
                continue
            }
            guard start + length <= all.count else { break }
            if let frame = Self.frame(all[start..<(start + length)], header: header, at: samples) {
                frames.append(frame)
            }
            samples += Self.samplesPerFrame
            start += length
        }
        // Frames are shorter than 8 KB, because their length has 13 bits.
        rest = Array(all[start...].prefix(8_192))
        return frames
    }

    /// Parses a whole frame; nil for a header that decoders do not support.
    private static func frame(_ bytes: ArraySlice<UInt8>, header: Int, at samples: Int) -> Frame? {
        let base = bytes.startIndex
        let type = (bytes[base + 2] >> 6) + 1
        let index = bytes[base + 2] >> 2 & 0x0F
        let channels = bytes[base + 2] << 2 & 4 | bytes[base + 3] >> 6
        // Encoders do not put several raw data blocks into one frame.
        guard sampleRates.indices.contains(Int(index)), bytes[base + 6] & 3 == 0 else { return nil }
        return Frame(
            configuration: [type << 3 | index >> 1, index << 7 | channels << 3],
            bytes: Array(bytes.dropFirst(header)), offset: samples,
            sampleRate: sampleRates[Int(index)])
    }
}
