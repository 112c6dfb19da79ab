import Base
import Stage
import Store
import TestSupport
import Testing

@testable import Ingest
@testable import Interaction
@testable import Net
@testable import Node

/// What somebody waits for on a slow disk delays nobody else.
@Suite(.timeLimit(.minutes(10))) struct `On a slow disk` {
    private let store = SlowStore()
    private let node: Node
    private let slow: StreamID
    private let quick: StreamID

    init() throws {
        (slow, quick) = (try #require(StreamID("slow")), try #require(StreamID("quick")))
        var configuration = NodeConfiguration(udp: TransportAddress(ip: .loopback, port: 0))
        // A key is the name of its stream.
        configuration.ingest = IngestSettings(address: nil) { key throws(IngestSettings.Refusal) in
            guard let stream = StreamID(key.exposed) else { throw IngestSettings.Refusal("This is no key.") }
            return IngestSettings.Grant(stream: stream, sender: HostRig.ann)
        }
        node = try Node(configuration: configuration, log: .silent, store: store)
    }

    /// An encoder that has connected asks whether it may publish.
    private func ask(for stream: StreamID, by number: UInt64) {
        node.inboxes.ingest.put(
            IngestNews(
                connection: IngestConnection(port: .rtmp, number: ConnectionNumber(value: number)),
                event: .asked(
                    key: Secret(stream.description), from: TransportAddress(ip: .loopback, port: 1_935))))
    }

    @Test func `a publisher is admitted while another one's stream is being stored`() async throws {
        await node.start()
        store.hold(slow)
        ask(for: slow, by: 1)
        try await store.commitIsHeld()
        ask(for: quick, by: 2)
        try await store.commitIsThrough(of: quick)
        let streams = Set(store.commits.map(\.stream))
        #expect(streams == [quick])
        store.release()
        try await store.commitIsThrough(of: slow)
        await node.stop()
    }

    /// A message of a duel, as the opponent's stream sends it.
    private func message(to stream: StreamID) throws -> DuelOrder {
        let opponent = try #require(StreamID("opponent"))
        let time = WallTime(milliseconds: 1_800_000_000_000)
        return .message(
            DuelMessage(
                id: DuelID(inviter: opponent, number: 1), to: stream, terms: DuelTerms(), invitedAt: time,
                statement: Duel.Statement(stream: opponent), known: 0, isAnswerWanted: false, score: 0,
                sentAt: time))
    }

    @Test func `a stream hears of its duel while another one is being read`() async throws {
        await node.start()
        store.hold(loading: .one(slow))
        node.inboxes.duels.put(try message(to: slow))
        try await store.isAsked(for: .one(slow))
        node.inboxes.duels.put(try message(to: quick))
        try await store.isAsked(for: .one(quick))
        store.release()
        await node.stop()
    }
}
