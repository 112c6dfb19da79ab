import Base
import Synchronization

/// The store's thread: it alone accesses the file, and runs all waiting jobs in one transaction.
///
/// So a hundred clients share one wait for the disk. A commit is reported when that wait is over.
struct Writer: ~Copyable {
    private let settings: SQLiteSettings
    private let log: Log
    private let figures: WriterFigures
    /// Nil after an error that may have broken the connection; opened again before the next transaction.
    private var tables: Tables?
    /// Declared after `tables`, so that its lock is released only once the file is closed.
    private let directory: DataDirectory
    /// As of the last transaction; kept here because they must survive a new connection.
    private var receivers: [String] = []
    /// As of the last transaction.
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
                    "remedy": "the data includes recordings and people's names; run chmod 700 on it",
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

    /// Opens the file, and checks the whole of it for damage.
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

    /// Runs jobs until the queue is closed and empty.
    mutating func run(_ queue: WriterQueue) {
        while true {
            let jobs = queue.take()
            guard !jobs.isEmpty else { return }
            perform(jobs)
        }
    }

    /// Runs jobs in one transaction, or each in its own if that fails.
    private mutating func perform(_ jobs: [WriterQueue.Job]) {
        do throws(DatabaseError) {
            try transact(jobs)
        } catch {
            guard jobs.count > 1 else { return jobs.forEach { fail($0, error) } }
            for job in jobs { performAlone(job, after: error) }
        }
    }

    /// Runs one of several jobs whose common transaction has failed.
    ///
    /// One job may have caused the failure, and queries need no space, so others may succeed alone. If the error would
    /// hit every write in the same way, as a broken disk does, writes are refused without another try: each would wait
    /// for the disk in turn.
    private mutating func performAlone(_ job: WriterQueue.Job, after error: DatabaseError) {
        guard !job.isWrite || error.mayConcernOneJob else { return fail(job, error) }
        do throws(DatabaseError) {
            try transact([job])
        } catch {
            fail(job, error)
        }
    }

    /// Refuses a job; only the first failure in a row is logged.
    private mutating func fail(_ job: WriterQueue.Job, _ error: DatabaseError) {
        if figures.noteFailure(error.description) { log.error("store.unavailable", ["reason": error]) }
        job.refuse(error.storeError)
    }

    /// Runs all jobs, makes them durable, and then reports them.
    /// - Throws: the error for which none of them was done.
    private mutating func transact(_ jobs: [WriterQueue.Job]) throws(DatabaseError) {
        if tables == nil { try reopen() }
        let isWrite = jobs.contains(where: \.isWrite)
        if isWrite { figures.beginWriting() }
        defer { if isWrite { figures.endWriting() } }
        var notices: [@Sendable () -> Void] = []
        notices.reserveCapacity(jobs.count)
        do throws(DatabaseError) {
            // IMMEDIATE takes the lock for writing at the start, where waiting for another process is possible.
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
        // Before the notices, which are not part of the write's time.
        if isWrite { figures.endWriting() }
        for notice in notices { notice() }
    }

    /// Rolls back, and restores the counts of before the transaction.
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

    /// Opens the file again after an error that may have broken the connection.
    private mutating func reopen() throws(DatabaseError) {
        do throws(Tables.OpeningError) {
            tables = try Tables(
                path: directory.path + "/" + StoreCopy.fileName, settings: settings, receivers: receivers)
            tables?.outbox.forgetDrops(since: counts.dropped)
        } catch {
            switch error {
            case .database(let error), .migration(.database(let error)): throw error
            // The file has been replaced while the server ran.
            case .migration: throw DatabaseError(code: 1, message: "the data was replaced by another file")
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

/// The store's statistics: written by its thread, read by any.
final class WriterFigures: Sendable {
    private let statistics = Mutex(StoreStatistics())
    /// When the current write began; nil while nothing is written.
    private let start = Mutex<ContinuousClock.Instant?>(nil)
    private let now: @Sendable () -> ContinuousClock.Instant

    /// - Parameter now: another clock is for tests.
    init(now: @escaping @Sendable () -> ContinuousClock.Instant) {
        self.now = now
    }

    var copy: StoreStatistics {
        var copy = statistics.withLock { $0 }
        if let start = start.withLock({ $0 }) { copy.writing = now() - start }
        return copy
    }

    func beginWriting() { start.withLock { $0 = now() } }

    /// Adds the time of the write; a second call for the same write does nothing.
    func endWriting() {
        guard let start = start.withLock({ $0.take() }) else { return }
        let components = (now() - start).components
        let time = components.seconds &* 1_000_000_000 &+ components.attoseconds / 1_000_000_000
        statistics.withLock { $0.writeTimes.add(time) }
    }

    func change(_ body: (inout StoreStatistics) -> Void) {
        statistics.withLock { body(&$0) }
    }

    /// - Returns: whether this is the first failure in a row.
    func noteFailure(_ reason: String) -> Bool {
        statistics.withLock { statistics in
            defer { statistics.failure = reason }
            return statistics.failure == nil
        }
    }

    /// - Returns: whether the transaction before it failed.
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
