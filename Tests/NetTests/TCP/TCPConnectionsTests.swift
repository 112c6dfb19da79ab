import Base
import Peer
import Testing

@testable import Net

private func time(_ seconds: Int64) -> MonotonicTime { .zero + .seconds(seconds) }

private func address(_ port: UInt16) -> TransportAddress {
    TransportAddress(ip: .loopback, port: port, transport: .tcp)
}

/// A worker's connections, whose other ends and whose times are a test's.
private final class Table {
    let connections: TCPConnections
    private(set) var heard: [(bytes: [UInt8], source: TransportAddress)] = []

    var counters: TCPCounters { connections.counters }

    init(limits: FrameQueue.Limits = FrameQueue.Limits(), budget: Int = 64 << 20) throws {
        connections = TCPConnections(events: try TCPEvents(), limits: limits, budget: budget)
    }

    /// - Parameter deadline: when a session must have the address, in seconds.
    func connect(_ port: UInt16, deadline: Int64 = 5, at now: Int64 = 0) throws -> StreamPair {
        let pair = try StreamPair()
        let accepted = AcceptedConnection(descriptor: pair.inner, remote: address(port), quotas: [])
        connections.begin(at: time(now))
        let handover = ConnectionHandover(connection: accepted, firstBytes: [], deadline: time(deadline))
        let isAdopted = connections.adopt(handover) != nil
        try #require(isAdopted)
        return pair
    }

    func send(_ datagram: [UInt8], to port: UInt16) {
        connections.append(to: address(port), capacity: datagram.count) { span in
            for (index, byte) in datagram.enumerated() { span[index] = byte }
            return datagram.count
        }
    }

    /// Sends until the kernel takes no more, so that something waits here.
    func fill(_ port: UInt16, at now: Int64) {
        connections.begin(at: time(now))
        var before: UInt64
        repeat {
            before = counters.bytesOut
            for _ in 0..<64 { send([UInt8](repeating: 1, count: 1_000), to: port) }
            connections.flush()
        } while counters.bytesOut != before
    }

    /// A turn of the worker's loop.
    func turn(at now: Int64) {
        connections.begin(at: time(now))
        connections.receive { datagram, source in
            heard.append((datagram.withUnsafeBytes { Array($0) }, source))
        }
        connections.flush()
    }

    /// Asks which connections are still needed.
    func sweep(at now: Int64, strangers: Set<UInt16> = []) {
        connections.begin(at: time(now))
        connections.sweep { !strangers.contains($0.port) }
    }
}

@Suite struct `The TCP connections of a worker` {
    @Test func `are closed once their readers have taken nothing for more than half a minute`() throws {
        let table = try Table()
        let stalled = try table.connect(1)
        let idle = try table.connect(2)
        table.fill(1, at: 1)
        table.sweep(at: 31)
        #expect(table.connections.takeLost().isEmpty)
        table.sweep(at: 32)
        #expect(table.connections.takeLost() == [address(1)])
        #expect(table.counters.closedStalled == 1 && table.counters.connections == 1)
        // Who has nothing to take does not stall.
        #expect(stalled.hasEnded() && !idle.hasEnded())
    }

    @Test func `have another half minute from whenever their readers take something`() throws {
        let table = try Table()
        let pair = try table.connect(1)
        table.fill(1, at: 1)
        let taken = pair.receive()
        #expect(!taken.isEmpty)
        table.turn(at: 20)
        table.fill(1, at: 20)
        table.sweep(at: 50)
        #expect(table.counters.closedStalled == 0)
        table.sweep(at: 51)
        #expect(table.counters.closedStalled == 1)
    }

    @Test func `send what waited in order once there is room again`() throws {
        let table = try Table()
        let pair = try table.connect(1)
        table.fill(1, at: 1)
        table.send([7, 7], to: 1)
        table.send([8], to: 1)
        var found: [[UInt8]] = []
        // Each turn fills the kernel's buffer again, which the reader then empties.
        for _ in 0..<64 {
            found += pair.receive()
            table.turn(at: 2)
        }
        #expect(found.suffix(2) == [[7, 7], [8]])
        let (drops, sent) = (table.counters.droppedOther, table.counters.framesOut)
        #expect(drops == 0 && sent == UInt64(found.count))
        #expect(found.dropLast(2).allSatisfy { $0.count == 1_000 })
    }

