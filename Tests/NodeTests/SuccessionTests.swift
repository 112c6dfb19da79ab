import Base
import Crypto
import Peer
import Stage
import Testing
import Wire

@testable import Forwarding
@testable import Node

/// A host comes to a published stream, and is connected before their media is here; then the first host leaves.
///
/// On a busy machine seconds may lie between the two. Where the stream ended at once, it took the next host's session
/// with it, whose page went off the air as at the end of any stream.
@Suite struct `The next host of a published stream` {
    private var rig = LiveRig()
    private let show: StreamID
    private let ann: ParticipantID
    private let bob: ParticipantID
    private let cid: ParticipantID

    init() throws {
        show = try #require(StreamID("show"))
        ann = try #require(ParticipantID("ann"))
        bob = try #require(ParticipantID("bob"))
        cid = try #require(ParticipantID("cid"))
        rig.begin(show, isPublished: true)
    }

    /// Somebody comes to the stage beside its host, and sends nothing yet.
    private mutating func come(
        _ name: String, as authority: Stage.Sender.Authority = .host,
        sending kinds: [MediaKind] = [.audio, .video]
    ) throws -> SessionID {
        let sender = Stage.Sender(id: try #require(ParticipantID(name)), authority: authority)
        var request = SessionRequest(purpose: .stage, stream: show, sender: sender, offer: "")
        request.isHost = false
        let id = try rig.admit(rig.candidate(request, sends: kinds, gets: [.audio, .video]))
        rig.receive(.connected(id, .aeadAES128GCM, nil))
        return id
    }

    /// Their page is closed, and says so.
    private mutating func leave(_ id: SessionID) {
        rig.change { $0.end(id, because: "deleted", at: $1) }
    }

    /// The first packet arrives, in the order in which workers tell of it.
    private mutating func send(_ id: SessionID) {
        rig.receive(.sourceChanged(id, mid: "0", isActive: true))
        rig.receive(.mediaStarted(id))
    }

    @Test mutating func `becomes its source with their first packet`() throws {
        let first = try rig.publish("ann", as: .host, in: show)
        let second = try come("bob")
        leave(first)
        #expect(rig.toldSources(of: show) == [ann], "the stream goes on")
        #expect(rig.live[show]?.isLive == false)
        rig.advance(by: .seconds(30))
        #expect(rig.toldSources(of: show) == [ann])
        send(second)
        #expect(rig.toldSources(of: show) == [ann, bob], "once")
        #expect(rig.live[show]?.publisher == second)
        let source = rig.live.sessions[second]?.source
        #expect(source?.isSuccessor == true, "which makes its owner the host")
        leave(second)
        #expect(rig.toldSources(of: show) == [ann, bob, nil])
    }

    @Test mutating func `is awaited as long as any source's first packet`() throws {
        let first = try rig.publish("ann", as: .host, in: show)
        let second = try come("bob")
        rig.advance(by: .seconds(10))
        leave(first)
        rig.advance(by: Stage.sourceGrace - .seconds(11))
        #expect(rig.toldSources(of: show) == [ann])
        rig.advance(by: .seconds(1))
        #expect(rig.toldSources(of: show) == [ann, nil])
        send(second)
        rig.advance(by: .seconds(1))
        #expect(rig.toldSources(of: show) == [ann, nil], "that it is over is decided")
    }

    @Test mutating func `is awaited no longer once they leave`() throws {
        let first = try rig.publish("ann", as: .host, in: show)
        let second = try come("bob")
        let third = try come("cid")
        leave(first)
        leave(second)
        #expect(rig.toldSources(of: show) == [ann])
        leave(third)
        #expect(rig.toldSources(of: show) == [ann, nil])
    }

    @Test mutating func `is who sends first, and not who came first`() throws {
        let first = try rig.publish("ann", as: .host, in: show)
        _ = try come("bob")
        let third = try come("cid")
        leave(first)
        send(third)
        #expect(rig.toldSources(of: show) == [ann, cid])
    }

    @Test mutating func `gives way to one who publishes meanwhile`() throws {
        let first = try rig.publish("ann", as: .host, in: show)
        let second = try come("bob")
        leave(first)
        let third = try rig.publish("cid", as: .host, in: show)
        send(second)
        #expect(rig.toldSources(of: show) == [ann, cid])
        #expect(rig.live[show]?.publisher == third)
    }

    /// With what they came: a speaker's token, or no microphone and no camera.
    @Test(arguments: [(.speaker, [.audio]), (.host, [])] as [(Stage.Sender.Authority, [MediaKind])])
    mutating func `has a host's rights, and something to send`(
        authority: Stage.Sender.Authority, kinds: [MediaKind]
    ) throws {
        let first = try rig.publish("ann", as: .host, in: show)
        _ = try come("bob", as: authority, sending: kinds)
        leave(first)
        #expect(rig.toldSources(of: show) == [ann, nil])
    }

    @Test mutating func `packets of others on the stage make no new host`() throws {
        let speaker = try come("eve", as: .speaker)
        let first = try rig.publish("ann", as: .host, in: show)
        _ = try come("bob")
        leave(first)
        send(speaker)
        #expect(rig.toldSources(of: show) == [ann])
        #expect(rig.live[show]?.isLive == false)
    }

    @Test mutating func `a host who has sent nothing for long does not take over`() throws {
        _ = try come("bob")
        rig.advance(by: Stage.sourceGrace)
        let first = try rig.publish("ann", as: .host, in: show)
        leave(first)
        #expect(rig.toldSources(of: show) == [ann, nil])
    }

    @Test mutating func `is not awaited where the stream was ended`() throws {
        let first = try rig.publish("ann", as: .host, in: show)
        let second = try come("bob")
        leave(first)
        let show = show
        rig.change { $0.perform(.close, in: show, at: $1) }
        #expect(rig.opened.isEmpty)
        #expect(rig.live[show]?.awaitsHost != true)
        send(second)
        #expect(rig.toldSources(of: show).contains(bob) == false)
    }
}
