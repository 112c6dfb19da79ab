import Foundation
import Testing

@testable import RostrumClient

@Suite struct `What a sync socket tells` {
    private var progress = SyncProgress()

    private static let snapshot = #"""
        {"type":"snapshot","version":1893528000001,
         "stream":{"id":"talk","state":"live","title":"Evening talk","viewers":7},
         "speakers":{"ann":{"name":"Ann","role":"host","present":true,"audioMuted":false}},
         "viewers":{"bob":{"name":"Bob"},"cat":{"name":null}},
         "raisedHands":{"bob":{"name":"Bob","order":2,"held":false},"cat":{"order":1,"held":true},
                        "dan":{"order":3,"held":false}},
         "invitations":{},"counts":{"viewers":7},
         "interaction":{"comments":[{"number":12,"id":"c-1","author":"bob","name":"Bob","text":"Good evening!",
                                     "at":"2030-01-01T20:00:00.000Z"}]}}
        """#

    private mutating func receive(_ text: String) throws -> [SyncEvent] {
        try progress.receive(Data(text.utf8))
    }

    @Test mutating func `begins with everything`() throws {
        let events = try receive(Self.snapshot)
        #expect(progress.version == 1_893_528_000_001)
        let state = try #require(progress.state)
        #expect(state.stream?.title == "Evening talk")
        #expect(state.stream?.isLive == true)
        #expect(state.speakers["ann"]?.isHost == true)
        #expect(state.viewers == ["bob": "Bob", "cat": ""])
        #expect(events.first == .changed(state))
        guard case .comments(let comments) = events.last else {
            Issue.record("no comments")
            return
        }
        #expect(comments.map(\.text) == ["Good evening!"])
        #expect(comments.first?.at == Date(timeIntervalSince1970: 1_893_528_000))
    }

    @Test mutating func `orders hands, those that are held at the end`() throws {
        _ = try receive(Self.snapshot)
        #expect(progress.state?.raisedHands == ["bob", "dan", "cat"])
    }

    @Test mutating func `goes on with changes, by a merge patch`() throws {
        _ = try receive(Self.snapshot)
        let change = #"""
            {"type":"change","version":1893528000002,"stream":{"viewers":8,"title":null},
             "viewers":{"bob":null,"dan":{"name":"Dan"}},"invitations":{"bob":{"name":"Bob"}}}
            """#
        _ = try receive(change)
        #expect(progress.version == 1_893_528_000_002)
        #expect(progress.state?.stream?.viewers == 8)
        #expect(progress.state?.stream?.title == nil)
        #expect(progress.state?.stream?.state == "live")
        #expect(progress.state?.viewers == ["cat": "", "dan": "Dan"])
        #expect(progress.state?.invitations == ["bob"])
    }

    @Test mutating func `forgets what was known with another snapshot`() throws {
        _ = try receive(Self.snapshot)
        _ = try receive(#"{"type":"snapshot","version":5,"stream":{"id":"talk"},"speakers":{}}"#)
        #expect(progress.version == 5)
        #expect(progress.state?.viewers.isEmpty == true)
    }

    @Test mutating func `tells what we are, and what we are asked for`() throws {
        let you =
            #"{"type":"you","you":{"id":"bob","name":"Bob","role":"speaker","invited":true,"handPlace":2}}"#
        #expect(try receive(you) == progress.me.map { [.me($0)] })
        #expect(progress.me?.role == .speaker)
        #expect(progress.me?.handPlace == 2)
        #expect(
            try receive(#"{"type":"mute","kind":"video","by":"ann"}"#)
                == [.muteRequested(kind: "video", by: "ann")])
    }

    @Test mutating func `passes on what it does not know, and no heartbeats`() throws {
        #expect(try receive(#"{"type":"heartbeat","version":9}"#).isEmpty)
        guard case .message(let message)? = try receive(#"{"type":"refused","rule":"slow-mode"}"#).first
        else {
            Issue.record("nothing was passed on")
            return
        }
        #expect(message.type == "refused")
        #expect(try message.decoded(as: [String: String].self)["rule"] == "slow-mode")
    }

    @Test(arguments: [#"{"type":"snapshot""#, "", "[", #""a"#]) mutating func `refuses what is cut off`(
        _ text: String
    ) {
        #expect(throws: RostrumError.self) { try progress.receive(Data(text.utf8)) }
    }

    @Test mutating func `refuses what is nested too deeply`() {
        let text = String(repeating: "[", count: 100_000) + String(repeating: "]", count: 100_000)
        #expect(throws: RostrumError.self) { try progress.receive(Data(text.utf8)) }
    }
}

@Suite struct `Why a sync socket does not come back` {
    @Test func `is told by the close code and its reason`() {
        #expect(SyncVerdict.finalReason(SocketLoss(code: 4_403, reason: "banned")) == .banned)
        #expect(SyncVerdict.finalReason(SocketLoss(code: 4_403, reason: "link-revoked")) == .revoked)
        #expect(SyncVerdict.finalReason(SocketLoss(code: 4_403, reason: "")) == .removed)
        #expect(SyncVerdict.finalReason(SocketLoss(code: 1_013, reason: "")) == nil)
        #expect(SyncVerdict.finalReason(SocketLoss(code: 1_006, reason: "")) == nil)
    }
}
