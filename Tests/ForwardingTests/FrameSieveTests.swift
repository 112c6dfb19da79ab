import Base
import Peer
import TestSupport
import Testing
import Wire

@testable import Forwarding

/// One VP8 source with temporal layers, as its packets come, and what a sieve makes of them.
struct SievedStream {
    struct Picture {
        var layer: UInt8
        var isKeyFrame = false
        var isSync = false
        /// Pictures without which this one cannot be decoded.
        var needs: Set<Int> = []
    }

    struct Sent {
        let picture: Int
        let source: Int64
        let number: Int64
        let pictureID: UInt16
        let isEmpty: Bool
    }

    var pictures: [Picture] = []
    var packets: [(picture: Int, packet: ForwardedPacket)] = []
    let offset: Int64 = 1_000
    let sieve: FrameSieve
    var sent: [Sent] = []

    init(layers: [Picture], packetsPerPicture: (Int) -> Int, first: Int64 = 500, isSure: Bool = true) throws {
        sieve = FrameSieve(from: first, after: first - 1, isSure: isSure)
        var sequence = first
        var lowest = UInt8(250)
        var latest: [UInt8: Int] = [:]
        for (index, var picture) in layers.enumerated() {
            if picture.layer == 0 { lowest &+= 1 }
            if picture.isKeyFrame { latest = [:] }
            // A picture that the encoder may refer to counts as referred to.
            if !picture.isKeyFrame {
                picture.needs = Set(
                    latest.filter { picture.isSync ? $0.key == 0 : $0.key <= picture.layer }.values)
            }
            latest[picture.layer] = index
            pictures.append(picture)
            let count = packetsPerPicture(index)
            for place in 0..<count {
                let payload =
                    [
                        place == 0 ? 0x90 : 0x80, 0xE0, UInt8(0x80 | (index + 0x7FF0) >> 8 & 0x7F),
                        UInt8((index + 0x7FF0) & 0xFF), lowest,
                        picture.layer << 6 | (picture.isSync ? 0x20 : 0),
                        picture.isKeyFrame ? 0x10 : 0x11,
                    ] as [UInt8]
                packets.append(
                    (index, try Self.packet(payload, sequence, index, marker: place == count - 1)))
                sequence += 1
            }
        }
    }

    static func packet(
        _ payload: [UInt8], _ sequence: Int64, _ index: Int, marker: Bool, codec: MediaCodec = .vp8
    ) throws -> ForwardedPacket {
        var bytes: [UInt8] = [0x80, (marker ? 0x80 : 0) | 96]
        bytes.append(bigEndian: UInt16(truncatingIfNeeded: sequence))
        bytes.append(bigEndian: UInt32(truncatingIfNeeded: index * 3_000))
        bytes.append(bigEndian: UInt32(7))
        bytes += payload
        let header = try RTPHeader(parsing: bytes.span)
        let reader = PacketReader(
            formats: [MediaFormat(codec: codec, payloadType: 96)], ids: ExtensionIDs())
        var packet = try reader.read(bytes.span, header, structure: nil)
        packet.sequenceNumber = sequence
        return ForwardedPacket(packet, at: .zero)
    }

    mutating func take(_ index: Int) {
        let (picture, packet) = packets[index]
        let verdict = sieve.judge(packet)
        guard verdict != .leaveOut, let omissions = sieve.omissions(before: packet.sequenceNumber) else {
            return
        }
        sent.append(
            Sent(
                picture: picture, source: packet.sequenceNumber,
                number: packet.sequenceNumber + offset - omissions.packets,
                pictureID: ((packet.pictures.pictureID ?? 0) &- omissions.pictures) & 0x7FFF,
                isEmpty: verdict == .fill))
    }

    /// Pictures of which every packet was sent.
    var complete: Set<Int> {
        let counts = Dictionary(grouping: packets, by: \.picture).mapValues(\.count)
        let got = Dictionary(grouping: sent.filter { !$0.isEmpty }, by: \.picture).mapValues(\.count)
        return Set(got.filter { counts[$0.key] == $0.value }.keys)
    }
}

@Suite struct `Leaving temporal layers out` {
    private typealias Picture = SievedStream.Picture

    /// As Chromium and Firefox make them: the first picture of a layer in eight needs the lowest layer only.
    private func pattern(_ count: Int, layers: Int) -> [Picture] {
        (0..<count).map { index in
            guard index > 0 else { return Picture(layer: 0, isKeyFrame: true) }
            if layers == 2 { return Picture(layer: UInt8(index % 2), isSync: index % 8 == 1) }
            let layer = [0, 2, 1, 2][index % 4] as UInt8
            return Picture(layer: layer, isSync: index % 8 == 1 || index % 8 == 2)
        }
    }

    private func isGapless(_ stream: SievedStream) -> Bool {
        let numbers = stream.sent.map(\.number).sorted()
        return Set(numbers).count == numbers.count
            && (numbers.last ?? 0) - (numbers.first ?? 0) + 1 == numbers.count
    }

