import Base
import Interaction
import Stage
import Store
import TestSupport
import Testing

@testable import Node

@Suite struct `What happens between two commits` {
    private let show: StreamID
    private let ann: Interaction.Person
    private let shop: Interaction.Person
    private let now = Moment(elapsed: .zero, wall: WallTime(milliseconds: 1_000_000))
    /// Makes the changes of an audience, as its rules do.
    private var audience = Interaction()

    init() throws {
        show = try #require(StreamID("show"))
        ann = Interaction.Person(id: HostRig.ann.id, name: "Ann", role: .host, isModerator: true)
        let seller = try #require(ParticipantID("shop"))
        shop = Interaction.Person(id: seller, name: nil, role: .viewer, isModerator: false, isShop: true)
        var edit = InteractionEdit()
        edit.gifts = GiftCatalogue(
            currency: "EUR", kinds: [GiftCatalogue.Kind(id: "rose", name: "Rose", picture: "🌹", price: 1)])
        _ = try audience.apply(.edit(edit), from: ann, at: now)
    }

    private func creation() throws -> StreamChange {
        let made = try Stage.create(
            show, origin: .published, host: ann.id, hostName: nil, edit: StageEdit(), at: now)
        return .stage(try #require(made.outcome.changes.first))
    }

    private var end: StreamChange { .stage(.ended(now.wall, .sourceLeft)) }

    private mutating func gift(_ key: String) throws -> StreamChange {
        let draft = Gift.Draft(
            key: key, giver: ann.id, name: nil, kind: "rose", count: 1, price: 1, currency: "EUR")
        let changes = try audience.apply(.give(draft), from: shop, at: now).changes
        return .interaction(try #require(changes.first))
    }

    private static func batch(_ changes: [StreamChange]) -> CommitBatch {
        var batch = CommitBatch()
        batch.changes = changes
        return batch
    }

    @Test mutating func `changes belong to the programme in which they were decided`() throws {
        let (first, second, third) = (try gift("a"), try gift("b"), try gift("c"))
        let begun = try creation()
        let cases: [(changes: [StreamChange], former: Int)] = [
            ([], 0), ([first], 0), ([begun], 0), ([first, end], 0), ([begun, first], 0),
            ([first, end, begun], 2), ([first, end, begun, second], 2),
            ([first, end, begun, second, end, begun, third], 5),
        ]
        for (changes, former) in cases {
            let programmes = Self.batch(changes).programmes()
            #expect(Array(programmes.former) == Array(changes.prefix(former)))
            #expect(Array(programmes.present) == Array(changes.dropFirst(former)))
            // Where the next one has begun since, all of it is of an earlier one.
            let over = Self.batch(changes).programmes(isOver: true)
            #expect(Array(over.former) == changes && over.present.isEmpty)
        }
    }

    @Test mutating func `gifts of the previous programme stay in the ledger`() throws {
        let (first, second, third) = (try gift("a"), try gift("b"), try gift("c"))
        let begun = try creation()
        func keys(_ changes: [StreamChange]) -> [String] { Self.batch(changes).gifts.map(\.key) }
        #expect(keys([first, second]) == ["a", "b"])
        #expect(keys([first, end]) == ["a"])
        #expect(keys([first, end, begun]) == [])
        #expect(keys([first, end, begun, second, third]) == ["b", "c"])
        #expect(keys([begun, first, end, begun, second]) == ["b"])
        #expect(Self.batch([first, begun]).isCreation && !Self.batch([first]).isCreation)
    }

    @Test func `a batch needs the store only for changes or webhooks`() throws {
        var batch = CommitBatch()
        #expect(batch.weight == 0 && !batch.hasEvents && !batch.forgetsComments)
        var outcome = StageOutcome()
        outcome.effects = [.close]
        batch.append(outcome)
        #expect(batch.weight == 1 && !batch.hasEvents)
        outcome.changes = [.ended(now.wall, .ended)]
        outcome.events = [.ended(.ended)]
        batch.append(outcome)
        #expect(batch.weight == 4 && batch.hasEvents && batch.effects == [.close, .close])
        batch.changes.append(.interaction(.expired(before: now.wall)))
        #expect(batch.forgetsComments)
        let others: [(inout CommitBatch) -> Void] = [
            { $0.recordings = [.null] }, { $0.clips = [.null] },
            { $0.duels = [CommitBatch.DuelReport(type: "duel.ended", duel: .null)] },
            { $0.restreams = [CommitBatch.RestreamReport(type: "restream.live", restream: .null)] },
        ]
        for change in others {
            var batch = CommitBatch()
            change(&batch)
            #expect(batch.hasEvents && batch.weight == 0)
        }
    }
}

@Suite struct `The archive of comments` {
    private let ann: ParticipantID

    init() throws {
        ann = try #require(ParticipantID("ann"))
    }

    private func comment(_ number: Int, at time: Int64 = 1, isHidden: Bool = false) -> StreamComment {
        StreamComment(
            number: number, key: "k\(number)", author: ann, name: nil, role: .viewer, text: "x",
            at: WallTime(milliseconds: time), isHidden: isHidden)
    }

    private func written(_ numbers: ClosedRange<Int>) -> [InteractionChange] {
        numbers.map { .commented(comment($0, isHidden: $0 == 2)) }
    }

    /// What a commit of these changes does to the archive.
    private func change(
        of changes: [StreamChange], from kept: InteractionRecord?, to next: InteractionRecord
    ) throws -> ArchiveChange {
        var batch = CommitBatch()
        batch.changes = changes
        return try batch.archiveChange(from: kept, to: next)
    }

    private func record(_ changes: [InteractionChange], on record: InteractionRecord = InteractionRecord())
        -> InteractionRecord
    {
        var record = record
        for change in changes { record.apply(change) }
        return record
    }

    /// Together with what is in memory; whether comments are written, removed or grow old.
    @Test(arguments: ChosenSeed.or(1...6)) func `the archive has each comment once`(seed: UInt64) throws {
        var random = SeededGenerator(seed: seed)
        var kept = InteractionRecord()
        var archive: [Int: Int64] = [:]
        // Those that people may see, with the times when they were written.
        var alive: [Int: Int64] = [:]
        var (last, clock): (Int, Int64) = (0, 10_000)
        var displaced = 0
        for _ in 0..<40 {
            var changes: [InteractionChange] = []
            for _ in 0..<Int.random(in: 0...250, using: &random) {
                switch Int.random(in: 0..<400, using: &random) {
                case 0 where last > 1_500:
                    let time = clock - Int64.random(in: 0...3_000, using: &random)
                    changes.append(.expired(before: WallTime(milliseconds: time)))
                    alive = alive.filter { $0.value >= time }
                case 1..<20:
                    let number = Int.random(in: 1...last + 1, using: &random)
                    guard alive.removeValue(forKey: number) != nil else { continue }
                    changes.append(.deleted(number))
                default:
                    last += 1
                    clock += Int64.random(in: 0...3, using: &random)
                    changes.append(.commented(comment(last, at: clock)))
                    alive[last] = clock
                }
            }
            let next = record(changes, on: kept)
            let done = try change(of: changes.map { StreamChange.interaction($0) }, from: kept, to: next)
            for number in done.removed { archive[number] = nil }
            if let expiry = done.expiry { archive = archive.filter { $0.value >= expiry } }
            for entry in done.entries {
                let before = archive.updateValue(entry.writtenAt, forKey: entry.number)
                #expect(before == nil)
            }
            displaced += done.entries.count
            kept = next
            let inMemory = Set(next.comments.filter { !$0.isDeleted }.map(\.number))
            #expect(inMemory.isDisjoint(with: archive.keys))
            #expect(inMemory.union(archive.keys) == Set(alive.keys))
        }
        #expect(displaced > 0)
    }

    @Test func `comments of a shadow-banned author are archived for the author alone`() throws {
        let full = Interaction.commentLimit + Interaction.commentLimit / 4
        let kept = record(written(1...full - 1))
        #expect(kept.comments.count == full - 1)
        let last = InteractionChange.commented(comment(full))
        let next = record([last], on: kept)
        let done = try change(of: [.interaction(last)], from: kept, to: next)
        #expect(done.entries.map(\.number) == Array(1...full - Interaction.commentLimit))
        #expect(done.entries.map(\.reader).prefix(3) == [nil, "ann", nil])
        #expect(done.removed == [] && done.expiry == nil)
    }

    /// The archive of the earlier one is cleared with its record.
    @Test func `the archive has nothing of an earlier programme with the name`() throws {
        let show = try #require(StreamID("show"))
        let made = try Stage.create(
            show, origin: .published, host: ann, hostName: nil, edit: StageEdit(),
            at: Moment(elapsed: .zero, wall: WallTime(milliseconds: 1)))
        let creation = StreamChange.stage(try #require(made.outcome.changes.first))
        let full = Interaction.commentLimit + Interaction.commentLimit / 4
        let kept = record(written(1...full - 1))
        // Its last comment displaces others, and one is removed, while the next programme begins.
        let former: [StreamChange] = [.interaction(.commented(comment(full))), .interaction(.deleted(7))]
        var done = try change(of: former + [creation], from: kept, to: InteractionRecord())
        #expect(done == ArchiveChange())
        // The next one has as many at once, and removes one of its own.
        let own = written(1...full) + [.deleted(3)]
        let changes = former + [creation] + own.map { StreamChange.interaction($0) }
        done = try change(of: changes, from: kept, to: record(own))
        let displaced = (1...full - Interaction.commentLimit).filter { $0 != 3 }
        #expect(done.entries.map(\.number) == displaced && done.removed == [3])
    }
}

@Suite(.timeLimit(.minutes(10))) struct `The result of a commit` {
    @Test func `the result reaches who asks before the commit and who asks after it`() async throws {
        for isEarly in [true, false] {
            let outcome = CommitOutcome()
            #expect(outcome.present == nil)
            var waiting: Task<Result<Void, StoreError>, Never>?
            if !isEarly { waiting = Task { await outcome.value() } }
            outcome.complete(.failure(.busy))
            guard case .failure(.busy)? = outcome.present else {
                Issue.record("it is there at once")
                return
            }
            let result: Result<Void, StoreError>
            if let waiting { result = await waiting.value } else { result = await outcome.value() }
            #expect(throws: StoreError.busy) { try result.get() }
        }
    }

    /// The store completes a commit on a thread of its own.
    @Test func `the result is not missed when it is set and read at once`() async throws {
        for _ in 0..<500 {
            let outcome = CommitOutcome()
            async let completion: Void = outcome.complete(.success(()))
            let result = await outcome.value()
            await completion
            try result.get()
        }
    }
}

@Suite struct `Webhooks of files that the store refused` {
    private static func batch(_ recordings: [String], _ clips: [String]) -> CommitBatch {
        var batch = CommitBatch()
        batch.recordings = recordings.map { .string($0) }
        batch.clips = clips.map { .string($0) }
        return batch
    }

    @Test func `refused webhooks wait in order, and go out before new ones`() {
        var reports = FileReports()
        reports.keep([Self.batch([], [])], at: .zero)
        #expect(reports.isEmpty && reports.deadline == nil)
        reports.keep([Self.batch(["a"], ["x"]), Self.batch(["b"], [])], at: .zero + .seconds(5))
        reports.keep([Self.batch([], ["y"])], at: .zero + .seconds(7))
        #expect(reports.deadline == MonotonicTime.zero + .seconds(8), "it is tried again with the latest")
        var batch = Self.batch(["c"], ["z"])
        reports.move(to: &batch)
        #expect(batch.recordings == [.string("a"), .string("b"), .string("c")])
        #expect(batch.clips == [.string("x"), .string("y"), .string("z")])
        #expect(reports.isEmpty && reports.deadline == nil)
    }
}
