import Base
import ClientPeer
import Peer
import TestSupport
import Testing
import Wire

@testable import Forwarding

/// What a viewer is sent while packets of its tracks wait for the end of a batch.
@Suite(.simulated) struct `Packets that wait for their batch` {
    private static let id = InjectionID(number: 8)

    /// A datagram as it left, of which the header is not encrypted.
    private struct Datagram: Equatable {
        let ssrc: UInt32
        let number: UInt16
        let type: UInt8
        let bytes: [UInt8]
    }

    private let simulation: Simulation
    private let viewer: SimulatedClient
    private let slot: Slot
    private let tracks: [PublishedTrack]
    private var numbers: [UInt16]
    private var timestamp: UInt32 = 90_000
    private var now: MonotonicTime

    /// Has a viewer that is connected, and tracks of one kind that it does not get yet.
    private init(seed: UInt64, _ kind: MediaKind, tracks count: Int = 1, hasRTX: Bool = true) throws {
        simulation = try Simulation(seed: seed, conditions: .init(delay: .milliseconds(5)))
        let (viewer, session) = try simulation.add(
            .viewer, hasRTX: hasRTX, hasRED: true, hasTransportFeedback: false)
        self.viewer = viewer
        #expect(simulation.run(for: .seconds(2)) { viewer.isConnected })
        let codec: MediaCodec = kind == .audio ? .opus : .vp8
        let plans = (0..<count).map { number in
            SourcePlan(
                mid: "\(number)", kind: kind, formats: [MediaFormat(codec: codec, payloadType: 96)])
        }
        simulation.perform(.openInjection(InjectionOpening(id: Self.id, sources: plans)))
        var tracks: [PublishedTrack] = []
        for case .injected(Self.id, let opened) in simulation.events { tracks = opened }
        self.tracks = tracks
        let slots = simulation.workers[0].sessions[session]?.slots ?? []
        slot = try #require(slots.first { $0.plan.kind == kind })
        // Before the end of 16 bits.
        numbers = Array(repeating: 65_520, count: count)
        now = simulation.now
    }

    private func show(_ index: Int) {
        simulation.perform(.setProgramme(Simulation.stream, [tracks[index]]))
    }

    /// The next packet of a track.
    private mutating func packet(
        _ payload: [UInt8], of track: Int = 0, marker: Bool = true
    ) throws -> InjectedPackets {
        defer {
            numbers[track] &+= 1
            if marker { timestamp &+= 960 }
        }
        return try packet(payload, numbers[track], timestamp, of: track, marker: marker)
    }

    private func packet(
        _ payload: [UInt8], _ number: UInt16, _ timestamp: UInt32, of track: Int = 0, marker: Bool = true
    ) throws -> InjectedPackets {
        var bytes = [UInt8](repeating: 0, count: 12) + payload
        var span = bytes.mutableSpan
        _ = try RTPHeaderWriter(
            marker: marker, payloadType: 96, sequenceNumber: number, timestamp: timestamp,
            ssrc: 5 + UInt32(track), into: &span)
        var packets = InjectedPackets()
        packets.append(bytes.span, source: track, captured: now)
        return packets
    }

    /// The beginning of a picture of VP8.
    private static func picture(isKey: Bool, size: Int = 60) -> [UInt8] {
        let head: [UInt8] =
            isKey ? [0x10, 0x10, 0, 0, 0x9D, 1, 0x2A, 0x80, 2, 0x68, 1] : [0x10, 0x11, 0, 0]
        return head + [UInt8](repeating: 3, count: size - head.count)
    }

    /// 20 ms of sound.
    private static func sound(_ number: UInt8) -> [UInt8] { [0x78, number, number, number] }

    /// Lets one packet pass as packets usually do, and 20 ms behind it.
    private mutating func send(_ payload: [UInt8], of track: Int = 0) throws {
        simulation.perform(.inject(Self.id, try packet(payload, of: track)))
        simulation.run(for: .milliseconds(20))
        now = simulation.now
    }

