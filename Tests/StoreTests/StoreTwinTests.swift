import Base
import Store
import Synchronization
import TestSupport
import Testing

private let names = ["a", "b", "c", "d"]
private let receivers = ["r1", "r2", "r3"]

/// Two stores that are asked for the same: what one answers, the other must.
private struct StoreTwins {
    private let settings: SQLiteSettings
    let memory: MemoryStore
    private var sqlite: SQLiteStore
    /// Events that the file's earlier openings dropped.
    private var dropped: UInt64 = 0

    init(directory: String, limits: OutboxLimits) async throws {
        var settings = SQLiteSettings(directory: directory)
        settings.outbox = limits
        self.settings = settings
        memory = MemoryStore(limits: limits)
        sqlite = try await SQLiteStore.open(settings, log: .silent)
    }

    func close() async {
        await memory.close()
        await sqlite.close()
    }

    /// Opens the file again; whoever opens it says who receives.
    mutating func reopen(for receivers: [String]) async throws {
        dropped += sqlite.statistics.droppedEvents
        await sqlite.close()
        sqlite = try await SQLiteStore.open(settings, log: .silent)
        _ = try await same("receivers") { store in
            try await store.outbox.setReceivers(receivers)
            return true
        }
    }

    /// What both answer.
    @discardableResult
    func same<Value: Equatable & Sendable>(
        _ what: String, _ ask: (any StreamStore) async throws -> Value
    ) async throws -> Value {
        let left = try await ask(memory)
        let right = try await ask(sqlite)
        #expect(left == right, "\(what)")
        return left
    }

    /// Submits commits without waiting in between.
    func submit(_ commits: [StreamCommit]) async throws {
        try await same("the outcome of commits") { store in
            let outcomes = Mutex<[StoreError?]>([])
            for commit in commits {
                store.submit(commit) { outcome in
                    let refusal: StoreError? = if case .failure(let error) = outcome { error } else { nil }
                    outcomes.withLock { $0.append(refusal) }
                }
            }
            // What was submitted before a question is answered before it.
            _ = try await store.load(.open)
            return outcomes.withLock { $0 }
        }
    }

    /// Compares everything that can be asked.
    func compare(using maker: inout CommitMaker) async throws {
        try await same("all streams") { try await $0.load(.all) }
        try await same("open streams") { try await $0.load(.open) }
        let query = maker.query()
        try await same("a list") { try await $0.list(query) }
        let (end, limit) = (Int64(maker.number(0...120)), maker.number(-1...3))
        let old = try await same("ended streams") { try await $0.ended(before: end, after: nil, limit: 9) }
        let last = maker.element(of: old)
        try await same("more ended streams") { try await $0.ended(before: end, after: last, limit: limit) }
        for name in names {
            let after = maker.number(0...30)
            let page = maker.archiveQuery()
            try await same("a ledger") { try await $0.ledger(of: stream(name), after: after, limit: limit) }
            try await same("an entry") { try await $0.ledgerEntry("k\(after)", of: stream(name)) }
            try await same("an archive") { try await $0.archive(of: stream(name), page) }
            try await same("old entries") { try await $0.archived(of: stream(name), writtenBefore: end) }
        }
        for number in 0..<3 {
            let key = IdempotencyKey(scope: "s", key: "\(number)")
            try await same("an answer") { try await $0.answer(to: key, at: end) }
        }
        let time = maker.number(0...Int(maker.time))
        for receiver in receivers {
            try await same("due events") { try await $0.outbox.due(for: receiver, at: Int64(time), limit: 9) }
            try await same("a page of due events") {
                try await $0.outbox.due(for: receiver, at: Int64(time), limit: limit)
            }
            try await same("the next time") { try await $0.outbox.nextDue(for: receiver, after: Int64(time)) }
        }
        #expect(memory.statistics.waitingEvents == sqlite.statistics.waitingEvents)
        #expect(memory.statistics.droppedEvents == sqlite.statistics.droppedEvents + dropped)
    }
}

/// Makes commits and questions at random, some of which must be refused.
private struct CommitMaker {
    private var random: SeededGenerator
    /// Numbers of ledgers, archives and events, each of which is used once.
    private var last = 0
    /// The latest time of an attempt; no two attempts have the same.
    private(set) var time: Int64 = 0
    /// The version of each stream, as far as it is known.
    var versions: [StreamID: UInt64] = [:]

    init(seed: UInt64) {
        random = SeededGenerator(seed: seed)
    }

    mutating func number(_ range: ClosedRange<Int>) -> Int {
        Int.random(in: range, using: &random)
    }

    /// True once in so many times.
    mutating func once(in times: Int) -> Bool {
        number(1...times) == 1
    }

    mutating func element<Element>(of list: [Element]) -> Element? {
        list.randomElement(using: &random)
    }

    mutating func some(of list: [String]) -> [String] {
        list.filter { _ in Bool.random(using: &random) }
    }

    private mutating func next() -> Int {
        last += 1
        return last
    }

    private mutating func bytes() -> [UInt8] {
        (0..<number(0...20)).map { _ in UInt8.random(in: 0...255, using: &random) }
    }

