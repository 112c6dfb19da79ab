import Base
import Crypto
import Foundation
import Gateway
import HTTP
import Net
import Node
import Recordings

/// The running server: the node, the HTTP listeners in front of it, and the store behind it.
///
/// This is where the parts are wired together. Everything that a part needs of the configuration is translated here
/// into the part's own settings.
struct Server: Sendable {
    private let data: DataService
    private let node: Node
    /// The keys that tokens are checked against, shared with everything that checks tokens; a reload replaces them.
    private let keys: SigningKeys
    /// Never empty: first the public listener, then the operators' listener if there is one.
    private let listeners: [HTTPServer]
    private let sharedPorts: SharedPorts
    private let certificate: PresentedCertificate
    /// Logs once a day that the certificate expires soon.
    private let reminder: Task<Void, Never>

    /// How long requests that are under way at the end may still take.
    private static let grace = Duration.seconds(3)

    /// Starts all parts, each after those that it needs.
    ///
    /// Ports that several protocols share are opened first, because that may fail and costs nothing to undo; they are
    /// served last, once every part is there. A part that fails stops all that were started before it, so a failed
    /// start leaves no thread and no open store behind.
    /// - Throws: the error of the part that failed, in words for an operator.
    static func start(_ configuration: Configuration, log: Log) async throws -> Server {
        let pages = try WebPages.load()
        let signing = try key(configuration.key, log)
        let keys = SigningKeys([signing] + previousKeys(configuration.key))
        let certificate = PresentedCertificate(
            try configuration.tls.map { files in try CertificateCheck.facts(of: files) })
        let authority = TokenAuthority(keys)
        // Where everyone may watch, previews need no signature in their address.
        let paths = ResourcePaths(
            previews: PreviewAddress(keys: configuration.viewers == .everyone ? nil : keys))
        let sharedPorts = try openSharedPorts(configuration)
        let data = try await DataService.open(configuration, log: log)
        let node: Node
        do {
            var settings = nodeConfiguration(configuration)
            // Connections of shared ports reach the node by these, because it opens no socket of its own for them.
            settings.inboxes = sharedPorts.inboxes
            settings.locator = paths
            settings.ingest = try ingestSettings(configuration, authority)
            settings.turn = try turnSettings(configuration, signing)
            settings.reviewer = data.reviewer
            node = try Node(configuration: settings, log: log, store: data.store)
        } catch {
            await data.stop()
            throw error
        }
        do {
            // Streams come back before the first request can be answered.
            try await node.load()
        } catch {
            await node.stop()
            await data.stop()
            throw error
        }
        await node.start()
        let counters = HTTPCounters()
        let handler = GatewayHandler(
            service: node, authority: authority,
            settings: gatewaySettings(
                configuration, data, paths, node, sharedPorts, certificate, signing),
            pages: pages, counters: counters, now: { Int(Date().timeIntervalSince1970) },
            elapsed: { MonotonicClock.now() })
        let listeners: [HTTPServer]
        do throws(HTTPServerError) {
            listeners = try await listen(configuration, sharedPorts, handler, counters, log)
        } catch {
            await node.stop()
            await data.stop()
            throw error
        }
        let server = Server(
            data: data, node: node, keys: keys, listeners: listeners, sharedPorts: sharedPorts,
            certificate: certificate, reminder: Task { await Self.remind(of: certificate, log) })
        do {
            // Connections that arrived since the ports were opened have waited in the kernel.
            try sharedPorts.start(listeners.first, isSecure: configuration.tls != nil)
        } catch {
            await server.stop()
            throw error
        }
        for (address, uses) in sharedPorts.descriptions {
            log.info("shared-port", ["address": address, "for": uses])
        }
        for warning in configuration.warnings(announced: node.announced.map(\.ip)) {
            log.warning(warning.event, ["why-it-matters": warning.reason])
        }
        if let command = configuration.firstLink {
            log.info("links", ["create-a-host-link-with": command])
        }
        return server
    }

    /// Logs at the start and then once a day what is wrong with the certificate's validity, until it is cancelled.
    private static func remind(of certificate: PresentedCertificate, _ log: Log) async {
        while !Task.isCancelled {
            if let warning = certificate.warning(now: Int(Date().timeIntervalSince1970)) {
                log.warning(warning.event, ["why-it-matters": warning.reason])
            }
            do { try await Task.sleep(for: .seconds(86_400)) } catch { return }
        }
    }

