import Base
import Wire

/// The messages from the transcoder to the server.
package enum TranscoderReport: Equatable, Sendable {
    /// The first message of a process's life.
    case hello(version: UInt16)
    /// A report of a job, in the format of its kind.
    case job(JobID, [UInt8])
    /// An RTP packet that a job produced.
    case packet(JobID, OutputPacket)
    /// A job needs a key frame to continue with this input.
    case keyFrameWanted(InputID)
    /// A job ended without being told to, or was refused.
    case ended(JobID)
    /// Resources used, once per second.
    case load(TranscoderLoad)
    /// A log line; the process cannot write logs itself.
    case log(Log.Level, event: String, text: String)

    /// The second field of a message's framing.
    private enum Kind {
        static let hello: UInt8 = 1
        static let job: UInt8 = 2
        static let packet: UInt8 = 3
        static let keyFrameWanted: UInt8 = 4
        static let load: UInt8 = 5
        static let log: UInt8 = 6
        static let ended: UInt8 = 7
    }

    /// Serializes the message, framing included.
    package func append(to bytes: inout [UInt8]) {
        var body = MessageWriter()
        let kind: UInt8
        switch self {
        case .hello(let version):
            kind = Kind.hello
            body.write(version)
        case .job(let job, let details):
            kind = Kind.job
            body.write(job.number)
            body.write(details)
        case .packet(let job, let packet):
            kind = Kind.packet
            body.write(job.number)
            body.write(packet.source)
            body.write(packet.layer)
            body.write(packet.captured)
            body.write(packet.bytes)
        case .keyFrameWanted(let input):
            kind = Kind.keyFrameWanted
            body.write(input.number)
        case .ended(let job):
            kind = Kind.ended
            body.write(job.number)
        case .load(let load):
            kind = Kind.load
            body.write(load.cpuNanoseconds)
            body.write(load.residentBytes)
        case .log(let level, let event, let text):
            kind = Kind.log
            body.write(UInt8(clamping: Log.Level.allCases.firstIndex(of: level) ?? 0))
            body.write(event)
            body.write(text)
        }
        TranscoderChannel.append(kind, body.bytes, to: &bytes)
    }

    /// Parses a message, which may come from a transcoder under an attacker's control.
    /// - Throws: for unknown kinds and values, and for bodies that are too short.
    package init(_ kind: UInt8, _ body: MessageReader) throws(WireError) {
        var body = body
        switch kind {
        case Kind.hello: self = .hello(version: try body.uint16())
        case Kind.job: self = .job(JobID(number: try body.uint64()), try body.array())
        case Kind.packet:
            let job = JobID(number: try body.uint64())
            self = .packet(
                job,
                OutputPacket(
                    source: try body.uint8(), layer: try body.uint8(), captured: try body.time(),
                    bytes: try body.array(limit: OutputPacket.limit)))
        case Kind.keyFrameWanted: self = .keyFrameWanted(InputID(number: try body.uint64()))
        case Kind.ended: self = .ended(JobID(number: try body.uint64()))
        case Kind.load:
            self = .load(
                TranscoderLoad(cpuNanoseconds: try body.int64(), residentBytes: try body.int64()))
        case Kind.log:
            let levels = Log.Level.allCases
            let level = Int(try body.uint8())
            guard levels.indices.contains(level) else { throw .invalid(.transcoderMessage) }
            self = .log(levels[level], event: try body.text(limit: 64), text: try body.text(limit: 1_024))
        default: throw .invalid(.transcoderMessage)
        }
    }
}

/// A whole RTP packet, not encrypted, for one of the tracks that a job produces.
package struct OutputPacket: Equatable, Sendable {
    /// Index of the track among those of the job.
    package var source: UInt8
    /// Index of the layer within the track, the smallest first; 0 if there is only one.
    package var layer: UInt8
    /// When the media was captured, on the machine's monotonic clock.
    package var captured: MonotonicTime?
    /// At most `limit` bytes.
    package var bytes: [UInt8]

    /// Longest packet, in bytes: what fits into one datagram of common networks.
    package static let limit = 1_400

    package init(source: UInt8, layer: UInt8, captured: MonotonicTime?, bytes: [UInt8]) {
        self.source = source
        self.layer = layer
        self.captured = captured
        self.bytes = bytes
    }
}

/// Resources that the process has used since its start.
package struct TranscoderLoad: Equatable, Sendable {
    /// CPU time of all threads.
    package var cpuNanoseconds: Int64
    /// Resident memory now, including shared libraries.
    package var residentBytes: Int64

    package init(cpuNanoseconds: Int64 = 0, residentBytes: Int64 = 0) {
        self.cpuNanoseconds = cpuNanoseconds
        self.residentBytes = residentBytes
    }
}
