import Base
import Wire

/// Identifies a job of the transcoder; never reused.
package struct JobID: Hashable, Sendable {
    package let number: UInt64

    package init(number: UInt64) {
        self.number = number
    }
}

/// Identifies a track that is fed to a job; never reused.
package struct InputID: Hashable, Sendable {
    package let number: UInt64

    package init(number: UInt64) {
        self.number = number
    }
}

/// Identifies the origin of a bitstream across all jobs that decode it.
///
/// A source that crashes the transcoder repeatedly is not decoded again for a while (`DeathRegister`).
package struct SourceKey: Hashable, Sendable {
    package let number: UInt64

    package init(number: UInt64) {
        self.number = number
    }
}

/// What a job does.
///
/// Each kind defines the bodies of its request, commands and reports.
package enum JobKind: UInt8, Sendable {
    case preview = 1
    case composition = 2
    case pausePicture = 3
    case recording = 4
    case card = 5
    case rendition = 6
    case sound = 7
    case conversion = 8
    case packaging = 9
    case clips = 10
}

/// The codec of an input.
package enum InputCodec: UInt8, Sendable {
    case opus = 0
    case vp8 = 1
    case vp9 = 2
    case h264 = 3
    case av1 = 4
    /// From RTMP and SRT publishers, to be re-encoded as Opus.
    case aac = 5
    /// From RTMP publishers, to be re-encoded as VP8.
    case hevc = 6

    /// Nil for audio.
    package var video: VideoCodec? {
        switch self {
        case .opus, .aac: nil
        case .vp8: .vp8
        case .vp9: .vp9
        case .h264: .h264
        case .av1: .av1
        case .hevc: .hevc
        }
    }

    /// - Parameter video: nil for audio, which is Opus.
    package init(_ video: VideoCodec?) {
        self =
            switch video {
            case nil: .opus
            case .vp8: .vp8
            case .vp9: .vp9
            case .h264: .h264
            case .av1: .av1
            case .hevc: .hevc
            }
    }
}

/// One RTP packet of an input: the relevant fields of its header and extensions, and its payload.
package struct InputPacket: Equatable, Sendable {
    /// The source's own sequence number, extended beyond 16 bits.
    package var sequenceNumber: Int64
    /// As in the RTP header, in ticks of the codec's clock.
    package var timestamp: UInt32
    /// Whether this is the last packet of a frame.
    package var marker: Bool
    /// Codec of this packet; a publisher may change it at any time.
    package var codec: InputCodec
    /// Whether decoders can begin with this packet.
    package var isEntryPoint: Bool
    /// Changes when packets come from another source than before: another layer, or another encoder.
    ///
    /// Sequence numbers and time stamps of different sources are unrelated.
    package var epoch: UInt32
    /// When the server received it.
    package var arrival: MonotonicTime
    /// When the media was captured, on the server's clock; nil before the publisher's first sender report.
    ///
    /// Synchronizes audio and video of one speaker.
    package var captured: MonotonicTime?
    /// 0 (loudest) to 127, as -dBov; nil if the publisher does not send it.
    package var audioLevel: UInt8?
    /// The byte of the video orientation extension; nil if the packet has none.
    package var orientation: UInt8?
    /// Without padding, in the RTP format of the codec.
    package var payload: [UInt8]

    package init(
        sequenceNumber: Int64, timestamp: UInt32, marker: Bool, codec: InputCodec, isEntryPoint: Bool,
        epoch: UInt32 = 0, arrival: MonotonicTime, captured: MonotonicTime? = nil, audioLevel: UInt8? = nil,
        orientation: UInt8? = nil, payload: [UInt8] = []
    ) {
        self.sequenceNumber = sequenceNumber
        self.timestamp = timestamp
        self.marker = marker
        self.codec = codec
        self.isEntryPoint = isEntryPoint
        self.epoch = epoch
        self.arrival = arrival
        self.captured = captured
        self.audioLevel = audioLevel
        self.orientation = orientation
        self.payload = payload
    }

    /// Writes everything but the payload; 0xFF stands for nil in the last two fields.
    func writeHeader(to writer: inout MessageWriter) {
        writer.write(sequenceNumber)
        writer.write(timestamp)
        writer.write(marker)
        writer.write(codec.rawValue)
        writer.write(isEntryPoint)
        writer.write(epoch)
        writer.write(arrival)
        writer.write(captured)
        writer.write(audioLevel ?? 0xFF)
        writer.write(orientation ?? 0xFF)
    }

    init(reading reader: inout MessageReader) throws(WireError) {
        sequenceNumber = try reader.int64()
        timestamp = try reader.uint32()
        marker = try reader.bool()
        guard let codec = InputCodec(rawValue: try reader.uint8()) else { throw .invalid(.transcoderMessage) }
        self.codec = codec
        isEntryPoint = try reader.bool()
        epoch = try reader.uint32()
        arrival = try reader.time() ?? .zero
        captured = try reader.time()
        let level = try reader.uint8()
        audioLevel = level == 0xFF ? nil : level
        let turn = try reader.uint8()
        orientation = turn == 0xFF ? nil : turn
        payload = try reader.array()
    }
}

