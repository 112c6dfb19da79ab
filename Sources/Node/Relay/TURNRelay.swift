import Base
import Crypto
import Net
import Synchronization
import TURN

extension OpenSSLAuthenticator: TURNAuthenticator {
    /// Nil where OpenSSL's configuration leaves MD5 out.
    package func md5(_ message: Span<UInt8>) -> [UInt8]? { MessageDigest.md5(message) }
}

/// The TURN ports of a node, and their limits.
package struct TURNSettings: Sendable {
    /// The address for TLS, and the certificate for it; nil for no TLS.
    package var tls: (address: TransportAddress, identity: TLSIdentity)?
    /// The address for TCP; nil for none.
    package var tcp: TransportAddress?
    /// The address for UDP; nil for none.
    package var udp: TransportAddress?
    /// The secret from which the passwords of clients are derived.
    package let secret: Secret<[UInt8]>
    /// Allocations of all clients, at most.
    package var total = 4_096
    /// Allocations of one IPv4 address, or of one IPv6 network of 64 bits.
    ///
    /// Hundreds of people in an office may share one address, and a browser makes one allocation for each way to the
    /// relay: by UDP, TCP and TLS.
    package var perAddress = 1_024

    /// Settings without a port.
    package init(secret: Secret<[UInt8]>) {
        self.secret = secret
    }

    /// Counts allocations; a site gets at most half of all.
    func makeQuota() -> ConnectionQuota {
        ConnectionQuota(total: total, perAddress: perAddress, share: total / 2)
    }

    /// Limits on the connections of a port by TCP or TLS.
    var connectionLimits: StreamServerLimits {
        var limits = StreamServerLimits()
        limits.total = total
        limits.perAddress = perAddress
        // As many may be on their way to an allocation as by ICE-TCP to a session: a whole office when an event begins.
        let media = ConnectionLimits()
        limits.waiting = media.waiting
        limits.waitingPerAddress = media.waitingPerAddress
        // More than a conversation lets wait, so that none is closed for it.
        limits.output = 512 << 10
        return limits
    }
}

/// What the TURN ports of a node do, for monitoring.
package struct TURNStatistics: Equatable, Sendable {
    /// Allocations now.
    package var allocations = 0
    /// Connections over TCP and TLS.
    package var connections = StreamServerCounters()
    /// Since the start.
    package var totals = TURNCounters()
}

/// The client behind a relayed address.
struct RelayedClient: Equatable, Sendable {
    /// How a client reaches the relay.
    enum Way: String, Sendable {
        case udp, tcp, tls
    }

    /// The client's own address.
    let address: TransportAddress
    let way: Way
}

/// What all TURN ports of a node share: the permitted peers, the relayed addresses, and the quota for them.
///
/// Used by the threads of all ports at the same time.
final class TURNRelay: Sendable {
    private static let realm = "rostrum"
    /// Odd ports that are opened and given up at most while an even one is requested (RFC 8656 §7.2).
    private static let mostOddPorts = 16

    let policy: TURNPolicy
    private let peers: TURNPeers
    private let ports: RelayPorts
    private let quota: ConnectionQuota
    private let totals = Mutex(TURNCounters())
    /// Lets workers send to clients over UDP without the relayed address.
    private let routes: ChannelRoutes
    /// The clients by relayed address; bounded by the quota.
    private let clients = Mutex<[TransportAddress: RelayedClient]>([:])
    private let now: @Sendable () -> Moment

    /// - Throws: if there is no randomness for the nonce key, or no thread or descriptor for relayed addresses.
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
        quota = settings.makeQuota()
        ports = try RelayPorts()
    }

    /// Seconds since 1970; user names contain the time of their expiry.
    var second: Int { Int(now().wall.milliseconds / 1_000) }

    /// Allocations now.
    var count: Int { quota.count }
    /// Totals since the start, including what workers sent themselves.
    var counters: TURNCounters {
        var sum = totals.withLock { $0 }
        let sent = routes.counters
        sum.datagramsOut &+= sent.datagrams
        sum.bytesOut &+= sent.bytes
        sum.droppedSlow &+= sent.dropped
        return sum
    }

    /// Adds a client's counts to the totals.
    func add(_ counters: TURNCounters) {
        // Spares the lock, which all ports share.
        guard counters != TURNCounters() else { return }
        totals.withLock { $0 += counters }
    }

    /// Opens a relayed address for a client.
    /// - Parameter notify: called on another thread when datagrams have arrived at it.
    /// - Returns: nil if the quota is used up, no worker is reached by the family, or the system has no descriptors
    ///   left.
    func open(
        isIPv4: Bool, isEven: Bool, for client: RelayedClient, notify: @escaping @Sendable () -> Void
    ) -> RelayPort? {
        guard let ip = peers.relayed(isIPv4: isIPv4), quota.take(client.address.ip) else { return nil }
        var odd: [RelayPort] = []
        // Odd ports stay open until an even one is found, so that the kernel does not choose them again.
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
            // Too many open files. The agent counts this as a refusal.
            quota.giveBack(client.address.ip)
            return nil
        }
    }

    /// Sets the channels by which workers send to a client themselves; replaces all earlier ones.
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

    /// Closes a relayed address, and gives its place in the quota back.
    func close(_ port: RelayPort, of client: RelayedClient) {
        routes.set([:], of: port.localAddress)
        // Before the port is closed: another client may get the same port then.
        clients.withLock { $0[port.localAddress] = nil }
        ports.close(port)
        quota.giveBack(client.address.ip)
    }

    /// The client behind an address that a worker sees; nil if the address is the client's own.
    func client(at address: TransportAddress) -> RelayedClient? { clients.withLock { $0[address] } }

    /// Sends a datagram from a relayed address to a worker; drops it if the peer is no worker.
    func send(_ datagram: [UInt8], by port: RelayPort, to peer: TransportAddress) {
        guard let target = peers.target(of: peer) else { return }
        ports.send(datagram, by: port, to: target)
    }

    /// The address by which clients name the source of a datagram; nil if it is no worker.
    func name(of source: TransportAddress) -> TransportAddress? { peers.name(of: source) }

    /// Ends the thread that reads relayed addresses.
    func stop() { ports.stop() }
}

/// A client of a TURN port: its protocol machine and its relayed address.
///
/// Used by its port's thread alone, except for `notify`.
final class TURNClient {
    private let identity: RelayedClient
    private let relay: TURNRelay
    private let notify: @Sendable () -> Void
    private let authenticator = OpenSSLAuthenticator()
    private var agent: TURNAgent
    /// The relayed address; nil without an allocation.
    private var port: RelayPort?

    /// - Parameter notify: called on another thread when datagrams have arrived at the relayed address.
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

    /// Processes a message of the client.
    /// - Parameter answer: called with each message for the client.
    func receive(_ message: Span<UInt8>, at now: MonotonicTime, _ answer: ([UInt8]) -> Void) {
        let effects = agent.receive(message, at: now, second: relay.second, by: authenticator)
        perform(effects, at: now, answer)
        relay.add(agent.takeCounters())
        // Only a request that was answered can have changed the channels. Workers send by themselves over UDP alone.
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

    /// Appends what has arrived at the relayed address, as messages for the client.
    /// - Parameters:
    ///   - output: receives the messages.
    ///   - isStream: whether messages are padded for a byte stream.
    ///   - hasRoom: whether a datagram of a length may be added to the bytes already in `output`; if not, it is
    ///     dropped.
    ///   - visit: called after each message.
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

    /// Closes the relayed address.
    func close() {
        guard let port else { return }
        self.port = nil
        relay.close(port, of: identity)
    }
}
