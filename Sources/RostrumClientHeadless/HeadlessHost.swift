import Base
import ClientPeer
import Crypto
import Net
import Peer
import RostrumClient
import Wire

/// What the engine's thread is told.
enum HeadlessCommand: Sendable {
    case add(HeadlessSetup)
    case send(Int, MediaPacket)
    case say(Int, String)
    /// Says goodbye to the server, and forgets the connection.
    case remove(Int, CheckedContinuation<Void, Never>?)
}

/// A connection that is to be made: where the server is, and what was agreed on.
struct HeadlessSetup: Sendable {
    let id: Int
    let credentials: ICECredentials
    let plan: ClientPlan
    let socket: DatagramSocket
    let outlet: HeadlessOutlet
}

/// The connections of one engine, on its thread.
struct HeadlessHost: ClientHandler {
    typealias Command = HeadlessCommand

    private let sockets: ClientSockets
    private let buffer: DirectSinkBuffer
    private let dtls: DTLSContext?
    private let clock: WallClock
    private var peers: [Int: HeadlessPeer] = [:]

    /// - Parameter dtls: nil where OpenSSL has no memory for it; then nobody connects.
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

    private mutating func add(_ setup: HeadlessSetup, at now: MonotonicTime) {
        guard let dtls, peers[setup.id] == nil, sockets.add(.datagram(setup.socket), token: setup.id),
            let sink = sockets.sink(of: setup.id, buffer: buffer)
        else { return setup.outlet.tell(.lost("no socket to connect with")) }
        let peer = HeadlessPeer(setup, dtls: dtls, sink: sink, clock: clock, at: now)
        peers[setup.id] = peer
        peer.advance(to: now)
    }

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

    var deadline: MonotonicTime? { peers.values.lazy.map(\.deadline).min() }

    mutating func advance(to now: MonotonicTime) {
        for peer in peers.values where peer.deadline <= now { peer.advance(to: now) }
    }

    mutating func stop(at now: MonotonicTime) {
        for id in Array(peers.keys) { remove(id) }
    }
}
