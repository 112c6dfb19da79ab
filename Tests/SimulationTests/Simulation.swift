import Base
import ClientPeer
import Forwarding
import Peer
import TestSupport
import Wire

/// A server, its clients and the network between them, in virtual time and from one seed.
final class Simulation {
    static let stream: StreamID = {
        guard let stream = StreamID("show") else { preconditionFailure("a valid name") }
        return stream
    }()
    private(set) var now = MonotonicTime(nanoseconds: 1_000_000_000)
    private(set) var events: [WorkerEvent] = []
    private var clients: [SimulatedClient] = []
    private let server: SimulatedServer
    private var count = 0
    /// Clients whose datagrams come over TCP, by their addresses.
    var readers: [TransportAddress: SlowReader] = [:]
    /// Addresses of people who have nothing to do with the server, and what was sent to them.
    var bystanders: [TransportAddress: [[UInt8]]] = [:]

    init(
        seed: UInt64, conditions: SimulatedNetwork.Conditions = .perfect, workers count: Int = 1,
        sharesPort: Bool = false
    ) throws {
        server = try SimulatedServer(
            seed: seed, conditions: conditions, workers: count, sharesPort: sharesPort)
    }

    /// Datagrams that came to another worker than that of their session.
    var handedOver: Int { server.handedOver }

    var workers: [Worker] { server.workers }
    var network: SimulatedNetwork { server.network }
    var digest: RunDigest { server.digest }

    var conditions: SimulatedNetwork.Conditions {
        get { server.network.conditions }
        set { server.network.conditions = newValue }
    }

    // MARK: Links

    /// Puts a link before a client; nil for one without a limit.
    func cap(_ client: SimulatedClient, _ link: CappedLink?) {
        server.network.links[client.outerAddress] = link
    }

    /// Loses so much of what a client sends, from 0 to 1, and nothing of what it is sent.
    func lose(_ share: Double, from client: SimulatedClient) {
        server.network.uplinkLoss[client.outerAddress] = share
    }

    /// Loses so much of what a client is sent, from 0 to 1, and nothing of what it sends.
    func lose(_ share: Double, to client: SimulatedClient) {
        server.network.downlinkLoss[client.outerAddress] = share
    }

    /// Puts one link before several clients, behind those that were put there before.
    /// - Parameter loss: probability, 0 to 1, that what passes gets lost whatever the queue.
    func share(_ link: CappedLink, among clients: [SimulatedClient], loss: Double = 0) {
        server.network.commonLinks.append(
            CommonLink(link: link, receivers: Set(clients.map(\.outerAddress)), loss: loss))
    }

    /// Changes what a link takes that clients share, or puts something else through it.
    /// - Parameter index: how many were put there before it.
    func withCommonLink(_ index: Int = 0, _ body: (inout CommonLink) -> Void) {
        guard server.network.commonLinks.indices.contains(index) else { return }
        body(&server.network.commonLinks[index])
    }

    /// Puts a link behind a client: what they tell goes through it.
    func capUplink(of client: SimulatedClient, _ link: CappedLink) {
        server.network.uplinks[client.outerAddress] = link
    }

    /// Puts so many bytes of something else through the link behind a client.
    func occupyUplink(of client: SimulatedClient, _ bytes: Int) {
        _ = server.network.uplinks[client.outerAddress]?.pass(bytes, at: now)
    }

    /// Moves a client away: so long does what it sends and is sent take.
    func delay(_ client: SimulatedClient, by delay: Duration) {
        server.network.delays[client.outerAddress] = delay
    }

    /// Bytes of datagrams that arrived at a client, or will.
    func bytesDelivered(to client: SimulatedClient) -> Int { network.delivered[client.outerAddress] ?? 0 }

    /// Begins to keep what becomes of each datagram at the links before a client.
    func followPassages(to client: SimulatedClient) { server.network.passages[client.outerAddress] = [] }

    /// What became of them since.
    func passages(to client: SimulatedClient) -> [SimulatedNetwork.Passage] {
        network.passages[client.outerAddress] ?? []
    }

    /// Bytes of datagrams that were sent to a client, whether they arrived or not.
    func bytesSent(to client: SimulatedClient) -> Int { network.offered[client.outerAddress] ?? 0 }

    // MARK: Clients

