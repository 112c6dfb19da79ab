import Base
import Forwarding
import TestSupport
import Testing

@testable import Node

@Suite struct `The order of previews` {
    private var schedule = PreviewSchedule()
    private var streams: [StreamID] = []

    init() throws {
        for number in 100..<140 { streams.append(try #require(StreamID("s\(number)"))) }
    }

    private mutating func begin(_ stream: StreamID, at time: MonotonicTime) {
        var random = SeededGenerator(seed: 1)
        let source = PreviewSchedule.Source(session: SessionID(using: &random), mid: "1", worker: 0)
        _ = schedule.setSource(source, of: stream, at: time)
    }

    private func opened(_ orders: [PreviewSchedule.Order]) -> [StreamID] {
        orders.compactMap { order in
            if case .open(let stream, _, _, _) = order { stream } else { nil }
        }
    }

    /// After a restart all streams are due together; the same run must choose the same ones.
    @Test mutating func `is that of their names where all are due at the same moment`() {
        for stream in streams.reversed() { begin(stream, at: .zero) }
        let orders = schedule.orders(at: .zero)
        #expect(opened(orders) == Array(streams.prefix(PreviewSchedule.makingLimit)))
    }

    @Test mutating func `is that of their times where these differ`() {
        for (index, stream) in streams.enumerated() {
            begin(stream, at: .zero + .milliseconds(streams.count - index))
        }
        let orders = schedule.orders(at: .zero + .seconds(1))
        #expect(opened(orders) == Array(streams.reversed().prefix(PreviewSchedule.makingLimit)))
    }
}
