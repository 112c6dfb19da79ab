import Base
import MallocCounter
import Testing

@testable import Net

/// Sends back what it gets without allocating, and tells at the end how often its thread did allocate.
private struct QuietEcho: DatagramHandler {
    enum Command: Sendable {
        /// Begin to count with the next datagram.
        case count
        /// Tell the count up to the last datagram.
        case tell(TransportAddress)
    }

    private var begin: UInt64?
    private var end: UInt64 = 0

    var deadline: MonotonicTime? { nil }

    mutating func perform(_ command: Command, at now: MonotonicTime, into sink: inout SendBatch) {
        switch command {
        case .count: begin = nil
        case .tell(let address):
            sink.append(datagram(Int(truncatingIfNeeded: end - (begin ?? 0)), size: 4), to: address)
        }
    }

    mutating func receive(
        _ datagram: inout MutableSpan<UInt8>, from source: TransportAddress, at now: MonotonicTime,
        into sink: inout SendBatch
    ) {
        let count = datagram.count
        let first = datagram[0]
        sink.append(to: source, capacity: count) { bytes in
            bytes[0] = first
            return count
        }
        end = malloc_counter_allocations()
        if begin == nil { begin = end }
    }

    mutating func endOfBatch(at now: MonotonicTime, into sink: inout SendBatch) {}
    mutating func advance(to now: MonotonicTime, into sink: inout SendBatch) {}
    mutating func stop(at now: MonotonicTime, into sink: inout SendBatch) {}
}

@Suite(.enabled(if: malloc_counter_is_on() != 0, "a sanitizer has taken malloc's place"))
struct `The packet path` {
    @Test func `allocates nothing for datagrams once it has warmed up`() throws {
        let sending = try DatagramSocket(bind: TransportAddress(ip: .loopback, port: 0))
        let receiving = try DatagramSocket(bind: TransportAddress(ip: .loopback, port: 0))
        let others = (0..<50).map { TransportAddress(ip: .loopback, port: UInt16(20_000 + $0)) }
        var sink = SendBatch(socket: sending, hashKey: 3)
        var arrivals = ReceiveBatch(coalesces: receiving.coalesces)
        var counters = TrafficCounters()

        func turn() {
            for number in 0..<4 {
                for other in others.indices {
                    sink.append(to: others[other], capacity: 1_300) { bytes in
                        bytes[0] = UInt8(truncatingIfNeeded: number)
                        return 1_200 - number
                    }
                }
                sink.append(to: receiving.localAddress, capacity: 1_300) { _ in 1_000 }
            }
            sink.flush(at: .zero)
            _ = arrivals.fill(from: receiving, counting: &counters)
            arrivals.forEach(counting: &counters) { datagram, _, _ in datagram[0] &+= 1 }
        }
        for _ in 0..<3 { turn() }
        let before = malloc_counter_allocations()
        for _ in 0..<50 { turn() }
        #expect(malloc_counter_allocations() - before == 0)
        #expect(counters.datagramsIn == 53 * 4)
    }

    @Test func `allocates nothing for turns of the loop`() throws {
        let worker = try WorkerThread(
            WorkerConfiguration(address: TransportAddress(ip: .loopback, port: 0))
        ) { _ in QuietEcho() }
        var remote = try Remote()
        func exchange(_ times: Int) {
            for number in 0..<times {
                remote.send([datagram(number, size: 300)], to: worker.localAddress)
                #expect(remote.receive(1).count == 1)
            }
        }
        exchange(5)
        #expect(worker.post(.count))
        exchange(100)
        #expect(worker.post(.tell(remote.address)))
        #expect(remote.receive(1).map(\.bytes) == [[0, 0, 0, 0]])
        worker.stop()
    }
}
