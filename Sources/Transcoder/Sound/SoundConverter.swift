import Base
import Codecs

/// Decodes AAC frames to stereo at 48 kHz; implemented by the library, and by stubs in tests.
protocol FrameDecoder: AnyObject {
    /// Returns interleaved samples, left first.
    func decode(_ frame: [UInt8]) throws(CodecError) -> [Float]
}

extension AACDecoder: FrameDecoder {}

/// Re-encodes a publisher's AAC as Opus: accepts frames as they arrive, and returns packets of 20 ms.
///
/// Positions come from counting samples. Time stamps only correct the count, because RTMP rounds them to milliseconds.
/// A small difference is corrected by one millisecond at a time, and a gap restarts the count. Pure: time comes with
/// the frames.
final class SoundConverter {
    /// In bits per second: twice what speech needs, and enough for music.
    static let bitrate = 96_000
    /// Difference between time stamp and count, in samples per channel, that counts as a gap.
    private static let gap: Int64 = 4_800
    /// Difference that is attributed to rounding, in samples per channel.
    private static let tolerance: Int64 = 960
    /// Samples per channel by which the count is corrected for each frame.
    private static let step: Int64 = 48

    private let makeDecoder: ([UInt8]) -> (any FrameDecoder)?
    private let encoder: OpusEncoder
    private var packets: PacketMaker
    private var decoder: (any FrameDecoder)?
    /// Decoded sound that is not encoded yet, interleaved.
    private var sound: [Float] = []
    /// Unwrapped time stamp of the first sample in `sound`; nil before the first frame.
    private var start: Int64?
    private var clock = MediaClock(rate: 48_000)
    /// Frames that could not be decoded.
    private(set) var failures: UInt64 = 0

    /// - Parameters:
    ///   - seed: determines SSRC and first sequence numbers; different for each life of a converter.
    ///   - makeDecoder: creates a decoder for an AudioSpecificConfig; nil if it is not supported.
    init(seed: UInt64, makeDecoder: @escaping ([UInt8]) -> (any FrameDecoder)?) throws(CodecError) {
        self.makeDecoder = makeDecoder
        // The programme may be music. Receivers that support RED get redundancy from that.
        encoder = try OpusEncoder(bitrate: Self.bitrate, hasRecovery: false)
        packets = PacketMaker(seed: seed, kind: .audio)
    }

    /// Applies the AudioSpecificConfig of the frames that follow.
    func configure(_ configuration: [UInt8]) {
        decoder = makeDecoder(configuration)
    }

    /// Processes a frame.
    /// - Returns: the packets that are complete now.
    func receive(_ frame: InputPacket) -> [OutputPacket] {
        guard let decoded = try? decoder?.decode(frame.payload), !decoded.isEmpty else {
            failures &+= 1
            return []
        }
        let timestamp = clock.extend(frame.timestamp)
        let isNew = place(timestamp)
        sound += decoded
        return encode(isNew: isNew, by: timestamp, captured: frame.captured ?? frame.arrival)
    }

    /// Compares a frame's time stamp with the count of samples.
    /// - Returns: whether the count restarts.
    private func place(_ timestamp: Int64) -> Bool {
        guard let known = start else {
            start = timestamp
            return true
        }
        let error = timestamp - (known + Int64(sound.count / OpusDecoder.channels))
        if error.magnitude > UInt64(Self.gap) {
            sound.removeAll(keepingCapacity: true)
            start = timestamp
            return true
        }
        if error.magnitude > UInt64(Self.tolerance) { start = known + (error < 0 ? -Self.step : Self.step) }
        return false
    }

    /// Encodes all complete blocks of 20 ms.
    /// - Parameters:
    ///   - isNew: whether the first packet follows a gap, which its marker bit signals.
    ///   - timestamp: of the frame that was captured at `captured`.
    private func encode(isNew: Bool, by timestamp: Int64, captured: MonotonicTime) -> [OutputPacket] {
        var made: [OutputPacket] = []
        let length = OpusEncoder.frames * OpusDecoder.channels
        var offset = 0
        while sound.count - offset >= length, let position = start {
            let block = Array(sound[offset..<(offset + length)])
            offset += length
            start = position + Int64(OpusEncoder.frames)
            guard let payload = try? encoder.encode(block.map { $0.isFinite ? $0 : 0 }) else { continue }
            // One tick is 20,833 ns, that is 62,500/3.
            let time = captured.advanced(byNanoseconds: (position - timestamp) * 62_500 / 3)
            let bytes = packets.opus(
                payload, timestamp: UInt32(truncatingIfNeeded: position), marker: isNew && made.isEmpty)
            made.append(OutputPacket(source: 0, layer: 0, captured: time, bytes: bytes))
        }
        sound.removeFirst(offset)
        return made
    }
}