    /// Opens the TCP ports that several protocols share; no connection is accepted before `start`.
    ///
    /// Their TLS identity is read only if there is such a port. HTTP's own listener reads the files itself.
    private static func openSharedPorts(_ configuration: Configuration) throws -> SharedPorts {
        let needsIdentity = !configuration.sharedPorts.isEmpty
        return try SharedPorts(
            configuration, identity: try configuration.tls.flatMap { needsIdentity ? try identity($0) : nil })
    }

    /// Starts the public listener, and the operators' listener if one is configured.
    /// - Returns: the public listener first.
    private static func listen(
        _ configuration: Configuration, _ sharedPorts: SharedPorts, _ handler: GatewayHandler,
        _ counters: HTTPCounters, _ log: Log
    ) async throws(HTTPServerError) -> [HTTPServer] {
        var settings = HTTPServerSettings(address: configuration.http, tls: configuration.tls)
        // Where HTTP shares its port, connections are handed to it instead.
        settings.listens = !sharedPorts.includeHTTP
        settings.trustedProxies = configuration.trustedProxies
        let http = try await HTTPServer.start(settings, handler: handler, counters: counters, log: log)
        guard let address = configuration.admin else { return [http] }
        do throws(HTTPServerError) {
            let admin = try await HTTPServer.start(
                HTTPServerSettings(address: address), handler: OperatorHandler(handler), log: log)
            log.info("admin", ["address": admin.address])
            return [http, admin]
        } catch {
            await http.stop(grace: .zero)
            throw error
        }
    }

    /// `ready http=… udp=… tcp=… rtmp=… rtmps=… srt=… turn-tls=…`, with the ports that the system chose.
    ///
    /// Of the workers' addresses only the first is shown if all workers share it or if the others' ports follow it in
    /// sequence.
    var readyLine: String {
        let addresses = node.addresses
        let first = addresses.first
        let isShared = addresses.allSatisfy { $0 == first }
        let isSequence = addresses.enumerated().allSatisfy { index, address in
            first.map { Int($0.port) + index == Int(address.port) } ?? false
        }
        let shown = isShared || isSequence ? Array(addresses.prefix(1)) : addresses
        let turn = node.turnAddresses
        let further: [(String, TransportAddress?)] = [
            ("tcp", node.tcpAddress), ("rtmp", node.rtmpAddress), ("rtmps", node.rtmpsAddress),
            ("srt", node.srtAddress),
            ("turn-tls", turn.tls), ("turn-tcp", turn.tcp), ("turn-udp", turn.udp),
        ]
        let http = listeners.first?.address.description ?? ""
        let udp = shown.map(\.description).joined(separator: ",")
        return further.reduce("ready http=\(http) udp=\(udp)") { line, port in
            port.1.map { "\(line) \(port.0)=\($0)" } ?? line
        }
    }

    // MARK: While it runs

    /// Applies what can change: TLS files for new connections, token keys, and limits.
    ///
    /// Limits and keys are applied even if the TLS files cannot be read.
    /// - Returns: why the old certificate stays in use; nil if the files could be read.
    func reload(_ configuration: Configuration) async -> String? {
        await node.setLimits(Self.nodeConfiguration(configuration).limits)
        // A key that was made at start has no source to be read from again, and stays.
        if let secret = configuration.key.secret {
            let signing = TokenAuthority.Key(
                id: configuration.key.id, secret: Secret(Array(secret.exposed.utf8)))
            keys.replace(with: [signing] + Self.previousKeys(configuration.key))
        }
        do {
            // Only the public listener: the operators' listener speaks no TLS.
            try listeners.first?.renewCertificate(configuration.tls)
            try certificate.renew(configuration.tls)
            let isNeeded =
                configuration.rtmps != nil || configuration.turn.tls != nil
                || !configuration.sharedPorts.isEmpty
            if isNeeded, let files = configuration.tls {
                let identity = try Self.identity(files)
                node.renewCertificate(identity)
                sharedPorts.renew(identity)
            }
            return nil
        } catch {
            return "\(error)"
        }
    }

