import Base
import CLinux
import Glibc
import Testing

@testable import Net

@Suite struct `The figures of a worker` {
    @Test func `tell its share of a processor, which is between none and all`() {
        var figures = WorkerStatistics()
        let steps: [(seconds: Int64, milliseconds: Int64, load: Double)] = [
            (1, 250, 0.25), (3, 1_250, 0.5), (4, 9_000, 1), (5, 9_000, 0), (6, 8_000, 0), (7, 8_750, 0.75),
            // No time has passed, or the clock is absurd.
            (7, 8_800, 0.75), (2, 9_000, 0.75),
        ]
        for step in steps {
            let time = MonotonicTime.zero + .seconds(step.seconds)
            figures.update(
                traffic: TrafficCounters(), processorNanoseconds: step.milliseconds * 1_000_000, at: time)
            #expect(figures.load == step.load)
            #expect(figures.time == time)
            #expect(figures.processorNanoseconds == step.milliseconds * 1_000_000)
        }
    }

    @Test func `count batches, their time, and the datagrams that left in each`() {
        var figures = WorkerStatistics()
        for (micros, sent) in [(100, 3), (50, 0), (1_000, 7)] as [(Int64, UInt64)] {
            let start = MonotonicTime.zero + .seconds(9)
            figures.noteBatch(from: start, to: start + .microseconds(micros), sent: sent)
        }
        #expect(figures.batches == 3)
        #expect(figures.busyNanoseconds == 1_150_000)
        #expect(figures.latency.count == 10)
    }
}

@Suite struct `Why a port cannot be had` {
    private static let udp = TransportAddress(ip: .loopback, port: 80)

    @Test(
        arguments: [
            (EADDRINUSE, "in use by another program"), (EADDRNOTAVAIL, "not an address of this machine"),
            (EACCES, "this user may not"), (EPERM, "this user may not"), (EAFNOSUPPORT, "no IPv6"),
            (EMFILE, "ulimit -n"), (ENFILE, "ulimit -n"), (ENOBUFS, "cannot bind UDP address 127.0.0.1:80: "),
        ] as [(Int32, String)])
    func `is said in words that help`(code: Int32, words: String) {
        let text = NetError(binding: Self.udp, code: code).description
        #expect(text.contains(words), "\(text)")
        // What would not help is not advised.
        #expect(!text.contains("--tcp"))
        let ofTCP = NetError(binding: Self.udp.over(.tcp), code: code).description
        #expect(ofTCP.contains("--tcp") == (code == EADDRINUSE), "\(ofTCP)")
    }
}

@Suite struct `Connections on their way from a mixed port` {
    private let inbox = ConnectionInbox(of: TransportAddress(ip: .loopback, port: 9))

    private func arrival(_ descriptor: Int32 = -1, from port: UInt16 = 1) -> ConnectionArrival {
        let remote = TransportAddress(ip: .loopback, port: port, transport: .tcp)
        return ConnectionArrival(descriptor: descriptor, remote: remote, begunTLS: nil)
    }

    @Test func `are refused while nobody takes them, and where too many wait`() throws {
        var taken = 0
        let isEarly = inbox.put(arrival()) { taken += 1 }
        #expect(!isEarly && taken == 0)
        let waker = try Waker()
        inbox.open(waking: waker)
        var kept = 0
        for port in 0..<600 as Range<UInt16> {
            let isKept = inbox.put(arrival(from: port)) { taken += 1 }
            kept += isKept ? 1 : 0
        }
        #expect(kept == 512 && taken == 512)
        #expect(waker.isPending)
        #expect(inbox.take().map(\.remote.port) == Array(0..<512))
        #expect(inbox.take().isEmpty)
        #expect(inbox.put(arrival(from: 7)))
        #expect(inbox.take().map(\.remote.port) == [7])
    }

    @Test func `are closed where the server ends before it takes them`() throws {
        var ends: [Int32] = [-1, -1]
        let made = socketpair(AF_UNIX, Int32(SOCK_STREAM.rawValue), 0, &ends)
        try #require(made == 0)
        defer { close(ends[1]) }
        inbox.open(waking: try Waker())
        #expect(inbox.put(arrival(ends[0])))
        inbox.close()
        var byte: UInt8 = 0
        let count = recv(ends[1], &byte, 1, 0)
        #expect(count == 0)
        #expect(inbox.take().isEmpty)
        #expect(!inbox.put(arrival()))
    }
}
