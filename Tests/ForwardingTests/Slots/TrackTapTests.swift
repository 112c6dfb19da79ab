import Base
import Peer
import Synchronization
import TestSupport
import Testing
import Wire

@testable import Forwarding

/// Keeps the numbers of what a tap passes on.
private final class TapRecord: TapSink {
    private let state = Mutex<(packets: [TappedPacket], ends: Int)>(([], 0))

    func take(_ packet: TappedPacket, _ bytes: Span<UInt8>) { state.withLock { $0.packets.append(packet) } }

    func finish() { state.withLock { $0.ends += 1 } }

    var packets: [TappedPacket] { state.withLock { $0.packets } }
    var numbers: [Int64] { packets.map(\.sequenceNumber) }
    /// How often the sink was told that there is no more.
    var ends: Int { state.withLock { $0.ends } }
}

@Suite struct `A tap on a track` {
    private let rig: SlotRig
    private let track: Track
    private let feed: Feed
    private let record = TapRecord()

    init() throws {
        let rig = try SlotRig(seed: 6)
        let track = rig.track()
        feed = try rig.feed(track)
        (self.rig, self.track) = (rig, track)
    }

    private func open(_ mode: TapOpening.Mode, _ number: UInt64 = 1, maximumHeight: Int? = nil) {
        let opening = TapOpening(
            id: TapID(number: number), target: .source(rig.sessionID, mid: "0"), mode: mode,
            maximumHeight: maximumHeight, sink: record)
        track.open(TrackTap(opening), at: rig.now)
    }

    /// The packets of a key frame, of the picture behind it, and of the next one.
    private func pictures() -> [[UInt8]] {
        let keyFrame = [
            feed.packet(Feed.picture(isKey: true), marker: false), feed.packet(Feed.rest(), marker: false),
            feed.packet(Feed.rest()),
        ]
        feed.timestamp &+= 3_000
        let next = feed.packet(Feed.picture(isKey: false))
        feed.timestamp &+= 3_000
        return keyFrame + [next, feed.packet(Feed.picture(isKey: false))]
    }

    /// The first packet of the key frame was lost, and is sent again.
    @Test(arguments: [[0, 1, 2, 3], [1, 0, 2, 3], [1, 2, 3, 0], [2, 1, 3, 0]])
    func `passes on a key frame whole, in whatever order it comes`(order: [Int]) throws {
        open(.whole)
        try rig.send(feed)
        #expect(record.numbers.isEmpty, "a picture that needs others")
        let packets = pictures()
        for place in order { try rig.receive(packets[place], on: feed) }
        let before = record.numbers
        try rig.receive(packets[4], on: feed)
        #expect(before.sorted() == [101, 102, 103, 104])
        #expect(record.numbers == before + [105])
        #expect(record.packets.first?.isEntryPoint == true)
        #expect(record.ends == 0)
    }

    @Test func `takes a key frame once it is complete, and then no more`() throws {
        open(.keyFrame(after: nil, mayAsk: true))
        #expect(rig.owner.demands.map(\.reason) == [.beginning])
        let packets = pictures()
        for place in [0, 2, 3] { try rig.receive(packets[place], on: feed) }
        #expect(record.numbers.isEmpty && record.ends == 0)
        try rig.receive(packets[1], on: feed)
        #expect(record.numbers.isEmpty, "a packet in the middle of a picture ends none")
        try rig.receive(packets[4], on: feed)
        #expect(record.numbers == [100, 101, 102] && record.ends == 1)
        try rig.send(feed, isKey: true)
        #expect(record.numbers.count == 3 && record.ends == 1 && track.taps.isEmpty)
    }

    @Test func `a tap skips a key frame that its owner has, and takes one of a restarted source`() throws {
        try rig.send(feed, isKey: true)
        open(.keyFrame(after: nil, mayAsk: false))
        let mark = TapMark(try #require(record.packets.first))
        open(.keyFrame(after: mark, mayAsk: true), 2)
        #expect(rig.owner.demands.map(\.reason) == [.renewal])
        try rig.send(feed)
        #expect(record.ends == 1)
        #expect(feed.layer.restart(ssrc: 999, at: rig.now))
        // The same number means another packet.
        let again = Feed(feed.layer, ssrc: 999, from: 100)
        try rig.send(again, isKey: true)
        #expect(record.ends == 2 && record.numbers == [100, 100])
        #expect(Set(record.packets.map(\.epoch)).count == 2)
    }

    @Test func `is told of its end once, whichever way it comes`() throws {
        open(.whole)
        track.closeTap(TapID(number: 1))
        track.closeTap(TapID(number: 1))
        #expect(record.ends == 1 && track.taps.isEmpty)
        open(.whole, 2)
        open(.keyFrame(after: nil, mayAsk: false), 3)
        track.closeTaps()
        track.closeTaps()
        #expect(record.ends == 3 && track.taps.isEmpty)
        try rig.send(feed, isKey: true)
        #expect(record.numbers.isEmpty)
    }

    @Test func `begins with what is cached, and waits for a key frame where that is old`() throws {
        try rig.send(feed, isKey: true)
        for _ in 0..<9 { try rig.send(feed) }
        open(.whole)
        #expect(record.numbers == Array(100...109))
        rig.pass(.milliseconds(4_001))
        open(.whole, 2)
        #expect(record.numbers.count == 10)
        #expect(rig.owner.demands.map(\.reason) == [.beginning])
        track.closeTap(TapID(number: 1))
        try rig.send(feed)
        #expect(record.numbers.count == 10)
        try rig.send(feed, isKey: true)
        #expect(record.numbers.suffix(1) == [111])
    }

    @Test func `gets sound from the next packet on, and asks for nothing`() throws {
        let sound = rig.track(.audio)
        let voice = try rig.feed(sound)
        try rig.send(voice)
        let opening = TapOpening(
            id: TapID(number: 9), target: .source(rig.sessionID, mid: "0"), mode: .whole, sink: record)
        sound.open(TrackTap(opening), at: rig.now)
        for _ in 0..<3 { try rig.send(voice) }
        #expect(record.numbers == [101, 102, 103])
        #expect(record.packets.allSatisfy { $0.isEntryPoint && $0.audioLevel == nil && $0.codec == .opus })
        #expect(rig.owner.demands.isEmpty)
    }
}
