import Base
import ClientPeer
import Crypto
import Net
import Peer
import RostrumClient
import Wire

/// A command to the engine's thread; connections are named by their IDs.
enum HeadlessCommand: Sendable {
    case add(HeadlessSetup)
    case send(Int, MediaPacket)
    /// Sends a text on the control channel.
    case say(Int, String)
    /// Notifies the server, forgets the connection, and then resumes the continuation.
    case remove(Int, CheckedContinuation<Void, Never>?)

    /// Whether it has to get through although many others wait: nothing else would end the connection.
    var isEssential: Bool {
        switch self {
        case .remove: true
        case .add, .send, .say: false
        }
    }
}

/// Everything that the engine's thread needs for a new connection.
struct HeadlessSetup: Sendable {
    let id: Int
    /// The client's credentials, as in its offer.
    let credentials: ICECredentials
    /// What offer and answer agree on.
    let plan: ClientPlan
    /// Opened by the caller, so that a failure can be thrown there.
    let socket: DatagramSocket
    let outlet: HeadlessOutlet
}

/// The connections of one engine; used by the engine's thread only.
struct HeadlessHost: ClientHandler {
    typealias Command = HeadlessCommand

    private let sockets: ClientSockets
    /// Shared by the sinks of all connections, since only one of them sends at a time.
    private let buffer: DirectSinkBuffer
    private let dtls: DTLSContext?
    private let clock: WallClock
    private var peers: [Int: HeadlessPeer] = [:]

    /// - Parameter dtls: nil if OpenSSL could not create a context; every connection fails then.
    init(_ start: ClientStart, dtls: DTLSContext?, clock: WallClock) {
        sockets = start.sockets
        buffer = start.buffer
        self.dtls = dtls
        self.clock = clock
    }

    mutating func perform(_ command: HeadlessCommand, at now: MonotonicTime) {
        switch command {
        case .add(let setup): add(setup, at: now)
        case .send(let id, let packet): peers[id]?.send(packet, at: now)
        case .say(let id, let message): peers[id]?.say(message, at: now)
        case .remove(let id, let done):
            remove(id)
            done?.resume()
        }
    }

    /// Starts a connection, or reports it as lost.
    private mutating func add(_ setup: HeadlessSetup, at now: MonotonicTime) {
        guard let dtls, peers[setup.id] == nil, sockets.add(.datagram(setup.socket), token: setup.id),
            let sink = sockets.sink(of: setup.id, buffer: buffer)
        else { return setup.outlet.tell(.lost("no socket to connect with")) }
        let peer = HeadlessPeer(setup, dtls: dtls, sink: sink, clock: clock, at: now)
        peers[setup.id] = peer
        peer.advance(to: now)
    }

    /// Ends a connection; does nothing if it has ended.
    private mutating func remove(_ id: Int) {
        guard let peer = peers.removeValue(forKey: id) else { return }
        peer.leave()
        sockets.remove(token: id)
    }

    mutating func receive(
        _ datagram: inout MutableSpan<UInt8>, token: Int, from source: TransportAddress,
        arrival: MonotonicTime, at now: MonotonicTime
    ) {
        peers[token]?.receive(&datagram, from: source, at: now)
    }

    /// When the next connection has something to do; nil without connections.
    var deadline: MonotonicTime? { peers.values.lazy.map(\.deadline).min() }

    mutating func advance(to now: MonotonicTime) {
        for peer in peers.values where peer.deadline <= now { peer.advance(to: now) }
    }

    /// Notifies the server of the end of every connection.
    mutating func stop(at now: MonotonicTime) {
        for id in Array(peers.keys) { remove(id) }
    }
}
