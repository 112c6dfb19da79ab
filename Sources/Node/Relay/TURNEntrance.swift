import Base
import Crypto
import Net
import TURN

/// A node's ports for clients that reach its workers by TURN, for networks that let nothing else through.
///
/// A thread for each port, and one for what workers answer. Nothing is relayed but to this node's own workers: to them
/// a client is at an address of this machine, and all that holds for clients holds for it.
/// - Source: RFC 8656.
final class TURNEntrance: Sendable {
    private typealias Secured = SecuredConversation<TURNConversation>

    private let relay: TURNRelay
    private let tls: StreamServer<Secured>?
    private let tcp: StreamServer<TURNConversation>?
    private let udp: WorkerThread<TURNDatagrams>?
    /// For those who connect from now on.
    private let identity: SharedIdentity

    /// Opens the ports that are not shared.
    init(
        _ settings: TURNSettings, inboxes: ConnectionInboxes, peers: TURNPeers, routes: ChannelRoutes,
        now: @escaping @Sendable () -> Moment
    ) throws {
        let nothing: [UInt8] = []
        guard MessageDigest.md5(nothing.span) != nil else {
            throw Failure(
                description: "cannot take clients by TURN: their keys need MD5, which OpenSSL's configuration"
                    + " on this machine leaves out")
        }
        let relay = try TURNRelay(settings, peers: peers, routes: routes, now: now)
        let identity = SharedIdentity(settings.tls?.identity)
        self.relay = relay
        self.identity = identity
        var limits = StreamServerLimits()
        limits.total = settings.total
        limits.perAddress = settings.perAddress
        // More than conversations let wait, so that none is closed for it.
        limits.output = 512 << 10
        tls = try Self.open("TLS", "turn-tls", settings.tls?.address) { address throws(NetError) in
            // The server is not there yet when those are made who will call it.
            let bell = SharedAction<ConnectionNumber, Void>()
            let source = ConnectionSource(address, or: inboxes.turnTLS)
            let server = try StreamServer<Secured>(from: source, name: "rostrum-turns", limits: limits) {
                number, remote, now in
                let client = TURNClient(remote, by: .tls, of: relay) { bell(number) }
                return Secured(TURNConversation(client, at: now), as: identity.current)
            }
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
            // One waits for each client at most, and clients are bounded: none may get lost.
            bell.set { [weak thread] in _ = thread?.post($0, isEssential: true) }
            routes.open(thread.socket)
            return thread
        }
    }

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

    private struct Failure: Error, CustomStringConvertible {
        let description: String
    }

    /// Where it listens, by the real ports; nil for nowhere.
    var addresses: TURNAddresses {
        TURNAddresses(
            tls: tls?.localAddress, tcp: tcp?.localAddress, udp: udp?.localAddress)
    }

    /// Who is behind an address that a worker sees; nil where it is the client's own.
    func client(at address: TransportAddress) -> RelayedClient? { relay.client(at: address) }

    var statistics: TURNStatistics {
        let servers = [tls?.counters, tcp?.counters].compactMap(\.self)
        return TURNStatistics(
            allocations: relay.count, connections: servers.reduce(StreamServerCounters(), +),
            totals: relay.counters)
    }

    /// Who connects by TLS from now on is answered by this.
    func renew(_ identity: TLSIdentity) { self.identity.set(identity) }

    func stop() {
        tls?.stop()
        tcp?.stop()
        udp?.stop()
        relay.stop()
    }
}

/// Where clients are taken by TURN; nil for nowhere.
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
