import Base
import Forwarding
import Peer
import Stage
import TestSupport
import Testing
import Wire

@testable import Node

@Suite struct `A live stream` {
    private var live = LiveStream()
    private var census = SessionCensus(
        workers: 2, limits: SessionCensus.Limits(ofAll: 100, ofStrangersAddress: 100))
    private var random = SeededGenerator(seed: 1)
    private let show: StreamID
    private let ann: ParticipantID
    private let bob: ParticipantID

    init() throws {
        show = try #require(StreamID("show"))
        ann = try #require(ParticipantID("ann"))
        bob = try #require(ParticipantID("bob"))
    }

    private static let opus = [MediaFormat(codec: .opus, payloadType: 111)]
    private static let vp8 = [MediaFormat(codec: .vp8, payloadType: 96)]

    @discardableResult
    private mutating func add(
        _ purpose: SessionRequest.Purpose, _ id: ParticipantID? = nil,
        _ authority: Stage.Sender.Authority = .viewer, sends kinds: [MediaKind] = [], slots: [MediaKind] = []
    ) -> SessionRecord {
        let sender = id.map { Stage.Sender(id: $0, name: "\($0)".uppercased(), authority: authority) }
        let request = SessionRequest(purpose: purpose, stream: show, sender: sender, offer: "")
        var plan = SessionPlan(
            remoteCredentials: ICECredentials(ufrag: "x", password: Secret("y")), fingerprints: [])
        plan.sources = kinds.map { kind in
            SourcePlan(mid: "\(kind)-in", kind: kind, formats: kind == .audio ? Self.opus : Self.vp8)
        }
        plan.slots = slots.enumerated().map { index, kind in
            SlotPlan(
                mid: "\(index)", kind: kind, ssrc: UInt32(index), repairSSRC: nil, cname: "c",
                formats: kind == .audio ? Self.opus : Self.vp8, extensions: ExtensionIDs(),
                allowsMixedExtensions: true)
        }
        let record = SessionRecord(
            id: SessionID(using: &random), request: request, isStrangers: sender == nil, plan: plan,
            worker: 1, entityTag: "x")
        _ = census.add(record, at: .zero)
        live.add(record)
        return record
    }

    private mutating func leave(_ record: SessionRecord) -> Bool {
        _ = live.conduct { $0.leave(record.id) }
        _ = census.remove(record.id, because: "left", at: .zero)
        return live.remove(record, at: .zero + .seconds(5))
    }

    @Test mutating func `is live once its source's media flows, and until the source is gone`() {
        let host = add(.stage, ann, .host, sends: [.audio, .video])
        #expect(!live.isLive && live.hasSourceOrSuccessor && !live.isUnused)
        #expect(live.source(.video, among: census) == nil)
        live.setSource(host.id)
        #expect(live.isLive)
        #expect(
            live.source(.video, among: census)
                == ProgrammeSource(session: host.id, mid: "video-in", worker: 1))
        let successor = add(.publish, ann, .host, sends: [.audio])
        #expect(leave(host))
        #expect(!live.isLive && live.hasSourceOrSuccessor)
        #expect(live.emptySince == .zero + .seconds(5))
        live.setSource(successor.id)
        #expect(live.emptySince == nil)
        #expect(live.source(.video, among: census) == nil)
        #expect(live.source(.audio, among: census)?.mid == "audio-in")
        #expect(leave(successor))
        #expect(live.isUnused)
    }

    @Test mutating func `has a stage for as long as somebody is on it`() {
        #expect(live.conduct { _ in [] } == nil)
        let viewer = add(.play)
        #expect(live.room == nil)
        let guests = [add(.stage, ann, .speaker), add(.stage, bob, .speaker)]
        #expect(live.room?.isEmpty == false)
        #expect(!leave(guests[0]) && live.room != nil)
        #expect(!leave(guests[1]) && live.room == nil)
        #expect(live.all == [viewer.id])
    }

    @Test mutating func `knows which sessions of somebody came before`() {
        let before = [add(.stage, ann, .speaker), add(.stage, ann)]
        let other = add(.stage, bob)
        let speaks = add(.stage, ann, .speaker)
        let watches = add(.stage, ann)
        #expect(live.earlierSessions(than: speaks) == [before[0].id, before[1].id, watches.id])
        #expect(live.earlierSessions(than: watches) == [before[0].id, speaks.id, before[1].id])
        #expect(live.earlierSessions(than: other).isEmpty)
        #expect(live.earlierSessions(than: add(.play)).isEmpty)
        #expect(Set(live.told) == [before[1].id, other.id, watches.id])
    }

    @Test mutating func `has the programme in the first slot of each kind`() {
        let host = add(.stage, ann, .host, sends: [.audio])
        let viewer = add(.stage, bob, slots: [.audio, .video, .audio, .video])
        #expect(live.programmeSlots(of: viewer, among: census).allSatisfy { $0.participant == nil })
        live.setSource(host.id)
        _ = live.conduct { [ann] in $0.setMute(.init(audio: true), of: ann) }
        let slots = live.programmeSlots(of: viewer, among: census)
        #expect(slots.map(\.mid) == ["0", "1", "2", "3"])
        // The host sends no picture.
        #expect(slots.map(\.participant) == ["ann", nil, nil, nil])
        #expect(slots.map(\.name) == ["ANN", nil, nil, nil])
        #expect(slots.map(\.muted) == [true, false, false, false])
    }

    @Test mutating func `shows the source's own picture, where it has one`() {
        #expect(live.ownPicture(among: census) == nil)
        let silent = add(.publish, ann, .host, sends: [.audio])
        live.setSource(silent.id)
        #expect(live.ownPicture(among: census) == nil)
        // What is published by an encoder with a name is on the stage, and nothing has come of it yet.
        let encoder = add(.publish, ann, .host, sends: [.audio, .video])
        live.setSource(encoder.id)
        #expect(live.ownPicture(among: census) == LiveStream.OwnPicture(participant: nil, isLost: true))
        _ = live.conduct { $0.receive(.sourceChanged(encoder.id, mid: "video-in", isActive: true)) }
        #expect(live.ownPicture(among: census) == LiveStream.OwnPicture(participant: nil, isLost: false))
    }

    @Test(arguments: 0..<50 as Range<UInt64>) mutating func `is unused when all have left, in any order`(
        seed: UInt64
    ) {
        var chance = SeededGenerator(seed: seed)
        var records: [SessionRecord] = []
        for _ in 0..<100 {
            if let record = records.randomElement(using: &chance), Bool.random(using: &chance) {
                records.removeAll { $0.id == record.id }
                let wasSource = live.publisher == record.id
                #expect(leave(record) == wasSource)
            } else {
                let who = Bool.random(using: &chance) ? ann : bob
                switch Int.random(in: 0..<4, using: &chance) {
                case 0: records.append(add(.play))
                case 1: records.append(add(.stage, who))
                case 2: records.append(add(.stage, who, .speaker, sends: [.audio, .video]))
                default:
                    records.append(add(.publish, who, .host, sends: [.video]))
                    live.setSource(records[records.count - 1].id)
                }
            }
            #expect(live.all == Set(records.map(\.id)))
            #expect(live.isUnused == records.isEmpty)
        }
        for record in records { _ = leave(record) }
        #expect(live.isUnused && !live.isLive)
    }
}
