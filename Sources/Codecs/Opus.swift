import CComposing

/// Decodes the packets of one Opus stream to stereo at 48 kHz, and conceals lost packets.
/// - Source: RFC 6716 §4 (decoder; concealment is the library's own).
@safe package final class OpusDecoder {
    /// Samples per channel in the longest packet: 120 ms.
    package static let maximumFrames = 5_760
    /// Decoded sound is always stereo, even if the packet is mono.
    package static let channels = 2

    // Freed in `deinit`. The library keeps no reference to its input.
    private let handle: OpaquePointer

    /// - Throws: `.unavailable` if libopus cannot allocate its state.
    package init() throws(CodecError) {
        var status: Int32 = 0
        guard let handle = unsafe opus_decoder_create(48_000, Int32(Self.channels), &status),
            status == OPUS_OK
        else { throw .unavailable }
        unsafe self.handle = unsafe handle
    }

    deinit {
        unsafe opus_decoder_destroy(handle)
    }

    /// Decodes a packet.
    /// - Returns: interleaved samples, left first.
    package func decode(_ packet: [UInt8]) throws(CodecError) -> [Float] {
        guard !packet.isEmpty else { throw .failed }
        return try decode(packet, frames: Self.maximumFrames, isRecovery: false)
    }

    /// Recovers the lost packet before `packet`, from the copy that `packet` contains or by concealment.
    /// - Parameter frames: length of the lost packet, in samples per channel; a multiple of 120 (2.5 ms).
    package func recover(from packet: [UInt8], frames: Int) throws(CodecError) -> [Float] {
        try decode(packet, frames: frames, isRecovery: true)
    }

    /// Conceals missing sound, continuing what was decoded before.
    /// - Parameter frames: length of the gap, in samples per channel; a multiple of 120 (2.5 ms).
    package func conceal(frames: Int) throws(CodecError) -> [Float] {
        try decode([], frames: frames, isRecovery: false)
    }

    /// - Parameters:
    ///   - packet: empty for concealment, which libopus expects as a null pointer.
    ///   - frames: capacity of the result, which is also its length where nothing is decoded from `packet` itself.
    private func decode(_ packet: [UInt8], frames: Int, isRecovery: Bool) throws(CodecError) -> [Float] {
        guard (120...Self.maximumFrames).contains(frames), packet.count <= 1 << 16 else { throw .failed }
        var decoded: Int32 = 0
        let samples = unsafe [Float](unsafeUninitializedCapacity: frames * Self.channels) { buffer, count in
            guard let base = buffer.baseAddress else { return }
            decoded = unsafe opus_decode_float(
                handle, packet.isEmpty ? nil : packet, Int32(packet.count), base, Int32(frames),
                isRecovery ? 1 : 0)
            count = max(Int(decoded), 0) * Self.channels
        }
        guard decoded > 0 else { throw .failed }
        return samples
    }
}

/// Encodes stereo at 48 kHz as Opus.
@safe package final class OpusEncoder {
    /// Samples per channel in one packet: 20 ms.
    package static let frames = 960
    /// Longest Opus frame, in bytes (RFC 6716 §3.4).
    private static let maximumPacket = 1_275

    // Freed in `deinit`. The library keeps no reference to its input.
    private let handle: OpaquePointer

    /// - Parameters:
    ///   - bitrate: in bits per second.
    ///   - hasRecovery: whether each packet contains a copy of the one before, for receivers that lost it. Only the
    ///     speech modes support this (RFC 6716 §2.1.7): they take four times the processor time, and music sounds
    ///     worse.
    package init(bitrate: Int, hasRecovery: Bool = true) throws(CodecError) {
        var status: Int32 = 0
        guard
            let handle = unsafe opus_encoder_create(
                48_000, Int32(OpusDecoder.channels), OPUS_APPLICATION_AUDIO, &status),
            status == OPUS_OK
        else { throw .unavailable }
        let recovery: Int32 = hasRecovery ? 1 : 0
        // Tuned for ten percent loss, at complexity 5 of 10.
        guard unsafe ccomposing_opus_configure(handle, Int32(clamping: bitrate), recovery, 10, 5) == 0 else {
            unsafe opus_encoder_destroy(handle)
            throw .failed
        }
        unsafe self.handle = unsafe handle
    }

    deinit {
        unsafe opus_encoder_destroy(handle)
    }

    /// Encodes 20 ms of sound.
    /// - Parameter samples: 960 pairs, interleaved, left first.
    package func encode(_ samples: [Float]) throws(CodecError) -> [UInt8] {
        guard samples.count == Self.frames * OpusDecoder.channels else { throw .failed }
        var written: Int32 = 0
        let packet = unsafe [UInt8](unsafeUninitializedCapacity: Self.maximumPacket) { buffer, count in
            guard let base = buffer.baseAddress else { return }
            written = unsafe opus_encode_float(
                handle, samples, Int32(Self.frames), base, Int32(Self.maximumPacket))
            count = max(Int(written), 0)
        }
        guard written > 0 else { throw .failed }
        return packet
    }
}