    @Test(arguments: [2, 3]) func `sends the lowest one with numbers that have no gap`(layers: Int) throws {
        var stream = try SievedStream(layers: pattern(40, layers: layers)) { _ in 3 }
        stream.sieve.target.temporal = 0
        for index in stream.packets.indices { stream.take(index) }
        #expect(stream.complete == Set(stride(from: 0, to: 40, by: layers == 2 ? 2 : 4)))
        #expect(isGapless(stream))
        let ids = stream.sent.map(\.pictureID)
        #expect(zip(ids, ids.dropFirst()).allSatisfy { ($1 &- $0) & 0x7FFF <= 1 })
    }

    @Test func `takes them in again one after the other, each where it needs only lower ones`() throws {
        var stream = try SievedStream(layers: pattern(40, layers: 3)) { _ in 1 }
        stream.sieve.target.temporal = 0
        for index in 0..<11 { stream.take(index) }
        stream.sieve.target.temporal = .max
        for index in 11..<40 { stream.take(index) }
        // The second layer at 18, the third at 25.
        let pictures = stream.sent.map(\.picture)
        #expect(pictures == [0, 4, 8, 12, 16, 18, 20, 22, 24] + Array(25..<40))
        #expect(isGapless(stream))
    }

    @Test func `takes all in at a key frame`() throws {
        var pictures = pattern(16, layers: 3) + pattern(16, layers: 3)
        pictures[17].isSync = false
        pictures[18].isSync = false
        var stream = try SievedStream(layers: pictures) { _ in 1 }
        stream.sieve.target.temporal = 0
        for index in 0..<15 { stream.take(index) }
        stream.sieve.target.temporal = .max
        for index in 15..<32 { stream.take(index) }
        #expect(stream.sent.map(\.picture) == [0, 4, 8, 12] + Array(16..<32))
    }

    @Test func `begins with a picture, not within one`() throws {
        var stream = try SievedStream(layers: pattern(8, layers: 2)) { _ in 4 }
        for index in 0..<6 { stream.take(index) }
        stream.sieve.target.temporal = 0
        for index in 6..<32 { stream.take(index) }
        #expect(stream.complete == [0, 1, 2, 4, 6])
        #expect(isGapless(stream))
    }

    @Test func `sends every layer of a source that does not mark points to switch up`() throws {
        let pictures = (0..<20).map { Picture(layer: UInt8($0 % 2), isKeyFrame: $0 == 0) }
        var stream = try SievedStream(layers: pictures, packetsPerPicture: { _ in 2 }, isSure: false)
        stream.sieve.target.temporal = 0
        for index in stream.packets.indices { stream.take(index) }
        #expect(stream.complete.count == 20)
    }

    /// VP8 numbers the pictures of the lowest layer, so what is missing between two neighbours is of higher layers.
    @Test func `a late packet of a left-out picture leaves no gap in the numbers`() throws {
        var stream = try SievedStream(layers: pattern(8, layers: 2)) { _ in 2 }
        stream.sieve.target.temporal = 0
        // Nothing comes of the second picture, and of the sixth only the end, late.
        for index in stream.packets.indices where ![2, 3, 10].contains(index) { stream.take(index) }
        for index in [2, 3, 10] { stream.take(index) }
        #expect(stream.sent.map(\.picture) == [0, 0, 2, 2, 4, 4, 6, 6])
        #expect(isGapless(stream))
    }

    @Test func `places reserved for late packets are filled when these are left out`() throws {
        var stream = try SievedStream(layers: pattern(6, layers: 2)) { _ in 2 }
        stream.sieve.target.temporal = 0
        // The end of the first picture and all of the second are late, so nobody knows whose places these are.
        for index in [0, 4, 5, 1, 2, 3] { stream.take(index) }
        #expect(stream.sent.map(\.isEmpty) == [false, false, false, false, true, true])
        #expect(isGapless(stream))
        for each in stream.sent {
            let number = each.number - stream.offset
            #expect(stream.sieve.origin(of: number) == each.source)
        }
    }

    /// U of VP9 stands in the picture before those that may be taken in.
    @Test(arguments: [(7, 7), (8, 9)]) func `follows VP9, whose picture ids stay`(
        asked: Int, first: Int64
    ) throws {
        let sieve = FrameSieve(from: 0, after: -1, isSure: false)
        sieve.target.temporal = 0
        var sent: [Int64] = []
        for index in 0..<12 {
            if index == asked { sieve.target.temporal = .max }
            let packet = try vp9(index, isSwitchingPoint: index % 2 == 0)
            guard sieve.judge(packet) == .send else { continue }
            sent.append(Int64(index))
            #expect(sieve.omissions(before: Int64(index))?.pictures == 0)
        }
        #expect(sent == (0..<12).filter { $0 % 2 == 0 || $0 >= first })
    }

