import Base
import Peer
import TestSupport
import Testing
import Wire

@testable import Forwarding

/// What a viewer gets of a track in two sizes, and what is said of it.
@Suite struct `A viewer's preferences` {
    struct Case: Sendable {
        var preferences = DeliveryPreferences()
        /// Control's limit of the height.
        var limit: Int?
        /// The layer that is sent; nil for none.
        let rid: String?
        let cause: DeliveryQuality.Cause
    }

    private let rig: SlotRig
    private let slot: Slot
    private let high: Feed
    private let low: Feed

    init() throws {
        let rig = try SlotRig(seed: 6)
        let track = rig.track(rids: ["h", "l"])
        (high, low) = (try rig.feed(track, rid: "h"), try rig.feed(track, rid: "l"))
        slot = try rig.slot()
        self.rig = rig
        try sendBoth(isKey: true)
        slot.attach(track, at: rig.now)
        rig.finishReplay(to: slot)
    }

    private var session: Session { slot.session }

    /// The layer that is sent.
    private var served: String? { slot.isStopped ? nil : slot.current?.rid }

    private func sendBoth(isKey: Bool = false) throws {
        try rig.send(high, isKey: isKey, width: 1_280, height: 720)
        try rig.send(low, isKey: isKey, width: 320, height: 180)
    }

    private func quality() throws -> DeliveryQuality.Picture {
        let pictures = session.quality(at: rig.now).pictures
        #expect(pictures.count == 1)
        return try #require(pictures.first)
    }

    // MARK: Layers

    @Test(arguments: [
        Case(rid: "h", cause: .publisher),
        Case(preferences: .init(maximumHeight: 720), rid: "h", cause: .pinned),
        Case(preferences: .init(maximumHeight: 719), rid: "l", cause: .pinned),
        Case(preferences: .init(maximumHeight: 90), rid: "l", cause: .pinned),
        Case(limit: 180, rid: "l", cause: .application),
        Case(limit: 720, rid: "h", cause: .application),
        Case(preferences: .init(maximumHeight: 720), limit: 180, rid: "l", cause: .pinned),
        Case(preferences: .init(maximumHeight: 180), limit: 720, rid: "l", cause: .pinned),
        Case(preferences: .init(pin: .low), rid: "l", cause: .pinned),
        Case(preferences: .init(pin: .high), rid: "h", cause: .pinned),
        Case(preferences: .init(pin: .high), limit: 180, rid: "l", cause: .pinned),
        Case(preferences: .init(maximumHeight: 180, pin: .high), rid: "l", cause: .pinned),
        Case(preferences: .init(isAudioOnly: true), rid: nil, cause: .pinned),
        Case(preferences: .init(pin: .high, isAudioOnly: true), limit: 180, rid: nil, cause: .pinned),
    ])
    func `choose the layer together with control's limit, and say why`(_ wanted: Case) throws {
        #expect(served == "h")
        slot.limit(to: wanted.limit, at: rig.now)
        session.prefer(wanted.preferences, at: rig.now)
        try sendBoth(isKey: true)
        rig.finishReplay(to: slot)
        #expect(served == wanted.rid)
        let picture = try quality()
        let height: Int? = wanted.rid.map { $0 == "h" ? 720 : 180 }
        #expect(picture.served?.rid == wanted.rid && picture.served?.height == height)
        #expect(picture.isPaused == (wanted.rid == nil))
        #expect(session.quality(at: rig.now).cause == wanted.cause)
        // All of it is as before when nothing is wanted any more.
        slot.limit(to: nil, at: rig.now)
        session.prefer(DeliveryPreferences(), at: rig.now)
        try sendBoth(isKey: true)
        rig.finishReplay(to: slot)
        #expect(served == "h")
        #expect(session.quality(at: rig.now).cause == .publisher)
    }

    @Test func `leave nothing of what the path had room for before`() throws {
        slot.grant = .layer(low.layer.index)
        slot.track?.retarget(slot, at: rig.now)
        try sendBoth(isKey: true)
        #expect(served == "l")
        session.prefer(DeliveryPreferences(maximumHeight: 720), at: rig.now)
        #expect(slot.grant == .best)
        try sendBoth(isKey: true)
        #expect(served == "h")
        // The same again is no reason to begin anew.
        slot.grant = .layer(low.layer.index)
        session.prefer(DeliveryPreferences(maximumHeight: 720), at: rig.now)
        #expect(slot.grant == .layer(low.layer.index))
    }

    @Test func `do not hide that a picture is left out for lack of room`() throws {
        slot.grant = .nothing
        slot.track?.retarget(slot, at: rig.now)
        let picture = try quality()
        #expect(picture.isPaused && picture.served == nil && picture.wanted?.rid == "h")
        #expect(session.quality(at: rig.now).cause == .loss)
    }

