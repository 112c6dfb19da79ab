import Base
import Stage
import TestSupport
import Testing

@testable import Node

@Suite struct `What followers know of a stream` {
    private let show: StreamID
    private let people: [ParticipantID]

    init() throws {
        show = try #require(StreamID("show"))
        people = try (1...6).map { try #require(ParticipantID("p\($0)")) }
    }

    private func anything(_ random: inout SeededGenerator) -> SyncView {
        func coin() -> Bool { Bool.random(using: &random) }
        func number(_ range: ClosedRange<Int>) -> Int { Int.random(in: range, using: &random) }
        func time() -> WallTime { WallTime(milliseconds: Int64(number(1...3))) }
        var stream = StreamSnapshot(waitingFor: show)
        stream.state = StreamState.allCases[number(0...3)]
        stream.host = coin() ? people[0] : nil
        stream.hostName = coin() ? "Ann" : nil
        stream.startedAt = coin() ? time() : nil
        stream.endedAt = coin() ? time() : nil
        stream.details.title = coin() ? "Title \(number(1...2))" : nil
        let shop = coin() ? "https://shop.example/" : nil
        stream.details.gate = coin() ? StageDetails.Gate(tier: "gold", unlock: shop) : nil
        stream.areDoorsOpen = coin()
        (stream.viewers, stream.waiting) = (number(0...2), number(0...1))
        (stream.hasAudio, stream.hasVideo) = (coin(), coin())
        (stream.isRecording, stream.isKept, stream.mayBeginAnew) = (coin(), coin(), coin())
        let url = coin() ? "/preview" : nil
        let preview = StreamPreview(
            width: 360, height: number(1...2), capturedAt: time(), blurHash: "L", url: url)
        stream.preview = coin() ? preview : nil
        var view = SyncView(stream: stream)
        for id in people where coin() {
            var member = StageRecord.Member(name: coin() ? "Name" : nil, since: time())
            (member.isAudioMuted, member.isPaused) = (coin(), coin())
            view.speakers[id] = SyncView.Member(
                member: member, isHost: coin(), isPresent: coin(), hasWeakUplink: coin())
        }
        for id in people where coin() { view.viewers[id] = SyncView.Viewer(name: "Vic", isModerator: coin()) }
        for id in people where coin() {
            view.hands[id] = StageRecord.Entry(name: nil, since: time(), order: number(1...3))
        }
        for id in people where coin() {
            view.invitations[id] = StageRecord.Entry(name: coin() ? "Vic" : nil, since: time())
        }
        view.programme = SyncView.Programme(hasAudio: coin(), hasVideo: coin(), isPaused: coin())
        return view
    }

    /// As a client has it that merges what it is sent.
    private func known(_ patches: [String: JSON]...) -> JSON {
        patches.reduce(.object([:])) { TestFollower.merged($0, .object($1)) }
    }

    @Test(arguments: ChosenSeed.or(1...4)) func `applying a patch gives the same as the whole view`(
        seed: UInt64
    ) {
        var random = SeededGenerator(seed: seed)
        var old = anything(&random)
        for _ in 0..<400 {
            let new = anything(&random)
            let patch = new.patch(from: old)
            #expect(known(old.json, patch) == known(new.json))
            #expect(new.patch(from: new).isEmpty)
            old = new
        }
    }

    /// What has not changed is not sent again: there may be a thousand followers.
    @Test func `a patch has only what has changed`() {
        var view = SyncView(stream: StreamSnapshot(waitingFor: show))
        view.viewers[people[0]] = SyncView.Viewer(name: "Vic", isModerator: false)
        view.viewers[people[1]] = SyncView.Viewer(name: "Eve", isModerator: false)
        view.stream.viewers = 2
        var next = view
        next.viewers[people[1]] = nil
        next.viewers[people[2]] = SyncView.Viewer(name: "Dan", isModerator: true)
        next.stream.details.title = "News"
        let dan = JSON.object(["name": .string("Dan"), "moderator": .bool(true)])
        #expect(
            next.patch(from: view) == [
                "stream": .object(["title": .string("News")]),
                "viewers": .object(["p2": .null, "p3": dan]),
            ])
        next.stream.viewers = 3
        #expect(next.patch(from: view)["counts"] == .object(["viewers": .number(3)]))
    }

    /// Only these may wait for a moment where many follow.
    @Test func `is the same stream while only people and what they do differ`() {
        let view = SyncView(stream: StreamSnapshot(waitingFor: show))
        let (id, time) = (people[0], WallTime(milliseconds: 1))
        let entry = StageRecord.Entry(name: nil, since: time)
        let member = SyncView.Member(
            member: StageRecord.Member(name: nil, since: time), isHost: true, isPresent: true,
            hasWeakUplink: false)
        let ofPeople: [(inout SyncView) -> Void] = [
            { $0.viewers[id] = SyncView.Viewer(name: "Vic", isModerator: false) }, { $0.hands[id] = entry },
            { $0.invitations[id] = entry }, { $0.speakers[id] = member }, { $0.stream.viewers = 7 },
            { $0.stream.waiting = 7 },
            { ($0.stream.isPaused, $0.programme.isPaused) = (true, true) },
        ]
        for change in ofPeople {
            var other = view
            change(&other)
            #expect(other != view && other.isSameStream(as: view))
        }
        let ofStream: [(inout SyncView) -> Void] = [
            { $0.stream.state = .live }, { $0.stream.details.title = "News" }, { $0.stream.host = id },
            { $0.stream.areDoorsOpen = true }, { $0.stream.isRecording = true }, { $0.stream.isKept = true },
            { $0.programme.hasVideo = true }, { $0.stream.banned[id] = time },
        ]
        for change in ofStream {
            var other = view
            change(&other)
            #expect(!other.isSameStream(as: view))
        }
    }

