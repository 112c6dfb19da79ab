import Base
import Peer
import TestSupport
import Testing
import Wire

@testable import Forwarding

@Suite struct `A track in several sizes` {
    private static let sizes = [("h", 1_280, 720), ("m", 640, 360), ("l", 320, 180)]

    private let rig: SlotRig
    private let track: Track
    private let feeds: [Feed]

    init() throws {
        let rig = try SlotRig(seed: 3)
        let track = rig.track(rids: Self.sizes.map { $0.0 })
        feeds = try Self.sizes.map { try rig.feed(track, rid: $0.0) }
        (self.rig, self.track) = (rig, track)
        for (feed, size) in zip(feeds, Self.sizes) {
            try rig.send(feed, isKey: true, width: size.1, height: size.2)
        }
    }

    /// The layer that a slot is sent, or will be.
    private func aim(of slot: Slot) -> String? { (slot.awaited ?? slot.current)?.rid }

    /// Sends pictures of some layers for a while, without key frames.
    private func send(_ sent: [Feed], for duration: Duration) throws {
        let end = rig.now + duration
        while rig.now < end {
            rig.pass(.milliseconds(33))
            for feed in sent { try rig.send(feed) }
        }
    }

    @Test func `gives a slot the best that is not too high for it, or else the lowest`() throws {
        let slot = try rig.slot()
        slot.attach(track, at: rig.now)
        #expect(aim(of: slot) == "h")
        for (height, rid) in [
            (719, "m"), (720, "h"), (360, "m"), (359, "l"), (180, "l"), (179, "l"), (1, "l"), (nil, "h"),
        ] as [(Int?, String)] {
            slot.limit(to: height, at: rig.now)
            #expect(aim(of: slot) == rid, "\(String(describing: height))")
        }
        slot.session.prefer(DeliveryPreferences(pin: .low), at: rig.now)
        #expect(aim(of: slot) == "l")
        slot.session.prefer(DeliveryPreferences(maximumHeight: 500), at: rig.now)
        slot.limit(to: 700, at: rig.now)
        #expect(aim(of: slot) == "m")
        #expect(track.choices(for: slot, at: rig.now).map(\.rid) == ["l", "m"])
        slot.session.prefer(DeliveryPreferences(maximumHeight: 500, pin: .high), at: rig.now)
        #expect(track.choices(for: slot, at: rig.now).map(\.rid) == ["m"], "and nothing worse")
    }

    /// A phone held upright sends 360x640, where the height says nothing about the bitrate.
    @Test func `measures a picture by its shorter side`() throws {
        let slot = try rig.slot()
        try rig.send(feeds[0], isKey: true, width: 720, height: 1_280)
        slot.limit(to: 719, at: rig.now)
        slot.attach(track, at: rig.now)
        #expect(aim(of: slot) == "m")
        slot.limit(to: 720, at: rig.now)
        #expect(aim(of: slot) == "h")
    }

    @Test func `has no more layers than it may`() throws {
        #expect(track.layer(rid: "x", at: rig.now)?.index == 3)
        #expect(track.layer(rid: "y", at: rig.now) == nil)
        #expect(track.layer(rid: "m", at: rig.now) === feeds[1].layer, "those that there are stay")
        #expect(track.layers.count == Track.layerLimit)
    }

    @Test func `goes down where a layer is not sent any more, and up when it is sent again`() throws {
        let slot = try rig.slot()
        slot.attach(track, at: rig.now)
        rig.finishReplay(to: slot)
        try send(feeds, for: .milliseconds(300))
        #expect(slot.current === feeds[0].layer && slot.awaited == nil)
        try send(Array(feeds.dropFirst()), for: .milliseconds(1_300))
        #expect(slot.current === feeds[1].layer && slot.awaited == nil, "it begins with what is cached")
        rig.finishReplay(to: slot)
        try rig.send(feeds[0])
        try send(feeds, for: .milliseconds(300))
        #expect(slot.current === feeds[1].layer && aim(of: slot) == "h", "until its key frame comes")
        try rig.send(feeds[0], isKey: true, width: 1_280, height: 720)
        #expect(slot.current === feeds[0].layer && slot.awaited == nil)
    }

