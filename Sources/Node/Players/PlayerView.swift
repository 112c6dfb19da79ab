import Base
import Forwarding

/// What a WHEP player may be shown of the stream that it plays, at one moment.
package struct PlayerView: Equatable, Sendable {
    /// One of the encodings in which a publisher sends a track: a simulcast layer, or the only encoding.
    package struct Encoding: Equatable, Sendable {
        /// The publisher's `rid`, or `0` without simulcast.
        package var id: String
        /// The rank by size, and for one size by bitrate; 0 for the least.
        package var order: Int
        /// In bits a second, over about the last second.
        package var bitrate: Int
        /// In pixels; nil before the first key frame.
        package var width: Int?
        /// In pixels; nil before the first key frame.
        package var height: Int?
        /// Whether the player can get it: the publisher sends it, or lets it rest until a viewer needs it.
        package var isAvailable: Bool

        package init(
            id: String, order: Int, bitrate: Int, width: Int?, height: Int?, isAvailable: Bool = true
        ) {
            self.id = id
            self.order = order
            self.bitrate = bitrate
            self.width = width
            self.height = height
            self.isAvailable = isAvailable
        }

        /// The shorter side in pixels, which `maxHeight` limits.
        var extent: Int? {
            guard let width, let height else { return nil }
            return min(width, height)
        }
    }

    /// One video m-line.
    package struct Media: Equatable, Sendable {
        package var mid: String
        /// The best first; empty while there is no video.
        package var encodings: [Encoding]

        package init(mid: String, encodings: [Encoding]) {
            self.mid = mid
            self.encodings = encodings
        }
    }

    /// Whether a publisher sends media to the stream.
    package var isActive: Bool
    /// Connected viewers of the stream.
    package var viewers: Int
    /// In the order of the m-lines; empty if media was not requested.
    package var media: [Media]

    package init(isActive: Bool, viewers: Int, media: [Media] = []) {
        self.isActive = isActive
        self.viewers = viewers
        self.media = media
    }
}

extension PlayerView.Media {
    /// - Parameters:
    ///   - sending: the m-line on which the player receives.
    ///   - source: the publisher's track; nil for video that the server makes.
    ///   - quality: what the player gets; without a source it is all that is known of the video.
    init(
        _ sending: SessionMeasurements.Sending, source: TrackMeasurements?, quality: DeliveryQuality
    ) {
        let layers =
            source.map { $0.layers.map(Layer.init) }
            ?? quality.pictures.filter { $0.mid == sending.mid }.compactMap { $0.wanted.map(Layer.init) }
        let ascending = layers.sorted { ($0.extent, $0.bitrate) < ($1.extent, $1.bitrate) }
        let encodings = ascending.enumerated().map { order, layer in
            PlayerView.Encoding(
                // Only a publisher without simulcast sends no `rid`.
                id: layer.rid ?? "\(order)", order: order, bitrate: layer.bitrate, width: layer.width,
                height: layer.height, isAvailable: layer.isAvailable)
        }
        self.init(mid: sending.mid, encodings: encodings.reversed())
    }

    private struct Layer {
        let rid: String?
        let width, height: Int?
        let bitrate: Int
        let isAvailable: Bool

        init(_ layer: TrackMeasurements.Layer) {
            (rid, width, height, bitrate) = (layer.rid, layer.width, layer.height, layer.bitrate)
            // A layer that rests keeps its last bitrate; one that the publisher switched off has 0.
            isAvailable = layer.isActive || layer.bitrate > 0
        }

        init(_ layer: DeliveryQuality.Layer) {
            (rid, width, height, bitrate) = (layer.rid, layer.width, layer.height, layer.bitrate)
            isAvailable = true
        }

        var extent: Int { min(width ?? 0, height ?? 0) }
    }
}

/// The choice of a WHEP player: one encoding, or to leave the choice to the server.
package struct EncodingChoice: Equatable, Sendable {
    /// The m-line; nil for the first one with video.
    package var mid: String?
    /// An encoding by its `id` in `PlayerView`; nil to leave the choice to the server.
    package var encoding: String?

    package init(mid: String? = nil, encoding: String? = nil) {
        self.mid = mid
        self.encoding = encoding
    }
}

/// Why a player's choice was refused.
package enum EncodingRefusal: Error, Equatable, Sendable {
    case unknownSession
    /// There is no such m-line; `known` lists the video m-lines.
    case unknownMedia(known: [String])
    /// There is no such encoding; `known` lists the available ones.
    case unknownEncoding(known: [String])
    /// The encoding's size is unknown, because no key frame of it has arrived yet.
    case unknownSize
}
