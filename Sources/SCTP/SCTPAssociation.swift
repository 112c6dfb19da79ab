import Base
import Wire

/// One SCTP association over the bytes of a DTLS connection.
///
/// Takes packets and the time, gives out packets (`takeOutput`) and events (`takeEvents`). It never ends by itself
/// because nothing is answered: whether the peer is gone, ICE decides. Belongs to one thread; what is shared with the
/// associations of other threads, and how, `SCTPStack` says.
///
/// usrsctp measures round trips, lifetimes and cookies on the system's clock, which cannot be helped; its timers run by
/// the time it is told.
/// - Source: RFC 9260 (SCTP), RFC 8261 (over DTLS), RFC 6525 (stream reset), RFC 3758 (partial reliability).
package final class SCTPAssociation {
    /// What happened, in order.
    package enum Event: Equatable, Sendable {
        /// Messages can be sent, on streams below this number.
        case established(streams: UInt16)
        case message(SCTPMessage)
        /// A message of the peer was longer than agreed; it was dropped.
        case tooLong(stream: UInt16)
        /// The peer closed its direction of these streams; none means all.
        case incomingReset([UInt16])
        /// Our direction of the stream was closed, as asked for.
        case outgoingReset(UInt16)
        /// The peer ended it, or began anew; the last event.
        case ended
    }

    private enum State { case connecting, established, ended }

    /// A message that comes in pieces.
    private struct Partial {
        var message: SCTPMessage
        var isTooLong: Bool
    }

    /// Between two looks at the timers while something is under way; doubles while nothing happens.
    private static let shortestPause = Duration.milliseconds(SCTPStack.tickMilliseconds)
    private static let longestPause = Duration.milliseconds(160)
    /// A little more than the delay of acknowledgements.
    private static let acknowledgementDelay = Duration.milliseconds(60)
    private static let attempts = 16
    /// Common header and a chunk header.
    private static let shortestPacket = 16

    private let stack: SCTPStack
    private let timeline: SCTPTimeline
    private let configuration: SCTPConfiguration
    private let address: UInt
    /// Nil once closed.
    private var socket: SCTPSocket?
    private var state = State.connecting
    private var outgoingStreams: UInt16 = 0
    private var queue: SendQueue
    /// To be reset once what waits on them has been sent.
    private var resetsToAsk: [UInt16] = []
    private var resetsAsked: Set<UInt16> = []
    private var partial: Partial?
    private var events: [Event] = []
    private var eventBytes = 0
    private var hasUnread = false
    /// What was left when the socket was closed.
    private var lastOutput: [[UInt8]] = []
    private var pause = shortestPause
    private var acknowledgesUntil: MonotonicTime
    /// When `advance` wants to be called; nil while nothing is under way.
    package private(set) var deadline: MonotonicTime?

    /// Begins with an INIT; both sides may (RFC 9260 §5.2.1), and browsers do.
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

    /// Makes a socket at a free address.
    ///
    /// What usrsctp aborted by itself it may keep even after it was closed: then another address is tried.
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

    /// Ends the association; the last output tells the peer.
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

    /// Takes what DTLS has decrypted; packets too short to hold a chunk are dropped.
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

    /// Does what is due: repetitions, late acknowledgements.
    package func advance(to now: MonotonicTime) {
        guard socket != nil else { return }
        let eventCount = events.count
        stack.run(at: now, on: timeline) { guarded in exchange(at: now, under: &guarded) }
        let isQuiet = events.count == eventCount && SCTPOutboxes.shared.isEmpty(address)
        pause = isQuiet ? min(pause * 2, Self.longestPause) : Self.shortestPause
        schedule(at: now)
    }

    /// Queues a message; what there is room for leaves at once.
    package func send(_ message: SCTPMessage, at now: MonotonicTime) throws(SCTPSendError) {
        guard socket != nil else { throw .closed }
        guard message.bytes.count <= configuration.maximumMessage else { throw .tooLong }
        guard !message.bytes.isEmpty, canSend(on: message.stream) else { throw .noStream }
        try queue.append(message, at: now)
        stack.run(at: now, on: timeline) { guarded in exchange(at: now, under: &guarded) }
        pause = Self.shortestPause
        schedule(at: now)
    }

    /// Closes our direction of a stream, once all that was sent on it has arrived.
    package func reset(_ stream: UInt16, at now: MonotonicTime) {
        guard socket != nil, canSend(on: stream) else { return }
        resetsToAsk.append(stream)
        stack.run(at: now, on: timeline) { guarded in exchange(at: now, under: &guarded) }
        pause = Self.shortestPause
        schedule(at: now)
    }

    private func canSend(on stream: UInt16) -> Bool {
        stream < (state == .established ? outgoingStreams : configuration.streams)
            && !resetsToAsk.contains(stream) && !resetsAsked.contains(stream)
    }

    // MARK: Outputs

    /// Packets to send, in this order.
    package func takeOutput() -> [[UInt8]] {
        guard socket == nil else { return SCTPOutboxes.shared.take(address) }
        defer { lastOutput = [] }
        return lastOutput
    }

    /// What happened since the last call; the peer waits while more than the inbox holds is not taken.
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

    /// Bytes of a stream that wait, without those that the transport has taken: at most 64 KiB of all streams, or one
    /// long message.
    package func buffered(_ stream: UInt16) -> Int {
        queue.buffered(stream)
    }

    /// Messages that may be lost and were, before they reached the transport.
    package var dropped: Int { queue.dropped }

    // MARK: Steps

    private func exchange(at now: MonotonicTime, under guarded: inout SCTPStack.Guarded) {
        guard let socket else { return }
        read(socket, under: &guarded)
        guard state == .established else { return }
        write(socket, at: now, under: &guarded)
        askForResets(socket, under: &guarded)
    }

    private func write(_ socket: SCTPSocket, at now: MonotonicTime, under guarded: inout SCTPStack.Guarded) {
        while let first = queue.first(at: now) {
            switch socket.send(first.message, lifetime: first.lifetime(at: now), under: &guarded) {
            case .all, .refused: queue.removeFirst()
            case .nothing: return
            }
        }
    }

    private func askForResets(_ socket: SCTPSocket, under guarded: inout SCTPStack.Guarded) {
        while let next = resetsToAsk.firstIndex(where: { queue.buffered($0) == 0 }) {
            let stream = resetsToAsk[next]
            switch socket.resetOutgoing(stream, under: &guarded) {
            case .all: resetsAsked.insert(stream)
            case .nothing: return
            case .refused: append(.outgoingReset(stream))
            }
            resetsToAsk.remove(at: next)
        }
    }

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

    /// Looks again soon while something is under way; an idle association has no timers.
    private func schedule(at now: MonotonicTime) {
        guard let socket, state != .ended else { return close() }
        let isBusy =
            state == .connecting || now < acknowledgesUntil || !queue.isEmpty || !resetsToAsk.isEmpty
            || !resetsAsked.isEmpty || stack.locked { socket.outstanding(under: &$0) } > 0
        deadline = isBusy ? now + pause : nil
    }
}
