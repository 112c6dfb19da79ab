import Base
import Peer
import TestSupport
import Testing
import Wire

@testable import Forwarding

/// A VP9 source with spatial layers as Chromium's `L3T2_KEY` has them, or one of AV1 as `L3T1_KEY`, and what a sieve
/// makes of it.
///
/// The layers of a key picture need each other; those of another picture need earlier ones of their own layer alone.
private struct SpatialStream {
    struct Packet {
        let picture: Int
        let layer: Int
        let forwarded: ForwardedPacket
    }

    struct Sent {
        let packet: Packet
        let number: Int64
        let verdict: FrameSieve.Verdict

        var marker: Bool { packet.forwarded.marker || verdict == .sendLast }
        var isEmpty: Bool { verdict == .fill }
    }

    var packets: [Packet] = []
    var keyPictures: Set<Int> = []
    let sieve = FrameSieve(from: 0, after: -1, isSure: true)
    private(set) var sent: [Sent] = []

    /// - Parameters:
    ///   - layers: of a picture; the source may send fewer for a while.
    ///   - size: packets of a layer of a picture.
    init(
        _ count: Int, keyPictures: Set<Int> = [0], layers: (Int) -> Int = { _ in 3 },
        size: (Int, Int) -> Int = { _, _ in 2 }, codec: VideoCodec = .vp9
    ) throws {
        self.keyPictures = keyPictures
        let source = AV1Layers(heights: Array([180, 360, 720].prefix(layers(0))))
        let structure = try source.structure()
        var frame = 0xFFF0
        for picture in 0..<count {
            let isKey = keyPictures.contains(picture)
            for layer in 0..<layers(picture) {
                let last = size(picture, layer) - 1
                frame += 1
                for place in 0...last {
                    let isEnd = place == last && layer == layers(picture) - 1
                    guard codec == .vp9 else {
                        let descriptor = source.descriptor(
                            of: layer, frame: frame, isKey: isKey, isFirst: place == 0, isLast: place == last)
                        let bytes = AV1Layers.bytes(
                            descriptor, Int64(packets.count), timestamp: UInt32(picture) * 3_000,
                            marker: isEnd, isFirst: place == 0)
                        let packet = try AV1Layers.packet(bytes, Int64(packets.count), structure)
                        packets.append(
                            Packet(
                                picture: picture, layer: layer,
                                forwarded: ForwardedPacket(packet, at: .zero)))
                        continue
                    }
                    // I, P, L, B, E; 15-bit picture id; TID, U, SID, D; TL0PICIDX; and a key frame's header.
                    let payload: [UInt8] = [
                        0xA0 | (isKey ? 0 : 0x40) | (place == 0 ? 0x08 : 0) | (place == last ? 0x04 : 0),
                        0x80 | UInt8((picture + 0x7FF0) >> 8 & 0x7F), UInt8((picture + 0x7FF0) & 0xFF),
                        UInt8(picture % 2) << 5 | (picture % 2 == 0 ? 0x10 : 0) | UInt8(layer) << 1
                            | (isKey && layer > 0 ? 1 : 0),
                        UInt8(picture / 2 & 0xFF), isKey ? 0x82 : 0x86, 0x49, 0x83, 0x42, 0, 0, 0, 0,
                    ]
                    let forwarded = try SievedStream.packet(
                        payload, Int64(packets.count), picture, marker: isEnd, codec: .vp9(profile: 0))
                    packets.append(Packet(picture: picture, layer: layer, forwarded: forwarded))
                }
            }
        }
    }

    mutating func take(_ index: Int) {
        let packet = packets[index]
        let verdict = sieve.judge(packet.forwarded)
        let omissions = sieve.omissions(before: Int64(index))
        guard verdict != .leaveOut, let omissions else { return }
        sent.append(Sent(packet: packet, number: Int64(index) - omissions.packets, verdict: verdict))
    }

    /// The highest layer of each picture of which something was sent.
    func heights() -> [Int] {
        var heights: [Int: Int] = [:]
        for each in sent where !each.isEmpty {
            heights[each.packet.picture] = max(heights[each.packet.picture] ?? 0, each.packet.layer)
        }
        return heights.sorted { $0.key < $1.key }.map(\.value)
    }
}