    // MARK: What is told

    /// Whether there is something to tell the client, once a second at most.
    private func told() -> DeliveryQuality? {
        session.tellQuality(at: rig.now)
        return session.takeQuality()
    }

    @Test func `are told what they come to at once, and once`() throws {
        session.channels.control = 1
        let first = told()
        #expect(first?.pictures.first?.served?.rid == "h")
        #expect(session.takeQuality() == nil)
        session.prefer(DeliveryPreferences(isAudioOnly: true), at: rig.now)
        let news = session.takeQuality()
        #expect(news?.cause == .pinned && news?.pictures.first?.isPaused == true)
        session.prefer(DeliveryPreferences(isAudioOnly: true), at: rig.now)
        #expect(session.takeQuality() == nil)
    }

    @Test func `are told nothing new while nothing changes, and no change before a second is over`() throws {
        session.channels.control = 1
        #expect(told() != nil)
        for _ in 0..<5 {
            rig.pass(.seconds(1))
            try sendBoth()
            #expect(told() == nil)
        }
        slot.limit(to: 180, at: rig.now)
        try sendBoth(isKey: true)
        #expect(served == "l")
        rig.pass(.milliseconds(500))
        try sendBoth()
        rig.pass(.milliseconds(499))
        #expect(told() == nil)
        rig.pass(.milliseconds(1))
        let news = told()
        #expect(news?.pictures.first?.served?.rid == "l" && news?.cause == .application)
    }

    /// A player without a control channel is not told; whoever measures it still is.
    @Test func `are told to nobody without a control channel`() throws {
        #expect(session.gauge.quality == nil)
        #expect(told() == nil)
        #expect(session.gauge.quality?.pictures.first?.served?.rid == "h")
        rig.pass(.seconds(1))
        session.channels.control = 1
        #expect(told() != nil, "the client has not been told anything yet")
    }

    // MARK: Importance

    private static let orders: [([String], [String])] = [
        ([], ["0", "1", "2"]), (["1"], ["1", "0", "2"]), (["2", "1"], ["1", "2", "0"]),
        (["2", "9"], ["2", "0", "1"]), (["0", "1", "2"], ["0", "1", "2"]),
    ]

    @Test(arguments: orders)
    func `put favoured pictures before others, in the order of the offer`(
        mids: [String], order: [String]
    ) throws {
        let viewer = rig.session(video: 3)
        viewer.favour(["0", "2"], at: rig.now)
        viewer.favour(mids, at: rig.now)
        #expect(viewer.slotsByImportance.map(\.plan.mid) == order)
        #expect(viewer.slots.map(\.plan.mid) == ["0", "1", "2"])
    }
}

/// How long it takes a client to join, by what it came for.
@Suite struct `The progress of joining` {
    private let recorder = JoinRecorder()

    private func time(_ milliseconds: Int64) -> MonotonicTime {
        MonotonicTime(nanoseconds: 9_000_000_000 + milliseconds * 1_000_000)
    }

    @Test(arguments: [true, false]) func `counts each step once, from the request on`(isPublisher: Bool) {
        var progress = JoinProgress(requested: time(0), isPublisher: isPublisher, recorder: recorder)
        let checks = [100, 150, 900].map { progress.noteCheck(at: time($0)) }
        #expect(checks == [true, false, false])
        progress.noteConnection(at: time(300))
        for milliseconds in [400, 500, 50] as [Int64] { progress.noteMedia(at: time(milliseconds)) }
        #expect(progress.checked == time(100) && progress.connected == time(300))
        #expect(progress.firstMedia == time(400))
        let own = isPublisher ? recorder.publishers : recorder.viewers
        let others = isPublisher ? recorder.viewers : recorder.publishers
        let counts = [own.checked, own.connected, own.firstMedia].map(\.count)
        let durations = [own.checked, own.connected, own.firstMedia].map { $0.nanoseconds / 1_000_000 }
        #expect(counts == [1, 1, 1] && durations == [100, 300, 400])
        #expect(others == JoinPhases())
    }

    @Test func `adds up over clients, and takes a request from the future for one of now`() {
        for milliseconds in [20, 40, 5_000] as [Int64] {
            var progress = JoinProgress(requested: time(30), isPublisher: false, recorder: recorder)
            progress.noteConnection(at: time(milliseconds))
        }
        let joined = recorder.viewers.connected
        #expect(joined.count == 3 && joined.nanoseconds == 4_980_000_000)
        #expect(recorder.viewers.checked.count == 0 && recorder.viewers.firstMedia.count == 0)
        var sum = JoinPhases()
        sum.add(recorder.viewers)
        sum.add(recorder.viewers)
        #expect(sum.connected.count == 6 && sum.checked.count == 0)
    }
}
