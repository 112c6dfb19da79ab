import Foundation

/// The size and bit rates of a track's renditions.
package struct RenditionSettings: Equatable, Sendable, Codable {
    /// Largest longer side in pixels; smaller pictures keep their size.
    package var longSide = 640
    /// Largest shorter side in pixels.
    package var shortSide = 360
    /// Of the smaller picture, in bits per second.
    package var bitrate: Int
    /// Percent of `bitrate` for the lower temporal layer.
    package var lowerLayerShare: Int
    /// Of the stills, in bits per second.
    package var stillsBitrate: Int

    package init(bitrate: Int, lowerLayerShare: Int, stillsBitrate: Int) {
        self.bitrate = bitrate
        self.lowerLayerShare = lowerLayerShare
        self.stillsBitrate = stillsBitrate
    }

    /// The job's request, in JSON.
    package var bytes: [UInt8] { (try? JSONEncoder().encode(self)).map(Array.init) ?? [] }

    /// Nil for a request that is not valid.
    init?(_ bytes: [UInt8]) {
        guard let settings = try? JSONDecoder().decode(Self.self, from: Data(bytes)) else { return nil }
        self = settings
    }
}

/// The command of a rendition job: a viewer waits for a key frame.
package struct RenditionCommand: Equatable, Sendable {
    /// Layer of the rendition, as in `RenditionPacket.Kind`.
    package let layer: Int

    package init(layer: Int) {
        self.layer = layer
    }

    /// The command's body.
    package var bytes: [UInt8] { [UInt8(clamping: layer)] }

    /// Nil for a body that is not valid.
    init?(_ bytes: [UInt8]) {
        guard bytes.count == 1, let layer = bytes.first else { return nil }
        self.layer = Int(layer)
    }
}

/// Measurements of a track's renditions over the last second.
package struct RenditionStatus: Equatable, Sendable, Codable {
    /// Pictures encoded.
    package var framesPerSecond = 0.0
    /// Share of real time spent on encoding and decoding.
    package var load = 0.0
    /// From a picture's last packet until it is sent: 95th percentile.
    package var latencyMilliseconds = 0.0

    package init() {}

    var bytes: [UInt8] { (try? JSONEncoder().encode(self)).map(Array.init) ?? [] }

    /// Nil for a report that is not valid.
    package init?(_ bytes: [UInt8]) {
        guard let status = try? JSONDecoder().decode(Self.self, from: Data(bytes)) else { return nil }
        self = status
    }
}
