import Foundation
import Restream

/// The protocol by which a stream is published or played.
enum StreamProtocol: String, CaseIterable, Sendable {
    case whip, whep, rtmp, srt, hls

    /// The protocols of a command, the default first; empty if it has no choice.
    static func of(_ command: Command) -> [StreamProtocol] {
        switch command {
        case .publish: [.whip, .rtmp, .srt]
        case .play: [.whep, .hls]
        default: []
        }
    }

    /// Options of the command that have no meaning with this protocol.
    private var without: [String] {
        let peer = ["--transport", "--srtp", "--html"]
        let film = ["--whip", "--layers", "--burst", "--file", "--audio-file", "--threads"]
        switch self {
        case .whip: return ["--rtmp", "--srt"]
        case .whep: return ["--hls", "--decoders", "--whole-segments"]
        case .rtmp: return peer + film + ["--srt"]
        case .srt: return peer + film + ["--rtmp"]
        case .hls: return peer + ["--whep", "--decrypt-every", "--nack", "--transport-cc", "--gro"]
        }
    }

    /// Refuses options that would be ignored.
    /// - Parameter names: of the options on the command line.
    func check(_ names: [String]) throws(UsageError) {
        guard let name = names.first(where: without.contains) else { return }
        throw UsageError("\(name) does not apply to --protocol \(rawValue)")
    }
}

extension Options {
    /// The playlist of a stream; the server's own URL if that is a playlist.
    func playlistURL(of stream: String) throws(UsageError) -> URL {
        guard server.url.path.hasSuffix(".m3u8") else {
            return try server.endpoint(target.hls, stream: stream)
        }
        guard target.streams == 1 else {
            throw UsageError(
                "one playlist is one stream: for several, give a server, and --hls PATH with {stream} in it")
        }
        return server.url
    }

    /// Hosts that RTMP, SRT or HLS would connect to; empty for WebRTC.
    func protocolHosts() throws(UsageError) -> [String] {
        switch streamProtocol {
        // The stream's name does not matter for the host.
        case .hls: return [try playlistURL(of: "x").host ?? ""]
        case .rtmp:
            guard let template = target.rtmp else { return [server.url.host ?? ""] }
            guard target.streams == 1 || template.contains("{stream}") else {
                throw UsageError("--rtmp needs {stream} in its URL when there are several --streams")
            }
            let text = template.replacingOccurrences(of: "{stream}", with: "x")
            return [try RTMPDestination(parsing: text).address.host]
        case .srt:
            guard let template = target.srt else { return [server.url.host ?? ""] }
            guard target.streams == 1 || template.contains("{stream}") else {
                throw UsageError("--srt needs {stream} in its URL when there are several --streams")
            }
            let text = template.replacingOccurrences(of: "{stream}", with: "x")
            return [try SRTDestination(parsing: text).host]
        case .whip, .whep, nil: return []
        }
    }
}

/// The options of protocols other than WebRTC.
extension OptionDefinition {
    static let protocolOptions = [
        OptionDefinition(
            "--protocol", "NAME", .target, for: [.publish, .play],
            "protocol: whip, rtmp or srt to publish (default whip), whep or hls to play (default whep)"
        ) { options, text throws(UsageError) in
            let known = StreamProtocol.of(options.command)
            guard let choice = StreamProtocol(rawValue: text), known.contains(choice) else {
                let names = known.map(\.rawValue).joined(separator: " or ")
                throw UsageError(
                    "--protocol of \(options.command.rawValue) must be \(names), not \"\(text)\"")
            }
            options.streamProtocol = choice
        },
        OptionDefinition(
            "--rtmp", "URL", .target, for: [.publish],
            "with --protocol rtmp: URL to publish to, such as rtmp://127.0.0.1/live/KEY; {stream} is the stream's "
                + "name (default: the one that Rostrum gives to encoders)"
        ) { options, text throws(UsageError) in
            options.target.rtmp = try OptionValue.text(text, "--rtmp")
        },
        OptionDefinition(
            "--srt", "URL", .target, for: [.publish],
            "with --protocol srt: URL to publish to, such as srt://127.0.0.1:9710?streamid=ID, with passphrase= "
                + "and latency= (in ms) if needed; {stream} is the stream's name (default: the one that Rostrum "
                + "gives to encoders)"
        ) { options, text throws(UsageError) in
            options.target.srt = try OptionValue.text(text, "--srt")
        },
        OptionDefinition(
            "--hls", "PATH", .target, for: [.play],
            "with --protocol hls: playlist (default /hls/{stream}/index.m3u8, or SERVER if it ends with .m3u8)"
        ) { options, text in options.target.hls = text },
        OptionDefinition(
            "--decoders", "N", .audience, for: [.play],
            "with --protocol hls: number of viewers that decode, and read from the pictures when they were made; "
                + "the others only download (default 1)"
        ) { options, text throws(UsageError) in
            options.audience.decoders = try OptionValue.count(text, "--decoders", 0...64)
        },
        OptionDefinition(
            "--whole-segments", nil, .audience, for: [.play],
            "with --protocol hls: download whole segments, as players without low-latency support do"
        ) { options, _ in options.audience.loadsWholeSegments = true },
    ]
}
