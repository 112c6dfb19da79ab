import Base
import Testing

@testable import sfu_bench

@Suite struct `A line of clients who only connect` {
    private struct Client: Identifiable {
        let id: Int
    }

    private var line = HandshakeLine<Client>()
    private let width = HandshakeLine<Client>.width

    private func notice(_ id: Int, _ milestone: Milestone) -> Notice {
        Notice(id: id, milestone: milestone, time: .zero)
    }

    private mutating func startAll() -> [Int] {
        var started: [Int] = []
        while let client = line.start() { started.append(client.id) }
        return started
    }

    @Test mutating func `lets so many begin, and another one for each who is done`() {
        for id in 0..<(width + 3) { line.append(Client(id: id)) }
        #expect(startAll() == Array(0..<width))
        #expect(line.take([notice(0, .iceConnected)]).isEmpty)
        #expect(startAll().isEmpty)
        #expect(line.take([notice(1, .dtlsConnected), notice(0, .failed)]) == [1, 0])
        #expect(startAll() == [width, width + 1])
        #expect(line.take([notice(2, .closedByServer)]) == [2])
        #expect(startAll() == [width + 2])
    }

    @Test mutating func `counts nobody twice, and nobody else`() {
        line.append(Client(id: 7))
        #expect(line.take([notice(7, .dtlsConnected)]).isEmpty)
        #expect(startAll() == [7])
        #expect(line.take([notice(8, .dtlsConnected)]).isEmpty)
        #expect(line.take([notice(7, .dtlsConnected), notice(7, .closedByServer)]) == [7])
        #expect(line.take([notice(7, .failed)]).isEmpty)
    }

    @Test mutating func `goes on with who comes later`() {
        #expect(startAll().isEmpty)
        line.append(Client(id: 1))
        #expect(startAll() == [1])
        line.append(Client(id: 2))
        #expect(startAll() == [2])
    }
}
