import Base
import Crypto
import Net
import Synchronization
import TURN

extension OpenSSLAuthenticator: TURNAuthenticator {
    package func md5(_ message: Span<UInt8>) -> [UInt8]? { MessageDigest.md5(message) }
}

/// How a node takes clients by TURN.
package struct TURNSettings: Sendable {
    /// Where TLS is taken, and by what certificate it is answered; nil for nowhere.
    package var tls: (address: TransportAddress, identity: TLSIdentity)?
    /// Where TCP is taken; nil for nowhere.
    package var tcp: TransportAddress?
    /// Where UDP is taken; nil for nowhere.
    package var udp: TransportAddress?
    /// By which the passwords are made that clients were given.
    package let secret: Secret<[UInt8]>
    /// Allocations of all clients.
    package var total = 4_096
    /// Of one IPv4 address, or of one IPv6 network of 64 bits; an office may share one.
    package var perAddress = 256

    package init(secret: Secret<[UInt8]>) {
        self.secret = secret
    }
}

/// What clients of a node by TURN did, and how many there are.
package struct TURNStatistics: Equatable, Sendable {
    /// Allocations that there are now.
    package var allocations = 0
    /// Connections over TCP and TLS.
    package var connections = StreamServerCounters()
    /// Since the start.
    package var totals = TURNCounters()
}

/// Who is behind an address that was opened in a client's name.
struct RelayedClient: Equatable, Sendable {
    /// How a client speaks with the relay.
    enum Way: String, Sendable {
        case udp, tcp, tls
    }

    /// Where it is.
    let address: TransportAddress
    let way: Way
}

/// What all TURN ports of a node share: who may be named, the addresses in clients' names, and how many there may be.
final class TURNRelay: Sendable {
    private static let realm = "rostrum"
    /// Where an even port is asked for, so many others are let go before one that is odd is taken.
    private static let mostOddPorts = 16

    let policy: TURNPolicy
    private let peers: TURNPeers
    private let ports: RelayPorts
    private let quota: ConnectionQuota
    private let totals = Mutex(TURNCounters())
    /// By which workers send to clients by UDP themselves.
    private let routes: ChannelRoutes
    /// By the addresses in their names; no more than the quota lets.
    private let clients = Mutex<[TransportAddress: RelayedClient]>([:])
    private let now: @Sendable () -> Moment

    init(
        _ settings: TURNSettings, peers: TURNPeers, routes: ChannelRoutes,
        now: @escaping @Sendable () -> Moment
    ) throws {
        self.peers = peers
        self.routes = routes
        self.now = now
        policy = TURNPolicy(
            realm: Self.realm, credentials: TURNCredentials(secret: settings.secret),
            nonceKey: Secret(try RandomBytes.make(32)), peers: peers.named)
        quota = ConnectionQuota(
            total: settings.total, perAddress: settings.perAddress, share: settings.total / 2)
        ports = try RelayPorts()
    }

    /// Since 1970.
    var second: Int { Int(now().wall.milliseconds / 1_000) }

    /// Allocations that there are.
    var count: Int { quota.count }
    var counters: TURNCounters {
        var sum = totals.withLock { $0 }
        let sent = routes.counters
        sum.datagramsOut &+= sent.datagrams
        sum.bytesOut &+= sent.bytes
        sum.droppedSlow &+= sent.dropped
        return sum
    }

    func add(_ counters: TURNCounters) {
        guard counters != TURNCounters() else { return }
        totals.withLock { $0 += counters }
    }

    /// Opens an address in a client's name; nil where there is no room for one more.
    func open(
        isIPv4: Bool, isEven: Bool, for client: RelayedClient, notify: @escaping @Sendable () -> Void
    ) -> RelayPort? {
        guard let ip = peers.relayed(isIPv4: isIPv4), quota.take(client.address.ip) else { return nil }
        var odd: [RelayPort] = []
        // Kept until then, so that the kernel names others.
        defer { for port in odd { ports.close(port) } }
        do throws(NetError) {
            var port = try ports.open(at: ip, notify: notify)
            while isEven, port.localAddress.port % 2 != 0, odd.count < Self.mostOddPorts {
                odd.append(port)
                port = try ports.open(at: ip, notify: notify)
            }
            clients.withLock { $0[port.localAddress] = client }
            return port
        } catch {
            // Counted as refused by whoever asked: there are too many open files.
            quota.giveBack(client.address.ip)
            return nil
        }
    }

