import Base
import Codecs
import Wire

/// One of the forms in which a programme is packaged; by the name that requests give it.
package enum PackagedRendition: String, CaseIterable, Sendable {
    /// In H.264, which every player takes: as its publisher sends it, or as large as is encoded for it.
    case source
    /// As its publisher sends it, in HEVC, VP9 or AV1; H.264 only while that cannot be passed on.
    case original
    /// For links that do not carry that.
    case low
    /// For links that carry no pictures.
    case sound

    /// Of pictures that are encoded, in pixels; a smaller one stays as it is.
    private var sides: (long: Int, short: Int) { self == .low ? (640, 360) : (1_280, 720) }

    /// Whether it is made for links that do not carry the publisher's pictures.
    package var isReduced: Bool {
        switch self {
        case .source, .original: false
        case .low, .sound: true
        }
    }

    /// Pictures in these go on as their publisher encoded them.
    ///
    /// VP8 has no place in MP4 that players know.
    package var passable: Set<VideoCodec> {
        switch self {
        case .source: [.h264]
        case .original: [.h264, .hevc, .vp9, .av1]
        case .low, .sound: []
        }
    }

    /// In bits a second.
    package var soundBitrate: Int { isReduced ? 64_000 : 128_000 }

    /// Of pictures that are encoded, in bits a second: two megabits at 1280x720, and less for less.
    package func pictureBitrate(of size: VideoResolution) -> Int {
        switch self {
        case .source, .original: max(size.width * size.height * 9 / 4, 400_000)
        case .low: 336_000
        case .sound: 0
        }
    }

    /// The size in which a picture of this one is encoded, in even numbers.
    package func size(of picture: VideoResolution) -> VideoResolution {
        let (width, height) = (max(picture.width, 16), max(picture.height, 16))
        let scale = min(
            1, Double(sides.long) / Double(max(width, height)),
            Double(sides.short) / Double(min(width, height)))
        let fitting = [width, height].map { max(Int((Double($0) * scale).rounded()) & ~1, 16) }
        return VideoResolution(width: fitting[0], height: fitting[1])
    }

    /// A picture in the size in which it is encoded.
    func scaled(_ picture: Picture) throws(CodecError) -> Picture {
        let fitting = size(of: VideoResolution(width: picture.width, height: picture.height))
        return try picture.scaled(width: fitting.width, height: fitting.height)
    }
}

/// What a packaging job is asked for.
package struct PackagingRequest: Equatable, Sendable {
    package var rendition: PackagedRendition
    package var timing: PackagingTiming
    /// What is 0 in the media times of all renditions of a stream; nil where a time line begins at 0.
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

    /// Nil for what `bytes` does not make.
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
