import Base
import Forwarding

/// What a player by WHEP may be told of what it watches, as it is at one moment.
package struct PlayerView: Equatable, Sendable {
    /// One of the sizes that a publisher sends a picture in: a layer of simulcast, or the only one.
    package struct Encoding: Equatable, Sendable {
        /// The publisher's `rid`, or `0` where there is but one.
        package var id: String
        /// From the least, which is 0.
        package var order: Int
        /// In bits a second, over about the last second.
        package var bitrate: Int
        /// In pixels; nil until a key frame has told.
        package var width: Int?
        package var height: Int?
        /// Whether it can be had: it comes, or its publisher lets it rest until somebody wants it.
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

        /// Of its shorter side, in pixels: what `maxHeight` limits.
        var extent: Int? {
            guard let width, let height else { return nil }
            return min(width, height)
        }
    }

    /// One m-line for pictures.
    package struct Media: Equatable, Sendable {
        package var mid: String
        /// The best first; none while there is nothing to be seen.
        package var encodings: [Encoding]

        package init(mid: String, encodings: [Encoding]) {
            self.mid = mid
            self.encodings = encodings
        }
    }

    /// Whether somebody publishes to the stream.
    package var isActive: Bool
    /// Connected viewers of the stream.
    package var viewers: Int
    /// In the order of the m-lines; empty where nobody asked for it.
    package var media: [Media]

    package init(isActive: Bool, viewers: Int, media: [Media] = []) {
        self.isActive = isActive
        self.viewers = viewers
        self.media = media
    }
}

extension PlayerView.Media {
    /// - Parameters:
    ///   - sending: to the player.
    ///   - source: what the publisher sends; nil for a picture that the server makes.
    ///   - quality: what the player gets, which is all there is of such a one.
    init(
        _ sending: SessionMeasurements.Sending, source: TrackMeasurements?, quality: DeliveryQuality
    ) {
        let layers =
            source.map { $0.layers.map(Layer.init) }
            ?? quality.pictures.filter { $0.mid == sending.mid }.compactMap { $0.wanted.map(Layer.init) }
        let ascending = layers.sorted { ($0.extent, $0.bitrate) < ($1.extent, $1.bitrate) }
        let encodings = ascending.enumerated().map { order, layer in
            PlayerView.Encoding(
                // Only a publisher without simulcast names nothing.
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
            // What rests keeps the rate that it had; what its publisher switched off has none.
            isAvailable = layer.isActive || layer.bitrate > 0
        }

        init(_ layer: DeliveryQuality.Layer) {
            (rid, width, height, bitrate) = (layer.rid, layer.width, layer.height, layer.bitrate)
            isAvailable = true
        }

        var extent: Int { min(width ?? 0, height ?? 0) }
    }
}

/// What a player by WHEP chooses: one encoding, or to have the server choose again.
package struct EncodingChoice: Equatable, Sendable {
    /// Of the m-line; nil for the first with pictures.
    package var mid: String?
    /// As `PlayerView` names it; nil to have the server choose.
    package var encoding: String?

    package init(mid: String? = nil, encoding: String? = nil) {
        self.mid = mid
        self.encoding = encoding
    }
}

/// Why a player's choice was not made.
package enum EncodingRefusal: Error, Equatable, Sendable {
    case unknownSession
    /// With the m-lines that there are for pictures.
    case unknownMedia(known: [String])
    /// With what there is to choose.
    case unknownEncoding(known: [String])
    /// No key frame of it has come yet.
    case unknownSize
}
