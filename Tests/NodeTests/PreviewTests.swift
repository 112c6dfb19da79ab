import Base
import Forwarding
import TestSupport
import Testing
import Transcoder

@testable import Node

@Suite struct `A preview schedule` {
    private let show: StreamID
    private let source: PreviewSchedule.Source
    private var schedule = PreviewSchedule()

    init() throws {
        var random = SeededGenerator(seed: 1)
        show = try #require(StreamID("show"))
        source = PreviewSchedule.Source(session: SessionID(using: &random), mid: "1", worker: 2)
    }

    private func time(_ seconds: Double) -> MonotonicTime {
        MonotonicTime(nanoseconds: Int64(seconds * 1e9))
    }

    private mutating func orders(_ seconds: Double) -> [PreviewSchedule.Order] {
        schedule.orders(at: time(seconds))
    }

    private func tap(_ number: UInt64) -> TapID { TapID(number: number) }

    @Test mutating func `takes a picture at once, may ask for it, and waits`() {
        _ = schedule.setSource(source, of: show, at: time(0))
        let first = orders(0)
        #expect(first == [.open(show, source, after: nil, mayAsk: true)])
        schedule.began(tap(1), of: show)
        let second = orders(9)
        #expect(second.isEmpty)
        // No key frame came.
        let third = orders(10)
        #expect(third == [.ask(tap(1), worker: 2)])
        let fourth = orders(19)
        #expect(fourth.isEmpty)
    }

    @Test mutating func `takes another one after five seconds, and asks after ten`() {
        _ = schedule.setSource(source, of: show, at: time(0))
        _ = orders(0)
        schedule.began(tap(1), of: show)
        let mark = mark(7)
        let isTaken = schedule.captured(tap(1), of: show, mark, at: time(1))
        #expect(isTaken)
        let early = orders(2)
        #expect(early.isEmpty)
        schedule.made(of: show)
        let stillEarly = orders(5.9)
        #expect(stillEarly.isEmpty)
        let due = orders(6)
        #expect(due == [.open(show, source, after: mark, mayAsk: false)])
        schedule.began(tap(2), of: show)
        let asked = orders(10)
        #expect(asked == [.ask(tap(2), worker: 2)])
    }

    @Test mutating func `lets go of a source that is gone`() {
        _ = schedule.setSource(source, of: show, at: time(0))
        _ = orders(0)
        schedule.began(tap(1), of: show)
        let closed = schedule.setSource(nil, of: show, at: time(1))
        #expect(closed == [.close(tap(1), worker: 2)])
        let isTaken = schedule.captured(tap(1), of: show, mark(1), at: time(1))
        #expect(!isTaken)
        let after = orders(100)
        #expect(after.isEmpty)
    }

