import Base
import Forwarding
import Peer
import TestSupport
import Testing

@testable import Node

@Suite struct `Events that wait for the node` {
    private let backlog = EventBacklog()
    private let id: SessionID

    init() {
        var random = SeededGenerator(seed: 1)
        id = SessionID(using: &random)
    }

    @Test func `are bounded, but for what nothing else would tell`() {
        for _ in 0..<EventBacklog.limit { #expect(backlog.admit(.voice(id, level: 1))) }
        #expect(!backlog.admit(.voice(id, level: 1)))
        #expect(backlog.admit(.checked(id)))
        #expect(!backlog.admit(.begun(id, pair: 0, .feed, timestamp: 0)))
        #expect(backlog.takeDropped() == 2)
        #expect(backlog.takeDropped() == 0)
        for _ in 0..<2 { backlog.take() }
        #expect(backlog.admit(.voice(id, level: 1)))
    }
}
