import Base
import Crypto
import Forwarding
import Peer
import Stage
import StoryFeed
import TestSupport
import Testing
import Wire

@testable import Node

/// Which viewers get a gated stream, by what workers are told.
@Suite struct `The gate before viewers` {
    private var rig = LiveRig()
    private let talk: StreamID
    private let quiz: StreamID
    private let gate = StageDetails.Gate(tier: "gold", freeSeconds: 10, unlock: "https://shop.example/gold")

    init() throws {
        (talk, quiz) = (try #require(StreamID("talk")), try #require(StreamID("quiz")))
    }

    private func sender(
        _ name: String, _ authority: Stage.Sender.Authority = .viewer, tiers: Set<String> = [],
        mayModerate: Bool = false, isGuest: Bool = false
    ) throws -> Stage.Sender {
        Stage.Sender(
            id: try #require(ParticipantID(name)), authority: authority, mayModerate: mayModerate,
            tiers: tiers, isGuest: isGuest)
    }

    private mutating func goLive(gate: StageDetails.Gate?, speakers: Set<ParticipantID> = []) throws {
        rig.begin(talk, gate: gate, speakers: speakers)
        rig.begin(quiz)
        rig.takeNews()
        _ = try rig.publish("ann", as: .host, in: talk)
        _ = try rig.publish("bea", as: .host, in: quiz)
    }

    private mutating func watch(
        as sender: Stage.Sender?, by purpose: SessionRequest.Purpose = .play,
        from address: String = "192.0.2.1"
    ) throws -> SessionID {
        let request = SessionRequest(
            purpose: purpose, stream: talk, sender: sender, offer: "", clientAddress: IPAddress(address))
        let id = try rig.admit(rig.candidate(request, gets: [.audio, .video]))
        rig.receive(.connected(id, .aeadAES128GCM, nil))
        return id
    }

    private mutating func enterFeed(
        as sender: Stage.Sender?, on stream: StreamID?, preload: FeedPreload = .onSwipe
    ) throws -> SessionID {
        let reader = FeedReader(scope: .all, sender: sender, standing: .all)
        let wish = FeedWish(reader: reader, stream: stream, preload: preload)
        let request = SessionRequest(feed: wish, offer: "", clientAddress: IPAddress("192.0.2.1"))
        let id = try rig.admit(rig.candidate(request, gets: [.audio, .video, .audio, .video]))
        rig.receive(.connected(id, .aeadAES128GCM, nil))
        rig.receive(.controlOpened(id))
        return id
    }

    private func streams(of id: SessionID) -> Set<StreamID> { Set(rig.seats[id]?.values.map(\.self) ?? []) }

    private mutating func show(_ sender: Stage.Sender, by id: SessionID, in scope: FeedReader.Scope) {
        rig.change { $0.present(ViewerGates.Pass(sender: sender, scope: scope), by: id, at: $1) }
    }

    @Test mutating func `gives who lacks the tier the free seconds, and then nothing`() throws {
        try goLive(gate: gate)
        let id = try watch(as: try sender("bob"))
        #expect(streams(of: id) == [talk])
        rig.advance(by: .milliseconds(9_800))
        #expect(streams(of: id) == [talk])
        rig.advance(by: .milliseconds(300))
        #expect(streams(of: id) == [])
        rig.advance(by: .seconds(3_600))
        #expect(streams(of: id) == [])
        // The session is still there, for when they have it.
        #expect(rig.opened.contains(id))
        show(try sender("bob", tiers: ["gold"]), by: id, in: .one(talk))
        #expect(streams(of: id) == [talk])
        rig.advance(by: .seconds(3_600))
        #expect(streams(of: id) == [talk])
    }

    @Test mutating func `is open to those who have the tier, or work there`() throws {
        let sam = try sender("sam", .speaker)
        try goLive(gate: StageDetails.Gate(tier: "gold"), speakers: [sam.id])
        for open in [
            try sender("vip", tiers: ["gold"]), sam, try sender("root", .admin),
            try sender("mo", mayModerate: true),
        ] {
            let id = try watch(as: open)
            #expect(streams(of: id) == [talk], "\(open)")
        }
        for shut in [
            nil, try sender("bob"), try sender("eve", tiers: ["silver"]),
            // A host of other streams, and a speaker who left this stage.
            try sender("fay", .host), try sender("sue", .speaker),
        ] {
            let isViewer = shut?.authority == .viewer
            for purpose in isViewer ? [SessionRequest.Purpose.play, .stage] : [.play] {
                let shutGate = StageDetails.Gate(tier: "gold")
                #expect(throws: SessionRefusal.gated(shutGate), "\(String(describing: shut))") {
                    _ = try watch(as: shut, by: purpose)
                }
            }
        }
    }

