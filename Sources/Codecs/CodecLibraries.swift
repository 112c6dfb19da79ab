import CCodecs
import CComposing
import CQREncode
import Wire

/// The libraries that this target uses, as installed on this machine.
package enum CodecLibraries {
    /// Names and versions, for diagnostics.
    package static var versions: [(name: String, version: String)] {
        // The strings are constants of the libraries, so they are not freed.
        let opus = unsafe opus_get_version_string().map { unsafe String(cString: $0) }
        let vpx = unsafe ccodecs_vpx_version().map { unsafe String(cString: $0) }
        let qrencode = unsafe QRcode_APIVersionString().map { unsafe String(cString: $0) }
        let webp = UInt32(bitPattern: WebPGetEncoderVersion())
        return [
            ("libavcodec", dotted(ccodecs_avcodec_version())),
            // The libraries report `libopus 1.3.1` and `v1.12.0`.
            ("libopus", opus?.split(separator: " ").last.map(String.init) ?? "unknown"),
            ("libqrencode", qrencode ?? "unknown"),
            ("libvpx", vpx?.drop { !$0.isNumber }.description ?? "unknown"),
            ("libwebp", dotted(webp)),
        ]
    }

    /// The video codecs of browsers, and whether the installed libraries can decode each of them.
    package static var videoDecoders: [(name: String, isThere: Bool)] {
        [VideoCodec.vp8, .vp9, .h264, .hevc, .av1].map {
            ("\($0)".uppercased(), (try? VideoDecoder($0)) != nil)
        }
    }

    /// The text of a version whose parts take one byte each.
    private static func dotted(_ version: UInt32) -> String {
        "\(version >> 16).\(version >> 8 & 0xFF).\(version & 0xFF)"
    }
}
