import Base
import Wire

/// What a packaging job is asked for.
package enum PackagingCommand: Equatable, Sendable {
    /// Whether samples are reported, too, from now on.
    case reportSamples(Bool)

    /// The command's body.
    package var bytes: [UInt8] {
        switch self {
        case .reportSamples(let isOn): [1, isOn ? 1 : 0]
        }
    }

    /// Nil for what `bytes` does not make.
    package init?(_ bytes: [UInt8]) {
        guard bytes.count == 2, bytes[0] == 1, bytes[1] <= 1 else { return nil }
        self = .reportSamples(bytes[1] == 1)
    }
}

/// What a packaging job reports.
package enum PackagingReport: Equatable, Sendable {
    /// What follows belongs to this initialization segment, and to no time line that was there before.
    case began(Beginning)
    /// A part of a segment: whole pictures, and the sound that belongs to them.
    case part(Part)
    /// What decoders of samples have to know; comes with `began`.
    case format(Format)
    /// What parts are made of, as soon as it is there, where that was asked for.
    case sample(Sample)

    /// What players have to know of a time line.
    package struct Beginning: Equatable, Sendable {
        package var initialization: [UInt8]
        /// Of both tracks, as RFC 6381 writes them.
        package var codecs: String
        package var resolution: VideoResolution
        /// Nil where pictures are the publisher's own, which come as they like.
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

    /// How pictures and sound are encoded.
    package struct Format: Equatable, Sendable {
        package var resolution: VideoResolution
        /// Nil where pictures are the publisher's own, which come as they like.
        package var framesPerSecond: Int?
        /// Parameter sets of H.264, with start codes.
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

    /// A picture, with start codes, or a frame of AAC.
    package struct Sample: Equatable, Sendable {
        package enum Kind: UInt8, Sendable {
            case sound, picture, keyFrame
        }

        package var kind: Kind
        /// Counts all samples of a job, so that a gap is seen.
        package var number: UInt64
        /// When it is shown or heard.
        package var time: MonotonicTime
        package var bytes: [UInt8]

        package init(kind: Kind, number: UInt64, time: MonotonicTime, bytes: [UInt8]) {
            self.kind = kind
            self.number = number
            self.time = time
            self.bytes = bytes
        }
    }

    /// A part, as fragments of MP4.
    package struct Part: Equatable, Sendable {
        package var bytes: [UInt8]
        /// How long its pictures are shown.
        package var milliseconds: UInt32
        /// Whether a segment begins here, with a key frame.
        package var startsSegment: Bool
        package var endsSegment: Bool
        /// When its first picture was captured.
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

    /// - Throws: for what `bytes` does not make.
    package init(_ bytes: [UInt8]) throws(WireError) {
        var reader = MessageReader(bytes)
        switch try reader.uint8() {
        case 1:
            let (initialization, codecs) = (try reader.array(), try reader.text(limit: 100))
            // Goes into playlists as it is.
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

    /// In bytes, of what decoders have to know.
    private static let headerLimit = 4_096

    private static func isPlain(_ byte: UInt8) -> Bool {
        switch byte {
        case UInt8(ascii: "a")...UInt8(ascii: "z"), UInt8(ascii: "A")...UInt8(ascii: "Z"),
            UInt8(ascii: "0")...UInt8(ascii: "9"), UInt8(ascii: "."), UInt8(ascii: ","):
            true
        default: false
        }
    }
}
