import Base
import CLinux
import Crypto
import Glibc
import Synchronization

/// Where an outgoing connection leads.
package struct OutgoingTarget: Sendable {
    /// A name, or an address without brackets.
    let host: String
    let port: UInt16
    /// Whether to use TLS and verify the host's certificate.
    let isSecure: Bool
    /// Whether an address of the host may be connected to; protects addresses inside the operator's network.
    let permits: @Sendable (IPAddress) -> Bool

    /// - Parameter permits: called on the connection's thread with each address that the name resolves to.
    package init(
        host: String, port: UInt16, isSecure: Bool, permits: @escaping @Sendable (IPAddress) -> Bool
    ) {
        self.host = host
        self.port = port
        self.isSecure = isSecure
        self.permits = permits
    }
}

/// How an outgoing connection ended.
package enum OutgoingEnd: Equatable, Sendable {
    /// The conversation was over, or its owner stopped it.
    case over
    /// The name has no address.
    case unresolved
    /// The name has addresses, but none that may be connected to.
    case forbidden
    /// No address could be connected to; the kernel's reason for the last one.
    case unreachable(String)
    /// The certificate is not valid for the host, in OpenSSL's words; nil if no TLS handshake was possible.
    case insecure(String?)
    /// The other end closed the connection, or it broke.
    case closed
    /// The other end accepted no data within the limit.
    case stalled
}

/// Time limits of a connection.
package struct OutgoingLimits: Sendable {
    /// For connecting to one address.
    package var connect = Duration.seconds(5)
    /// For the other end to accept some data while data waits.
    package var stall = Duration.seconds(10)

    /// Limits for a server on the Internet.
    package init() {}
}

/// A TCP connection that the server opens, with or without TLS, on a thread of its own.
///
/// The thread may block: on the resolver, while the kernel connects, and on the other end. Names are resolved here
/// and only here, so that the address that was checked is the one that is connected to. Commands wait in a queue of
/// bounded length. Output is bounded by the conversation, which is given the number of bytes that wait.
package final class OutgoingStream<Conversation: StreamConversation>: Sendable {
    /// Makes the conversation once TCP is connected, on the connection's thread.
    package typealias Maker = @Sendable (MonotonicTime) -> Conversation

    /// Commands that may wait for the thread: some seconds of media.
    package static var commandLimit: Int { 1_024 }

    private let shared: OutgoingShared<Conversation.Command>

    /// Starts the thread, which connects.
    /// - Parameters:
    ///   - name: of the thread, at most 15 bytes.
    ///   - ended: called once by the thread, when the connection has ended or could not be made.
    /// - Throws: if the system has no descriptor or thread left.
    package init(
        to target: OutgoingTarget, name: String, limits: OutgoingLimits = OutgoingLimits(),
        make: @escaping Maker, ended: @escaping @Sendable (OutgoingEnd) -> Void
    ) throws(NetError) {
        let shared = OutgoingShared<Conversation.Command>(waker: try Waker())
        self.shared = shared
        _ = try NativeThread(name: name, cpu: nil) {
            ended(OutgoingRun<Conversation>(to: target, limits, shared, make).run())
        }
    }

    deinit { stop() }

    /// Posts a command to the conversation; drops it if too many wait.
    package func tell(_ command: Conversation.Command) {
        let hasRoom = shared.commands.withLock { commands in
            guard commands.count < Self.commandLimit else { return false }
            commands.append(command)
            return true
        }
        if hasRoom { shared.waker.wake() }
    }

    /// Closes the connection, without waiting; `ended` is called when that is done.
    package func stop() {
        shared.isStopping.store(true, ordering: .releasing)
        shared.waker.wake()
    }
}

/// State shared by a connection's thread and its owner.
private final class OutgoingShared<Command: Sendable>: Sendable {
    let waker: Waker
    let commands = Mutex<[Command]>([])
    let isStopping = Atomic(false)

    init(waker: Waker) { self.waker = waker }
}

/// One connection from lookup to end, on its thread.
private final class OutgoingRun<Conversation: StreamConversation> {
    private static var wakerToken: UInt32 { 1 }
    private static var socketToken: UInt32 { 2 }
    /// Most addresses of the host that are tried.
    private static var addressLimit: Int { 4 }
    /// Milliseconds between two checks for `stop` while the kernel connects.
    private static var connectStep: Int32 { 100 }
    /// How long the other end has to accept the remaining output once the conversation is over.
    private static var farewell: Duration { .seconds(1) }