/// The messages from the server to its transcoder.
package enum TranscoderRequest: Equatable, Sendable {
    /// The first message of a process's life.
    case hello(version: UInt16)
    /// Begin a job; the bytes are the request of its kind.
    case begin(JobID, JobKind, [UInt8])
    /// A command to a job, in the format of its kind.
    case command(JobID, [UInt8])
    /// End a job, and all its inputs.
    case end(JobID)
    /// Add an input to a job; its packets follow.
    case open(InputID, for: JobID, from: SourceKey, InputCodec)
    /// A packet of an input.
    case packet(InputID, InputPacket)
    /// End an input.
    case close(InputID)

    /// The second field of a message's framing.
    private enum Kind {
        static let hello: UInt8 = 1
        static let begin: UInt8 = 2
        static let command: UInt8 = 3
        static let end: UInt8 = 4
        static let open: UInt8 = 5
        static let packet: UInt8 = 6
        static let close: UInt8 = 7
    }

    /// Serializes the message, framing included.
    package func append(to bytes: inout [UInt8]) {
        var body = MessageWriter()
        let kind: UInt8
        switch self {
        case .hello(let version):
            kind = Kind.hello
            body.write(version)
        case .begin(let job, let work, let details):
            kind = Kind.begin
            body.write(job.number)
            body.write(work.rawValue)
            body.write(details)
        case .command(let job, let details):
            kind = Kind.command
            body.write(job.number)
            body.write(details)
        case .end(let job):
            kind = Kind.end
            body.write(job.number)
        case .open(let input, let job, let source, let codec):
            kind = Kind.open
            body.write(input.number)
            body.write(job.number)
            body.write(source.number)
            body.write(codec.rawValue)
        case .packet(let input, let packet):
            return Self.append(packet, of: input, payload: packet.payload.span, to: &bytes)
        case .close(let input):
            kind = Kind.close
            body.write(input.number)
        }
        TranscoderChannel.append(kind, body.bytes, to: &bytes)
    }

    /// Serializes a packet whose payload is elsewhere, so that it is copied only once.
    static func append(
        _ packet: InputPacket, of input: InputID, payload: Span<UInt8>, to bytes: inout [UInt8]
    ) {
        TranscoderChannel.append(Kind.packet, to: &bytes) { body in
            body.write(input.number)
            packet.writeHeader(to: &body)
            body.write(payload)
        }
    }

    /// Parses a message.
    /// - Throws: for unknown kinds and values, and for bodies that are too short.
    package init(_ kind: UInt8, _ body: MessageReader) throws(WireError) {
        var body = body
        switch kind {
        case Kind.hello: self = .hello(version: try body.uint16())
        case Kind.begin:
            let job = JobID(number: try body.uint64())
            guard let work = JobKind(rawValue: try body.uint8()) else { throw .invalid(.transcoderMessage) }
            self = .begin(job, work, try body.array())
        case Kind.command: self = .command(JobID(number: try body.uint64()), try body.array())
        case Kind.end: self = .end(JobID(number: try body.uint64()))
        case Kind.open:
            let input = InputID(number: try body.uint64())
            let job = JobID(number: try body.uint64())
            let source = SourceKey(number: try body.uint64())
            guard let codec = InputCodec(rawValue: try body.uint8()) else {
                throw .invalid(.transcoderMessage)
            }
            self = .open(input, for: job, from: source, codec)
        case Kind.packet:
            self = .packet(InputID(number: try body.uint64()), try InputPacket(reading: &body))
        case Kind.close: self = .close(InputID(number: try body.uint64()))
        default: throw .invalid(.transcoderMessage)
        }
    }
}
