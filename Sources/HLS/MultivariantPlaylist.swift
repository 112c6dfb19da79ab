/// The playlist that names a stream's renditions, the one that players begin with first.
/// - Source: RFC 8216bis §4.4.6.2 (`EXT-X-STREAM-INF`).
package struct MultivariantPlaylist: Equatable, Sendable {
    /// One rendition, as players choose by it.
    package struct Variant: Equatable, Sendable {
        /// Of its media playlist, relative to this one.
        package var uri: String
        /// Of its richest segment, in bits a second.
        package var bandwidth: Int
        /// Of all, in bits a second; nil where that is not known yet.
        package var averageBandwidth: Int?
        /// Of all tracks, as RFC 6381 writes them.
        package var codecs: String
        /// In pixels; nil for sound alone.
        package var resolution: Resolution?
        /// Nil where pictures come as they like.
        package var framesPerSecond: Int?

        package init(
            uri: String, bandwidth: Int, averageBandwidth: Int?, codecs: String, resolution: Resolution?,
            framesPerSecond: Int?
        ) {
            self.uri = uri
            self.bandwidth = bandwidth
            self.averageBandwidth = averageBandwidth
            self.codecs = codecs
            self.resolution = resolution
            self.framesPerSecond = framesPerSecond
        }
    }

    /// In pixels.
    package struct Resolution: Equatable, Sendable {
        package var width: Int
        package var height: Int

        package init(width: Int, height: Int) {
            self.width = width
            self.height = height
        }
    }

    package var variants: [Variant]

    package init(_ variants: [Variant]) { self.variants = variants }

    package var text: String {
        let header = ["#EXTM3U", "#EXT-X-VERSION:9", "#EXT-X-INDEPENDENT-SEGMENTS"]
        return (header + variants.flatMap(\.lines)).joined(separator: "\n") + "\n"
    }
}

extension MultivariantPlaylist.Variant {
    fileprivate var lines: [String] {
        var attributes = ["BANDWIDTH=\(bandwidth)"]
        if let averageBandwidth { attributes.append("AVERAGE-BANDWIDTH=\(min(averageBandwidth, bandwidth))") }
        attributes.append("CODECS=\"\(codecs)\"")
        if let resolution { attributes.append("RESOLUTION=\(resolution.width)x\(resolution.height)") }
        if let framesPerSecond { attributes.append("FRAME-RATE=\(framesPerSecond).000") }
        return ["#EXT-X-STREAM-INF:" + attributes.joined(separator: ","), uri]
    }
}
