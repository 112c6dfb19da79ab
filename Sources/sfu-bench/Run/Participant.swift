import Base
import ClientPeer
import Foundation
import Net
import Peer
import Synchronization
import TURN
import Wire

/// A client of a run, as signalling sees it.
struct Participant: Sendable {
    let id: Int
    /// Where to end the session; nil if the server named no URL.
    let session: URL?
    let token: String?
}

/// Creates clients: fetches a token, posts an offer, and hands the negotiated client to a generator thread.
final class Entrance: Sendable {
    private let options: Options
    private let client: SignallingClient
    private let tokens: TokenSource
    private let generator: Generator
    private let log: JoinLog
    private let recordings: Recordings
    /// Ids are unique in the run, also those of clients that return.
    private let nextID = Atomic(0)
    /// The addresses of this machine, loopback included.
    private let ownAddresses = LocalAddresses.advertised(for: .any, includeLoopback: true)

    init(
        _ options: Options, client: SignallingClient, tokens: TokenSource, generator: Generator, log: JoinLog,
        recordings: Recordings
    ) {
        self.options = options
        self.client = client
        self.tokens = tokens
        self.generator = generator
        self.log = log
        self.recordings = recordings
    }

    /// Permission for one client to join.
    ///
    /// Its token is fetched beforehand, so that this does not count as part of the join.
    struct Ticket: Sendable {
        let id: Int
        let stream: String
        let role: TokenSource.Role
        let identity: String
        /// Nil where the server is used without credentials.
        let token: String?
    }

    /// Fetches a token for a new identity, which is unique on this machine.
    func ticket(
        _ role: TokenSource.Role, stream: String, scope: TokenSource.Scope = .stream
    ) async throws(SignallingError) -> Ticket {
        let id = nextID.wrappingAdd(1, ordering: .relaxed).oldValue
        let identity = "bench-\(role.rawValue)-\(ProcessInfo.processInfo.processIdentifier)-\(id)"
        return Ticket(
            id: id, stream: stream, role: role, identity: identity,
            token: try await tokens.token(for: identity, role, stream, client, scope: scope))
    }

    /// Fetches a token for an identity and a name that the caller chooses.
    func ticket(
        _ role: TokenSource.Role, stream: String, identity: String, name: String
    ) async throws(SignallingError) -> Ticket {
        Ticket(
            id: nextID.wrappingAdd(1, ordering: .relaxed).oldValue, stream: stream, role: role,
            identity: identity, token: try await tokens.token(for: identity, role, stream, client, name: name)
        )
    }

    /// The same ticket with a new id, for another attempt.
    func next(_ ticket: Ticket) -> Ticket {
        Ticket(
            id: nextID.wrappingAdd(1, ordering: .relaxed).oldValue, stream: ticket.stream, role: ticket.role,
            identity: ticket.identity, token: ticket.token)
    }

    /// The same ticket with a new id and a new token.
    func renewed(_ ticket: Ticket) async throws(SignallingError) -> Ticket {
        let next = next(ticket)
        return Ticket(
            id: next.id, stream: next.stream, role: next.role, identity: next.identity,
            token: try await tokens.token(for: next.identity, next.role, next.stream, client))
    }

    /// Publishes or plays.
    /// - Throws: why the server did not admit the client; the log has that, too.
    func enter(_ ticket: Ticket, isViewer: Bool) async throws(SignallingError) -> Participant {
        let (requests, path) = (isViewer ? Self.playing : publishing, path(isViewer: isViewer))
        let (participant, setup) = try await negotiated(
            ticket, requests, path: path, isViewer: isViewer, isEarlier: false)
        generator.add(setup)
        return participant
    }

    /// Whether the server still has a session; false if the server named no URL for it.
    func isKnown(_ participant: Participant) async -> Bool {
        guard let session = participant.session else { return false }
        return await client.knows(session, token: participant.token)
    }

    /// Removes a client whose session is over, without ending the session at the server.
    func forget(_ id: Int) async { await generator.remove(id: id) }

    private static let playing: [ClientOffer.Request] = [.playAudio, .playVideo]

    private func path(isViewer: Bool) -> String { isViewer ? options.target.whep : options.target.whip }

    /// Publishes the ticket's stream; nil if that fails, which is logged.
    func publish(_ ticket: Ticket) async -> Participant? {
        await join(ticket, publishing, path: options.target.whip, isViewer: false, isEarlier: false)
    }

