import Base
import Crypto
import Peer
import TestSupport
import Testing
import Wire

@testable import Forwarding

/// Takes datagrams, and keeps none.
struct DiscardingSink: DatagramSink {
    mutating func append<Failure: Error>(
        to destination: TransportAddress, capacity: Int,
        _ write: (inout MutableSpan<UInt8>) throws(Failure) -> Int
    ) throws(Failure) {}
}

/// Represents a publisher, and remembers what it was asked for.
final class RecordingOwner: TrackOwner {
    struct Demand: Equatable {
        let layer: Int
        let reason: KeyFrameRequester.Reason
    }

    private(set) var demands: [Demand] = []
    private(set) var renditionsNeeded = 0

    func keyFrameDemanded(
        of layer: Int, of track: TrackID, for reason: KeyFrameRequester.Reason, at now: MonotonicTime
    ) {
        demands.append(Demand(layer: layer, reason: reason))
    }

    func renditionNeeded(of track: TrackID, at now: MonotonicTime) { renditionsNeeded += 1 }

    func layersTaken(_ layers: LayerSet, of track: TrackID, at now: MonotonicTime) {}

    func restsChanged(of track: Track, at now: MonotonicTime) {}
}

/// One encoding of a track, as its publisher sends it: VP8 or Opus, each picture in packets of one size.
final class Feed {
    let layer: TrackLayer
    let ssrc: UInt32
    /// The number of the next packet.
    var number: UInt16
    var timestamp: UInt32 = 90_000

    init(_ layer: TrackLayer, ssrc: UInt32, from number: UInt16 = 100) {
        self.layer = layer
        self.ssrc = ssrc
        self.number = number
    }

    /// The payload of a picture's first packet.
    static func picture(isKey: Bool, width: Int = 640, height: Int = 360, size: Int = 40) -> [UInt8] {
        var payload: [UInt8] = isKey ? [0x10, 0x10, 0, 0, 0x9D, 1, 0x2A] : [0x10, 0x11, 0, 0]
        if isKey { for side in [width, height] { payload += [UInt8(side & 0xFF), UInt8(side >> 8)] } }
        return payload + [UInt8](repeating: 1, count: max(size - payload.count, 1))
    }

    /// The payload of a later packet of a picture.
    static func rest(size: Int = 40) -> [UInt8] { [0x00] + [UInt8](repeating: 2, count: size - 1) }

    /// A packet with the next number.
    func packet(_ payload: [UInt8], marker: Bool = true) -> [UInt8] {
        defer { number &+= 1 }
        var bytes: [UInt8] = [0x80, (marker ? 0x80 : 0) | (layer.isVideo ? 96 : 111)]
        bytes.append(bigEndian: number)
        bytes.append(bigEndian: timestamp)
        bytes.append(bigEndian: ssrc)
        return bytes + payload
    }
}

/// Sessions and tracks without a network: what slots are given, and how many packets leave for each.
///
/// No session has an address, so that each packet that would be sent counts as `noAddress`.
final class SlotRig {
    var now = MonotonicTime(nanoseconds: 1_000_000_000)
    var random: SeededGenerator
    var sink = DiscardingSink()
    let owner = RecordingOwner()
    let fanOut = FanOut()
    let renditions = RenditionBoard()
    private let wakeList = WakeList()
    private let recorder = JoinRecorder()
    private let environment: PeerConnection.Environment
    /// Slots do not own their sessions.
    private(set) var sessions: [Session] = []
    private var trackCount: UInt64 = 0

    init(seed: UInt64 = 1) throws {
        random = SeededGenerator(seed: seed)
        environment = PeerConnection.Environment(dtls: try DTLSContext(identity: try DTLSIdentity()))
    }

    /// Breaks reference cycles, as a worker does.
    deinit {
        for session in sessions { session.detachAll() }
        _ = wakeList.takeAll()
    }

    // MARK: What there is

