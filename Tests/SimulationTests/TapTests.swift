import Base
import ClientPeer
import Forwarding
import Peer
import Synchronization
import TestSupport
import Testing
import Wire

/// Keeps what a tap hands out.
private final class CollectingTap: TapSink {
    struct State {
        var packets: [TappedPacket] = []
        var payloads: [[UInt8]] = []
        var isFinished = false
    }

    let state = Mutex(State())

    func take(_ packet: TappedPacket, _ bytes: Span<UInt8>) {
        let payload = (try? bytes.bytes(packet.payload)) ?? []
        state.withLock { state in
            state.packets.append(packet)
            state.payloads.append(payload)
        }
    }

    func finish() { state.withLock { $0.isFinished = true } }

    var packets: [TappedPacket] { state.withLock { $0.packets } }
    var isFinished: Bool { state.withLock { $0.isFinished } }

    /// Whether numbers have no gaps and none comes twice.
    var isContinuous: Bool {
        let numbers = packets.map(\.sequenceNumber).sorted()
        guard let first = numbers.first else { return true }
        return numbers == Array(first..<(first + Int64(numbers.count)))
    }
}

@Suite(.simulated) struct Taps {
    private static let id = TapID(number: 1)

    private func open(
        _ mode: TapOpening.Mode, on session: SessionID, kind: MediaKind = .video, in simulation: Simulation,
        id: TapID = id
    ) throws -> CollectingTap {
        let tap = CollectingTap()
        let sources = simulation.workers[0].sessions[session]?.plan.sources ?? []
        let mid = try #require(sources.first { $0.kind == kind }?.mid)
        simulation.perform(
            .openTap(TapOpening(id: id, target: .source(session, mid: mid), mode: mode, sink: tap)))
        return tap
    }

    private func start(
        seed: UInt64, conditions: SimulatedNetwork.Conditions = .perfect
    ) throws -> (simulation: Simulation, publisher: SimulatedClient, session: SessionID) {
        let simulation = try Simulation(seed: seed, conditions: conditions)
        let (publisher, session) = try simulation.add(.publisher)
        let isThere = simulation.run(for: .seconds(5)) {
            (simulation.workers[0].statistics.media.videoReceived.packets) > 30
        }
        #expect(isThere)
        return (simulation, publisher, session)
    }

    private func requests(_ simulation: Simulation) -> UInt64 {
        simulation.workers[0].statistics.media.keyFrameRequests
    }

    @Test func `take one whole key frame, and then no more`() throws {
        let (simulation, _, session) = try start(seed: 51)
        let tap = try open(.keyFrame(after: nil, mayAsk: true), on: session, in: simulation)
        _ = simulation.run(for: .seconds(6)) { tap.isFinished }
        try #require(tap.isFinished)
        #expect(tap.packets.first?.isEntryPoint == true)
        #expect(tap.packets.last?.marker == true)
        #expect(Set(tap.packets.map(\.timestamp)).count == 1)
        #expect(tap.isContinuous)
        let count = tap.packets.count
        simulation.run(for: .seconds(1))
        #expect(tap.packets.count == count)
    }

    @Test func `take the key frame that the cache has, without asking for one`() throws {
        let (simulation, _, session) = try start(seed: 52)
        let first = try open(.keyFrame(after: nil, mayAsk: true), on: session, in: simulation)
        _ = simulation.run(for: .seconds(6)) { first.isFinished }
        let asked = requests(simulation)
        let second = try open(
            .keyFrame(after: nil, mayAsk: true), on: session, in: simulation, id: TapID(number: 2))
        #expect(second.isFinished)
        #expect(second.packets.map(\.sequenceNumber) == first.packets.map(\.sequenceNumber))
        #expect(requests(simulation) == asked)
    }

