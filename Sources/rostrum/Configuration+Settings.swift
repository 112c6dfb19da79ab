import Base
import Crypto
import Gateway
import HTTP
import Node
import StoryFeed
import Transcoder
import Webhooks

extension Configuration {
    /// An option and its effective value.
    struct Setting: Equatable, Sendable {
        let name: String
        /// Nil if the option is not set and has no default; `<secret>` in place of a secret.
        let value: TOMLTable.Value?

        var isSecret: Bool { value == .string(Secret("").description) }
    }

    /// The effective value of every option except `config`, in the order of the help.
    var settings: [Setting] {
        Option.all.filter { $0.name != "config" }.map { Setting(name: $0.name, value: value(of: $0.name)) }
    }

    /// The effective configuration for `--check-config`: a valid configuration file, without secrets.
    var summary: String {
        settings.filter { !$0.isSecret }.compactMap { setting in
            setting.value.map { "\(setting.name) = \($0.text)\n" }
        }.joined()
    }

    /// The effective value of one option, in the type that a configuration file uses for it.
    ///
    /// Every option must have a case here or in `text(of:)`; without one it would be reported as not set.
    private func value(of name: String) -> TOMLTable.Value? {
        let concealed = TOMLTable.Value.string(Secret("").description)
        switch name {
        case "secret": return key.secret == nil ? nil : concealed
        case "webhook-secret": return webhooks == nil ? nil : concealed
        case "ice-server-secret": return iceServerSecret == nil ? nil : concealed
        case "srt-passphrase": return srtPassphrase == nil ? nil : concealed
        case "srt-latency": return .integer(srtLatency)
        case "workers": return .integer(workers)
        case "max-sessions": return .integer(maximumSessions)
        case "max-sessions-per-address": return .integer(maximumSessionsPerAddress)
        case "max-compositions": return .integer(maximumCompositions)
        case "max-renditions": return .integer(maximumRenditions)
        case "max-conversions": return .integer(maximumConversions)
        case "max-hls": return .integer(maximumPackagings)
        case "hls-part": return .integer(packagingTiming.partMilliseconds)
        case "max-dvr": return .integer(maximumDVRSeconds)
        case "max-clips": return .integer(maximumClips)
        case "max-restreams": return .integer(maximumRestreams)
        case "feed-viewers-weight": return .integer(feedWeights.perDoublingOfViewers)
        case "feed-age-weight": return .integer(feedWeights.perHour)
        case "feed-boost-weight": return .integer(feedWeights.perBoost)
        case "transcoder-nice": return .integer(niceness ?? TranscoderSettings().niceness)
        case "dev": return .boolean(isDevelopment)
        case "trusted-proxy": return Self.list(trustedProxies.networks.map(\.description))
        case "public-address": return Self.list(publicAddresses.map(\.description))
        // URLs without user, password and query, any of which may be a secret.
        case "webhook": return Self.list((webhooks?.urls ?? []).map(WebhookURL.shown))
        case "review-webhook": return webhooks?.reviewer.map { .string(WebhookURL.shown($0)) }
        // URLs alone; user and password are left out.
        case "ice-server": return Self.list(iceServers.map(\.url))
        default: return text(of: name).map { .string($0) }
        }
    }

    /// Options whose value is a string.
    private func text(of name: String) -> String? {
        switch name {
        case "http": http.description
        case "admin": admin?.description
        case "udp": lastUDPPort.map { "\(udp)-\($0)" } ?? udp.description
        case "tcp": tcp?.description ?? "off"
        case "rtmp": rtmp?.description ?? "off"
        case "rtmps": rtmps?.description ?? "off"
        case "srt": srt?.description ?? "off"
        case "turn-tls": turn.tls?.description ?? "off"
        case "turn-tcp": turn.tcp?.description ?? "off"
        case "turn-udp": turn.udp?.description ?? "off"
        case "data": dataDirectory
        case "keep-streams": retention.streams.map(TimeSpan.text) ?? "forever"
        case "keep-recordings": retention.recordings.map(TimeSpan.text) ?? "forever"
        case "keep-clips": retention.clips.map(TimeSpan.text) ?? "forever"
        case "keep-comments": retention.comments.map(TimeSpan.text) ?? "forever"
        case "review-default": reviewFallback.rawValue
        case "key-id": key.id
        case "secret-file": secretFile
        case "viewers": viewers.rawValue
        case "tls-certificate": tls?.certificate
        case "tls-key": tls?.key
        case "srtp-engine": srtpEngine.rawValue
        case "transcoder": transcoding.rawValue
        case "transcoder-confinement": confinement.rawValue
        case "restream-networks": restreamNetworks.rawValue
        case "log-level": logLevel.rawValue
        case "log-format": logFormat.rawValue
        default: nil
        }
    }

    /// An empty list counts as not set.
    private static func list(_ texts: [String]) -> TOMLTable.Value? { texts.isEmpty ? nil : .strings(texts) }
}
