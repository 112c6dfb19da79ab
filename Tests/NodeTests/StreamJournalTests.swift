import Base
import Stage
import Store
import Testing

@testable import Node

@Suite struct `The journal of a stream` {
    private var journal: StreamJournal
    private let show: StreamID
    private let ann: ParticipantID
    private let start = Moment(elapsed: .zero, wall: WallTime(milliseconds: 1_000))

    init() throws {
        show = try #require(StreamID("show"))
        ann = try #require(ParticipantID("ann"))
        journal = StreamJournal(show, report: nil)
    }

    private mutating func create() throws {
        let made = try Stage.create(
            show, origin: .made, host: ann, hostName: nil, edit: StageEdit(), at: start)
        journal.gather { $0.append(made.outcome) }
    }

    private mutating func pause(_ isPaused: Bool) {
        journal.gather { [ann] in $0.changes.append(.stage(.paused(ann, isPaused))) }
    }

    /// The commit that is due.
    private mutating func commit() throws -> StreamCommit {
        guard case .commit(let commit)? = journal.advance(at: start.wall) else {
            throw Unexpected()
        }
        return commit
    }

    private struct Unexpected: Error {}

    @Test mutating func `gathers while a commit is under way, and builds on what that made durable`() throws {
        try create()
        let first = try commit()
        #expect(first.basis == 0 && first.listing?.stream == show)
        #expect(journal.kept == nil && !journal.isSettled)
        pause(true)
        pause(false)
        #expect(journal.advance(at: start.wall) == nil)
        guard case .success(let batch)? = journal.finish(.success(())) else { throw Unexpected() }
        #expect(batch.changes.count == first.records.count)
        #expect(journal.kept?.stage.host == ann)
        let second = try commit()
        #expect(second.basis == first.version && second.records.count == 2)
        #expect(second.listing == nil, "it is listed as before")
        _ = journal.finish(.success(()))
        #expect(journal.isSettled && journal.advance(at: start.wall) == nil)
        #expect(journal.finish(.success(())) == nil)
    }

    @Test mutating func `a failed commit fails all later changes, and the durable state stands`()
        throws
    {
        try create()
        let first = try commit()
        _ = journal.finish(.success(()))
        pause(true)
        _ = try commit()
        pause(false)
        guard case .failure(let batches, .busy)? = journal.finish(.failure(.busy)) else { throw Unexpected() }
        #expect(batches.map(\.changes.count) == [1, 1])
        #expect(journal.isSettled && journal.kept?.stage.member(ann)?.isPaused == false)
        pause(true)
        #expect(try commit().basis == first.version)
    }

    @Test mutating func `writes nothing that does not begin with a creation`() throws {
        pause(true)
        guard case .fail(let batch, _)? = journal.advance(at: start.wall) else { throw Unexpected() }
        #expect(batch.changes.count == 1)
        #expect(journal.isSettled && journal.kept == nil)
    }

    @Test mutating func `a batch without changes is concluded without the store`() throws {
        try create()
        _ = try commit()
        _ = journal.finish(.success(()))
        journal.gather { [ann] in $0.effects.append(.retire(ann)) }
        guard case .conclude(let batch)? = journal.advance(at: start.wall) else { throw Unexpected() }
        #expect(batch.effects == [.retire(ann)] && journal.isSettled)
    }

    @Test mutating func `writes a snapshot as often as it says, and takes no more than it says`() throws {
        try create()
        var written = try commit().records.count
        _ = journal.finish(.success(()))
        var snapshots: [Int] = []
        for number in 1...(2 * StreamJournal.snapshotInterval) {
            pause(number % 2 == 1)
            let commit = try commit()
            written += commit.records.count
            if commit.snapshot != nil { snapshots.append(written) }
            _ = journal.finish(.success(()))
        }
        #expect(snapshots == [StreamJournal.snapshotInterval, 2 * StreamJournal.snapshotInterval])
        for _ in 0..<StreamJournal.gatheringLimit {
            #expect(journal.hasRoom)
            pause(true)
        }
        #expect(!journal.hasRoom)
    }
}
