import Base
import Peer
import Testing
import Wire

@testable import Forwarding

/// The copies of worker 1 of three.
@Suite struct `Copies of tracks` {
    private let talk: StreamID
    private let links: WorkerLinks
    private let exchange = RelayExchange(workers: 3)
    private var copies: TrackCopies

    init() throws {
        talk = try #require(StreamID("talk"))
        links = WorkerLinks(index: 1, exchange: exchange)
        copies = TrackCopies(over: links, fanOut: FanOut())
    }

    private func track(_ number: UInt64, of worker: Int) -> PublishedTrack {
        PublishedTrack(
            key: TrackKey(worker: worker, track: TrackID(number: number)),
            plan: SourcePlan(
                mid: "v", kind: .video, formats: [MediaFormat(codec: .vp8, payloadType: 96)]),
            extensions: ExtensionIDs())
    }

    private mutating func addSlot(_ published: PublishedTrack) throws -> TrackCopies.Copy {
        let copy = copies.addSlot(published)
        return try #require(copy)
    }

    private mutating func addToProgramme(_ published: PublishedTrack) throws -> Track {
        let copy = copies.add(published, toProgrammeOf: talk)
        return try #require(copy)
    }

    @Test mutating func `are shared by slots and a programme, and kept while one of them is left`() throws {
        let published = track(7, of: 0)
        let first = try addSlot(published)
        let second = try addSlot(published)
        let third = try addToProgramme(published)
        #expect(first.slots == 1 && second.slots == 2)
        #expect(first.track === second.track && second.track === third)
        #expect(copies[published.key] === third && third.key == published.key && third.plan == published.plan)
        #expect(copies.all.count == 1 && copies.all[published.key]?.programme == talk)
        var isLast = copies.removeSlot(published.key)
        #expect(!isLast)
        isLast = copies.removeSlot(published.key)
        #expect(isLast)
        copies.forgetIfUnused(published.key)
        #expect(copies[published.key] === third, "the programme uses it")
        copies.removeFromProgramme(published.key)
        copies.forgetIfUnused(published.key)
        #expect(copies.all.isEmpty)
    }

    @Test mutating func `are kept for a slot when their publisher is no source any more`() throws {
        let published = track(7, of: 0)
        let copy = try addToProgramme(published)
        _ = copies.addSlot(published)
        copies.removeFromProgramme(published.key)
        copies.forgetIfUnused(published.key)
        #expect(copies[published.key] === copy)
    }

    @Test mutating func `last until somebody says that they are not needed`() {
        let published = track(7, of: 0)
        _ = copies.addSlot(published)
        let isLast = copies.removeSlot(published.key)
        #expect(isLast && copies[published.key] != nil, "it lingers")
        let again = copies.addSlot(published)
        #expect(again?.slots == 1)
    }

    @Test mutating func `are of other workers only`() {
        for worker in [-1, 1, 3, Int.max] {
            let slot = copies.addSlot(track(7, of: worker))
            let programme = copies.add(track(7, of: worker), toProgrammeOf: talk)
            #expect(slot?.track == nil && programme == nil)
        }
        #expect(copies.all.isEmpty)
        copies = TrackCopies(over: nil, fanOut: FanOut())
        let alone = copies.addSlot(track(7, of: 0))
        let isCopied = alone != nil
        #expect(!isCopied)
    }

    @Test mutating func `of which there is none are given up without harm`() {
        let key = track(7, of: 0).key
        let isLast = copies.removeSlot(key)
        copies.removeFromProgramme(key)
        copies.forgetIfUnused(key)
        #expect(!isLast && copies.all.isEmpty)
    }

    /// Two workers may have tracks with the same number.
    @Test mutating func `ask the worker of their publisher for key frames`() throws {
        let tracks = [try addSlot(track(7, of: 0)).track, try addSlot(track(7, of: 2)).track]
        #expect(tracks[0] !== tracks[1])
        let now = MonotonicTime(nanoseconds: 1_000_000_000)
        let layer = try #require(tracks[1].layer(rid: nil, at: now))
        layer.demandKeyFrame(.beginning, at: now)
        links.flush()
        let batches = [0, 2].map { exchange.takeAll(for: $0) }
        #expect(batches.map(\.count) == [0, 1])
        let isAsked = batches[1].first?.batch.items.contains { item in
            guard case .demandKeyFrame(let track, layer: 0, .beginning) = item else { return false }
            return track.number == 7
        }
        #expect(isAsked == true)
    }
}
