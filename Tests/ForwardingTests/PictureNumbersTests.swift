import Base
import Peer
import TestSupport
import Testing
import Wire

@testable import Forwarding

@Suite struct `Picture numbers` {
    private func numbers(_ id: UInt16?, _ lowest: UInt8?, _ frame: UInt16?) -> PictureNumbers {
        var numbers = PictureNumbers()
        (numbers.pictureID, numbers.tl0PictureIndex, numbers.frameNumber) = (id, lowest, frame)
        return numbers
    }

    /// Decoders take a jump for a loss.
    @Test(arguments: UInt64(0)..<20) func `of a new source follow the last one's, in the width of each`(
        seed: UInt64
    ) {
        var random = SeededGenerator(seed: seed)
        for _ in 0..<200 {
            let isLast = Bool.random(using: &random)
            let id = isLast ? 0x7FFF : UInt16.random(in: 0...0x7FFF, using: &random)
            let lowest = isLast ? 0xFF : UInt8.random(in: 0...0xFF, using: &random)
            let frame = isLast ? 0xFFFF : UInt16.random(in: 0...0xFFFF, using: &random)
            let own = numbers(
                UInt16.random(in: 0...0x7FFF, using: &random), UInt8.random(in: 0...0xFF, using: &random),
                UInt16.random(in: 0...0xFFFF, using: &random))
            let sum = own.adding(own.offsets(after: numbers(id, lowest, frame)))
            #expect(sum.pictureID == (id &+ 1) & 0x7FFF)
            #expect(sum.tl0PictureIndex == lowest &+ 1)
            #expect(sum.frameNumber == frame &+ 1)
        }
    }

    @Test func `a source without picture numbers gets none, and the next one continues them`() {
        var last = numbers(9, 8, 7)
        let bare = numbers(nil, nil, nil)
        #expect(bare.offsets(after: last) == PictureOffsets())
        #expect(bare.adding(numbers(1, 1, 1).offsets(after: last)) == bare)
        last.update(with: bare)
        #expect(last == numbers(9, 8, 7))
        last.update(with: numbers(20, nil, nil))
        #expect(last == numbers(20, 8, 7))
        #expect(numbers(5, 5, 5).offsets(after: bare) == PictureOffsets(), "there is nothing to follow")
    }

    @Test func `left-out pictures leave no gap in the picture numbers, even where 15 bits wrap`() {
        var offsets = PictureOffsets()
        offsets.pictureID = 3
        #expect(numbers(2, nil, nil).adding(offsets.leavingOut(7)).pictureID == 0x7FFE)
        #expect(numbers(2, nil, nil).adding(offsets.leavingOut(5)).pictureID == 0)
        #expect(offsets.leavingOut(0) == offsets)
        #expect(offsets.leavingOut(9).tl0PictureIndex == 0 && offsets.leavingOut(9).frameNumber == 0)
    }

    @Test func `a picture number of seven bits is extended to the nearest one of fifteen bits`() {
        var extender = PictureIDExtender()
        let extended = [100, 101, 127, 0, 1, 126, 2, 65, 64].map { extender.extend($0) }
        // 126 comes late, and so does 64 behind 65.
        #expect(extended == [100, 101, 127, 128, 129, 126, 130, 193, 192])
    }

    @Test(arguments: UInt64(0)..<20)
    func `a picture number cut to seven bits is restored whatever is lost or late`(seed: UInt64) {
        var random = SeededGenerator(seed: seed)
        var extender = PictureIDExtender()
        var truth = Int(UInt8.random(in: 0...0x7F, using: &random))
        var offset: Int?
        for _ in 0..<3_000 {
            truth += Int.random(in: 0...40, using: &random)
            // At most half of what seven bits can tell.
            let sent = max(truth - (Int.random(in: 0..<4, using: &random) == 0 ? 20 : 0), 0)
            let extended = Int(extender.extend(UInt16(sent & 0x7F)))
            let difference = (extended - sent) & 0x7FFF
            if offset == nil { offset = difference }
            #expect(difference == offset, "\(sent)")
        }
    }
}

@Suite struct `The layers that are kept with a packet` {
    @Test func `are the same when they are read again`() {
        for code in UInt16(0)..<0x400 {
            let place = LayerPlace(code: code)
            #expect(place.code == code)
            #expect(LayerPlace(code: place.code) == place)
            #expect(place.tellsWhereToSwitch == (code & 0x300 != 0))
        }
    }
}

/// Bytes of publishers are parsed here first.
@Suite struct `A reader of packets` {
    private static let codecs: [MediaCodec] = [
        .opus, .vp8, .vp9(profile: 0), .h264(packetizationMode: 1), .av1,
    ]

    private let reader: PacketReader
    private let plain: PacketReader

