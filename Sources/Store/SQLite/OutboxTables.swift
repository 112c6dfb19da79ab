import Base
import CSQLite

/// The outbox in SQLite: events, and a lane for each receiver and stream with events.
struct OutboxTables: ~Copyable {
    /// Counted in memory, so that statistics need no query; restored if a transaction is rolled back.
    struct Counts: Sendable {
        /// Events in the file.
        var waiting = 0
        /// Events dropped since the process started.
        var dropped: UInt64 = 0
    }

    private(set) var counts = Counts()
    private(set) var receivers: [String] = []
    private let limits: OutboxLimits

    /// Added to the number of a lane's first event to form a due time that has always passed.
    ///
    /// Such times are before every real one, and among them the oldest event comes first.
    private static let atOnce = -(Int64(1) << 62)

    private var insertEvent: Statement
    private var insertLane: Statement
    private var countEvents: Statement
    private var countLane: Statement
    private var findEvent: Statement
    private var findHead: Statement
    private var findPassing: Statement
    private var findOldest: Statement
    private var deleteEvent: Statement
    private var resetLane: Statement
    private var delayLane: Statement
    private var deleteEmptyLane: Statement
    private var selectDue: Statement
    private var selectBeyond: Statement
    private var selectNextDue: Statement
    private var selectOld: Statement
    private var selectReceivers: Statement
    private var deleteReceiverEvents: Statement
    private var deleteReceiverLanes: Statement

    init(_ database: borrowing Database, limits: OutboxLimits, receivers: [String]) {
        self.limits = limits
        self.receivers = receivers
        insertEvent = Statement(
            """
            INSERT INTO events (receiver, stream, id, type, committed_at, body) VALUES (?, ?, ?, ?, ?, ?)
            """, in: database)
        // A lane that exists keeps its due time, which may be that of the next attempt.
        insertLane = Statement(
            """
            INSERT OR IGNORE INTO lanes (receiver, stream, attempts, due_at)
            VALUES (?, ?, 0, last_insert_rowid() + \(Self.atOnce))
            """, in: database)
        countEvents = Statement("SELECT COUNT(*) FROM events", in: database)
        countLane = Statement(
            "SELECT COUNT(*) FROM events WHERE receiver = ? AND stream = ?", in: database)
        findEvent = Statement("SELECT receiver, stream FROM events WHERE number = ?", in: database)
        findHead = Statement(
            "SELECT number FROM events WHERE receiver = ? AND stream = ? ORDER BY number LIMIT 1",
            in: database)
        let passing = OutboxEvent.passingTypes.map { "'\($0)'" }.joined(separator: ", ")
        findPassing = Statement(
            """
            SELECT number FROM events WHERE receiver = ? AND stream = ? AND type IN (\(passing))
            ORDER BY number LIMIT 1
            """, in: database)
        findOldest = Statement("SELECT number FROM events ORDER BY number LIMIT 1", in: database)
        deleteEvent = Statement("DELETE FROM events WHERE number = ?", in: database)
        resetLane = Statement(
            """
            UPDATE lanes SET attempts = 0, due_at = \(Self.atOnce) +
                (SELECT MIN(number) FROM events WHERE receiver = ?1 AND stream = ?2)
            WHERE receiver = ?1 AND stream = ?2
            """, in: database)
        delayLane = Statement(
            "UPDATE lanes SET attempts = attempts + 1, due_at = ?3 WHERE receiver = ?1 AND stream = ?2",
            in: database)
        deleteEmptyLane = Statement(
            """
            DELETE FROM lanes WHERE receiver = ?1 AND stream = ?2
            AND NOT EXISTS (SELECT 1 FROM events WHERE receiver = ?1 AND stream = ?2)
            """, in: database)
        selectDue = Statement(Self.heads(dueAt: "<= ?2"), in: database)
        selectBeyond = Statement(Self.heads(dueAt: "> ?2"), in: database)
        selectNextDue = Statement(
            "SELECT due_at FROM lanes WHERE receiver = ? AND due_at > ? ORDER BY due_at LIMIT 1", in: database
        )
        selectOld = Statement("SELECT number FROM events WHERE committed_at < ?", in: database)
        // Every event has a lane, so lanes name all receivers.
        selectReceivers = Statement("SELECT DISTINCT receiver FROM lanes", in: database)
        deleteReceiverEvents = Statement("DELETE FROM events WHERE receiver = ?", in: database)
        deleteReceiverLanes = Statement("DELETE FROM lanes WHERE receiver = ?", in: database)
    }

