import Foundation

/// What renditions of a track are to be like.
package struct RenditionSettings: Equatable, Sendable, Codable {
    /// Of the picture, in pixels, along its longer and its shorter side; one that is smaller stays as it is.
    package var longSide = 640
    /// In pixels.
    package var shortSide = 360
    /// In bits a second.
    package var bitrate: Int
    /// Percent of it for the lower temporal layer.
    package var lowerLayerShare: Int
    /// Of the pictures that come every two seconds, in bits a second.
    package var stillsBitrate: Int

    package init(bitrate: Int, lowerLayerShare: Int, stillsBitrate: Int) {
        self.bitrate = bitrate
        self.lowerLayerShare = lowerLayerShare
        self.stillsBitrate = stillsBitrate
    }

    package var bytes: [UInt8] { (try? JSONEncoder().encode(self)).map(Array.init) ?? [] }

    /// - Returns: nil for what is none.
    init?(_ bytes: [UInt8]) {
        guard let settings = try? JSONDecoder().decode(Self.self, from: Data(bytes)) else { return nil }
        self = settings
    }
}

/// What the server says to a job that makes renditions: somebody waits for a key frame.
package struct RenditionCommand: Equatable, Sendable {
    /// As the server counts renditions.
    package let layer: Int

    package init(layer: Int) {
        self.layer = layer
    }

    package var bytes: [UInt8] { [UInt8(clamping: layer)] }

    /// - Returns: nil for what is none.
    init?(_ bytes: [UInt8]) {
        guard bytes.count == 1, let layer = bytes.first else { return nil }
        self.layer = Int(layer)
    }
}

/// How renditions of a track do, over the last second.
package struct RenditionStatus: Equatable, Sendable, Codable {
    /// Pictures that were made.
    package var framesPerSecond = 0.0
    /// Share of the time that making them takes.
    package var load = 0.0
    /// From the last packet of a picture until it leaves: 95th percentile.
    package var latencyMilliseconds = 0.0

    package init() {}

    var bytes: [UInt8] { (try? JSONEncoder().encode(self)).map(Array.init) ?? [] }

    /// - Returns: nil for what is none.
    package init?(_ bytes: [UInt8]) {
        guard let status = try? JSONDecoder().decode(Self.self, from: Data(bytes)) else { return nil }
        self = status
    }
}
