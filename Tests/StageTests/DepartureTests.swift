import Base
import Stage
import TestSupport
import Testing

/// Participants who go, come back, and go again.
@Suite struct Departures {
    private let bob = StageRig.viewer("bob")
    private let cid = StageRig.viewer("cid")

    /// Both ends of the grace time are the same, so both look like the latest.
    @Test func `a speaker who returns and leaves again at once is announced as gone once`() throws {
        var rig = try StageRig()
        rig.connect(StageRig.ann)
        let first = rig.connect(bob)
        try rig.apply(.invite(bob.id))
        try rig.apply(.accept, from: bob)
        rig.disconnect(bob, first)
        let second = rig.connect(bob)
        rig.disconnect(bob, second)
        let outcome = rig.wait(15)
        #expect(outcome.changes == [.left(bob.id)])
        #expect(outcome.events == [.left(bob.id)])
        #expect(rig.stage.record.speakers.isEmpty && rig.stage.deadline == nil)
        let later = rig.wait(60)
        #expect(later.isEmpty)
    }

    @Test func `many viewers who leave are announced in order, each after the grace time`() throws {
        var rig = try StageRig()
        let people = (0..<1_500).map { StageRig.viewer("v\($0)") }
        var connections: [Stage.Connection] = []
        for person in people { connections.append(rig.connect(person)) }
        var told: [StageEvent] = []
        for second in 0..<30 {
            if second < 15 {
                for index in (second * 100)..<(second * 100 + 100) {
                    rig.disconnect(people[index], connections[index])
                }
            }
            told += rig.wait(1).events
            let gone = min(max(second - 13, 0), 15) * 100
            #expect(told.count == gone, "after \(second + 1) seconds")
        }
        let expected = people.map { StageEvent.left($0.id) }
        #expect(told == expected)
        #expect(rig.stage.deadline == nil)
    }

    @Test func `an old connection that closes after a removal does not make the new one leave`() throws {
        var rig = try StageRig()
        rig.connect(StageRig.ann)
        let old = rig.connect(bob)
        try rig.apply(.remove(bob.id))
        let new = rig.connect(bob)
        rig.disconnect(bob, old)
        #expect(rig.stage.isPresent(bob.id))
        let meanwhile = rig.wait(60)
        #expect(meanwhile.isEmpty)
        rig.disconnect(bob, new)
        #expect(!rig.stage.isPresent(bob.id) && rig.stage.hasPresence(of: bob.id))
        let gone = rig.wait(15)
        #expect(gone.events == [.left(bob.id)])
    }

    @Test func `the grace time starts anew at each departure`() throws {
        var rig = try StageRig()
        let first = rig.connect(bob)
        rig.disconnect(bob, first)
        rig.wait(10)
        let second = rig.connect(bob)
        rig.wait(2)
        rig.disconnect(bob, second)
        // The end of the first grace time has no meaning any more.
        for seconds in [5, 9] {
            let outcome = rig.wait(seconds)
            #expect(outcome.isEmpty && rig.stage.hasPresence(of: bob.id))
        }
        let outcome = rig.wait(1)
        #expect(outcome.events == [.left(bob.id)])
    }

    @Test func `closing an unknown connection makes nobody leave`() throws {
        var rig = try StageRig()
        let own = rig.connect(bob)
        let other = rig.connect(cid)
        rig.disconnect(bob, other)
        rig.disconnect(bob, .socket(999))
        rig.disconnect(StageRig.viewer("dora"), own)
        #expect(rig.stage.isPresent(bob.id) && rig.stage.isPresent(cid.id))
        #expect(rig.stage.deadline == nil && !rig.stage.hasPresence(of: StageRig.id("dora")))
        // The same connection closes once only.
        rig.disconnect(bob, own)
        rig.wait(10)
        rig.disconnect(bob, own)
        let outcome = rig.wait(5)
        #expect(outcome.events == [.left(bob.id)])
    }

    @Test func `a participant who leaves loses hand and invitation, and others keep theirs`() throws {
        var rig = try StageRig()
        rig.connect(StageRig.ann)
        let connection = rig.connect(bob)
        rig.connect(cid)
        try rig.apply(.raiseHand, from: bob)
        try rig.apply(.raiseHand, from: cid)
        try rig.apply(.invite(bob.id))
        rig.disconnect(bob, connection)
        let outcome = rig.wait(15)
        #expect(outcome.changes == [.left(bob.id)])
        #expect(rig.stage.record.handsInOrder == [cid.id] && rig.stage.record.invitations.isEmpty)
        #expect(throws: Rejection.notInvited) { try rig.apply(.accept, from: bob) }
    }

    /// Viewers without a token have a socket, or a session, or both, and nobody knows whose is whose.
    @Test func `viewers without a name never make the count of viewers negative`() throws {
        var rig = try StageRig()
        rig.connect(StageRig.ann)
        try rig.apply(.goLive)
        var random = SeededGenerator(seed: 5)
        let session = Stage.Connection.session(SessionID(using: &random))
        let now = rig.now
        rig.disconnect(nil, .socket(1))
        rig.disconnect(nil, session)
        #expect(rig.stage.counts.viewers == 0)
        for _ in 0..<3 { rig.connect(nil) }
        #expect(rig.stage.counts.viewers == 3)
        for _ in 0..<2 { _ = rig.stage.connect(nil, by: session, at: now) }
        #expect(rig.stage.counts.viewers == 3, "two of the three have both")
        for _ in 0..<3 { _ = rig.stage.connect(nil, by: session, at: now) }
        #expect(rig.stage.counts.viewers == 5)
        for _ in 0..<9 { rig.disconnect(nil, .socket(1)) }
        #expect(rig.stage.counts.viewers == 5)
        for _ in 0..<9 { rig.disconnect(nil, session) }
        #expect(rig.stage.counts.viewers == 0)
        rig.connect(nil)
        #expect(rig.stage.counts.viewers == 1)
    }

    @Test func `a viewer who leaves makes room in the list for the next one`() throws {
        var rig = try StageRig()
        let limit = Stage.listedViewerLimit
        let people = (0..<limit + 2).map { StageRig.viewer("v\($0)") }
        var connections: [Stage.Connection] = []
        for person in people { connections.append(rig.connect(person)) }
        let before = rig.stage.listViewers().map(\.id)
        let firstOnes = people.prefix(limit).map(\.id)
        #expect(before == firstOnes)
        rig.disconnect(people[3], connections[3])
        let after = rig.stage.listViewers().map(\.id)
        #expect(after.count == limit && after.last == people[limit].id && !after.contains(people[3].id))
        // A viewer who comes back within the grace time is off the list, and next in line for it.
        rig.connect(people[3])
        let back = rig.stage.listViewers().map(\.id)
        #expect(back == after)
        rig.disconnect(people[7], connections[7])
        let next = rig.stage.listViewers().map(\.id)
        #expect(next.last == people[3].id, "who came first comes first again")
    }

    @Test func `a leader who leaves is no longer at the head of the list`() throws {
        var rig = try StageRig()
        let connection = rig.connect(bob)
        rig.connect(cid)
        let led = rig.stage.listViewers(leaders: [cid.id, StageRig.id("nobody"), bob.id]).map(\.id)
        #expect(led == [cid.id, bob.id])
        rig.disconnect(bob, connection)
        let rest = rig.stage.listViewers(leaders: [bob.id]).map(\.id)
        #expect(rest == [cid.id])
        try rig.apply(.invite(cid.id))
        try rig.apply(.accept, from: cid)
        let none = rig.stage.listViewers(leaders: [cid.id])
        #expect(none.isEmpty, "who is on stage is no viewer")
    }
}
