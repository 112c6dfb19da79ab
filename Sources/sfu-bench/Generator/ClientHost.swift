import Base
import Crypto
import Net
import Peer
import Synchronization

/// What generator threads share with whoever runs them.
final class GeneratorShared: Sendable {
    private let snapshots: Mutex<[Snapshot]>
    private let notices = Mutex<[Notice]>([])

    init(threads: Int) {
        snapshots = Mutex(Array(repeating: Snapshot(), count: threads))
    }

    func publish(_ snapshot: Snapshot, thread: Int) {
        snapshots.withLock { $0[thread] = snapshot }
    }

    /// One of each thread, at most `ClientHost.snapshotInterval` old.
    var all: [Snapshot] { snapshots.withLock { $0 } }

    func append(_ new: [Notice]) {
        notices.withLock { $0 += new }
    }

    /// Milestones since the last call.
    func takeNotices() -> [Notice] {
        notices.withLock { notices in
            defer { notices.removeAll() }
            return notices
        }
    }
}

/// The clients of one generator thread.
struct ClientHost: ClientHandler {
    typealias Command = GeneratorCommand

    private struct Entry {
        let client: Client
        /// Whether its timers must be finer than those of a sweep.
        let isPrecise: Bool
        /// When its `advance` wants to be called.
        var deadline: MonotonicTime
    }

    /// Timers of viewers are no finer than this; those of publishers, and of viewers behind a link, are.
    private static let sweepInterval: Int64 = 5_000_000
    static let snapshotInterval: Int64 = 100_000_000
    /// A viewer without packets for longer is stalled.
    private static let stall: Int64 = 1_000_000_000

    private let thread: Int
    private let shared: GeneratorShared
    private let sockets: ClientSockets
    private let buffer: DirectSinkBuffer
    private let dtls: DTLSContext
    private let clock: WallClock
    private let box = TallyBox()
    /// Of viewers who play before a storm.
    private let earlierBox = TallyBox()
    private var random: SplitMix64
    private var entries: [Int: Entry] = [:]
    private var publishers: Set<Int> = []
    private var precise: Set<Int> = []
    private var line = HandshakeLine<ClientSetup>()
    /// When deadlines are looked at again.
    private var nextSweep: MonotonicTime
    private var nextSnapshot: MonotonicTime
    private var nextPrecise = MonotonicTime.distantFuture
    /// Datagrams lost at sockets that are closed by now.
    private var lostBefore: UInt64 = 0
    private var notices: [Notice] = []

    init(
        _ start: ClientStart, thread: Int, shared: GeneratorShared, dtls: DTLSContext, clock: WallClock,
        seed: UInt64
    ) {
        self.thread = thread
        self.shared = shared
        sockets = start.sockets
        buffer = start.buffer
        self.dtls = dtls
        self.clock = clock
        random = SplitMix64(seed: seed)
        nextSweep = start.now
        nextSnapshot = start.now
    }

    // MARK: Commands

    mutating func perform(_ command: GeneratorCommand, at now: MonotonicTime) {
        switch command {
        case .add(let setup):
            if case .connect = setup.purpose { line.append(setup) } else { add(setup, at: now) }
        case .remove(let id, let done):
            remove(id)
            done.resume()
        }
    }

    private mutating func add(_ setup: ClientSetup, at now: MonotonicTime) {
        guard entries[setup.id] == nil, sockets.add(setup.socket, token: setup.id),
            let sink = sockets.sink(of: setup.id, buffer: buffer)
        else {
            notices.append(Notice(id: setup.id, milestone: .failed, time: now))
            return
        }
        let surroundings = ClientSurroundings(
            dtls: dtls, sink: sink, box: setup.isEarlier ? earlierBox : box, clock: clock)
        let seed = random.next()
        var isPrecise = false
        let client: Client
        switch setup.purpose {
        case .view(let settings): client = Viewer(setup, settings, surroundings, seed: seed, at: now)
        case .connect:
            let settings = ViewerSettings(decryptEvery: 1, asksForRepair: false)
            client = Viewer(setup, settings, surroundings, seed: seed, at: now)
        case .swipe(let settings): client = FeedViewer(setup, settings, surroundings, seed: seed, at: now)
        case .publish(let settings):
            client = Publisher(setup, settings, surroundings, seed: seed, at: now)
            isPrecise = true
            publishers.insert(setup.id)
        case .watch(let settings):
            client = NetworkViewer(setup, settings, surroundings, seed: seed, at: now)
            isPrecise = true
        }
        let entry = Entry(client: client, isPrecise: isPrecise, deadline: now)
        entries[setup.id] = entry
        if isPrecise { precise.insert(setup.id) }
        advance(setup.id, entry, to: now)
    }

