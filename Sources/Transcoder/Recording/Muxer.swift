import CMuxer
import Wire

/// The container format of a media file.
package enum RecordingContainer: UInt8, Sendable {
    /// For VP8, VP9 and AV1.
    case webM = 0
    /// For H.264: fragmented MP4, which Chromium, Firefox and Safari play as far as it is written.
    ///
    /// Of these browsers only Chromium plays H.264 in Matroska.
    case mp4 = 1

    /// The format for a codec.
    /// - Parameter codec: nil for audio alone, which is stored in WebM.
    package init(for codec: VideoCodec?) { self = codec == .h264 ? .mp4 : .webM }

    /// Without the dot.
    package var fileExtension: String { self == .webM ? "webm" : "mp4" }
    /// For `Content-Type`.
    package var contentType: String { self == .webM ? "video/webm" : "video/mp4" }
}

/// Writes whole frames into a container, by libavformat.
///
/// Bytes are not written to a file but collected: `takePieces` returns them with their offsets. After each `flush` the
/// file is playable so far.
@safe final class Muxer {
    /// An error of libavformat.
    struct Failure: Error {
        /// Its negative error code.
        let code: Int32
    }

    /// What players need before the first picture of a video track.
    struct Video: Equatable {
        var codec: VideoCodec
        var resolution: VideoResolution
        /// Parameter sets, for codecs that store them outside of frames; otherwise empty.
        var header: [UInt8]
        /// Most pictures that precede one in decoding order and follow it in display order.
        var reordered = 0
    }

    // Freed in `deinit`. Pending output belongs to the library until `cmuxer_clear`, so it is copied before.
    private let handle: OpaquePointer
    /// Output that has not been taken yet, in order.
    private var pieces: [Piece] = []
    private(set) var videoTrack: Int32?
    private(set) var audioTrack: Int32?

    /// Bytes, and their offset in the file.
    struct Piece: Equatable {
        let offset: UInt64
        let bytes: [UInt8]
    }

    /// Begins a file that is written to disk.
    init(_ container: RecordingContainer, video: Video?, hasAudio: Bool) throws(Failure) {
        guard let handle = unsafe cmuxer_open(container == .mp4 ? CMUXER_MP4 : CMUXER_WEBM) else {
            throw Failure(code: -12)
        }
        unsafe self.handle = unsafe handle
        if let video { videoTrack = unsafe try Self.addVideo(video, to: handle) }
        if hasAudio { audioTrack = unsafe try Self.check(cmuxer_add_audio(handle)) }
        try unsafe check(cmuxer_begin(handle, 0))
    }

    /// Begins MP4 fragments that can be played individually: each `flush` completes one with its own time.
    /// - Parameters:
    ///   - video: nil for sound alone.
    ///   - audio: an AudioSpecificConfig of AAC.
    init(segmentsOf video: Video?, audio: [UInt8]) throws(Failure) {
        guard let handle = unsafe cmuxer_open(CMUXER_MP4) else { throw Failure(code: -12) }
        unsafe self.handle = unsafe handle
        if let video { videoTrack = unsafe try Self.addVideo(video, to: handle) }
        audioTrack = unsafe try Self.check(cmuxer_add_aac(handle, audio, audio.count))
        try unsafe check(cmuxer_begin(handle, 1))
    }

    private static func addVideo(_ video: Video, to handle: OpaquePointer) throws(Failure) -> Int32 {
        unsafe try check(
            cmuxer_add_video(
                handle, name(of: video.codec), Int32(clamping: video.resolution.width),
                Int32(clamping: video.resolution.height),
                video.codec == .vp9 ? Int32(CodecName.vp9Level(of: video.resolution)) : 0, video.header,
                video.header.count))
    }

    deinit {
        unsafe cmuxer_free(handle)
    }

    /// Writes a frame.
    /// - Parameters:
    ///   - time: when it is decoded, in microseconds since the beginning; increases within a track.
    ///   - delay: from decoding to display, in microseconds; 0 without reordering.
    func write(
        _ bytes: [UInt8], track: Int32, at time: Int64, shownAfter delay: Int64 = 0, duration: Int64,
        isKeyFrame: Bool
    ) throws(Failure) {
        try unsafe check(
            cmuxer_write(
                handle, track, time, time + max(delay, 0), duration, isKeyFrame ? 1 : 0, bytes, bytes.count))
    }

    /// Completes the current cluster or fragment.
    func flush() throws(Failure) { try unsafe check(cmuxer_flush(handle)) }

    /// Completes the file, with an index for seeking.
    func end() throws(Failure) { try unsafe check(cmuxer_end(handle)) }

    /// Removes and returns the output since the last call.
    func takePieces() -> [Piece] {
        defer { pieces = [] }
        return pieces
    }

    /// Copies pending output, and throws if the library reported an error.
    private func check(_ result: Int32) throws(Failure) {
        var (index, offset, count) = (0, Int64(0), 0)
        var bytes: UnsafePointer<UInt8>?
        while unsafe cmuxer_pending(handle, index, &offset, &bytes, &count) != 0 {
            if count > 0, offset >= 0 {
                let piece = unsafe Array(UnsafeBufferPointer(start: bytes, count: count))
                pieces.append(Piece(offset: UInt64(offset), bytes: piece))
            }
            index += 1
        }
        unsafe cmuxer_clear(handle)
        try Self.check(result)
    }

    @discardableResult
    private static func check(_ result: Int32) throws(Failure) -> Int32 {
        guard result >= 0 else { throw Failure(code: result) }
        return result
    }

    private static func name(of codec: VideoCodec) -> cmuxer_codec {
        switch codec {
        case .vp8: CMUXER_VP8
        case .vp9: CMUXER_VP9
        case .h264: CMUXER_H264
        case .hevc: CMUXER_HEVC
        case .av1: CMUXER_AV1
        }
    }
}
