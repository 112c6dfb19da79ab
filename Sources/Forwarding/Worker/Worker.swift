import Base
import Crypto
import Peer
import Wire

/// What a worker gets from outside, because it may not take it itself.
package struct WorkerEnvironment {
    /// For the NTP times in RTCP.
    package let clock: WallClock
    package var random: any RandomNumberGenerator
    package let connection: PeerConnection.Environment

    package init(clock: WallClock, random: any RandomNumberGenerator, connection: PeerConnection.Environment)
    {
        self.clock = clock
        self.random = random
        self.connection = connection
    }
}

/// The packet path of one thread: its sessions, and what they publish and watch.
///
/// Takes datagrams and commands with the time they came, and sends through a sink. Reads no clock, opens no
/// socket, and is made on the thread it stays on.
package final class Worker {
    var environment: WorkerEnvironment
    package internal(set) var sessions: [SessionID: Session] = [:]
    private var byAddress: [TransportAddress: Session] = [:]
    /// By the ufrags that we gave; during an ICE restart two of them lead to one session.
    private var byUfrag: [String: Session] = [:]
    var programmes: [StreamID: Programme] = [:]
    /// Tracks that sessions of this worker publish.
    var published: [TrackID: Track] = [:]
    /// Which track a tap is on.
    var taps: [TapID: Track] = [:]
    /// Publishers inside the server.
    var injections: [InjectionID: Injection] = [:]
    let injectionNotices = InjectionNotices()
    let renditions = RenditionBoard()
    var lingering = Lingering()
    var ended = EndedAddresses()
    /// Copies of tracks that other workers receive.
    var relayed: [TrackKey: Track] = [:]
    /// When a stream's past was to be forgotten, if that was lately: some of it may be on its way from other workers.
    var flushed: [StreamID: MonotonicTime] = [:]
    /// How many slots control filled with each of those.
    var slotUses: [TrackKey: Int] = [:]
    /// Those that are programmes.
    var programmeTracks: Set<TrackKey> = []
    /// Connected sessions of each stage.
    var stages: [StreamID: [SessionID]] = [:]
    /// Data tracks that go beyond stages.
    var audience = AudienceData()
    /// Nil for a worker that is alone.
    let links: WorkerLinks?
    let remoteOwners: [RemoteTrackOwner]
    /// Nil for a worker that has its port alone.
    private let neighbours: (any PortNeighbours)?
    let wakeList = WakeList()
    let fanOut = FanOut()
    let recorder = JoinRecorder()
    private var deadlines = DeadlineQueue<SessionID>()
    /// Sessions looked at in one turn; with a step of a replay each, some two milliseconds.
    private static let wakesPerTurn = 32
    /// So long an address stays with the session that was last heard there: two checks of most clients.
    package static let ownership = Duration.seconds(5)
    private var hasMoreDue = false
    var joining = HandshakeQueue()
    /// What is recorded of one session, while an operator wants that.
    var capture: RunningCapture?
    private var reportSenders = ReportSenders()
    /// What control has to know; drained by whoever owns the worker.
    private var events: [WorkerEvent] = []
    var nextTrack: UInt64 = 1
    var counters = WorkerCounters()

    /// - Parameters:
    ///   - index: which of the node's workers this is.
    ///   - exchange: connects it to the others; nil if there are none.
    ///   - neighbours: those that have the same UDP port; nil if it has one of its own.
    package init(
        environment: WorkerEnvironment, index: Int = 0, exchange: RelayExchange? = nil,
        neighbours: (any PortNeighbours)? = nil
    ) {
        self.environment = environment
        self.neighbours = neighbours
        let links = exchange.map { WorkerLinks(index: index, exchange: $0) }
        self.links = links
        remoteOwners =
            links.map { links in
                (0..<(exchange?.workerCount ?? 0)).map { RemoteTrackOwner(worker: $0, links: links) }
            } ?? []
    }

    /// Slots and the tracks they show hold each other, and so do sessions and the list of those to look at: whoever is
    /// still here when the worker goes must let go.
    deinit {
        for session in sessions.values { session.detachAll() }
        _ = wakeList.takeAll()
    }

    // MARK: Datagrams

    /// Takes one datagram in, decrypting it where it lies.
    /// - Parameter isHandedOver: whether it came to a worker that shares the port, and looked for its session there.
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
            // Nothing of a session overtakes: it is connected once all that it waited for is done.
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

    /// The session that a check names, or that waits for an answer.
    private func addressee(of datagram: Span<UInt8>, from source: TransportAddress) -> Session? {
        // An answer to a request of ours names nobody.
        let isAnswer = (try? datagram.uint16(at: 0)) == STUNKind.bindingSuccess.rawValue
        return isAnswer
            ? byAddress[source] : STUNMessage.localUfrag(ofRequest: datagram).flatMap { byUfrag[$0] }
    }

    /// - Returns: whether it may be that of another worker's session, and is on its way there.
    private func pass(
        _ datagram: Span<UInt8>, _ kind: DatagramKind, from source: TransportAddress, at now: MonotonicTime
    ) -> Bool {
        guard let neighbours, source.transport == .udp else { return false }
        let isOccupied = byAddress[source].map { isHeard($0, from: source, at: now) } ?? false
        return neighbours.pass(datagram, kind, from: source, isOccupied: isOccupied, at: now)
    }

    /// Takes in what belongs to no session by its address.
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

    /// Takes in what may be a report or media of a client that a NAT gave another address, and that has not checked it.
    /// - Returns: whether it was; its address is asked for a proof then.
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

    /// Draws the consequences of what a session sent.
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

    /// Takes in what other workers sent, and looks at the sessions that the batch made due.
    ///
    /// Called after each batch of datagrams or commands, and when another worker calls.
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

    /// When `advance` wants to be called.
    package var deadline: MonotonicTime? {
        [fanOut.deadline, renditions.deadline, deadlines.next, capture?.deadline].compactMap(\.self).min()
    }

    /// Does what is due: retransmissions, reports, feedback, time-outs.
    package func advance(to now: MonotonicTime, into sink: inout some DatagramSink & ~Copyable) {
        fanOut.sendDue(at: now, into: &sink)
        renditions.advance(to: now)
        if let due = capture?.deadline, due <= now { endCapture() }
        // Those who are left come with the next turn: replays to many must not hold up what is live.
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

    /// Draws the consequences of what happened to a session's connection.
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
        // What is overdue is served soon, not in a loop without end.
        deadlines.schedule(session.id, at: max(due, now.advanced(byNanoseconds: 1_000_000)))
    }

    // MARK: Who is who

    /// The latest check counts: an address that a NAT gave to somebody else is theirs now.
    ///
    /// But nobody takes it from a session that was heard there just now: a NAT does not give an address away that
    /// fast, while a check of one's own session in somebody else's name would take their packets.
    private func admit(_ address: TransportAddress, to session: Session, at now: MonotonicTime) {
        if let owner = byAddress[address], owner !== session, isHeard(owner, from: address, at: now) {
            return
        }
        if let neighbours, address.transport == .udp, !neighbours.claim(address, at: now) { return }
        byAddress[address] = session
    }

    private func isHeard(_ session: Session, from address: TransportAddress, at now: MonotonicTime) -> Bool {
        session.connection.lastHeard(from: address).map { now < $0 + Self.ownership } ?? false
    }

    func session(at address: TransportAddress) -> Session? { byAddress[address] }

    /// Whether somebody's datagrams come from this address.
    package func knows(_ address: TransportAddress) -> Bool { byAddress[address] != nil }

    /// Acts on the end of a TCP connection: its address leads nowhere any more.
    package func lose(
        _ address: TransportAddress, at now: MonotonicTime, into sink: inout some DatagramSink & ~Copyable
    ) {
        guard let session = byAddress.removeValue(forKey: address) else { return }
        session.connection.lose(address, at: now, into: &sink)
        settle(session, at: now, into: &sink)
    }

    /// Takes in how far the TCP connection has come that this address stands for.
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

    /// What happened since the last call.
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

    /// What was counted, living sessions included.
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
