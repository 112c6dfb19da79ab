import Base
import CLinux
import CSRT
import Synchronization

/// What a link by SRT is like, since it began.
package struct SRTLink: Equatable, Sendable {
    /// In milliseconds.
    package var roundTrip = 0.0
    /// Between sending and delivery, as was agreed, in milliseconds.
    package var latency = 0
    /// Packets, with those that came again.
    package var received = 0
    /// Packets that were missing when later ones came.
    package var lost = 0
    /// Packets that came again.
    package var retransmitted = 0
    /// Packets that never came, or too late.
    package var dropped = 0

    package init() {}
}

/// What comes by one connection by SRT, which sends nothing; used by its server's thread alone.
package protocol SRTServerConversation: StreamConversation {
    /// Told every second.
    func note(_ link: SRTLink, at now: MonotonicTime)
}

/// Where publishers are taken by SRT, and how.
package struct SRTServerSettings: Sendable {
    /// Of 10 to 79 characters; nil where media may come unencrypted.
    package let passphrase: Secret<String>?
    /// From sending to delivery, in milliseconds; who calls may ask for more.
    package let latency: Int
    /// Of connections; `output` has no meaning.
    package var limits = StreamServerLimits()

    /// What the library takes, in bytes.
    package static let passphraseLengths = 10...79
    package static let latencies = 20...8_000

    package init(passphrase: Secret<String>? = nil, latency: Int = 200) {
        self.passphrase = passphrase
        self.latency = latency
    }
}

/// Why somebody who calls is not let in, as SRT says it.
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

/// Who calls a server.
package struct SRTCall: Sendable {
    package let number: ConnectionNumber
    package let remote: TransportAddress
    /// What it says it wants: up to 512 bytes of anything.
    package let streamID: String
}

/// A UDP port for publishers by SRT, and a thread on which all is read that comes by it.
///
/// The library has threads of its own, which receive, have lost packets sent again, and call `admit`.
package final class SRTServer<Conversation: SRTServerConversation>: Sendable {
    package typealias Maker =
        @Sendable (ConnectionNumber, TransportAddress, MonotonicTime) -> Conversation

    private let shared: SRTServerShared<Conversation.Command>
    private let thread: NativeThread
    private let waker: Waker
    private let port: SRTPort

    /// - Parameters:
    ///   - name: of the thread, at most 15 bytes.
    ///   - admit: says who is let in. It is called by the library's thread that receives, so it decides at once, or
    ///     returns nil and the answer is waited for, for a moment; see `answer`.
    ///   - lose: somebody was let in and never came, as one with another passphrase; called by the server's thread.
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

    /// Where it listens; the port is the real one.
    package var localAddress: TransportAddress { port.localAddress }
    /// A copy; those of the server's thread go on.
    package var counters: SRTServerCounters {
        var counters = shared.counters.withLock { $0 }
        counters.connections.refused = shared.door.refused
        return counters
    }

    /// Decides about somebody who still waits to be let in.
    /// - Returns: who that is; nil where nobody waits by this number, so that it has to be told by `tell`.
    package func answer(_ rejection: SRTRejection?, to number: ConnectionNumber) -> SRTCall? {
        shared.door.answer(rejection, to: number)
    }

    /// Tells a conversation something, once it is there; nothing where its connection is gone.
    package func tell(_ command: Conversation.Command, to number: ConnectionNumber) {
        shared.commands.withLock { $0.append((number, command)) }
        waker.wake()
    }

    /// Closes the port and every connection.
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
    package var connections = StreamServerCounters()
    /// Of all links, those that are gone, too; `roundTrip` and `latency` have no meaning.
    package var links = SRTLink()

    package init() {}
}

/// What a server's thread and its owner share.
final class SRTServerShared<Command: Sendable>: Sendable {
    let counters = Mutex(SRTServerCounters())
    let commands = Mutex<[(ConnectionNumber, Command)]>([])
    let isStopping = Atomic(false)
    let door: SRTDoor

    init(door: SRTDoor) {
        self.door = door
    }
}
