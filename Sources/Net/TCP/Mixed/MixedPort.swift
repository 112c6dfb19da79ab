import Base
import CLinux
import Crypto
import Synchronization

/// A TCP port that several protocols share, and a thread that finds out by what comes first whom a connection is for.
///
/// It reads nothing: who gets a connection finds all that its client sent. TLS that does not say what it comes for
/// (ALPN), as that of browsers to TURN servers, is ended by a second thread: what comes by it decides, and where that
/// is for HTTP the thread carries it there for as long as the connection lasts.
package final class MixedPort: Sendable {
    /// Takes a connection, which is its own from then on: a TCP connection as it came, or the end of a pipe of which
    /// TLS was taken off.
    package typealias HTTPDoor =
        @Sendable (_ descriptor: Int32, _ client: TransportAddress, _ isDecrypted: Bool) -> Void

    /// Whom connections are for; what is for nobody is closed.
    package struct Routes: Sendable {
        package var iceTCP: ConnectionInbox?
        package var turnTCP: ConnectionInbox?
        package var turnTLS: ConnectionInbox?
        package var http: HTTPDoor?
        /// Whether HTTP is by TLS.
        package var isHTTPSecure = false

        package init() {}
    }

    /// How many there may be of whom it is not known whom they are for, and for how long.
    package struct Limits: Sendable {
        /// Of all addresses; the oldest goes first.
        ///
        /// Those of which TLS was begun count by themselves.
        package var undecided = 1_024
        /// From one IPv4 address, or from one IPv6 network of 64 bits; see `ConnectionLimits`.
        package var undecidedPerAddress = 128
        /// The same of connections that are carried to HTTP.
        package var pipes = 2_048
        package var pipesPerAddress = 200
        /// To say what they are, and once more where TLS is begun.
        package var patience = Duration.seconds(10)

        package init() {}
    }

    private let port: ListeningPort
    private let shared: MixedPortShared
    private let threads = Mutex<[PortThread]>([])

    /// Opens the port, whose connections wait until it is told whom they are for.
    /// - Parameter identity: by which TLS is ended that does not say what it comes for.
    package init(bind address: TransportAddress, identity: TLSIdentity?) throws(NetError) {
        port = try ListeningPort(address, tunesConnections: false)
        shared = MixedPortShared(identity)
    }

    /// Where it listens; the port is the real one.
    package var localAddress: TransportAddress { port.localAddress }

    /// A copy; those of the threads go on.
    package var counters: MixedPortCounters { shared.counters.withLock { $0 } }

    /// By what TLS is ended from now on.
    package func renew(_ identity: TLSIdentity) { shared.identity.withLock { $0 = identity } }

    /// Begins to take connections; to be called once.
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

    /// Closes the port, and what nobody has got.
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
    /// Of which it is not known whom they are for.
    package var undecided = 0
    /// That are carried to HTTP.
    package var pipes = 0
    /// Handed on, by whom they were for.
    package var iceTCP: UInt64 = 0
    package var turnTCP: UInt64 = 0
    package var turnTLS: UInt64 = 0
    package var https: UInt64 = 0
    /// By TLS that did not say that it was for HTTP.
    package var pipedHTTPS: UInt64 = 0
    /// In the clear.
    package var http: UInt64 = 0
    /// Closed, because it was nothing that is known or TLS that failed.
    package var strange: UInt64 = 0
    /// Closed, because nobody here takes what it was.
    package var unserved: UInt64 = 0
    /// Closed, because not enough came in time.
    package var expired: UInt64 = 0
    /// Closed by their clients before.
    package var gone: UInt64 = 0
    /// Closed, because there were too many.
    package var refused: UInt64 = 0
    /// Closed, because newer ones wanted their place.
    package var displaced: UInt64 = 0

    package init() {}
}

/// What a mixed port's threads and its owner share.
final class MixedPortShared: Sendable {
    let counters = Mutex(MixedPortCounters())
    let identity: Mutex<TLSIdentity?>

    init(_ identity: TLSIdentity?) {
        self.identity = Mutex(identity)
    }

    func count(_ counter: WritableKeyPath<MixedPortCounters, UInt64>) {
        counters.withLock { $0[keyPath: counter] &+= 1 }
    }

    /// Hands a connection on, or closes it where nobody takes it.
    func hand(
        _ arrival: ConnectionArrival, to inbox: ConnectionInbox?,
        as counter: WritableKeyPath<MixedPortCounters, UInt64>
    ) {
        guard let inbox else { return close(arrival.descriptor, \.unserved) }
        // What is unsent in the kernel can no longer be left out for a slow reader.
        clinux_stream_tune(arrival.descriptor)
        // Who is answered finds it counted.
        if !inbox.put(arrival, { count(counter) }) { close(arrival.descriptor, \.refused) }
    }

    /// Whoever sees that it is closed finds it counted.
    func close(_ descriptor: Int32, _ counter: WritableKeyPath<MixedPortCounters, UInt64>) {
        count(counter)
        clinux_close(descriptor)
    }
}
