import Base
import Testing
import Wire

@testable import Transcoder

@Suite struct `Packets of what is encoded` {
    private var maker = PacketMaker(seed: 11, kind: .video)

    private func headers(_ packets: [[UInt8]]) throws -> [RTPHeader] {
        try packets.map { try RTPHeader(parsing: $0.span) }
    }

    private func payloads(_ packets: [[UInt8]]) throws -> [[UInt8]] {
        try packets.map { Array($0[try RTPHeader(parsing: $0.span).payloadRange]) }
    }

    @Test(arguments: [1, 2, PacketMaker.maximumChunk, PacketMaker.maximumChunk + 1, 5_000, 100_000])
    mutating func `give the frame again, in parts of about the same size`(size: Int) throws {
        let frame = (0..<size).map { UInt8(truncatingIfNeeded: $0 / 3) }
        let packets = maker.vp8(frame, timestamp: .max)
        let (heads, bodies) = (try headers(packets), try payloads(packets))
        let others = Array(repeating: false, count: packets.count - 1)
        #expect(heads.map(\.marker) == others + [true])
        #expect(heads.allSatisfy { $0.timestamp == .max && $0.payloadType == 96 })
        let descriptors = try bodies.map { try VP8Descriptor(parsing: $0.span) }
        let pieces = zip(bodies, descriptors).map { Array($0.dropFirst($1.length)) }
        #expect(pieces.flatMap(\.self) == frame)
        #expect(pieces.allSatisfy { $0.count <= PacketMaker.maximumChunk })
        let sizes = pieces.map(\.count)
        #expect((sizes.max() ?? 0) - (sizes.min() ?? 0) <= packets.count)
        #expect(descriptors.map(\.startsPartition) == [true] + others)
        #expect(Set(descriptors.map(\.pictureID)).count == 1)
    }

    @Test mutating func `count on over the ends of all their counters`() throws {
        var last: (header: RTPHeader, descriptor: VP8Descriptor)?
        var isAhead = true
        for _ in 0..<66_000 {
            let packet = maker.vp8([1], timestamp: 0)[0]
            let header = try RTPHeader(parsing: packet.span)
            let descriptor = try VP8Descriptor(parsing: Array(packet[header.payloadRange]).span)
            if let last, let picture = last.descriptor.pictureID,
                let index = last.descriptor.tl0PictureIndex
            {
                isAhead =
                    isAhead && header.sequenceNumber == last.header.sequenceNumber &+ 1
                    && descriptor.pictureID == (picture + 1) & 0x7FFF
                    && descriptor.tl0PictureIndex == index &+ 1
            }
            last = (header, descriptor)
        }
        #expect(isAhead && last != nil)
    }

    /// Receivers of the lower layer alone would see gaps otherwise.
    @Test mutating func `of the higher layer share the index of the lower one`() throws {
        let packets = [false, true, true, false].map { maker.vp8([1], timestamp: 0, isInHigherLayer: $0)[0] }
        let descriptors = try payloads(packets).map { try VP8Descriptor(parsing: $0.span) }
        let first = try #require(descriptors[0].tl0PictureIndex)
        #expect(descriptors.map(\.tl0PictureIndex) == [first, first, first, first &+ 1])
        #expect(descriptors.map(\.temporalLayer) == [0, 1, 1, 0])
        #expect(descriptors.map(\.isNonReference) == [false, true, true, false])
        #expect(descriptors.map(\.isLayerSync) == [false, true, true, false])
    }

    @Test func `of streams that share a seed have nothing else in common`() throws {
        var sources: Set<UInt32> = []
        for seed in 0..<100 as Range<UInt64> {
            for kind in [ComposedPacket.Kind.audio, .video, .smallVideo] {
                var maker = PacketMaker(seed: seed, kind: kind)
                let packet = maker.opus([0xFC], timestamp: 0, marker: false)
                sources.insert(try RTPHeader(parsing: packet.span).ssrc)
            }
        }
        #expect(sources.count == 300 && !sources.contains(0))
    }

    @Test mutating func `of sound are whole`() throws {
        let packet = maker.opus([0xFC, 1, 2], timestamp: 960, marker: true)
        let header = try RTPHeader(parsing: packet.span)
        #expect(header.marker && header.payloadType == 111 && header.timestamp == 960)
        #expect(Array(packet[header.payloadRange]) == [0xFC, 1, 2])
    }
}

@Suite struct `The inbox of a job` {
    private let inbox = JobInbox<Int>()

    private func packet(_ number: Int64) -> JobInbox<Int>.Item {
        .packet(
            InputPacket(
                sequenceNumber: number, timestamp: 0, marker: true, codec: .opus, isEntryPoint: true,
                arrival: .zero), InputID(number: 1))
    }

    /// What is there now, in words.
    private func taken() -> [String] {
        inbox.take(within: 0).map { item in
            switch item {
            case .command(let number): "command \(number)"
            case .open(let input, let source): "open \(input.number) of \(source.number)"
            case .packet(let packet, _): "packet \(packet.sequenceNumber)"
            case .close(let input): "close \(input.number)"
            case .end: "end"
            }
        }
    }

    @Test func `keeps the order, and gives everything once`() {
        inbox.put(.open(InputID(number: 1), SourceKey(number: 9)))
        inbox.put(packet(1))
        inbox.put(.command(7))
        inbox.put(.close(InputID(number: 1)))
        inbox.put(.end)
        let (first, second) = (taken(), taken())
        #expect(first == ["open 1 of 9", "packet 1", "command 7", "close 1", "end"])
        #expect(second.isEmpty)
    }

    /// A thread that is so far behind cannot catch up; what it is told it has to know.
    @Test func `drops packets when too many wait, and nothing else`() {
        for number in 0..<10_000 as Range<Int64> { inbox.put(packet(number)) }
        inbox.put(.command(7))
        inbox.put(packet(10_000))
        inbox.put(.end)
        let found = taken()
        #expect(found.count == 8_192 + 2)
        #expect(found.first == "packet 0" && found[8_191] == "packet 8191")
        #expect(found.suffix(2) == ["command 7", "end"])
        // There is room again.
        inbox.put(packet(10_001))
        let next = taken()
        #expect(next == ["packet 10001"])
    }

    @Test func `wakes who waits for it`() async {
        let inbox = inbox
        // Longer than the test may take: only what is put in ends the wait.
        let waiting = Task.detached { inbox.take(within: 600_000_000_000).count }
        inbox.put(.command(1))
        let count = await waiting.value
        #expect(count == 1)
    }

    /// A thread that was behind for an hour would otherwise turn as often for nothing once it can rest.
    @Test func `wakes nobody for what was taken without waiting`() async {
        let inbox = inbox
        for number in 0..<100_000 {
            inbox.put(.command(number))
            _ = inbox.take(within: 0)
        }
        let waiting = Task.detached {
            var wakings = 0
            while inbox.take(within: 600_000_000_000).isEmpty { wakings += 1 }
            return wakings
        }
        await Task.yield()
        inbox.put(.end)
        let wakings = await waiting.value
        #expect(wakings <= 1)
    }
}
