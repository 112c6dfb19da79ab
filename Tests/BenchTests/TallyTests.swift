import Base
import Synchronization
import Testing

@testable import sfu_bench

/// All numbers of a tally by their names, those of its parts too; of a histogram, the number of its values.
private func numbers(of value: Any, _ name: String = "") -> [String: Int] {
    switch value {
    case let number as UInt64: return [name: Int(number)]
    case let number as Int64: return [name: Int(number)]
    case let number as Int: return [name: number]
    case let histogram as LogHistogram: return [name: Int(histogram.count)]
    case is String: return [:]
    default:
        var all: [String: Int] = [:]
        for (index, child) in Mirror(reflecting: value).children.enumerated() {
            let path = name + "." + (child.label ?? "\(index)")
            all.merge(numbers(of: child.value, path)) { $0 + $1 }
        }
        return all
    }
}

private let one: LogHistogram = {
    var histogram = LogHistogram()
    histogram.add(1_000)
    return histogram
}()

/// A new counter fails these until it is set here; and it is added up only if the tally's own lists have it.
@Suite struct `Every number of a tally` {
    private static let swipes: SwipeTally = {
        var tally = SwipeTally()
        (tally.swipes, tally.jumps, tally.peeks, tally.calledOff) = (1, 2, 3, 4)
        (tally.unfinished, tally.refused, tally.moved, tally.strays) = (5, 6, 7, 8)
        (tally.overTwo, tally.brokenStarts, tally.unnamed, tally.mostAttached) = (9, 10, 11, 2)
        tally.requested(of: 1)
        tally.requested(of: 0)
        tally.preloaded = .init(packet: one, way: one, frame: one, audio: one)
        tally.cold = tally.preloaded
        (tally.preload, tally.skew) = (one, one)
        return tally
    }()

    private static let clients: Tally = {
        var tally = Tally()
        (tally.packets, tally.videoPackets, tally.bytes, tally.expected) = (1, 2, 3, 4)
        (tally.reordered, tally.duplicates, tally.repaired, tally.repairsAskedFor) = (5, 6, 7, 8)
        (tally.decrypted, tally.unreadable, tally.keyFrameRequestsSent) = (9, 10, 11)
        (tally.packetsSent, tally.bytesSent, tally.framesSent, tally.keyFramesSent) = (12, 13, 14, 15)
        (tally.keyFrameRequests, tally.nacksReceived, tally.packetsResent) = (16, 17, 18)
        (tally.closedByServer, tally.failures, tally.droppedByKernel, tally.unsent) = (19, 20, 21, 22)
        (tally.latency, tally.jitter, tally.lateness, tally.processorTime) = (one, one, one, 23)
        tally.swiping = swipes
        return tally
    }()

    private static let sockets: SocketNews = {
        var news = SocketNews()
        (news.connected, news.failed, news.lost, news.messages) = (1, 2, 3, 4)
        news.reasons = ["closed": 5]
        return news
    }()

    /// Twice each number, but for maxima.
    private func twice(_ value: Any, except maxima: Set<String> = []) -> [String: Int] {
        let all = numbers(of: value)
        return Dictionary(
            uniqueKeysWithValues: all.map { ($0.key, maxima.contains($0.key) ? $0.value : 2 * $0.value) })
    }

    @Test func `of clients is added up, and taken away`() {
        let full = Self.clients
        #expect(numbers(of: full).allSatisfy { $0.value > 0 }, "set all of them")
        #expect(numbers(of: full + full) == twice(full, except: [".swiping.mostAttached"]))
        #expect(numbers(of: full + Tally()) == numbers(of: full))
        #expect(numbers(of: Tally() + full) == numbers(of: full))
        let nothing = numbers(of: full.since(full)).filter { $0.value != 0 }
        #expect(nothing == [".swiping.mostAttached": 2])
        #expect(numbers(of: (full + full).since(full)) == numbers(of: full))
    }

    @Test func `never goes below zero`() {
        var earlier = Self.clients
        earlier.packets = 100
        earlier.swiping.swipes = 100
        earlier.swiping.requested(of: 0)
        earlier.swiping.requested(of: 9)
        let difference = Self.clients.since(earlier)
        #expect(difference.packets == 0 && difference.swiping.swipes == 0)
        #expect(difference.swiping.requests == [0, 0])
    }

    @Test func `of swipes keeps requests apart by publisher`() {
        var first = SwipeTally()
        first.requested(of: 2)
        var second = SwipeTally()
        second.requested(of: 0)
        second.requested(of: 2)
        #expect((first + second).requests == [1, 0, 2] && (second + first).requests == [1, 0, 2])
        #expect((SwipeTally() + first).requests == [0, 0, 1])
        second = first + second
        #expect(second.since(first).requests == [1, 0, 1])
    }

