import Base
import CSRT
import Synchronization

/// The connections of an SRT server, and what they receive; used by the server's thread only.
struct SRTServerConnections<Conversation: SRTServerConversation>: ~Copyable {
    /// Between two checks of deadlines, as in a `StreamServer`.
    private static var lookInterval: Duration { .milliseconds(125) }
    /// Between two readings of the library's statistics.
    private static var measureInterval: Duration { .seconds(1) }
    /// Messages read from one connection before others have their turn.
    private static var messagesPerTurn: Int { 256 }
    private static var socketsPerTurn: Int { 64 }
    /// Longer than any message of a live stream, in bytes.
    private static var messageLimit: Int { 2_048 }

    private struct Connection {
        let call: SRTCall
        let conversation: Conversation
        /// As measured last.
        var link = SRTLink()
    }

    private let port: SRTPort
    private let shared: SRTServerShared<Conversation.Command>
    private let lose: (SRTCall) -> Void
    private let make: SRTServer<Conversation>.Maker
    /// Connections by the library's socket.
    private var connections: [Int32: Connection] = [:]
    private var sockets: [ConnectionNumber: Int32] = [:]
    private var ready = [Int32](repeating: 0, count: socketsPerTurn)
    private var input = [UInt8](repeating: 0, count: messageLimit)
    private var bytesIn: UInt64 = 0
    private var accepted: UInt64 = 0
    /// Sums over connections that have ended.
    private var past = SRTLink()
    private var nextLook = MonotonicTime.zero
    private var nextMeasure = MonotonicTime.zero

    init(
        of port: SRTPort, shared: SRTServerShared<Conversation.Command>, lose: @escaping (SRTCall) -> Void,
        make: @escaping SRTServer<Conversation>.Maker
    ) {
        self.port = port
        self.shared = shared
        self.lose = lose
        self.make = make
    }

    /// Runs until the server is stopped.
    mutating func run(_ waker: Waker) {
        while !shared.isStopping.load(ordering: .acquiring) {
            let count = unsafe ready.withUnsafeMutableBufferPointer {
                unsafe csrt_poll_wait(port.poll, $0.baseAddress, Int32(clamping: $0.count), 125)
            }
            waker.clear()
            let now = MonotonicClock.now()
            for socket in ready.prefix(Int(count)) {
                if socket == port.socket { accept(at: now) } else { serve(socket, at: now) }
            }
            performCommands(at: now)
            if now >= nextLook { look(at: now) }
        }
        port.close()
        for socket in Array(connections.keys) { forget(socket, at: MonotonicClock.now()) }
    }

    // MARK: Coming and going

    /// Accepts connections whose callers were admitted.
    private mutating func accept(at now: MonotonicTime) {
        while case let socket = csrt_accept(port.socket), socket >= 0 {
            // Not admitted, or so late that the place was given away.
            guard let call = port.door.take(socket) else {
                csrt_close(socket)
                continue
            }
            guard csrt_poll_watch(port.poll, socket) == 0 else {
                port.door.giveBack(call)
                csrt_close(socket)
                lose(call)
                continue
            }
            connections[socket] = Connection(
                call: call, conversation: make(call.number, call.remote, now))
            sockets[call.number] = socket
            accepted &+= 1
        }
    }

    private mutating func forget(_ socket: Int32, at now: MonotonicTime) {
        guard let connection = connections.removeValue(forKey: socket) else { return }
        past.add(connection.link)
        sockets[connection.call.number] = nil
        csrt_close(socket)
        port.door.giveBack(connection.call)
        connection.conversation.lose(at: now)
    }

    // MARK: Conversations

    /// Receives from one connection, up to a limit per turn.
    private mutating func serve(_ socket: Int32, at now: MonotonicTime) {
        // If messages are left, the poll reports the connection again.
        guard let conversation = connections[socket]?.conversation else { return }
        for _ in 0..<Self.messagesPerTurn {
            let length = unsafe input.withUnsafeMutableBytes {
                unsafe Int(csrt_receive(socket, $0.baseAddress, Int32(clamping: $0.count)))
            }
            guard length > 0 else {
                if length < 0 { forget(socket, at: now) }
                return
            }
            bytesIn &+= UInt64(length)
            conversation.receive(input.span.extracting(0..<min(length, input.count)), at: now)
            guard !conversation.isOver else { return forget(socket, at: now) }
        }
    }

    /// Performs the waiting commands.
    private mutating func performCommands(at now: MonotonicTime) {
        let commands = shared.commands.withLock { commands in
            defer { commands.removeAll() }
            return commands
        }
        for (number, command) in commands {
            guard let socket = sockets[number], let connection = connections[socket] else {
                // An admitted caller's connection may still appear. Until then its commands wait.
                if port.door.expects(number) { shared.commands.withLock { $0.append((number, command)) } }
                continue
            }
            connection.conversation.perform(command, at: now)
            if connection.conversation.isOver { forget(socket, at: now) }
        }
    }

    /// Checks deadlines, and once a second the library's statistics.
    private mutating func look(at now: MonotonicTime) {
        nextLook = now + Self.lookInterval
        for call in port.door.takeLost(at: now) { lose(call) }
        let isMeasuring = now >= nextMeasure
        if isMeasuring { nextMeasure = now + Self.measureInterval }
        for (socket, connection) in connections {
            if isMeasuring { measure(socket, connection, at: now) }
            if let due = connection.conversation.deadline, due <= now {
                connection.conversation.advance(to: now)
            }
            if connection.conversation.isOver { forget(socket, at: now) }
        }
        publish()
    }

    private mutating func measure(_ socket: Int32, _ connection: Connection, at now: MonotonicTime) {
        // An input, too: the library reports retransmissions since the last call, which are added up.
        var statistics = csrt_statistics()
        statistics.retransmitted = Int64(clamping: connection.link.retransmitted)
        guard unsafe csrt_statistics(socket, &statistics) == 0 else { return }
        let link = SRTLink(statistics)
        connections[socket]?.link = link
        connection.conversation.note(link, at: now)
    }

    /// Copies the counters to where the owner reads them.
    private func publish() {
        var links = past
        for connection in connections.values { links.add(connection.link) }
        let established = connections.values.count { $0.conversation.isEstablished }
        shared.counters.withLock { counters in
            counters.connections.connections = connections.count
            counters.connections.established = established
            counters.connections.accepted = accepted
            counters.connections.bytesIn = bytesIn
            counters.links = links
        }
    }
}

extension SRTLink {
    fileprivate init(_ statistics: csrt_statistics) {
        roundTrip = statistics.round_trip_milliseconds
        latency = Int(statistics.latency)
        received = Int(clamping: statistics.received)
        lost = Int(clamping: statistics.lost)
        retransmitted = Int(clamping: statistics.retransmitted)
        dropped = Int(clamping: statistics.dropped)
    }

    /// Adds the counts of another connection.
    fileprivate mutating func add(_ other: Self) {
        received &+= other.received
        lost &+= other.lost
        retransmitted &+= other.retransmitted
        dropped &+= other.dropped
    }
}