    /// One batch: what is done in it, and what leaves for the viewer by its end.
    private func batch(
        _ body: (Worker, inout CollectingSink) throws -> Void
    ) rethrows -> [Datagram] {
        let worker = simulation.workers[0]
        var sink = CollectingSink(source: viewer.outerAddress)
        try body(worker, &sink)
        worker.endOfBatch(at: now, into: &sink)
        return sink.takeAll().filter { DatagramKind($0.bytes.span) == .rtp }.map { datagram in
            let bytes = datagram.bytes
            return Datagram(
                ssrc: bytes[8..<12].reduce(0) { $0 << 8 | UInt32($1) },
                number: UInt16(bytes[2]) << 8 | UInt16(bytes[3]), type: bytes[1] & 0x7F, bytes: bytes)
        }
    }

    private func inject(_ packets: InjectedPackets, _ worker: Worker, _ sink: inout CollectingSink) {
        worker.perform(.inject(Self.id, packets), at: now, into: &sink)
    }

    /// The viewer asks again for a packet of the slot.
    private func ask(for number: UInt16, _ worker: Worker, _ sink: inout CollectingSink) {
        var own = CollectingSink(source: viewer.outerAddress)
        viewer.ask(for: [number], of: slot.plan.kind, into: &own)
        for datagram in own.takeAll() {
            var bytes = datagram.bytes
            var span = bytes.mutableSpan
            worker.receive(&span, from: datagram.source, at: now, into: &sink)
        }
    }

    /// Shows the first track, of which the packet before the latest one is still missing.
    /// - Returns: the missing packet, and its number as the viewer has it.
    private mutating func showWithGap(_ payloads: [[UInt8]]) throws -> (missing: InjectedPackets, UInt16) {
        show(0)
        for payload in payloads.dropLast(2) { try send(payload) }
        let missing = try packet(payloads[payloads.count - 2])
        try send(payloads[payloads.count - 1])
        return (missing, UInt16(truncatingIfNeeded: slot.nextSequence - 2))
    }

    private var refusals: MediaCounters.Refusals { slot.counters.refusals }

    // MARK: Retransmissions