    private let target: OutgoingTarget
    private let limits: OutgoingLimits
    private let shared: OutgoingShared<Conversation.Command>
    private let make: OutgoingStream<Conversation>.Maker
    private var tls: TLSConnection?
    /// Bytes for the socket, encrypted if there is TLS.
    private var output: [UInt8] = []
    /// When the kernel last accepted bytes, or nothing waited.
    private var lastProgress = MonotonicTime.zero
    /// When to close even with output left; nil while the conversation goes on.
    private var closesAt: MonotonicTime?
    private var watchesWritable = false
    /// Whether TLS was told to close, so that it is told only once.
    private var isClosing = false

    init(
        to target: OutgoingTarget, _ limits: OutgoingLimits,
        _ shared: OutgoingShared<Conversation.Command>, _ make: @escaping OutgoingStream<Conversation>.Maker
    ) {
        self.target = target
        self.limits = limits
        self.shared = shared
        self.make = make
    }

    private var isStopped: Bool { shared.isStopping.load(ordering: .acquiring) }

    /// Runs the connection; blocks until it has ended.
    func run() -> OutgoingEnd {
        let found = NameLookup.addresses(of: target.host)
        guard !found.isEmpty else { return .unresolved }
        let addresses = found.filter(target.permits)
        guard !addresses.isEmpty else { return .forbidden }
        var failure: Int32 = ETIMEDOUT
        for address in addresses.prefix(Self.addressLimit) where !isStopped {
            let descriptor = connect(TransportAddress(ip: address, port: target.port, transport: .tcp))
            guard descriptor < 0 else {
                defer { clinux_close(descriptor) }
                return converse(on: descriptor)
            }
            failure = -descriptor
        }
        guard !isStopped else { return .over }
        return unsafe .unreachable(String(cString: strerror(failure)))
    }

    /// Connects to one address, in steps, so that `stop` is noticed.
    ///
    /// - Returns: a descriptor, or a negative `errno`.
    private func connect(_ address: TransportAddress) -> Int32 {
        let descriptor = clinux_tcp_connect(clinux_address(address))
        guard descriptor >= 0 else { return descriptor }
        let end = MonotonicClock.now() + limits.connect
        var result = -ETIMEDOUT
        while result == -ETIMEDOUT, !isStopped, MonotonicClock.now() < end {
            result = clinux_tcp_finish(descriptor, Self.connectStep)
        }
        guard result != 0 else { return descriptor }
        clinux_close(descriptor)
        return result
    }

    // MARK: The conversation

    /// Runs the conversation on a connected socket: settles what is due, waits, performs commands, receives.
    private func converse(on descriptor: Int32) -> OutgoingEnd {
        guard let events = try? TCPEvents(),
            clinux_poll_set(events.descriptor, shared.waker.descriptor, Self.wakerToken, 0, 1) == 0,
            clinux_poll_set(events.descriptor, descriptor, Self.socketToken, 0, 1) == 0
        else { return unsafe .unreachable(String(cString: strerror(EMFILE))) }
        if target.isSecure {
            guard let tls = try? TLSConnection(to: target.host) else { return .insecure(nil) }
            self.tls = tls
        }
        lastProgress = MonotonicClock.now()
        let conversation = make(lastProgress)
        var tokens = [UInt32](repeating: 0, count: 4)
        var input = [UInt8](repeating: 0, count: 16 << 10)
        while true {
            let now = MonotonicClock.now()
            if let end = settle(conversation, descriptor, events, at: now) {
                conversation.lose(at: now)
                return end
            }
            let wait = max((deadline(of: conversation) ?? now).nanoseconds(since: now), 0)
            let count = unsafe Int(
                clinux_poll_wait_many(events.descriptor, &tokens, Int32(clamping: tokens.count), wait))
            let ready = tokens.prefix(max(count, 0))
            if ready.contains(Self.wakerToken) { shared.waker.clear() }
            perform(conversation, at: MonotonicClock.now())
            guard ready.contains(Self.socketToken) else { continue }
            if let end = receive(conversation, descriptor, by: &input, at: MonotonicClock.now()) {
                conversation.lose(at: MonotonicClock.now())
                return end
            }
        }
    }

