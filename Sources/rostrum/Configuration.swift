import Base
import Crypto
import Gateway
import HTTP
import Node
import StoryFeed
import Transcoder
import Webhooks

/// Everything that can be configured about the server, parsed and checked for consistency.
///
/// Building one has no side effects: no port is opened and no certificate is read, so it serves `--check-config`,
/// `rostrum config show` and `rostrum doctor` as well. Which options change without a restart is defined by
/// `Reloading`.
struct Configuration: Sendable {
    enum LogFormat: String, Sendable, CaseIterable {
        case text
        case json
    }

    /// The key that signs tokens.
    struct SigningKey: Sendable {
        /// The claim `iss` of its tokens.
        let id: String
        /// Nil for a key that is made at start.
        let secret: Secret<String>?
        /// Earlier keys: tokens that they signed are still accepted.
        var previous: [Secret<String>] = []

        /// Whether both sign alike and accept the same tokens.
        func isSame(as other: SigningKey) -> Bool {
            secret?.exposed == other.secret?.exposed
                && previous.map(\.exposed) == other.previous.map(\.exposed)
        }
    }

    /// Receivers of webhooks.
    struct Webhooks: Sendable {
        /// Receivers of events, up to ten; may be empty.
        let urls: [String]
        /// Reviews comments before they are shown; nil if comments are not reviewed.
        let reviewer: String?
        /// Signs both kinds of request.
        let secret: Secret<String>
    }

    var http = TransportAddress(ip: .loopback, port: 8080)
    /// The operators' listener, which asks for no token; nil if there is none.
    var admin: TransportAddress?
    var trustedProxies = TrustedProxies()
    /// The address that all workers share, or the first worker's.
    var udp = TransportAddress(ip: .any, port: 7000)
    /// The last port of the range if each worker has a port of its own; nil if all share that of `udp`.
    var lastUDPPort: UInt16?
    /// Nil for off.
    var tcp: TransportAddress?
    /// Nil for off.
    var rtmp: TransportAddress?
    /// Nil for off; needs `tls`.
    var rtmps: TransportAddress?
    /// Nil for off.
    var srt: TransportAddress?
    /// Nil for media that is not encrypted.
    var srtPassphrase: Secret<String>?
    /// In milliseconds.
    var srtLatency = 200
    /// Each nil for off; `turn.tls` needs `tls`.
    var turn = TURNAddresses()
    /// Advertised before this machine's own addresses.
    var publicAddresses: [IPAddress] = []
    var workers: Int
    var maximumSessions = 20_000
    /// Of sessions without a token.
    var maximumSessionsPerAddress = 500
    /// Programmes composed at the same time.
    var maximumCompositions: Int
    /// Tracks with renditions at the same time.
    var maximumRenditions: Int
    /// Publishers by RTMP or SRT whose pictures are re-encoded at the same time.
    var maximumConversions: Int
    /// Streams packaged for HLS at the same time.
    var maximumPackagings: Int
    var packagingTiming = PackagingTiming.usual
    /// The longest window that a host may choose.
    var maximumDVRSeconds: Int
    /// Live streams whose last minutes are kept for clips at the same time.
    var maximumClips: Int
    /// Targets of restreams at the same time, over all streams.
    var maximumRestreams: Int
    var restreamNetworks = RestreamNetworks.public
    /// Nil to keep everything in memory, and nothing beyond the process.
    var dataDirectory: String?
    var retention = RetentionSettings()
    var webhooks: Webhooks?
    /// The verdict on a comment if the reviewer does not answer in time.
    var reviewFallback = ReviewHook.Fallback.allow
    var key: SigningKey
    /// The file that `secret-file` names; nil if none is named.
    var secretFile: String?
    var viewers: GatewaySettings.Viewers
    var feedWeights = FeedWeights()
    var tls: HTTPServerSettings.TLSFiles?
    var iceServers: [GatewaySettings.ICEServer] = []
    /// Shared with the TURN servers in `iceServers` that have no password of their own.
    var iceServerSecret: Secret<String>?
    var srtpEngine = SRTPEngine.openSSL
    var transcoding = Transcoding.on
    /// Whether the transcoder runs only if the kernel confines it.
    var confinement = Transcoding.on
    /// The transcoder's niceness; nil for its default.
    var niceness: Int?
    var isDevelopment: Bool
    var logLevel = Log.Level.info
    var logFormat = LogFormat.text

