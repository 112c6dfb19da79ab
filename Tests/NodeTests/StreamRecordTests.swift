import Base
import Foundation
import Interaction
import Restream
import Stage
import Store
import Testing

@testable import Node

@Suite struct `The record of a stream` {
    private let show: StreamID
    private let quiz: StreamID
    private let ann: ParticipantID
    private let start = Moment(elapsed: .zero, wall: WallTime(milliseconds: 1_000))

    init() throws {
        show = try #require(StreamID("show"))
        quiz = try #require(StreamID("quiz"))
        ann = try #require(ParticipantID("ann"))
    }

    private func creation() throws -> [StreamChange] {
        let made = try Stage.create(
            show, origin: .made, host: ann, hostName: nil, edit: StageEdit(), at: start)
        return made.outcome.changes.map { .stage($0) }
    }

    private func targets() throws -> RestreamList {
        var list = RestreamList()
        _ = try list.add(try RestreamAddress("rtmp://live.example.org/live"), key: Secret("key"))
        return list
    }

    /// An invitation by this stream's host.
    private func duel() throws -> Duel {
        var side = DuelSide(of: show)
        let situation = DuelSide.Situation(
            isLive: true, isHostThere: true, name: "Ann", tally: DuelTally())
        return try side.apply(.invite(quiz, DuelTerms()), situation, at: start)
    }

    private func decoded(_ change: StreamChange) throws -> StreamChange {
        try JSONDecoder().decode(StreamChange.self, from: Data(try StageCoding.bytes(change)))
    }

    @Test func `is nothing before its creation`() throws {
        let changes: [StreamChange] = [.restreams(try targets()), .duel(try duel())]
        #expect(StreamRecord.replaying(changes) == nil)
        #expect(StreamRecord.replaying([StreamChange]()) == nil)
        // What came before is no part of it.
        let all = try changes + creation()
        let record = try #require(StreamRecord.replaying(all))
        #expect(record.restreams.targets.isEmpty && record.duels.isEmpty)
    }

    @Test func `keeps its duels to the end and its targets, with their keys, no longer`() throws {
        let changes = try creation() + [.restreams(try targets()), .duel(try duel())]
        let live = try #require(StreamRecord.replaying(changes))
        #expect(live.restreams.targets.count == 1 && live.duels.count == 1)
        let end = StreamChange.stage(.ended(start.wall, .ended))
        let ended = try #require(StreamRecord.replaying([end], onto: live))
        #expect(ended.stage.phase == .ended)
        #expect(ended.restreams == RestreamList())
        #expect(ended.duels == live.duels)
        let bytes = try StageCoding.bytes(ended)
        #expect(!String(decoding: bytes, as: UTF8.self).contains("live.example.org"))
    }

    @Test func `begins anew with a creation, whatever was before`() throws {
        let changes = try creation() + [.restreams(try targets()), .duel(try duel())]
        let before = try #require(StreamRecord.replaying(changes))
        let beginning = try creation()
        let after = StreamRecord.replaying(beginning, onto: before)
        let fresh = StreamRecord.replaying(beginning)
        #expect(after == fresh)
        #expect(after != before)
    }

    @Test func `replaces a duel that it has by what it is now`() throws {
        let first = try duel()
        var side = DuelSide(of: show, restoring: [first])
        let situation = DuelSide.Situation(
            isLive: true, isHostThere: true, name: "Ann", tally: DuelTally())
        let second = try side.apply(.cancel(first.id), situation, at: start)
        let changes = try creation() + [.duel(first), .duel(second)]
        let record = StreamRecord.replaying(changes)
        #expect(record?.duels == [second])
    }

    @Test func `is the same from the store, change by change and as a whole`() throws {
        let changes = try creation() + [.restreams(try targets()), .duel(try duel())]
        for change in changes {
            let copy = try decoded(change)
            #expect(copy == change)
        }
        let record = try #require(StreamRecord.replaying(changes))
        var stored = StoredStream(
            listing: StageCoding.listing(of: record.stage), version: 1,
            snapshot: try StageCoding.bytes(record), records: [])
        #expect(try StageCoding.record(of: stored) == record)
        stored.snapshot = nil
        stored.records = try changes.map { try StageCoding.bytes($0) }
        #expect(try StageCoding.record(of: stored) == record)
        // A log that lacks its beginning holds no stream.
        stored.records.removeFirst()
        #expect(try StageCoding.record(of: stored) == nil)
    }

    @Test(arguments: [
        "", "{", "[]", #"{"duel":7}"#, #"{"restreams":{"targets":[{"number":1}]}}"#, #"{"no":1}"#,
    ])
    func `is not read where a change is damaged`(text: String) throws {
        let beginning = try creation()
        let record = try #require(StreamRecord.replaying(beginning))
        let stored = StoredStream(
            listing: StageCoding.listing(of: record.stage), version: 2,
            snapshot: try StageCoding.bytes(record), records: [Array(text.utf8)])
        #expect(throws: DecodingError.self) { try StageCoding.record(of: stored) }
    }
}
