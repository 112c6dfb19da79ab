import Base
import Dispatch
import Foundation
import Glibc
import Net
import Synchronization
import Testing

/// Sends back what it gets, and says what it is told to say.
private struct Echo: DatagramHandler {
    enum Command: Sendable {
        case say([UInt8], to: TransportAddress)
        /// Say it after so many nanoseconds.
        case sayLater([UInt8], to: TransportAddress, after: Int64)
        /// Say this at the end of the batch in which no datagram and no command came.
        case sayWhenWoken([UInt8], to: TransportAddress)
        /// Say that this is being done, and do nothing else until it may go on.
        case hold(begun: DispatchSemaphore, goOn: DispatchSemaphore)
    }

    private(set) var deadline: MonotonicTime?
    private var later: ([UInt8], TransportAddress)?
    private var whenWoken: ([UInt8], TransportAddress)?
    private var farewell: TransportAddress?
    private var isBusy = false

    mutating func perform(_ command: Command, at now: MonotonicTime, into sink: inout SendBatch) {
        isBusy = true
        switch command {
        case .say(let bytes, let destination):
            sink.append(bytes, to: destination)
            farewell = destination
        case .sayLater(let bytes, let destination, let wait):
            later = (bytes, destination)
            deadline = now.advanced(byNanoseconds: wait)
        case .sayWhenWoken(let bytes, let destination):
            whenWoken = (bytes, destination)
            sink.append([0], to: destination)
        case .hold(let begun, let goOn):
            begun.signal()
            goOn.wait()
        }
    }

    mutating func receive(
        _ datagram: inout MutableSpan<UInt8>, from source: TransportAddress, at now: MonotonicTime,
        into sink: inout SendBatch
    ) {
        isBusy = true
        sink.append(datagram.withUnsafeBytes { Array($0) }, to: source)
    }

    mutating func endOfBatch(at now: MonotonicTime, into sink: inout SendBatch) {
        if !isBusy, let (bytes, destination) = whenWoken {
            sink.append(bytes, to: destination)
            whenWoken = nil
        }
        isBusy = false
    }

    mutating func advance(to now: MonotonicTime, into sink: inout SendBatch) {
        guard let deadline, deadline <= now, let (bytes, destination) = later else { return }
        sink.append(bytes, to: destination)
        self.deadline = nil
    }

    mutating func stop(at now: MonotonicTime, into sink: inout SendBatch) {
        if let farewell { sink.append([0xFF], to: farewell) }
    }
}

@Suite struct `A worker` {
    private func echo(
        _ address: IPAddress = .loopback, _ change: (inout WorkerConfiguration) -> Void = { _ in }
    ) throws -> WorkerThread<Echo> {
        var configuration = WorkerConfiguration(address: TransportAddress(ip: address, port: 0))
        change(&configuration)
        return try WorkerThread(configuration) { _ in Echo() }
    }

    @Test func `tells the port that the kernel chose`() throws {
        let worker = try echo()
        #expect(worker.localAddress.ip == .loopback)
        #expect(worker.localAddress.port != 0)
        worker.stop()
    }

    @Test func `hands datagrams to its handler and sends what that wrote`() throws {
        let worker = try echo()
        var remote = try Remote()
        let sent = (0..<100).map { datagram($0, size: 40 + $0) }
        // All of them wait for it, however fast it is.
        let (begun, goOn) = (DispatchSemaphore(value: 0), DispatchSemaphore(value: 0))
        #expect(worker.post(.hold(begun: begun, goOn: goOn)))
        begun.wait()
        remote.send(sent, to: worker.localAddress)
        goOn.signal()
        let echoed = remote.receive(100)
        #expect(echoed.map(\.bytes) == sent)
        #expect(echoed.allSatisfy { $0.source == worker.localAddress })
        worker.stop()
        let traffic = worker.statistics.traffic
        #expect(traffic.datagramsIn == 100)
        #expect(traffic.datagramsOut == 100)
        #expect(traffic.bytesIn == traffic.bytesOut)
        #expect(traffic.receiveCalls < 100)
        #expect(worker.statistics.processorNanoseconds > 0)
        #expect(worker.statistics.latency.count == 100)
        #expect(worker.statistics.busyNanoseconds > 0)
        // Each batch took no longer than all of them.
        #expect(worker.statistics.latency.nanoseconds <= 100 * UInt64(worker.statistics.busyNanoseconds))
    }