    @Test func `leave out pictures that waited too long for room, and send the rest`() throws {
        let table = try Table()
        let pair = try table.connect(1)
        table.fill(1, at: 1)
        for number in 0..<3 as Range<UInt8> {
            table.send(rtp(ssrc: 7, timestamp: 1, size: 900, number: number), to: 1)
        }
        table.send([7, 7], to: 1)
        var found: [[UInt8]] = []
        for _ in 0..<64 {
            found += pair.receive()
            table.turn(at: 3)
        }
        #expect(table.counters.droppedVideo == 3 && table.counters.droppedOther == 0)
        let pictures = found.filter { $0.first == 0x80 }
        #expect(pictures.isEmpty && found.last == [7, 7])
        // The next picture comes whole.
        table.send(rtp(ssrc: 7, timestamp: 1, size: 900, number: 3), to: 1)
        table.send(rtp(ssrc: 7, timestamp: 2, size: 900, number: 4), to: 1)
        table.turn(at: 3)
        let numbers = pair.receive().map { $0[3] }
        #expect(numbers == [4])
    }

    @Test func `have until their deadline for a session to know them`() throws {
        let table = try Table()
        let pair = try table.connect(1, deadline: 5)
        table.sweep(at: 4, strangers: [1])
        #expect(!pair.hasEnded())
        table.sweep(at: 5, strangers: [1])
        #expect(pair.hasEnded())
        #expect(table.counters.closedStrange == 1)
        #expect(table.connections.takeLost() == [address(1)])
    }

    @Test func `last no longer than the session that knew them, even before their deadline`() throws {
        let table = try Table()
        let pair = try table.connect(1, deadline: 60)
        table.sweep(at: 1)
        #expect(!pair.hasEnded())
        table.sweep(at: 2, strangers: [1])
        #expect(pair.hasEnded())
        #expect(table.counters.closedStrange == 1)
    }

    @Test func `are asked about once a second at most`() throws {
        let table = try Table()
        _ = try table.connect(1)
        var asked = 0
        for milliseconds in stride(from: 0, through: 3_500, by: 250) as StrideThrough<Int64> {
            table.connections.begin(at: .zero + .milliseconds(milliseconds))
            table.connections.sweep { _ in
                asked += 1
                return true
            }
        }
        #expect(asked == 3)
    }

    @Test func `give way to a newer one from the same address`() throws {
        let table = try Table()
        let older = try table.connect(1)
        let newer = try table.connect(1)
        #expect(older.hasEnded())
        #expect(table.connections.takeLost() == [address(1)])
        #expect(table.connections.takeLost().isEmpty)
        table.send([1, 2, 3], to: 1)
        table.turn(at: 1)
        #expect(newer.receive() == [[1, 2, 3]])
        #expect(table.counters.closedByPeer == 1 && table.counters.adopted == 2)
        #expect(table.counters.connections == 1)
    }

    @Test func `are closed by broken framing, after what came before it, and no others with them`() throws {
        let table = try Table()
        let broken = try table.connect(1)
        let whole = try table.connect(2)
        broken.send(raw: [0, 1, 7, 0xFF, 0xFF, 1, 2, 3])
        whole.send(raw: [0, 2, 8])
        table.turn(at: 1)
        whole.send(raw: [9])
        table.turn(at: 1)
        #expect(table.heard.map(\.bytes) == [[7], [8, 9]])
        #expect(table.heard.map(\.source) == [address(1), address(2)])
        #expect(broken.hasEnded() && !whole.hasEnded())
        #expect(table.counters.closedMalformed == 1 && table.counters.framesIn == 2)
        #expect(table.counters.bytesIn == 12)
    }

