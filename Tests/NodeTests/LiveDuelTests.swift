import Base
import Forwarding
import Peer
import Stage
import TestSupport
import Testing
import Wire

@testable import Node

/// Two streams that show each other's host.
@Suite struct `Streams in a duel` {
    private var rig = LiveRig()
    private let talk: StreamID
    private let quiz: StreamID
    private let ann: SessionID
    private let cleo: SessionID

    init() throws {
        talk = try #require(StreamID("talk"))
        quiz = try #require(StreamID("quiz"))
        rig.begin(talk)
        rig.begin(quiz, .composed)
        // The same identity is host of both.
        ann = try rig.publish("ann", as: .host, in: talk)
        cleo = try rig.publish("ann", as: .host, in: quiz)
        for stream in [talk, quiz] {
            let request = SessionRequest(purpose: .play, stream: stream, sender: nil, offer: "")
            _ = try rig.admit(rig.candidate(request, gets: [.audio, .video]))
        }
    }

    private mutating func meet() {
        let (talk, quiz) = (talk, quiz)
        rig.change { $0.setOpponent(quiz, of: talk, at: $1) }
        rig.change { $0.setOpponent(talk, of: quiz, at: $1) }
        rig.makeTracks()
    }

    private func inSlots(of session: SessionID, in stream: StreamID) -> Set<SessionID> {
        Set(rig.live[stream]?.room?.layout.slots(of: session).compactMap { $0.source?.session } ?? [])
    }

    @Test mutating func `are composed each, of two who see and hear each other`() {
        meet()
        #expect(Set(rig.jobs.values) == [talk, quiz])
        #expect(rig.taps.count == 8, "sound and picture of two people in two compositions")
        #expect(inSlots(of: ann, in: talk) == [cleo])
        #expect(inSlots(of: cleo, in: quiz) == [ann])
        let slots = rig.lastReply(to: ann)
        #expect(slots != nil)
    }

    @Test mutating func `follow a host who comes back by another session`() throws {
        meet()
        let again = try rig.publish("ann", as: .host, in: quiz)
        rig.advance(by: .milliseconds(200))
        #expect(inSlots(of: ann, in: talk) == [again])
    }

    @Test mutating func `go back to what they were`() {
        meet()
        let (talk, quiz) = (talk, quiz)
        rig.change { $0.setOpponent(nil, of: talk, at: $1) }
        rig.change { $0.setOpponent(nil, of: quiz, at: $1) }
        rig.advance(by: .seconds(1))
        rig.advance(by: .seconds(10))
        #expect(inSlots(of: ann, in: talk).isEmpty)
        #expect(rig.jobs.isEmpty && rig.taps.isEmpty)
    }

    @Test mutating func `show nobody of a stream that has ended`() {
        meet()
        let quiz = quiz
        rig.change { $0.perform(.close, in: quiz, at: $1) }
        #expect(inSlots(of: ann, in: talk).isEmpty)
    }
}
