import Base
import Crypto
import Peer
import Synchronization
import TestSupport
import Testing
import Wire

@testable import Forwarding

/// Counts what a tap passes on, and how often it ends.
private final class TapCount: TapSink {
    private let state = Mutex((packets: 0, ends: 0))

    func take(_ packet: TappedPacket, _ bytes: Span<UInt8>) { state.withLock { $0.packets += 1 } }

    func finish() { state.withLock { $0.ends += 1 } }

    var packets: Int { state.withLock { $0.packets } }
    var ends: Int { state.withLock { $0.ends } }
}

/// Media that the server makes, on a worker of its own.
@Suite struct `An injection on a worker` {
    private static let id = InjectionID(number: 3)

    private let worker: Worker
    private var sink = DiscardingSink()
    private var now = MonotonicTime(nanoseconds: 1_000_000_000)
    private var number: UInt16 = 65_534

    init() throws {
        worker = Worker(
            environment: WorkerEnvironment(
                clock: WallClock(unixNanoseconds: 0, at: .zero), random: SeededGenerator(seed: 15),
                connection: .init(dtls: try DTLSContext(identity: try DTLSIdentity()))))
    }

    private static func plan(_ kind: MediaKind, rids: [String] = []) -> SourcePlan {
        let codec: MediaCodec = kind == .audio ? .opus : .vp8
        return SourcePlan(
            mid: "x", kind: kind, formats: [MediaFormat(codec: codec, payloadType: 96)], rids: rids)
    }

    private mutating func perform(_ command: WorkerCommand) {
        worker.perform(command, at: now, into: &sink)
    }

    /// - Returns: the tracks that the worker says it has.
    private mutating func open(_ sources: [SourcePlan], id: InjectionID = id) -> [PublishedTrack] {
        perform(.openInjection(InjectionOpening(id: id, sources: sources)))
        for case .injected(id, let tracks) in worker.takeEvents() { return tracks }
        return []
    }

    private mutating func inject(
        _ payload: [UInt8], source: Int = 0, layer: Int = 0, ssrc: UInt32 = 5, id: InjectionID = id
    ) {
        var bytes: [UInt8] = [0x80, 0x80 | 96]
        bytes.append(bigEndian: number)
        number &+= 1
        bytes.append(bigEndian: UInt32(9))
        bytes.append(bigEndian: ssrc)
        var packets = InjectedPackets()
        packets.append((bytes + payload).span, source: source, layer: layer)
        perform(.inject(id, packets))
    }

    private func demands() -> [WorkerEvent] {
        worker.takeEvents().filter { if case .keyFrameWanted = $0 { true } else { false } }
    }

    @Test mutating func `has tracks that can be tapped, and taps that end with it`() throws {
        let tracks = open([Self.plan(.video), Self.plan(.audio)])
        #expect(tracks.map(\.plan.kind) == [.video, .audio])
        #expect(Set(tracks.map(\.key.track)).count == 2)
        let counts = [TapCount(), TapCount()]
        for (index, track) in tracks.enumerated() {
            perform(
                .openTap(
                    TapOpening(
                        id: TapID(number: UInt64(index)), target: .track(track), mode: .whole,
                        sink: counts[index])))
        }
        inject(Feed.picture(isKey: true))
        inject([0x78, 1, 2], source: 1)
        inject(Feed.picture(isKey: false))
        #expect(counts.map(\.packets) == [2, 1] && counts.map(\.ends) == [0, 0])
        perform(.closeInjection(Self.id))
        #expect(counts.map(\.ends) == [1, 1], "nothing more comes")
        #expect(worker.taps.isEmpty && worker.published.isEmpty && worker.injections.isEmpty)
        // A late packet is dropped.
        inject(Feed.picture(isKey: true))
        perform(.closeTap(TapID(number: 0)))
        perform(.closeInjection(Self.id))
        #expect(counts.map(\.packets) == [2, 1] && counts.map(\.ends) == [1, 1])
        let late = TapCount()
        perform(
            .openTap(TapOpening(id: TapID(number: 9), target: .track(tracks[0]), mode: .whole, sink: late)))
        #expect(late.ends == 1)
    }