    /// Which networks the targets of restreams may be in.
    enum RestreamNetworks: String, CaseIterable {
        case `public`, all
    }

    /// A switch that the command line and the file spell as `on` and `off`.
    enum Transcoding: String, CaseIterable {
        case on, off
    }

    /// Checks all options, in an order in which later checks may use earlier results.
    /// - Parameter processors: how many processors there are; the default of `workers` and of limits on encoders.
    /// - Throws: the first option that makes no sense, with its source and a remedy.
    init(_ values: OptionValues, processors: Int) throws(ConfigurationError) {
        isDevelopment = try values.toggle("dev") ?? false
        viewers = try values.choice("viewers") ?? (isDevelopment ? .everyone : .token)
        workers = try values.number("workers", 1...256) ?? min(max(processors, 1), 256)
        key = try Self.signingKey(values)
        secretFile = values["secret-file"]?.texts.first
        if let address = try values.address("http") { http = address }
        admin = try values.address("admin")
        trustedProxies = try Self.trustedProxies(values)
        if let ports = try values.ports("udp") {
            (udp, lastUDPPort) = ports
            if let lastUDPPort, Int(lastUDPPort) - Int(udp.port) < workers - 1 {
                throw ConfigurationError(
                    "--udp \(udp)-\(lastUDPPort) has too few ports for \(workers) workers; give one each or one for all"
                )
            }
        }
        // Unlike the other entrances, ICE-TCP is on by default: it is what clients behind UDP blocks need.
        if values["tcp"]?.texts.first == "off" {
            tcp = nil
        } else {
            tcp = try values.address("tcp") ?? udp
        }
        if values["rtmp"]?.texts.first != "off" { rtmp = try values.address("rtmp") }
        if values["rtmps"]?.texts.first != "off" { rtmps = try values.address("rtmps") }
        if values["srt"]?.texts.first != "off" { srt = try values.address("srt") }
        srtPassphrase = try Self.srtPassphrase(values)
        if let latency = try values.number("srt-latency", IngestSettings.SRT.latencies) {
            srtLatency = latency
        }
        publicAddresses = try Self.publicAddresses(values)
        if let limit = try values.number("max-sessions", 1...1_000_000) { maximumSessions = limit }
        if let limit = try values.number("max-sessions-per-address", 1...1_000_000) {
            maximumSessionsPerAddress = limit
        }
        maximumCompositions = try values.number("max-compositions", 0...10_000) ?? 2 * max(processors, 1)
        maximumRenditions = try values.number("max-renditions", 0...10_000) ?? max(processors, 1)
        maximumConversions = try values.number("max-conversions", 0...10_000) ?? max(processors / 2, 1)
        maximumPackagings = try values.number("max-hls", 0...10_000) ?? max(processors / 2, 1)
        packagingTiming = try values.packagingTiming("hls-part") ?? .usual
        maximumDVRSeconds =
            try values.number("max-dvr", DVRSettings.secondsRange) ?? DVRSettings.secondsRange.upperBound
        maximumRestreams = try values.number("max-restreams", 0...1_000) ?? 0
        maximumClips = try values.number("max-clips", 0...50) ?? 4
        dataDirectory = values["data"]?.texts.first ?? (isDevelopment ? nil : "data")
        retention.streams = try values.age("keep-streams")
        retention.recordings = try values.age("keep-recordings")
        // Without an option of their own, clips are kept for as long as recordings.
        retention.clips = try values["keep-clips"] == nil ? retention.recordings : values.age("keep-clips")
        retention.comments = try values.age("keep-comments")
        webhooks = try Self.webhooks(values)
        if let fallback: ReviewHook.Fallback = try values.choice("review-default") {
            reviewFallback = fallback
        }
        feedWeights = try Self.feedWeights(values)
        tls = try Self.tls(values)
        turn = try values.turnAddresses()
        for (option, address) in [("rtmps", rtmps), ("turn-tls", turn.tls)] where address != nil && tls == nil
        {
            throw ConfigurationError(
                "--\(option) needs a certificate: set --tls-certificate and --tls-key too")
        }
        try checkPorts()
        try checkUDPPorts()
        iceServers = try Self.iceServers(values)
        iceServerSecret = try Self.iceServerSecret(values, for: iceServers)
        if let engine: SRTPEngine = try values.choice("srtp-engine") { srtpEngine = engine }
        if let choice: Transcoding = try values.choice("transcoder") { transcoding = choice }
        if let choice: Transcoding = try values.choice("transcoder-confinement") { confinement = choice }
        if let choice: RestreamNetworks = try values.choice("restream-networks") { restreamNetworks = choice }
        niceness = try values.number("transcoder-nice", TranscoderSettings.nicenesses)
        if let level: Log.Level = try values.choice("log-level") { logLevel = level }
        if let format: LogFormat = try values.choice("log-format") { logFormat = format }
    }

