import Base
import Peer
import TestSupport
import Testing
import Wire

@testable import Forwarding

/// The host of another stream on a stage.
@Suite struct StageGuests {
    private var own = StageRoom()
    private var other = StageRoom()
    private var random = SeededGenerator(seed: 16)
    private let ann: SessionID
    private let cleo: SessionID
    private let name: ParticipantID

    init() throws {
        ann = SessionID(using: &random)
        cleo = SessionID(using: &random)
        name = try #require(ParticipantID("cleo@quiz"))
        Self.join(ann, try #require(ParticipantID("ann")), &own, first: 1)
        Self.join(cleo, try #require(ParticipantID("cleo")), &other, first: 11)
    }

    private static let plans = [MediaKind.audio, .video].enumerated().map { index, kind in
        SourcePlan(
            mid: "\(index)", kind: kind,
            formats: [MediaFormat(codec: kind == .video ? .vp8 : .opus, payloadType: 96)])
    }

    private static func join(
        _ id: SessionID, _ participant: ParticipantID, _ room: inout StageRoom, first: UInt64
    ) {
        var plan = SessionPlan(
            remoteCredentials: ICECredentials(ufrag: "x", password: Secret("y")), fingerprints: [],
            sources: plans)
        plan.slots = plans.enumerated().map { index, source in
            SlotPlan(
                mid: "\(index + 2)", kind: source.kind, ssrc: UInt32(index), repairSSRC: nil, cname: "c",
                formats: source.formats, extensions: ExtensionIDs(), allowsMixedExtensions: true)
        }
        room.join(id, of: participant, on: 0, with: plan, isHost: true)
        let tracks = plans.enumerated().map { index, source in
            PublishedTrack(
                key: TrackKey(worker: 0, track: TrackID(number: first + UInt64(index))), plan: source,
                extensions: ExtensionIDs())
        }
        _ = room.receive(.published(id, tracks))
        for source in plans { _ = room.receive(.sourceChanged(id, mid: source.mid, isActive: true)) }
    }

    private var guest: StageGuest? { other.guest(cleo, as: name, sources: Self.plans) }

    private func composition(in effects: [StageRoom.Effect]) -> [ComposedSpeaker]? {
        for case .compose(let speakers) in effects.reversed() { return speakers }
        return nil
    }

    private func sources(of session: SessionID, in room: StageRoom) -> [SessionID?] {
        room.layout.slots(of: session).map { $0.source?.session }
    }

    @Test mutating func `are composed with the host, whatever the programme is, and behind`() throws {
        let speakers = try #require(composition(in: own.setGuest(guest)))
        #expect(speakers.sorted { $0.arrival < $1.arrival }.map(\.id.session) == [ann, cleo])
        #expect(speakers.allSatisfy { $0.hasPicture && $0.audio != nil })
        #expect(composition(in: own.setGuest(nil)) == [])
    }

    @Test mutating func `guests are shown in the slots of the stage and have no slots themselves`() throws {
        _ = own.setGuest(guest)
        #expect(sources(of: ann, in: own) == [cleo, cleo])
        #expect(own.layout.slots(of: cleo).isEmpty)
        _ = own.setGuest(nil)
        #expect(sources(of: ann, in: own) == [nil, nil])
    }

    @Test mutating func `a guest is as on the own stage, muted or not`() throws {
        _ = own.setGuest(guest)
        #expect(own.setGuest(guest).isEmpty, "nothing follows from what is known")
        _ = other.setMute(StageRoom.Mute(video: true), of: try #require(ParticipantID("cleo")))
        let muted = try #require(composition(in: own.setGuest(guest)))
        #expect(muted.first { $0.id.session == cleo }?.hasPicture == false)
        _ = other.receive(.sourceChanged(cleo, mid: "0", isActive: false))
        _ = own.setGuest(guest)
        #expect(sources(of: ann, in: own) == [nil, cleo])
    }

    @Test mutating func `guests alone keep no stage alive, and nobody is a guest of the own stage`() {
        _ = own.setGuest(guest)
        #expect(own.guest(cleo, as: name, sources: Self.plans) == nil)
        _ = own.leave(ann)
        #expect(own.isEmpty)
    }

    @Test mutating func `guests are not named as part of the stream's own composition`() throws {
        let composed = Self.plans.map { plan in
            PublishedTrack(
                key: TrackKey(worker: 0, track: TrackID(number: 99)), plan: plan, extensions: ExtensionIDs())
        }
        _ = own.setGuest(guest)
        _ = own.setComposed(composed)
        #expect(own.programmeTracks == composed)
        #expect(own.composedParticipants.map(\.description) == ["ann"])
    }
}
