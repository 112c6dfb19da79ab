import Base
import Wire

/// One SCTP association over a DTLS connection, for data channels.
///
/// It consumes packets and the time, and produces packets (`takeOutput`) and events (`takeEvents`). It never ends
/// because of missing acknowledgements: ICE decides whether the peer is gone. It belongs to one thread; `SCTPStack`
/// explains what it shares with associations of other threads, and under which lock.
///
/// usrsctp reads the system's clock for round trips, lifetimes and cookies, which cannot be changed. Its timers run
/// by the time that is passed in.
/// - Source: RFC 9260 (SCTP), RFC 8261 (over DTLS), RFC 6525 (stream reset), RFC 3758 (partial reliability).
package final class SCTPAssociation {
    /// An event of the association, in order.
    package enum Event: Equatable, Sendable {
        /// Messages can be sent, on streams with numbers below this.
        case established(streams: UInt16)
        /// A message arrived, complete.
        case message(SCTPMessage)
        /// A message of the peer exceeded the maximum length and was dropped.
        case tooLong(stream: UInt16)
        /// The peer closed its direction of these streams; an empty list means all.
        case incomingReset([UInt16])
        /// The local direction of the stream was closed by `reset`, or cannot be.
        case outgoingReset(UInt16)
        /// The peer ended or restarted the association; the last event.
        case ended
    }

    private enum State { case connecting, established, ended }

    /// A message of which only the first pieces have arrived.
    private struct Partial {
        var message: SCTPMessage
        /// Whether the message exceeds the maximum, so that its bytes were dropped.
        var isTooLong: Bool
    }

    /// Time until the next call of `advance` while something is under way; it doubles while nothing happens, up to
    /// the second.
    private static let shortestPause = Duration.milliseconds(SCTPStack.tickMilliseconds)
    private static let longestPause = Duration.milliseconds(160)
    /// How long `advance` is called after a packet: a little longer than usrsctp delays an acknowledgement (50 ms).
    private static let acknowledgementDelay = Duration.milliseconds(60)
    /// Addresses that are tried for a new association.
    private static let attempts = 16
    /// Bytes of the common header and one chunk header.
    private static let shortestPacket = 16

    private let stack: SCTPStack
    private let timeline: SCTPTimeline
    private let configuration: SCTPConfiguration
    private let address: UInt
    /// Nil once the association is closed.
    private var socket: SCTPSocket?
    private var state = State.connecting
    /// Streams that both sides accept; 0 until the association is established.
    private var outgoingStreams: UInt16 = 0
    private var queue: SendQueue
    /// Streams to be reset once their waiting messages have been sent.
    private var resetsToAsk: [UInt16] = []
    /// Streams whose reset was requested and not confirmed.
    private var resetsAsked: Set<UInt16> = []
    private var partial: Partial?
    private var events: [Event] = []
    /// Bytes of the messages in `events`.
    private var eventBytes = 0
    /// Whether reading has stopped because the inbox is full.
    private var hasUnread = false
    /// Packets that were left when the socket was closed.
    private var lastOutput: [[UInt8]] = []
    private var pause = shortestPause
    /// A delayed acknowledgement may be due until then.
    private var acknowledgesUntil: MonotonicTime
    /// When `advance` has to be called next; nil while nothing is under way.
    package private(set) var deadline: MonotonicTime?

    /// Starts the association with an INIT; both sides may do that (RFC 9260 §5.2.1), and browsers do.
    ///
    /// - Parameters:
    ///   - configuration: limits, which stay the same.
    ///   - timeline: shared by all associations that use the same clock.
    /// - Throws: if too many associations are open, or usrsctp refuses.
    package init(
        configuration: SCTPConfiguration = SCTPConfiguration(), timeline: SCTPTimeline = .system,
        at now: MonotonicTime
    ) throws(SCTPError) {
        stack = SCTPStack.shared
        self.timeline = timeline
        self.configuration = configuration
        queue = SendQueue(
            maximumBytes: configuration.sendBuffer, maximumCount: configuration.sendQueue,
            maximumStreamBytes: configuration.streamBuffer, reservedPart: 16)
        acknowledgesUntil = now
        (address, socket) = try Self.open(configuration, timeline, at: now)
        deadline = now + pause
    }

    /// Opens a socket at a free address.
    ///
    /// If usrsctp has aborted an association, it may keep the address in use even after the socket was closed; then
    /// another address is tried.
    private static func open(
        _ configuration: SCTPConfiguration, _ timeline: SCTPTimeline, at now: MonotonicTime
    ) throws(SCTPError) -> (UInt, SCTPSocket) {
        let stack = SCTPStack.shared
        var failure = SCTPError.tooManyAssociations
        for _ in 0..<attempts {
            let address = try stack.takeAddress()
            SCTPOutboxes.shared.open(address)
            do throws(SCTPError) {
                let socket = try stack.run(at: now, on: timeline) { guarded throws(SCTPError) in
                    try SCTPSocket(address: address, configuration: configuration, under: &guarded)
                }
                return (address, socket)
            } catch {
                failure = error
                SCTPOutboxes.shared.close(address)
                stack.giveBack(address)
            }
            guard failure == .addressInUse else { break }
        }
        throw failure
    }

    deinit {
        close()
    }

    /// Ends the association; the last output is an ABORT for the peer.
    package func close() {
        guard let socket else { return }
        self.socket = nil
        state = .ended
        deadline = nil
        stack.locked { socket.close(under: &$0) }
        lastOutput = SCTPOutboxes.shared.take(address)
        SCTPOutboxes.shared.close(address)
        stack.giveBack(address)
    }

    // MARK: Inputs

    /// Receives a packet that DTLS has decrypted; drops it if it is too short to contain a chunk.
    package func receive(_ packet: Span<UInt8>, at now: MonotonicTime) {
        guard let socket, packet.count >= Self.shortestPacket else { return }
        stack.run(at: now, on: timeline) { guarded in
            socket.receive(packet, under: &guarded)
            acknowledgesUntil = now + Self.acknowledgementDelay
            exchange(at: now, under: &guarded)
        }
        pause = Self.shortestPause
        schedule(at: now)
    }

    /// Does what is due, such as retransmissions and delayed acknowledgements.
    package func advance(to now: MonotonicTime) {
        guard socket != nil else { return }
        let eventCount = events.count
        stack.run(at: now, on: timeline) { guarded in exchange(at: now, under: &guarded) }
        let isQuiet = events.count == eventCount && SCTPOutboxes.shared.isEmpty(address)
        pause = isQuiet ? min(pause * 2, Self.longestPause) : Self.shortestPause
        schedule(at: now)
    }

    /// Queues a message, and sends what there is room for.
    ///
    /// - Throws: if the message is too long or the stream cannot be used, or `.bufferFull`; nothing was queued then.
    package func send(_ message: SCTPMessage, at now: MonotonicTime) throws(SCTPSendError) {
        guard socket != nil else { throw .closed }
        guard message.bytes.count <= configuration.maximumMessage else { throw .tooLong }
        guard !message.bytes.isEmpty, canSend(on: message.stream) else { throw .noStream }
        try queue.append(message, at: now)
        stack.run(at: now, on: timeline) { guarded in exchange(at: now, under: &guarded) }
        pause = Self.shortestPause
        schedule(at: now)
    }

    /// Closes the local direction of a stream, after everything queued on it was passed to the transport.
    ///
    /// A stream that cannot be used is ignored. `outgoingReset` follows.
    package func reset(_ stream: UInt16, at now: MonotonicTime) {
        guard socket != nil, canSend(on: stream) else { return }
        resetsToAsk.append(stream)
        stack.run(at: now, on: timeline) { guarded in exchange(at: now, under: &guarded) }
        pause = Self.shortestPause
        schedule(at: now)
    }

    /// Before the association is established, any configured stream may be used.
    private func canSend(on stream: UInt16) -> Bool {
        stream < (state == .established ? outgoingStreams : configuration.streams)
            && !resetsToAsk.contains(stream) && !resetsAsked.contains(stream)
    }

    // MARK: Outputs

    /// Takes the packets to send, in order.
    package func takeOutput() -> [[UInt8]] {
        guard socket == nil else { return SCTPOutboxes.shared.take(address) }
        defer { lastOutput = [] }
        return lastOutput
    }

    /// Takes the events since the last call.
    ///
    /// While more messages wait here than the inbox may hold, nothing more is read, and the peer has to wait.
    package func takeEvents() -> [Event] {
        guard !events.isEmpty else { return [] }
        let taken = events
        events.removeAll()
        eventBytes = 0
        if hasUnread, let socket {
            stack.locked { read(socket, under: &$0) }
        }
        return taken
    }

    /// Bytes of a stream that wait to be passed to the transport.
    ///
    /// What the transport has accepted is not included: at most 64 KiB over all streams, or one longer message.
    package func buffered(_ stream: UInt16) -> Int {
        queue.buffered(stream)
    }

    /// Messages that were dropped before they reached the transport, as their delivery permits.
    package var dropped: Int { queue.dropped }

    // MARK: Steps

    /// Reads what usrsctp has for the application, then passes on what there is room for.
    ///
    /// Called after the timers have run.
    private func exchange(at now: MonotonicTime, under guarded: inout SCTPStack.Guarded) {
        guard let socket else { return }
        read(socket, under: &guarded)
        guard state == .established else { return }
        write(socket, at: now, under: &guarded)
        askForResets(socket, under: &guarded)
    }

    /// Passes queued messages to the transport, until it has no room.
    private func write(_ socket: SCTPSocket, at now: MonotonicTime, under guarded: inout SCTPStack.Guarded) {
        while let first = queue.first(at: now) {
            switch socket.send(first.message, lifetime: first.lifetime(at: now), under: &guarded) {
            // A message that usrsctp refuses for another reason than room would block the queue for ever.
            case .all, .refused: queue.removeFirst()
            case .nothing: return
            }
        }
    }

    /// Requests resets of streams whose messages were all passed on; usrsctp accepts one request at a time.
    private func askForResets(_ socket: SCTPSocket, under guarded: inout SCTPStack.Guarded) {
        while let next = resetsToAsk.firstIndex(where: { queue.buffered($0) == 0 }) {
            let stream = resetsToAsk[next]
            switch socket.resetOutgoing(stream, under: &guarded) {
            case .all: resetsAsked.insert(stream)
            case .nothing: return
            // The peer supports no resets: the stream is closed on this side only.
            case .refused: append(.outgoingReset(stream))
            }
            resetsToAsk.remove(at: next)
        }
    }

    /// Reads messages and notifications, until there are no more or the inbox is full.
    private func read(_ socket: SCTPSocket, under guarded: inout SCTPStack.Guarded) {
        while state != .ended {
            hasUnread = events.count >= configuration.inboxMessages || eventBytes >= configuration.inbox
            guard !hasUnread else { return }
            switch socket.read(under: &guarded) {
            case .nothing: return
            case .ended: end()
            case .notification(let notification): take(notification)
            case .piece(let stream, let payload, let isOrdered, let bytes, let isEnd):
                let message = SCTPMessage(
                    stream: stream, payload: payload, delivery: DataChannelDelivery(isOrdered: isOrdered),
                    bytes: bytes)
                take(message, isEnd: isEnd)
            }
        }
    }

    /// Appends a piece to its message, which becomes an event with its last piece.
    private func take(_ piece: SCTPMessage, isEnd: Bool) {
        var whole = Partial(message: piece, isTooLong: false)
        if let before = partial, before.message.stream == piece.stream {
            whole.isTooLong = before.isTooLong
            whole.message.bytes = before.isTooLong ? [] : before.message.bytes + piece.bytes
        }
        if whole.message.bytes.count > configuration.maximumMessage {
            whole.message.bytes = []
            whole.isTooLong = true
        }
        partial = isEnd ? nil : whole
        guard isEnd else { return }
        append(whole.isTooLong ? .tooLong(stream: piece.stream) : .message(whole.message))
    }

    private func take(_ notification: SCTPNotification) {
        switch notification {
        case .up(let incoming, let outgoing):
            guard state == .connecting else { return }
            state = .established
            outgoingStreams = min(incoming, outgoing)
            append(.established(streams: outgoingStreams))
        case .restarted, .lost: end()
        case .incomingReset(let streams): append(.incomingReset(streams))
        case .outgoingReset(let streams), .resetRefused(let streams):
            for stream in streams where resetsAsked.remove(stream) != nil { append(.outgoingReset(stream)) }
        case .messageAborted(let stream):
            if partial?.message.stream == stream { partial = nil }
        case .other: break
        }
    }

    private func append(_ event: Event) {
        if case .message(let message) = event { eventBytes += message.bytes.count }
        events.append(event)
    }

    private func end() {
        guard state != .ended else { return }
        state = .ended
        events.append(.ended)
    }

    /// Sets the time of the next call; an idle association has none, because none of its timers runs.
    private func schedule(at now: MonotonicTime) {
        // After the end, nothing is left but to release the socket.
        guard let socket, state != .ended else { return close() }
        let isBusy =
            state == .connecting || now < acknowledgesUntil || !queue.isEmpty || !resetsToAsk.isEmpty
            || !resetsAsked.isEmpty || stack.locked { socket.outstanding(under: &$0) } > 0
        deadline = isBusy ? now + pause : nil
    }
}
