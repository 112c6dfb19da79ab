import HLS
import Transcoder
import Wire

/// Renditions as variants of a multivariant playlist, also before they are encoded.
extension PackagedRendition {
    /// RFC 6381 codecs of `low`: H.264 High profile level 3.0 from OpenH264, and AAC-LC.
    private static let lowCodecs = "avc1.64001E,mp4a.40.2"
    /// RFC 6381 codecs of `source` at its largest encoded size: H.264 High profile level 3.1, and AAC-LC.
    private static let sourceCodecs = "avc1.64001F,mp4a.40.2"

    init(_ rendition: PlaylistQuery.Rendition) {
        self =
            switch rendition {
            case .source: .source
            case .original: .original
            case .low: .low
            case .sound: .sound
            }
    }

    /// The URI of this rendition's media playlist.
    /// - Parameter source: the URI of the source's media playlist.
    func uri(besides source: String) -> String {
        self == .source ? source : "\(source)?rendition=\(rawValue)"
    }

    /// The bitrates to announce, with room for key frames and for the MP4 boxes around the samples.
    /// - Parameters:
    ///   - size: of the encoded video.
    ///   - arePassed: whether the video is the publisher's own. Then no average is known, because the publisher may
    ///     send more.
    func bitrates(of size: VideoResolution, arePassed: Bool) -> LivePlaylist.Bitrates {
        let pictures = pictureBitrate(of: size)
        return LivePlaylist.Bitrates(
            peak: pictures * 3 / 2 + soundBitrate + 22_000,
            average: arePassed ? nil : pictures + soundBitrate + 12_000)
    }

    /// The variant that `source` will be once a player requests it, to be listed beside `original`.
    ///
    /// Not every player can decode `original`, so the source is always listed, but encoded only on request.
    /// - Returns: nil where `original` has no video.
    static func expectedSource(
        beside original: MultivariantPlaylist.Variant, uri: String
    ) -> MultivariantPlaylist.Variant? {
        guard let picture = original.resolution else { return nil }
        let source = PackagedRendition.source
        let size = source.size(of: VideoResolution(width: picture.width, height: picture.height))
        // What goes beside `original` is always encoded: the publisher does not send H.264.
        let meant = source.bitrates(of: size, arePassed: false)
        return MultivariantPlaylist.Variant(
            uri: uri, bandwidth: meant.peak, averageBandwidth: meant.average, codecs: sourceCodecs,
            resolution: MultivariantPlaylist.Resolution(width: size.width, height: size.height),
            framesPerSecond: PackagingTiming.framesPerSecond)
    }

    /// The variant that this rendition will be once a player requests it.
    /// - Returns: nil if it would not save a player enough to be worth an encode.
    func expectedVariant(
        besides source: MultivariantPlaylist.Variant, uri: String
    ) -> MultivariantPlaylist.Variant? {
        guard isReduced, let picture = source.resolution else { return nil }
        let size = size(of: VideoResolution(width: picture.width, height: picture.height))
        let meant = bitrates(of: size, arePassed: false)
        guard isLess(meant, than: source) else { return nil }
        let isPicture = self == .low
        return MultivariantPlaylist.Variant(
            uri: uri, bandwidth: meant.peak, averageBandwidth: meant.average,
            codecs: isPicture ? Self.lowCodecs : "mp4a.40.2",
            resolution: isPicture
                ? MultivariantPlaylist.Resolution(width: size.width, height: size.height) : nil,
            framesPerSecond: isPicture ? PackagingTiming.framesPerSecond : nil)
    }

    /// Whether its bitrate is at most two thirds of the source's.
    private func isLess(
        _ meant: LivePlaylist.Bitrates, than source: MultivariantPlaylist.Variant
    ) -> Bool {
        guard let own = meant.average, let average = source.averageBandwidth else {
            return meant.peak * 3 / 2 <= source.bandwidth
        }
        return own * 3 / 2 <= average
    }
}