    init() {
        var ids = ExtensionIDs()
        (ids.audioLevel, ids.videoOrientation, ids.playoutDelay) = (1, 2, 3)
        (ids.absoluteCaptureTime, ids.dependencyDescriptor) = (4, 5)
        let formats = Self.codecs.enumerated().map { index, codec in
            MediaFormat(
                codec: codec, payloadType: UInt8(96 + index), repairPayloadType: UInt8(106 + index),
                redundancyPayloadType: codec == .opus ? 63 : nil)
        }
        reader = PacketReader(formats: formats, ids: ids)
        plain = PacketReader(formats: formats, ids: ExtensionIDs())
    }

    @Test func `tells media, retransmissions and redundancy apart by their types`() {
        for (index, codec) in Self.codecs.enumerated() {
            #expect(reader.codec(ofPayloadType: UInt8(96 + index)) == codec)
            #expect(reader.originalPayloadType(ofRepair: UInt8(106 + index)) == UInt8(96 + index))
            #expect(reader.codec(ofPayloadType: UInt8(106 + index)) == nil)
            #expect(reader.originalPayloadType(ofRepair: UInt8(96 + index)) == nil)
        }
        #expect(reader.blockPayloadType(ofRedundancy: 63) == 96 && reader.codec(ofPayloadType: 63) == nil)
        #expect(reader.blockPayloadType(ofRedundancy: 96) == nil)
        #expect([0, 95, 101, 127].allSatisfy { reader.codec(ofPayloadType: $0) == nil })
    }

    /// An extension of random elements behind a header, and any payload.
    private func packet(_ index: Int, using random: inout SeededGenerator) -> [UInt8] {
        var bytes: [UInt8] = [0x90, UInt8(96 + index) | (Bool.random(using: &random) ? 0x80 : 0)]
        bytes += (0..<10).map { _ in UInt8.random(in: 0...255, using: &random) }
        let words = Int.random(in: 0...6, using: &random)
        bytes += Bool.random(using: &random) ? [0xBE, 0xDE] : [0x10, 0x00]
        bytes += [0, UInt8(words)]
        for _ in 0..<(words * 4) {
            // Often the header of an element that the reader looks for.
            let byte = UInt8.random(in: 0...255, using: &random)
            let id = UInt8.random(in: 0...6, using: &random)
            bytes.append(Bool.random(using: &random) ? id << 4 | byte & 0x0F : byte)
        }
        let length = Int.random(in: 0...40, using: &random)
        return bytes + (0..<length).map { _ in UInt8.random(in: 0...255, using: &random) }
    }

    @Test(arguments: UInt64(0)..<30) func `finds everything within the packet, whatever is in it`(
        seed: UInt64
    ) throws {
        var random = SeededGenerator(seed: seed)
        for round in 0..<400 {
            let index = round % Self.codecs.count
            let bytes = packet(index, using: &random)
            guard let header = try? RTPHeader(parsing: bytes.span) else { continue }
            let media = try reader.read(bytes.span, header, structure: nil)
            #expect(media.codec == Self.codecs[index])
            let found = media.passedOn
            let ranges = [
                found.audioLevel, found.videoOrientation, found.playoutDelay, found.absoluteCaptureTime,
                found.dependencyDescriptor,
            ].compactMap(\.self)
            for range in ranges {
                #expect(header.extensionRange.lowerBound <= range.lowerBound)
                #expect(range.upperBound <= header.extensionRange.upperBound)
            }
            if media.codec == .opus { #expect(media.video == nil && media.descriptor == .none) }
            if header.payloadRange.isEmpty { #expect(!media.isEntryPoint && media.video == nil) }
            let forwarded = ForwardedPacket(media, at: .zero)
            #expect(forwarded.layers.spatial <= 7 && forwarded.layers.temporal <= 7)
            #expect(LayerPlace(code: forwarded.layers.code) == forwarded.layers)
            #expect(forwarded.startsKeyFrame == (media.codec.isVideo && media.isEntryPoint))
            // Who did not agree on extensions has none of them read.
            let bare = try plain.read(bytes.span, header, structure: nil)
            #expect(bare.passedOn == PassedExtensions())
        }
    }

    /// Of an unknown type, or in padding alone, there is nothing to show.
    @Test func `refuses types that were not agreed on`() throws {
        for type in [0, 63, 95, 101, 106, 127] as [UInt8] {
            let bytes: [UInt8] = [0x80, type] + [UInt8](repeating: 0, count: 10) + [1, 2, 3]
            let header = try RTPHeader(parsing: bytes.span)
            #expect(throws: WireError.invalid(.rtpPayloadType)) {
                _ = try reader.read(bytes.span, header, structure: nil)
            }
        }
    }
}