    /// The slot is in no list of the layer any more, although nothing else was sent to it since.
    @Test(arguments: [false, true])
    func `shows its layer again that began anew while another one was awaited`(awaitsSelf: Bool) throws {
        let slot = try rig.slot()
        slot.limit(to: 360, at: rig.now)
        slot.attach(track, at: rig.now)
        // Long enough that no layer begins with what is cached.
        try send(feeds, for: .seconds(5))
        track.flush(at: rig.now)
        try rig.send(feeds[1], isKey: true)
        try #require(slot.current === feeds[1].layer && !slot.isReplaying)
        if !awaitsSelf { slot.limit(to: nil, at: rig.now) }
        #expect(feeds[1].layer.restart(ssrc: 7_777, at: rig.now))
        #expect(aim(of: slot) == (awaitsSelf ? "m" : "h"))
        if awaitsSelf { slot.limit(to: nil, at: rig.now) }
        slot.limit(to: 360, at: rig.now)
        #expect(slot.awaited === feeds[1].layer)
        let before = rig.sent(to: slot)
        let again = Feed(feeds[1].layer, ssrc: 7_777, from: 4)
        try rig.send(again)
        #expect(rig.sent(to: slot) == before)
        try rig.send(again, isKey: true)
        try rig.send(again)
        #expect(rig.sent(to: slot) == before + 2)
    }

    @Test func `points slots at layers a few times a second, and not with each packet`() throws {
        let slot = try rig.slot()
        slot.attach(track, at: rig.now)
        try send(feeds, for: .milliseconds(400))
        try rig.send(feeds[2], isKey: true, width: 2_560, height: 1_440)
        #expect(aim(of: slot) == "h", "it is not yet time")
        try send(feeds, for: .milliseconds(260))
        #expect(aim(of: slot) == "l", "it is the largest now")
    }
}

@Suite struct `Key frames of a track` {
    private let rig: SlotRig
    private let track: Track
    private let feed: Feed

    init() throws {
        let rig = try SlotRig(seed: 4)
        let track = rig.track()
        feed = try rig.feed(track)
        (self.rig, self.track) = (rig, track)
    }

    private var reasons: [KeyFrameRequester.Reason] { rig.owner.demands.map(\.reason) }

    @Test func `are asked for once where hundreds of viewers come at the same time`() throws {
        for slot in rig.session(video: 500).slots { slot.attach(track, at: rig.now) }
        #expect(reasons == [.beginning])
        #expect(feed.layer.keyFrames.demandCount == 500)
        try rig.send(feed, isKey: true)
        #expect(feed.layer.slots.count == 500)
        #expect(reasons == [.beginning])
    }

    @Test func `are asked for again after a while, and at once for a better reason`() throws {
        try rig.slot().attach(track, at: rig.now)
        let layer = feed.layer
        layer.demandKeyFrame(.beginning, at: rig.now)
        rig.pass(.milliseconds(49))
        layer.demandKeyFrame(.repetition, at: rig.now)
        layer.demandKeyFrame(.beginning, at: rig.now)
        #expect(reasons == [.beginning])
        layer.demandKeyFrame(.loss, at: rig.now)
        #expect(reasons == [.beginning, .loss])
        rig.pass(.milliseconds(50))
        layer.demandKeyFrame(.renewal, at: rig.now)
        #expect(reasons == [.beginning, .loss, .renewal])
        // A request after a key frame asks for another one.
        try rig.send(feed, isKey: true)
        layer.demandKeyFrame(.renewal, at: rig.now)
        #expect(reasons == [.beginning, .loss, .renewal, .renewal])
    }

    @Test func `are not asked for of sound, nor of a layer that there is not`() throws {
        let sound = rig.track(.audio)
        let voice = try rig.feed(sound)
        voice.layer.demandKeyFrame(.loss, at: rig.now)
        for layer in [-1, 1, 3, 4, 5, 6, Int.max] {
            track.demandKeyFrame(of: layer, for: .loss, at: rig.now)
        }
        #expect(reasons.isEmpty)
        track.demandKeyFrame(of: 0, for: .loss, at: rig.now)
        #expect(rig.owner.demands == [.init(layer: 0, reason: .loss)])
    }

    /// Its decoder may reject the key frame that is cached, and a publisher may answer nothing.
    @Test func `are asked for by a viewer whom what is cached did not help twice`() throws {
        let slot = try rig.slot()
        slot.attach(track, at: rig.now)
        try rig.send(feed, isKey: true)
        var asked: [KeyFrameRequester.Reason: [Int]] = [:]
        for step in 1...60 {
            rig.pass(.milliseconds(100))
            // Larger than the key frame, so that this need not last longer than usual to spare the publisher another.
            try rig.send(feed, size: 400)
            let before = rig.owner.demands.count
            slot.demandKeyFrame(at: rig.now)
            for demand in rig.owner.demands.dropFirst(before) {
                asked[demand.reason, default: []].append(step)
            }
            slot.advanceReplay(at: rig.now, into: &rig.sink)
        }
        // A replay each half second; for the third and all later ones the publisher is asked as well.
        #expect(asked[.repetition] == [11, 16, 21, 26, 31, 36])
        #expect(slot.counters.replays == 8)
        // Then the group is older than four seconds, and there is nothing to begin with.
        #expect(asked[.beginning] == Array(41...60))
        #expect(asked.count == 2)
    }