    /// A client whose offer the server has answered; it connects as time goes on.
    /// - Parameter asksForSound: whether a viewer requests lost sound again, as browsers do not.
    func add(
        _ role: SimulatedClient.Role, worker: Int = 0, rids: [String] = [], hasRTX: Bool = true,
        hasRED: Bool = false, prefersRED: Bool = false, hasTransportFeedback: Bool = true,
        saysEstimates: Bool = false,
        feedback: ClientOffer.Feedback = .transportWide,
        bitrate: Int = 300_000,
        layers: [SyntheticVideo.Settings] = [],
        checksConsent: Bool = true,
        asksForSound: Bool = true, waitsForHandshake: Bool = false
    ) throws -> (client: SimulatedClient, session: SessionID) {
        count += 1
        var settings = SyntheticVideo.Settings()
        settings.bitrate = bitrate
        let seed = server.random.next()
        let client = try server.run(at: now) {
            try SimulatedClient(
                role: role, address: SimulatedServer.address(ofClient: count),
                identity: server.clientIdentity, seed: seed, rids: rids,
                pictures: layers.isEmpty ? [settings] : layers, feedback: feedback,
                checksConsent: checksConsent)
        }
        client.asksForSound = asksForSound
        let plain = client.offer.description.text
        let offer = asksForSound && role == .viewer ? Self.withSoundAskedFor(plain) : plain
        var text = hasRED || prefersRED ? Self.withRED(offer, isPreferred: prefersRED) : offer
        if saysEstimates { text = Self.withEstimates(text) }
        if !hasTransportFeedback || saysEstimates { text = Self.withoutTransportFeedback(text) }
        if waitsForHandshake { text = text.replacing("a=setup:actpass", with: "a=setup:passive") }
        let (id, _, answer) = try server.open(
            hasRTX ? text : Self.withoutRTX(text), for: role == .publisher ? .publish : .play, on: worker,
            at: now
        ) { id, plan, credentials in
            SessionOpening(
                id: id, plan: plan, localCredentials: credentials,
                publishes: role == .publisher ? Self.stream : nil,
                follows: role == .viewer ? Self.stream : nil, order: UInt64(count))
        }
        try server.run(at: now) { try client.start(answer, at: now) }
        let slots = workers[worker].sessions[id]?.slots ?? []
        client.decoder.firstSent = slots.first { $0.plan.kind == .video }?.nextSequence
        clients.append(client)
        return (client, id)
    }

    /// An offer of a client that takes earlier sound in later packets, or sends it, as Chromium's.
    private static func withRED(_ offer: String, isPreferred: Bool) -> String {
        var lines: [Substring] = []
        for line in offer.split(separator: "\r\n") {
            if line.hasPrefix("m=audio"), isPreferred {
                lines.append(Substring(line.replacing("SAVPF ", with: "SAVPF 63 ")))
            } else {
                lines.append(line.hasPrefix("m=audio") ? line + " 63" : line)
            }
            guard line.hasPrefix("a=rtpmap:"), line.hasSuffix(" opus/48000/2"),
                let type = line.dropFirst(9).split(separator: " ").first
            else { continue }
            lines += ["a=rtpmap:63 red/48000/2", "a=fmtp:63 \(type)/\(type)"]
        }
        return lines.map { $0 + "\r\n" }.joined()
    }

    /// An offer of a client that asks for lost sound, as GStreamer's.
    private static func withSoundAskedFor(_ offer: String) -> String {
        var lines: [Substring] = []
        for line in offer.split(separator: "\r\n") {
            lines.append(line)
            guard line.hasPrefix("a=rtpmap:"), line.hasSuffix(" opus/48000/2"),
                let type = line.dropFirst(9).split(separator: " ").first
            else { continue }
            lines.append("a=rtcp-fb:\(type) nack")
        }
        return lines.map { $0 + "\r\n" }.joined()
    }

    /// An offer of a client that has packets repeated under their own numbers.
    private static func withoutRTX(_ offer: String) -> String {
        offer.split(separator: "\r\n").filter { !$0.contains(" rtx/90000") && !$0.contains("apt=") }
            .map { $0 + "\r\n" }.joined()
    }

    /// An offer of a client that does not tell of each packet when it came.
    private static func withoutTransportFeedback(_ offer: String) -> String {
        offer.split(separator: "\r\n").filter { !$0.contains("transport-") || !$0.contains("-cc") }
            .map { $0 + "\r\n" }.joined()
    }

