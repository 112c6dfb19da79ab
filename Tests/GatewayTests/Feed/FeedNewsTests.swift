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