    mutating func commit() -> StreamCommit {
        let name = names[number(0...3)]
        let known = versions[stream(name)] ?? 0
        let basis = once(in: 8) ? UInt64(number(0...3)) : known
        var commit = StreamCommit(stream: stream(name), basis: basis)
        for _ in 0..<number(0...3) { commit.records.append(bytes()) }
        let isListed = basis == 0 ? !once(in: 6) : once(in: 3)
        if isListed { commit.listing = anyListing(name) }
        if once(in: 4) { commit.snapshot = bytes() }
        if once(in: 4) {
            let key = IdempotencyKey(scope: "s", key: "\(number(0...2))")
            let expiry = Int64(number(0...120))
            commit.answer = (key, IdempotentAnswer(request: bytes(), answer: bytes(), expiresAt: expiry))
        }
        for _ in 0..<number(0...2) { commit.events.append(anyEvent()) }
        commit.clearsLedger = once(in: 8)
        for _ in 0..<number(0...2) {
            let entry = next()
            commit.ledger.append(LedgerEntry(number: entry, key: "k\(entry)", bytes: bytes()))
        }
        for _ in 0..<number(0...2) {
            let (entry, writtenAt) = (next(), Int64(number(0...120)))
            let reader = once(in: 3) ? "bob" : nil
            commit.archive.entries.append(
                ArchiveEntry(number: entry, writtenAt: writtenAt, reader: reader, bytes: bytes()))
        }
        for _ in 0..<number(0...2) { commit.archive.removed.append(number(1...(last + 1))) }
        if once(in: 5) { commit.archive.expiry = Int64(number(0...60)) }
        versions[commit.stream] = commit.version
        return commit
    }

    private mutating func anyListing(_ name: String) -> StreamListing {
        let end = once(in: 3) ? Int64(number(0...100)) : nil
        return listing(
            name, state: once(in: 2) ? "live" : "it's", host: once(in: 2) ? "ann" : "bob",
            createdAt: Int64(number(0...5)), endedAt: end)
    }

    private mutating func anyEvent() -> OutboxEvent {
        let types = ["stream.live", "participant.joined", "participant.left"]
        let type = types[number(0...2)]
        return OutboxEvent(
            id: "evt-\(next())", type: type, committedAt: Int64(number(0...100)), body: bytes())
    }

    mutating func outcome(of delivery: Delivery?) -> DeliveryOutcome {
        // Without a delivery, one that nobody knows.
        let event = delivery.map(\.number) ?? 9_999
        switch number(0...9) {
        case 0: return .gone(receivers[number(0...2)])
        case 1, 2: return .dropped(event)
        case 3...6:
            time += Int64(number(1...30))
            return .failed(event, nextAttemptAt: time)
        default: return .delivered(event)
        }
    }

    mutating func query() -> StreamQuery {
        var query = StreamQuery()
        query.states = some(of: ["live", "it's", "gone"])
        let hosts: [String?] = ["ann", "bob", nil, nil]
        query.host = hosts[number(0...3)]
        query.limit = number(-1...4)
        if once(in: 2) { query.after = (Int64(number(0...5)), stream(names[number(0...3)])) }
        return query
    }

    mutating func archiveQuery() -> ArchiveQuery {
        var query = ArchiveQuery(limit: number(-1...5))
        query.after = number(0...last)
        if once(in: 2) { query.before = number(0...(last + 1)) }
        if once(in: 2) { query.written = Int64(number(0...50))..<Int64(number(50...120)) }
        query.readers = once(in: 3) ? .all : .everybody(or: once(in: 2) ? "bob" : nil)
        query.isNewestFirst = once(in: 2)
        return query
    }
}

@Suite struct `A store on the disk` {
    /// Lanes and the whole outbox are short, so that they are full again and again.
    @Test(arguments: 0..<6 as Range<UInt64>)
    func `answers whatever one in memory does, also after it was opened again`(seed: UInt64) async throws {
        try await withDirectory { directory in
            var maker = CommitMaker(seed: seed)
            var twins = try await StoreTwins(
                directory: directory, limits: OutboxLimits(lane: 3, total: 10))
            var current = receivers
            try await twins.reopen(for: current)
            for _ in 0..<60 {
                switch maker.number(0...13) {
                case 0:
                    current = maker.some(of: receivers)
                    let chosen = current
                    try await twins.same("receivers") { store in
                        try await store.outbox.setReceivers(chosen)
                        return true
                    }
                case 1:
                    let time = Int64(maker.number(0...40))
                    try await twins.same("dropped events") { store in
                        try await store.outbox.drop(committedBefore: time)
                    }
                case 2:
                    let (chosen, end) = (maker.some(of: names), Int64(maker.number(0...120)))
                    try await twins.same("forgotten streams") { store in
                        try await store.forget(chosen.map { stream($0) }, endedBefore: end)
                    }
                case 3:
                    let time = Int64(maker.number(0...60))
                    try await twins.same("purged answers") { store in
                        try await store.purgeAnswers(at: time)
                        return true
                    }
                case 4:
                    try await twins.reopen(for: current)
                case 5...7:
                    let due = try await twins.same("due events") { store in
                        var due: [Delivery] = []
                        for receiver in receivers {
                            due += try await store.outbox.due(for: receiver, at: .max, limit: 9)
                        }
                        return due
                    }
                    var outcomes: [DeliveryOutcome] = []
                    for _ in 0..<maker.number(1...3) {
                        let outcome = maker.outcome(of: maker.element(of: due))
                        if case .gone(let receiver) = outcome { current.removeAll { $0 == receiver } }
                        outcomes.append(outcome)
                    }
                    let settled = outcomes
                    try await twins.same("settled events") { store in
                        try await store.outbox.settle(settled)
                        return true
                    }
                default:
                    var commits: [StreamCommit] = []
                    for _ in 0..<maker.number(1...4) { commits.append(maker.commit()) }
                    try await twins.submit(commits)
                }
                maker.versions = [:]
                for stored in try await twins.memory.load(.all) {
                    maker.versions[stored.listing.stream] = stored.version
                }
                try await twins.compare(using: &maker)
            }
            #expect(twins.memory.statistics.commits > 10)
            #expect(twins.memory.statistics.refusedConflict > 0)
            #expect(twins.memory.statistics.droppedEvents > 0)
            await twins.close()
        }
    }
}