    /// How the transcoder runs; nil if it is off.
    var transcoderSettings: TranscoderSettings? {
        guard transcoding == .on else { return nil }
        var settings = TranscoderSettings()
        settings.mustBeConfined = confinement == .on
        if let niceness { settings.niceness = niceness }
        return settings
    }

    /// The key that signs tokens, for the server and for `rostrum token`.
    ///
    /// In development the ID, the secret or both may be missing. Otherwise both must be given.
    static func signingKey(_ values: OptionValues) throws(ConfigurationError) -> SigningKey {
        let isDevelopment = try values.toggle("dev") ?? false
        let id = values["key-id"]?.texts.first
        let secret = values["secret"]?.texts.first
        switch (id, secret) {
        case (let id?, let secret?):
            // The holder of one HS256 token can try secrets offline, without any limit.
            guard isDevelopment || secret.utf8.count >= 32 else {
                throw ConfigurationError(
                    "the secret has \(secret.utf8.count) bytes, but needs at least 32; use the output of "
                        + "`openssl rand -hex 32`")
            }
            return SigningKey(id: id, secret: Secret(secret), previous: try previousKeys(values))
        case (nil, let secret?) where isDevelopment:
            return SigningKey(id: "dev", secret: Secret(secret), previous: try previousKeys(values))
        case (_, nil) where isDevelopment: return SigningKey(id: id ?? "dev", secret: nil)
        case (nil, nil):
            throw ConfigurationError(
                "tokens need a key: set --key-id and ROSTRUM_SECRET (to the output of `openssl rand -hex 32`), "
                    + "or give --dev to try Rostrum out on this machine")
        case (nil, _): throw ConfigurationError("--secret needs a name for the key: set --key-id too")
        case (_, nil):
            throw ConfigurationError(
                "--key-id needs the key itself: set ROSTRUM_SECRET, for example to the output of `openssl rand -hex 32`"
            )
        }
    }

    /// - Throws: if a further line of the secret file is too short for a key: it is probably a remark without `#`.
    private static func previousKeys(_ values: OptionValues) throws(ConfigurationError) -> [Secret<String>] {
        for secret in values.previousSecrets where secret.utf8.count < 32 {
            throw ConfigurationError(
                "an earlier key in \(values["secret-file"]?.texts.first ?? "the file") has "
                    + "\(secret.utf8.count) bytes, but needs at least 32; lines after the first one are earlier "
                    + "keys unless they begin with #")
        }
        return values.previousSecrets.map { Secret($0) }
    }