    @Test func `are waited for until one comes, whoever leaves meanwhile`() throws {
        let slots = try (0..<5).map { _ in try rig.slot() }
        for slot in slots { slot.attach(track, at: rig.now) }
        #expect(feed.layer.isTaken)
        slots[0].detach()
        slots[4].detach()
        try rig.send(feed, isKey: true)
        let sent = slots.map { rig.sent(to: $0) }
        #expect(sent == [0, 1, 1, 1, 0])
        for slot in slots { slot.detach() }
        #expect(!feed.layer.isTaken)
    }
}

/// Packets as publishers send them: over the end of their numbers, twice, or with anything in them.
@Suite struct `Packets of a layer` {
    private let rig: SlotRig
    private let track: Track

    init() throws {
        rig = try SlotRig(seed: 5)
        track = rig.track()
    }

    @Test func `have one number each, over the end of 16 bits`() throws {
        let feed = try rig.feed(track, from: 65_530)
        try rig.send(feed, isKey: true)
        for _ in 0..<20 { try rig.send(feed) }
        let layer = feed.layer
        #expect(layer.history.newest == 65_550)
        for number in Int64(65_530)...65_550 {
            let found = layer.history.range(of: number)
            let packet = layer.packet(at: try #require(found), sequenceNumber: number)
            #expect(packet?.sequenceNumber == number)
            #expect(packet?.timestamp == 90_000 + 3_000 * UInt32(number - 65_530))
        }
        #expect(layer.group(at: rig.now)?.range == 65_530...65_550)
    }

    @Test func `are queued once, however often they come`() throws {
        let slot = try rig.slot()
        slot.attach(track, at: rig.now)
        let feed = try rig.feed(track)
        let keyFrame = feed.packet(Feed.picture(isKey: true))
        let second = feed.packet(Feed.picture(isKey: false))
        for bytes in [keyFrame, second, second, keyFrame, second] { try rig.receive(bytes, on: feed) }
        rig.endBatch()
        #expect(rig.sent(to: slot) == 2)
        #expect(feed.layer.stream?.counters.duplicates == 3)
    }

    @Test func `of a type that was not agreed on are refused, and change nothing`() throws {
        let feed = try rig.feed(track)
        try rig.send(feed, isKey: true)
        var other = feed.packet(Feed.picture(isKey: true))
        other[1] = 97
        #expect(throws: WireError.invalid(.rtpPayloadType)) { _ = try rig.receive(other, on: feed) }
        #expect(feed.layer.history.newest == 100)
        #expect(feed.layer.stream?.expected == 1)
    }

    /// Whatever a publisher sends, nothing traps, and what is kept can be read again.
    @Test(arguments: UInt64(0)..<20) func `random packets never break a layer`(seed: UInt64) throws {
        var random = SeededGenerator(seed: seed)
        let slot = try rig.slot()
        slot.attach(track, at: rig.now)
        let feed = try rig.feed(track)
        for _ in 0..<500 {
            rig.pass(.milliseconds(Int.random(in: 0...40, using: &random)))
            if Int.random(in: 0..<10, using: &random) == 0 {
                feed.number &+= UInt16.random(in: 0...UInt16.max, using: &random)
            }
            feed.timestamp = UInt32.random(in: 0...UInt32.max, using: &random)
            let length = Int.random(in: 0...30, using: &random)
            var payload = (0..<length).map { _ in UInt8.random(in: 0...255, using: &random) }
            if Bool.random(using: &random) { payload = Feed.picture(isKey: true) + payload }
            let bytes = feed.packet(payload, marker: Bool.random(using: &random))
            let packet = try rig.receive(bytes, on: feed)
            if Bool.random(using: &random) { rig.endBatch() }
            slot.advanceReplay(at: rig.now, into: &rig.sink)
            guard let number = packet?.sequenceNumber else { continue }
            let found = feed.layer.history.range(of: number)
            let range = try #require(found)
            #expect(Array(feed.layer.history.storage[range]) == bytes)
        }
    }
}
