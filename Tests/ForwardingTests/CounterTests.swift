import Base
import Peer
import TestSupport
import Testing
import Wire

@testable import Forwarding

@Suite struct `Counters of media` {
    /// Every number in a value, by where it stands.
    private func numbers(in value: Any, at path: String = "") -> [String: UInt64] {
        if let number = value as? UInt64 { return [path: number] }
        var found: [String: UInt64] = [:]
        for child in Mirror(reflecting: value).children {
            found.merge(numbers(in: child.value, at: "\(path).\(child.label ?? "?")")) { first, _ in first }
        }
        return found
    }

    private func filled() -> MediaCounters {
        var counters = MediaCounters()
        var next: UInt64 = 0
        func number() -> UInt64 {
            next += 1
            return next
        }
        for volume in [
            \MediaCounters.received, \.audioReceived, \.videoReceived, \.audioSent, \.videoSent,
        ] {
            counters[keyPath: volume] = .init(packets: number(), bytes: number())
        }
        for count in [
            \MediaCounters.packetsRepaired, \.redundancyReceived, \.packetsRecovered, \.repairsRequested,
            \.packetsSent, \.bytesSent, \.packetsThinned, \.resendsRequested, \.packetsResent,
            \.packetsRedundant, \.stepsUp, \.stepsDown, \.picturesStopped, \.probeBytes, \.replays,
            \.keyFrameDemands, \.keyFrameRequests, \.keyFrames,
        ] {
            counters[keyPath: count] = number()
        }
        for drop in [
            \MediaCounters.Drops.replayed, \.unauthentic, \.undecodable, \.noRoute, \.codecNotNegotiated,
            \.beforeStart, \.noAddress, \.oversize,
        ] {
            counters.drops[keyPath: drop] = number()
        }
        for refusal in [
            \MediaCounters.Refusals.unknown, \.notInHistory, \.tooSoon, \.beforeKeyFrame, \.overBudget,
        ] {
            counters.refusals[keyPath: refusal] = number()
        }
        return counters
    }

    /// A counter that is not added is lost with its session.
    @Test func `adding counters adds each field to the same field`() {
        var sum = filled()
        let each = numbers(in: sum)
        #expect(each.count == 41)
        #expect(each.values.allSatisfy { $0 > 0 } && Set(each.values).count == each.count)
        sum.add(filled())
        #expect(numbers(in: sum) == each.mapValues { $0 * 2 })
        sum = MediaCounters()
        sum.add(filled())
        #expect(sum == filled())
    }

    @Test func `a full counter wraps instead of trapping`() {
        var volume = MediaCounters.Volume(packets: .max, bytes: .max)
        volume.add(1)
        #expect(volume == .init(packets: 0, bytes: 0))
        var full = MediaCounters()
        full.packetsSent = .max
        full.add(full)
        #expect(full.packetsSent == UInt64.max - 1)
    }

    @Test func `refused retransmissions are counted by reason`() {
        var refusals = MediaCounters.Refusals()
        for verdict in [
            RetransmissionGate.Verdict.admitted, .unknown, .tooSoon, .tooSoon, .beforeKeyFrame, .overBudget,
            .overBudget, .overBudget,
        ] {
            refusals.count(verdict)
        }
        #expect(refusals.unknown == 1 && refusals.tooSoon == 2 && refusals.notInHistory == 0)
        #expect(refusals.beforeKeyFrame == 1 && refusals.overBudget == 3)
    }
}

/// What a client is told of its pictures, and when that is worth a message.
@Suite struct `The quality that a client gets` {
    private func quality(
        estimate: Int? = 1_000_000, cause: DeliveryQuality.Cause? = .delay, rid: String? = "m",
        height: Int? = 360, bitrate: Int = 500_000, isPaused: Bool = false
    ) -> DeliveryQuality {
        let layer = DeliveryQuality.Layer(rid: rid, width: 640, height: height, bitrate: bitrate)
        return DeliveryQuality(
            estimate: estimate, roundTrip: .milliseconds(40), cause: cause,
            pictures: [
                .init(mid: "1", wanted: layer, served: isPaused ? nil : layer, isPaused: isPaused)
            ])
    }

    @Test func `a quality with another layer, cause or pause is reported`() {
        #expect(quality().isNews(after: nil))
        for other in [
            quality(cause: .loss), quality(cause: nil), quality(rid: "h"), quality(height: 720),
            quality(height: nil), quality(isPaused: true), quality(estimate: nil),
        ] {
            #expect(other.isNews(after: quality()) && quality().isNews(after: other))
        }
        var none = quality()
        none.pictures = []
        #expect(none.isNews(after: quality()) && quality().isNews(after: none))
        var preview = quality()
        preview.pictures[0].isPreview = true
        #expect(preview.isNews(after: quality()))
        var elsewhere = quality()
        elsewhere.pictures[0].mid = "2"
        #expect(elsewhere.isNews(after: quality()))
    }