    @Test func `of sockets is added up`() {
        var sum = Self.sockets
        #expect(!sum.isEmpty && SocketNews().isEmpty)
        sum.merge(Self.sockets)
        #expect(numbers(of: sum) == twice(Self.sockets))
        sum.merge(SocketNews())
        #expect(numbers(of: sum) == twice(Self.sockets))
    }

    @Test func `of an audience is added up`() {
        var full = AudienceTally()
        full.sockets = Self.sockets
        (full.hearts, full.comments, full.accepted, full.unknown) = (1, 2, 3, 4)
        (full.answered, full.gifts, full.seen, full.arrived, full.waited) = (one, one, one, one, one)
        full.refused = ["too-fast": 5]
        #expect(numbers(of: full).allSatisfy { $0.value > 0 }, "set all of them")
        var sum = full
        sum.merge(full)
        #expect(numbers(of: sum) == twice(full))
        sum.merge(AudienceTally())
        #expect(numbers(of: sum) == twice(full))
    }

    @Test func `of viewers by HLS is added up`() {
        var full = HLSTally()
        (full.started, full.ended, full.playlists, full.media, full.initializations) = (1, 2, 3, 4, 5)
        (full.bytes, full.rejoined) = (6, 7)
        full.stalls = .init(count: 8, nanoseconds: 9)
        (full.start, full.arrival) = (one, one)
        full.marks = .init(latency: one, unmarked: 10, foreign: 11, undecoded: 12, unreadable: 13)
        full.refusals = ["HTTP 404": 14]
        #expect(numbers(of: full).allSatisfy { $0.value > 0 }, "set all of them")
        var sum = full
        sum.add(full)
        #expect(numbers(of: sum) == twice(full))
        #expect(sum.requests == 24)
    }

    @Test func `of HLS has room for twenty reasons, and counts the others together`() {
        var tally = HLSTally()
        for number in 0..<20 { tally.refuse("HTTP \(400 + number)") }
        tally.refuse("HTTP 500")
        tally.refuse("HTTP 501", count: 4)
        tally.refuse("HTTP 400", count: 2)
        #expect(tally.refusals.count == 21)
        #expect(tally.refusals["others"] == 5 && tally.refusals["HTTP 400"] == 3)
        var sum = tally
        sum.add(tally)
        #expect(sum.refusals == tally.refusals.mapValues { 2 * $0 })
    }

    @Test func `of HLS counts as measured only while that goes on`() {
        let shared = HLSShared(threads: 2)
        var tally = HLSTally()
        tally.media = 1
        shared.add(tally, standing: 3, of: 0)
        shared.isMeasuring.store(true, ordering: .releasing)
        shared.add(tally, standing: 1, of: 1)
        shared.add(tally, standing: 0, of: 0)
        shared.isMeasuring.store(false, ordering: .releasing)
        shared.add(tally, standing: 0, of: 0)
        let sums = shared.sums.withLock { $0 }
        #expect(sums.whole.media == 4 && sums.measured.media == 2 && sums.standing == [0, 1])
    }

    @Test func `of followers is that of the present command alone`() {
        let shared = SyncShared()
        var news = SyncNews()
        news.seen = [(after: 900, waited: 100), (after: 300, waited: nil), (after: 500, waited: 0)]
        news.answer = (status: 200, after: 250)
        news.sockets = Self.sockets
        #expect(!news.isEmpty)
        shared.tally.withLock { $0.merge(news, isSample: true) }
        news.answer = nil
        shared.tally.withLock { $0.merge(news, isSample: false) }
        let tally = shared.tally.withLock { $0 }
        #expect(tally.seen.count == 6 && tally.sample.count == 3 && tally.seenNow == 6)
        // Where the kernel's time is unknown, it is not guessed.
        #expect(tally.arrived.count == 4 && tally.waited.count == 4)
        #expect(tally.firstSeen == 300 && tally.lastSeen == 900)
        #expect(tally.answer?.status == 200 && tally.answer?.after == 250)
        #expect(numbers(of: tally.sockets) == twice(Self.sockets))
        let command = SyncCommand(number: 2, request: [], marker: [], snapshotMarker: [])
        shared.begin(command, at: .zero)
        let next = shared.tally.withLock { $0 }
        #expect(next.seenNow == 0 && next.firstSeen == nil && next.lastSeen == nil && next.answer == nil)
        #expect(next.seen.count == 6 && shared.command?.command.number == 2)
        news.clear()
        #expect(news.isEmpty)
    }
}