    private static func srtPassphrase(_ values: OptionValues) throws(ConfigurationError) -> Secret<String>? {
        guard let value = values["srt-passphrase"], let text = value.texts.first else { return nil }
        let lengths = IngestSettings.SRT.passphraseLengths
        guard lengths.contains(text.utf8.count) else {
            throw ConfigurationError(
                "\(value.origin) must be \(lengths.lowerBound) to \(lengths.upperBound) bytes long, not "
                    + "\(text.utf8.count)")
        }
        return Secret(text)
    }

    private static func publicAddresses(_ values: OptionValues) throws(ConfigurationError) -> [IPAddress] {
        var addresses: [IPAddress] = []
        guard let value = values["public-address"] else { return [] }
        for text in value.texts {
            for part in text.split(separator: ",") {
                guard let address = IPAddress(part.trimmingBlanks), !address.isUnspecified else {
                    throw ConfigurationError(
                        "\(value.origin): \(part) is not an address for clients; use the form 203.0.113.7")
                }
                addresses.append(address)
            }
        }
        return addresses
    }

    private static func trustedProxies(_ values: OptionValues) throws(ConfigurationError) -> TrustedProxies {
        guard let value = values["trusted-proxy"] else { return TrustedProxies() }
        var networks: [TrustedProxies.Network] = []
        for part in value.texts.flatMap({ $0.split(separator: ",") }) {
            guard let network = TrustedProxies.Network(part.trimmingBlanks) else {
                throw ConfigurationError(
                    "\(value.origin): \(part) is not a network; use the form 127.0.0.1 or 10.0.0.0/8")
            }
            networks.append(network)
        }
        return TrustedProxies(networks)
    }

    private static func iceServerSecret(
        _ values: OptionValues, for servers: [GatewaySettings.ICEServer]
    ) throws(ConfigurationError) -> Secret<String>? {
        guard let secret = values["ice-server-secret"]?.texts.first else { return nil }
        guard servers.contains(where: { $0.url.hasPrefix("turn") && $0.credential == nil }) else {
            // An empty value overrides the list of the file, whose secret may have no server then.
            if let value = values["ice-server"], value.texts.allSatisfy(\.isEmpty) { return nil }
            throw ConfigurationError(
                "--ice-server-secret is for TURN servers without a password: set --ice-server turn:HOST:PORT too"
            )
        }
        return Secret(secret)
    }

    private static func tls(_ values: OptionValues) throws(ConfigurationError) -> HTTPServerSettings.TLSFiles?
    {
        switch (values["tls-certificate"]?.texts.first, values["tls-key"]?.texts.first) {
        case (nil, nil): return nil
        case (let certificate?, let key?):
            return HTTPServerSettings.TLSFiles(certificate: certificate, key: key)
        case (nil, _): throw ConfigurationError("--tls-key needs its certificate: set --tls-certificate too")
        case (_, nil): throw ConfigurationError("--tls-certificate needs its key: set --tls-key too")
        }
    }

    private static func feedWeights(_ values: OptionValues) throws(ConfigurationError) -> FeedWeights {
        let usual = FeedWeights()
        let range = -FeedWeights.limit...FeedWeights.limit
        return FeedWeights(
            perDoublingOfViewers: try values.number("feed-viewers-weight", range)
                ?? usual.perDoublingOfViewers,
            perHour: try values.number("feed-age-weight", range) ?? usual.perHour,
            perBoost: try values.number("feed-boost-weight", range) ?? usual.perBoost)
    }

