import Base
import StoryFeed
import TestSupport
import Testing
import Wire

@testable import Node

@Suite struct `Messages of the feed's control channel` {
    private func read(_ text: String) -> FeedControl? { FeedControl(parsing: DataChannelMessage(text)) }

    @Test func `are understood, with a number and without one`() throws {
        let (one, two) = (try #require(StreamID("one")), try #require(StreamID("two")))
        #expect(
            read(#"{"type":"focus","stream":"one","ahead":"two"}"#)
                == .message(.focus(one, ahead: two), request: nil))
        #expect(
            read(#"{"type":"focus","stream":"one","request":0}"#)
                == .message(.focus(one, ahead: nil), request: 0))
        #expect(
            read(#"{"type":"peek","stream":"two","direction":"forward","request":4294967295}"#)
                == .message(.peek(two, direction: .forward), request: .max))
        #expect(read(#"{"type":"release","request":7}"#) == .message(.release(nil), request: 7))
        #expect(
            read(#"{"type":"release","stream":"one","request":null}"#)
                == .message(.release(one), request: nil))
    }

    @Test(arguments: [
        "", "{", "null", "[]", #"{"type":"focus"}"#, #"{"type":"focus","stream":"one","request":-1}"#,
        #"{"type":"focus","stream":"one","request":4294967296}"#,
        #"{"type":"focus","stream":"one","request":1.5}"#,
        #"{"type":"focus","stream":"one","request":1e99}"#, #"{"type":"focus","stream":"one","request":"1"}"#,
        #"{"type":"focus","stream":"one","request":true}"#, #"{"type":"release","request":[1]}"#,
    ])
    func `that mean nothing are refused`(text: String) {
        #expect(read(text) == nil)
    }

    @Test func `never trap, whatever they hold`() {
        var random = SeededGenerator(seed: 4_409)
        let example = Array(#"{"type":"focus","stream":"one","ahead":"two","request":4294967295}"#.utf8)
        for _ in 0..<2_000 {
            var bytes = example
            for _ in 0..<Int.random(in: 1...4, using: &random) {
                bytes[Int.random(in: 0..<bytes.count, using: &random)] = .random(in: 0...255, using: &random)
            }
            _ = FeedControl(parsing: .binary(bytes))
        }
    }
}
