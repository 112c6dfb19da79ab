import Base
import HTTP
import Testing

@testable import Gateway

@Suite struct `A message with the streams that a follower shows` {
    @Test func `is as long as the server lets in, with room for two hundred of the longest names`() throws {
        let settings = HTTPServerSettings(address: TransportAddress(ip: .loopback, port: 0))
        #expect(FeedNews.longest <= settings.maximumMessageBytes)
        let names = (100..<300).map { number in String(repeating: "x", count: 61) + String(number) }
        let list = names.map { name in "\"\(name)\"" }.joined(separator: ",")
        let news = try #require(FeedNews(.text("{\"type\":\"watch\",\"streams\":[\(list)]}")))
        #expect(news.streams.map(\.description) == names)
    }
}

@Suite struct `The streams that a follower may name` {
    private let begin = MonotonicTime(nanoseconds: 7_000_000_000)

    private func names(_ range: Range<Int>) -> [StreamID] { range.compactMap { StreamID("s\($0)") } }

    @Test func `are as many as a page shows, each once`() {
        var allowance = WatchAllowance(at: begin)
        let shown = names(0..<200)
        let taken = allowance.take(shown + shown, at: begin)
        #expect(taken == shown)
        let next = allowance.take(names(200..<700), at: begin)
        #expect(next == names(200..<700))
    }

    @Test func `are few when a connection names ever more`() {
        var allowance = WatchAllowance(at: begin)
        let many = names(0..<2_000)
        var count = 0
        // Forty messages a second, each with as many short names as fit.
        for index in 0..<400 {
            let now = begin + .milliseconds(index * 25)
            count += allowance.take(many, at: now).count
        }
        #expect(count <= WatchAllowance.burst + 10 * WatchAllowance.perSecond)
        let rested = allowance.take(many, at: begin + .seconds(60))
        #expect(rested == names(0..<WatchAllowance.burst))
    }

    /// Of a list of 200 that moves on by ten a second, the new ones come last.
    @Test func `are all that are new, however often the others are repeated`() {
        var allowance = WatchAllowance(at: begin)
        var taken: Set<StreamID> = []
        for second in 0..<60 {
            let shown = names(second * 10..<second * 10 + 200)
            taken.formUnion(allowance.take(shown, at: begin + .seconds(second)))
        }
        #expect(taken == Set(names(0..<790)))
    }

    /// What was named long ago, or before as many others as are watched, may not be watched any more.
    @Test func `are taken again after a while, and after as many others as are watched`() {
        var allowance = WatchAllowance(at: begin)
        let first = allowance.take(names(0..<10), at: begin)
        let soon = allowance.take(names(0..<10), at: begin + .seconds(9))
        let late = allowance.take(names(0..<10), at: begin + .seconds(21))
        #expect(first.count == 10 && soon.isEmpty && late.count == 10)
        let others = allowance.take(names(10..<510), at: begin + .seconds(21))
        let again = allowance.take(names(0..<10), at: begin + .seconds(21))
        #expect(others.count == 500 && again.count == 10)
    }

    @Test func `are no more because time goes back`() {
        var allowance = WatchAllowance(at: begin)
        _ = allowance.take(names(0..<2_000), at: begin + .seconds(1))
        let early = allowance.take(names(0..<10), at: begin)
        let late = allowance.take(names(0..<10), at: begin + .seconds(1))
        #expect(early.isEmpty && late.isEmpty)
    }
}
