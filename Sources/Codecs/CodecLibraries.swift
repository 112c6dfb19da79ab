import CCodecs
import CComposing
import CQREncode
import Wire

/// What this target runs on, as it is found on this machine.
package enum CodecLibraries {
    /// Names and versions.
    package static var versions: [(name: String, version: String)] {
        // All are the libraries' own strings, which last.
        let opus = unsafe opus_get_version_string().map { unsafe String(cString: $0) }
        let vpx = unsafe ccodecs_vpx_version().map { unsafe String(cString: $0) }
        let qrencode = unsafe QRcode_APIVersionString().map { unsafe String(cString: $0) }
        let webp = UInt32(bitPattern: WebPGetEncoderVersion())
        return [
            ("libavcodec", dotted(ccodecs_avcodec_version())),
            // `libopus 1.3.1`, and `v1.12.0`.
            ("libopus", opus?.split(separator: " ").last.map(String.init) ?? "unknown"),
            ("libqrencode", qrencode ?? "unknown"),
            ("libvpx", vpx?.drop { !$0.isNumber }.description ?? "unknown"),
            ("libwebp", dotted(webp)),
        ]
    }

    /// What can be decoded, and whether the libraries that are found here do.
    package static var videoDecoders: [(name: String, isThere: Bool)] {
        [VideoCodec.vp8, .vp9, .h264, .av1].map { ("\($0)".uppercased(), (try? VideoDecoder($0)) != nil) }
    }

    /// Of a number with a byte for each part.
    private static func dotted(_ version: UInt32) -> String {
        "\(version >> 16).\(version >> 8 & 0xFF).\(version & 0xFF)"
    }
}