    @Test func `carries out commands from any thread, and says goodbye when stopped`() throws {
        let worker = try echo()
        var remote = try Remote()
        #expect(worker.post(.say([1, 2, 3], to: remote.address)))
        #expect(remote.receive(1).map(\.bytes) == [[1, 2, 3]])
        #expect(worker.post(.say([4], to: remote.address)))
        worker.stop()
        #expect(remote.receiveWaiting().map(\.bytes) == [[4], [0xFF]])
        #expect(!worker.post(.say([5], to: remote.address)))
        #expect(worker.statistics.commands == 2)
        worker.stop()
    }

    @Test func `says goodbye also when it is let go`() throws {
        var remote = try Remote()
        var worker: WorkerThread<Echo>? = try echo()
        #expect(worker?.post(.say([1], to: remote.address)) == true)
        worker = nil
        #expect(remote.receive(2).map(\.bytes) == [[1], [0xFF]])
    }

    @Test func `keeps its handler's deadline, not before and not much later`() throws {
        let worker = try echo()
        var remote = try Remote()
        var shortest = Int64.max
        // The machine may be busy once, and a second time.
        for _ in 0..<20 where shortest >= 900_000_000 {
            let begin = MonotonicClock.now()
            #expect(worker.post(.sayLater([9], to: remote.address, after: 3_500_000)))
            #expect(remote.receive(1).map(\.bytes) == [[9]])
            let waited = MonotonicClock.now().nanoseconds(since: begin)
            #expect(waited >= 3_500_000)
            shortest = min(shortest, waited)
        }
        // The next wake-up without a deadline would be that of the statistics, after a second.
        #expect(shortest < 900_000_000)
        worker.stop()
    }

    @Test func `runs its handler's end of batch when it is woken from outside`() throws {
        let worker = try echo()
        var remote = try Remote()
        #expect(worker.post(.sayWhenWoken([7], to: remote.address)))
        #expect(remote.receive(1).map(\.bytes) == [[0]])
        let waker = worker.waker
        waker.wake()
        waker.wake()
        #expect(remote.receive(1).map(\.bytes) == [[7]])
        worker.stop()
    }

    @Test func `comes before other threads, or after them, as it is told`() throws {
        // Whoever runs this may come after others; before them not everybody.
        let worker = try echo {
            $0.name = "rostrum-after"
            $0.niceness = 3
        }
        var remote = try Remote()
        remote.send([[7]], to: worker.localAddress)
        #expect(remote.receive(1).map(\.bytes) == [[7]])
        #expect(try niceness(ofThread: "rostrum-after") == 3)
        worker.stop()
    }

    /// - Source: proc_pid_stat(5): the name in parentheses, and the seventeenth field after it.
    private func niceness(ofThread name: String) throws -> Int? {
        for thread in try FileManager.default.contentsOfDirectory(atPath: "/proc/self/task") {
            // Threads of other tests come and go.
            let text = try? String(contentsOfFile: "/proc/self/task/\(thread)/stat", encoding: .utf8)
            guard let text, text.contains("(\(name))") else { continue }
            let fields = text.split(separator: ")").last?.split(separator: " ") ?? []
            return fields.count > 16 ? Int(fields[16]) : nil
        }
        return nil
    }

    @Test func `has done what was asked for before a datagram was sent when that comes`() throws {
        let diary = Diary()
        let address = TransportAddress(ip: .loopback, port: 0)
        let worker = try WorkerThread(WorkerConfiguration(address: address)) { _ in diary }
        var remote = try Remote()
        // Holds the thread while there is something to read and something to do for its next turn.
        let (first, second) = (Gate(), Gate())
        #expect(worker.post(.wait(first)))
        first.arrival.wait()
        remote.send([[1]], to: worker.localAddress)
        #expect(worker.post(.wait(second)))
        first.opening.signal()
        // Holds it again in that turn, when it knows that there are datagrams, and has not read them.
        second.arrival.wait()
        #expect(worker.post(.note))
        remote.send([[2]], to: worker.localAddress)
        second.opening.signal()
        worker.stop()
        #expect(diary.lines.withLock(\.self) == ["noted", "received 1", "received 2"])
    }

