import Base
import Crypto
import Net
import Peer
import TestSupport
import Testing

/// What a worker's handler saw, for the test's thread.
private final class Diary: Sendable {
    struct Entries: Sendable {
        var received: [(bytes: [UInt8], source: TransportAddress)] = []
        var lost: [TransportAddress] = []
        /// How far connections had come, as it was told.
        var backlogs: [(backlog: StreamBacklog, address: TransportAddress)] = []
        /// Connections that no session knows.
        var strangers: Set<TransportAddress> = []
    }

    let entries = Watched(Entries())

    var received: Int { entries.value.received.count }

    /// Waits until these are all that were lost.
    func waits(forLost addresses: [TransportAddress]) -> Bool {
        entries.waitHere { $0.lost == addresses }
    }
}

/// Sends back what it gets, and sends bursts of video.
private struct Speaker: DatagramHandler {
    enum Command: Sendable {
        case say([[UInt8]], to: TransportAddress)
    }

    let diary: Diary
    var deadline: MonotonicTime? { nil }

    mutating func perform(_ command: Command, at now: MonotonicTime, into sink: inout SendBatch) {
        switch command {
        case .say(let datagrams, let destination):
            sink.append(datagrams.count, to: destination, capacity: 1_500) { number, buffer in
                for (index, byte) in datagrams[number].enumerated() { buffer[index] = byte }
                return EncryptedPacket(length: datagrams[number].count)
            }
        }
    }

    mutating func receive(
        _ datagram: inout MutableSpan<UInt8>, from source: TransportAddress, at now: MonotonicTime,
        into sink: inout SendBatch
    ) {
        let bytes = datagram.withUnsafeBytes { Array($0) }
        diary.entries.change { $0.received.append((bytes, source)) }
        sink.append(bytes, to: source)
    }

    mutating func endOfBatch(at now: MonotonicTime, into sink: inout SendBatch) {}
    mutating func advance(to now: MonotonicTime, into sink: inout SendBatch) {}
    mutating func stop(at now: MonotonicTime, into sink: inout SendBatch) {}

    func knows(_ address: TransportAddress) -> Bool {
        !diary.entries.value.strangers.contains(address)
    }

    mutating func note(_ backlog: StreamBacklog, of address: TransportAddress, at now: MonotonicTime) {
        diary.entries.change { $0.backlogs.append((backlog, address)) }
    }

    mutating func lose(_ address: TransportAddress, at now: MonotonicTime, into sink: inout SendBatch) {
        diary.entries.change { $0.lost.append(address) }
    }
}

/// A worker, and a TCP port that leads to it.
private struct Station {
    let diary = Diary()
    let worker: WorkerThread<Speaker>
    let listener: ConnectionListener

    init(_ change: (inout ConnectionLimits) -> Void = { _ in }) throws {
        var limits = ConnectionLimits()
        change(&limits)
        let worker = try WorkerThread<Speaker>(
            WorkerConfiguration(address: TransportAddress(ip: .loopback, port: 0))
        ) { [diary] _ in Speaker(diary: diary) }
        self.worker = worker
        // A first frame that begins with 9 is nobody's.
        listener = try ConnectionListener(
            bind: TransportAddress(ip: .loopback, port: 0), limits: limits
        ) { handover, frame in
            frame.first != 9 && worker.adopt(handover)
        }
    }

    func connect() throws -> RemoteStream {
        try RemoteStream(to: listener.localAddress)
    }

    func stop() {
        listener.stop()
        worker.stop()
    }
}