    private mutating func remove(_ id: Int) {
        guard let entry = entries.removeValue(forKey: id) else { return }
        publishers.remove(id)
        precise.remove(id)
        entry.client.leave()
        lostBefore &+= sockets.remove(token: id)
    }

    // MARK: Datagrams

    mutating func receive(
        _ datagram: inout MutableSpan<UInt8>, token: Int, from source: TransportAddress,
        arrival: MonotonicTime, at now: MonotonicTime
    ) {
        guard let entry = entries[token] else { return }
        if entry.client.receive(&datagram, from: source, arrival: arrival, at: now) {
            setDeadline(token, entry)
        }
        if entry.client.hasMilestones { notices += entry.client.takeMilestones() }
    }

    private mutating func setDeadline(_ id: Int, _ entry: Entry) {
        let deadline = entry.client.deadline
        entries[id]?.deadline = deadline
        if entry.isPrecise { nextPrecise = min(nextPrecise, deadline) }
    }

    // MARK: Time

    var deadline: MonotonicTime? { min(nextSweep, nextSnapshot, nextPrecise) }

    mutating func advance(to now: MonotonicTime) {
        if nextPrecise <= now {
            nextPrecise = .distantFuture
            for id in precise { advanceIfDue(id, to: now) }
        }
        if nextSweep <= now {
            nextSweep = now.advanced(byNanoseconds: Self.sweepInterval)
            for (id, entry) in entries where entry.deadline <= now { advance(id, entry, to: now) }
            moveLine(at: now)
            tellNotices()
        }
        if nextSnapshot <= now {
            nextSnapshot = now.advanced(byNanoseconds: Self.snapshotInterval)
            publishSnapshot(at: now)
        }
    }

    private mutating func advanceIfDue(_ id: Int, to now: MonotonicTime) {
        guard let entry = entries[id] else { return }
        if entry.deadline <= now {
            advance(id, entry, to: now)
        } else {
            nextPrecise = min(nextPrecise, entry.deadline)
        }
    }

    private mutating func advance(_ id: Int, _ entry: Entry, to now: MonotonicTime) {
        entry.client.advance(to: now)
        setDeadline(id, entry)
        if entry.client.hasMilestones { notices += entry.client.takeMilestones() }
    }

    /// Lets those go who have connected, and others come.
    private mutating func moveLine(at now: MonotonicTime) {
        for id in line.take(notices) { remove(id) }
        while let setup = line.start() { add(setup, at: now) }
    }

    private mutating func tellNotices() {
        guard !notices.isEmpty else { return }
        shared.append(notices)
        notices.removeAll(keepingCapacity: true)
    }

    private mutating func publishSnapshot(at now: MonotonicTime) {
        var snapshot = Snapshot()
        box.tally.droppedByKernel = lostBefore &+ sockets.droppedByKernel
        let sent = buffer.counters
        box.tally.unsent = sent.droppedBufferFull &+ sent.droppedOther &+ sent.droppedTooLarge
        box.tally.processorTime = ProcessorClock.threadNanoseconds()
        snapshot.earlier = earlierBox.tally
        snapshot.tally = box.tally + earlierBox.tally
        snapshot.time = now
        snapshot.publishers = publishers.count
        snapshot.viewers = entries.count - publishers.count
        for entry in entries.values {
            guard let last = entry.client.lastPacket else { continue }
            if now.nanoseconds(since: last) > Self.stall { snapshot.stalled += 1 }
        }
        shared.publish(snapshot, thread: thread)
    }

    mutating func stop(at now: MonotonicTime) {
        for id in Array(entries.keys) { remove(id) }
        tellNotices()
        publishSnapshot(at: now)
    }
}