    @Test func `names its host by the identity where there is no name, and what ended for good`() {
        var stream = StreamSnapshot(waitingFor: show)
        #expect(stream.json["hostName"] == .null && stream.json["tracks"] == .array([]))
        stream.host = people[0]
        #expect(stream.json["hostName"] == .string("p1"))
        stream.hostName = "Ann"
        stream.hasVideo = true
        #expect(stream.json["hostName"] == .string("Ann"))
        #expect(stream.json["tracks"] == .array([.object(["kind": .string("video")])]))
        #expect(stream.json["final"] == .bool(false))
        stream.state = .ended
        #expect(stream.json["final"] == .bool(true))
        stream.mayBeginAnew = true
        #expect(stream.json["final"] == .bool(false), "it may begin again under its name")
    }
}

@Suite struct `What somebody knows of themselves` {
    private var stage: Stage
    private let now = Moment(elapsed: .zero, wall: WallTime(milliseconds: 1_000_000))
    private let ann = HostRig.ann
    private let bob = HostRig.bob

    init() throws {
        let show = try #require(StreamID("show"))
        stage = try Stage.create(
            show, origin: .made, host: HostRig.ann.id, hostName: "Ann", edit: StageEdit(), at: now
        ).stage
    }

    private mutating func apply(_ command: Stage.Command, from sender: Stage.Sender) throws {
        _ = try stage.apply(command, from: sender, at: now)
    }

    private func you(_ sender: Stage.Sender, areDoorsOpen: Bool = false) -> SyncYou {
        SyncYou(sender, in: stage.record, areDoorsOpen: areDoorsOpen)
    }

    @Test func `is nothing but their token before there is a stream`() {
        for authority in Stage.Sender.Authority.allCases {
            let you = SyncYou(HostRig.sender("ann", authority), in: nil, areDoorsOpen: true)
            #expect(you.standing == .viewer && !you.isModerator && !you.isAdmitted && you.member == nil)
            #expect(you.name == "Ann" && you.handPlace == nil && !you.isInvited)
        }
    }

    @Test func `a participant's rights follow from token and identity together`() {
        let host = you(ann)
        #expect(host.standing == .host && host.isModerator && host.mayModerate && host.isAdmitted)
        #expect(host.member?.name == "Ann")
        // The same identity by a link for viewers.
        let viewer = you(HostRig.sender("ann", .viewer))
        #expect(viewer.standing == .viewer && !viewer.isModerator && !viewer.isAdmitted)
        #expect(viewer.member == nil)
        let admin = you(HostRig.sender("root", .admin))
        #expect(admin.standing == .viewer && admin.isModerator && admin.isAdmitted && admin.member == nil)
        let speaker = you(HostRig.sender("sue", .speaker))
        #expect(speaker.standing == .viewer && !speaker.isModerator && speaker.isAdmitted)
        let moderator = you(Stage.Sender(id: bob.id, authority: .viewer, mayModerate: true))
        #expect(moderator.mayModerate && !moderator.isModerator && !moderator.isAdmitted)
    }

    @Test mutating func `changes with what the host decides about them`() throws {
        #expect(!you(bob).isAdmitted && you(bob, areDoorsOpen: true).isAdmitted)
        try apply(.goLive, from: ann)
        #expect(you(bob).isAdmitted)
        let eve = HostRig.sender("eve", .viewer)
        for sender in [bob, eve] { try apply(.raiseHand, from: sender) }
        #expect(you(eve).isHandRaised && you(eve).handPlace == 2)
        try apply(.holdHand(bob.id, true), from: ann)
        #expect(you(eve).handPlace == 1 && you(bob).isHandRaised && you(bob).handPlace == nil)
        try apply(.invite(bob.id), from: ann)
        #expect(you(bob).isInvited && you(bob).standing == .viewer)
        try apply(.acceptSoundOnly, from: bob)
        let json = you(bob).json
        #expect(json["role"] == .string("speaker") && json["videoMuted"] == .bool(true))
        #expect(json["handRaised"] == .bool(false) && json["invited"] == .bool(false))
        #expect(json["audioMuted"] == .bool(false) && json["tiers"] == .array([]))
        try apply(.ban(bob.id), from: ann)
        #expect(!you(bob).isAdmitted && you(bob).standing == .viewer && you(bob).member == nil)
        try apply(.end, from: ann)
        #expect(!you(ann).isAdmitted && !you(eve).isAdmitted && you(ann).standing == .host)
        #expect(!you(eve).isHandRaised)
    }
}
