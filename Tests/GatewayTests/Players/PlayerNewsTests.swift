import Base
import HTTP
import Node
import Testing

@testable import Gateway

@Suite struct `What players are told` {
    private func encoding(_ id: String, _ order: Int, _ bitrate: Int, isAvailable: Bool = true)
        -> PlayerView.Encoding
    {
        PlayerView.Encoding(
            id: id, order: order, bitrate: bitrate, width: 320 << order, height: 180 << order,
            isAvailable: isAvailable)
    }

    private func view(_ encodings: [PlayerView.Encoding], isActive: Bool = true, viewers: Int = 3)
        -> PlayerView
    {
        PlayerView(
            isActive: isActive, viewers: viewers,
            media: [PlayerView.Media(mid: "1", encodings: encodings)])
    }

    @Test func `is first how everything is, and then what changes`() {
        var news = PlayerNews(Set(PlayerEvent.allCases))
        let first = view([encoding("h", 1, 400_000), encoding("q", 0, 100_000, isAvailable: false)])
        let text = news.text(of: first)
        #expect(
            text == """
                event: active
                data: {}

                event: layers
                data: {"1":{"active":[{"bitrate":400000,"height":360,"id":"h","layers":[],"simulcastIdx":1,\
                "width":640}],"inactive":[{"bitrate":100000,"height":180,"id":"q","layers":[],\
                "simulcastIdx":0,"width":320}],"layers":[{"bitrate":400000,"encodingId":"h","height":360,\
                "maxSpatialLayerId":0,"maxTemporalLayerId":0,"simulcastIdx":1,"spatialLayerId":0,\
                "temporalLayerId":0,"width":640}]}}

                event: viewercount
                data: {"viewercount":3}


                """)
        news.note(first)
        #expect(news.text(of: first).isEmpty)
        var second = first
        second.viewers = 4
        #expect(news.text(of: second) == "event: viewercount\ndata: {\"viewercount\":4}\n\n")
        second.viewers = 3
        second.isActive = false
        second.media[0].encodings = []
        let end = news.text(of: second)
        #expect(end.hasPrefix("event: inactive\ndata: {}\n\nevent: layers\n"))
        #expect(end.contains(#"{"1":{"active":[],"inactive":[],"layers":[]}}"#))
    }

    @Test func `a rate is reported only once it has changed enough`() {
        var news = PlayerNews([.layers])
        for (rate, isNews) in [(1_000, true), (1_200, false), (1_240, false), (1_260, true), (1_010, false)] {
            let view = view([encoding("h", 0, rate)])
            #expect(news.text(of: view).isEmpty != isNews, "\(rate)")
            news.note(view)
        }
    }

    @Test func `a player gets only the kinds of events it asked for`() {
        var news = PlayerNews([.inactive])
        let first = view([encoding("h", 0, 1_000)])
        #expect(news.text(of: first).isEmpty)
        news.note(first)
        #expect(news.text(of: view([], isActive: false, viewers: 9)) == "event: inactive\ndata: {}\n\n")
    }

    @Test func `unknown kinds of events are ignored if one is known`() {
        #expect(PlayerEvent.kinds(named: ["layers", "vad"]) == [.layers])
        #expect(PlayerEvent.kinds(named: ["vad"]) == nil)
        #expect(PlayerEvent.kinds(named: []) == nil)
    }
}

@Suite struct `Open streams of events` {
    private static func session(_ number: Int) -> SessionID? {
        let digits = String(number, radix: 16)
        return SessionID(String(repeating: "0", count: 32 - digits.count) + digits)
    }

    @Test func `a third stream of events ends the oldest of a session`() throws {
        let streams = EventStreams()
        let session = try #require(Self.session(1))
        let open = try (0..<3).map { _ in try #require(streams.open(of: session) { _ in }) }
        #expect(open.map { $0.send([1]) } == [.closed, .queued, .queued])
        #expect(streams.count == 2)
        #expect(streams.count(of: session) == 2)
    }

    @Test func `an address has half of all streams of events, and may still replace one`() throws {
        let streams = EventStreams()
        let (office, elsewhere) = (IPAddress(ipv4: 0xC633_6401), IPAddress(ipv4: 0xC633_6402))
        var open: [HTTPStream] = []
        for number in 0..<EventStreams.limitPerAddress {
            let session = try #require(Self.session(number / 2))
            open.append(try #require(streams.open(of: session, for: office) { _ in }))
        }
        let other = try #require(Self.session(EventStreams.limit))
        let refused = streams.open(of: other, for: office) { _ in }
        #expect(refused == nil && streams.count == EventStreams.limitPerAddress)
        open.append(try #require(streams.open(of: other, for: elsewhere) { _ in }))
        // Who comes again ends an older stream, so there are no more.
        let known = try #require(Self.session(0))
        open.append(try #require(streams.open(of: known, for: office) { _ in }))
        #expect(streams.count == EventStreams.limitPerAddress + 1)
        open.removeAll()
        #expect(streams.count == 0)
        let again = streams.open(of: other, for: office) { _ in }
        #expect(again != nil)
    }

    @Test func `an address gets no more streams of events by replacing its own`() throws {
        let streams = EventStreams()
        let office = IPAddress(ipv4: 0xC633_6401)
        var open: [HTTPStream] = []
        for number in 0..<EventStreams.limitPerAddress {
            let session = try #require(Self.session(number / 2))
            open.append(try #require(streams.open(of: session, for: office) { _ in }))
        }
        let known = try #require(Self.session(0))
        open.append(try #require(streams.open(of: known, for: office) { _ in }))
        // The one that was replaced is gone, and its place is the new one's.
        open.removeFirst()
        let other = try #require(Self.session(EventStreams.limit))
        let refused = streams.open(of: other, for: office) { _ in }
        #expect(refused == nil && streams.count == EventStreams.limitPerAddress)
        open.removeFirst()
        let next = streams.open(of: other, for: office) { _ in }
        #expect(next != nil)
    }

    @Test func `the number of open streams of events is bounded`() throws {
        let streams = EventStreams()
        var open: [HTTPStream] = []
        for number in 0..<EventStreams.limit {
            let session = try #require(Self.session(number))
            open.append(try #require(streams.open(of: session) { _ in }))
        }
        let other = try #require(Self.session(EventStreams.limit))
        #expect(streams.open(of: other) { _ in } == nil)
        #expect(streams.count == EventStreams.limit)
        open.removeLast()
        #expect(streams.count == EventStreams.limit - 1)
        #expect(streams.open(of: other) { _ in } != nil)
        open.removeAll()
        #expect(streams.count == 0)
    }
}