    @Test func `sends what had to wait as soon as there is room`() throws {
        let worker = try echo { configuration in
            let kernel = BusyKernel(refusals: 1)
            configuration.refuse = { _ in kernel.answer() }
        }
        var remote = try Remote()
        #expect(worker.post(.say([1], to: remote.address)))
        #expect(remote.receive(1).map(\.bytes) == [[1]])
        worker.stop()
        #expect(worker.statistics.traffic.delayed == 1)
        #expect(worker.statistics.traffic.droppedBufferFull == 0)
    }

    @Test func `takes IPv4 and IPv6 on one socket when bound to the unspecified IPv6 address`() throws {
        guard let worker = try? echo(IPAddress(high: 0, low: 0)) else {
            withKnownIssue("this machine has no IPv6") { Issue.record("skipped") }
            return
        }
        let port = worker.localAddress.port
        for ip in [IPAddress.loopback, IPAddress(high: 0, low: 1)] {
            var remote = try Remote(ip)
            remote.send([[1, 2]], to: TransportAddress(ip: ip, port: port))
            let echoed = remote.receive(1)
            #expect(echoed.map(\.bytes) == [[1, 2]])
            #expect(echoed.map(\.source) == [TransportAddress(ip: ip, port: port)])
        }
        worker.stop()
    }

    @Test func `runs under its own name, on the CPU it is given`() throws {
        let cpu = try #require(ProcessResources.processors().last)
        let worker = try echo {
            $0.index = 77
            $0.cpu = cpu
        }
        // It has named itself before it answers.
        var remote = try Remote()
        remote.send([[1]], to: worker.localAddress)
        #expect(remote.receive(1).count == 1)
        let statuses = threadStatuses().filter { $0.contains("Name:\trostrum-w77\n") }
        #expect(statuses.count == 1)
        #expect(statuses.allSatisfy { $0.contains("Cpus_allowed_list:\t\(cpu)\n") })
        #expect(worker.isPinned)
        worker.stop()
    }

    /// What the kernel says of each thread of this process.
    private func threadStatuses() -> [String] {
        var result: [String] = []
        guard let directory = opendir("/proc/self/task") else { return [] }
        defer { closedir(directory) }
        while let entry = readdir(directory) {
            let name = withUnsafeBytes(of: entry.pointee.d_name) {
                String(decoding: $0.prefix { $0 != 0 }, as: UTF8.self)
            }
            guard let file = fopen("/proc/self/task/\(name)/status", "r") else { continue }
            defer { fclose(file) }
            var buffer = [UInt8](repeating: 0, count: 8_192)
            let count = fread(&buffer, 1, buffer.count, file)
            result.append(String(decoding: buffer.prefix(count), as: UTF8.self))
        }
        return result
    }
}

/// Where a test holds a worker's thread.
private struct Gate: Sendable {
    let arrival = DispatchSemaphore(value: 0)
    let opening = DispatchSemaphore(value: 0)
}

/// Writes down what comes, in which order.
private final class Diary: DatagramHandler, Sendable {
    enum Command: Sendable {
        case wait(Gate)
        case note
    }

    let lines = Mutex<[String]>([])
    var deadline: MonotonicTime? { nil }

    func perform(_ command: Command, at now: MonotonicTime, into sink: inout SendBatch) {
        switch command {
        case .wait(let gate):
            gate.arrival.signal()
            gate.opening.wait()
        case .note: lines.withLock { $0.append("noted") }
        }
    }

    func receive(
        _ datagram: inout MutableSpan<UInt8>, from source: TransportAddress, at now: MonotonicTime,
        into sink: inout SendBatch
    ) {
        let first = datagram[0]
        lines.withLock { $0.append("received \(first)") }
    }

    func endOfBatch(at now: MonotonicTime, into sink: inout SendBatch) {}
    func advance(to now: MonotonicTime, into sink: inout SendBatch) {}
    func stop(at now: MonotonicTime, into sink: inout SendBatch) {}
}

/// Says a number of times that the socket's buffer is full.
private final class BusyKernel: Sendable {
    private let left: Mutex<Int>

    init(refusals: Int) {
        left = Mutex(refusals)
    }

    func answer() -> Int32? {
        left.withLock { left in
            left -= 1
            return left >= 0 ? EAGAIN : nil
        }
    }
}
