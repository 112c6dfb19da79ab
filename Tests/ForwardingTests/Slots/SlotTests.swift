import Base
import Peer
import TestSupport
import Testing
import Wire

@testable import Forwarding

@Suite struct `A slot` {
    private let rig: SlotRig

    init() throws {
        rig = try SlotRig()
    }

    /// A slot that has had a picture, and waits for the next key frame of the same track since it was stopped.
    private func stoppedAndWaiting() throws -> (slot: Slot, track: Track, feed: Feed) {
        let (slot, track) = (try rig.slot(), rig.track())
        let feed = try rig.feed(track)
        slot.attach(track, at: rig.now)
        try rig.send(feed, isKey: true)
        #expect(rig.sent(to: slot) == 1)
        slot.grant = .nothing
        track.retarget(slot, at: rig.now)
        #expect(slot.isStopped && slot.awaited == nil)
        // Or it would begin with what is cached.
        track.flush(at: rig.now)
        slot.grant = .best
        track.retarget(slot, at: rig.now)
        try #require(slot.awaited === feed.layer && slot.isStopped)
        return (slot, track, feed)
    }

    // MARK: Pauses

    @Test func `gets no picture if only sound is wanted by the time its key frame comes`() throws {
        let (slot, _, feed) = try stoppedAndWaiting()
        slot.session.prefer(DeliveryPreferences(isAudioOnly: true), at: rig.now)
        #expect(slot.awaited == nil)
        try rig.send(feed, isKey: true)
        #expect(slot.isStopped && rig.sent(to: slot) == 1)
        slot.session.prefer(DeliveryPreferences(), at: rig.now)
        #expect(!slot.isStopped && slot.isReplaying, "the key frame is cached")
    }

    @Test func `gets no picture if its path takes none by the time its key frame comes`() throws {
        let (slot, track, feed) = try stoppedAndWaiting()
        slot.grant = .nothing
        track.retarget(slot, at: rig.now)
        try rig.send(feed, isKey: true)
        try rig.send(feed)
        #expect(slot.isStopped && slot.awaited == nil && rig.sent(to: slot) == 1)
    }

    @Test func `gets nothing of a rendition that has not begun, nor what is too much for it`() throws {
        let (slot, track, feed) = try stoppedAndWaiting()
        #expect(track.beginRenditions(by: rig.owner))
        slot.grant = .layer(RenditionLayer.low.index)
        track.retarget(slot, at: rig.now)
        #expect(slot.awaited == nil)
        try rig.send(feed, isKey: true)
        #expect(slot.isStopped && rig.sent(to: slot) == 1)
        // The rendition begins, and is awaited once, however often the slot is pointed at it.
        let rendition = try #require(track.layer(.low, by: rig.owner))
        rendition.restart(ssrc: 900, at: rig.now)
        let made = Feed(rendition, ssrc: 900)
        try rig.send(made)
        let asked = rig.owner.demands.count
        for _ in 0..<20 {
            track.retarget(slot, at: rig.now)
            rig.pass(.milliseconds(100))
            try rig.send(made)
        }
        #expect(slot.awaited === rendition && slot.isStopped)
        #expect(rig.owner.demands.count == asked + 1)
        try rig.send(made, isKey: true)
        #expect(slot.current === rendition && !slot.isStopped && rig.sent(to: slot) == 2)
    }

    // MARK: Changes

    @Test func `goes on with its track if it is given back before the other one begins`() throws {
        let (slot, first, second) = (try rig.slot(), rig.track(), rig.track())
        let (shown, other) = (try rig.feed(first), try rig.feed(second))
        slot.attach(first, at: rig.now)
        try rig.send(shown, isKey: true)
        slot.attach(second, at: rig.now)
        try rig.send(shown)
        #expect(slot.current === shown.layer && slot.awaited === other.layer)
        #expect(rig.sent(to: slot) == 2, "the first one is shown until then")
        let asked = rig.owner.demands.count
        slot.attach(first, at: rig.now)
        try rig.send(other, isKey: true)
        try rig.send(shown)
        #expect(slot.current === shown.layer && slot.awaited == nil && rig.sent(to: slot) == 3)
        #expect(rig.owner.demands.count == asked, "nobody has to wait")
    }

    @Test func `sends what waits of one track before it begins with another`() throws {
        let (slot, first, second) = (try rig.slot(), rig.track(), rig.track())
        let (shown, other) = (try rig.feed(first), try rig.feed(second))
        slot.attach(first, at: rig.now)
        try rig.send(shown, isKey: true)
        slot.attach(second, at: rig.now)
        for _ in 0..<3 { try rig.send(shown, endsBatch: false) }
        #expect(rig.sent(to: slot) == 1)
        try rig.send(other, isKey: true, endsBatch: false)
        #expect(slot.current === other.layer && rig.sent(to: slot) == 4)
        // Later packets of the first track are not for this slot.
        try rig.send(shown, endsBatch: false)
        rig.endBatch()
        #expect(rig.sent(to: slot) == 5)
    }

    @Test func `gets nothing that waited once it is detached, and others do`() throws {
        let (leaving, staying, track) = (try rig.slot(), try rig.slot(), rig.track())
        let feed = try rig.feed(track)
        for slot in [leaving, staying] { slot.attach(track, at: rig.now) }
        try rig.send(feed, isKey: true)
        try rig.send(feed, endsBatch: false)
        leaving.detach()
        rig.endBatch()
        #expect(rig.sent(to: leaving) == 1 && rig.sent(to: staying) == 2)
        #expect(leaving.track == nil && leaving.current == nil && leaving.place == nil)
        #expect(staying.place == 0 && feed.layer.slots.count == 1)
    }

