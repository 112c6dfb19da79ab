import Base
import Codecs

/// Decodes frames to stereo at 48 kHz; a library, or a test's stand-in.
protocol FrameDecoder: AnyObject {
    /// Left and right in turn.
    func decode(_ frame: [UInt8]) throws(CodecError) -> [Float]
}

extension AACDecoder: FrameDecoder {}

/// Makes Opus of a publisher's AAC: frames in as they come, packets of 20 ms out.
///
/// Samples are counted, and time stamps only say where that count should be: they are rounded to milliseconds by RTMP.
/// A small difference is made up for a millisecond at a time, a gap begins anew. Pure: time comes with the frames.
final class SoundConverter {
    /// Twice what speech needs, and music does not suffer.
    static let bitrate = 96_000
    /// Samples, of a channel, between where a frame should be and where it is: more is a gap.
    private static let gap: Int64 = 4_800
    /// Less is rounding.
    private static let tolerance: Int64 = 960
    /// By so much it is moved at a time.
    private static let step: Int64 = 48

    private let makeDecoder: ([UInt8]) -> (any FrameDecoder)?
    private let encoder: OpusEncoder
    private var packets: PacketMaker
    private var decoder: (any FrameDecoder)?
    /// Decoded and not encoded yet, left and right in turn.
    private var sound: [Float] = []
    /// Time stamp of the first of them, extended; nil before the first frame.
    private var start: Int64?
    private var clock = MediaClock(rate: 48_000)
    /// Frames that could not be decoded.
    private(set) var failures: UInt64 = 0

    /// - Parameters:
    ///   - seed: sets SSRC and first numbers; another one for each life of a converter.
    ///   - makeDecoder: of a configuration; what libraries do for it, or a test.
    init(seed: UInt64, makeDecoder: @escaping ([UInt8]) -> (any FrameDecoder)?) throws(CodecError) {
        self.makeDecoder = makeDecoder
        // An encoder's programme may be music; who takes RED gets copies of packets in that.
        encoder = try OpusEncoder(bitrate: Self.bitrate, hasRecovery: false)
        packets = PacketMaker(seed: seed, kind: .audio)
    }

    /// Frames are of another configuration from now on.
    func configure(_ configuration: [UInt8]) {
        decoder = makeDecoder(configuration)
    }

    /// Takes a frame in.
    /// - Returns: the packets that are complete with it.
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

    /// Finds out where a frame stands.
    /// - Returns: whether it begins anew.
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

    /// - Parameter captured: when what has this time stamp was captured.
    private func encode(isNew: Bool, by timestamp: Int64, captured: MonotonicTime) -> [OutputPacket] {
        var made: [OutputPacket] = []
        let length = OpusEncoder.frames * OpusDecoder.channels
        var offset = 0
        while sound.count - offset >= length, let position = start {
            let block = Array(sound[offset..<(offset + length)])
            offset += length
            start = position + Int64(OpusEncoder.frames)
            guard let payload = try? encoder.encode(block.map { $0.isFinite ? $0 : 0 }) else { continue }
            // A time stamp is 20,833 ns.
            let time = captured.advanced(byNanoseconds: (position - timestamp) * 62_500 / 3)
            let bytes = packets.opus(
                payload, timestamp: UInt32(truncatingIfNeeded: position), marker: isNew && made.isEmpty)
            made.append(OutputPacket(source: 0, layer: 0, captured: time, bytes: bytes))
        }
        sound.removeFirst(offset)
        return made
    }
}