    @Test mutating func `makes only so many at a time`() throws {
        var sources: [StreamID: PreviewSchedule.Source] = [:]
        for index in 0..<100 { sources[try #require(StreamID("s\(index)"))] = source }
        for (stream, source) in sources { _ = schedule.setSource(source, of: stream, at: time(0)) }
        let first = orders(0)
        #expect(first.count == PreviewSchedule.makingLimit)
        for case .open(let stream, _, _, _) in first {
            schedule.began(tap(1), of: stream)
            _ = schedule.captured(tap(1), of: stream, mark(1), at: time(0))
        }
        let second = orders(0)
        #expect(second.isEmpty)
    }

    @Test mutating func `spreads what it makes of many streams over the interval`() throws {
        var sources: [StreamID: PreviewSchedule.Source] = [:]
        for index in 0..<100 { sources[try #require(StreamID("s\(index)"))] = source }
        for (stream, source) in sources { _ = schedule.setSource(source, of: stream, at: time(0)) }
        var counts: [Int] = []
        for second in 0..<60 {
            var count = 0
            for case .open(let stream, _, _, _) in orders(Double(second)) {
                count += 1
                schedule.began(tap(UInt64(count)), of: stream)
                _ = schedule.captured(
                    tap(UInt64(count)), of: stream, mark(Int64(second)), at: time(Double(second)))
                schedule.made(of: stream)
            }
            counts.append(count)
        }
        // The first ones as soon as they can be made, the others in turn, and none of them late for long.
        #expect(counts.prefix(4).reduce(0, +) >= 100)
        #expect(counts.dropFirst(4).allSatisfy { $0 <= 25 })
        #expect(counts.suffix(50).reduce(0, +) >= 900)
    }

    @Test mutating func `asks nobody sooner who was the source before`() {
        var random = SeededGenerator(seed: 2)
        let other = PreviewSchedule.Source(session: SessionID(using: &random), mid: "1", worker: 0)
        _ = schedule.setSource(source, of: show, at: time(0))
        let first = orders(0)
        #expect(first == [.open(show, source, after: nil, mayAsk: true)])
        schedule.began(tap(1), of: show)
        _ = schedule.setSource(other, of: show, at: time(1))
        let second = orders(1)
        #expect(second == [.open(show, other, after: nil, mayAsk: true)])
        schedule.began(tap(2), of: show)
        _ = schedule.setSource(source, of: show, at: time(2))
        let third = orders(2)
        #expect(third == [.open(show, source, after: nil, mayAsk: false)])
        schedule.began(tap(3), of: show)
        let fourth = orders(10)
        #expect(fourth == [.ask(tap(3), worker: 2)])
    }

    private func mark(_ number: Int64) -> TapMark { TapMark(epoch: 0, sequenceNumber: number) }
}

@Suite struct `A preview shelf` {
    private var shelf = PreviewShelf(limit: 1_000)

    private func preview(_ size: Int) -> StoredPreview {
        StoredPreview(
            PreviewPicture(
                width: 360, height: 200, blurHash: "L", webP: [UInt8](repeating: 1, count: size / 2),
                jpeg: [UInt8](repeating: 2, count: size - size / 2)),
            about: StreamPreview(
                width: 360, height: 200, capturedAt: WallTime(milliseconds: 1), blurHash: "L", url: "/"))
    }

    @Test mutating func `keeps the latest of each stream, within its bound`() throws {
        let streams = try (0..<5).map { try #require(StreamID("s\($0)")) }
        for _ in 0..<10 { shelf.store(preview(300), of: streams[0]) }
        #expect(shelf.byteCount == 300)
        for stream in streams.dropFirst() { shelf.store(preview(300), of: stream) }
        #expect(shelf.byteCount == 900)
        #expect(shelf[streams[0]] == nil)
        #expect(shelf[streams[1]] == nil)
        #expect(shelf[streams[4]] != nil)
    }

    @Test mutating func `lets those go first whose stream has ended`() throws {
        let streams = try (0..<4).map { try #require(StreamID("s\($0)")) }
        for stream in streams.prefix(3) { shelf.store(preview(300), of: stream) }
        shelf.setEnded(true, streams[1])
        shelf.store(preview(300), of: streams[3])
        #expect(shelf[streams[0]] != nil)
        #expect(shelf[streams[1]] == nil)
    }
}

@Suite struct `The cards of streams that send sound alone` {
    private var cards = PreviewCards()
    private let show: StreamID
    private let quiz: StreamID
    private let first = CardRequest(stream: "show", title: "One", host: "Ann")
    private let second = CardRequest(stream: "show", title: "Two", host: "Ann")

    init() throws {
        show = try #require(StreamID("show"))
        quiz = try #require(StreamID("quiz"))
    }

    private func time(_ seconds: Double) -> MonotonicTime {
        MonotonicTime(nanoseconds: Int64(seconds * 1e9))
    }

    /// The cards that are due, by their titles.
    private mutating func due(_ seconds: Double) -> [String] {
        cards.takeDue(at: time(seconds)).map { "\($0.stream) \($0.card.title)" }
    }

    @Test mutating func `are made once for each text`() {
        let steps: [CardRequest?] = [first, first, second, second, nil, nil, second]
        var made: [CardRequest?] = []
        for card in steps { made.append(cards.set(card, of: show)) }
        #expect(made == [first, nil, second, nil, nil, nil, second])
        let later = due(1_000)
        #expect(later.isEmpty)
    }

    @Test mutating func `are made again five seconds after they could not be`() {
        _ = cards.set(first, of: show)
        _ = cards.set(first, of: quiz)
        cards.fail(first, of: show, at: time(1))
        cards.fail(first, of: quiz, at: time(2))
        var made: [[String]] = []
        for seconds in [5.9, 6, 6, 60, 60] { made.append(due(seconds)) }
        #expect(made == [[], ["show One"], [], ["quiz One"], []])
        cards.fail(first, of: quiz, at: time(60))
        cards.fail(first, of: show, at: time(60))
        let again = due(65)
        #expect(again == ["quiz One", "show One"], "in an order that is the same in each run")
    }

    @Test mutating func `are not made again where another text, or none, is wanted by now`() {
        _ = cards.set(first, of: show)
        _ = cards.set(second, of: show)
        cards.fail(first, of: show, at: time(1))
        var made = due(1_000)
        #expect(made.isEmpty)
        cards.fail(second, of: show, at: time(1))
        _ = cards.set(nil, of: show)
        made = due(1_000)
        #expect(made.isEmpty)
        cards.fail(second, of: show, at: time(1))
        made = due(1_000)
        #expect(made.isEmpty, "nobody wants it any more")
    }
}

/// A desk whose transcoder has stopped, so that it makes nothing.
@Suite(.timeLimit(.minutes(10))) struct `A desk of previews` {
    private struct Clock: Sendable {
        var now = Moment(elapsed: .zero, wall: WallTime(milliseconds: 1_000_000))
        /// How often the desk has looked at it.
        var looks = 0
    }

    private let clock = Watched(Clock())
    private let desk: PreviewDesk
    private let show: StreamID

    init() throws {
        show = try #require(StreamID("show"))
        let transcoder = TranscoderSupervisor(log: .silent)
        transcoder.stop()
        desk = PreviewDesk(
            transcoder: transcoder, locator: nil, limit: 1_000, taps: TapNumbers(),
            now: { [clock] in
                clock.change { clock in
                    clock.looks += 1
                    return clock.now
                }
            },
            post: { _, _ in true })
    }

    private func pass(_ duration: Duration) async {
        clock.change { clock in
            clock.now = Moment(elapsed: clock.now.elapsed + duration, wall: clock.now.wall)
        }
        await desk.advance()
    }

    @Test func `tries a card again that could not be made, while it is wanted`() async throws {
        await desk.start { stream, _ in Issue.record("\(stream) has a picture") }
        let card = CardRequest(stream: "show", title: "One", host: "Ann")
        await desk.update(show, nil, card: card)
        // It looks for each job when it begins and when it fails.
        try await clock.wait { $0.looks == 2 }
        #expect(await desk.counters.failed == 1)
        await desk.update(show, nil, card: card)
        await pass(.milliseconds(4_999))
        #expect(clock.value.looks == 3, "nothing began")
        await pass(.milliseconds(1))
        try await clock.wait { $0.looks == 6 }
        #expect(await desk.counters.failed == 2)
        await desk.update(show, nil, card: nil)
        await pass(.seconds(60))
        #expect(clock.value.looks == 7)
        #expect(await desk.counters.failed == 2)
        await desk.stop()
    }
}
