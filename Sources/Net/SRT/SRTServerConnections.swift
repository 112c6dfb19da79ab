import Base
import CSRT
import Synchronization

/// The connections of a server by SRT, and what comes by them.
struct SRTServerConnections<Conversation: SRTServerConversation>: ~Copyable {
    /// Between two looks at deadlines, as a `StreamServer` has it.
    private static var lookInterval: Duration { .milliseconds(125) }
    private static var measureInterval: Duration { .seconds(1) }
    /// Of messages, before others come to their turn.
    private static var messagesPerTurn: Int { 256 }
    private static var socketsPerTurn: Int { 64 }
    /// More than any message of a live stream has, in bytes.
    private static var messageLimit: Int { 2_048 }

    private struct Connection {
        let call: SRTCall
        let conversation: Conversation
        /// As last measured.
        var link = SRTLink()
    }

    private let port: SRTPort
    private let shared: SRTServerShared<Conversation.Command>
    private let lose: (SRTCall) -> Void
    private let make: SRTServer<Conversation>.Maker
    /// By the library's sockets.
    private var connections: [Int32: Connection] = [:]
    private var sockets: [ConnectionNumber: Int32] = [:]
    private var ready = [Int32](repeating: 0, count: socketsPerTurn)
    private var input = [UInt8](repeating: 0, count: messageLimit)
    private var bytesIn: UInt64 = 0
    private var accepted: UInt64 = 0
    /// Of connections that are gone.
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

    /// Runs until the server is told to stop.
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

    private mutating func accept(at now: MonotonicTime) {
        while case let socket = csrt_accept(port.socket), socket >= 0 {
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

    private mutating func serve(_ socket: Int32, at now: MonotonicTime) {
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

    private mutating func performCommands(at now: MonotonicTime) {
        let commands = shared.commands.withLock { commands in
            defer { commands.removeAll() }
            return commands
        }
        for (number, command) in commands {
            guard let socket = sockets[number], let connection = connections[socket] else {
                // Who was let in may still be on the way.
                if port.door.expects(number) { shared.commands.withLock { $0.append((number, command)) } }
                continue
            }
            connection.conversation.perform(command, at: now)
            if connection.conversation.isOver { forget(socket, at: now) }
        }
    }

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
        var statistics = csrt_statistics()
        statistics.retransmitted = Int64(clamping: connection.link.retransmitted)
        guard unsafe csrt_statistics(socket, &statistics) == 0 else { return }
        let link = SRTLink(statistics)
        connections[socket]?.link = link
        connection.conversation.note(link, at: now)
    }

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

    /// Adds what another one counted.
    fileprivate mutating func add(_ other: Self) {
        received &+= other.received
        lost &+= other.lost
        retransmitted &+= other.retransmitted
        dropped &+= other.dropped
    }
}
