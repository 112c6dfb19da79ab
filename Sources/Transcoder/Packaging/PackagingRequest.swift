import Base
import Codecs
import Wire

/// One of the renditions of a programme by HLS; the raw value is its name in requests.
package enum PackagedRendition: String, CaseIterable, Sendable {
    /// H.264, which every player supports: passed through from the publisher, or encoded at full size.
    case source
    /// The publisher's HEVC, VP9 or AV1, passed through; H.264 only while that is not possible.
    case original
    /// A smaller picture, for slow links.
    case low
    /// Sound without pictures, for very slow links.
    case sound

    /// Largest size of encoded pictures, in pixels; smaller pictures keep their size.
    private var sides: (long: Int, short: Int) { self == .low ? (640, 360) : (1_280, 720) }

    /// Whether the rendition is made for links that are too slow for the publisher's pictures.
    package var isReduced: Bool {
        switch self {
        case .source, .original: false
        case .low, .sound: true
        }
    }

    /// Codecs whose pictures are passed through.
    ///
    /// VP8 is not among them, because players do not support it in MP4.
    package var passable: Set<VideoCodec> {
        switch self {
        case .source: [.h264]
        case .original: [.h264, .hevc, .vp9, .av1]
        case .low, .sound: []
        }
    }

    /// In bits per second.
    package var soundBitrate: Int { isReduced ? 64_000 : 128_000 }

    /// Bit rate of encoded pictures: two megabits per second at 1280x720, proportionally less for fewer pixels.
    package func pictureBitrate(of size: VideoResolution) -> Int {
        switch self {
        case .source, .original: max(size.width * size.height * 9 / 4, 400_000)
        case .low: 336_000
        case .sound: 0
        }
    }

    /// The size in which a picture is encoded: proportions kept, even sides.
    package func size(of picture: VideoResolution) -> VideoResolution {
        let (width, height) = (max(picture.width, 16), max(picture.height, 16))
        let scale = min(
            1, Double(sides.long) / Double(max(width, height)),
            Double(sides.short) / Double(min(width, height)))
        let fitting = [width, height].map { max(Int((Double($0) * scale).rounded()) & ~1, 16) }
        return VideoResolution(width: fitting[0], height: fitting[1])
    }

    /// A picture scaled to the size in which it is encoded.
    func scaled(_ picture: Picture) throws(CodecError) -> Picture {
        let fitting = size(of: VideoResolution(width: picture.width, height: picture.height))
        return try picture.scaled(width: fitting.width, height: fitting.height)
    }
}

/// The request of a packaging job.
package struct PackagingRequest: Equatable, Sendable {
    /// What to produce.
    package var rendition: PackagedRendition
    /// Lengths of parts and segments.
    package var timing: PackagingTiming
    /// The time that is 0 in the media times of all renditions of a stream; nil if each time line begins at 0.
    package var origin: MonotonicTime?

    package init(
        rendition: PackagedRendition = .source, timing: PackagingTiming = .usual, origin: MonotonicTime? = nil
    ) {
        self.rendition = rendition
        self.timing = timing
        self.origin = origin
    }

    /// The request's body.
    package var bytes: [UInt8] {
        var writer = MessageWriter()
        writer.write(rendition.rawValue)
        writer.write(UInt8(clamping: timing.partMilliseconds / 100))
        writer.write(origin)
        return writer.bytes
    }

    /// Nil for a body that `bytes` cannot produce.
    package init?(_ bytes: [UInt8]) {
        var reader = MessageReader(bytes)
        do throws(WireError) {
            let (name, hundreds) = (try reader.text(limit: 10), Int(try reader.uint8()))
            let origin = try reader.time()
            guard let rendition = PackagedRendition(rawValue: name),
                let timing = PackagingTiming(partMilliseconds: hundreds * 100)
            else { return nil }
            self.init(rendition: rendition, timing: timing, origin: origin)
        } catch {
            return nil
        }
    }
}