    /// Lets workers send to a client by its channels from now on, and by no others.
    func route(
        _ channels: [(peer: TransportAddress, number: UInt16, end: MonotonicTime)], to client: RelayedClient,
        by port: RelayPort
    ) {
        var found: [TransportAddress: ChannelRoutes.Route] = [:]
        for channel in channels {
            guard let target = peers.target(of: channel.peer) else { continue }
            found[target] = ChannelRoutes.Route(
                client: client.address, channel: channel.number, end: channel.end)
        }
        routes.set(found, of: port.localAddress)
    }

    func close(_ port: RelayPort, of client: RelayedClient) {
        routes.set([:], of: port.localAddress)
        // Before another may get the same port.
        clients.withLock { $0[port.localAddress] = nil }
        ports.close(port)
        quota.giveBack(client.address.ip)
    }

    /// Who is behind an address that a worker sees; nil where it is the client's own.
    func client(at address: TransportAddress) -> RelayedClient? { clients.withLock { $0[address] } }

    func send(_ datagram: [UInt8], by port: RelayPort, to peer: TransportAddress) {
        guard let target = peers.target(of: peer) else { return }
        ports.send(datagram, by: port, to: target)
    }

    /// How a client names what sent something to its address; nil for a stranger.
    func name(of source: TransportAddress) -> TransportAddress? { peers.name(of: source) }

    func stop() { ports.stop() }
}

/// A client of a TURN port: what was agreed with it, and the address in its name; used by its port's thread alone.
final class TURNClient {
    private let identity: RelayedClient
    private let relay: TURNRelay
    private let notify: @Sendable () -> Void
    private let authenticator = OpenSSLAuthenticator()
    private var agent: TURNAgent
    private var port: RelayPort?

    /// - Parameter notify: called by another thread when there is something to be delivered.
    init(
        _ address: TransportAddress, by way: RelayedClient.Way, of relay: TURNRelay,
        notify: @escaping @Sendable () -> Void
    ) {
        identity = RelayedClient(address: address, way: way)
        self.relay = relay
        self.notify = notify
        agent = TURNAgent(of: address, by: relay.policy)
    }

    var hasAllocation: Bool { agent.hasAllocation }
    var deadline: MonotonicTime? { agent.deadline }

    /// Takes a message of the client.
    /// - Parameter answer: gets each message that is to go back.
    func receive(_ message: Span<UInt8>, at now: MonotonicTime, _ answer: ([UInt8]) -> Void) {
        let effects = agent.receive(message, at: now, second: relay.second, by: authenticator)
        perform(effects, at: now, answer)
        relay.add(agent.takeCounters())
        // Only what is answered changes who may send.
        guard identity.way == .udp, let port, effects.contains(where: \.isAnswer) else { return }
        relay.route(agent.openChannels(at: now), to: identity, by: port)
    }

    func advance(to now: MonotonicTime) {
        perform(agent.advance(to: now), at: now) { _ in }
    }

    private func perform(_ effects: [TURNAgent.Effect], at now: MonotonicTime, _ answer: ([UInt8]) -> Void) {
        for effect in effects {
            switch effect {
            case .answer(let bytes): answer(bytes)
            case .allocate(let isIPv4, let isEven):
                port = relay.open(isIPv4: isIPv4, isEven: isEven, for: identity, notify: notify)
                perform(agent.open(port?.localAddress, at: now, by: authenticator), at: now, answer)
            case .relay(let datagram, let peer):
                if let port { relay.send(datagram, by: port, to: peer) }
            case .release: close()
            }
        }
    }

    /// Hands over what came to its address.
    /// - Parameters:
    ///   - output: where messages for the client are appended.
    ///   - hasRoom: whether a datagram of some bytes may be appended to what is there.
    ///   - visit: comes after each.
    func deliver(
        into output: inout [UInt8], isStream: Bool, at now: MonotonicTime, hasRoom: (Int, Int) -> Bool,
        _ visit: (inout [UInt8]) -> Void = { _ in }
    ) {
        guard let waiting = port?.take() else { return }
        for _ in 0..<waiting.dropped { agent.drop() }
        waiting.forEach { datagram, source in
            guard let name = relay.name(of: source) else { return }
            guard hasRoom(datagram.count, output.count) else { return agent.drop() }
            agent.append(datagram, from: name, isStream: isStream, at: now, to: &output)
            visit(&output)
        }
        relay.add(agent.takeCounters())
    }

    /// Gives its address back.
    func close() {
        guard let port else { return }
        self.port = nil
        relay.close(port, of: identity)
    }
}
