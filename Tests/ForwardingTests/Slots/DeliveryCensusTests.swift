import Base
import Peer
import TestSupport
import Testing
import Wire

@testable import Forwarding

/// How many pictures of which size viewers are sent, and what their paths can carry.
@Suite struct `A census of deliveries` {
    private let rig: SlotRig

    init() throws {
        rig = try SlotRig(seed: 5)
    }

    /// A slot that is sent pictures of this size.
    private func served(_ width: Int, _ height: Int) throws -> (slot: Slot, feed: Feed) {
        let (slot, track) = (try rig.slot(), rig.track())
        let feed = try rig.feed(track)
        slot.attach(track, at: rig.now)
        try rig.send(feed, isKey: true, width: width, height: height)
        try #require(slot.current === feed.layer)
        return (slot, feed)
    }

    private func count(_ sessions: [Session]) -> DeliveryCensus {
        var census = DeliveryCensus()
        for session in sessions { census.count(session) }
        return census
    }

    /// - Returns: the counts of classes, of which one has a member.
    private func single(_ place: Int, of count: Int) -> [Int] {
        (0..<count).map { $0 == place ? 1 : 0 }
    }

    // MARK: Pictures

    @Test(arguments: [
        (320, 180, 0), (180, 320, 0), (16, 16, 0), (322, 181, 1), (640, 360, 1), (360, 640, 1), (642, 361, 2),
        (854, 480, 2), (856, 482, 3), (1_280, 720, 3), (1_282, 722, 4), (1_920, 1_080, 4), (1_080, 1_920, 4),
        (1_922, 1_081, 5), (3_840, 2_160, 5),
    ])
    func `has each picture in the class of its shorter side`(width: Int, height: Int, place: Int) throws {
        let (slot, _) = try served(width, height)
        let census = count([slot.session])
        #expect(census.pictures == single(place, of: DeliveryCensus.heights.count + 1))
        #expect(census.picturesOfUnknownSize == 0 && census.picturesPaused == 0)
    }

    @Test func `has a picture in another class once its publisher sends another size`() throws {
        let (slot, feed) = try served(1_280, 720)
        try rig.send(feed)
        #expect(count([slot.session]).pictures == [0, 0, 0, 1, 0, 0])
        try rig.send(feed, isKey: true, width: 320, height: 180)
        #expect(count([slot.session]).pictures == [1, 0, 0, 0, 0, 0])
    }

    @Test func `has nothing of a picture that has not begun, nor of a slot without a track`() throws {
        let (empty, waiting) = (try rig.slot(), try rig.slot())
        let track = rig.track()
        let feed = try rig.feed(track)
        waiting.attach(track, at: rig.now)
        try rig.send(feed)
        #expect(waiting.awaited === feed.layer)
        #expect(count([empty.session, waiting.session]) == DeliveryCensus())
    }

    @Test func `has a picture as paused for which there is no room, and none that nobody wants`() throws {
        let (slot, feed) = try served(640, 360)
        slot.grant = .nothing
        slot.track?.retarget(slot, at: rig.now)
        var census = count([slot.session])
        #expect(census.picturesPaused == 1 && census.pictures == [0, 0, 0, 0, 0, 0])
        slot.session.prefer(DeliveryPreferences(isAudioOnly: true), at: rig.now)
        #expect(count([slot.session]) == DeliveryCensus())
        slot.session.prefer(DeliveryPreferences(), at: rig.now)
        try rig.send(feed, isKey: true)
        census = count([slot.session])
        #expect(census.picturesPaused == 0 && census.pictures == [0, 1, 0, 0, 0, 0])
    }

    /// It waits for its source, and is sent nothing meanwhile.
    @Test func `has nothing of a picture whose source began anew until that has a key frame`() throws {
        let (slot, feed) = try served(640, 360)
        #expect(feed.layer.restart(ssrc: 4_000, at: rig.now))
        let again = Feed(feed.layer, ssrc: 4_000)
        try rig.send(again)
        #expect(count([slot.session]) == DeliveryCensus())
        try rig.send(again, isKey: true, width: 1_920, height: 1_080)
        #expect(count([slot.session]).pictures == [0, 0, 0, 0, 1, 0])
    }

    @Test func `has nothing of sound`() throws {
        let session = rig.session(audio: 2, video: 0)
        let track = rig.track(.audio)
        let feed = try rig.feed(track)
        for slot in session.slots { slot.attach(track, at: rig.now) }
        try rig.send(feed)
        let begun = session.slots.count { $0.current === feed.layer }
        #expect(begun == 2)
        #expect(count([session]) == DeliveryCensus())
    }

    // MARK: Paths

    @Test(arguments: [
        (100_000, 0), (150_000, 0), (150_001, 1), (300_000, 1), (300_001, 2), (600_001, 3), (1_200_001, 4),
        (2_500_001, 5), (5_000_000, 5), (5_000_001, 6), (10_000_000, 6), (10_000_001, 7), (40_000_000, 7),
    ])
    func `has each path in the class of what it can carry`(bitrate: Int, place: Int) throws {
        let session = rig.session()
        let path = OutgoingPath()
        session.path = path
        #expect(count([session]).paths == single(-1, of: DeliveryCensus.estimates.count + 1))
        path.followLoss(arrived: bitrate, at: rig.now)
        #expect(count([session]).paths == single(place, of: DeliveryCensus.estimates.count + 1))
    }

    @Test func `has the path also of who wants sound alone`() throws {
        let session = rig.session()
        let path = OutgoingPath()
        session.path = path
        path.followLoss(arrived: 500_000, at: rig.now)
        session.prefer(DeliveryPreferences(isAudioOnly: true), at: rig.now)
        #expect(count([session]).paths == [0, 0, 1, 0, 0, 0, 0, 0])
    }

    @Test func `adds up over all sessions`() throws {
        let slots = try [(640, 360), (640, 360), (1_920, 1_080)].map { try served($0.0, $0.1).slot }
        slots[0].grant = .nothing
        slots[0].track?.retarget(slots[0], at: rig.now)
        let census = count(slots.map(\.session))
        #expect(census.pictures == [0, 1, 0, 0, 1, 0] && census.picturesPaused == 1)
    }
}