    /// The tracks to offer, by what the settings provide media for.
    private var publishing: [ClientOffer.Request] {
        // A single layer is sent without simulcast.
        let rids = options.media.layers > 1 ? MediaOptions.rids.prefix(options.media.layers) : []
        let video = ClientOffer.Request.publishVideo(.vp8, rids: Array(rids))
        var requests: [ClientOffer.Request] = []
        if recordings.audio != nil || options.media.audioBitrate > 0 { requests.append(.publishAudio) }
        if recordings.video != nil || options.media.bitrate > 0 { requests.append(video) }
        return requests
    }

    /// Watches the ticket's stream; nil if that fails, which is logged.
    /// - Parameter isEarlier: whether it counts among the viewers that play before a storm.
    func view(_ ticket: Ticket, isEarlier: Bool = false) async -> Participant? {
        await join(
            ticket, Self.playing, path: options.target.whep, isViewer: true, isEarlier: isEarlier)
    }

    /// Watches the ticket's stream over an emulated network.
    func watch(
        _ ticket: Ticket, over profile: NetworkProfile, into recorder: NetworkRecorder
    ) async -> Participant? {
        let joining = await negotiate(
            ticket, [.playAudio, .playVideo], path: options.target.whep, isViewer: true, isEarlier: false,
            purpose: .watch(NetworkSettings(profile: profile, recorder: recorder)))
        if let joining { generator.add(joining.setup) }
        return joining?.participant
    }

    /// Sends a GET request, and returns the body.
    func get(_ url: URL, token: String?) async throws(SignallingError) -> String {
        try await client.get(url, token: token)
    }

    /// Enters the story feed at the ticket's stream.
    ///
    /// Offers two seats, each with audio and video, and the data channel for the feed's messages.
    func swipe(_ ticket: Ticket) async -> Participant? {
        let (path, preload) = (options.target.feed, options.audience.swiping.preload.rawValue)
        return await join(
            ticket, [.playAudio, .playVideo, .playAudio, .playVideo, .dataChannels],
            path: path + (path.contains("?") ? "&" : "?") + "preload=" + preload,
            isViewer: true, isEarlier: false)
    }

    /// Negotiates a session without connecting it, for audio alone, which is never replayed to a new viewer.
    func prepare(_ ticket: Ticket) async -> (participant: Participant, setup: ClientSetup)? {
        await negotiate(
            ticket, [.playAudio], path: options.target.whep, isViewer: true, isEarlier: false)
    }

    /// Negotiates, and hands the client to its thread; nil if signalling failed.
    private func join(
        _ ticket: Ticket, _ requests: [ClientOffer.Request], path: String, isViewer: Bool, isEarlier: Bool
    ) async -> Participant? {
        let joining = await negotiate(
            ticket, requests, path: path, isViewer: isViewer, isEarlier: isEarlier)
        if let joining { generator.add(joining.setup) }
        return joining?.participant
    }

    /// Negotiates without throwing; the log has the reason for a nil.
    private func negotiate(
        _ ticket: Ticket, _ requests: [ClientOffer.Request], path: String, isViewer: Bool, isEarlier: Bool,
        purpose chosen: ClientSetup.Purpose? = nil
    ) async -> (participant: Participant, setup: ClientSetup)? {
        try? await negotiated(
            ticket, requests, path: path, isViewer: isViewer, isEarlier: isEarlier, purpose: chosen)
    }

    /// Negotiates a session: creates a socket, posts the offer, and interprets the answer.
    /// - Parameter chosen: what the client will do; nil to derive that from the options.
    /// - Throws: why it failed, which is also logged.
    private func negotiated(
        _ ticket: Ticket, _ requests: [ClientOffer.Request], path: String, isViewer: Bool, isEarlier: Bool,
        purpose chosen: ClientSetup.Purpose? = nil
    ) async throws(SignallingError) -> (participant: Participant, setup: ClientSetup) {
        log.begin(ticket.id, isViewer: isViewer, at: MonotonicClock.now())
        do {
            let endpoint = try options.server.endpoint(path, stream: ticket.stream)
            var random = SystemRandomNumberGenerator()
            let coalesces = isViewer && options.audience.coalesces
            // The socket is bound before the offer is made, because the offer contains its port.
            let socket = try Self.socket(on: .any, coalesces: coalesces)
            let offer = ClientOffer(
                requests, credentials: ICECredentials(using: &random), fingerprint: generator.fingerprint,
                // IPv4 alone: the socket is bound to IPv4, and is replaced later if the server has IPv6 only.
                candidates: offeredAddresses.filter { $0.ipv4 != nil }.prefix(Self.offeredCandidates).map {
                    TransportAddress(ip: $0, port: socket.localAddress.port)
                }, feedback: isViewer ? options.network.feedback.offered : .transportWide, using: &random)
            let answer = try await client.post(
                offer: offer.description.text, to: endpoint, token: ticket.token)
            log.answered(ticket.id, requested: answer.requested, at: answer.answered)
            let plan = try plan(of: answer.sdp, to: offer)
            let purpose: ClientSetup.Purpose =
                if let chosen {
                    chosen
                } else if !isViewer {
                    .publish(publisherSettings(of: ticket.stream))
                } else if options.command == .feed {
                    .swipe(feedSettings(of: ticket.id))
                } else if options.audience.handshakesOnly, !isEarlier {
                    .connect
                } else {
                    .view(viewerSettings)
                }
            let setup = ClientSetup(
                id: ticket.id, credentials: offer.credentials, plan: plan,
                socket: try Self.socket(for: plan, instead: socket, coalesces: coalesces),
                purpose: purpose, isEarlier: isEarlier, relay: try relay(of: answer))
            return (Participant(id: ticket.id, session: answer.session, token: ticket.token), setup)
        } catch {
            log.fail(ticket.id, "\(error)")
            throw error as? SignallingError ?? .unusable("\(error)")
        }
    }