    /// The numbers of the new source are not those of the old one.
    @Test func `gets nothing of a source that began anew until that has a key frame`() throws {
        let (slot, track) = (try rig.slot(), rig.track())
        let feed = try rig.feed(track)
        slot.attach(track, at: rig.now)
        try rig.send(feed, isKey: true)
        try rig.send(feed, endsBatch: false)
        rig.pass(.seconds(1))
        let asked = rig.owner.demands.count
        #expect(feed.layer.restart(ssrc: 4_000, at: rig.now))
        let again = Feed(feed.layer, ssrc: 4_000, from: 9)
        rig.endBatch()
        for _ in 0..<5 { try rig.send(again) }
        #expect(rig.sent(to: slot) == 1, "also what waited is gone with the old source")
        #expect(slot.awaited === feed.layer && slot.place == nil)
        #expect(rig.owner.demands.dropFirst(asked).map(\.reason) == [.beginning])
        try rig.send(again, isKey: true)
        #expect(slot.awaited == nil && rig.sent(to: slot) == 2)
    }

    @Test func `does not begin with a codec that its client did not offer`() throws {
        let session = rig.session(videoCodec: .h264(packetizationMode: 1))
        let slot = try #require(session.slots.first)
        let track = rig.track()
        let feed = try rig.feed(track)
        slot.attach(track, at: rig.now)
        try rig.send(feed, isKey: true)
        try rig.send(feed)
        #expect(slot.current == nil && feed.layer.slots.isEmpty)
        #expect(slot.counters.drops.codecNotNegotiated == 1 && rig.sent(to: slot) == 0)
    }

    // MARK: Replays that end early

    enum End: CaseIterable {
        /// The stream goes live: viewers must not see what was before.
        case flushed
        /// The history has overwritten the rest.
        case abandoned
    }

    /// A viewer of two pictures, to whom the past of the second one is being sent, and another viewer of that one.
    private func replaying() throws -> (
        pictures: [Slot], other: Slot, feeds: [Feed], tracks: [Track]
    ) {
        let session = rig.session(audio: 1, video: 2)
        let (sound, pictures) = (try #require(session.slots.first), Array(session.slots.dropFirst()))
        let tracks = [rig.track(.audio), rig.track(), rig.track()]
        let feeds = try tracks.map { try rig.feed($0) }
        let other = try rig.slot()
        for (slot, track) in [(sound, tracks[0]), (pictures[0], tracks[1]), (other, tracks[2])] {
            slot.attach(track, at: rig.now)
        }
        for feed in feeds { try rig.send(feed, isKey: true) }
        // More than the first burst of a replay.
        for _ in 0..<80 { try rig.send(feeds[2], size: 1_000) }
        pictures[1].attach(tracks[2], at: rig.now)
        try #require(pictures[1].isReplaying)
        pictures[1].advanceReplay(at: rig.now, into: &rig.sink)
        try #require(pictures[1].isReplaying, "the rest of it is still to be sent")
        return (pictures, other, feeds, tracks)
    }

    /// Sound and both pictures leave together: what one viewer gets lies side by side.
    @Test(arguments: End.allCases)
    func `gets no live pictures behind a replay that has ended`(by end: End) throws {
        let (pictures, other, feeds, tracks) = try replaying()
        let slot = pictures[1]
        switch end {
        case .flushed: tracks[2].flush(at: rig.now)
        case .abandoned: feeds[2].layer.abandonReplay(to: slot, at: rig.now)
        }
        #expect(!slot.isReplaying && slot.isStopped && slot.awaited === feeds[2].layer)
        #expect(rig.owner.demands.last?.reason == .beginning)
        let before = [pictures[0], slot, other].map { rig.sent(to: $0) }
        for feed in feeds { try rig.send(feed, endsBatch: false) }
        rig.endBatch()
        let after = [pictures[0], slot, other].map { rig.sent(to: $0) }
        let gained = zip(before, after).map { $1 - $0 }
        #expect(gained == [1, 0, 1])
        try rig.send(feeds[2], isKey: true)
        #expect(!slot.isStopped && slot.current === feeds[2].layer)
        #expect(rig.sent(to: slot) == after[1] + 1)
    }

    @Test func `goes on with a replay at the key frame that has come meanwhile`() throws {
        let (pictures, _, feeds, _) = try replaying()
        let slot = pictures[1]
        try rig.send(feeds[2], isKey: true)
        let start = try #require(feeds[2].layer.cachedStart)
        #expect(slot.replay?.start != start)
        rig.pass(.milliseconds(5))
        slot.advanceReplay(at: rig.now, into: &rig.sink)
        // One packet is left, and it has been sent.
        #expect(!slot.isReplaying && slot.timeline.current?.mapping.firstSourceSequence == start)
        #expect(slot.place != nil && !slot.isStopped)
    }

    @Test func `sends each packet of a replay once, whether it waits for others or not`() throws {
        let (pictures, other, feeds, _) = try replaying()
        let slot = pictures[1]
        let waiting = rig.sent(to: other)
        for _ in 0..<5 { try rig.send(feeds[2], size: 1_000, endsBatch: false) }
        rig.finishReplay(to: slot)
        #expect(rig.sent(to: other) == waiting + 5, "nobody else waits for the replay")
        #expect(feeds[2].layer.outgoing.isEmpty)
        let all = rig.sent(to: slot)
        rig.endBatch()
        #expect(rig.sent(to: slot) == all)
    }
}