    /// Requests a sign of life from every part.
    ///
    /// Returns once the node's actor and the HTTP threads have answered. Workers are only woken; `silentParts` names
    /// those that have not run since.
    func askForSigns() async {
        node.wakeWorkers()
        _ = await node.acceptsSessions
        for listener in listeners { await listener.turn() }
    }

    /// Workers that have not run their loop since the last request for a sign.
    var silentParts: [String] { node.sleepingWorkers.map { "worker-\($0)" } }

    /// Ends all sessions, then lets HTTP requests finish, then closes the store.
    ///
    /// Shared ports stop first, so that they hand over no further connection. The store closes last, because the node
    /// and requests under way may still commit.
    func stop() async {
        reminder.cancel()
        sharedPorts.stop()
        await node.stop()
        for listener in listeners { await listener.stop(grace: Self.grace) }
        await data.stop()
    }

    /// The key that signs tokens: the configured one, or 32 random bytes if there is none.
    ///
    /// A short secret is accepted only in development, with a warning in the log.
    private static func key(_ key: Configuration.SigningKey, _ log: Log) throws -> TokenAuthority.Key {
        guard let secret = key.secret else {
            return TokenAuthority.Key(id: key.id, secret: Secret(try RandomBytes.make(32)))
        }
        if secret.exposed.utf8.count < 32 {
            log.warning("secret-too-short", ["bytes": secret.exposed.utf8.count, "wanted": 32])
        }
        return TokenAuthority.Key(id: key.id, secret: Secret(Array(secret.exposed.utf8)))
    }

    /// Earlier keys, whose tokens are still accepted, under the current key's ID.
    private static func previousKeys(_ key: Configuration.SigningKey) -> [TokenAuthority.Key] {
        key.previous.map { TokenAuthority.Key(id: key.id, secret: Secret(Array($0.exposed.utf8))) }
    }

    /// The node's settings, as far as they follow from the configuration alone.
    ///
    /// Also the source of the limits for `reload`, and of the announced addresses for `rostrum doctor`.
    static func nodeConfiguration(_ configuration: Configuration) -> NodeConfiguration {
        var result = NodeConfiguration(udp: configuration.udp)
        result.tcp = configuration.tcp
        result.publicAddresses = configuration.publicAddresses
        result.hasPortPerWorker = configuration.lastUDPPort != nil
        result.workers = configuration.workers
        // In development a browser and a compiler share the processors, and the scheduler finds free ones better.
        result.pinsWorkers = !configuration.isDevelopment
        result.srtpEngine = configuration.srtpEngine
        result.feedWeights = configuration.feedWeights
        result.sessionLimit = configuration.maximumSessions
        result.sessionLimitForAddress = configuration.maximumSessionsPerAddress
        // Only a browser on this machine can reach 127.0.0.1, which is the usual case in development alone.
        result.advertisesLoopback = configuration.isDevelopment
        result.createsStreamsOnPublish = configuration.isDevelopment
        // Without receivers the outbox need not keep events.
        result.reportsEvents = configuration.webhooks?.urls.isEmpty == false
        result.transcoder = configuration.transcoderSettings
        result.compositionLimit = configuration.maximumCompositions
        result.renditionLimit = configuration.maximumRenditions
        result.conversionLimit = configuration.maximumConversions
        result.packagingLimit = configuration.maximumPackagings
        result.packagingTiming = configuration.packagingTiming
        if let directory = configuration.dataDirectory, configuration.maximumDVRSeconds > 0 {
            result.dvr = DVRSettings(
                directory: "\(directory)/dvr", secondsLimit: configuration.maximumDVRSeconds)
        }
        result.clipLimit = configuration.maximumClips
        result.restreams = RestreamSettings(
            limit: configuration.maximumRestreams, toPrivateNetworks: configuration.restreamNetworks == .all)
        result.recordings = configuration.dataDirectory.map {
            RecordingSettings(directory: "\($0)/recordings")
        }
        result.pausePictures = configuration.dataDirectory.map { "\($0)/pause-pictures" }
        result.retention = configuration.retention
        return result
    }