    /// The picture that could have been taken in came too late for it, and the next of its layer may need it.
    @Test func `takes no layer in behind a picture that is missing`() throws {
        let sieve = FrameSieve(from: 0, after: -1, isSure: false)
        sieve.target.temporal = 0
        var sent: [Int64] = []
        for index in 0..<16 where index != 7 {
            if index == 8 { sieve.target.temporal = .max }
            let verdict = sieve.judge(try vp9(index, isSwitchingPoint: index % 6 == 0))
            if verdict == .send { sent.append(Int64(index)) }
        }
        #expect(sieve.judge(try vp9(7, isSwitchingPoint: false)) == .fill)
        #expect(sent == (0..<16).filter { $0 % 2 == 0 || $0 > 12 })
    }

    /// A picture of VP9 in one packet, of two layers in turns.
    private func vp9(_ index: Int, isSwitchingPoint: Bool) throws -> ForwardedPacket {
        let layer = UInt8(index % 2)
        // I P L, not flexible, B and E; TID and U; TL0PICIDX.
        let payload: [UInt8] = [
            0x80 | 0x20 | (index > 0 ? 0x40 : 0) | 0x0C, UInt8(index),
            layer << 5 | (isSwitchingPoint ? 0x10 : 0), 3,
            0x82, 0x49, 0x83, 0x42,
        ]
        return try SievedStream.packet(
            payload, Int64(index), index, marker: true, codec: .vp9(profile: 0))
    }

    /// What is sent can be decoded, in any order of packets and whenever the viewer's wish changes.
    @Test(arguments: UInt64(0)..<300) func `breaks nothing in any order`(seed: UInt64) throws {
        var random = SeededGenerator(seed: seed)
        let layers = Int.random(in: 2...3, using: &random)
        var pictures = (0..<4).flatMap { _ in
            pattern(Int.random(in: 1...60, using: &random), layers: layers)
        }
        // Encoders may let layers in anywhere.
        let isRegular = Bool.random(using: &random)
        for index in pictures.indices where !isRegular && pictures[index].layer > 0 {
            pictures[index].isSync = Int.random(in: 0..<4, using: &random) == 0
        }
        let sizes = pictures.map { _ in Int.random(in: 1...4, using: &random) }
        var stream = try SievedStream(layers: pictures) { sizes[$0] }
        // Reordered within a window, and some lost for ever.
        let spread = Int.random(in: 0...12, using: &random)
        let loss = [0, 0, 5, 20].randomElement(using: &random) ?? 0
        let order = stream.packets.indices
            .map { (index: $0, at: $0 + Int.random(in: 0...spread, using: &random)) }
            .sorted { ($0.at, $0.index) < ($1.at, $1.index) }.map(\.index)
        var lost: Set<Int> = []
        var came: Set<Int64> = []
        for index in order {
            if index > 0, Int.random(in: 0..<100, using: &random) < loss {
                lost.insert(stream.packets[index].picture)
                continue
            }
            if Int.random(in: 0..<40, using: &random) == 0 {
                stream.sieve.target.temporal = [0, 0, 1, .max].randomElement(using: &random) ?? 0
            }
            came.insert(stream.packets[index].packet.sequenceNumber)
            stream.take(index)
        }
        check(stream, lost: lost, came: came)
    }

    private func check(_ stream: SievedStream, lost: Set<Int>, came: Set<Int64>) {
        let numbers = stream.sent.map(\.number)
        #expect(Set(numbers).count == numbers.count, "a number stands for two packets")
        // In the order of the source, and so are the numbers.
        let sorted = stream.sent.sorted { $0.source < $1.source }
        for (before, after) in zip(sorted, sorted.dropFirst()) {
            #expect(after.number > before.number)
            // Between two there is room for what may still come, and for nothing else.
            let between = (before.source + 1)..<after.source
            let missing = between.filter { !came.contains($0) }.count
            #expect(after.number - before.number - 1 <= missing, "an unexplained gap before \(after.source)")
            if lost.isEmpty { #expect(after.number == before.number + 1) }
        }
        for each in sorted {
            guard let origin = stream.sieve.origin(of: each.number - stream.offset) else { continue }
            #expect(origin == each.source)
        }
        // What is sent again is what was sent, or nothing: under one number there is only ever one packet.
        let packets = Dictionary(
            uniqueKeysWithValues: stream.packets.map { ($0.packet.sequenceNumber, $0.packet) })
        for each in stream.sent {
            let form = packets[each.source].flatMap { stream.sieve.form(of: $0) }
            #expect(form == nil || form == (each.isEmpty ? .fill : .send))
        }
        // No picture is sent in part, and none without what it needs, but for what was lost on the way here.
        let complete = stream.complete
        let begun = Set(stream.sent.filter { !$0.isEmpty }.map(\.picture))
        for picture in begun {
            #expect(complete.contains(picture) || lost.contains(picture), "\(picture) in part")
            for needed in stream.pictures[picture].needs {
                #expect(complete.contains(needed) || lost.contains(needed), "\(picture) without \(needed)")
            }
        }
        for (index, picture) in stream.pictures.enumerated() where picture.layer == 0 {
            #expect(complete.contains(index) || lost.contains(index), "the lowest layer lacks \(index)")
        }
    }
}
