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

    @Test func `are no more because time goes back`() {
        var allowance = WatchAllowance(at: begin)
        _ = allowance.take(names(0..<2_000), at: begin + .seconds(1))
        let early = allowance.take(names(0..<10), at: begin)
        let late = allowance.take(names(0..<10), at: begin + .seconds(1))
        #expect(early.isEmpty && late.isEmpty)
    }
}