    /// An offer of a client that says how much it can take in (REMB).
    private static func withEstimates(_ offer: String) -> String {
        offer.split(separator: "\r\n").map { line in
            let isFeedback = line.hasPrefix("a=rtcp-fb:") && line.hasSuffix(" transport-cc")
            return (isFeedback ? line.dropLast("transport-cc".count) + "goog-remb" : line) + "\r\n"
        }.joined()
    }

    /// Sends a command to a worker, as control would.
    func perform(_ command: WorkerCommand, worker: Int = 0) {
        server.perform(command, on: worker, at: now)
        settle(worker)
    }

    /// Makes a viewer say that it can take in so many bits a second.
    func say(_ estimate: UInt64, by client: SimulatedClient) {
        with(client) { $0.say(estimate, into: &$1) }
    }

    /// Makes a viewer send feedback that somebody made up.
    func send(_ feedback: [RTCPPacket], by client: SimulatedClient) {
        with(client) { $0.send(feedback, into: &$1) }
    }

    /// Makes a viewer say that its decoder cannot go on.
    func askForKeyFrame(_ client: SimulatedClient) {
        with(client) { $0.askForKeyFrame(into: &$1) }
    }

    /// Makes a viewer ask again for packets of its video or its sound, by the numbers that it sees.
    func ask(for lost: [UInt16], of kind: MediaKind = .video, by client: SimulatedClient) {
        with(client) { $0.ask(for: lost, of: kind, into: &$1) }
    }

    /// Makes a client say goodbye.
    func close(_ client: SimulatedClient) {
        with(client) { $0.close(into: &$1) }
    }

    private func with(_ client: SimulatedClient, _ body: (SimulatedClient, inout CollectingSink) -> Void) {
        var sink = CollectingSink(source: client.outerAddress)
        server.run(at: now) { body(client, &sink) }
        send(sink.takeAll())
    }

    // MARK: Time

    /// Lets `duration` pass.
    func run(for duration: Duration) {
        _ = run(for: duration) { false }
    }

    /// Lets time pass until `condition` holds, at most `limit`.
    /// - Returns: whether it came to hold.
    func run(for limit: Duration, until condition: () -> Bool) -> Bool {
        let end = now + limit
        while !condition() {
            let next = nextEvent
            guard next <= end else {
                now = end
                return condition()
            }
            now = max(now, next)
            step()
        }
        return true
    }

    private var nextEvent: MonotonicTime {
        var next = network.next ?? .distantFuture
        for worker in workers { next = min(next, worker.deadline ?? .distantFuture) }
        for client in clients { next = min(next, client.deadline) }
        for reader in readers.values { next = min(next, reader.next) }
        return next
    }

    private func step() {
        while let datagram = server.network.receive(at: now) { deliver(datagram) }
        for client in clients {
            guard let reader = readers[client.outerAddress] else { continue }
            for datagram in reader.read(at: now) { deliver(datagram) }
            guard let backlog = reader.measure(at: now),
                let index = server.note(backlog, of: client.outerAddress, from: reader.source, at: now)
            else { continue }
            settle(index)
        }
        for index in workers.indices {
            server.advance(index, to: now)
            settle(index)
        }
        for client in clients where client.deadline <= now {
            with(client) { $0.advance(to: now, into: &$1) }
        }
    }

    private func deliver(_ datagram: SimulatedNetwork.Datagram) {
        guard bystanders[datagram.destination]?.append(datagram.bytes) == nil else { return }
        if let index = server.receive(datagram, at: now) { return settle(index) }
        for client in clients where client.outerAddress == datagram.destination {
            with(client) { $0.receive(datagram.bytes, from: datagram.source, at: now, into: &$1) }
        }
    }

    private func settle(_ index: Int) {
        send(server.finish(index, at: now) { events.append($0) })
    }

    private func send(_ datagrams: [SimulatedNetwork.Datagram]) {
        for datagram in datagrams {
            if let reader = readers[datagram.destination] {
                reader.append(datagram, at: now)
            } else {
                server.network.send(datagram, at: now)
            }
        }
    }
}

extension SyntheticVideo.Settings {
    /// Simulcast layers of a wide picture, the largest first: bits a second, and height in pixels.
    static func ladder(_ sizes: [(bitrate: Int, height: Int)]) -> [Self] {
        sizes.map { bitrate, height in
            var settings = Self()
            settings.bitrate = bitrate
            settings.height = height
            settings.width = height * 16 / 9
            return settings
        }
    }
}