    /// When to look again at the latest; never nil.
    private func deadline(of conversation: Conversation) -> MonotonicTime? {
        let stall = output.isEmpty ? nil : lastProgress + limits.stall
        // At least once a second, even if nothing is due.
        let look = MonotonicClock.now() + .seconds(1)
        return [conversation.deadline, stall, closesAt, look].compactMap(\.self).min()
    }

    /// Performs the waiting commands in order.
    private func perform(_ conversation: Conversation, at now: MonotonicTime) {
        // The lock is held only to take the commands out, because performing one may take long.
        let commands = shared.commands.withLock { commands in
            defer { commands.removeAll(keepingCapacity: true) }
            return commands
        }
        for command in commands {
            conversation.perform(command, at: now)
            // After each command, so that the next one is given the number of waiting bytes and leaves out what
            // cannot be sent.
            gather(conversation)
        }
    }

    /// Reads once from the socket; the loop comes back if there is more.
    /// - Returns: how the connection ended; nil if it goes on.
    private func receive(
        _ conversation: Conversation, _ descriptor: Int32, by input: inout [UInt8], at now: MonotonicTime
    ) -> OutgoingEnd? {
        let count = unsafe input.withUnsafeMutableBytes { buffer in
            unsafe Int(
                clinux_stream_receive(descriptor, buffer.baseAddress, Int32(clamping: buffer.count)))
        }
        guard count > 0 else {
            if count == -Int(EAGAIN) { return nil }
            return conversation.isOver || isStopped ? .over : .closed
        }
        // What comes after the end is read and ignored.
        guard let tls else {
            if !conversation.isOver { conversation.receive(input.span.extracting(0..<count), at: now) }
            return nil
        }
        let plain = tls.receive(input.span.extracting(0..<count))
        if !plain.isEmpty, !conversation.isOver { conversation.receive(plain.span, at: now) }
        guard tls.isClosed, !conversation.isOver else { return nil }
        if let complaint = tls.complaint { return .insecure(complaint) }
        return tls.isReady ? .closed : .insecure(nil)
    }

    // MARK: Output

    /// Does what is due, and sends pending output.
    /// - Returns: how the connection ended; nil if it goes on.
    private func settle(
        _ conversation: Conversation, _ descriptor: Int32, _ events: TCPEvents, at now: MonotonicTime
    ) -> OutgoingEnd? {
        if let due = conversation.deadline, due <= now { conversation.advance(to: now) }
        gather(conversation)
        guard send(on: descriptor, at: now) else { return conversation.isOver ? .over : .closed }
        if watchesWritable == output.isEmpty {
            watchesWritable = !output.isEmpty
            _ = clinux_poll_set(events.descriptor, descriptor, Self.socketToken, watchesWritable ? 1 : 0, 0)
        }
        if conversation.isOver || isStopped {
            let end = closesAt ?? now + Self.farewell
            closesAt = end
            return output.isEmpty || now >= end ? .over : nil
        }
        guard !output.isEmpty else { return nil }
        return now >= lastProgress + limits.stall ? .stalled : nil
    }

    /// Moves the conversation's output into `output`, encrypted if there is TLS.
    private func gather(_ conversation: Conversation) {
        let plain = conversation.takeOutput(waiting: output.count)
        if let tls {
            tls.send(plain)
            if conversation.isOver, !isClosing {
                isClosing = true
                tls.close()
            }
            output += tls.takeOutput()
        } else {
            output += plain
        }
    }

    /// Sends as much as the kernel accepts.
    /// - Returns: false if the connection is broken.
    private func send(on descriptor: Int32, at now: MonotonicTime) -> Bool {
        var sent = 0
        defer { output.removeFirst(sent) }
        // The stall time begins when there is something to send.
        if output.isEmpty { lastProgress = now }
        while sent < output.count {
            let count = unsafe output.withUnsafeBytes { buffer in
                unsafe Int(
                    clinux_stream_send(
                        descriptor, buffer.baseAddress?.advanced(by: sent),
                        Int32(clamping: buffer.count - sent)))
            }
            if count > 0 {
                sent += count
                lastProgress = now
            } else if count == 0 || count == -Int(EAGAIN) || count == -Int(ENOBUFS) {
                break
            } else {
                return false
            }
        }
        return true
    }
}
