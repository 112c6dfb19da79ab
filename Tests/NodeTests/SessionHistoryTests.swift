import Base
import Crypto
import Peer
import Stage
import TestSupport
import Testing
import Wire

@testable import Node

@Suite struct `The log of a session` {
    private func times(_ log: SessionLog) -> [Int64] { log.entries.map(\.time.nanoseconds) }

    private func log(of count: Int, limit: Int = SessionLog.limit) -> SessionLog {
        var log = SessionLog()
        for number in 0..<count {
            log.append(.checked, at: MonotonicTime(nanoseconds: Int64(number)), limit: limit)
        }
        return log
    }

    @Test(arguments: [0, 1, 5, 199, 200, 201, 399, 400, 1_001]) func `keeps the latest, in order`(
        _ count: Int
    ) {
        let log = log(of: count)
        let kept = min(count, 200)
        #expect(times(log) == Array(Int64(count - kept)..<Int64(count)))
        #expect(log.dropped == count - kept)
    }

    @Test func `keeps its order where it may hold more again`() {
        var log = log(of: 14, limit: 10)
        #expect(times(log) == Array(4..<14))
        for number in 14..<20 { log.append(.checked, at: MonotonicTime(nanoseconds: Int64(number))) }
        #expect(times(log) == Array(4..<20))
        // Those that it has stay; for each new one the oldest goes.
        log.append(.checked, at: MonotonicTime(nanoseconds: 20), limit: 10)
        #expect(times(log) == Array(5..<21))
    }
}

@Suite struct `Histories of sessions` {
    private var histories = SessionHistories()
    private var random = SeededGenerator(seed: 1)
    private let show: StreamID

    init() throws { show = try #require(StreamID("show")) }

    private func record(_ id: SessionID, order: UInt64 = 0) -> SessionRecord {
        let credentials = ICECredentials(ufrag: "x", password: Secret("y"))
        return SessionRecord(
            id: id, request: SessionRequest(purpose: .play, stream: show, sender: nil, offer: ""),
            isStrangers: true, plan: SessionPlan(remoteCredentials: credentials, fingerprints: []), worker: 0,
            entityTag: credentials.ufrag, order: order)
    }

    private static func at(_ seconds: Int) -> MonotonicTime { .zero + .seconds(seconds) }

    @Test mutating func `find a session by its id and by its label`() {
        let id = SessionID(using: &random)
        histories.begin(id, at: Self.at(1))
        #expect(histories.find(id.label) == id)
        #expect(histories.find(id.description) == id)
        #expect(histories.find(id.label + "0") == nil)
        #expect(histories.find(String(id.description.dropLast())) == nil)
        #expect(histories.find("") == nil)
        #expect(histories.log(of: id).entries.map(\.event) == [.answered])
    }

    @Test mutating func `keep one that has ended for ten minutes`() {
        let id = SessionID(using: &random)
        histories.begin(id, at: Self.at(1))
        histories.note(.mediaStarted, of: id, at: Self.at(2))
        histories.end(record(id), because: "deleted", at: Self.at(3))
        histories.note(.checked, of: id, at: Self.at(4))
        #expect(histories.find(id.label) == nil)
        #expect(histories.findEnded(id.label)?.reason == "deleted")
        #expect(histories.findEnded(id.description)?.log.entries.map(\.event) == [.answered, .mediaStarted])
        histories.advance(to: Self.at(602))
        #expect(histories.ended.count == 1)
        histories.advance(to: Self.at(603))
        #expect(histories.ended.isEmpty)
    }

    @Test mutating func `forget those first that ended first`() {
        var ids: [SessionID] = []
        for number in 0..<(SessionHistories.endedLimit + 3) {
            let id = SessionID(using: &random)
            ids.append(id)
            histories.begin(id, at: Self.at(number))
            histories.end(record(id), because: "deleted", at: Self.at(number))
        }
        #expect(histories.ended.map(\.record.id) == Array(ids.dropFirst(3)))
    }

    /// However chatty all of them are.
    @Test mutating func `hold so many events together`() {
        let ids = (0..<1_200).map { _ in SessionID(using: &random) }
        for id in ids { histories.begin(id, at: .zero) }
        for number in 0..<250 {
            for id in ids { histories.note(.weakUplink, of: id, at: Self.at(number)) }
        }
        let kept = ids.reduce(0) { $0 + histories.log(of: $1).count }
        #expect(kept <= SessionLog.totalLimit)
        #expect(ids.allSatisfy { histories.log(of: $0).count >= SessionLog.shortLimit })
        // What goes leaves room for others.
        for id in ids { histories.end(record(id), because: "x", at: .zero) }
        histories.advance(to: Self.at(10_000))
        let late = SessionID(using: &random)
        histories.begin(late, at: .zero)
        for number in 0..<150 { histories.note(.checked, of: late, at: Self.at(number)) }
        #expect(histories.log(of: late).count == 151)
    }

    @Test func `are searched by stream, person, id and address`() throws {
        var random = SeededGenerator(seed: 2)
        let ann = Stage.Sender(
            id: try #require(ParticipantID("ann@example.org")), name: "Ann Ypsilon", authority: .viewer)
        var record = record(SessionID(using: &random), order: 7)
        record.request = SessionRequest(
            purpose: .play, stream: show, sender: ann, offer: "", clientAddress: IPAddress("10.1.2.3"))
        record.connection = (.aeadAES128GCM, TransportAddress(ip: .loopback, port: 4_000))
        func fits(_ change: (inout SessionFilter) -> Void) -> Bool {
            var filter = SessionFilter()
            change(&filter)
            return filter.matches(record)
        }
        #expect(fits { _ in })
        #expect(fits { $0.stream = "HO" } && !fits { $0.stream = "shows" })
        #expect(
            fits { $0.identity = "ypsi" } && fits { $0.identity = "ann@" } && !fits { $0.identity = "bob" })
        #expect(fits { $0.id = record.id.label.uppercased() } && !fits { $0.id = "zz" })
        #expect(fits { $0.address = "10.1." } && fits { $0.address = "127.0.0.1:4000" })
        #expect(!fits { $0.address = "1.2.3" })
        for text in ["show", "ann", record.id.label, "10.1.2.3"] { #expect(fits { $0.search = text }) }
        #expect(!fits { $0.search = "elsewhere" })
        #expect(fits { $0.before = 8 } && !fits { $0.before = 7 })
        #expect(!fits { ($0.stream, $0.identity) = ("show", "bob") })
    }
}
