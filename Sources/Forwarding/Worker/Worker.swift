import Base
import Crypto
import Peer
import Wire

/// What a worker needs from outside: it reads no clock and no random numbers itself.
package struct WorkerEnvironment {
    /// For the NTP times in RTCP.
    package let clock: WallClock
    /// For identifiers, SSRCs and report times.
    package var random: any RandomNumberGenerator
    /// For the peer connections of its sessions.
    package let connection: PeerConnection.Environment

    package init(clock: WallClock, random: any RandomNumberGenerator, connection: PeerConnection.Environment)
    {
        self.clock = clock
        self.random = random
        self.connection = connection
    }
}

/// The packet path of one thread, with its sessions and their tracks.
///
/// It receives datagrams and commands with their time of arrival, and sends through a sink. It reads no clock, opens
/// no socket, and stays on the thread that created it.
package final class Worker {
    var environment: WorkerEnvironment
    /// All sessions, connected or not.
    package internal(set) var sessions: [SessionID: Session] = [:]
    /// The sessions by their clients' proven or checked addresses.
    private var byAddress: [TransportAddress: Session] = [:]
    /// The sessions by their local ufrags; during an ICE restart two ufrags lead to one session.
    private var byUfrag: [String: Session] = [:]
    /// The programmes of streams with a publisher or viewers here.
    var programmes: [StreamID: Programme] = [:]
    /// Tracks published on this worker, by sessions and injections.
    var published: [TrackID: Track] = [:]
    /// The track of each tap.
    var taps: [TapID: Track] = [:]
    /// Publishers inside the server.
    var injections: [InjectionID: Injection] = [:]
    let injectionNotices = InjectionNotices()
    let renditions = RenditionBoard()
    var ended = EndedAddresses()
    var requests: RelayRequests
    var relayed: TrackCopies
    /// When a stream's past was last flushed; kept for a while, because older packets may be on their way from other
    /// workers.
    var flushed: [StreamID: MonotonicTime] = [:]
    /// Connected sessions of each stage.
    var stages: [StreamID: [SessionID]] = [:]
    /// Data tracks that reach audiences.
    var audience = AudienceData()
    /// Nil for a node with a single worker.
    let links: WorkerLinks?
    /// Nil for a worker with a port of its own.
    private let neighbours: (any PortNeighbours)?
    let wakeList = WakeList()
    let fanOut: FanOut
    let recorder = JoinRecorder()
    private var deadlines = DeadlineQueue<SessionID>()
    /// Maximum number of sessions woken per turn; with one replay step each, they take about two milliseconds.
    private static let wakesPerTurn = 32
    /// How long an address belongs to the session last heard there: the interval of two checks of most clients.
    package static let ownership = Duration.seconds(5)
    /// Whether sessions are due that did not fit into the last turn.
    private var hasMoreDue = false
    var joining = HandshakeQueue()
    /// The header capture that is under way; nil while there is none.
    var capture: RunningCapture?
    private var reportSenders = ReportSenders()
    /// Events for control, which the worker's owner takes.
    private var events: [WorkerEvent] = []
    var nextTrack: UInt64 = 1
    var counters = WorkerCounters()

    /// - Parameters:
    ///   - index: the worker's index within the node.
    ///   - exchange: connects it to the other workers; nil if there are none.
    ///   - neighbours: the workers that share its UDP port; nil if it has one of its own.
    package init(
        environment: WorkerEnvironment, index: Int = 0, exchange: RelayExchange? = nil,
        neighbours: (any PortNeighbours)? = nil
    ) {
        self.environment = environment
        self.neighbours = neighbours
        let links = exchange.map { WorkerLinks(index: index, exchange: $0) }
        let fanOut = FanOut()
        self.links = links
        self.fanOut = fanOut
        requests = RelayRequests(over: links)
        relayed = TrackCopies(over: links, fanOut: fanOut)
    }

    /// Breaks reference cycles: slots and tracks refer to each other, and so do sessions and the wake list.
    deinit {
        for session in sessions.values { session.detachAll() }
        _ = wakeList.takeAll()
    }

    // MARK: Datagrams

    /// Processes one datagram, which is decrypted in place.
    /// - Parameter isHandedOver: whether it arrived at a worker that shares the port and did not find a session for
    ///   it.
    package func receive(
        _ datagram: inout MutableSpan<UInt8>, from source: TransportAddress, isHandedOver: Bool = false,
        at now: MonotonicTime, into sink: inout some DatagramSink & ~Copyable
    ) {
        guard let kind = DatagramKind(datagram.span) else { return countHomeless(from: source, at: now) }
        guard
            let session = kind == .stun ? addressee(of: datagram.span, from: source) : byAddress[source]
        else {
            if !isHandedOver, pass(datagram.span, kind, from: source, at: now) { return }
            return receiveStray(
                &datagram, kind, from: source, isHandedOver: isHandedOver, at: now, into: &sink)
        }
        if let capture, capture.session === session {
            capture.headers.noteReceived(datagram.span, from: source, at: now)
        }
        switch kind {
        case .rtp:
            counters.mediaDatagrams &+= 1
            session.receiveMedia(&datagram, from: source, at: now, into: &sink)
            noteMedia(of: session, at: now)
        case .rtcp:
            counters.controlDatagrams &+= 1
            if session.receiveControl(
                &datagram, from: source, clock: environment.clock, at: now, into: &sink)
            {
                reportSenders.note(datagram.span, of: session.id)
            }
        case .dtls:
            counters.handshakes &+= 1
            // While connecting, every record is queued, so that a session's records stay in order.
            if session.connection.state == .connecting {
                if !joining.append(datagram.span, of: session.id, from: source) {
                    counters.handshakesDropped &+= 1
                }
                return
            }
            session.connection.receiveHandshake(datagram.span, from: source, at: now, into: &sink)
            settle(session, at: now, into: &sink)
        case .stun:
            counters.checks &+= 1
            session.connection.receiveCheck(
                datagram.span, from: source, at: now, using: &environment.random, into: &sink)
            settle(session, at: now, into: &sink)
        }
    }

    /// The session that a check names, or that awaits a response.
    private func addressee(of datagram: Span<UInt8>, from source: TransportAddress) -> Session? {
        // A response to the server's own request contains no ufrag.
        let isAnswer = (try? datagram.uint16(at: 0)) == STUNKind.bindingSuccess.rawValue
        return isAnswer
            ? byAddress[source] : STUNMessage.localUfrag(ofRequest: datagram).flatMap { byUfrag[$0] }
    }

    /// Passes a datagram to a worker that shares the port.
    /// - Returns: whether it may belong to another worker's session, and was passed there.
    private func pass(
        _ datagram: Span<UInt8>, _ kind: DatagramKind, from source: TransportAddress, at now: MonotonicTime
    ) -> Bool {
        guard let neighbours, source.transport == .udp else { return false }
        let isOccupied = byAddress[source].map { isHeard($0, from: source, at: now) } ?? false
        return neighbours.pass(datagram, kind, from: source, isOccupied: isOccupied, at: now)
    }

    /// Processes a datagram from an address that belongs to no session.
    private func receiveStray(
        _ datagram: inout MutableSpan<UInt8>, _ kind: DatagramKind, from source: TransportAddress,
        isHandedOver: Bool, at now: MonotonicTime, into sink: inout some DatagramSink & ~Copyable
    ) {
        if kind == .rtcp || kind == .rtp, source.transport == .udp {
            if receiveMoved(&datagram, kind, from: source, at: now, into: &sink) { return }
            if kind == .rtcp, !isHandedOver, neighbours?.offer(datagram.span, from: source) == true { return }
        }
        countHomeless(from: source, at: now)
    }

    /// Processes a report or media packet that may be from a client to which a NAT gave another address, before the
    /// client has checked it.
    /// - Returns: whether it was; then the address is asked for proof.
    private func receiveMoved(
        _ datagram: inout MutableSpan<UInt8>, _ kind: DatagramKind, from source: TransportAddress,
        at now: MonotonicTime, into sink: inout some DatagramSink & ~Copyable
    ) -> Bool {
        let named = reportSenders.find(datagram.span, kind, at: now).compactMap { sessions[$0] }
        let tried =
            named.count < 2
            ? named
            : ReportSenders.likeliest(named.map { ($0, now - $0.connection.lastHeard) })
        for session in tried
        where session.receiveMoved(&datagram, kind, clock: environment.clock, at: now, into: &sink) {
            if kind == .rtcp { counters.controlDatagrams &+= 1 } else { counters.mediaDatagrams &+= 1 }
            session.connection.noteStray(from: source, at: now, using: &environment.random, into: &sink)
            settle(session, at: now, into: &sink)
            return true
        }
        return false
    }

    /// Reports a session's first media, and what its monitor noticed.
    func noteMedia(of session: Session, at now: MonotonicTime) {
        if session.monitor?.hasNotices == true { tellNotices(of: session) }
        guard !session.hasMedia, session.counters.received.packets > 0 else { return }
        session.hasMedia = true
        session.progress.noteMedia(at: now)
        events.append(.mediaStarted(session.id))
    }

    private func tellNotices(of session: Session) {
        for notice in session.monitor?.takeNotices() ?? [] {
            switch notice {
            case .voice(let level): tell(.voice(session.id, level: level))
            case .weakUplink: tell(.uplinkWeak(session.id))
            case .changed(let source, let isActive):
                guard session.sources.indices.contains(source) else { continue }
                tell(.sourceChanged(session.id, mid: session.sources[source].plan.mid, isActive: isActive))
            }
        }
    }

    /// Ends a batch: processes other workers' batches, sends what is due, and looks at the sessions that need it.
    ///
    /// Called after each batch of datagrams or commands, and when another worker wakes this one.
    package func endOfBatch(at now: MonotonicTime, into sink: inout some DatagramSink & ~Copyable) {
        receiveFromWorkers(at: now, into: &sink)
        fanOut.sendDue(at: now, into: &sink)
        renditions.advance(to: now)
        shakeHands(at: now, into: &sink)
        defer { links?.flush() }
        for session in wakeList.takeAll() {
            session.leaveWakeList()
            guard sessions[session.id] != nil else { continue }
            for begun in session.takeBeginnings() {
                tell(.begun(session.id, pair: begun.pair, begun.stream, timestamp: begun.timestamp))
            }
            for wanted in session.takeChangedRests() {
                tell(.layersWanted(session.id, mid: wanted.mid, rids: wanted.rids))
            }
            if session.takeKeyFrameWish() { tell(.sessionKeyFrameWanted(session.id)) }
            if let quality = session.takeQuality() { tell(.qualityChanged(session.id, quality)) }
            if session.controlDeadline <= now {
                wake(session, at: now, into: &sink)
            } else {
                schedule(session, at: now)
            }
        }
    }

    // MARK: Time

    /// When `advance` should run next.
    package var deadline: MonotonicTime? {
        [fanOut.deadline, renditions.deadline, deadlines.next, capture?.deadline].compactMap(\.self).min()
    }

    /// Performs what is due: retransmissions, reports, feedback, timeouts.
    package func advance(to now: MonotonicTime, into sink: inout some DatagramSink & ~Copyable) {
        fanOut.sendDue(at: now, into: &sink)
        renditions.advance(to: now)
        if let due = capture?.deadline, due <= now { endCapture() }
        // The remaining sessions come with the next turn: replays to many viewers must not delay live media.
        for _ in 0..<Self.wakesPerTurn {
            guard let id = deadlines.popDue(at: now) else { break }
            guard let session = sessions[id] else { continue }
            wake(session, at: now, into: &sink)
        }
        hasMoreDue = deadlines.next.map { $0 <= now } ?? false
        links?.flush()
    }

    /// Whether work is left that did not fit into the last turn.
    package var wantsTurn: Bool { hasMoreDue || !joining.isEmpty }

    private func wake(
        _ session: Session, at now: MonotonicTime, into sink: inout some DatagramSink & ~Copyable
    ) {
        session.connection.advance(to: now, using: &environment.random, into: &sink)
        session.monitor?.advance(to: now)
        retellIfMissed(session)
        if session.monitor?.hasNotices == true { tellNotices(of: session) }
        session.sendControl(clock: environment.clock, using: &environment.random, at: now, into: &sink)
        for request in session.takeKeyFrameRequests() { tell(.keyFrameRequested(session.id, request)) }
        settle(session, at: now, into: &sink)
    }

    /// Processes the events of a session's connection, and schedules the session again.
    func settle(_ session: Session, at now: MonotonicTime, into sink: inout some DatagramSink & ~Copyable) {
        if let capture, capture.session === session {
            capture.headers.remote = session.connection.remoteAddress
        }
        for event in session.connection.takeEvents() {
            switch event {
            case .admitted(let address):
                if session.progress.noteCheck(at: now) { events.append(.checked(session.id)) }
                admit(address, to: session, at: now)
            case .dismissed(let address): dismiss(address, from: session, at: now)
            case .retired(let ufrag): byUfrag[ufrag] = nil
            case .connected(let profile):
                session.progress.noteConnection(at: now)
                events.append(.connected(session.id, profile, session.connection.remoteAddress))
                begin(session, at: now, into: &sink)
            case .dataChannel(let event): take(event, of: session, at: now, into: &sink)
            case .closed(let reason):
                return remove(session, because: reason, at: now, into: &sink)
            }
        }
        schedule(session, at: now)
    }

    func schedule(_ session: Session, at now: MonotonicTime) {
        let due = min(session.connection.deadline, session.controlDeadline)
        // At least a millisecond ahead, so that an overdue session cannot cause an endless loop.
        deadlines.schedule(session.id, at: max(due, now.advanced(byNanoseconds: 1_000_000)))
    }

    // MARK: Who is who

    /// Assigns an address to the session that was checked from it last, because a NAT may have given it to another
    /// client.
    ///
    /// But it stays with a session that was heard there just now. A NAT does not reassign an address that fast, while
    /// a check with a forged source could divert another client's packets.
    private func admit(_ address: TransportAddress, to session: Session, at now: MonotonicTime) {
        if let owner = byAddress[address], owner !== session, isHeard(owner, from: address, at: now) {
            return
        }
        if let neighbours, address.transport == .udp, !neighbours.claim(address, at: now) { return }
        byAddress[address] = session
    }

    /// Whether a session was heard from an address within `ownership`.
    private func isHeard(_ session: Session, from address: TransportAddress, at now: MonotonicTime) -> Bool {
        session.connection.lastHeard(from: address).map { now < $0 + Self.ownership } ?? false
    }

    func session(at address: TransportAddress) -> Session? { byAddress[address] }

    /// Whether a session uses this address.
    package func knows(_ address: TransportAddress) -> Bool { byAddress[address] != nil }

    /// Handles the end of a TCP connection, whose address is no longer valid.
    package func lose(
        _ address: TransportAddress, at now: MonotonicTime, into sink: inout some DatagramSink & ~Copyable
    ) {
        guard let session = byAddress.removeValue(forKey: address) else { return }
        session.connection.lose(address, at: now, into: &sink)
        settle(session, at: now, into: &sink)
    }

    /// Processes the progress of the TCP connection behind this address.
    package func note(_ backlog: StreamBacklog, of address: TransportAddress, at now: MonotonicTime) {
        guard let session = byAddress[address], session.connection.remoteAddress == address else { return }
        session.receive(backlog, at: now)
    }

    private func dismiss(_ address: TransportAddress, from session: Session, at now: MonotonicTime) {
        guard byAddress[address] === session else { return }
        byAddress[address] = nil
        neighbours?.release(address, at: now)
    }

    func register(_ session: Session) {
        sessions[session.id] = session
        updateUfrags(of: session)
    }

    func updateUfrags(of session: Session) {
        for ufrag in session.connection.localUfrags { byUfrag[ufrag] = session }
    }

    func forget(_ session: Session, at now: MonotonicTime) {
        sessions[session.id] = nil
        reportSenders.remove(session.id)
        for ufrag in session.connection.localUfrags { byUfrag[ufrag] = nil }
        for address in session.connection.addresses {
            dismiss(address, from: session, at: now)
            ended.insert(address, at: now)
        }
    }

    // MARK: Events

    /// The events since the last call.
    package func takeEvents() -> [WorkerEvent] {
        tellInjectionNotices()
        tellRenditionNotices()
        guard !events.isEmpty else { return [] }
        defer { events.removeAll() }
        return events
    }

    func tell(_ event: WorkerEvent) {
        events.append(event)
    }

    /// All counters, including those of living sessions.
    package var statistics: WorkerCounters {
        var total = counters
        for session in sessions.values {
            total.media.add(session.totals)
            total.slots += session.slots.count
            total.slotsAttached += session.slots.count { $0.track != nil }
            total.delivery.count(session)
        }
        total.sessions = sessions.count
        total.publishers = recorder.publishers
        total.viewers = recorder.viewers
        total.switches = recorder.switches
        total.waits = fanOut.waits
        total.packetsToWorkers = links?.sent.packets ?? 0
        total.bytesToWorkers = links?.sent.bytes ?? 0
        return total
    }
}