    /// Settings of the RTMP, RTMPS and SRT entrance; nil if all three are off.
    /// - Throws: if the certificate for RTMPS cannot be read.
    private static func ingestSettings(
        _ configuration: Configuration, _ authority: TokenAuthority
    ) throws -> IngestSettings? {
        let ports = [configuration.rtmp, configuration.rtmps, configuration.srt]
        guard ports.contains(where: { $0 != nil }) else { return nil }
        var secure: (address: TransportAddress, identity: TLSIdentity)?
        if let address = configuration.rtmps, let files = configuration.tls {
            secure = (address, try identity(files))
        }
        let srt = configuration.srt.map {
            IngestSettings.SRT(
                address: $0, passphrase: configuration.srtPassphrase, latency: configuration.srtLatency)
        }
        return IngestSettings(address: configuration.rtmp, secure: secure, srt: srt) {
            key throws(IngestSettings.Refusal) in
            try authority.authorize(key, now: Int(Date().timeIntervalSince1970))
        }
    }

    /// Settings of the TURN server; nil if it is off.
    ///
    /// The shared secret of TURN passwords is derived from the key that signs tokens, so that no second secret has to
    /// be configured.
    /// - Throws: if the certificate for TURN over TLS cannot be read.
    private static func turnSettings(
        _ configuration: Configuration, _ signing: TokenAuthority.Key
    ) throws -> TURNSettings? {
        let addresses = configuration.turn
        guard addresses != TURNAddresses() else { return nil }
        let secret = GatewaySettings.TURN.secret(from: signing.secret).exposed
        var settings = TURNSettings(secret: Secret(Array(secret.utf8)))
        if let address = addresses.tls, let files = configuration.tls {
            settings.tls = (address, try identity(files))
        }
        settings.tcp = addresses.tcp
        settings.udp = addresses.udp
        return settings
    }

    /// Reads the certificate chain and its key, as the files are now.
    private static func identity(_ files: HTTPServerSettings.TLSFiles) throws -> TLSIdentity {
        func bytes(_ path: String) throws(HTTPServerError) -> [UInt8] {
            do {
                return [UInt8](try Data(contentsOf: URL(fileURLWithPath: path)))
            } catch {
                throw .unreadableFile(path, detail: error.localizedDescription)
            }
        }
        let (chain, key) = (try bytes(files.certificate), try bytes(files.key))
        do throws(CryptoError) {
            return try TLSIdentity(chain: chain, key: key)
        } catch {
            throw HTTPServerError.badCertificate(
                certificate: files.certificate, key: files.key, detail: error.description)
        }
    }

    /// Settings of the HTTP routes, which report to clients what this server offers.
    ///
    /// Ports are taken from the running node, because the system may have chosen them.
    private static func gatewaySettings(
        _ configuration: Configuration, _ data: DataService, _ paths: ResourcePaths, _ node: Node,
        _ sharedPorts: SharedPorts, _ certificate: PresentedCertificate, _ signing: TokenAuthority.Key
    ) -> GatewaySettings {
        var settings = GatewaySettings()
        settings.viewers = configuration.viewers
        settings.isDevelopment = configuration.isDevelopment
        settings.version = Rostrum.version
        settings.transcodes = configuration.transcoding == .on
        settings.records = configuration.dataDirectory != nil
        settings.makesHLS = node.packagings?.makesHLS ?? false
        settings.longestDVR = settings.makesHLS ? node.packagings?.longestWindow ?? 0 : 0
        settings.makesClips = node.clips != nil
        settings.restreams = configuration.maximumRestreams > 0
        settings.rtmpPort = node.rtmpAddress?.port
        settings.rtmpsPort = node.rtmpsAddress?.port
        settings.srtPort = node.srtAddress?.port
        settings.isSRTEncrypted = configuration.srtPassphrase != nil
        settings.iceServers = configuration.iceServers
        settings.iceServerSecret = configuration.iceServerSecret
        let turn = node.turnAddresses
        if turn != TURNAddresses() {
            settings.turn = GatewaySettings.TURN(
                tls: turn.tls?.port, tcp: turn.tcp?.port, udp: turn.udp?.port,
                secret: GatewaySettings.TURN.secret(from: signing.secret))
        }
        settings.paths = paths
        // Read at each scrape, from parts that the gateway does not import.
        settings.furtherMetrics = {
            data.metrics + [BuildInfo.metric, certificate.metric] + node.ingestMetrics + node.turnMetrics
                + sharedPorts.metrics
        }
        settings.hindrance = { data.hindrance }
        return settings
    }
}
