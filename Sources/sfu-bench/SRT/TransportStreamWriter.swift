import Base
import CMuxer
import Restream

/// Muxes a film into an MPEG transport stream with libavformat, as encoders send it by SRT.
///
/// Not thread-safe; the caller serializes access.
final class TransportStreamWriter {
    /// An error of libavformat.
    struct Failure: Error, CustomStringConvertible {
        let code: Int32

        var description: String { "libavformat cannot write the transport stream: error \(-code)" }
    }

    // Freed in `deinit`. Its output belongs to the library until `cmuxer_clear`, so it is copied before.
    private let handle: OpaquePointer
    private let videoTrack: Int32
    private let audioTrack: Int32
    private let framesPerSecond: Int
    /// The time of the first sample; nil before it.
    private var zero: MonotonicTime?

    init(_ format: RestreamFormat) throws(Failure) {
        guard let handle = cmuxer_open(CMUXER_MPEG_TS) else { throw Failure(code: -12) }
        self.handle = handle
        framesPerSecond = format.framesPerSecond ?? 30
        videoTrack = try Self.check(
            cmuxer_add_video(
                handle, CMUXER_H264, Int32(clamping: format.width), Int32(clamping: format.height), 0,
                format.pictureHeader, format.pictureHeader.count))
        audioTrack = try Self.check(
            cmuxer_add_aac(handle, format.soundConfiguration, format.soundConfiguration.count))
        _ = try Self.check(cmuxer_begin(handle, 0))
        cmuxer_clear(handle)
    }

    deinit {
        cmuxer_free(handle)
    }

    /// Muxes a sample.
    /// - Returns: whole packets of 188 bytes each, concatenated.
    func write(_ sample: RestreamSample) throws(Failure) -> [UInt8] {
        let zero = zero ?? sample.time
        self.zero = zero
        let isSound = sample.kind == .sound
        // Times start at a second, so that none that is derived from them is negative.
        let time = max(sample.time.nanoseconds(since: zero) / 1_000, 0) + 1_000_000
        let duration = Int64(1_000_000) / Int64(max(framesPerSecond, 1))
        // A frame of AAC has 1,024 samples of 48 kHz: 21,333 µs.
        _ = try Self.check(
            cmuxer_write(
                handle, isSound ? audioTrack : videoTrack, time, time, isSound ? 21_333 : duration,
                sample.kind == .picture ? 0 : 1, sample.bytes, sample.bytes.count))
        // Flushed, so that no sample waits in the muxer for the next one.
        _ = try Self.check(cmuxer_flush(handle))
        return takePackets()
    }

    /// Copies the muxer's output, then releases it.
    private func takePackets() -> [UInt8] {
        var (packets, index, offset, count) = ([UInt8](), 0, Int64(0), 0)
        var bytes: UnsafePointer<UInt8>?
        while cmuxer_pending(handle, index, &offset, &bytes, &count) != 0 {
            packets += UnsafeBufferPointer(start: bytes, count: count)
            index += 1
        }
        cmuxer_clear(handle)
        return packets
    }

    /// Turns negative results into errors.
    private static func check(_ result: Int32) throws(Failure) -> Int32 {
        guard result >= 0 else { throw Failure(code: result) }
        return result
    }
}
