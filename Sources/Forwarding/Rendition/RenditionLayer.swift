import Peer
import Wire

/// A smaller picture of a track that the server makes itself, for viewers whose path does not take the only size that
/// the publisher sends.
///
/// To whom it is sent it is a layer of the track like any other. There is none where the publisher sends several sizes.
package enum RenditionLayer: Int, CaseIterable, Sendable {
    /// A picture every two seconds, each a key frame: for paths that take sound and little more.
    case stills = 0
    /// All of the pictures, small, in two temporal layers.
    case low = 1

    /// In bits a second, without headers: what the encoder keeps to.
    ///
    /// Chosen by this and not by what is measured: a key frame more or less says nothing of what it takes.
    package var bitrate: Int {
        switch self {
        case .stills: 36_000
        case .low: 340_000
        }
    }

    /// Bytes a second at which a still leaves on a slow path: it is there before the next one, and sound goes on beside
    /// it.
    static let stillsPace = 54_000 / 8

    /// Percent of the bit rate that the lower temporal layer takes, which is half of the pictures.
    package static let lowerShare = 45
    /// Whose bit rate is below this has no rendition: there would be little to gain.
    static let worthwhileBitrate = 500_000

    /// How its packets are made.
    package static let format = MediaFormat(codec: .vp8, payloadType: 96)

    static let plan = SourcePlan(mid: "", kind: .video, formats: [format])

    /// Its place among the layers of a track, behind all that a publisher may send.
    var index: Int { Track.layerLimit + rawValue }

    init?(index: Int) {
        self.init(rawValue: index - Track.layerLimit)
    }

    /// Without a packet for so long nothing is made any more.
    var silence: Duration { self == .stills ? .seconds(5) : .seconds(1) }
}
