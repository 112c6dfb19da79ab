import CComposing

/// Decodes the packets of one Opus stream to stereo at 48 kHz, and makes up for those that are missing.
/// - Source: RFC 6716 §4 (decoder; concealment is the library's own).
@safe package final class OpusDecoder {
    /// Samples of a channel in the longest packet: 120 ms.
    package static let maximumFrames = 5_760
    /// Sound is stereo throughout, whatever was sent.
    package static let channels = 2

    // Freed in `deinit`; the library keeps nothing of what it is given.
    private let handle: OpaquePointer

    /// - Throws: where libopus has no memory for its state.
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

    /// The sound of a packet, left and right in turn.
    package func decode(_ packet: [UInt8]) throws(CodecError) -> [Float] {
        guard !packet.isEmpty else { throw .failed }
        return try decode(packet, frames: Self.maximumFrames, isRecovery: false)
    }

    /// The sound of the packet before `packet`, which was lost: as the sender put it into this one, or a guess.
    /// - Parameter frames: how long it was, in samples of a channel; a multiple of 120.
    package func recover(from packet: [UInt8], frames: Int) throws(CodecError) -> [Float] {
        try decode(packet, frames: frames, isRecovery: true)
    }

    /// A guess at sound that is missing.
    /// - Parameter frames: how long it is, in samples of a channel; a multiple of 120.
    package func conceal(frames: Int) throws(CodecError) -> [Float] {
        try decode([], frames: frames, isRecovery: false)
    }

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
    /// Samples of a channel in one packet: 20 ms.
    package static let frames = 960
    private static let maximumPacket = 1_275

    // Freed in `deinit`; the library keeps nothing of what it is given.
    private let handle: OpaquePointer

    /// - Parameters:
    ///   - bitrate: in bits a second.
    ///   - hasRecovery: whether a copy of each packet is in the next, for whoever loses one. Only the modes for speech
    ///     have that (RFC 6716 §2.1.7): it costs four times as much of a processor, and music suffers.
    package init(bitrate: Int, hasRecovery: Bool = true) throws(CodecError) {
        var status: Int32 = 0
        guard
            let handle = unsafe opus_encoder_create(
                48_000, Int32(OpusDecoder.channels), OPUS_APPLICATION_AUDIO, &status),
            status == OPUS_OK
        else { throw .unavailable }
        let recovery: Int32 = hasRecovery ? 1 : 0
        guard unsafe ccomposing_opus_configure(handle, Int32(clamping: bitrate), recovery, 10, 5) == 0 else {
            unsafe opus_encoder_destroy(handle)
            throw .failed
        }
        unsafe self.handle = unsafe handle
    }

    deinit {
        unsafe opus_encoder_destroy(handle)
    }

    /// - Parameter samples: 960 pairs, left and right in turn.
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