    @Test func `are lost when their clients hang up, while output waits, too`() throws {
        let table = try Table()
        var pairs = try [table.connect(1), table.connect(2)]
        table.fill(2, at: 1)
        pairs.removeAll()
        table.turn(at: 2)
        let lost = Set(table.connections.takeLost())
        #expect(lost == [address(1), address(2)])
        #expect(table.counters.closedByPeer == 2 && table.counters.connections == 0)
        table.send([1], to: 1)
        #expect(table.counters.droppedClosed == 1)
        #expect(table.connections.deadline == nil)
    }

    @Test func `have little room each while all together hold much, and more once some are gone`() throws {
        var limits = FrameQueue.Limits()
        limits.resumeBytes = 2_000
        let table = try Table(limits: limits, budget: 10_000)
        let slow = try table.connect(1, deadline: 0)
        let fast = try table.connect(2, deadline: 60)
        table.fill(1, at: 0)
        let before = table.counters.droppedOther
        for _ in 0..<10 { table.send([UInt8](repeating: 2, count: 1_000), to: 2) }
        // Twice what video resumes at: three datagrams with their lengths.
        let dropped = table.counters.droppedOther - before
        #expect(dropped == 7)
        table.turn(at: 0)
        #expect(fast.receive().count == 3)
        table.sweep(at: 1, strangers: [1])
        #expect(slow.hasEnded())
        for _ in 0..<10 { table.send([UInt8](repeating: 3, count: 1_000), to: 2) }
        table.turn(at: 1)
        #expect(fast.receive().count == 10)
    }

    @Test func `take nothing longer than a datagram, and nothing that was not written`() throws {
        struct Refusal: Error {}
        let table = try Table()
        let pair = try table.connect(1)
        var written = 0
        table.connections.append(to: address(1), capacity: 2_049) { _ in
            written += 1
            return 1
        }
        #expect(written == 0 && table.counters.droppedClosed == 1)
        table.connections.append(to: address(1), capacity: 100) { _ in 0 }
        table.connections.append(to: address(1), capacity: 100) { _ in 101 }
        #expect(throws: Refusal.self) {
            try table.connections.append(to: address(1), capacity: 100) {
                (_: inout MutableSpan<UInt8>) throws(Refusal) in throw Refusal()
            }
        }
        table.turn(at: 1)
        #expect(pair.receiveRaw().isEmpty && table.counters.framesOut == 0)
        table.send([UInt8](repeating: 5, count: 2_048), to: 1)
        table.turn(at: 1)
        #expect(pair.receive().map(\.count) == [2_048])
    }

    @Test func `tell how far they have come every 20 ms, and once more when all has arrived`() throws {
        let table = try Table()
        let pair = try table.connect(1)
        var told: [(milliseconds: Int64, waiting: Int)] = []
        func measure(at milliseconds: Int64) {
            table.connections.begin(at: .zero + .milliseconds(milliseconds))
            table.connections.measure { _, backlog in told.append((milliseconds, backlog.waiting)) }
        }
        measure(at: 0)
        table.send([UInt8](repeating: 5, count: 500), to: 1)
        table.connections.flush()
        let due = MonotonicTime.zero + .milliseconds(20)
        #expect(table.connections.deadline == due)
        for milliseconds in [10, 19, 20, 30, 40] as [Int64] { measure(at: milliseconds) }
        #expect(told.map(\.milliseconds) == [20, 40])
        #expect(told.allSatisfy { $0.waiting >= 500 })
        #expect(pair.receive().count == 1)
        for milliseconds in [60, 80, 100] as [Int64] { measure(at: milliseconds) }
        #expect(told.map(\.milliseconds) == [20, 40, 60])
        #expect(told.last?.waiting == 0)
        // Only the question whether a session knows it is left to be asked.
        #expect(table.connections.deadline == time(1))
    }

    @Test func `want to be looked at once one of them is lost`() throws {
        let table = try Table()
        #expect(table.connections.deadline == nil)
        let pair = try table.connect(1)
        #expect(table.connections.deadline == time(1))
        pair.send(raw: [0xFF, 0xFF])
        table.turn(at: 0)
        #expect(table.connections.deadline == .zero)
        _ = table.connections.takeLost()
        #expect(table.connections.deadline == nil)
    }
}
