import Base
import Crypto
import Peer
import SCTP
import TestSupport
import TestTraits
import Testing
import Wire

/// A server's and a client's end with a network between them that loses and delays packets.
private final class EndpointPair {
    let server: DataChannelEndpoint
    let client: DataChannelEndpoint
    private(set) var now = MonotonicTime.zero
    private(set) var serverEvents: [DataChannelEvent] = []
    private(set) var clientEvents: [DataChannelEvent] = []
    private(set) var longestPacket = 0
    private let loss: Double
    private var random: SeededGenerator
    private var packets: [(at: MonotonicTime, toServer: Bool, bytes: [UInt8])] = []

    init(loss: Double = 0, seed: UInt64 = 1, clientTakes: Int = 262_144) throws {
        self.loss = loss
        random = SeededGenerator(seed: seed)
        let timeline = SCTPTimeline()
        let plan = DataChannelPlan(mid: "0", maximumMessage: clientTakes)
        server = try DataChannelEndpoint(plan: plan, role: .server, timeline: timeline, at: now)
        client = try DataChannelEndpoint(
            plan: DataChannelPlan(mid: "0"), role: .client, timeline: timeline, at: now)
    }

    @discardableResult
    func run(for limit: Duration = .seconds(60), until isDone: () -> Bool) -> Bool {
        let end = now + limit
        while !isDone() {
            guard now < end else { return false }
            now = now + .milliseconds(5)
            let due = packets.filter { $0.at <= now }
            packets.removeAll { $0.at <= now }
            for packet in due { (packet.toServer ? server : client).receive(packet.bytes.span, at: now) }
            if let due = server.deadline, due <= now { server.advance(to: now) }
            if let due = client.deadline, due <= now { client.advance(to: now) }
            serverEvents += server.takeEvents()
            clientEvents += client.takeEvents()
            for packet in server.takeOutput() { transmit(packet, toServer: false) }
            for packet in client.takeOutput() { transmit(packet, toServer: true) }
        }
        return true
    }

    private func transmit(_ bytes: [UInt8], toServer: Bool) {
        longestPacket = max(longestPacket, bytes.count)
        guard Double.random(in: 0..<1, using: &random) >= loss else { return }
        let delay = Duration.milliseconds(Int64.random(in: 5...25, using: &random))
        packets.append((now + delay, toServer, bytes))
    }

    func establish() -> Bool {
        let opened = DataChannelEvent.opened(0, DataChannelOpen(label: "control"))
        return run { serverEvents.contains(opened) && clientEvents.contains(opened) }
    }
}

@Suite(.sctpTurn) struct DataChannelEndpoints {
    private let chat = DataChannelOpen(label: "data:chat", subprotocol: "ann")

    private func message(_ count: Int) -> DataChannelMessage {
        .binary((0..<count).map { UInt8(truncatingIfNeeded: $0 &* 37) })
    }

    @Test func `agree on the control channel and echo 256 KiB and nothing on it`() throws {
        let pair = try EndpointPair()
        #expect(pair.establish())
        let messages = [DataChannelMessage("hello"), message(262_144), .string([]), .binary([])]
        for item in messages { try pair.client.send(item, on: 0, at: pair.now) }
        var echoed = 0
        #expect(
            pair.run {
                let come = pair.serverEvents.compactMap { event -> DataChannelMessage? in
                    if case .message(0, let message) = event { message } else { nil }
                }
                for item in come.dropFirst(echoed) {
                    try? pair.server.send(item, on: 0, at: pair.now)
                    echoed += 1
                }
                return pair.clientEvents.count == 1 + messages.count
            })
        #expect(pair.clientEvents.dropFirst() == messages.map { .message(0, $0) }[...])
        #expect(pair.longestPacket <= 1_160)
    }

    @Test(arguments: 1...5 as ClosedRange<UInt64>)
    func `open channels from both sides over a bad network`(seed: UInt64) throws {
        let pair = try EndpointPair(loss: 0.1, seed: seed)
        #expect(pair.establish())
        let (there, back) = (
            try pair.client.open(chat, at: pair.now), try pair.server.open(chat, at: pair.now)
        )
        #expect((there, back) == (2, 1))
        let sent = (0..<30).map { DataChannelMessage("number \($0)") }
        for item in sent {
            try pair.client.send(item, on: there, at: pair.now)
            try pair.server.send(item, on: back, at: pair.now)
        }
        #expect(
            pair.run(for: .seconds(120)) { pair.serverEvents.count == 32 && pair.clientEvents.count == 32 })
        #expect(pair.serverEvents.dropFirst() == [.opened(2, chat)] + sent.map { .message(2, $0) })
        #expect(pair.clientEvents.dropFirst() == [.opened(1, chat)] + sent.map { .message(1, $0) })
    }

    @Test func `close a channel after what was said on it, and use its stream again`() throws {
        let pair = try EndpointPair(loss: 0.05, seed: 3)
        #expect(pair.establish())
        for round in 1...3 {
            let stream = try pair.client.open(chat, at: pair.now)
            try pair.client.send(DataChannelMessage("bye"), on: stream, at: pair.now)
            pair.client.close(stream, at: pair.now)
            #expect(throws: DataChannelError.noChannel) {
                try pair.client.send(DataChannelMessage("late"), on: stream, at: pair.now)
            }
            #expect(pair.run { pair.serverEvents.count == 1 + 3 * round })
            #expect(
                pair.serverEvents.suffix(3) == [
                    .opened(stream, chat), .message(stream, DataChannelMessage("bye")), .closed(stream),
                ])
        }
    }

    @Test func `send no more than the peer takes`() throws {
        let pair = try EndpointPair(clientTakes: 1_000)
        #expect(pair.establish())
        #expect(throws: DataChannelError.tooLong) {
            try pair.server.send(message(1_001), on: 0, at: pair.now)
        }
        try pair.server.send(message(1_000), on: 0, at: pair.now)
    }

    @Test func `refuse what does not fit for a peer that is gone, but keep room for control`() throws {
        let pair = try EndpointPair()
        #expect(pair.establish())
        let streams = try (0..<3).map { _ in try pair.server.open(chat, at: pair.now) }
        for stream in streams {
            #expect(throws: DataChannelError.bufferFull) {
                for _ in 0..<20 { try pair.server.send(message(65_536), on: stream, at: pair.now) }
            }
        }
        let waiting = streams.map { pair.server.buffered($0) }.reduce(0, +)
        #expect(waiting <= 1 << 20)
        try pair.server.send(message(40_000), on: 0, at: pair.now)
    }

    @Test func `drop the oldest of a lossy channel that is full`() throws {
        let pair = try EndpointPair()
        #expect(pair.establish())
        let lossy = DataChannelOpen(label: "x", delivery: .init(reliability: .retransmissions(0)))
        let stream = try pair.server.open(lossy, at: pair.now)
        for _ in 0..<40 { try pair.server.send(message(65_536), on: stream, at: pair.now) }
        #expect(pair.server.dropped > 20)
        #expect(pair.server.buffered(stream) <= 1 << 19)
    }
}
