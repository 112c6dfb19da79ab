import Base
import Interaction
import TestSupport
import Testing
import Wire

@testable import Node

@Suite struct ControlMessages {
    private func request(_ text: String) -> ControlRequest? {
        ControlRequest(parsing: DataChannelMessage(text))
    }

    @Test func `each control message is read`() throws {
        let bob = try #require(ParticipantID("Bob"))
        #expect(request(#"{"type":"ping"}"#) == .ping)
        #expect(
            request(#"{"type":"pin","participant":"Bob","mid":"3","maxHeight":720}"#)
                == .pin(bob, mid: "3", maximumHeight: 720))
        #expect(request(#"{"type":"pin","mid":"3","more":[1]}"#) == .pin(nil, mid: "3", maximumHeight: nil))
        #expect(request(#"{"type":"slot","mid":"3"}"#) == .slot(mid: "3", maximumHeight: nil))
        #expect(request(#"{"type":"visible","mid":"3","visible":false}"#) == .visible(false, mid: "3"))
        #expect(request(#"{"message_type":"mute","to_participant_identity":"Bob"}"#) == .mute(bob, .audio))
        #expect(
            request(#"{"message_type":"mute","to_participant_identity":"Bob","kind":"video"}"#)
                == .mute(bob, .video))
        #expect(request(#"{"type":"uplink","limitedBy":"bandwidth"}"#) == .weakUplink)
        #expect(
            request(#"{"type":"comment","id":"c-1","text":"hi"}"#)
                == .interact(.comment(key: "c-1", text: "hi")))
        #expect(request(#"{"type":"react","reactions":{"heart":3}}"#) == .interact(.react(["heart": 3])))
        #expect(
            request(#"{"type":"vote","poll":2,"options":[0,1]}"#) == .interact(.vote(2, options: [0, 1])))
        #expect(request(#"{"type":"follow"}"#) == .follow)
    }

    @Test(arguments: [
        "", "{", "null", "[]", "7", #"{"type":"pin"}"#, #"{"type":7}"#, #"{"type":"pin","mid":3}"#,
        #"{"type":"slot","mid":"3","maxHeight":1e99}"#, #"{"message_type":"mute"}"#,
        #"{"message_type":"mute","to_participant_identity":""}"#,
        #"{"type":"pin","participant":"","mid":"3"}"#, #"{"type":"pin","participant":"a\nb","mid":"3"}"#,
        #"{"message_type":"mute","to_participant_identity":"Bob","kind":"all"}"#, #"{"type":"focus"}"#,
        #"{"type":"uplink"}"#, #"{"type":"uplink","limitedBy":"cpu"}"#, #"{"type":"comment","id":"a"}"#,
        #"{"type":"comment","text":"a"}"#, #"{"type":"react"}"#,
        #"{"type":"react","reactions":{"heart":0.5}}"#,
        #"{"type":"vote","poll":1}"#, #"{"type":"vote","options":[1]}"#, #"{"type":"delete"}"#,
    ])
    func `a control message without meaning is refused`(text: String) {
        #expect(request(text) == nil)
    }

    @Test func `no control message traps`() {
        var random = SeededGenerator(seed: 8_831)
        let example = Array(#"{"type":"pin","participant":"Bob","mid":"3","maxHeight":720}"#.utf8)
        for _ in 0..<2_000 {
            var bytes = example
            for _ in 0..<Int.random(in: 1...4, using: &random) {
                bytes[Int.random(in: 0..<bytes.count, using: &random)] = .random(in: 0...255, using: &random)
            }
            _ = ControlRequest(parsing: .binary(bytes))
        }
    }

    @Test func `the message about slots names what each one carries`() {
        let slot = ControlReply.Slot(
            mid: "2", kind: .video, stream: "s1", participant: "Bob", muted: false, screen: false)
        let text = String(decoding: ControlReply(type: .slots, slots: [slot]).bytes, as: UTF8.self)
        #expect(
            text == #"{"slots":[{"kind":"video","mid":"2","muted":false,"participant":"Bob","screen":false,"#
                + #""stream":"s1"}],"type":"slots"}"#)
    }

    @Test func `name everybody in a slot that carries a composition`() {
        let slot = ControlReply.Slot(
            mid: "0", kind: .audio, stream: "s1", muted: false, screen: false, participants: ["Ann", "Bob"])
        let text = String(decoding: ControlReply(type: .slots, slots: [slot]).bytes, as: UTF8.self)
        #expect(
            text == #"{"slots":[{"kind":"audio","mid":"0","muted":false,"participants":["Ann","Bob"],"#
                + #""screen":false,"stream":"s1"}],"type":"slots"}"#)
    }
}