    @Test func `a quality whose rates and times vary a little is not reported`() {
        var other = quality(bitrate: 900_000)
        other.roundTrip = nil
        other.pictures[0].wanted?.width = 641
        #expect(!other.isNews(after: quality()))
        for (estimate, isNews) in [
            (1_250_000, false), (1_250_001, true), (750_000, false), (749_999, true), (0, true),
        ] {
            #expect(quality(estimate: estimate).isNews(after: quality()) == isNews, "\(estimate)")
        }
        #expect(!quality(estimate: nil).isNews(after: quality(estimate: nil)))
        #expect(quality(estimate: 5).isNews(after: quality(estimate: 0)))
    }
}

/// The pictures among which a path's capacity is divided.
@Suite struct `The choices of a slot` {
    private let rig: SlotRig

    init() throws {
        rig = try SlotRig(seed: 14)
    }

    /// Sends pictures of so many bytes each 33 ms, for two seconds.
    private func send(_ feeds: [(feed: Feed, size: Int)]) throws {
        for _ in 0..<60 {
            rig.pass(.nanoseconds(33_333_333))
            for (feed, size) in feeds { try rig.send(feed, size: size) }
        }
    }

    @Test func `the choices are the track's layers, lowest first, including header overhead`() throws {
        let track = rig.track(rids: ["h", "l"])
        let feeds = try ["h", "l"].map { try rig.feed(track, rid: $0) }
        try rig.send(feeds[0], isKey: true, height: 720)
        try rig.send(feeds[1], isKey: true, height: 180)
        try send([(feeds[0], 5_000), (feeds[1], 500)])
        let slot = try rig.slot()
        slot.attach(track, at: rig.now)
        var choices = PictureChoices(of: slot, track, at: rig.now)
        #expect(choices.grants == [.layer(1), .layer(0)] && choices.own == 0 && !choices.hasRenditions)
        let rates = feeds.reversed().map { $0.layer.bitrate(at: rig.now) }
        #expect(choices.steps == rates.map { $0 + $0 * 5 / 100 })
        #expect(choices.index(of: .best) == 1 && choices.index(of: .nothing) == nil)
        #expect(choices.index(of: .layer(3)) == 0, "a layer that is gone")
        slot.session.prefer(DeliveryPreferences(pin: .high), at: rig.now)
        choices = PictureChoices(of: slot, track, at: rig.now)
        #expect(choices.grants == [.layer(0)])
        slot.session.prefer(DeliveryPreferences(pin: .low), at: rig.now)
        choices = PictureChoices(of: slot, track, at: rig.now)
        #expect(choices.grants == [.layer(1)])
    }

    @Test func `renditions that take less than the publisher's only layer come first`() throws {
        let track = rig.track()
        let feed = try rig.feed(track)
        try rig.send(feed, isKey: true)
        // Some 1.2 Mbit/s.
        try send([(feed, 5_000)])
        let slot = try rig.slot()
        slot.attach(track, at: rig.now)
        var choices = PictureChoices(of: slot, track, at: rig.now)
        #expect(choices.grants == [.layer(0)])
        #expect(choices.needRendition(at: nil, in: nil) && !choices.needRendition(at: 0, in: nil))
        #expect(choices.needRendition(at: 0, in: choices.steps[0] * 8 / 10))
        #expect(!choices.needRendition(at: 0, in: choices.steps[0]))
        #expect(track.beginRenditions(by: rig.owner) && !track.beginRenditions(by: RecordingOwner()))
        for rendition in RenditionLayer.allCases {
            let layer = try #require(track.layer(rendition, by: rig.owner))
            layer.restart(ssrc: 70 + UInt32(rendition.rawValue), at: rig.now)
            try rig.send(Feed(layer, ssrc: 70 + UInt32(rendition.rawValue)), isKey: true)
        }
        choices = PictureChoices(of: slot, track, at: rig.now)
        let (stills, low) = (RenditionLayer.stills, RenditionLayer.low)
        #expect(
            choices.grants
                == [.layer(stills.index), .thinned(low.index), .layer(low.index), .layer(0)])
        #expect(choices.steps.prefix(3) == [37_800, 357_000 * 45 / 100, 357_000])
        #expect(choices.own == 3 && choices.isOwn(.best) && !choices.isOwn(.layer(low.index)))
        slot.session.prefer(DeliveryPreferences(pin: .low), at: rig.now)
        choices = PictureChoices(of: slot, track, at: rig.now)
        #expect(choices.grants.count == 3 && choices.own == 3, "renditions alone")
        slot.session.prefer(DeliveryPreferences(pin: .high), at: rig.now)
        choices = PictureChoices(of: slot, track, at: rig.now)
        #expect(choices.grants == [.layer(0)] && !choices.needRendition(at: nil, in: 0))
        slot.session.prefer(DeliveryPreferences(), at: rig.now)
        track.endRenditions()
        choices = PictureChoices(of: slot, track, at: rig.now)
        #expect(choices.index(of: .layer(low.index)) == nil, "a rendition that has ended is not sent")
    }

    @Test func `a picture with a low bitrate has no rendition among its choices`() throws {
        let track = rig.track()
        let feed = try rig.feed(track)
        try rig.send(feed, isKey: true)
        try send([(feed, 1_000)])
        let slot = try rig.slot()
        slot.attach(track, at: rig.now)
        let choices = PictureChoices(of: slot, track, at: rig.now)
        #expect(choices.steps[0] < RenditionLayer.worthwhileBitrate)
        #expect(!choices.needRendition(at: nil, in: 0))
    }
}
