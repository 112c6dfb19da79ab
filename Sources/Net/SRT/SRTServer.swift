import Base
import CLinux
import CSRT
import Synchronization

/// Quality of an SRT connection since it began.
package struct SRTLink: Equatable, Sendable {
    /// Round-trip time in milliseconds.
    package var roundTrip = 0.0
    /// Negotiated time between sending and delivery, in milliseconds.
    package var latency = 0
    /// Packets received, retransmitted ones included.
    package var received = 0
    /// Packets that were missing when later ones arrived.
    package var lost = 0
    /// Packets that arrived again after a retransmission.
    package var retransmitted = 0
    /// Packets that never arrived, or too late to be delivered.
    package var dropped = 0

    /// All zero.
    package init() {}
}

/// A conversation over one SRT connection, which only receives; used by its server's thread only.
package protocol SRTServerConversation: StreamConversation {
    /// Receives the connection's statistics, once a second.
    func note(_ link: SRTLink, at now: MonotonicTime)
}

/// How a server accepts publishers by SRT.
package struct SRTServerSettings: Sendable {
    /// 10 to 79 characters; nil accepts unencrypted media.
    package let passphrase: Secret<String>?
    /// Minimum time from sending to delivery, in milliseconds; a caller may ask for more.
    package let latency: Int
    /// Limits on connections; `output` is not used, because nothing is sent.
    package var limits = StreamServerLimits()

    /// Lengths of a passphrase that the library accepts, in bytes.
    package static let passphraseLengths = 10...79
    /// Latencies that may be configured, in milliseconds.
    package static let latencies = 20...8_000

    /// - Parameters:
    ///   - passphrase: of a length in `passphraseLengths`; nil for no encryption.
    ///   - latency: in milliseconds.
    package init(passphrase: Secret<String>? = nil, latency: Int = 200) {
        self.passphrase = passphrase
        self.latency = latency
    }
}

/// Why a caller is refused, by the codes of SRT's access control.
/// - Source: libsrt, `access_control.h`.
package enum SRTRejection: Int32, Equatable, Sendable {
    case badRequest = 1_400
    case unauthorized = 1_401
    case overload = 1_402
    case forbidden = 1_403
    case notFound = 1_404
    case badMode = 1_405
    case conflict = 1_409
}

/// A caller that asks to be let in.
package struct SRTCall: Sendable {
    /// Identifies the caller in `answer` and `tell`.
    package let number: ConnectionNumber
    /// The caller's address.
    package let remote: TransportAddress
    /// The caller's stream ID: arbitrary text, up to 512 bytes.
    package let streamID: String
}

/// A UDP port for publishers by SRT, and a thread that reads all its connections.
///
/// The library has threads of its own, which receive, request retransmissions, and call `admit`.
package final class SRTServer<Conversation: SRTServerConversation>: Sendable {
    /// Makes the conversation of an accepted connection, on the server's thread.
    package typealias Maker =
        @Sendable (ConnectionNumber, TransportAddress, MonotonicTime) -> Conversation

    private let shared: SRTServerShared<Conversation.Command>
    private let thread: NativeThread
    private let waker: Waker
    private let port: SRTPort

    /// Opens the port and starts the thread.
    /// - Parameters:
    ///   - name: of the thread, at most 15 bytes.
    ///   - admit: decides about a caller. The library's receiving thread calls it, so it must not block: it returns a
    ///     refusal, or nil and the thread waits a moment for `answer`.
    ///   - lose: called by the server's thread when an admitted caller's connection did not appear, as with a wrong
    ///     passphrase.
    /// - Throws: if the port cannot be bound, or the system has no descriptor or thread left.
    package init(
        bind address: TransportAddress, name: String, _ settings: SRTServerSettings,
        admit: @escaping @Sendable (SRTCall) -> SRTRejection?,
        lose: @escaping @Sendable (SRTCall) -> Void, make: @escaping Maker
    ) throws(NetError) {
        let waker = try Waker()
        let door = SRTDoor(settings.limits, waker: waker, admit: admit)
        let port = try SRTPort(address, settings, door, waker: waker)
        let shared = SRTServerShared<Conversation.Command>(door: door)
        self.waker = waker
        self.port = port
        self.shared = shared
        thread = try NativeThread(name: name, cpu: nil) {
            var connections = SRTServerConnections<Conversation>(
                of: port, shared: shared, lose: lose, make: make)
            connections.run(waker)
        }
    }

    deinit {
        requestStop()
    }

    /// Where it listens, with the actual port.
    package var localAddress: TransportAddress { port.localAddress }
    /// A copy of the counters, up to about 125 ms old.
    package var counters: SRTServerCounters {
        var counters = shared.counters.withLock { $0 }
        counters.connections.refused = shared.door.refused
        return counters
    }

    /// Decides about a caller that still waits to be let in.
    /// - Returns: the caller; nil if it no longer waits, so that the decision has to go to its conversation by
    ///   `tell`.
    package func answer(_ rejection: SRTRejection?, to number: ConnectionNumber) -> SRTCall? {
        shared.door.answer(rejection, to: number)
    }

    /// Sends a command to a conversation, also if its connection is not accepted yet; drops it if the connection is
    /// gone.
    package func tell(_ command: Conversation.Command, to number: ConnectionNumber) {
        shared.commands.withLock { $0.append((number, command)) }
        waker.wake()
    }

    /// Closes the port and every connection, and waits for that.
    package func stop() {
        requestStop()
        thread.join()
    }

    private func requestStop() {
        shared.isStopping.store(true, ordering: .releasing)
        waker.wake()
    }
}

/// What a server has done since its start.
package struct SRTServerCounters: Equatable, Sendable {
    /// Counts of connections.
    package var connections = StreamServerCounters()
    /// Sums over all connections, ended ones included; `roundTrip` and `latency` are not used.
    package var links = SRTLink()

    /// All zero.
    package init() {}
}

/// State shared by a server's thread and its owner.
final class SRTServerShared<Command: Sendable>: Sendable {
    let counters = Mutex(SRTServerCounters())
    let commands = Mutex<[(ConnectionNumber, Command)]>([])
    let isStopping = Atomic(false)
    let door: SRTDoor

    init(door: SRTDoor) {
        self.door = door
    }
}