@Suite(.serialized) struct `A worker's TCP connection` {
    @Test func `carries datagrams both ways`() throws {
        let station = try Station()
        let remote = try station.connect()
        let sent: [[UInt8]] = [[1, 2, 3], Array(repeating: 4, count: 1_200), [5]]
        for datagram in sent { remote.send(datagram) }
        #expect(remote.receive(3) == sent)
        let sources = station.diary.entries.value.received.map(\.source)
        #expect(sources.allSatisfy { $0 == remote.localAddress && $0.transport == .tcp })
        station.stop()
        let counters = station.worker.statistics.tcp
        #expect(counters.framesIn == 3)
        #expect(counters.framesOut == 3)
        // Each frame has its length in two bytes.
        #expect(counters.bytesIn == 1_210)
        #expect(counters.bytesOut == 1_210)
        #expect(station.listener.counters.placed == 1)
    }

    @Test func `may bring its first frames in any pieces`() throws {
        let station = try Station()
        let remote = try station.connect()
        for byte in [0, 2, 7] as [UInt8] { remote.send(raw: [byte]) }
        #expect(remote.receiveWaiting().isEmpty)
        remote.send(raw: [8, 0, 1, 6, 0])
        #expect(remote.receive(2) == [[7, 8], [6]])
        remote.send(raw: [1, 5])
        #expect(remote.receive(1) == [[5]])
        station.stop()
    }

    @Test func `that is closed is a lost address`() throws {
        let station = try Station()
        var remote: RemoteStream? = try station.connect()
        let address = try #require(remote?.localAddress)
        remote?.send([1])
        #expect(remote?.receive(1).count == 1)
        remote = nil
        #expect(station.diary.waits(forLost: [address]))
        // Sending there is no fault.
        #expect(station.worker.post(.say([[1], [2]], to: address)))
        station.stop()
        let counters = station.worker.statistics.tcp
        #expect(counters.connections == 0 && counters.closedByPeer == 1 && counters.droppedClosed == 2)
    }

    @Test func `tells how far it has come, until all has been taken`() throws {
        let station = try Station()
        let remote = try station.connect()
        remote.shrinkWindow()
        remote.send([1])
        #expect(remote.receive(1).count == 1)
        // No media, of which what is too old is left out.
        let said = Array(repeating: Array(repeating: 5 as UInt8, count: 1_200), count: 200)
        #expect(station.worker.post(.say(said, to: remote.localAddress)))
        // As long as nobody reads, much of it waits.
        let isWaiting = station.diary.entries.waitHere {
            $0.backlogs.last.map { $0.backlog.waiting > 100_000 } ?? false
        }
        #expect(isWaiting)
        #expect(remote.receive(said.count) == said)
        let isTaken = station.diary.entries.waitHere { $0.backlogs.last?.backlog.waiting == 0 }
        #expect(isTaken)
        station.stop()
        let backlogs = station.diary.entries.value.backlogs
        #expect(backlogs.allSatisfy { $0.address == remote.localAddress && $0.backlog.roundTrip != nil })
        let acknowledged = backlogs.map(\.backlog.acknowledged)
        #expect(acknowledged == acknowledged.sorted())
        // Each frame has its length in two bytes.
        let last = try #require(acknowledged.last)
        #expect(last == 200 * 1_202 + 3)
    }

    @Test func `is closed when it breaks the framing`() throws {
        let station = try Station()
        let remote = try station.connect()
        remote.send([1])
        #expect(remote.receive(1).count == 1)
        remote.send(raw: [0xFF, 0xFF, 1])
        #expect(remote.waitForClose())
        #expect(station.diary.waits(forLost: [remote.localAddress]))
        station.stop()
        #expect(station.worker.statistics.tcp.closedMalformed == 1)
    }

    @Test func `is closed when no session knows it in time`() throws {
        // The worker looks after a second; until then the first frame has to come, or the listener closes it.
        let station = try Station { $0.patience = .milliseconds(900) }
        let remote = try station.connect()
        station.diary.entries.change { _ = $0.strangers.insert(remote.localAddress) }
        remote.send([1])
        #expect(remote.waitForClose())
        station.stop()
        #expect(station.worker.statistics.tcp.closedStrange == 1)
    }