    private static func webhooks(_ values: OptionValues) throws(ConfigurationError) -> Webhooks? {
        let secret = values["webhook-secret"]?.texts.first
        let reviewers = try webhookURLs(values["review-webhook"])
        guard reviewers.count <= 1 else {
            throw ConfigurationError("--review-webhook must be one URL, not \(reviewers.count)")
        }
        let value = values["webhook"]
        let isNone = value?.texts.allSatisfy(\.isEmpty) ?? true
        guard !isNone || !reviewers.isEmpty else {
            // An empty value overrides the list of the file, whose secret may have nothing to sign then.
            guard secret == nil || value != nil else {
                throw ConfigurationError(
                    "--webhook-secret has nothing to sign: set --webhook or --review-webhook too")
            }
            return nil
        }
        let urls = try webhookURLs(value)
        guard let secret, secret.utf8.count >= 16 else {
            throw ConfigurationError(
                "webhooks need a secret of at least 16 bytes: set ROSTRUM_WEBHOOK_SECRET, for example to the output of "
                    + "`openssl rand -hex 32`")
        }
        if let value, !isNone, !(1...10).contains(urls.count) {
            throw ConfigurationError("\(value.origin) must be 1 to 10 URLs, not \(urls.count)")
        }
        return Webhooks(urls: urls, reviewer: reviewers.first, secret: Secret(secret))
    }

    private static func webhookURLs(_ value: OptionValues.Value?) throws(ConfigurationError) -> [String] {
        var urls: [String] = []
        for part in value?.texts.flatMap({ $0.split(separator: ",") }) ?? [] {
            guard let url = WebhookURL.checked(part.trimmingBlanks) else {
                throw ConfigurationError(
                    "\(value?.origin ?? ""): \(part) is not a URL; use the form https://example.org/hook")
            }
            if !urls.contains(url) { urls.append(url) }
        }
        return urls
    }

    private static func iceServers(
        _ values: OptionValues
    ) throws(ConfigurationError) -> [GatewaySettings.ICEServer] {
        var servers: [GatewaySettings.ICEServer] = []
        guard let value = values["ice-server"] else { return [] }
        for text in value.texts where !text.isEmpty {
            let parts = text.split(separator: ",", maxSplits: 2, omittingEmptySubsequences: false).map(
                String.init)
            let isKnown = ["stun:", "stuns:", "turn:", "turns:"].contains { parts[0].hasPrefix($0) }
            let host = parts[0].drop { $0 != ":" }.dropFirst().prefix { $0 != ":" && $0 != "?" }
            // The URL goes into a `Link` header of WHIP and WHEP, between `<` and `>`.
            let isPlain = parts[0].utf8.allSatisfy { $0 > 0x20 && $0 < 0x7F && $0 != 0x3E && $0 != 0x22 }
            // Browsers take no TURN server whose user or password is empty.
            let isComplete = parts.count == 1 || parts.count == 3 && !parts[1].isEmpty && !parts[2].isEmpty
            guard isKnown, !host.isEmpty, isPlain, isComplete else {
                throw ConfigurationError(
                    "\(value.origin) must have the form stun:HOST:PORT or turn:HOST:PORT,USER,PASSWORD, not \(parts[0])"
                )
            }
            servers.append(
                GatewaySettings.ICEServer(
                    url: parts[0], username: parts.count == 3 ? parts[1] : nil,
                    credential: parts.count == 3 ? Secret(parts[2]) : nil))
        }
        return servers
    }
}

extension OptionValues {
    /// - Returns: nil if the option is not set.
    func toggle(_ name: String) throws(ConfigurationError) -> Bool? {
        guard let value = self[name], let text = value.texts.first else { return nil }
        switch text.lowercased() {
        case "true", "yes", "on", "1": return true
        case "false", "no", "off", "0": return false
        default: throw ConfigurationError("\(value.origin) must be true or false, not \(text)")
        }
    }

    fileprivate func number(_ name: String, _ range: ClosedRange<Int>) throws(ConfigurationError) -> Int? {
        guard let value = self[name], let text = value.texts.first else { return nil }
        guard let number = Int(text), range.contains(number) else {
            throw ConfigurationError(
                "\(value.origin) must be a number from \(range.lowerBound) to \(range.upperBound), not \(text)"
            )
        }
        return number
    }

