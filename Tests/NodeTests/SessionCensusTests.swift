import Base
import Peer
import Stage
import TestSupport
import Testing
import Wire

@testable import Node

@Suite struct `The census of sessions` {
    private var census = SessionCensus(
        workers: 3, limits: SessionCensus.Limits(ofAll: 100, ofStrangersAddress: 40))
    private var random = SeededGenerator(seed: 1)
    private let show: StreamID
    private let ann: Stage.Sender

    init() throws {
        show = try #require(StreamID("show"))
        ann = Stage.Sender(id: try #require(ParticipantID("ann")), authority: .host)
    }

    private func request(
        _ purpose: SessionRequest.Purpose = .play, _ sender: Stage.Sender? = nil, from address: String? = nil
    ) -> SessionRequest {
        SessionRequest(
            purpose: purpose, stream: show, sender: sender, offer: "",
            clientAddress: address.flatMap { IPAddress($0) })
    }

    private func refusal(of request: SessionRequest) -> SessionRefusal? {
        do throws(SessionRefusal) {
            try census.checkPlace(for: request)
            return nil
        } catch {
            return error
        }
    }

    @discardableResult
    private mutating func add(_ request: SessionRequest, on worker: Int = 0) -> SessionID {
        let id = SessionID(using: &random)
        let credentials = ICECredentials(ufrag: "x", password: Secret("y"))
        _ = census.add(
            SessionRecord(
                id: id, request: request, isStrangers: request.sender == nil,
                plan: SessionPlan(remoteCredentials: credentials, fingerprints: []), worker: worker,
                entityTag: credentials.ufrag), at: .zero)
        return id
    }

    @Test mutating func `keeps a tenth for those who publish, and a tenth for those who are known`() {
        let viewer = Stage.Sender(id: ann.id, authority: .viewer)
        for number in 0..<80 { add(request(from: "10.0.\(number).1")) }
        #expect(refusal(of: request(from: "10.1.0.1")) == .overloaded)
        #expect(refusal(of: request(.play, viewer)) == nil)
        for _ in 0..<10 { add(request(.play, viewer)) }
        #expect(refusal(of: request(.play, viewer)) == .overloaded)
        #expect(refusal(of: request(.stage, viewer)) == .overloaded)
        #expect(refusal(of: request(.publish, ann)) == nil)
        for _ in 0..<10 { add(request(.publish, ann)) }
        #expect(refusal(of: request(.publish, ann)) == .overloaded)
    }

    @Test mutating func `gives the strangers of one address so many places, and back what they leave`() {
        var ids: [SessionID] = []
        for _ in 0..<40 { ids.append(add(request(from: "203.0.113.7"))) }
        #expect(refusal(of: request(from: "203.0.113.7")) == .tooManySessions)
        #expect(refusal(of: request(from: "203.0.113.8")) == nil)
        #expect(refusal(of: request(.play, ann, from: "203.0.113.7")) == nil)
        // Whoever gets a name later still counts: the place was a stranger's.
        census.update(ids[0]) { [ann] in $0.request.sender = ann }
        #expect(census[ids[0]]?.request.sender == ann)
        #expect(refusal(of: request(from: "203.0.113.7")) == .tooManySessions)
        #expect(census.remove(ids[0], because: "left", at: .zero)?.id == ids[0])
        #expect(census.remove(ids[0], because: "left", at: .zero) == nil)
        #expect(refusal(of: request(from: "203.0.113.7")) == nil)
    }

    @Test mutating func `takes on more or less from now on, and sends nobody away`() {
        for number in 0..<20 { add(request(.publish, ann, from: "10.0.\(number).1")) }
        census.setLimits(SessionCensus.Limits(ofAll: 20, ofStrangersAddress: 1))
        #expect(census.count == 20 && refusal(of: request(.publish, ann)) == .overloaded)
        census.setLimits(SessionCensus.Limits(ofAll: 100, ofStrangersAddress: 1))
        #expect(refusal(of: request(from: "10.1.0.1")) == nil)
        add(request(from: "10.1.0.1"))
        #expect(refusal(of: request(from: "10.1.0.1")) == .tooManySessions)
        census.setLimits(SessionCensus.Limits(ofAll: 100, ofStrangersAddress: 2))
        #expect(refusal(of: request(from: "10.1.0.1")) == nil)
    }

    @Test mutating func `knows of no session that has ended`() {
        let id = add(request())
        _ = census.remove(id, because: "left", at: .zero)
        census.update(id) { $0.entityTag = "x" }
        #expect(census[id] == nil)
        #expect(census.all.isEmpty)
    }

    @Test mutating func `remembers what has ended until its client knows`() {
        let id = add(request())
        #expect(census.ended[id] == nil)
        _ = census.remove(id, because: "left", at: .zero)
        #expect(census.ended[id]?.stream == show)
        #expect(census.ended[id]?.purpose == .play)
        let first = census.acknowledgeEnd(of: id)
        #expect(first)
        #expect(census.ended[id] == nil)
        let second = census.acknowledgeEnd(of: id)
        #expect(!second)
    }

    @Test mutating func `remembers no more ended sessions than the limit, the latest ones`() {
        let ids = (0..<EndedSessions.limit + 2).map { _ in add(request()) }
        for id in ids { _ = census.remove(id, because: "left", at: .zero) }
        #expect(ids.filter { census.ended[$0] != nil } == Array(ids.dropFirst(2)))
        let late = add(request())
        _ = census.remove(late, because: "left", at: .zero)
        #expect(census.ended[ids[2]] == nil)
        #expect(census.ended[late] != nil)
    }

    @Test mutating func `numbers sessions in the order in which they were made`() {
        #expect(census.nextOrder == 1)
        let id = add(request())
        _ = census.remove(id, because: "left", at: .zero)
        add(request())
        #expect(census.nextOrder == 3)
    }

    @Test(arguments: 0..<20 as Range<UInt64>)
    mutating func `the next session goes to the worker with the fewest`(seed: UInt64) {
        var chance = SeededGenerator(seed: seed)
        var workers: [SessionID: Int] = [:]
        for _ in 0..<200 {
            if let id = workers.keys.sorted(by: { $0.label < $1.label }).randomElement(using: &chance),
                Bool.random(using: &chance)
            {
                #expect(
                    census.remove(id, because: "left", at: .zero)?.worker == workers.removeValue(forKey: id))
            } else {
                let worker = Int.random(in: 0..<3, using: &chance)
                workers[add(request(.publish, ann), on: worker)] = worker
            }
            let loads = (0..<3).map { worker in workers.values.count { $0 == worker } }
            #expect(loads[census.leastLoadedWorker] == loads.min())
            #expect(census.count == workers.count)
        }
    }
}
