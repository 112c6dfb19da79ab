import Base
import ClientPeer
import Forwarding
import MallocCounter
import Peer
import Testing
import Wire

/// Takes datagrams without keeping them, in memory of its own.
private struct Bin: DatagramSink {
    private var memory = [UInt8](repeating: 0, count: 1_500)
    private(set) var datagrams = 0

    mutating func append<Failure: Error>(
        to destination: TransportAddress, capacity: Int,
        _ write: (inout MutableSpan<UInt8>) throws(Failure) -> Int
    ) throws(Failure) {
        var span = memory.mutableSpan
        if try write(&span) > 0 { datagrams += 1 }
    }
}

@Suite(.simulated) struct `Fan-out` {
    /// A publisher and viewers who have been playing for a while, and nothing of it on the way.
    private func playing(viewers count: Int) throws -> (Simulation, SimulatedClient, [SimulatedClient]) {
        let simulation = try Simulation(seed: 31)
        let (publisher, _) = try simulation.add(.publisher)
        let viewers = try (0..<count).map { _ in try simulation.add(.viewer).client }
        let isPlaying = simulation.run(for: .seconds(10)) {
            publisher.isConnected && viewers.allSatisfy { $0.decoder.framesDecoded > 10 }
        }
        try #require(isPlaying)
        simulation.run(for: .seconds(3))
        return (simulation, publisher, viewers)
    }

    /// Sends what the publisher has to say in a second through the worker.
    /// - Returns: packets, datagrams to viewers, allocations on the way, and bytes kept at the end.
    private func forwardOneSecond(
        _ simulation: Simulation, _ publisher: SimulatedClient
    ) -> (packets: Int, datagrams: Int, allocations: UInt64, kept: Int64) {
        let worker = simulation.workers[0]
        var bin = Bin()
        var now = simulation.now
        var packets = 0
        var allocations: UInt64 = 0
        var kept: Int64 = 0
        for _ in 0..<100 {
            now = now + .milliseconds(10)
            var sent = CollectingSink(source: publisher.outerAddress)
            publisher.advance(to: now, into: &sent)
            for datagram in sent.takeAll() where DatagramKind(datagram.bytes.span) == .rtp {
                var bytes = datagram.bytes
                var span = bytes.mutableSpan
                let before = (malloc_counter_allocations(), malloc_counter_live_bytes())
                worker.receive(&span, from: datagram.source, at: now, into: &bin)
                worker.endOfBatch(at: now, into: &bin)
                allocations += malloc_counter_allocations() - before.0
                kept += malloc_counter_live_bytes() - before.1
                packets += 1
            }
        }
        return (packets, bin.datagrams, allocations, kept)
    }

    @Test(.enabled(if: malloc_counter_is_on() != 0, "sanitizers count allocations themselves"))
    func `costs memory for packets, not for viewers`() throws {
        let (few, fewPublisher, _) = try playing(viewers: 2)
        let (many, manyPublisher, _) = try playing(viewers: 20)
        let little = forwardOneSecond(few, fewPublisher)
        let much = forwardOneSecond(many, manyPublisher)
        #expect(little.packets >= 75 && much.packets >= 75)
        #expect(little.datagrams >= little.packets * 2 && much.datagrams >= much.packets * 20)
        // A history that doubles weighs the same for both; 18 viewers more must weigh nothing.
        #expect(much.kept - little.kept < 18 * 64, "\(little.kept) bytes for 2, \(much.kept) for 20")
    }

    @Test(.enabled(if: malloc_counter_is_on() != 0, "sanitizers count allocations themselves"))
    func `allocates for packets, not for viewers`() throws {
        let (few, fewPublisher, _) = try playing(viewers: 2)
        let (many, manyPublisher, _) = try playing(viewers: 20)
        let little = forwardOneSecond(few, fewPublisher)
        let much = forwardOneSecond(many, manyPublisher)
        #expect(little.packets >= 75 && much.packets >= 75)
        #expect(Int64(much.allocations) - Int64(little.allocations) < 10, "\(little) \(much)")
    }
}
