import Base
import ClientPeer
import Crypto
import Net
import Peer
import TURN
import Wire

/// What a generator thread shares with each of its clients.
struct ClientSurroundings {
    /// Holds the certificate, which is the same for all clients of a run.
    let dtls: DTLSContext
    let sink: DirectSink
    /// The tally that the client counts into.
    let box: TallyBox
    let clock: WallClock
}

/// A WebRTC client of a run: its connection, its milestones and its RTCP reports.
///
/// Subclasses send or receive the media. An instance belongs to one generator thread and is used only there.
class Client {
    final let id: Int
    final let connection: ClientConnection
    final let box: TallyBox
    final let packer: ControlPacker
    /// The sender of its RTCP reports and feedback.
    final let ssrc: UInt32
    final var sink: ClientSink
    final var random: SplitMix64
    final var reports: ReportScheduler
    private static let authenticator = RelayAuthenticator()
    /// The address that datagrams from a relay are attributed to: the server's first candidate.
    private final let server: TransportAddress
    /// When the latest media packet arrived; nil before the first one, and always for a publisher.
    final private(set) var lastPacket: MonotonicTime?
    /// When the current datagram reached the socket, however late this thread read it.
    final private(set) var arrival = MonotonicTime.zero
    private final var milestones: [Notice] = []
    /// The relay's failure is counted once only.
    private final var hasLostRelay = false
    /// Emulates a slow network for incoming datagrams; nil for clients that are not behind such a link.
    final var link: ImpairedLink?

    /// - Parameters:
    ///   - role: the first part of the RTCP canonical name.
    ///   - ssrc: nil for a random one.
    ///   - seeded: continues the sequence of random numbers that the subclass began.
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

    /// Processes an encrypted RTP packet.
    func receiveMedia(_ datagram: inout MutableSpan<UInt8>, at now: MonotonicTime) {}
    /// Processes one packet of a decrypted RTCP compound.
    func receive(_ packet: RTCPPacket, at now: MonotonicTime) {}
    func receive(_ event: DataChannelEvent, at now: MonotonicTime) {}
    /// Called once, when the DTLS handshake is complete.
    func connected(at now: MonotonicTime) {}
    /// The deadline of `work`, apart from those of the connection and the reports.
    var nextWork: MonotonicTime { .distantFuture }
    /// Does what is due; called only while connected, possibly before `nextWork`.
    func work(at now: MonotonicTime) {}
    /// The contents of the next RTCP report: on the streams it sends, and on those it receives.
    func report(at now: MonotonicTime) -> (sent: [SenderReport], received: [ReportBlock]) { ([], []) }
    /// Called when the link releases a datagram: `late` nanoseconds after it was due.
    func delivered(late: Int64) {}
    /// Whether incoming RTP or RTCP may move the deadline forward.
    ///
    /// False for most viewers: their deadline then need not be computed again for every packet.
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

    /// Records that media arrived; the first call is the `firstPacket` milestone.
    final func noteMedia(at now: MonotonicTime) {
        if lastPacket == nil { note(.firstPacket, at: now) }
        lastPacket = now
    }

    // MARK: Datagrams

    /// Processes a datagram, or queues it in the emulated link.
    /// - Parameters:
    ///   - arrival: when it reached the socket; not later than `now`.
    /// - Returns: whether the deadline may have changed.
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

    /// Processes a datagram that has passed the link; unwraps it first if it came through a relay.
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

    /// Sends the relay client's pending messages, and fails the client once if its relay is lost.
    private final func sayToRelay(at now: MonotonicTime) {
        sink.sayToRelay()
        guard case .failed = sink.relay?.state, !hasLostRelay else { return }
        hasLostRelay = true
        box.tally.failures &+= 1
        note(.failed, at: now)
    }

    /// Dispatches a datagram as the server sent it by its first byte.
    /// - Returns: whether the deadline may have changed.
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

    /// Decrypts and parses an RTCP compound; counts one that is unreadable and returns nothing for it.
    private final func control(_ datagram: inout MutableSpan<UInt8>) -> [RTCPPacket] {
        guard let length = try? connection.unprotectControl(&datagram),
            let packets = try? RTCPPacket.parseCompound(datagram.span.extracting(first: length))
        else {
            box.tally.unreadable &+= 1
            return []
        }
        return packets
    }

    /// Decrypts an RTP packet in place.
    /// - Returns: nil if it does not decrypt or is not RTP, which is counted as unreadable.
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

    /// When `advance` must be called next; never for a closed connection.
    final var deadline: MonotonicTime {
        guard !connection.isClosed else { return .distantFuture }
        let earliest = min(
            connection.deadline ?? .distantFuture, link?.next ?? .distantFuture,
            sink.relay?.deadline ?? .distantFuture)
        guard connection.isConnected else { return earliest }
        return min(earliest, reports.deadline, nextWork)
    }

    /// Delivers what the link has released, then runs every timer that has expired.
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

    /// Encrypts and sends RTCP compounds.
    final func send(_ control: [[UInt8]]) {
        for bytes in control { connection.sendControl(bytes, into: &sink) }
    }

    /// Sends a PLI.
    final func requestKeyFrame(of media: UInt32) {
        box.tally.keyFrameRequestsSent &+= 1
        send(packer.feedback([.pictureLossIndication(.init(senderSSRC: ssrc, mediaSSRC: media))]))
    }

    /// Closes the connection and releases the allocation at the relay.
    ///
    /// In this order, because the closing messages themselves go through the relay.
    final func leave() {
        connection.close(into: &sink)
        sink.relay?.giveBack(by: Self.authenticator, using: &random)
        sink.sayToRelay()
    }
}