    @Test func `do not take the same key frame twice, and ask only if they may`() throws {
        let (simulation, _, session) = try start(seed: 53)
        let first = try open(.keyFrame(after: nil, mayAsk: true), on: session, in: simulation)
        _ = simulation.run(for: .seconds(6)) { first.isFinished }
        let mark = TapMark(try #require(first.packets.first))
        let asked = requests(simulation)
        let patient = try open(
            .keyFrame(after: mark, mayAsk: false), on: session, in: simulation, id: TapID(number: 2))
        simulation.run(for: .milliseconds(300))
        #expect(!patient.isFinished)
        #expect(requests(simulation) == asked)
        simulation.perform(.demandKeyFrame(TapID(number: 2)))
        _ = simulation.run(for: .seconds(6)) { patient.isFinished }
        #expect(patient.isFinished)
        #expect(TapMark(try #require(patient.packets.first)) != mark)
    }

    @Test func `ask a silent publisher once for a newer picture, and again and again for the first`() throws {
        let (simulation, _, session) = try start(seed: 58)
        let first = try open(.keyFrame(after: nil, mayAsk: true), on: session, in: simulation)
        _ = simulation.run(for: .seconds(6)) { first.isFinished }
        let mark = TapMark(try #require(first.packets.first))
        simulation.conditions.loss = 1
        let asked = requests(simulation)
        let second = try open(
            .keyFrame(after: mark, mayAsk: true), on: session, in: simulation, id: TapID(number: 2))
        simulation.run(for: .seconds(8))
        #expect(!second.isFinished)
        #expect(requests(simulation) == asked + 1)
        let whole = try open(.whole, on: session, in: simulation, id: TapID(number: 3))
        simulation.run(for: .seconds(8))
        #expect(whole.packets.isEmpty)
        #expect(requests(simulation) >= asked + 3)
    }

    @Test(arguments: [MediaKind.video, .audio])
    func `a tap can take every packet of a track`(_ kind: MediaKind) throws {
        let (simulation, _, session) = try start(seed: 54)
        let tap = try open(.whole, on: session, kind: kind, in: simulation)
        simulation.run(for: .seconds(3))
        #expect(tap.packets.count > 50)
        #expect(tap.packets.first?.isEntryPoint == true)
        #expect(tap.isContinuous)
        #expect(tap.packets.allSatisfy { $0.codec.isVideo == (kind == .video) })
        #expect(tap.packets.last?.captured != nil)
        let count = tap.packets.count
        simulation.perform(.closeTap(Self.id))
        #expect(tap.isFinished)
        simulation.run(for: .seconds(1))
        #expect(tap.packets.count == count)
    }

    @Test func `get what was sent again, over a bad network`() throws {
        var conditions = SimulatedNetwork.Conditions.perfect
        conditions.loss = 0.05
        let (simulation, _, session) = try start(seed: 55, conditions: conditions)
        let tap = try open(.whole, on: session, in: simulation)
        simulation.run(for: .seconds(3))
        simulation.conditions = .perfect
        simulation.run(for: .seconds(1))
        #expect(tap.packets.count > 80)
        #expect(tap.isContinuous)
    }

    @Test func `go on as they are when a limit changes nothing`() throws {
        let (simulation, _, session) = try start(seed: 57)
        let tap = try open(.whole, on: session, in: simulation)
        simulation.run(for: .seconds(3))
        simulation.perform(.limitTap(Self.id, maximumHeight: 180))
        simulation.run(for: .seconds(2))
        #expect(tap.packets.count > 300)
        #expect(tap.isContinuous)
        #expect(Set(tap.packets.map(\.epoch)).count == 1)
    }

    @Test func `change layers with a limit, at a key frame`() throws {
        let simulation = try Simulation(seed: 58)
        let (publisher, session) = try simulation.add(.publisher, rids: ["h", "m", "l"])
        #expect(simulation.run(for: .seconds(5)) { publisher.videoTracks.count == 3 })
        let tap = try open(.whole, on: session, in: simulation)
        #expect(simulation.run(for: .seconds(5)) { tap.packets.count > 30 })
        let best = try #require(tap.packets.last?.epoch)
        simulation.perform(.limitTap(Self.id, maximumHeight: 1))
        #expect(simulation.run(for: .seconds(5)) { tap.packets.last?.epoch != best })
        let first = try #require(tap.packets.first { $0.epoch != best })
        #expect(first.isEntryPoint)
        let count = tap.packets.count
        simulation.run(for: .seconds(1))
        #expect(tap.packets.dropFirst(count).allSatisfy { $0.epoch != best })
        #expect(tap.packets.count > count)
    }

    @Test func `end with their publisher`() throws {
        let (simulation, publisher, session) = try start(seed: 56)
        let tap = try open(.whole, on: session, in: simulation)
        let waiting = try open(
            .keyFrame(after: nil, mayAsk: false), on: session, in: simulation, id: TapID(number: 2))
        simulation.close(publisher)
        simulation.run(for: .seconds(1))
        #expect(tap.isFinished)
        #expect(waiting.isFinished)
        let late = CollectingTap()
        simulation.perform(
            .openTap(
                TapOpening(id: TapID(number: 3), target: .source(session, mid: "0"), mode: .whole, sink: late)
            ))
        #expect(late.isFinished)
    }
}