    @Test func `whose reader is slow loses pictures, never parts of frames, and holds nobody up`() throws {
        let station = try Station()
        let slow = try station.connect()
        slow.shrinkWindow()
        let quick = try station.connect()
        for remote in [slow, quick] {
            remote.send([1])
            #expect(remote.receive(1).count == 1)
        }
        let pictures = 2_000
        for timestamp in 0..<UInt32(pictures) {
            let picture = (0..<5 as Range<UInt8>).map {
                rtp(ssrc: 7, timestamp: timestamp, size: 1_200, number: $0)
            }
            #expect(station.worker.post(.say(picture, to: slow.localAddress)))
            #expect(
                station.worker.post(
                    .say([rtp(ssrc: 8, timestamp: timestamp, size: 100)], to: quick.localAddress)))
            if timestamp % 50 == 49 { #expect(quick.receive(50).count == 50) }
        }
        // Reads again, and finds whole frames.
        let left = slow.receive(1) + slow.receiveWaiting()
        #expect(left.count > 1)
        #expect(left.allSatisfy { $0.count == 1_200 })
        station.stop()
        let counters = station.worker.statistics.tcp
        #expect(counters.droppedVideo > 1_000 && counters.droppedOther == 0)
        #expect(counters.framesOut + counters.droppedVideo <= UInt64(pictures * 6 + 2))
    }
}

@Suite(.serialized) struct `A TCP port` {
    @Test func `in use is said to be`() throws {
        let station = try Station()
        let address = station.listener.localAddress
        #expect(throws: NetError.addressInUse(address)) {
            _ = try ConnectionListener(bind: address) { _, _ in false }
        }
        #expect(NetError.addressInUse(address).description.contains("TCP address \(address)"))
        #expect(NetError.addressInUse(address).description.contains("--tcp off"))
        station.stop()
    }

    @Test func `closes a connection that says nothing, or only half of something`() throws {
        let station = try Station { $0.patience = .milliseconds(100) }
        let silent = try station.connect()
        let slow = try station.connect()
        slow.send(raw: [0, 20, 1])
        #expect(silent.waitForClose() && slow.waitForClose())
        #expect(station.listener.counters.expired == 2)
        station.stop()
    }

    @Test(arguments: [Array("GET / HTTP/1.1\r\n\r\n".utf8), [0, 1, 9], [UInt8](repeating: 0, count: 3_000)])
    func `closes a connection whose first frame is nobody's`(bytes: [UInt8]) throws {
        let station = try Station()
        let remote = try station.connect()
        remote.send(raw: bytes)
        #expect(remote.waitForClose())
        #expect(station.listener.counters.strange == 1)
        #expect(station.diary.received == 0)
        station.stop()
    }

    @Test func `serves only so many from one address`() throws {
        let station = try Station { $0.perAddress = 2 }
        let remotes = try (0..<3).map { _ in try station.connect() }
        #expect(remotes[2].waitForClose())
        for remote in remotes.prefix(2) {
            remote.send([1])
            #expect(remote.receive(1) == [[1]])
        }
        #expect(station.listener.counters.refused == 1)
        station.stop()
    }

    @Test func `gives back the place of a connection that is closed`() throws {
        let station = try Station { $0.perAddress = 1 }
        for _ in 0..<5 {
            let remote = try station.connect()
            remote.send([1])
            let isServed = remote.receive(1) == [[1]]
            #expect(isServed)
            // Its end has to be noticed first.
            remote.send(raw: [0xFF, 0xFF])
            #expect(remote.waitForClose())
        }
        station.stop()
    }

    @Test func `prefers new connections to old ones that say nothing`() throws {
        let station = try Station { $0.waiting = 2 }
        let first = try station.connect()
        let others = try (0..<2).map { _ in try station.connect() }
        #expect(first.waitForClose())
        for remote in others {
            remote.send([1])
            #expect(remote.receive(1) == [[1]])
        }
        #expect(station.listener.counters.displaced == 1)
        station.stop()
    }
}
