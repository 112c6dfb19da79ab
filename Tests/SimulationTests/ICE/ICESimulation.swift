import Base
import ClientPeer
import Crypto
import Peer
import TestSupport
import Testing
import Wire

/// A client and a server that check each other over a bad network, in virtual time.
struct ICESimulation {
    /// Stands for an authentic media packet.
    private static let media: [UInt8] = [0x80, 96]

    static let sockets = [1, 2].map { TransportAddress(ip: IPAddress(ipv4: 0x0A00_0000 + $0), port: 1_000) }
    static let servers = [1, 2].map { TransportAddress(ip: IPAddress(ipv4: 0xC000_0200 + $0), port: 7_000) }

    private var network: SimulatedNetwork
    private(set) var now = MonotonicTime.zero
    private(set) var server: ICELiteAgent
    private(set) var client: ICEControllingAgent
    private(set) var serverEffects: [ICELiteAgent.Effect] = []
    private(set) var clientEffects: [ICEControllingAgent.Effect] = []
    /// What the NAT makes of the client's sockets.
    private var translation: [TransportAddress: TransportAddress] = [:]
    private var deadSockets: Set<TransportAddress> = []
    private var random: SeededGenerator
    private let authenticator = OpenSSLAuthenticator()
    private var nextMedia = MonotonicTime.zero
    /// Between media packets of the client; nil for none.
    var mediaInterval: Duration? = .milliseconds(50)
    var serverIsGone = false
    var clientIsGone = false

    init(
        seed: UInt64, nomination: ICEControllingAgent.Nomination, network: SimulatedNetwork.Conditions,
        sockets: Int = 2
    ) {
        let seed = ChosenSeed.or(seed)
        random = SeededGenerator(seed: seed)
        self.network = SimulatedNetwork(
            conditions: network, random: SeededGenerator(seed: ~seed), digest: RunDigest(seed: seed))
        let serverCredentials = ICECredentials(using: &random)
        var configuration = ICEControllingAgent.Configuration()
        configuration.nomination = nomination
        let clientCredentials = ICECredentials(using: &random)
        server = ICELiteAgent(credentials: serverCredentials, remote: clientCredentials, at: .zero)
        // There is no DTLS here: every address is asked.
        _ = server.noteHandshake(through: nil, at: .zero)
        client = ICEControllingAgent(
            local: clientCredentials, remote: serverCredentials, configuration: configuration, at: .zero,
            using: &random)
        for (index, socket) in Self.sockets.prefix(sockets).enumerated() {
            client.addLocal(.init(host: socket, index: UInt16(index)))
            rebind(index)
        }
        for (index, address) in Self.servers.enumerated() {
            client.addRemote(.init(host: address, index: UInt16(index)))
        }
    }

    /// Whether the server sends where the client listens and uses.
    var isSettled: Bool {
        guard let path = client.selected, let address = server.selected else { return false }
        return translation[path.local] == address
    }

    // MARK: What happens to the client

    /// The NAT gives a socket another public address, without a word.
    mutating func rebind(_ socket: Int) {
        let port = UInt16.random(in: 1_024...65_535, using: &random)
        let address = TransportAddress(ip: IPAddress(ipv4: 0xCB00_7100 + UInt32(socket)), port: port)
        translation[Self.sockets[socket]] = address
    }

    /// A network goes down, and the client notices.
    mutating func cut(_ socket: Int) {
        deadSockets.insert(Self.sockets[socket])
        client.removeLocal(Self.sockets[socket])
    }

    /// The client moves to another socket by its own choice; false if it cannot.
    mutating func move(to socket: Int) -> Bool {
        for address in Self.servers {
            let path = ICEControllingAgent.Path(local: Self.sockets[socket], remote: address)
            guard
                let effects = client.nominate(
                    path, at: now, authenticator: authenticator, using: &random)
            else { continue }
            perform(effects)
            return true
        }
        return false
    }

    mutating func restart() {
        let credentials = ICECredentials(using: &random)
        let own = ICECredentials(using: &random)
        serverEffects += server.restart(with: credentials, remote: own)
        client.restart(
            local: own, remote: credentials,
            remoteCandidates: Self.servers.enumerated().map { .init(host: $1, index: UInt16($0)) }, at: now)
    }

