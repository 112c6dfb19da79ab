/// The playlist that lists a stream's renditions, the preferred one first.
/// - Source: RFC 8216bis §4.4.6.2 (`EXT-X-STREAM-INF`).
package struct MultivariantPlaylist: Equatable, Sendable {
    /// One rendition, with the properties by which players choose.
    package struct Variant: Equatable, Sendable {
        /// Of its media playlist, relative to this one.
        package var uri: String
        /// Of the segment with the highest rate, in bits per second.
        package var bandwidth: Int
        /// Of all segments, in bits per second; nil if not known yet.
        package var averageBandwidth: Int?
        /// Of all tracks, in the syntax of RFC 6381.
        package var codecs: String
        /// In pixels; nil for audio alone.
        package var resolution: Resolution?
        /// Nil for a variable rate.
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

    /// In order of preference: players start with the first one.
    package var variants: [Variant]

    package init(_ variants: [Variant]) { self.variants = variants }

    /// The playlist, with a line feed after each line.
    package var text: String {
        let header = ["#EXTM3U", "#EXT-X-VERSION:9", "#EXT-X-INDEPENDENT-SEGMENTS"]
        return (header + variants.flatMap(\.lines)).joined(separator: "\n") + "\n"
    }
}

extension MultivariantPlaylist.Variant {
    /// The tag with its attributes, and the URI.
    fileprivate var lines: [String] {
        var attributes = ["BANDWIDTH=\(bandwidth)"]
        // An average above the peak would be invalid; the two may come from different measurements.
        if let averageBandwidth { attributes.append("AVERAGE-BANDWIDTH=\(min(averageBandwidth, bandwidth))") }
        attributes.append("CODECS=\"\(codecs)\"")
        if let resolution { attributes.append("RESOLUTION=\(resolution.width)x\(resolution.height)") }
        if let framesPerSecond { attributes.append("FRAME-RATE=\(framesPerSecond).000") }
        return ["#EXT-X-STREAM-INF:" + attributes.joined(separator: ","), uri]
    }
}
