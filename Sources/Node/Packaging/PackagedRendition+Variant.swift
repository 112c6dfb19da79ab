import HLS
import Transcoder
import Wire

extension PackagedRendition {
    /// What OpenH264 and the AAC encoder make for links that carry little.
    private static let lowCodecs = "avc1.64001E,mp4a.40.2"
    /// What they make of the largest picture that is encoded.
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

    /// Of this rendition's media playlist.
    /// - Parameter source: the source's.
    func uri(besides source: String) -> String {
        self == .source ? source : "\(source)?rendition=\(rawValue)"
    }

    /// With room for key frames, and for what holds the samples.
    /// - Parameters:
    ///   - size: of its pictures.
    ///   - arePassed: they are the publisher's own, who may send more.
    func bitrates(of size: VideoResolution, arePassed: Bool) -> LivePlaylist.Bitrates {
        let pictures = pictureBitrate(of: size)
        return LivePlaylist.Bitrates(
            peak: pictures * 3 / 2 + soundBitrate + 22_000,
            average: arePassed ? nil : pictures + soundBitrate + 12_000)
    }

    /// The source as it will be once somebody asks for it, beside pictures that go on as they are in a codec that not
    /// every player has; nil where there are none.
    static func expectedSource(
        beside original: MultivariantPlaylist.Variant, uri: String
    ) -> MultivariantPlaylist.Variant? {
        guard let picture = original.resolution else { return nil }
        let source = PackagedRendition.source
        let size = source.size(of: VideoResolution(width: picture.width, height: picture.height))
        let meant = source.bitrates(of: size, arePassed: false)
        return MultivariantPlaylist.Variant(
            uri: uri, bandwidth: meant.peak, averageBandwidth: meant.average, codecs: sourceCodecs,
            resolution: MultivariantPlaylist.Resolution(width: size.width, height: size.height),
            framesPerSecond: PackagingTiming.framesPerSecond)
    }

    /// As it will be once somebody asks for it; nil where it would spare nobody anything.
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

    /// Whether it is worth an encode.
    private func isLess(
        _ meant: LivePlaylist.Bitrates, than source: MultivariantPlaylist.Variant
    ) -> Bool {
        guard let own = meant.average, let average = source.averageBandwidth else {
            return meant.peak * 3 / 2 <= source.bandwidth
        }
        return own * 3 / 2 <= average
    }
}