    /// The packet came late, and the viewer asks for it just before it is sent.
    @Test(arguments: [true, false])
    static func `a waiting packet is not retransmitted before it is sent`(hasRTX: Bool) throws {
        var scene = try Self(seed: 81, .video, hasRTX: hasRTX)
        let pictures = (0..<6).map { Self.picture(isKey: $0 == 0) }
        let (missing, number) = try scene.showWithGap(pictures)
        var left = scene.batch { worker, sink in
            scene.inject(missing, worker, &sink)
            scene.ask(for: number, worker, &sink)
            scene.ask(for: number, worker, &sink)
        }
        let ssrc = scene.slot.plan.ssrc
        #expect(left.map(\.number) == [number] && left.map(\.ssrc) == [ssrc])
        #expect(scene.refusals.tooSoon == 2 && scene.slot.counters.packetsResent == 0)
        // What was sent is sent again like any other packet.
        let first = left
        left = scene.batch { worker, sink in scene.ask(for: number, worker, &sink) }
        let repair = hasRTX ? try #require(scene.slot.plan.repairSSRC) : ssrc
        #expect(left.map(\.ssrc) == [repair])
        if !hasRTX { #expect(left == first, "byte for byte, because it has the same index") }
        #expect(scene.slot.counters.packetsResent == 1)
    }

    /// The one that is sent carries those before it; the one that is sent again would not, under the same index.
    @Test static func `a packet of sound is the same each time it is sent`() throws {
        var scene = try Self(seed: 82, .audio)
        let (missing, number) = try scene.showWithGap((0..<12).map { sound($0) })
        scene.slot.redundancy?.note(lost: 50, of: 200, at: scene.now)
        try #require(scene.slot.redundancy?.depth == 2)
        var left = scene.batch { worker, sink in
            scene.inject(missing, worker, &sink)
            scene.ask(for: number, worker, &sink)
        }
        #expect(left.map(\.number) == [number] && left.map(\.type) == [63])
        let first = left
        scene.now = scene.now + .milliseconds(30)
        left = scene.batch { worker, sink in scene.ask(for: number, worker, &sink) }
        #expect(left == first)
        #expect(scene.slot.counters.packetsResent == 1 && scene.refusals.tooSoon == 1)
    }

    /// The slot has left the track for another one, and will not be sent what comes late.
    @Test static func `packets of a track that the viewer left are not waited for`() throws {
        var scene = try Self(seed: 83, .video, tracks: 2)
        let (missing, number) = try scene.showWithGap((0..<6).map { Self.picture(isKey: $0 == 0) })
        scene.show(1)
        try scene.send(Self.picture(isKey: true), of: 1)
        let left = scene.batch { worker, sink in
            scene.inject(missing, worker, &sink)
            scene.ask(for: number, worker, &sink)
        }
        // It is from before the key frame, and so nobody needs it; nothing says that it was about to be sent.
        #expect(left.isEmpty && scene.refusals.tooSoon == 0 && scene.refusals.beforeKeyFrame == 1)
    }

    // MARK: Order

    @Test static func `waiting packets leave before those of the track that the viewer changes to`() throws {
        var scene = try Self(seed: 84, .video, tracks: 2)
        scene.show(0)
        for number in 0..<5 { try scene.send(Self.picture(isKey: number == 0)) }
        scene.show(1)
        let next = UInt16(truncatingIfNeeded: scene.slot.nextSequence)
        var packets: [InjectedPackets] = []
        for track in [0, 0, 0, 1, 0, 1] {
            packets.append(
                try scene.packet(Self.picture(isKey: track == 1 && packets.count == 3), of: track))
        }
        let left = scene.batch { worker, sink in
            for each in packets { scene.inject(each, worker, &sink) }
        }
        // Three of the first track, and two of the second; of the first one nothing is sent behind those.
        #expect(left.map(\.number) == (0..<5).map { next &+ $0 })
        #expect(left.allSatisfy { $0.ssrc == scene.slot.plan.ssrc })
    }

    @Test static func `a full queue is sent in parts, in order`() throws {
        var scene = try Self(seed: 85, .video)
        scene.show(0)
        try scene.send(Self.picture(isKey: true))
        let next = UInt16(truncatingIfNeeded: scene.slot.nextSequence)
        var packets: [InjectedPackets] = []
        for number in 0..<90 {
            packets.append(
                try scene.packet(Self.picture(isKey: false, size: 1_000), marker: number == 89))
        }
        let left = scene.batch { worker, sink in
            for each in packets { scene.inject(each, worker, &sink) }
        }
        #expect(left.map(\.number) == (0..<90).map { next &+ $0 })
    }

    /// The history has them already when a step of the past reaches the live edge.
    @Test static func `a waiting packet that a replay reaches is sent once`() throws {
        var scene = try Self(seed: 86, .video)
        // More than the first burst.
        for number in 0..<100 {
            scene.simulation.perform(
                .inject(Self.id, try scene.packet(Self.picture(isKey: number == 0, size: 1_000))))
        }
        let next = UInt16(truncatingIfNeeded: scene.slot.nextSequence)
        scene.show(0)
        try #require(scene.slot.isReplaying)
        let sent = scene.slot.nextSequence - Int64(next)
        #expect((40..<60).contains(sent), "\(sent) packets of the first burst")
        let waiting = try (0..<7).map { _ in try scene.packet(Self.picture(isKey: false)) }
        let slot = scene.slot
        var time = scene.now
        let left = scene.batch { worker, sink in
            for each in waiting { scene.inject(each, worker, &sink) }
            while slot.isReplaying {
                time = time + .milliseconds(5)
                slot.advanceReplay(at: time, into: &sink)
            }
        }
        #expect(left.map(\.number) == (sent..<107).map { next &+ UInt16($0) })
    }
}
