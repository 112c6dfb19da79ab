import Base
import Crypto
import Testing

/// A DTLS client and a DTLS server with a network between them, in virtual time.
struct DTLSPair {
    /// What the network does with a datagram.
    enum Fate {
        case deliver, lose, duplicate
        /// Arrives this much later than it should.
        case delay(Duration)
    }

    enum End {
        case client, server
    }

    struct Flying {
        var arrival: MonotonicTime
        var to: End
        var bytes: [UInt8]
    }

    static let latency = Duration.milliseconds(10)

    var client: DTLSEndpoint
    var server: DTLSEndpoint
    var now = MonotonicTime(nanoseconds: 5_000_000_000)
    var flying: [Flying] = []
    /// How many datagrams left each end.
    var sentByClient = 0
    var sentByServer = 0
    var longestDatagram = 0
    /// Called for each datagram with its sender and number, counted from 0 for each sender.
    var fate: (End, Int) -> Fate = { _, _ in .deliver }

    var clientMaterial: SRTPKeyingMaterial?
    var serverMaterial: SRTPKeyingMaterial?
    var clientData: [[UInt8]] = []
    var serverData: [[UInt8]] = []
    var clientClosed: DTLSEndpoint.CloseReason?
    var serverClosed: DTLSEndpoint.CloseReason?

    init(client: DTLSEndpoint, server: DTLSEndpoint) {
        self.client = client
        self.server = server
    }

    /// Two ends that know each other's certificate.
    init(
        mtu: Int = DTLSContext.defaultMTU, clientProfiles: [SRTPProfile] = SRTPProfile.preference,
        serverProfiles: [SRTPProfile] = SRTPProfile.preference
    ) throws {
        let identities = try (client: TestIdentities.first.get(), server: TestIdentities.second.get())
        client = DTLSEndpoint(
            context: try DTLSContext(identity: identities.client, profiles: clientProfiles, mtu: mtu),
            role: .client, expectedFingerprints: [identities.server.fingerprint])
        server = DTLSEndpoint(
            context: try DTLSContext(identity: identities.server, profiles: serverProfiles, mtu: mtu),
            role: .server, expectedFingerprints: [identities.client.fingerprint])
    }

    var isConnected: Bool {
        client.isConnected && server.isConnected
    }

    mutating func perform(_ effects: [DTLSEndpoint.Effect], of end: End) {
        for effect in effects {
            switch effect {
            case .send(let bytes): send(bytes, from: end)
            case .connected(let material):
                if end == .client { clientMaterial = material } else { serverMaterial = material }
            case .applicationData(let data):
                if end == .client { clientData.append(data) } else { serverData.append(data) }
            case .closed(let reason):
                if end == .client { clientClosed = reason } else { serverClosed = reason }
            }
        }
    }

    mutating func send(_ bytes: [UInt8], from end: End) {
        let number = end == .client ? sentByClient : sentByServer
        if end == .client { sentByClient += 1 } else { sentByServer += 1 }
        longestDatagram = max(longestDatagram, bytes.count)
        let arrival = now + Self.latency
        let to = end == .client ? End.server : .client
        switch fate(end, number) {
        case .lose: break
        case .deliver: flying.append(Flying(arrival: arrival, to: to, bytes: bytes))
        case .duplicate:
            flying.append(Flying(arrival: arrival, to: to, bytes: bytes))
            flying.append(Flying(arrival: arrival, to: to, bytes: bytes))
        case .delay(let more): flying.append(Flying(arrival: arrival + more, to: to, bytes: bytes))
        }
    }

    mutating func start() {
        perform(client.start(at: now), of: .client)
    }

    /// Lets time pass until `isDone`, or until nothing more can happen, or for `limit`.
    mutating func run(
        for limit: Duration = .seconds(40), until isDone: (DTLSPair) -> Bool = { $0.isConnected }
    ) {
        let end = now + limit
        while !isDone(self) {
            let next = flying.indices.min { flying[$0].arrival < flying[$1].arrival }
            let times = [next.map { flying[$0].arrival }, client.deadline, server.deadline].compactMap { $0 }
            guard let time = times.min(), time <= end else { return }
            now = max(now, time)
            if let next, flying[next].arrival <= now {
                let datagram = flying.remove(at: next)
                if datagram.to == .client {
                    perform(client.receive(datagram.bytes.span, at: now), of: .client)
                } else {
                    perform(server.receive(datagram.bytes.span, at: now), of: .server)
                }
            }
            perform(client.advance(to: now), of: .client)
            perform(server.advance(to: now), of: .server)
        }
    }

    /// Lets what is on its way arrive.
    mutating func settle() {
        run(for: .seconds(1)) { $0.flying.isEmpty }
    }

    func expectSameKeys() throws {
        let (client, server) = (try #require(clientMaterial), try #require(serverMaterial))
        #expect(client.profile == server.profile)
        #expect(client.client.masterKey.exposed == server.client.masterKey.exposed)
        #expect(client.server.masterKey.exposed == server.server.masterKey.exposed)
        #expect(client.client.masterSalt.exposed == server.client.masterSalt.exposed)
        #expect(client.server.masterSalt.exposed == server.server.masterSalt.exposed)
        #expect(client.client.masterKey.exposed != client.server.masterKey.exposed)
    }
}

/// Made once: a key pair takes time.
enum TestIdentities {
    static let first = Result { try DTLSIdentity() }
    static let second = Result { try DTLSIdentity() }
    static let third = Result { try DTLSIdentity() }
}