    // MARK: Time

    /// Lets time pass until `isDone`.
    ///
    /// - Returns: how long it took; nil if it was not done within `limit`.
    mutating func run(_ limit: Duration, until isDone: (ICESimulation) -> Bool = { _ in false }) -> Duration?
    {
        let start = now
        var stepsWithoutTime = 0
        while !isDone(self) {
            guard let next = nextEvent, next <= start + limit else {
                now = start + limit
                return nil
            }
            stepsWithoutTime = next > now ? 0 : stepsWithoutTime + 1
            guard stepsWithoutTime < 1_000 else {
                Issue.record("a machine wants to be woken again and again at the same time")
                return nil
            }
            now = max(now, next)
            step()
        }
        return now - start
    }

    private var nextEvent: MonotonicTime? {
        var times: [MonotonicTime] = []
        if let arrival = network.next { times.append(arrival) }
        if !clientIsGone, let deadline = client.deadline { times.append(deadline) }
        if !serverIsGone, let deadline = server.deadline { times.append(deadline) }
        if !clientIsGone, mediaInterval != nil, client.selected != nil { times.append(nextMedia) }
        return times.min()
    }

    private mutating func step() {
        while let datagram = network.receive(at: now) {
            if Self.servers.contains(datagram.destination) { toServer(datagram) } else { toClient(datagram) }
        }
        if !serverIsGone {
            // A request leaves from whichever address; the client answers to where it came from.
            let effects = server.advance(to: now, authenticator: authenticator, using: &random)
            send(effects, from: Self.servers[0])
            perform(effects)
        }
        guard !clientIsGone else { return }
        perform(client.advance(to: now, authenticator: authenticator, using: &random))
        if let mediaInterval, let path = client.selected, now >= nextMedia {
            nextMedia = now + mediaInterval
            send(Self.media, from: translation[path.local], to: path.remote, socket: path.local)
        }
    }

    private mutating func toServer(_ datagram: SimulatedNetwork.Datagram) {
        guard !serverIsGone else { return }
        guard datagram.bytes != Self.media else {
            if let effect = server.noteTraffic(from: datagram.source, at: now) { perform([effect]) }
            return
        }
        guard
            let effects = try? server.receive(
                datagram.bytes.span, from: datagram.source, at: now, authenticator: authenticator,
                using: &random)
        else { return }
        // The answer leaves from the address that was asked.
        send(effects, from: datagram.destination)
        perform(effects)
    }

    private mutating func send(_ effects: [ICELiteAgent.Effect], from source: TransportAddress) {
        for case .send(let bytes, let destination) in effects {
            send(bytes, from: source, to: destination, socket: nil)
        }
    }

    private mutating func toClient(_ datagram: SimulatedNetwork.Datagram) {
        guard !clientIsGone,
            let socket = translation.first(where: { $0.value == datagram.destination })?.key,
            !deadSockets.contains(socket)
        else { return }
        if (try? datagram.bytes.span.uint16(at: 0)) == STUNKind.bindingRequest.rawValue {
            let answer = try? client.answer(
                datagram.bytes.span, to: socket, from: datagram.source, authenticator: authenticator)
            return perform(answer.map { [$0] } ?? [])
        }
        guard
            let effects = try? client.receive(
                datagram.bytes.span, to: socket, from: datagram.source, at: now, authenticator: authenticator,
                using: &random)
        else { return }
        perform(effects)
    }

    private mutating func perform(_ effects: [ICELiteAgent.Effect]) {
        serverEffects += effects.filter { if case .send = $0 { false } else { true } }
    }

    private mutating func perform(_ effects: [ICEControllingAgent.Effect]) {
        for effect in effects {
            if case .send(let bytes, let path) = effect {
                send(bytes, from: translation[path.local], to: path.remote, socket: path.local)
            } else {
                clientEffects.append(effect)
            }
        }
    }

    private mutating func send(
        _ bytes: [UInt8], from source: TransportAddress?, to destination: TransportAddress,
        socket: TransportAddress?
    ) {
        guard let source, socket.map({ !deadSockets.contains($0) }) ?? true else { return }
        network.send(.init(source: source, destination: destination, bytes: bytes), at: now)
    }
}