    /// The addresses in the offer; none for TCP and TURN, as a full ICE agent would check ours over UDP.
    private var offeredAddresses: [IPAddress] { options.target.transport == .udp ? ownAddresses : [] }

    private var viewerSettings: ViewerSettings {
        ViewerSettings(
            decryptEvery: options.audience.decryptEvery, asksForRepair: options.audience.asksForRepair,
            tellsOfPackets: options.audience.tellsOfPackets)
    }

    private func publisherSettings(of stream: String) -> PublisherSettings {
        // A stream's own recording, then that of all streams, then synthetic media.
        let own = recordings.ofStream[stream]
        return PublisherSettings(
            media: options.media, recordedVideo: own?.video ?? recordings.video,
            recordedAudio: own?.audio ?? recordings.audio,
            stream: stream, number: options.target.streamNames.firstIndex(of: stream) ?? 0)
    }

    private func feedSettings(of id: Int) -> FeedSettings {
        let swiping = options.audience.swiping
        return FeedSettings(
            streams: options.target.streamNames,
            interval: swiping.interval(viewers: options.audience.viewers), jumps: swiping.jumps,
            turns: swiping.turns, callsOff: swiping.callsOff,
            // A different sequence of moves for each viewer, and the same ones in the next run.
            seed: swiping.seed &* 1_000_003 &+ UInt64(id),
            isMeasured: id % options.audience.decryptEvery == 0)
    }

    /// Parses the answer, and selects the candidates to try.
    /// - Throws: `SignallingError.unusable` if it does not fit the offer, or names no usable candidate.
    private func plan(of sdp: String, to offer: ClientOffer) throws -> ClientPlan {
        guard let description = try? SessionDescription(parsing: sdp) else {
            throw SignallingError.unusable("no session description")
        }
        var plan: ClientPlan
        do {
            plan = try ClientPlan(description, to: offer)
        } catch {
            throw SignallingError.unusable("\(error)")
        }
        // Rostrum's relay identifies a worker by the first of its addresses only.
        let offered =
            options.target.transport == .turn
            ? Array(plan.candidates.filter { $0.transport == .udp }.prefix(1)) : plan.candidates
        plan.candidates = try Self.usable(
            offered, of: options.target.transport.ofCandidates, isOwned: options.target.isOwned,
            own: ownAddresses)
        return plan
    }

    /// The relay to use, if the user wants one.
    ///
    /// Like media, it must be on this machine unless the user owns the server.
    private func relay(of answer: SignallingClient.Answer) throws(SignallingError) -> TURNClientAgent.Relay? {
        guard options.target.transport == .turn else { return nil }
        guard let relay = answer.relay else { throw .unusable("no UDP relay with a numeric address") }
        let ip = relay.address.ip
        guard ip.isLoopback || ownAddresses.contains(ip) || options.target.isOwned else {
            throw .unusable(
                "\(relay.address) is not this machine; if the server is yours, add --i-own-this-server")
        }
        return relay
    }

