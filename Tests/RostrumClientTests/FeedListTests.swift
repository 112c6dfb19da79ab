import Foundation
import Testing

@testable import RostrumClient

@Suite struct `The feed's list` {
    private var list = FeedList()

    private mutating func receive(_ text: String) throws -> Bool {
        list.receive(try JSONValue(parsing: Data(text.utf8)))
    }

    private mutating func begin() throws {
        _ = try receive(
            #"{"type":"snapshot","version":1,"items":[{"id":"a","viewers":1},{"id":"b"},{"id":"c"}]}"#)
    }

    @Test mutating func `begins in the server's order`() throws {
        try begin()
        #expect(list.streams.map(\.id) == ["a", "b", "c"])
        #expect(list.streams.first?.viewers == 1)
    }

    @Test mutating func `follows what comes, goes and moves`() throws {
        try begin()
        let added =
            #"{"type":"change","added":[{"item":{"id":"d"},"after":"a"},{"item":{"id":"e"},"after":null}]}"#
        #expect(try receive(added))
        #expect(list.streams.map(\.id) == ["e", "a", "d", "b", "c"])
        _ = try receive(#"{"type":"change","ended":["b"],"moved":[{"id":"e","after":"c"}]}"#)
        #expect(list.streams.map(\.id) == ["a", "d", "c", "e"])
    }

    @Test mutating func `learns titles and numbers of viewers`() throws {
        try begin()
        _ = try receive(#"{"type":"change","edited":[{"id":"b","title":"New"}],"viewers":{"a":9,"zzz":1}}"#)
        #expect(list.streams.map(\.title) == [nil, "New", nil])
        #expect(list.streams.first?.viewers == 9)
    }

    @Test mutating func `says nothing of a heartbeat`() throws {
        #expect(try receive(#"{"type":"heartbeat","version":2}"#) == false)
    }
}
