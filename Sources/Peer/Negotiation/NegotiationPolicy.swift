import Wire

/// The operator's choices for codecs and bitrates.
package struct NegotiationPolicy: Sendable, Equatable {
    /// Video codecs that are accepted.
    package var videoCodecs: Set<MediaCodec.Family>
    /// Codecs that come first in answers to publishers, in this order; the others follow in the client's order.
    ///
    /// A browser encodes with the first codec of the answer.
    package var preferredVideoCodecs: [MediaCodec.Family]
    /// Nil to let the browser choose; Chrome starts at about 300 kbit/s.
    package var videoBitrate: VideoBitrate?

    /// Hints for a publisher's rate control, in kbit/s; Chrome follows all three, other browsers the maximum.
    package struct VideoBitrate: Sendable, Equatable {
        /// Nil to leave it to the browser.
        package var start: Int?
        /// Nil to leave it to the browser.
        package var minimum: Int?
        /// Nil to leave it to the browser.
        package var maximum: Int?

        package init(start: Int? = nil, minimum: Int? = nil, maximum: Int? = nil) {
            self.start = start
            self.minimum = minimum
            self.maximum = maximum
        }
    }

    package init(
        videoCodecs: Set<MediaCodec.Family> = [.vp8, .vp9, .h264, .av1],
        preferredVideoCodecs: [MediaCodec.Family] = [],
        videoBitrate: VideoBitrate? = nil
    ) {
        self.videoCodecs = videoCodecs
        self.preferredVideoCodecs = preferredVideoCodecs
        self.videoBitrate = videoBitrate
    }

    /// The accepted formats of an m-line, in the order of our answer.
    func formats(of line: OfferedMedia, publishing: Bool) -> [OfferedFormat] {
        let accepted = line.formats.filter {
            !$0.format.codec.isVideo || videoCodecs.contains($0.format.codec.family)
        }
        guard publishing, !preferredVideoCodecs.isEmpty else { return accepted }
        let preferred = preferredVideoCodecs.flatMap { family in
            accepted.filter { $0.format.codec.family == family }
        }
        return preferred + accepted.filter { !preferredVideoCodecs.contains($0.format.codec.family) }
    }

    /// The hints as format parameters of a publisher's video.
    var bitrateParameters: [FormatParameters.Parameter] {
        let hints = [
            ("x-google-start-bitrate", videoBitrate?.start), ("x-google-min-bitrate", videoBitrate?.minimum),
            ("x-google-max-bitrate", videoBitrate?.maximum),
        ]
        return hints.compactMap { name, value in value.map { .init(name, String($0)) } }
    }

    /// The maximum as `b=` lines, in kbit/s and bit/s (RFC 8866 §5.8, RFC 3890 §6.2).
    var bandwidthFields: [SDPField] {
        guard let maximum = videoBitrate?.maximum else { return [] }
        return ["AS:\(maximum)", "TIAS:\(maximum.multipliedReportingOverflow(by: 1_000).partialValue)"]
            .map { SDPField(UInt8(ascii: "b"), $0) }
    }
}
