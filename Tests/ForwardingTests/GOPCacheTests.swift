import Base
import Peer
import TestSupport
import Testing
import Wire

@testable import Forwarding

@Suite struct `A GOP cache` {
    private let reader = PacketReader(
        formats: [
            MediaFormat(codec: .vp8, payloadType: 96),
            MediaFormat(codec: .h264(packetizationMode: 1), payloadType: 97),
        ],
        ids: ExtensionIDs())
    private let capacity = GOPCache.maximumBytes

    private func time(_ milliseconds: Int64) -> MonotonicTime {
        MonotonicTime(nanoseconds: milliseconds * 1_000_000)
    }

    /// A layer's cache and the history behind it.
    private struct Layer: ~Copyable {
        var cache = GOPCache()
        var history = PacketHistory(maximumCapacity: 1 << 20, maximumPackets: 4_096)
    }

    /// One packet of VP8 (or of a codec whose payload says nothing), stored and noted.
    /// - Returns: the size of the key frame that is over with it.
    @discardableResult
    private func receive(
        _ sequence: Int64, frame: UInt32, isKeyFrame: Bool = false, size: Int = 1_000,
        payloadType: UInt8 = 96,
        at milliseconds: Int64, in layer: inout Layer
    ) throws -> Int? {
        var bytes = [UInt8](repeating: 0, count: size)
        bytes[0] = 0x80
        bytes[1] = payloadType
        bytes[2] = UInt8(truncatingIfNeeded: sequence >> 8)
        bytes[3] = UInt8(truncatingIfNeeded: sequence)
        let timestamp = frame &* 3_000
        for shift in 0..<4 {
            bytes[4 + shift] = UInt8(truncatingIfNeeded: timestamp >> UInt32(24 - 8 * shift))
        }
        // Start of a frame of partition 0; key frames have a clear lowest bit, and a start code.
        bytes[12] = isKeyFrame ? 0x10 : 0x00
        if isKeyFrame { bytes.replaceSubrange(13..<23, with: [0x10, 0, 0, 0x9D, 1, 0x2A, 0x80, 2, 0x68, 1]) }
        let header = try RTPHeader(parsing: bytes.span)
        var packet = try reader.read(bytes.span, header, structure: nil)
        packet.sequenceNumber = sequence
        layer.history.store(bytes.span, 0..<size, sequenceNumber: sequence, at: time(milliseconds))
        return layer.cache.note(
            packet, size: size, in: &layer.history, upTo: capacity, at: time(milliseconds))
    }

    private func entry(at milliseconds: Int64, isRepaired: Bool = true, of layer: borrowing Layer) -> Int64? {
        layer.cache.entry(in: layer.history, isRepaired: isRepaired, at: time(milliseconds))
    }

    @Test func `has nothing before the first key frame`() throws {
        var layer = Layer()
        try receive(10, frame: 1, at: 0, in: &layer)
        #expect(entry(at: 1, of: layer) == nil)
        try receive(11, frame: 2, isKeyFrame: true, at: 33, in: &layer)
        #expect(entry(at: 34, of: layer) == 11)
        let edge = layer.cache.edge
        #expect(edge?.sequenceNumber == 11)
    }

    @Test func `begins at the latest key frame`() throws {
        var layer = Layer()
        for number in Int64(0)..<100 {
            try receive(
                number, frame: UInt32(number), isKeyFrame: number % 30 == 0, at: number * 33, in: &layer)
        }
        #expect(entry(at: 3_300, of: layer) == 90)
        let edge = layer.cache.edge
        #expect(edge?.timestamp == UInt32(297_000))
    }

    @Test func `a group older than four seconds is dropped with its memory`() throws {
        var layer = Layer()
        for number in Int64(0)...401 {
            try receive(number, frame: UInt32(number), isKeyFrame: number == 0, at: number * 10, in: &layer)
            #expect((entry(at: number * 10, of: layer) == 0) == (number <= 400))
        }
        let (isKeeping, size) = (layer.history.isKeeping, layer.history.storage.count)
        #expect(!isKeeping)
        // A second of 100 kB, doubled.
        #expect(size <= 256 << 10)
        for number in Int64(302)...401 {
            let range = layer.history.range(of: number)
            #expect(range != nil)
        }
    }

