import Base
import Crypto
import Peer
import TestSupport
import Testing
import Wire

@testable import Forwarding

/// The workers of a node without a network: every session is connected as soon as it is opened.
///
/// No session has an address, so that each packet that would be sent counts as `noAddress`.
final class WorkerRig {
    /// One m-line of a publisher.
    private struct Line: Hashable {
        let session: SessionID
        let source: Int
    }

    var now = MonotonicTime(nanoseconds: 1_000_000_000)
    let workers: [Worker]
    private var sink = DiscardingSink()
    private var random: SeededGenerator
    private var lastOrder: UInt64 = 100
    /// Number of packets sent on each m-line.
    private var counts: [Line: UInt16] = [:]

    init(workers count: Int = 1, seed: UInt64 = 31) throws {
        random = SeededGenerator(seed: seed)
        let dtls = try DTLSContext(identity: try DTLSIdentity())
        let exchange = count > 1 ? RelayExchange(workers: count) : nil
        workers = (0..<count).map { index in
            Worker(
                environment: WorkerEnvironment(
                    clock: WallClock(unixNanoseconds: 0, at: .zero),
                    random: SeededGenerator(seed: seed &+ UInt64(index)), connection: .init(dtls: dtls)),
                index: index, exchange: exchange)
        }
    }

    // MARK: What there is

    /// The name of a session that is not open.
    func newID() -> SessionID { SessionID(using: &random) }

    private static func formats(_ kind: MediaKind) -> [MediaFormat] {
        [
            kind == .audio
                ? MediaFormat(codec: .opus, payloadType: 111) : MediaFormat(codec: .vp8, payloadType: 96)
        ]
    }

    /// A publisher of sound, "a", and pictures, "v".
    /// - Parameters:
    ///   - order: nil for later than all before.
    ///   - stage: the stage that it is on; it takes a participant too.
    @discardableResult
    func publish(
        _ stream: StreamID?, order: UInt64? = nil, stage: StreamID? = nil, participant: ParticipantID? = nil,
        id: SessionID? = nil, on worker: Int = 0
    ) -> SessionID {
        let lines: [(mid: String, kind: MediaKind)] = [("a", .audio), ("v", .video)]
        let plan = SessionPlan(
            ingesting: lines.map { SourcePlan(mid: $0.mid, kind: $0.kind, formats: Self.formats($0.kind)) })
        return open(
            plan, publishes: stream, stage: stage, participant: participant, order: order, id: id, on: worker)
    }

    /// A player of a stream, or without one a session of the feed.
    ///
    /// It has so many pairs of slots, "a0", "v0", "a1"….
    func view(_ stream: StreamID?, pairs: Int = 1, on worker: Int = 0) -> SessionID {
        var plan = SessionPlan(ingesting: [])
        for pair in 0..<pairs {
            for kind in [MediaKind.audio, .video] {
                plan.slots.append(
                    SlotPlan(
                        mid: "\(kind == .audio ? "a" : "v")\(pair)", kind: kind,
                        ssrc: UInt32(plan.slots.count + 1), repairSSRC: nil, cname: "c",
                        formats: Self.formats(kind), extensions: ExtensionIDs(), allowsMixedExtensions: true))
            }
        }
        return open(plan, follows: stream, on: worker)
    }

    private func open(
        _ plan: SessionPlan, publishes: StreamID? = nil, follows: StreamID? = nil, stage: StreamID? = nil,
        participant: ParticipantID? = nil, order: UInt64? = nil, id: SessionID? = nil, on worker: Int
    ) -> SessionID {
        lastOrder += 1
        let opening = SessionOpening(
            id: id ?? newID(), plan: plan, localCredentials: ICECredentials(using: &random),
            publishes: publishes, follows: follows, isFeed: follows == nil && !plan.slots.isEmpty,
            stage: stage, participant: participant, order: order ?? lastOrder)
        perform(.open(opening), on: worker)
        return opening.id
    }

    func session(_ id: SessionID, on worker: Int = 0) throws -> Session {
        try #require(workers[worker].sessions[id])
    }

    func slot(_ mid: String, of id: SessionID, on worker: Int = 0) throws -> Slot {
        try #require(workers[worker].sessions[id]?.slots.first { $0.plan.mid == mid })
    }

    /// A publisher's track, as control knows it.
    func track(_ mid: String, of id: SessionID, on worker: Int = 0) throws -> PublishedTrack {
        try #require(workers[worker].sessions[id]?.published.first { $0.plan.mid == mid })
    }

    /// The tracks that a session's slots carry, in the order of its offer.
    func carried(by id: SessionID, on worker: Int = 0) throws -> [TrackKey?] {
        try session(id, on: worker).slots.map { $0.track?.key }
    }

    // MARK: What happens

    func perform(_ command: WorkerCommand, on worker: Int = 0) {
        workers[worker].perform(command, at: now, into: &sink)
    }

    /// Sends a picture in one packet, or 20 ms of sound.
    func send(
        _ mid: String, from id: SessionID, isKey: Bool = false, ssrc: UInt32? = nil, on worker: Int = 0
    ) {
        let source = mid == "a" ? 0 : 1
        let line = Line(session: id, source: source)
        let number = counts[line, default: 0]
        counts[line] = number &+ 1
        var bytes: [UInt8] = [0x80, 0x80 | (mid == "a" ? 111 : 96)]
        bytes.append(bigEndian: 500 &+ number)
        bytes.append(bigEndian: UInt32(number) &* (mid == "a" ? 960 : 3_000))
        bytes.append(bigEndian: ssrc ?? UInt32(source) + 7)
        bytes += mid == "a" ? [0x78, 1, 2, 3] : Feed.picture(isKey: isKey)
        send(bytes, source: source, from: id, on: worker)
    }

    /// Sends whatever it is.
    func send(_ bytes: [UInt8], source: Int, from id: SessionID, on worker: Int = 0) {
        var packets = InjectedPackets()
        packets.append(bytes.span, source: source)
        perform(.ingest(id, packets), on: worker)
    }

    /// Ends the workers' batches, until each has what the others had for it.
    func endBatches() {
        for _ in 0..<3 {
            for worker in workers { worker.endOfBatch(at: now, into: &sink) }
        }
    }

    func pass(_ duration: Duration) { now = now + duration }

    /// Lets time pass in which workers are woken when they are due.
    func run(_ duration: Duration) {
        let end = now + duration
        for worker in workers {
            while let due = worker.deadline, due <= end {
                now = max(due, now)
                worker.advance(to: now, into: &sink)
            }
        }
        now = end
    }

    /// Sends a slot the rest of what it is shown of the past.
    func finishReplay(to slot: Slot) {
        while slot.isReplaying {
            pass(.milliseconds(5))
            slot.advanceReplay(at: now, into: &sink)
        }
    }

    func events(of worker: Int = 0) -> [WorkerEvent] { workers[worker].takeEvents() }

    /// Number of packets that would have left for a slot so far.
    func sent(to slot: Slot) -> UInt64 { slot.counters.drops.noAddress }
}
