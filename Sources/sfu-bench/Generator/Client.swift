import Base
import ClientPeer
import Crypto
import Net
import Peer
import TURN
import Wire

/// What a generator thread gives to each of its clients.
struct ClientSurroundings {
    let dtls: DTLSContext
    let sink: DirectSink
    let box: TallyBox
    let clock: WallClock
}

/// One client of a run: its connection, its milestones, and the reports that every client sends.
///
/// Subclasses make the media or look at it.
class Client {
    final let id: Int
    final let connection: ClientConnection
    final let box: TallyBox
    final let packer: ControlPacker
    /// As which it reports.
    final let ssrc: UInt32
    final var sink: ClientSink
    final var random: SplitMix64
    final var reports: ReportScheduler
    private static let authenticator = RelayAuthenticator()
    /// From where media come through a relay.
    private final let server: TransportAddress
    /// When media last came; nil for who gets none.
    final private(set) var lastPacket: MonotonicTime?
    /// When the datagram that is being received reached the socket, however late this thread read it.
    final private(set) var arrival = MonotonicTime.zero
    private final var milestones: [Notice] = []
    private final var hasLostRelay = false
    /// Holds back what comes; nil for nearly all.
    final var link: ImpairedLink?

    /// - Parameter ssrc: nil for one of its own.
    init(
        _ setup: ClientSetup, as role: String, ssrc: UInt32? = nil, random seeded: SplitMix64,
        _ surroundings: ClientSurroundings, at now: MonotonicTime
    ) {
        var random = seeded
        id = setup.id
        box = surroundings.box
        let peer = setup.plan.candidates.first?.transportAddress
        if let relay = setup.relay, let peer {
            let client = TURNClientAgent(relay, peer: peer, at: now, by: Self.authenticator, using: &random)
            sink = ClientSink(surroundings.sink, relay: client)
        } else {
            sink = ClientSink(surroundings.sink, relay: nil)
        }
        server = peer ?? setup.socket.localAddress
        connection = ClientConnection(
            credentials: setup.credentials, plan: setup.plan, localAddress: setup.socket.localAddress,
            dtls: surroundings.dtls, at: now, using: &random)
        self.ssrc = ssrc ?? UInt32.random(in: 1...UInt32.max, using: &random)
        packer = ControlPacker(
            localSSRC: self.ssrc, canonicalName: "\(role)-\(setup.id)", reducedSize: true)
        reports = ReportScheduler(at: now, using: &random)
        self.random = random
    }

    // MARK: For subclasses

    func receiveMedia(_ datagram: inout MutableSpan<UInt8>, at now: MonotonicTime) {}
    func receive(_ packet: RTCPPacket, at now: MonotonicTime) {}
    func receive(_ event: DataChannelEvent, at now: MonotonicTime) {}
    /// The handshake is done.
    func connected(at now: MonotonicTime) {}
    /// When a connected client has something to do, but for its connection and its reports.
    var nextWork: MonotonicTime { .distantFuture }
    func work(at now: MonotonicTime) {}
    /// What it tells of the streams that it sends and receives.
    func report(at now: MonotonicTime) -> (sent: [SenderReport], received: [ReportBlock]) { ([], []) }
    /// A link let something through, and it was read so many nanoseconds later.
    func delivered(late: Int64) {}
    /// Whether media that came may bring something to do.
    var hurriesAfterMedia: Bool { false }

    // MARK: Milestones

    final var hasMilestones: Bool { !milestones.isEmpty }

    /// Milestones since the last call.
    final func takeMilestones() -> [Notice] {
        defer { milestones.removeAll(keepingCapacity: true) }
        return milestones
    }

    final func note(_ milestone: Milestone, at now: MonotonicTime) {
        milestones.append(Notice(id: id, milestone: milestone, time: now))
    }

    final func noteMedia(at now: MonotonicTime) {
        if lastPacket == nil { note(.firstPacket, at: now) }
        lastPacket = now
    }

    // MARK: Datagrams

    /// - Returns: whether the deadline may have moved.
    final func receive(
        _ datagram: inout MutableSpan<UInt8>, from source: TransportAddress, arrival: MonotonicTime,
        at now: MonotonicTime
    ) -> Bool {
        guard link == nil else {
            link?.append((0..<datagram.count).map { datagram[$0] }, from: source, at: arrival)
            return true
        }
        return take(&datagram, from: source, arrival: arrival, at: now)
    }