    @Test func `a group that is being replayed is kept a second longer, but not for new viewers`() throws {
        var layer = Layer()
        for number in Int64(0)...900 {
            try receive(number, frame: UInt32(number), isKeyFrame: number == 0, at: number * 10, in: &layer)
            if (390...450).contains(number) { layer.cache.noteReplay(at: time(number * 10)) }
            #expect((entry(at: number * 10, of: layer) == 0) == (number <= 400))
            let (isKeeping, first) = (layer.history.isKeeping, layer.history.range(of: 0))
            #expect(isKeeping == (number <= 550), "\(number)")
            if isKeeping { #expect(first != nil) }
        }
    }

    @Test func `no group is kept for eight seconds, however often it is replayed`() throws {
        var layer = Layer()
        for number in Int64(0)...900 {
            try receive(number, frame: UInt32(number), isKeyFrame: number == 0, at: number * 10, in: &layer)
            layer.cache.noteReplay(at: time(number * 10))
            let isKeeping = layer.history.isKeeping
            #expect(isKeeping == (number <= 800), "\(number)")
        }
    }

    @Test(arguments: [(Int64(2), Int64(4)), (10, 10), (60, 20)])
    func `keeps a group for as long as its key frame's cost tells`(cost: Int64, kept: Int64) throws {
        var layer = Layer()
        for number in Int64(0)...2_200 {
            try receive(
                number, frame: UInt32(number), isKeyFrame: number == 0, size: 500, at: number * 10, in: &layer
            )
            if number == 1 { layer.cache.last(for: .seconds(cost)) }
            #expect((entry(at: number * 10, of: layer) == 0) == (number <= kept * 100), "\(number)")
            let young = layer.cache.entry(
                in: layer.history, isRepaired: true, upTo: GOPCache.usualAge, at: time(number * 10))
            #expect((young == 0) == (number <= 400), "\(number)")
        }
    }

    @Test func `a group is dropped when its publisher sends nothing more`() throws {
        var layer = Layer()
        try receive(1, frame: 1, isKeyFrame: true, at: 0, in: &layer)
        #expect(entry(at: 4_000, of: layer) == 1)
        #expect(entry(at: 4_001, of: layer) == nil)
    }

    @Test func `lets a group go that takes more than its share of memory`() throws {
        var layer = Layer()
        var number: Int64 = 0
        // 5 MB in two seconds.
        while number < 4_300 {
            try receive(
                number, frame: UInt32(number / 10), isKeyFrame: number == 0, size: 1_200, at: number / 2,
                in: &layer)
            if entry(at: number / 2, of: layer) == nil { break }
            number += 1
        }
        #expect((3_400..<3_500).contains(number), "\(number)")
        let size = layer.history.storage.count
        #expect(size <= GOPCache.maximumBytes)
    }

    @Test func `waits a moment for what is missing, and no longer`() throws {
        var layer = Layer()
        for number in Int64(1)...60 where number != 20 && number != 40 {
            try receive(number, frame: UInt32(number), isKeyFrame: number == 1, at: number * 10, in: &layer)
        }
        // 20 was found missing when 21 came, at 210 ms.
        #expect(entry(at: 510, of: layer) == 1)
        #expect(entry(at: 510, isRepaired: false, of: layer) == nil)
        #expect(entry(at: 511, of: layer) == nil)
        try receive(20, frame: 20, at: 600, in: &layer)
        #expect(entry(at: 710, of: layer) == 1)
        try receive(40, frame: 40, at: 720, in: &layer)
        #expect(entry(at: 3_000, isRepaired: false, of: layer) == 1)
    }

    @Test func `takes a key frame whose beginning comes late`() throws {
        var layer = Layer()
        try receive(1, frame: 1, at: 0, in: &layer)
        try receive(3, frame: 2, at: 10, in: &layer)
        try receive(4, frame: 3, at: 40, in: &layer)
        try receive(2, frame: 2, isKeyFrame: true, at: 60, in: &layer)
        #expect(entry(at: 60, isRepaired: false, of: layer) == 2)
        // A key frame older than the cached one changes nothing.
        try receive(0, frame: 0, isKeyFrame: true, at: 70, in: &layer)
        #expect(entry(at: 70, isRepaired: false, of: layer) == 2)
    }

    @Test func `takes key frames whose beginnings come many packets late`() throws {
        var layer = Layer()
        let missing: [Int64] = [10, 700, 1_400]
        for number in Int64(1)...2_000 where !missing.contains(number) {
            try receive(number, frame: UInt32(number), size: 100, at: number / 4, in: &layer)
        }
        for number in missing {
            try receive(number, frame: UInt32(number), isKeyFrame: true, size: 100, at: 510, in: &layer)
            let start = layer.cache.start
            #expect(start == number)
        }
    }

    /// Beginning a group walks over all packets that came since: here some 2,500 steps.
    @Test func `begins no group for each of thousands of key frames that come late`() throws {
        var layer = Layer()
        try receive(0, frame: 0, isKeyFrame: true, size: 100, at: 0, in: &layer)
        try receive(4_000, frame: 4_000, size: 100, at: 1, in: &layer)
        var steps: Int64 = 0
        for number in Int64(1)...3_000 {
            try receive(number, frame: UInt32(number), isKeyFrame: true, size: 100, at: 2, in: &layer)
            if layer.cache.start == number { steps += 4_000 - number }
        }
        #expect(steps <= GOPCache.latenessLimit + 3_000 * GOPCache.latenessGain, "\(steps) steps")
        try receive(4_001, frame: 4_001, isKeyFrame: true, size: 100, at: 3, in: &layer)
        #expect(entry(at: 3, of: layer) == 4_001)
    }

    @Test func `a cache that was told to forget is empty until the next key frame`() throws {
        var layer = Layer()
        try receive(1, frame: 1, isKeyFrame: true, at: 0, in: &layer)
        layer.cache.flush(&layer.history, at: time(1))
        #expect(entry(at: 1, of: layer) == nil)
        try receive(2, frame: 1, isKeyFrame: true, at: 2, in: &layer)
        #expect(entry(at: 2, of: layer) == nil)
        try receive(3, frame: 2, isKeyFrame: true, at: 30, in: &layer)
        #expect(entry(at: 30, of: layer) == 3)
    }

    @Test func `ends with a change of codec`() throws {
        var layer = Layer()
        try receive(1, frame: 1, isKeyFrame: true, at: 0, in: &layer)
        try receive(2, frame: 2, payloadType: 97, at: 30, in: &layer)
        #expect(entry(at: 30, of: layer) == nil)
    }

    @Test func `measures what a key frame costs`() throws {
        var layer = Layer()
        #expect(try receive(1, frame: 1, isKeyFrame: true, size: 900, at: 0, in: &layer) == nil)
        #expect(try receive(2, frame: 1, size: 800, at: 1, in: &layer) == nil)
        #expect(try receive(3, frame: 1, size: 700, at: 2, in: &layer) == nil)
        #expect(try receive(4, frame: 2, at: 33, in: &layer) == 2_400)
        #expect(try receive(5, frame: 3, at: 66, in: &layer) == nil)
    }
}