    @Test mutating func `gives no second time to whoever comes back, however they come`() throws {
        try goLive(gate: gate)
        let bob = try sender("bob")
        let first = try watch(as: bob)
        rig.advance(by: .seconds(6))
        rig.change { $0.end(first, because: "deleted", at: $1) }
        rig.advance(by: .seconds(60))
        // By the stage's endpoint, and in the feed: it goes on where it was.
        let second = try watch(as: bob, by: .stage)
        rig.advance(by: .seconds(2))
        rig.change { $0.end(second, because: "deleted", at: $1) }
        let third = try enterFeed(as: bob, on: talk)
        #expect(streams(of: third) == [talk])
        rig.advance(by: .milliseconds(2_200))
        #expect(streams(of: third) == [])
        #expect(throws: SessionRefusal.gated(gate)) { _ = try watch(as: bob) }
        // To go on and to come back changes nothing.
        rig.say(#"{"type":"focus","stream":"quiz"}"#, by: third)
        #expect(streams(of: third) == [quiz])
        rig.say(#"{"type":"focus","stream":"talk"}"#, by: third)
        #expect(streams(of: third) == [])
    }

    @Test mutating func `counts those by address whose name says nothing`() throws {
        try goLive(gate: gate)
        let first = try watch(as: try sender("guest-1", isGuest: true))
        rig.advance(by: .seconds(11))
        #expect(streams(of: first) == [])
        #expect(throws: SessionRefusal.gated(gate)) {
            _ = try watch(as: try sender("guest-2", isGuest: true))
        }
        #expect(throws: SessionRefusal.gated(gate)) { _ = try watch(as: nil) }
        let other = try watch(as: nil, from: "192.0.2.2")
        #expect(streams(of: other) == [talk])
    }

    @Test mutating func `a gated neighbour is not shown ahead, and each switch checks the gate`() throws {
        try goLive(gate: gate)
        let id = try enterFeed(as: try sender("bob"), on: quiz)
        rig.say(#"{"type":"peek","stream":"talk","direction":"forward"}"#, by: id)
        #expect(streams(of: id) == [quiz])
        // A neighbour takes no time.
        rig.advance(by: .seconds(60))
        rig.say(#"{"type":"focus","stream":"talk"}"#, by: id)
        #expect(streams(of: id) == [talk])
        #expect(rig.lastReply(to: id, "gate")?.state == "free")
        #expect(rig.lastReply(to: id, "gate")?.remaining == 10)
        rig.advance(by: .milliseconds(10_200))
        #expect(streams(of: id) == [])
        #expect(rig.lastReply(to: id, "gate")?.state == "shut")
        show(try sender("bob", tiers: ["gold"]), by: id, in: .all)
        #expect(streams(of: id) == [talk])
        #expect(rig.lastReply(to: id, "gate")?.state == "open")
        rig.say(#"{"type":"focus","stream":"quiz"}"#, by: id)
        rig.say(#"{"type":"peek","stream":"talk","direction":"forward"}"#, by: id)
        #expect(streams(of: id) == [talk, quiz])
    }

    @Test mutating func `a token for another stream does not open the gate`() throws {
        try goLive(gate: gate)
        let id = try watch(as: try sender("bob"))
        rig.advance(by: .seconds(11))
        show(try sender("bob", tiers: ["gold"]), by: id, in: .one(quiz))
        show(try sender("bob", tiers: ["silver"]), by: id, in: .one(talk))
        #expect(streams(of: id) == [])
        // Many of them push no better one out that comes later.
        for number in 0..<50 { show(try sender("x\(number)"), by: id, in: .all) }
        show(try sender("bob", tiers: ["gold"]), by: id, in: .one(talk))
        #expect(streams(of: id) == [talk])
    }

    @Test mutating func `is opened by no token of somebody banned, but for an admin's`() throws {
        try goLive(gate: gate)
        let (bob, root) = (try sender("bob", tiers: ["gold"]), try sender("root", .admin))
        let id = try watch(as: nil)
        rig.advance(by: .seconds(11))
        show(bob, by: id, in: .one(talk))
        #expect(streams(of: id) == [talk])
        rig.begin(talk, gate: gate, banned: [bob.id, root.id])
        rig.takeNews()
        #expect(streams(of: id) == [])
        show(bob, by: id, in: .one(talk))
        #expect(streams(of: id) == [])
        show(root, by: id, in: .one(talk))
        #expect(streams(of: id) == [talk])
    }

    @Test mutating func `a gate that is set or removed takes effect for those who watch`() throws {
        try goLive(gate: nil)
        let (bob, vip) = (try watch(as: try sender("bob")), try watch(as: try sender("vip", tiers: ["gold"])))
        let inFeed = try enterFeed(as: try sender("eve"), on: talk)
        rig.begin(talk, gate: StageDetails.Gate(tier: "gold"))
        rig.takeNews()
        #expect(streams(of: bob) == [] && streams(of: inFeed) == [] && streams(of: vip) == [talk])
        rig.begin(talk, gate: StageDetails.Gate(tier: "gold", freeSeconds: 5))
        rig.takeNews()
        #expect(streams(of: bob) == [talk] && streams(of: inFeed) == [talk])
        rig.advance(by: .seconds(6))
        #expect(streams(of: bob) == [] && streams(of: inFeed) == [])
        rig.begin(talk)
        rig.takeNews()
        #expect(streams(of: bob) == [talk] && streams(of: inFeed) == [talk])
    }

    @Test mutating func `comes nearer for those who watch when less is free`() throws {
        try goLive(gate: StageDetails.Gate(tier: "gold", freeSeconds: 600))
        let id = try watch(as: try sender("bob"))
        rig.advance(by: .seconds(6))
        rig.begin(talk, gate: gate)
        rig.takeNews()
        rig.advance(by: .milliseconds(3_800))
        #expect(streams(of: id) == [talk])
        rig.advance(by: .milliseconds(300))
        #expect(streams(of: id) == [])
    }

    @Test mutating func `shuts out a speaker who has left the stage, but for the free seconds`() throws {
        let sam = try sender("sam", .speaker)
        try goLive(gate: StageDetails.Gate(tier: "gold"), speakers: [sam.id])
        let id = try watch(as: sam)
        rig.begin(talk, gate: StageDetails.Gate(tier: "gold"))
        rig.takeNews()
        #expect(streams(of: id) == [])
    }

    @Test mutating func `lets nobody's time run before there is something to be seen`() throws {
        rig.begin(talk, gate: gate)
        rig.takeNews()
        let request = SessionRequest(
            purpose: .play, stream: talk, sender: try sender("bob"), offer: "", patience: .seconds(600))
        let id = try rig.admit(rig.candidate(request, gets: [.audio, .video]))
        rig.advance(by: .seconds(30))
        rig.receive(.connected(id, .aeadAES128GCM, nil))
        rig.advance(by: .seconds(30))
        _ = try rig.publish("ann", as: .host, in: talk)
        rig.advance(by: .seconds(9))
        #expect(streams(of: id) == [talk])
        rig.advance(by: .seconds(2))
        #expect(streams(of: id) == [])
    }

    /// Whatever viewers and hosts do, no worker is told to send a viewer a stream that is shut to them.
    @Test(arguments: 1...15)
    mutating func `nobody ever sees more than the gate allows`(seed: UInt64) throws {
        var random = SeededGenerator(seed: seed)
        try goLive(gate: gate)
        var current: StageDetails.Gate? = gate
        var sessions: [SessionID: String] = [:]
        var paid: Set<SessionID> = []
        var watched: [String: Duration] = [:]
        for _ in 0..<400 {
            let name = "v\(Int.random(in: 0..<5, using: &random))"
            let some = sessions.keys.sorted().randomElement(using: &random)
            switch Int.random(in: 0..<10, using: &random) {
            case 0, 1:
                let purpose: SessionRequest.Purpose = Bool.random(using: &random) ? .play : .stage
                if let id = try? watch(as: try sender(name), by: purpose) { sessions[id] = name }
            case 2: sessions[try enterFeed(as: try sender(name), on: nil, preload: .eager)] = name
            case 3:
                if let some { rig.change { $0.end(some, because: "deleted", at: $1) } }
            case 4, 5:
                let target = Bool.random(using: &random) ? "talk" : "quiz"
                let kind = Bool.random(using: &random) ? "focus" : "peek"
                if let some { rig.say("{\"type\":\"\(kind)\",\"stream\":\"\(target)\"}", by: some) }
            case 6 where Int.random(in: 0..<6, using: &random) == 0:
                if let some {
                    show(try sender(name, tiers: ["gold"]), by: some, in: .all)
                    paid.insert(some)
                }
            case 7 where Int.random(in: 0..<8, using: &random) == 0:
                current = Bool.random(using: &random) ? gate : StageDetails.Gate(tier: "gold")
                rig.begin(talk, gate: current)
                rig.takeNews()
            default:
                let step = Duration.milliseconds(Int64.random(in: 1...900, using: &random))
                let unpaid = sessions.filter {
                    streams(of: $0.key).contains(talk) && !paid.contains($0.key)
                }
                for name in Set(unpaid.values) { watched[name, default: .zero] += step }
                rig.advance(by: step)
            }
            sessions = sessions.filter { rig.opened.contains($0.key) }
            for (id, _) in sessions where !paid.contains(id) && current?.freeSeconds == 0 {
                #expect(!streams(of: id).contains(talk))
            }
        }
        // A timer's step may pass until somebody is shut out.
        for (name, time) in watched { #expect(time <= .seconds(12), "\(name)") }
        #expect(!watched.isEmpty)
    }
}
