import Base
import CLinux
import Codecs
import Wire

/// The packets of one key frame, from which a preview is made.
package struct PreviewRequest: Equatable, Sendable {
    /// Refused after it has crashed the process three times.
    package var source: SourceKey
    /// Codec of `payloads`.
    package var codec: VideoCodec
    /// Requested width in pixels; the height follows from the picture.
    package var width: UInt16
    /// The byte of the video orientation extension.
    package var orientation: UInt8
    /// The payloads of the RTP packets, in order.
    package var payloads: [[UInt8]]

    package init(
        source: SourceKey, codec: VideoCodec, width: UInt16 = 360, orientation: UInt8 = 0,
        payloads: [[UInt8]]
    ) {
        self.source = source
        self.codec = codec
        self.width = width
        self.orientation = orientation
        self.payloads = payloads
    }

    /// The job's body.
    package var bytes: [UInt8] {
        var writer = MessageWriter()
        writer.write(source.number)
        writer.write(InputCodec(codec).rawValue)
        writer.write(width)
        writer.write(orientation)
        writer.write(UInt32(clamping: payloads.count))
        for payload in payloads { writer.write(payload) }
        return writer.bytes
    }

    /// - Throws: for a body that `bytes` cannot produce.
    package init(_ bytes: [UInt8]) throws(WireError) {
        var reader = MessageReader(bytes)
        source = SourceKey(number: try reader.uint64())
        guard let codec = InputCodec(rawValue: try reader.uint8())?.video else {
            throw .invalid(.transcoderMessage)
        }
        self.codec = codec
        width = try reader.uint16()
        orientation = try reader.uint8()
        let count = try reader.uint32()
        payloads = []
        for _ in 0..<count { payloads.append(try reader.array()) }
    }
}

/// A small picture of a stream, in all formats in which it is served.
package struct PreviewPicture: Equatable, Sendable {
    /// In pixels, upright.
    package var width: UInt16
    /// In pixels, upright.
    package var height: UInt16
    /// Placeholder that pages show until the picture has loaded.
    package var blurHash: String
    /// A complete file.
    package var webP: [UInt8]
    /// A complete file, for players and sites without WebP.
    package var jpeg: [UInt8]
    /// The picture so small that nothing is recognizable, for people who may not see the stream; as WebP.
    package var blurredWebP: [UInt8] = []
    /// The same picture as JPEG.
    package var blurredJPEG: [UInt8] = []
    /// CPU time spent on the preview.
    package var cpuNanoseconds: Int64

    package init(
        width: UInt16, height: UInt16, blurHash: String, webP: [UInt8], jpeg: [UInt8],
        cpuNanoseconds: Int64 = 0
    ) {
        self.width = width
        self.height = height
        self.blurHash = blurHash
        self.webP = webP
        self.jpeg = jpeg
        self.cpuNanoseconds = cpuNanoseconds
    }

    /// Encodes a picture in all formats.
    init(of picture: Picture) throws(CodecError) {
        self.init(
            width: UInt16(clamping: picture.width), height: UInt16(clamping: picture.height),
            blurHash: try BlurHash.encode(picture), webP: try WebPEncoder.encode(picture),
            jpeg: try JPEGEncoder.encode(picture))
        let blurred = try picture.scaled(
            width: max(picture.width / Self.blur, 4), height: max(picture.height / Self.blur, 4))
        blurredWebP = try WebPEncoder.encode(blurred)
        blurredJPEG = try JPEGEncoder.encode(blurred)
    }

    /// Factor by which the blurred picture is smaller in each direction.
    private static let blur = 16

    /// The report's body.
    /// - Parameter picture: nil if none could be made.
    static func bytes(_ picture: PreviewPicture?) -> [UInt8] {
        var writer = MessageWriter()
        writer.write(picture != nil)
        guard let picture else { return writer.bytes }
        writer.write(picture.width)
        writer.write(picture.height)
        writer.write(picture.blurHash)
        writer.write(picture.webP)
        writer.write(picture.jpeg)
        writer.write(picture.blurredWebP)
        writer.write(picture.blurredJPEG)
        writer.write(picture.cpuNanoseconds)
        return writer.bytes
    }

    /// Parses a report.
    /// - Returns: nil if no picture could be made.
    package static func read(_ bytes: [UInt8]) throws(WireError) -> PreviewPicture? {
        var reader = MessageReader(bytes)
        guard try reader.bool() else { return nil }
        var picture = PreviewPicture(
            width: try reader.uint16(), height: try reader.uint16(), blurHash: try reader.text(limit: 128),
            webP: try reader.array(limit: 1 << 20), jpeg: try reader.array(limit: 1 << 20))
        picture.blurredWebP = try reader.array(limit: 1 << 16)
        picture.blurredJPEG = try reader.array(limit: 1 << 16)
        picture.cpuNanoseconds = try reader.int64()
        return picture
    }
}

/// Decodes one key frame and creates a preview from it.
final class PreviewJob: TranscoderJob {
    init?(_ body: [UInt8], _ environment: JobEnvironment) {
        guard let request = try? PreviewRequest(body) else { return nil }
        // One at a time and at idle priority: previews can wait, and must not take CPU time from live media.
        SpareThread.shared.run {
            PreviewPicture.bytes(try? Self.make(request, environment.register))
        } then: { picture in
            environment.report(picture)
            environment.outlet.send(.ended(environment.id))
        }
    }

    func end() {}

    /// Decodes, scales, rotates and encodes; nil if the frame shows no picture.
    static func make(_ request: PreviewRequest, _ register: DecodingRegister) throws -> PreviewPicture? {
        let began = Self.threadTime
        let frame = try FrameDepacketizer.frame(request.codec, request.payloads)
        let decoded = try register.whileDecoding(request.source) {
            try VideoDecoder(request.codec).decode(frame)
        }
        guard let decoded else { return nil }
        let turn = Picture.Turn(orientation: request.orientation)
        let isOnItsSide = turn == .left || turn == .right
        let width = max(Int(request.width), 1)
        // Scaled before the other steps, whose cost grows with the number of pixels. Never enlarged.
        let shown = isOnItsSide ? decoded.height : decoded.width
        let scale = min(Double(width) / Double(shown), 1)
        let small = try decoded.scaled(
            width: max(Int((Double(decoded.width) * scale).rounded()), 1),
            height: max(Int((Double(decoded.height) * scale).rounded()), 1))
        let upright = try small.turned(turn)
        var preview = try PreviewPicture(of: upright)
        preview.cpuNanoseconds = Self.threadTime - began
        return preview
    }

    private static var threadTime: Int64 { clinux_thread_nanoseconds() }
}

extension Picture.Turn {
    /// The rotation that makes a picture upright; none for a byte that is not valid.
    /// - Parameter orientation: the byte of the video orientation extension.
    package init(orientation: UInt8) {
        switch (try? VideoOrientation(parsing: [orientation].span))?.rotation {
        case .clockwise90: self = .right
        case .clockwise180: self = .half
        case .clockwise270: self = .left
        default: self = .none
        }
    }
}