    /// The candidates to try: loopback ones if there are any, else those at this machine's addresses.
    ///
    /// All have the same IP version, because a client has one socket. Other addresses are used only if the user owns
    /// the server: an HTTP endpoint on loopback may be a tunnel to another machine.
    /// - Throws: `SignallingError.unusable` if there is none.
    static func usable(
        _ candidates: [ICECandidate], of transport: ICECandidate.Transport = .udp, isOwned: Bool,
        own: [IPAddress]
    ) throws(SignallingError) -> [ICECandidate] {
        // A TCP connection reaches only one of them.
        let limit = transport == .tcp ? 1 : checkedCandidates
        let fitting = candidates.filter {
            $0.transport == transport && $0.component == 1 && $0.transportAddress != nil
        }
        // The first match determines the IP version.
        func those(_ isWanted: (IPAddress) -> Bool) -> [ICECandidate] {
            let wanted = fitting.filter { $0.transportAddress.map { isWanted($0.ip) } ?? false }
            let isIPv4 = wanted.first?.transportAddress?.ip.ipv4 != nil
            return Array(
                wanted.filter { ($0.transportAddress?.ip.ipv4 != nil) == isIPv4 }.prefix(limit))
        }
        let loopback = those { $0.isLoopback }
        guard loopback.isEmpty else { return loopback }
        let local = those { own.contains($0) }
        guard local.isEmpty else { return local }
        guard !fitting.isEmpty else {
            throw .unusable("no \(transport.rawValue.uppercased()) candidate")
        }
        guard isOwned else {
            let address = fitting.first?.transportAddress.map { "\($0)" } ?? ""
            throw .unusable("\(address) is not this machine; if the server is yours, add --i-own-this-server")
        }
        return those { _ in true }
    }

    /// The most candidates of the server that are tried.
    private static let checkedCandidates = 8
    /// The most addresses of our own in an offer, for a server that is a full ICE agent.
    private static let offeredCandidates = 4

    private static func isIPv6(_ plan: ClientPlan) -> Bool {
        plan.candidates.first?.transportAddress.map { $0.ip.ipv4 == nil } ?? false
    }

    /// The socket that can reach the server's candidates: the offered one, unless they need TCP or IPv6.
    private static func socket(
        for plan: ClientPlan, instead offered: DatagramSocket, coalesces: Bool
    ) throws -> ClientSocket {
        if let remote = plan.candidates.first?.transportAddress, remote.transport == .tcp {
            return .stream(try StreamSocket(connect: remote))
        }
        guard isIPv6(plan) else { return .datagram(offered) }
        return .datagram(try socket(on: IPAddress(high: 0, low: 0), coalesces: coalesces))
    }

    /// A UDP socket on any port, with kernel timestamps, from which latency is measured.
    private static func socket(on ip: IPAddress, coalesces: Bool) throws -> DatagramSocket {
        try DatagramSocket(
            bind: TransportAddress(ip: ip, port: 0), bufferBytes: 1 << 20, coalescing: coalesces,
            stamping: true)
    }

    /// Closes the connection, then ends the session at the server.
    ///
    /// In this order: after the session's end, the server could not attribute the closing datagrams to any session.
    func leave(_ participant: Participant) async {
        log.left(participant.id)
        await generator.remove(id: participant.id)
        guard let session = participant.session else { return }
        // A failure does not matter: by closing the connection the client has already left.
        try? await client.delete(session, token: participant.token)
    }
}

/// The files that publishers play, read once.
struct Recordings: Sendable {
    var video: RecordedVideo?
    var audio: RecordedAudio?
    /// Media of single streams, by the stream's name.
    var ofStream: [String: (video: RecordedVideo, audio: RecordedAudio)] = [:]

    /// No files: publishers send synthetic media unless `ofStream` has something for them.
    init() {}

    /// Reads and parses the files of the options.
    /// - Throws: `UsageError` with the path, if a file cannot be read or has an unsupported format.
    init(_ media: MediaOptions) throws(UsageError) {
        if let path = media.videoFile {
            do {
                let file = try Self.read(path)
                video = try RecordedVideo(parsing: file)
                // A film includes its own sound, if it has any.
                if media.audioFile == nil, WebMFile.isWebM(file) { audio = try? RecordedAudio(parsing: file) }
            } catch let problem as RecordedVideo.Problem {
                throw UsageError("\(path) \(problem)")
            } catch {
                throw UsageError("\(path): \(error)")
            }
        }
        if let path = media.audioFile {
            do {
                audio = try RecordedAudio(parsing: try Self.read(path))
            } catch let problem as RecordedAudio.Problem {
                throw UsageError("\(path) \(problem)")
            } catch {
                throw UsageError("\(path): \(error)")
            }
        }
    }

    private static func read(_ path: String) throws -> [UInt8] {
        guard let data = FileManager.default.contents(atPath: path) else {
            throw UsageError("cannot be read")
        }
        return Array(data)
    }
}
