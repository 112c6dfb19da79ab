import Base
import Wire

/// A command to a packaging job.
package enum PackagingCommand: Equatable, Sendable {
    /// Whether to report samples from now on.
    case reportSamples(Bool)

    /// The command's body.
    package var bytes: [UInt8] {
        switch self {
        case .reportSamples(let isOn): [1, isOn ? 1 : 0]
        }
    }

    /// Nil for a body that `bytes` cannot produce.
    package init?(_ bytes: [UInt8]) {
        guard bytes.count == 2, bytes[0] == 1, bytes[1] <= 1 else { return nil }
        self = .reportSamples(bytes[1] == 1)
    }
}

/// A report of a packaging job.
package enum PackagingReport: Equatable, Sendable {
    /// A new time line: the parts that follow belong to this initialization segment.
    case began(Beginning)
    /// A part of a segment: whole pictures, and the sound that belongs to them.
    case part(Part)
    /// What decoders of samples need; follows `began` if pictures are H.264.
    case format(Format)
    /// A sample of the parts, as soon as it exists; only if samples were requested.
    case sample(Sample)

    /// What players need to play a time line.
    package struct Beginning: Equatable, Sendable {
        /// The initialization segment (`ftyp` and `moov`).
        package var initialization: [UInt8]
        /// The codecs of all tracks, in the syntax of RFC 6381.
        package var codecs: String
        /// 0 x 0 for sound alone.
        package var resolution: VideoResolution
        /// Nil for sound alone, and for passed pictures, whose rate is the publisher's.
        package var framesPerSecond: Int?

        package init(
            initialization: [UInt8], codecs: String, resolution: VideoResolution, framesPerSecond: Int?
        ) {
            self.initialization = initialization
            self.codecs = codecs
            self.resolution = resolution
            self.framesPerSecond = framesPerSecond
        }
    }

    /// The encoding of pictures and sound.
    package struct Format: Equatable, Sendable {
        /// In pixels.
        package var resolution: VideoResolution
        /// Nil for passed pictures, whose rate is the publisher's.
        package var framesPerSecond: Int?
        /// H.264 parameter sets, with start codes.
        package var pictureHeader: [UInt8]
        /// An AudioSpecificConfig.
        package var soundConfiguration: [UInt8]

        package init(
            resolution: VideoResolution, framesPerSecond: Int?, pictureHeader: [UInt8],
            soundConfiguration: [UInt8]
        ) {
            self.resolution = resolution
            self.framesPerSecond = framesPerSecond
            self.pictureHeader = pictureHeader
            self.soundConfiguration = soundConfiguration
        }
    }

    /// A picture with start codes, or a frame of AAC.
    package struct Sample: Equatable, Sendable {
        /// What the sample contains; `picture` refers to earlier pictures.
        package enum Kind: UInt8, Sendable {
            case sound, picture, keyFrame
        }

        package var kind: Kind
        /// Counts all samples of a job, so that receivers detect gaps.
        package var number: UInt64
        /// When the sample is shown or heard.
        package var time: MonotonicTime
        package var bytes: [UInt8]

        package init(kind: Kind, number: UInt64, time: MonotonicTime, bytes: [UInt8]) {
            self.kind = kind
            self.number = number
            self.time = time
            self.bytes = bytes
        }
    }

    /// A part, as one or more MP4 fragments.
    package struct Part: Equatable, Sendable {
        package var bytes: [UInt8]
        /// Duration of the part.
        package var milliseconds: UInt32
        /// Whether the part begins a segment, with a key frame.
        package var startsSegment: Bool
        /// Whether the part completes a segment.
        package var endsSegment: Bool
        /// When its first picture was captured, on the server's clock.
        package var captured: MonotonicTime

        package init(
            bytes: [UInt8], milliseconds: UInt32, startsSegment: Bool, endsSegment: Bool,
            captured: MonotonicTime
        ) {
            self.bytes = bytes
            self.milliseconds = milliseconds
            self.startsSegment = startsSegment
            self.endsSegment = endsSegment
            self.captured = captured
        }
    }

    /// The report's body.
    package var bytes: [UInt8] {
        var writer = MessageWriter()
        switch self {
        case .began(let beginning):
            writer.write(UInt8(1))
            writer.write(beginning.initialization)
            writer.write(beginning.codecs)
            Self.write(beginning.resolution, beginning.framesPerSecond, into: &writer)
        case .part(let part):
            writer.write(UInt8(2))
            writer.write(part.bytes)
            writer.write(part.milliseconds)
            writer.write(part.startsSegment)
            writer.write(part.endsSegment)
            writer.write(part.captured)
        case .format(let format):
            writer.write(UInt8(3))
            Self.write(format.resolution, format.framesPerSecond, into: &writer)
            writer.write(format.pictureHeader)
            writer.write(format.soundConfiguration)
        case .sample(let sample):
            writer.write(UInt8(4))
            writer.write(sample.kind.rawValue)
            writer.write(sample.number)
            writer.write(sample.time)
            writer.write(sample.bytes)
        }
        return writer.bytes
    }

    /// Parses a report, which may come from a transcoder under an attacker's control.
    /// - Throws: for a body that `bytes` cannot produce.
    package init(_ bytes: [UInt8]) throws(WireError) {
        var reader = MessageReader(bytes)
        switch try reader.uint8() {
        case 1:
            let (initialization, codecs) = (try reader.array(), try reader.text(limit: 100))
            // Copied into playlists, so only characters of codec names are permitted.
            guard codecs.utf8.allSatisfy(Self.isPlain) else { throw .invalid(.transcoderMessage) }
            let (resolution, rate) = try Self.readPictures(&reader)
            self = .began(
                Beginning(
                    initialization: initialization, codecs: codecs, resolution: resolution,
                    framesPerSecond: rate))
        case 2:
            self = .part(
                Part(
                    bytes: try reader.array(), milliseconds: try reader.uint32(),
                    startsSegment: try reader.bool(), endsSegment: try reader.bool(),
                    captured: try reader.time() ?? .zero))
        case 3:
            let (resolution, rate) = try Self.readPictures(&reader)
            self = .format(
                Format(
                    resolution: resolution, framesPerSecond: rate,
                    pictureHeader: try reader.array(limit: Self.headerLimit),
                    soundConfiguration: try reader.array(limit: Self.headerLimit)))
        case 4:
            guard let kind = Sample.Kind(rawValue: try reader.uint8()) else {
                throw .invalid(.transcoderMessage)
            }
            self = .sample(
                Sample(
                    kind: kind, number: try reader.uint64(), time: try reader.time() ?? .zero,
                    bytes: try reader.array()))
        default: throw .invalid(.transcoderMessage)
        }
    }

    /// Writes size and rate; rate 0 stands for nil.
    private static func write(_ resolution: VideoResolution, _ rate: Int?, into writer: inout MessageWriter) {
        writer.write(UInt16(clamping: resolution.width))
        writer.write(UInt16(clamping: resolution.height))
        writer.write(UInt8(clamping: rate ?? 0))
    }

    private static func readPictures(
        _ reader: inout MessageReader
    ) throws(WireError) -> (VideoResolution, framesPerSecond: Int?) {
        let (width, height) = (Int(try reader.uint16()), Int(try reader.uint16()))
        let rate = Int(try reader.uint8())
        return (VideoResolution(width: width, height: height), rate == 0 ? nil : rate)
    }

    /// Longest parameter sets or configuration, in bytes.
    private static let headerLimit = 4_096

    /// Whether a byte may occur in a list of codec names.
    private static func isPlain(_ byte: UInt8) -> Bool {
        switch byte {
        case UInt8(ascii: "a")...UInt8(ascii: "z"), UInt8(ascii: "A")...UInt8(ascii: "Z"),
            UInt8(ascii: "0")...UInt8(ascii: "9"), UInt8(ascii: "."), UInt8(ascii: ","):
            true
        default: false
        }
    }
}