    @Test mutating func `is opened once, and is told from others`() {
        let first = open([Self.plan(.video)])
        let again = open([Self.plan(.audio), Self.plan(.audio)])
        #expect(again.isEmpty)
        let second = open([Self.plan(.audio)], id: InjectionID(number: 4))
        #expect(worker.injections.count == 2 && worker.published.count == 2)
        perform(.closeInjection(Self.id))
        #expect(worker.published[first[0].key.track] == nil)
        #expect(worker.published[second[0].key.track] != nil)
    }

    @Test mutating func `asks its maker for a key frame four times a second at most, and for each layer`() {
        let tracks = open([Self.plan(.video, rids: ["h", "l"])])
        let track = tracks.first.flatMap { worker.published[$0.key.track] }
        inject(Feed.picture(isKey: true), layer: 1)
        inject(Feed.picture(isKey: true), layer: 0, ssrc: 6)
        // The publisher's numbers of the layers are those of its RIDs, whichever came first.
        for _ in 0..<3 { track?.keyFrameDemanded(of: 0, for: .loss, at: now) }
        #expect(demands() == [.keyFrameWanted(Self.id, source: 0, layer: 1)])
        now = now + .milliseconds(249)
        track?.keyFrameDemanded(of: 0, for: .loss, at: now)
        track?.keyFrameDemanded(of: 1, for: .loss, at: now)
        #expect(demands() == [.keyFrameWanted(Self.id, source: 0, layer: 0)])
        now = now + .milliseconds(1)
        for layer in [0, 1, 7, -1] { track?.keyFrameDemanded(of: layer, for: .loss, at: now) }
        #expect(demands() == [.keyFrameWanted(Self.id, source: 0, layer: 1)])
        #expect(demands().isEmpty)
    }

    @Test mutating func `counts what it refuses, and takes nothing for a layer that it does not have`() {
        let tracks = open([Self.plan(.video, rids: ["h"]), Self.plan(.audio)])
        inject(Feed.picture(isKey: true), source: -1)
        inject(Feed.picture(isKey: true), source: 2)
        inject(Feed.picture(isKey: true), layer: 1)
        inject(Feed.picture(isKey: true), layer: -1)
        #expect(worker.counters.media.drops.undecodable == 4 && worker.counters.packetsInjected == 0)
        #expect(tracks.allSatisfy { worker.published[$0.key.track]?.layers.isEmpty == true })
        inject(Feed.picture(isKey: true))
        inject([0x78], source: 1, layer: 5)
        #expect(worker.counters.packetsInjected == 2)
    }

    /// No rendition is made of a track with several sizes, or of one that has ended.
    @Test mutating func `makes renditions of one size alone, and for one maker`() {
        let several = open([Self.plan(.video, rids: ["h", "l"])])
        let one = open([Self.plan(.video)], id: InjectionID(number: 4))
        for (maker, track) in [(10, several), (11, one), (12, one)] {
            let opening = InjectionOpening(
                id: InjectionID(number: UInt64(maker)), renditionsOf: track[0].key.track)
            perform(.openInjection(opening))
        }
        perform(
            .openInjection(
                InjectionOpening(id: InjectionID(number: 13), renditionsOf: TrackID(number: 999))))
        let makers = (10...13).filter { worker.injections[InjectionID(number: UInt64($0))] != nil }
        #expect(makers == [11])
        inject(Feed.picture(isKey: true), layer: RenditionLayer.low.rawValue, id: InjectionID(number: 11))
        inject(Feed.picture(isKey: true), layer: 2, id: InjectionID(number: 11))
        #expect(worker.counters.packetsInjected == 1 && worker.counters.media.drops.undecodable == 1)
        // Its track stays when it ends, and another maker may begin.
        perform(.closeInjection(InjectionID(number: 11)))
        #expect(worker.published[one[0].key.track] != nil)
        perform(
            .openInjection(
                InjectionOpening(id: InjectionID(number: 12), renditionsOf: one[0].key.track)))
        #expect(worker.injections[InjectionID(number: 12)] != nil)
    }
}