@Suite struct `Leaving spatial layers out` {
    @Test(arguments: [VideoCodec.vp9, .av1])
    func `begins with the next picture and ends with a key frame`(codec: VideoCodec) throws {
        var stream = try SpatialStream(12, keyPictures: [0, 8], codec: codec)
        for index in stream.packets.indices {
            if index == 15 { stream.sieve.target.spatial = 1 }
            if index == 31 { stream.sieve.target.spatial = .max }
            #expect(stream.sieve.isWaitingForKeyFrame == (31...48).contains(index))
            stream.take(index)
        }
        #expect(stream.heights() == [2, 2, 2, 1, 1, 1, 1, 1, 2, 2, 2, 2])
        check(stream)
        // No gap, and the marker bit on what is now the last packet of a picture.
        #expect(stream.sent.map(\.number) == Array(0..<Int64(stream.sent.count)))
        let marked = stream.sent.filter { $0.packet.picture == 4 && $0.marker }
        #expect(
            marked.map(\.packet.layer) == [1]
                && marked.allSatisfy { $0.packet.forwarded.sequenceNumber == 27 })
    }

    @Test func `goes together with leaving out pictures`() throws {
        var stream = try SpatialStream(10)
        stream.sieve.target = FrameSieve.Limit(temporal: 0, spatial: 0)
        for index in stream.packets.indices {
            if index == 24 { stream.sieve.target.temporal = .max }
            stream.take(index)
        }
        #expect(Set(stream.sent.map(\.packet.picture)) == [0, 2, 4, 5, 6, 7, 8, 9])
        #expect(Set(stream.sent.map(\.packet.layer)) == [0])
        check(stream)
    }

    @Test(arguments: [VideoCodec.vp9, .av1])
    func `leaves the marker bit where the source has fewer layers than are wanted`(codec: VideoCodec) throws {
        var stream = try SpatialStream(6, layers: { $0 < 3 ? 3 : 1 }, codec: codec)
        stream.sieve.target.spatial = 1
        for index in stream.packets.indices { stream.take(index) }
        #expect(stream.heights() == [1, 1, 1, 0, 0, 0])
        check(stream)
    }

    @Test(arguments: [VideoCodec.vp9, .av1])
    func `a late packet of a left-out layer leaves no gap in the numbers`(codec: VideoCodec) throws {
        var stream = try SpatialStream(4, codec: codec)
        stream.sieve.target.spatial = 0
        // All of the larger layers of the second picture, and the end of the third one's.
        let missing = [8, 9, 10, 11, 16, 17]
        for index in stream.packets.indices where !missing.contains(index) { stream.take(index) }
        #expect(stream.sent.map(\.number) == Array(0..<8))
        for index in missing { stream.take(index) }
        #expect(stream.sent.count == 8)
    }

    @Test(arguments: [VideoCodec.vp9, .av1])
    func `a missing packet that may be wanted keeps its place`(codec: VideoCodec) throws {
        var stream = try SpatialStream(4, codec: codec)
        stream.sieve.target.spatial = 0
        // The end of the second picture's lowest layer, so what is missing after it is unknown too.
        let missing = [7, 8]
        for index in stream.packets.indices where !missing.contains(index) { stream.take(index) }
        #expect(stream.sent.map(\.number) == [0, 1, 2, 5, 6, 7, 8])
        for index in missing { stream.take(index) }
        #expect(stream.sent.suffix(2).map(\.number) == [3, 4])
        #expect(stream.sent.suffix(2).map(\.verdict) == [.sendLast, .fill])
        check(stream)
    }

    /// Nobody knows which of its layers are lost; the picture may also have fewer layers.
    @Test func `a missing AV1 picture keeps its place`() throws {
        var stream = try SpatialStream(5, codec: .av1)
        stream.sieve.target.spatial = 0
        // All of the third picture: three frames more than the larger layers of the second one.
        let missing = 12..<18
        for index in stream.packets.indices where !missing.contains(index) { stream.take(index) }
        #expect(stream.sent.map(\.number) == [0, 1, 2, 3, 10, 11, 12, 13])
        for index in missing { stream.take(index) }
        #expect(stream.sent.suffix(6).map(\.verdict) == [.send, .sendLast, .fill, .fill, .fill, .fill])
        check(stream)
    }

    @Test func `goes on behind a gap as before it`() throws {
        var stream = try SpatialStream(8, keyPictures: [0, 6])
        stream.sieve.target.spatial = 0
        for index in 0..<12 { stream.take(index) }
        stream.sieve.target.spatial = 1
        let next = FrameSieve(continuing: stream.sieve, from: 18)
        #expect(next.isWaitingForKeyFrame)
        let verdicts = stream.packets[18..<42].map { next.judge($0.forwarded) }
        let one = [.send, .sendLast, .leaveOut, .leaveOut, .leaveOut, .leaveOut] as [FrameSieve.Verdict]
        let two = [.send, .send, .send, .sendLast, .leaveOut, .leaveOut] as [FrameSieve.Verdict]
        #expect(verdicts == one + one + one + two)
        #expect(next.form(of: stream.packets[19].forwarded) == .sendLast)
    }

    /// What is sent can be decoded, in any order of packets and whenever the viewer's wish changes.
    @Test(arguments: UInt64(0)..<300, [VideoCodec.vp9, .av1])
    func `breaks nothing in any order`(seed: UInt64, codec: VideoCodec) throws {
        var random = SeededGenerator(seed: seed)
        let count = Int.random(in: 5...80, using: &random)
        // Key pictures are of the lowest frame rate.
        let keys = Set(
            stride(from: 0, to: count, by: 2).filter { $0 == 0 || Int.random(in: 0..<6, using: &random) == 0 }
        )
        let most = Int.random(in: 2...3, using: &random)
        let sizes = (0..<count * 3).map { _ in Int.random(in: 1...4, using: &random) }
        var stream = try SpatialStream(
            count, keyPictures: keys, layers: { _ in most }, size: { sizes[$0 * 3 + $1] }, codec: codec)
        let spread = Int.random(in: 0...12, using: &random)
        let loss = [0, 0, 5, 20].randomElement(using: &random) ?? 0
        let order = stream.packets.indices
            .map { (index: $0, at: $0 + Int.random(in: 0...spread, using: &random)) }
            .sorted { ($0.at, $0.index) < ($1.at, $1.index) }.map(\.index)
        var came: Set<Int> = []
        for index in order {
            if index > 0, Int.random(in: 0..<100, using: &random) < loss { continue }
            if Int.random(in: 0..<30, using: &random) == 0 {
                stream.sieve.target.spatial = [0, 1, .max].randomElement(using: &random) ?? 0
                stream.sieve.target.temporal = [0, .max, .max].randomElement(using: &random) ?? 0
            }
            came.insert(index)
            stream.take(index)
        }
        check(stream, came: came)
    }

    private func check(_ stream: SpatialStream, came: Set<Int>? = nil) {
        let sorted = stream.sent.sorted {
            $0.packet.forwarded.sequenceNumber < $1.packet.forwarded.sequenceNumber
        }
        for (before, after) in zip(sorted, sorted.dropFirst()) {
            #expect(after.number > before.number, "a number stands for two packets")
            let between =
                Int(before.packet.forwarded.sequenceNumber) + 1..<Int(after.packet.forwarded.sequenceNumber)
            let missing = came.map { came in between.filter { !came.contains($0) }.count } ?? 0
            #expect(after.number - before.number - 1 <= missing, "an unexplained gap")
        }
        for each in stream.sent {
            let form = stream.sieve.form(of: each.packet.forwarded)
            #expect(form == nil || form == each.verdict, "sent again it would be another packet")
            let origin = stream.sieve.origin(of: each.number)
            #expect(origin == nil || origin == each.packet.forwarded.sequenceNumber)
        }
        let wanted = Dictionary(grouping: stream.packets.indices) { stream.packets[$0].picture }
        let sent = Dictionary(grouping: sorted.filter { !$0.isEmpty }, by: \.packet.picture)
        /// The pictures of each layer that were sent, in their order.
        var pictures: [Int: Set<Int>] = [:]
        for (picture, packets) in sent {
            let isWhole = wanted[picture]?.allSatisfy { came?.contains($0) ?? true } ?? false
            let top = packets.map(\.packet.layer).max() ?? 0
            for layer in 0...top { pictures[layer, default: []].insert(picture) }
            guard isWhole else { continue }
            #expect(packets.filter(\.marker).count == 1, "picture \(picture) ends once")
            #expect(packets.last?.marker == true, "picture \(picture) ends with its last packet")
            let indices = Set(packets.map { Int($0.packet.forwarded.sequenceNumber) })
            let all = wanted[picture]?.filter { stream.packets[$0].layer <= top } ?? []
            #expect(indices == Set(all), "picture \(picture) in part")
        }
        for (layer, sent) in pictures where layer > 0 {
            // Of the lowest frame rate each needs the one before, back to a key picture.
            for picture in sent where picture % 2 == 0 && !stream.keyPictures.contains(picture) {
                let isKnown = wanted[picture - 2]?.allSatisfy { came?.contains($0) ?? true } ?? false
                if isKnown { #expect(sent.contains(picture - 2), "layer \(layer) of \(picture)") }
            }
        }
    }
}
