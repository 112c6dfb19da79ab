import Base
import Peer

/// A smaller picture of a track, made by the server for viewers whose paths cannot carry the only size that is
/// published.
///
/// To viewers it is a layer of the track like any other. A track published in several sizes has none.
package enum RenditionLayer: Int, CaseIterable, Sendable {
    /// A picture every two seconds, each a key frame, for paths that carry little more than audio.
    case stills = 0
    /// All pictures, at a small size, in two temporal layers.
    case low = 1

    /// The encoder's target bit rate, in bits a second, without headers.
    ///
    /// Renditions are chosen by this rate instead of a measured one, because a measurement varies with each key
    /// frame.
    package var bitrate: Int {
        switch self {
        case .stills: 36_000
        case .low: 340_000
        }
    }

    /// Rate at which a still is sent on a slow path, in bytes a second: it arrives before the next one and leaves
    /// room for audio.
    static let stillsPace = 54_000 / 8

    /// Share of the bit rate that the lower temporal layer, half of the pictures, takes, in percent.
    package static let lowerShare = 45
    /// Bit rate of a track, in bits a second, below which a rendition would gain too little.
    static let worthwhileBitrate = 500_000

    /// The codec and payload type of its packets.
    package static let format = MediaFormat(codec: .vp8, payloadType: 96)

    static let plan = SourcePlan(mid: "", kind: .video, formats: [format])

    /// Its layer index within a track, after all layers that a publisher may send.
    var index: Int { Track.layerLimit + rawValue }

    init?(index: Int) {
        self.init(rawValue: index - Track.layerLimit)
    }

    /// Time without a packet after which it counts as inactive.
    var silence: Duration { self == .stills ? .seconds(5) : .seconds(1) }
}