    /// A session that is connected, with slots of sound first.
    /// - Parameter reports: whether its client tells of packets by their sequence numbers, and takes RTX; if not, it
    ///   does neither.
    func session(
        audio: Int = 0, video: Int = 1, videoCodec: MediaCodec = .vp8, reports: Bool = false
    ) -> Session {
        var plan = SessionPlan(ingesting: [])
        let kinds = Array(repeating: MediaKind.audio, count: audio) + Array(repeating: .video, count: video)
        plan.slots = kinds.enumerated().map { index, kind in
            SlotPlan(
                mid: "\(index)", kind: kind, ssrc: UInt32(sessions.count * 64 + index + 1),
                repairSSRC: reports ? UInt32(900_000 + index) : nil, cname: "c",
                formats: [
                    kind == .audio
                        ? MediaFormat(codec: .opus, payloadType: 111)
                        : MediaFormat(codec: videoCodec, payloadType: 96)
                ],
                extensions: ExtensionIDs(), allowsMixedExtensions: true, reportsBySequenceNumber: reports)
        }
        let credentials = ICECredentials(ufrag: "rig", password: Secret("secret"))
        let opening = SessionOpening(
            id: SessionID(using: &random), plan: plan, localCredentials: credentials,
            order: UInt64(sessions.count + 1))
        let connection = PeerConnection(
            plan: plan, localCredentials: credentials, environment: environment, at: now)
        let session = Session(
            opening, connection: connection, firstTrack: 1_000, wakeList: wakeList, fanOut: fanOut,
            recorder: recorder, renditions: renditions, links: nil, using: &random, at: now)
        sessions.append(session)
        return session
    }

    /// The name of a session that is not here.
    var sessionID: SessionID { SessionID(using: &random) }

    /// The only video slot of a new session.
    func slot() throws -> Slot {
        let owner = session()
        return try #require(owner.slots.first)
    }

    func track(_ kind: MediaKind = .video, rids: [String] = []) -> Track {
        trackCount += 1
        let formats = [
            kind == .audio
                ? MediaFormat(codec: .opus, payloadType: 111) : MediaFormat(codec: .vp8, payloadType: 96)
        ]
        return Track(
            key: TrackKey(worker: 0, track: TrackID(number: trackCount)),
            plan: SourcePlan(
                mid: "\(trackCount)", kind: kind, formats: formats, rids: rids, supportsNACK: true,
                supportsPLI: true),
            reader: PacketReader(formats: formats, ids: ExtensionIDs()), owner: owner, fanOut: fanOut)
    }

    /// The feed of one of a track's layers.
    func feed(_ track: Track, rid: String? = nil, from number: UInt16 = 100) throws -> Feed {
        let layer = try #require(track.layer(rid: rid, at: now))
        let ssrc = UInt32(truncatingIfNeeded: track.key.track.number) * 16 + UInt32(layer.index)
        layer.restart(ssrc: ssrc, at: now)
        return Feed(layer, ssrc: ssrc, from: number)
    }

    // MARK: What happens

    /// Receives a packet as a session does: keeps it, and queues it for slots and taps.
    @discardableResult
    func receive(_ bytes: [UInt8], on feed: Feed) throws -> MediaPacket? {
        let header = try RTPHeader(parsing: bytes.span)
        let received = try feed.layer.receive(
            bytes.span, header, origin: .original, clock: nil, at: now)
        guard let packet = received else { return nil }
        feed.layer.forward(packet, at: now, into: &sink)
        feed.layer.track?.tap(packet, bytes.span, of: feed.layer, at: now)
        feed.layer.track?.retargetIfDue(at: now)
        return packet
    }

    /// Receives a picture in one packet, or 20 ms of sound, and ends the batch unless told otherwise.
    func send(
        _ feed: Feed, isKey: Bool = false, width: Int = 640, height: Int = 360, size: Int = 40,
        endsBatch: Bool = true
    ) throws {
        let payload =
            feed.layer.isVideo
            ? Feed.picture(isKey: isKey, width: width, height: height, size: size) : [0x78, 1, 2, 3]
        try receive(feed.packet(payload), on: feed)
        feed.timestamp &+= feed.layer.isVideo ? 3_000 : 960
        if endsBatch { endBatch() }
    }

    /// Sends what is due, as at the end of a batch of datagrams.
    func endBatch() { fanOut.sendDue(at: now, into: &sink) }

    func pass(_ duration: Duration) { now = now + duration }

    /// Sends a slot the rest of what it is shown of the past.
    func finishReplay(to slot: Slot) {
        while slot.isReplaying {
            pass(.milliseconds(5))
            slot.advanceReplay(at: now, into: &sink)
        }
    }

    /// Number of packets that would have left for a slot so far.
    func sent(to slot: Slot) -> UInt64 { slot.counters.drops.noAddress }
}
