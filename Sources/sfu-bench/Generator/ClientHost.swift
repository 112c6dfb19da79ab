import Base
import Crypto
import Net
import Peer
import Synchronization

/// What the generator threads share with the tasks that control the run.
final class GeneratorShared: Sendable {
    /// One per thread, replaced as a whole.
    private let snapshots: Mutex<[Snapshot]>
    private let notices = Mutex<[Notice]>([])

    init(threads: Int) {
        snapshots = Mutex(Array(repeating: Snapshot(), count: threads))
    }

    func publish(_ snapshot: Snapshot, thread: Int) {
        snapshots.withLock { $0[thread] = snapshot }
    }

    /// The latest snapshot of each thread, at most `ClientHost.snapshotInterval` old.
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
///
/// Owned by its thread. Other tasks reach it by commands, and read `GeneratorShared`.
struct ClientHost: ClientHandler {
    typealias Command = GeneratorCommand

    private struct Entry {
        let client: Client
        /// Whether its timers must be more precise than the sweep.
        let isPrecise: Bool
        /// When `advance` must be called on the client.
        var deadline: MonotonicTime
    }

    /// Between two passes over all clients, in nanoseconds: the resolution of most viewers' timers.
    ///
    /// Publishers, and viewers behind an emulated link, have exact timers.
    private static let sweepInterval: Int64 = 5_000_000
    /// Between two snapshots, in nanoseconds.
    static let snapshotInterval: Int64 = 100_000_000
    /// A viewer without media for longer than this is stalled, in nanoseconds.
    private static let stall: Int64 = 1_000_000_000

    private let thread: Int
    private let shared: GeneratorShared
    private let sockets: ClientSockets
    private let buffer: DirectSinkBuffer
    private let dtls: DTLSContext
    private let clock: WallClock
    private let box = TallyBox()
    /// The tally of viewers that were playing before a storm of joins.
    private let earlierBox = TallyBox()
    private var random: SplitMix64
    private var entries: [Int: Entry] = [:]
    /// Ids of the publishers, which a snapshot counts.
    private var publishers: Set<Int> = []
    /// Ids of the clients with exact timers.
    private var precise: Set<Int> = []
    private var line = HandshakeLine<ClientSetup>()
    /// When the deadlines of all clients are checked next.
    private var nextSweep: MonotonicTime
    private var nextSnapshot: MonotonicTime
    /// The earliest deadline of the clients with exact timers, or earlier.
    private var nextPrecise = MonotonicTime.distantFuture
    /// Datagrams that the kernel dropped at sockets that are closed now.
    private var lostBefore: UInt64 = 0
    /// Milestones that have not been published yet.
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
            // A client that only connects waits for its turn.
            if case .connect = setup.purpose { line.append(setup) } else { add(setup, at: now) }
        case .remove(let id, let done):
            remove(id)
            done.resume()
        }
    }

    /// Creates a client and registers its socket; a socket that cannot be registered fails the client.
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
            // A plain viewer: it is removed as soon as its handshake ends, before media matters.
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

    /// Says goodbye to the server and closes the socket; its count of dropped datagrams is kept.
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

    /// Reads a client's deadline again after something may have changed it.
    private mutating func setDeadline(_ id: Int, _ entry: Entry) {
        let deadline = entry.client.deadline
        entries[id]?.deadline = deadline
        if entry.isPrecise { nextPrecise = min(nextPrecise, deadline) }
    }

    // MARK: Time

    var deadline: MonotonicTime? { min(nextSweep, nextSnapshot, nextPrecise) }

    mutating func advance(to now: MonotonicTime) {
        if nextPrecise <= now {
            // Computed again below, by each of the precise clients.
            nextPrecise = .distantFuture
            for id in precise { advanceIfDue(id, to: now) }
        }
        if nextSweep <= now {
            nextSweep = now.advanced(byNanoseconds: Self.sweepInterval)
            for (id, entry) in entries where entry.deadline <= now { advance(id, entry, to: now) }
            // The line reads the notices, so it moves before they are handed over.
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

    /// Removes clients whose handshake has ended, and starts the next ones in the line.
    private mutating func moveLine(at now: MonotonicTime) {
        for id in line.take(notices) { remove(id) }
        while let setup = line.start() { add(setup, at: now) }
    }

    private mutating func tellNotices() {
        guard !notices.isEmpty else { return }
        shared.append(notices)
        notices.removeAll(keepingCapacity: true)
    }

    /// Publishes the counters; reads the CPU time of the calling thread, so it must run on the generator thread.
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

    /// Disconnects all clients, then publishes the final milestones and counters.
    mutating func stop(at now: MonotonicTime) {
        for id in Array(entries.keys) { remove(id) }
        tellNotices()
        publishSnapshot(at: now)
    }
}
