import Base
import CLinux
import Crypto
import Glibc
import Synchronization

/// Where a connection leads.
package struct OutgoingTarget: Sendable {
    /// A name, or an address without brackets.
    let host: String
    let port: UInt16
    /// Whether TLS is spoken, and the host's certificate verified.
    let isSecure: Bool
    /// Which of the host's addresses may be connected to.
    let permits: @Sendable (IPAddress) -> Bool

    package init(
        host: String, port: UInt16, isSecure: Bool, permits: @escaping @Sendable (IPAddress) -> Bool
    ) {
        self.host = host
        self.port = port
        self.isSecure = isSecure
        self.permits = permits
    }
}

/// How a connection to somebody else ended.
package enum OutgoingEnd: Equatable, Sendable {
    /// What was said on it was over, or nobody wanted it any longer.
    case over
    /// The name has no address.
    case unresolved
    /// It has addresses, but none that may be connected to.
    case forbidden
    /// The kernel's reason.
    case unreachable(String)
    /// The host is not who it should be, in OpenSSL's words; nil where it speaks no TLS that is understood here.
    case insecure(String?)
    /// The other end closed it, or it broke.
    case closed
    /// The other end took nothing for so long as it may.
    case stalled
}

/// How long a connection waits for what.
package struct OutgoingLimits: Sendable {
    /// For the kernel to connect to one address.
    package var connect = Duration.seconds(5)
    /// For the other end to take something, while there is something to take.
    package var stall = Duration.seconds(10)

    package init() {}
}

/// A TCP connection to somebody else, with TLS or without, on a thread of its own.
///
/// The thread may wait: for the resolver, for the kernel to connect, for the other end. Names are looked up here and
/// nowhere else, so that what was permitted is what is connected to. What others tell it waits in a queue of bounded
/// length; what is to be sent is bounded by the conversation, which is told how much waits.
package final class OutgoingStream<Conversation: StreamConversation>: Sendable {
    /// Makes the conversation once the connection stands, on its thread.
    package typealias Maker = @Sendable (MonotonicTime) -> Conversation

    /// What was told and not heard yet: some seconds of media.
    package static var commandLimit: Int { 1_024 }

    private let shared: OutgoingShared<Conversation.Command>

    /// Begins to connect.
    /// - Parameters:
    ///   - name: of the thread, at most 15 bytes.
    ///   - ended: told once, last, by the thread.
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

    /// Tells the conversation something; what finds no room is dropped.
    package func tell(_ command: Conversation.Command) {
        let hasRoom = shared.commands.withLock { commands in
            guard commands.count < Self.commandLimit else { return false }
            commands.append(command)
            return true
        }
        if hasRoom { shared.waker.wake() }
    }

    /// Closes the connection; whoever waits for that hears it from `ended`.
    package func stop() {
        shared.isStopping.store(true, ordering: .releasing)
        shared.waker.wake()
    }
}

/// What the thread of a connection and its owner share.
private final class OutgoingShared<Command: Sendable>: Sendable {
    let waker: Waker
    let commands = Mutex<[Command]>([])
    let isStopping = Atomic(false)

    init(waker: Waker) { self.waker = waker }
}

/// The life of one connection, on its thread.
private final class OutgoingRun<Conversation: StreamConversation> {
    private static var wakerToken: UInt32 { 1 }
    private static var socketToken: UInt32 { 2 }
    /// Addresses that are tried.
    private static var addressLimit: Int { 4 }
    /// Between two looks whether it is still wanted, while it connects.
    private static var connectStep: Int32 { 100 }
    /// Who is told that it is over has so long to take it.
    private static var farewell: Duration { .seconds(1) }

    private let target: OutgoingTarget
    private let limits: OutgoingLimits
    private let shared: OutgoingShared<Conversation.Command>
    private let make: OutgoingStream<Conversation>.Maker
    private var tls: TLSConnection?
    private var output: [UInt8] = []
    private var lastProgress = MonotonicTime.zero
    private var closesAt: MonotonicTime?
    private var watchesWritable = false
    /// Whether TLS has been told that nothing more comes.
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

    private func deadline(of conversation: Conversation) -> MonotonicTime? {
        let stall = output.isEmpty ? nil : lastProgress + limits.stall
        // Looks now and then even where nothing is due.
        let look = MonotonicClock.now() + .seconds(1)
        return [conversation.deadline, stall, closesAt, look].compactMap(\.self).min()
    }

    private func perform(_ conversation: Conversation, at now: MonotonicTime) {
        let commands = shared.commands.withLock { commands in
            defer { commands.removeAll(keepingCapacity: true) }
            return commands
        }
        for command in commands {
            conversation.perform(command, at: now)
            // Each is told how much waits, so that what cannot be sent is never queued.
            gather(conversation)
        }
    }

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
        guard let tls else {
            conversation.receive(input.span.extracting(0..<count), at: now)
            return nil
        }
        let plain = tls.receive(input.span.extracting(0..<count))
        if !plain.isEmpty { conversation.receive(plain.span, at: now) }
        guard tls.isClosed, !conversation.isOver else { return nil }
        if let complaint = tls.complaint { return .insecure(complaint) }
        return tls.isReady ? .closed : .insecure(nil)
    }

    // MARK: Output

    /// Does what is due, and sends what there is to be sent.
    /// - Returns: how the connection ends; nil while it goes on.
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

    /// Sends as much as the kernel takes.
    /// - Returns: false if the connection is broken.
    private func send(on descriptor: Int32, at now: MonotonicTime) -> Bool {
        var sent = 0
        defer { output.removeFirst(sent) }
        // The time in which nothing is taken begins when there is something.
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