    fileprivate func packagingTiming(_ name: String) throws(ConfigurationError) -> PackagingTiming? {
        guard let value = self[name], let text = value.texts.first else { return nil }
        guard let timing = Int(text).flatMap({ PackagingTiming(partMilliseconds: $0) }) else {
            let lengths = PackagingTiming.partLengths.map { "\($0)" }.joined(separator: ", ")
            throw ConfigurationError("\(value.origin) must be one of \(lengths), not \(text)")
        }
        return timing
    }

    /// One of an enumeration's raw values; nil if the option is not set.
    func choice<Choice: RawRepresentable<String> & CaseIterable>(
        _ name: String
    ) throws(ConfigurationError) -> Choice? {
        guard let value = self[name], let text = value.texts.first else { return nil }
        guard let choice = Choice(rawValue: text) else {
            let names = Choice.allCases.map(\.rawValue).joined(separator: ", ")
            throw ConfigurationError("\(value.origin) must be one of \(names), not \(text)")
        }
        return choice
    }

    /// In seconds; nil for `forever`, which is the default.
    fileprivate func age(_ name: String) throws(ConfigurationError) -> Int? {
        guard let value = self[name], let text = value.texts.first, text != "forever" else { return nil }
        guard let seconds = TimeSpan.seconds(text, longest: 36_500 * 86_400) else {
            throw ConfigurationError(
                "\(value.origin) must be forever or a duration such as 30d, 12h or 90m, not \(text)")
        }
        return seconds
    }

    /// The three addresses of the TURN server, each nil if it is off or not set.
    fileprivate func turnAddresses() throws(ConfigurationError) -> TURNAddresses {
        func address(_ name: String) throws(ConfigurationError) -> TransportAddress? {
            self[name]?.texts.first == "off" ? nil : try self.address(name)
        }
        return TURNAddresses(
            tls: try address("turn-tls"), tcp: try address("turn-tcp"), udp: try address("turn-udp"))
    }

    /// `192.0.2.1:80`, `[::1]:80`, `localhost:80`, and `:80` for all IPv4 addresses.
    fileprivate func address(_ name: String) throws(ConfigurationError) -> TransportAddress? {
        guard let value = self[name], let text = value.texts.first else { return nil }
        return try Self.address(text, of: value)
    }

    /// An address as above, or one with a range of ports: `192.0.2.1:7000-7003`.
    /// - Returns: `last` is nil for a single port.
    fileprivate func ports(
        _ name: String
    ) throws(ConfigurationError) -> (address: TransportAddress, last: UInt16?)? {
        guard let value = self[name], let text = value.texts.first else { return nil }
        // An IPv6 address contains no `-`, so a `-` before the last digits can only begin the end of a range.
        let digits = text.reversed().prefix { $0.isASCII && $0.isNumber }
        guard !digits.isEmpty, text.dropLast(digits.count).hasSuffix("-") else {
            return (try Self.address(text, of: value), nil)
        }
        let address = try Self.address(String(text.dropLast(digits.count + 1)), of: value)
        guard let last = UInt16(String(digits.reversed())), address.port > 0, last >= address.port else {
            throw ConfigurationError(
                "\(value.origin): \(text) is not a port range; use 0.0.0.0:7000-7003, the lower first")
        }
        return (address, last)
    }

    private static func address(
        _ text: String, of value: Value
    ) throws(ConfigurationError) -> TransportAddress {
        var wanted = text
        if wanted.hasPrefix("localhost:") { wanted = "127.0.0.1" + wanted.dropFirst("localhost".count) }
        if wanted.hasPrefix(":") { wanted = "0.0.0.0" + wanted }
        guard let address = TransportAddress(wanted) else {
            throw ConfigurationError(
                "\(value.origin): \(text) is not an ADDRESS:PORT; use the form 127.0.0.1:8080 or [::1]:8080")
        }
        return address
    }
}
