import Base
import CLinux
import Crypto
import Synchronization

/// A TCP port that several protocols share, and a thread that identifies each connection by its first bytes.
///
/// It only peeks, so a connection's server still receives everything that the client sent. TLS without a protocol
/// name (ALPN), as browsers use for TURN servers, is terminated by a second thread, and the first plain byte decides.
/// If the connection is for HTTP, that thread relays it to the HTTP server for as long as it lasts.
package final class MixedPort: Sendable {
    /// Receives a connection for HTTP and owns it from then on: a TCP connection as it came, or one end of a pipe
    /// whose TLS is terminated here.
    package typealias HTTPDoor =
        @Sendable (_ descriptor: Int32, _ client: TransportAddress, _ isDecrypted: Bool) -> Void

    /// Where connections go by protocol; connections of a protocol whose route is nil are closed.
    package struct Routes: Sendable {
        /// ICE over TCP, whose first frame is STUN behind a length (RFC 4571).
        package var iceTCP: ConnectionInbox?
        /// TURN over TCP, whose first bytes are STUN.
        package var turnTCP: ConnectionInbox?
        /// TURN over TLS.
        package var turnTLS: ConnectionInbox?
        /// HTTP, in the clear or by TLS.
        package var http: HTTPDoor?
        /// Whether the HTTP server expects TLS.
        package var isHTTPSecure = false

        /// No routes.
        package init() {}
    }

    /// Limits on connections whose protocol is not known yet, and on relayed ones.
    package struct Limits: Sendable {
        /// Connections over all addresses; beyond that the oldest is closed.
        ///
        /// Connections whose TLS was begun have a limit of their own, of the same number.
        package var undecided = 1_024
        /// Connections from one IPv4 address or one IPv6 /64; see `ConnectionLimits`.
        package var undecidedPerAddress = 128
        /// Connections that are relayed to the HTTP server, over all addresses.
        package var pipes = 2_048
        /// Connections from one address that are relayed to the HTTP server.
        ///
        /// A firewall that inspects TLS may leave the name of the protocol out of all of an office's connections.
        package var pipesPerAddress = 512
        /// How long a connection may take to show its protocol, and once more if TLS was begun.
        package var patience = Duration.seconds(10)

        /// The limits of a node.
        package init() {}
    }

    private let port: ListeningPort
    private let shared: MixedPortShared
    private let threads = Mutex<[PortThread]>([])

    /// Opens the port; connections wait in the kernel until `start`.
    /// - Parameter identity: certificate and key for TLS that has to be terminated here.
    /// - Throws: if the port cannot be bound, or the system has no descriptor left.
    package init(bind address: TransportAddress, identity: TLSIdentity?) throws(NetError) {
        port = try ListeningPort(address, tunesConnections: false)
        shared = MixedPortShared(identity)
    }

    /// Where it listens, with the actual port.
    package var localAddress: TransportAddress { port.localAddress }

    /// A copy of the counters.
    package var counters: MixedPortCounters { shared.counters.withLock { $0 } }

    /// Replaces certificate and key for TLS connections that begin from now on.
    package func renew(_ identity: TLSIdentity) { shared.identity.withLock { $0 = identity } }

    /// Starts to accept connections; must be called once.
    ///
    /// TLS is terminated here only if it may be for TURN or for HTTP; otherwise there is nothing to find out.
    /// - Throws: if the system has no descriptor or thread left.
    package func start(_ routes: Routes, limits: Limits = Limits()) throws(NetError) {
        let undecided = ConnectionInbox(of: localAddress)
        var started: [PortThread] = []
        if routes.turnTLS != nil, routes.http != nil, routes.isHTTPSecure {
            let inbox = try ListeningPort(.inbox(undecided))
            started.append(
                try PortThread(inbox, name: "rostrum-tls") { [shared] port in
                    TLSEnds(of: port, shared: shared, routes: routes, limits: limits)
                })
        }
        started.append(
            try PortThread(port, name: "rostrum-mixed") { [shared] port in
                UndecidedConnections(
                    of: port, shared: shared, routes: routes, limits: limits, tlsEnds: undecided)
            })
        threads.withLock { $0 = started }
    }

    /// Closes the port, and every connection that was not passed on.
    package func stop() {
        let started = threads.withLock { threads in
            defer { threads = [] }
            return threads
        }
        for thread in started.reversed() { thread.stop() }
    }
}

/// What a mixed port has done since its start.
package struct MixedPortCounters: Equatable, Sendable {
    /// Connections whose protocol is not known yet.
    package var undecided = 0
    /// Connections that are being relayed to the HTTP server.
    package var pipes = 0
    /// Connections passed on for ICE over TCP.
    package var iceTCP: UInt64 = 0
    /// Connections passed on for TURN over TCP.
    package var turnTCP: UInt64 = 0
    /// Connections passed on for TURN over TLS.
    package var turnTLS: UInt64 = 0
    /// Connections passed on for HTTP as they came, because their TLS named HTTP or could be for nothing else.
    package var https: UInt64 = 0
    /// Connections relayed to the HTTP server, because their TLS did not name HTTP.
    package var pipedHTTPS: UInt64 = 0
    /// Connections passed on for HTTP in the clear.
    package var http: UInt64 = 0
    /// Connections closed because their protocol is unknown or their TLS failed.
    package var strange: UInt64 = 0
    /// Connections closed because their protocol has no route.
    package var unserved: UInt64 = 0
    /// Connections closed because too little arrived in time.
    package var expired: UInt64 = 0
    /// Connections closed by their clients before their protocol was known.
    package var gone: UInt64 = 0
    /// Connections closed immediately because there were too many.
    package var refused: UInt64 = 0
    /// Connections closed to make room for newer ones.
    package var displaced: UInt64 = 0

    /// All zero.
    package init() {}
}

/// State shared by a mixed port's threads and its owner.
final class MixedPortShared: Sendable {
    let counters = Mutex(MixedPortCounters())
    let identity: Mutex<TLSIdentity?>

    init(_ identity: TLSIdentity?) {
        self.identity = Mutex(identity)
    }

    func count(_ counter: WritableKeyPath<MixedPortCounters, UInt64>) {
        counters.withLock { $0[keyPath: counter] &+= 1 }
    }

    /// Passes a connection on, or closes it if no server accepts it.
    func hand(
        _ arrival: ConnectionArrival, to inbox: ConnectionInbox?,
        as counter: WritableKeyPath<MixedPortCounters, UInt64>
    ) {
        guard let inbox else { return close(arrival.descriptor, \.unserved) }
        // Unsent bytes are bounded here, because what is in the kernel can no longer be left out for a slow reader.
        clinux_stream_tune(arrival.descriptor)
        // Counted before the server can answer, so that a client with an answer finds it counted.
        if !inbox.put(arrival, { count(counter) }) { close(arrival.descriptor, \.refused) }
    }

    /// Closes a connection; a client that sees the close finds it counted.
    func close(_ descriptor: Int32, _ counter: WritableKeyPath<MixedPortCounters, UInt64>) {
        count(counter)
        clinux_close(descriptor)
    }
}
