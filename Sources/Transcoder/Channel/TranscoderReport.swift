import Base
import Wire

/// What the transcoder tells the server.
package enum TranscoderReport: Equatable, Sendable {
    case hello(version: UInt16)
    /// What a job has to say, in its own words.
    case job(JobID, [UInt8])
    /// An RTP packet that a job made.
    case packet(JobID, OutputPacket)
    /// A job cannot go on with this input without a key frame.
    case keyFrameWanted(InputID)
    /// A job is over, or was refused, without having been ended.
    case ended(JobID)
    case load(TranscoderLoad)
    case log(Log.Level, event: String, text: String)

    private enum Kind {
        static let hello: UInt8 = 1
        static let job: UInt8 = 2
        static let packet: UInt8 = 3
        static let keyFrameWanted: UInt8 = 4
        static let load: UInt8 = 5
        static let log: UInt8 = 6
        static let ended: UInt8 = 7
    }

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

/// A whole RTP packet in the clear, for one of the tracks that a job makes.
package struct OutputPacket: Equatable, Sendable {
    /// Place among the job's tracks.
    package var source: UInt8
    /// Place among the track's layers, the smallest first; 0 where there is one.
    package var layer: UInt8
    /// When the media was captured, on the machine's monotonic clock.
    package var captured: MonotonicTime?
    /// At most `maximumLength`.
    package var bytes: [UInt8]

    /// Bytes that a packet may have: what a network takes.
    package static let limit = 1_400

    package init(source: UInt8, layer: UInt8, captured: MonotonicTime?, bytes: [UInt8]) {
        self.source = source
        self.layer = layer
        self.captured = captured
        self.bytes = bytes
    }
}

/// What the process has used since it began.
package struct TranscoderLoad: Equatable, Sendable {
    /// Of all threads.
    package var cpuNanoseconds: Int64
    /// In memory now, shared libraries included.
    package var residentBytes: Int64

    package init(cpuNanoseconds: Int64 = 0, residentBytes: Int64 = 0) {
        self.cpuNanoseconds = cpuNanoseconds
        self.residentBytes = residentBytes
    }
}