    /// The query for the first events of a receiver's lanes whose due time compares with the second value as given.
    ///
    /// Lanes first: they are few, and their index by due time finds those of one receiver.
    private static func heads(dueAt comparison: String) -> String {
        """
        SELECT number, e.receiver, e.stream, id, type, committed_at, body, attempts
        FROM (SELECT * FROM lanes WHERE receiver = ?1 AND due_at \(comparison) ORDER BY due_at LIMIT ?3) AS l
        JOIN events AS e ON e.number =
            (SELECT MIN(number) FROM events WHERE receiver = l.receiver AND stream = l.stream)
        ORDER BY due_at
        """
    }

    /// Restores the state of before a transaction that was rolled back.
    mutating func restore(_ counts: Counts, receivers: [String]) {
        self.counts = counts
        self.receivers = receivers
    }

    /// Counts the events in a file that was just opened.
    mutating func recount() throws(DatabaseError) {
        counts.waiting = Int(
            try countEvents.rows { row throws(DatabaseError) in row.integer(0) }.first ?? 0)
    }

    /// Continues the count of dropped events of the previous connection.
    mutating func forgetDrops(since dropped: UInt64) {
        counts.dropped = dropped
    }

    mutating func setReceivers(_ receivers: [String]) throws(DatabaseError) {
        let known = try selectReceivers.rows { row throws(DatabaseError) in row.text(0) }
        for receiver in known where !receivers.contains(receiver) { try remove(receiver: receiver) }
        self.receivers = receivers
    }

    /// Adds events, once for each receiver; an event that its full lane refuses counts as dropped.
    mutating func append(_ events: [OutboxEvent], of stream: StreamID) throws(DatabaseError) {
        let name = DatabaseValue.text(stream.description)
        for event in events {
            for receiver in receivers {
                guard try makeRoom(for: event, receiver: receiver, stream: name) else {
                    counts.dropped += 1
                    continue
                }
                try insertEvent.run(
                    .text(receiver), name, .text(event.id), .text(event.type), .integer(event.committedAt),
                    .blob(event.body))
                try insertLane.run(.text(receiver), name)
                counts.waiting += 1
            }
        }
    }

    /// Drops an event of the lane if the lane is full, and the oldest event of all if the outbox is full.
    /// - Returns: false if the lane is full of events that matter more than this one.
    private mutating func makeRoom(
        for event: OutboxEvent, receiver: String, stream: DatabaseValue
    ) throws(DatabaseError) -> Bool {
        let inLane = try countLane.rows(.text(receiver), stream) { row throws(DatabaseError) in row.integer(0)
        }
        if Int(inLane.first ?? 0) >= limits.lane {
            let passing = try findPassing.rows(.text(receiver), stream) { row throws(DatabaseError) in
                row.integer(0)
            }
            if passing.isEmpty, event.isPassing { return false }
            let head = try findHead.rows(.text(receiver), stream) { row throws(DatabaseError) in
                row.integer(0)
            }
            if let number = passing.first ?? head.first { try drop(number) }
        }
        if counts.waiting >= limits.total {
            let oldest = try findOldest.rows { row throws(DatabaseError) in row.integer(0) }
            if let oldest = oldest.first { try drop(oldest) }
        }
        return true
    }

