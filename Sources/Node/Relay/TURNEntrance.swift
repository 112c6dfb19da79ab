import Base
import Crypto
import Net
import TURN

/// The TURN ports of a node, for clients whose networks let no other traffic through.
///
/// Each port has a thread, and one more thread reads what workers send to relayed addresses. Datagrams are relayed to
/// this node's own workers alone. To a worker each client is at an address of this machine, so all rules for clients
/// apply.
/// - Source: RFC 8656.
final class TURNEntrance: Sendable {
    private typealias Secured = SecuredConversation<TURNConversation>

    private let relay: TURNRelay
    private let tls: StreamServer<Secured>?
    private let tcp: StreamServer<TURNConversation>?
    private let udp: WorkerThread<TURNDatagrams>?
    /// The certificate for connections that are accepted from now on.
    private let identity: SharedIdentity

    /// Opens the configured ports; a shared port gives its connections to `inboxes` instead.
    /// - Throws: if a port cannot be opened, or if OpenSSL has no MD5.
    init(
        _ settings: TURNSettings, inboxes: ConnectionInboxes, peers: TURNPeers, routes: ChannelRoutes,
        now: @escaping @Sendable () -> Moment
    ) throws {
        let nothing: [UInt8] = []
        // The long-term credentials of TURN derive keys by MD5. It is better to fail here than with every client.
        guard MessageDigest.md5(nothing.span) != nil else {
            throw Failure(
                description: "cannot take clients by TURN: their keys need MD5, which OpenSSL's configuration"
                    + " on this machine leaves out")
        }
        let relay = try TURNRelay(settings, peers: peers, routes: routes, now: now)
        let identity = SharedIdentity(settings.tls?.identity)
        self.relay = relay
        self.identity = identity
        let limits = settings.connectionLimits
        tls = try Self.open("TLS", "turn-tls", settings.tls?.address) { address throws(NetError) in
            // The clients need to call the server, which does not exist yet when the closure is made.
            let bell = SharedAction<ConnectionNumber, Void>()
            let source = ConnectionSource(address, or: inboxes.turnTLS)
            let server = try StreamServer<Secured>(from: source, name: "rostrum-turns", limits: limits) {
                number, remote, now in
                let client = TURNClient(remote, by: .tls, of: relay) { bell(number) }
                return Secured(TURNConversation(client, at: now), as: identity.current)
            }
            // Weak, because the server owns the clients, which hold the bell.
            bell.set { [weak server] in server?.tell(.deliver, to: $0) }
            return server
        }
        tcp = try Self.open("TCP", "turn-tcp", settings.tcp) { address throws(NetError) in
            let bell = SharedAction<ConnectionNumber, Void>()
            let server = try StreamServer<TURNConversation>(
                from: ConnectionSource(address, or: inboxes.turnTCP), name: "rostrum-turn", limits: limits
            ) {
                number, remote, now in
                TURNConversation(TURNClient(remote, by: .tcp, of: relay) { bell(number) }, at: now)
            }
            bell.set { [weak server] in server?.tell(.deliver, to: $0) }
            return server
        }
        udp = try Self.open("UDP", "turn-udp", settings.udp) { address throws(NetError) in
            let bell = SharedAction<TransportAddress, Void>()
            var configuration = WorkerConfiguration(address: address)
            configuration.name = "rostrum-turn-u"
            let thread = try WorkerThread<TURNDatagrams>(configuration) { _ in
                TURNDatagrams(relay) { bell($0) }
            }
            // Essential: a lost call would leave datagrams waiting. At most one waits for each client, and clients
            // are bounded.
            bell.set { [weak thread] in _ = thread?.post($0, isEssential: true) }
            // From now on workers may send to clients by this socket themselves.
            routes.open(thread.socket)
            return thread
        }
    }

    /// Opens a port if it is configured, and names the port and its option in an error.
    private static func open<Server>(
        _ name: String, _ option: String, _ address: TransportAddress?,
        _ make: (TransportAddress) throws(NetError) -> Server
    ) throws(Failure) -> Server? {
        guard let address else { return nil }
        do throws(NetError) {
            return try make(address)
        } catch {
            throw Failure(description: "cannot take clients by TURN over \(name) (--\(option)): \(error)")
        }
    }

    /// An error in words for the operator.
    private struct Failure: Error, CustomStringConvertible {
        let description: String
    }

    /// The addresses on which the ports listen, with the real port numbers.
    var addresses: TURNAddresses {
        TURNAddresses(
            tls: tls?.localAddress, tcp: tcp?.localAddress, udp: udp?.localAddress)
    }

    /// The client behind an address that a worker sees; nil if the address is the client's own.
    func client(at address: TransportAddress) -> RelayedClient? { relay.client(at: address) }

    /// Allocations, connections and traffic, for monitoring.
    var statistics: TURNStatistics {
        let servers = [tls?.counters, tcp?.counters].compactMap(\.self)
        return TURNStatistics(
            allocations: relay.count, connections: servers.reduce(StreamServerCounters(), +),
            totals: relay.counters)
    }

    /// Replaces the certificate for new TLS connections.
    func renew(_ identity: TLSIdentity) { self.identity.set(identity) }

    /// Closes the ports first, then the relay that their clients use.
    func stop() {
        tls?.stop()
        tcp?.stop()
        udp?.stop()
        relay.stop()
    }
}

/// The addresses of a node's TURN ports; nil for a port that is not open.
package struct TURNAddresses: Equatable, Sendable {
    package var tls: TransportAddress?
    package var tcp: TransportAddress?
    package var udp: TransportAddress?

    package init(tls: TransportAddress? = nil, tcp: TransportAddress? = nil, udp: TransportAddress? = nil) {
        self.tls = tls
        self.tcp = tcp
        self.udp = udp
    }
}
