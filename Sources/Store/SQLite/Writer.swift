import Base
import Synchronization

/// The store's thread: it alone has the file, and puts all that waits into one transaction.
///
/// So a hundred clients share one wait for the disk, and a commit is told of when that wait is over.
struct Writer: ~Copyable {
    private let settings: SQLiteSettings
    private let log: Log
    private let figures: WriterFigures
    /// Nil after a failure that the connection may not have survived; opened again before the next transaction.
    private var tables: Tables?
    /// After `tables`: its lock is let go when the file is closed.
    private let directory: DataDirectory
    /// As of the last transaction; they outlive the connection.
    private var receivers: [String] = []
    private var counts = OutboxTables.Counts()

    /// Opens the directory and the file in it.
    init(settings: SQLiteSettings, figures: WriterFigures, log: Log) throws(StoreOpenError) {
        let directory = try DataDirectory(path: settings.directory)
        directory.reserve(StoreCopy.fileName)
        if directory.isOpenToOthers {
            log.warning(
                "store.open-to-others",
                [
                    "directory": directory.path,
                    "remedy": "recordings and names of people are in there; chmod 700",
                ])
        }
        let tables = try Self.open(directory.path + "/" + StoreCopy.fileName, settings)
        counts = tables.outbox.counts
        figures.noteOutbox(counts)
        self.directory = directory
        self.tables = consume tables
        self.settings = settings
        self.figures = figures
        self.log = log
    }

    private static func open(_ path: String, _ settings: SQLiteSettings) throws(StoreOpenError) -> Tables {
        do throws(Tables.OpeningError) {
            let tables = try Tables(path: path, settings: settings, receivers: [])
            try tables.verify()
            return tables
        } catch {
            throw StoreOpenError(error, path: path)
        }
    }

    var path: String { directory.path }

    /// Works until the queue is closed and empty.
    mutating func run(_ queue: WriterQueue) {
        while true {
            let jobs = queue.take()
            guard !jobs.isEmpty else { return }
            perform(jobs)
        }
    }

    private mutating func perform(_ jobs: [WriterQueue.Job]) {
        do throws(DatabaseError) {
            try transact(jobs)
        } catch {
            guard jobs.count > 1 else { return jobs.forEach { fail($0, error) } }
            for job in jobs { performAlone(job, after: error) }
        }
    }

    /// Does one of several jobs that could not be done together.
    ///
    /// One of them may have been at fault, and questions need no room. But where each would wait for the same thing in
    /// vain, they are refused together.
    private mutating func performAlone(_ job: WriterQueue.Job, after error: DatabaseError) {
        guard !job.isWrite || error.mayConcernOneJob else { return fail(job, error) }
        do throws(DatabaseError) {
            try transact([job])
        } catch {
            fail(job, error)
        }
    }

    private mutating func fail(_ job: WriterQueue.Job, _ error: DatabaseError) {
        if figures.noteFailure(error.description) { log.error("store.unavailable", ["reason": error]) }
        job.refuse(error.storeError)
    }

    /// Does all jobs and makes them durable, then tells of them.
    private mutating func transact(_ jobs: [WriterQueue.Job]) throws(DatabaseError) {
        if tables == nil { try reopen() }
        let isWrite = jobs.contains(where: \.isWrite)
        if isWrite { figures.beginWriting() }
        defer { if isWrite { figures.endWriting() } }
        var notices: [@Sendable () -> Void] = []
        notices.reserveCapacity(jobs.count)
        do throws(DatabaseError) {
            try tables?.database.execute(isWrite ? "BEGIN IMMEDIATE" : "BEGIN")
            for job in jobs {
                guard let notice = try tables?.run(job) else { continue }
                notices.append(notice)
            }
            try tables?.database.execute("COMMIT")
        } catch {
            undo(after: error)
            throw error
        }
        if isWrite, figures.noteSuccess() { log.info("store.recovered") }
        count()
        if isWrite { figures.endWriting() }
        for notice in notices { notice() }
    }

    /// Leaves no transaction open, and counts as before it.
    private mutating func undo(after error: DatabaseError) {
        guard error.leavesConnectionUsable else {
            tables = nil
            return
        }
        do throws(DatabaseError) {
            if tables?.database.isInTransaction == true { try tables?.database.execute("ROLLBACK") }
            tables?.outbox.restore(counts, receivers: receivers)
            if error.leavesTransactionInLog { try tables?.overwriteLog() }
        } catch {
            tables = nil
        }
    }

    private mutating func reopen() throws(DatabaseError) {
        do throws(Tables.OpeningError) {
            tables = try Tables(
                path: directory.path + "/" + StoreCopy.fileName, settings: settings, receivers: receivers)
            tables?.outbox.forgetDrops(since: counts.dropped)
        } catch {
            switch error {
            case .database(let error), .migration(.database(let error)): throw error
            case .migration: throw DatabaseError(code: 1, message: "another file took the place of the data")
            }
        }
    }

    /// Takes over what the transaction changed.
    private mutating func count() {
        guard let outbox = tables?.summary else { return }
        receivers = outbox.receivers
        counts = outbox.counts
        figures.noteOutbox(counts)
    }
}

extension Tables {
    fileprivate var summary: (receivers: [String], counts: OutboxTables.Counts) {
        (outbox.receivers, outbox.counts)
    }

    fileprivate mutating func run(
        _ job: WriterQueue.Job
    ) throws(DatabaseError) -> @Sendable () -> Void {
        try job.run(&self)
    }
}

/// What the store's thread tells others in numbers.
final class WriterFigures: Sendable {
    private let statistics = Mutex(StoreStatistics())
    /// Since when something is being written.
    private let start = Mutex<ContinuousClock.Instant?>(nil)
    private let now: @Sendable () -> ContinuousClock.Instant

    /// - Parameter now: what the time is taken from.
    init(now: @escaping @Sendable () -> ContinuousClock.Instant) {
        self.now = now
    }

    var copy: StoreStatistics {
        var copy = statistics.withLock { $0 }
        if let start = start.withLock({ $0 }) { copy.writing = now() - start }
        return copy
    }

    func beginWriting() { start.withLock { $0 = now() } }

    /// Once for each beginning counts.
    func endWriting() {
        guard let start = start.withLock({ $0.take() }) else { return }
        let components = (now() - start).components
        let time = components.seconds &* 1_000_000_000 &+ components.attoseconds / 1_000_000_000
        statistics.withLock { $0.writeTimes.add(time) }
    }

    func change(_ body: (inout StoreStatistics) -> Void) {
        statistics.withLock { body(&$0) }
    }

    /// - Returns: whether all was well before.
    func noteFailure(_ reason: String) -> Bool {
        statistics.withLock { statistics in
            defer { statistics.failure = reason }
            return statistics.failure == nil
        }
    }

    /// - Returns: whether the one before failed.
    func noteSuccess() -> Bool {
        statistics.withLock { statistics in
            defer { statistics.failure = nil }
            statistics.transactions += 1
            return statistics.failure != nil
        }
    }

    func noteOutbox(_ counts: OutboxTables.Counts) {
        statistics.withLock { statistics in
            statistics.waitingEvents = counts.waiting
            statistics.droppedEvents = counts.dropped
        }
    }
}
