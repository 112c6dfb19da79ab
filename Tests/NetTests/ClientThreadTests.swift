import Base
import Dispatch
import Net
import Synchronization
import Testing

/// Writes down when each datagram came, and when it was told of it.
private struct Watch: ClientHandler {
    enum Command: Sendable {
        case listen(DatagramSocket)
        /// Holds the thread until the second one is signalled.
        case wait(DispatchSemaphore, DispatchSemaphore)
        case nothing
    }

    struct Reception: Sendable {
        let arrival: MonotonicTime
        let told: MonotonicTime
    }

    /// What came, and a signal for each.
    final class Notes: Sendable {
        let receptions = Mutex<[Reception]>([])
        let news = DispatchSemaphore(value: 0)
    }

    let sockets: ClientSockets
    let notes: Notes
    var deadline: MonotonicTime? { nil }

    mutating func perform(_ command: Command, at now: MonotonicTime) {
        switch command {
        case .listen(let socket): _ = sockets.add(.datagram(socket), token: 1)
        case .wait(let arrival, let opening):
            arrival.signal()
            opening.wait()
        case .nothing: break
        }
    }

    mutating func receive(
        _ datagram: inout MutableSpan<UInt8>, token: Int, from source: TransportAddress,
        arrival: MonotonicTime, at now: MonotonicTime
    ) {
        notes.receptions.withLock { $0.append(Reception(arrival: arrival, told: now)) }
        notes.news.signal()
    }

    mutating func advance(to now: MonotonicTime) {}
    mutating func stop(at now: MonotonicTime) {}
}

/// Sends one datagram while the thread cannot read, and notes the time before it goes on.
private struct Rig {
    let thread: ClientThread<Watch>
    private let notes: Watch.Notes
    private let socket: DatagramSocket

    init(stamping: Bool) throws {
        let notes = Watch.Notes()
        socket = try DatagramSocket(bind: TransportAddress(ip: .loopback, port: 0), stamping: stamping)
        thread = try ClientThread(name: "test-clients", cpu: nil, coalesces: false) { start in
            Watch(sockets: start.sockets, notes: notes)
        }
        thread.post(.listen(socket))
        self.notes = notes
    }

    func sendWhileHeld(
        from remote: inout Remote
    ) -> (before: MonotonicTime, after: MonotonicTime, Watch.Reception?) {
        let (arrival, opening) = (DispatchSemaphore(value: 0), DispatchSemaphore(value: 0))
        thread.post(.wait(arrival, opening))
        arrival.wait()
        let before = MonotonicClock.now()
        remote.send([[1]], to: socket.localAddress)
        let after = MonotonicClock.now()
        opening.signal()
        notes.news.wait()
        return (before, after, notes.receptions.withLock { $0.popLast() })
    }
}

@Suite(.timeLimit(.minutes(10))) struct `A thread of clients` {
    @Test func `tells when a datagram reached its socket, however late it reads that`() throws {
        let rig = try Rig(stamping: true)
        var remote = try Remote()
        defer { rig.thread.stop() }
        var latest: (before: MonotonicTime, after: MonotonicTime, Watch.Reception?)?
        // The kernel begins to note the time soon after it was asked, and says until then when it was read.
        for _ in 0..<10_000 {
            let round = rig.sendWhileHeld(from: &remote)
            latest = round
            let reception = try #require(round.2)
            #expect(reception.arrival <= reception.told)
            if round.before <= reception.arrival, reception.arrival <= round.after { return }
        }
        Issue.record("not between sending and reading: \(String(describing: latest))")
    }

    @Test func `takes what releases something although too much waits`() throws {
        let rig = try Rig(stamping: false)
        defer { rig.thread.stop() }
        let (arrival, opening) = (DispatchSemaphore(value: 0), DispatchSemaphore(value: 0))
        rig.thread.post(.wait(arrival, opening))
        arrival.wait()
        var count = 0
        while rig.thread.post(.nothing) { count += 1 }
        #expect(count == ClientThread<Watch>.mailboxLimit)
        #expect(rig.thread.post(.nothing, isEssential: true))
        opening.signal()
    }

    @Test func `takes the time of reading where the kernel tells none`() throws {
        let rig = try Rig(stamping: false)
        var remote = try Remote()
        defer { rig.thread.stop() }
        let (_, after, reception) = rig.sendWhileHeld(from: &remote)
        let found = try #require(reception)
        #expect(found.arrival == found.told)
        #expect(found.told >= after)
    }
}