    private final func take(
        _ datagram: inout MutableSpan<UInt8>, from source: TransportAddress, arrival: MonotonicTime,
        at now: MonotonicTime
    ) -> Bool {
        self.arrival = arrival
        guard sink.relay != nil else { return takePlain(&datagram, from: source, at: now) }
        let data = sink.relay?.receive(datagram.span, at: now, by: Self.authenticator, using: &random)
        guard let data else {
            sayToRelay(at: now)
            return true
        }
        var relayed = data.map { datagram[$0] }
        var span = relayed.mutableSpan
        return takePlain(&span, from: server, at: now)
    }

    private final func sayToRelay(at now: MonotonicTime) {
        sink.sayToRelay()
        guard case .failed = sink.relay?.state, !hasLostRelay else { return }
        hasLostRelay = true
        box.tally.failures &+= 1
        note(.failed, at: now)
    }

    private final func takePlain(
        _ datagram: inout MutableSpan<UInt8>, from source: TransportAddress, at now: MonotonicTime
    ) -> Bool {
        switch DatagramKind(datagram.span) {
        case .rtp:
            receiveMedia(&datagram, at: now)
            return hurriesAfterMedia
        case .rtcp:
            for packet in control(&datagram) { receive(packet, at: now) }
            return hurriesAfterMedia
        case .stun, .dtls:
            connection.receive(datagram.span, from: source, at: now, using: &random, into: &sink)
            takeConnectionEvents(at: now)
            return true
        case nil:
            box.tally.unreadable &+= 1
            return false
        }
    }

    private final func takeConnectionEvents(at now: MonotonicTime) {
        for event in connection.takeEvents() {
            switch event {
            case .iceConnected: note(.iceConnected, at: now)
            case .connected:
                note(.dtlsConnected, at: now)
                connected(at: now)
            case .closedByServer:
                box.tally.closedByServer &+= 1
                note(.closedByServer, at: now)
            case .failed:
                box.tally.failures &+= 1
                note(.failed, at: now)
            case .dataChannel(let event): receive(event, at: now)
            }
        }
    }

    private final func control(_ datagram: inout MutableSpan<UInt8>) -> [RTCPPacket] {
        guard let length = try? connection.unprotectControl(&datagram),
            let packets = try? RTCPPacket.parseCompound(datagram.span.extracting(first: length))
        else {
            box.tally.unreadable &+= 1
            return []
        }
        return packets
    }

    /// Decrypts a packet of media in place; counts what is none.
    final func unprotect(_ datagram: inout MutableSpan<UInt8>) -> (header: RTPHeader, length: Int)? {
        guard let length = try? connection.unprotect(&datagram),
            let header = try? RTPHeader(parsing: datagram.span.extracting(first: length))
        else {
            box.tally.unreadable &+= 1
            return nil
        }
        return (header, length)
    }

    // MARK: Time

    /// When `advance` wants to be called.
    final var deadline: MonotonicTime {
        guard !connection.isClosed else { return .distantFuture }
        let earliest = min(
            connection.deadline ?? .distantFuture, link?.next ?? .distantFuture,
            sink.relay?.deadline ?? .distantFuture)
        guard connection.isConnected else { return earliest }
        return min(earliest, reports.deadline, nextWork)
    }

    final func advance(to now: MonotonicTime) {
        while let delivery = link?.take(at: now) {
            delivered(late: now.nanoseconds(since: delivery.time))
            var bytes = delivery.bytes
            var span = bytes.mutableSpan
            _ = take(&span, from: delivery.source, arrival: delivery.time, at: now)
        }
        if sink.relay != nil {
            sink.relay?.advance(to: now, by: Self.authenticator, using: &random)
            sayToRelay(at: now)
        }
        if let due = connection.deadline, now >= due {
            connection.advance(to: now, using: &random, into: &sink)
            takeConnectionEvents(at: now)
        }
        guard connection.isConnected else { return }
        work(at: now)
        guard reports.isDue(at: now, using: &random) else { return }
        let (sent, received) = report(at: now)
        send(packer.reports(senders: sent, receptions: received))
    }

    // MARK: Sending

    final func send(_ control: [[UInt8]]) {
        for bytes in control { connection.sendControl(bytes, into: &sink) }
    }

    final func requestKeyFrame(of media: UInt32) {
        box.tally.keyFrameRequestsSent &+= 1
        send(packer.feedback([.pictureLossIndication(.init(senderSSRC: ssrc, mediaSSRC: media))]))
    }

    final func leave() {
        connection.close(into: &sink)
        sink.relay?.giveBack(by: Self.authenticator, using: &random)
        sink.sayToRelay()
    }
}