    mutating func due(
        for receiver: String, at now: Int64, limit: Int
    ) throws(DatabaseError) -> [Delivery] {
        let due = try Self.deliveries(&selectDue, for: receiver, .integer(now), limit: limit)
        guard due.count < limit else { return due }
        let horizon = DatabaseValue.integer(OutboxLimits.horizon(at: now))
        let beyond = try Self.deliveries(&selectBeyond, for: receiver, horizon, limit: limit - due.count)
        return due + beyond
    }

    /// Runs one of the queries that `heads` makes.
    private static func deliveries(
        _ query: inout Statement, for receiver: String, _ time: DatabaseValue, limit: Int
    ) throws(DatabaseError) -> [Delivery] {
        try query.rows(.text(receiver), time, .integer(Int64(max(limit, 0)))) { row throws(DatabaseError) in
            guard let stream = StreamID(row.text(2)) else {
                throw DatabaseError(
                    code: SQLITE_CORRUPT, message: "\(row.text(2)) is not a stream's name")
            }
            return Delivery(
                number: row.integer(0), receiver: row.text(1), stream: stream,
                event: OutboxEvent(
                    id: row.text(3), type: row.text(4), committedAt: row.integer(5), body: row.blob(6)),
                attempts: Int(row.integer(7)))
        }
    }

    mutating func nextDue(for receiver: String, after now: Int64) throws(DatabaseError) -> Int64? {
        try selectNextDue.rows(.text(receiver), .integer(now)) { row throws(DatabaseError) in row.integer(0) }
            .first
    }

    mutating func settle(_ outcome: DeliveryOutcome) throws(DatabaseError) {
        switch outcome {
        case .delivered(let number): _ = try remove(number)
        case .dropped(let number): try drop(number)
        case .failed(let number, let time):
            guard let (receiver, stream) = try lane(of: number) else { return }
            let head = try findHead.rows(.text(receiver), .text(stream)) { row throws(DatabaseError) in
                row.integer(0)
            }
            // The event was dropped meanwhile, so its failure must not delay its successor.
            guard head.first == number else { return }
            try delayLane.run(.text(receiver), .text(stream), .integer(time))
        case .gone(let receiver):
            receivers.removeAll { $0 == receiver }
            try remove(receiver: receiver)
        }
    }

    mutating func drop(committedBefore time: Int64) throws(DatabaseError) -> Int {
        let old = try selectOld.rows(.integer(time)) { row throws(DatabaseError) in row.integer(0) }
        for number in old { try drop(number) }
        return old.count
    }

    private mutating func drop(_ number: Int64) throws(DatabaseError) {
        if try remove(number) { counts.dropped += 1 }
    }

    /// Deletes an event; if it was the first of its lane, the next one is due immediately.
    /// - Returns: false if no event has that number.
    private mutating func remove(_ number: Int64) throws(DatabaseError) -> Bool {
        guard let (receiver, stream) = try lane(of: number) else { return false }
        let head = try findHead.rows(.text(receiver), .text(stream)) { row throws(DatabaseError) in
            row.integer(0)
        }
        try deleteEvent.run(.integer(number))
        try deleteEmptyLane.run(.text(receiver), .text(stream))
        if head.first == number { try resetLane.run(.text(receiver), .text(stream)) }
        counts.waiting -= 1
        return true
    }

    /// Deletes all events of a receiver, and counts them as dropped.
    private mutating func remove(receiver: String) throws(DatabaseError) {
        let count = try deleteReceiverEvents.run(.text(receiver))
        try deleteReceiverLanes.run(.text(receiver))
        counts.waiting -= count
        counts.dropped += UInt64(count)
    }

    /// The lane of an event; nil if the event is gone.
    private mutating func lane(of number: Int64) throws(DatabaseError) -> (receiver: String, stream: String)?
    {
        try findEvent.rows(.integer(number)) { row throws(DatabaseError) in (row.text(0), row.text(1)) }.first
    }
}
