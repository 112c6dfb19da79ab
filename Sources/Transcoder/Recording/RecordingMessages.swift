import Wire

/// The request of a recording job.
package struct RecordingRequest: Equatable, Sendable {
    /// Whether a video track exists or may be waited for.
    package var expectsVideo: Bool
    /// Whether an audio track exists or may be waited for; the file begins without tracks that do not arrive in time.
    package var expectsAudio: Bool

    package init(expectsVideo: Bool, expectsAudio: Bool) {
        self.expectsVideo = expectsVideo
        self.expectsAudio = expectsAudio
    }

    /// The job's body.
    package var bytes: [UInt8] {
        var writer = MessageWriter()
        writer.write(expectsVideo)
        writer.write(expectsAudio)
        return writer.bytes
    }

    /// - Throws: for a body that `bytes` cannot produce.
    package init(_ bytes: [UInt8]) throws(WireError) {
        var reader = MessageReader(bytes)
        expectsVideo = try reader.bool()
        expectsAudio = try reader.bool()
    }
}

/// The only command of a recording job: complete the file.
package enum RecordingCommand {
    /// The body of the command.
    package static let stop: [UInt8] = [1]
}

/// A report of a recording job.
package enum RecordingReport: Equatable, Sendable {
    /// Why a file ended.
    package enum Cause: UInt8, Sendable {
        /// The recording was stopped.
        case stopped = 0
        /// The media does not fit into this file any more: another codec, or a track that it lacks.
        case changed = 1
        /// The muxer failed.
        case failed = 2
    }

    /// The file begins, with these tracks.
    case began(RecordingContainer, VideoCodec?, VideoResolution?, hasAudio: Bool)
    /// Bytes to write at this offset.
    case bytes(offset: UInt64, [UInt8])
    /// All bytes so far form a playable file.
    /// - `milliseconds`: its length.
    case flushed(milliseconds: UInt64)
    /// The file is complete.
    case finished(milliseconds: UInt64, Cause)

    /// Most bytes in one report.
    package static let pieceLimit = 256 << 10

    package var bytes: [UInt8] {
        var writer = MessageWriter()
        switch self {
        case .began(let container, let codec, let resolution, let hasAudio):
            writer.write(UInt8(1))
            writer.write(container.rawValue)
            writer.write(codec.map { InputCodec($0).rawValue } ?? 0)
            writer.write(UInt16(clamping: resolution?.width ?? 0))
            writer.write(UInt16(clamping: resolution?.height ?? 0))
            writer.write(hasAudio)
        case .bytes(let offset, let bytes):
            writer.write(UInt8(2))
            writer.write(offset)
            writer.write(bytes)
        case .flushed(let milliseconds):
            writer.write(UInt8(3))
            writer.write(milliseconds)
        case .finished(let milliseconds, let cause):
            writer.write(UInt8(4))
            writer.write(milliseconds)
            writer.write(cause.rawValue)
        }
        return writer.bytes
    }

    package init(_ bytes: [UInt8]) throws(WireError) {
        var reader = MessageReader(bytes)
        switch try reader.uint8() {
        case 1:
            guard let container = RecordingContainer(rawValue: try reader.uint8()),
                let codec = InputCodec(rawValue: try reader.uint8())
            else { throw .invalid(.transcoderMessage) }
            let (width, height) = (Int(try reader.uint16()), Int(try reader.uint16()))
            self = .began(
                container, codec.video,
                codec.video.map { _ in VideoResolution(width: width, height: height) },
                hasAudio: try reader.bool())
        case 2: self = .bytes(offset: try reader.uint64(), try reader.array())
        case 3: self = .flushed(milliseconds: try reader.uint64())
        case 4:
            let milliseconds = try reader.uint64()
            guard let cause = Cause(rawValue: try reader.uint8()) else {
                throw .invalid(.transcoderMessage)
            }
            self = .finished(milliseconds: milliseconds, cause)
        default: throw .invalid(.transcoderMessage)
        }
    }
}
