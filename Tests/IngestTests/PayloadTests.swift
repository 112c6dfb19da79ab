import TestSupport
import Testing
import Wire

@testable import Ingest

/// Pictures put together again from the payloads of their packets.
@Suite struct PayloadTests {
    private let h264: AVCConfiguration
    private let hevc: HEVCConfiguration

    private static let sequenceSet = hexBytes(
        "6742c01ed900a02ff970110000030001000003003c8f162e48")
    private static let pictureSet = hexBytes("68cb83cb20")
    /// Video, sequence and picture parameters of HEVC.
    private static let hevcSets = [
        hexBytes("40010c01ffff01600000030090000003000003003c959009"),
        hexBytes("42010101600000030090000003000003003ca0208316595912930bc05a020000030002000003003c10"),
        hexBytes("4401c073c089"),
    ]

    init() throws {
        let avc = hexBytes("01 42c01e ff e1 0019") + Self.sequenceSet + hexBytes("01 0005") + Self.pictureSet
        h264 = try AVCConfiguration(parsing: avc.span)
        let record = hexBytes(
            """
            01 01 60000000 900000000000 3c f000 fc fd f8 f8 0000 0f 03
            20 0001 0018 40010c01ffff01600000030090000003000003003c959009
            21 0001 0029 42010101600000030090000003000003003ca0208316595912930bc05a020000030002000003003c10
            22 0001 0006 4401c073c089
            """)
        hevc = try HEVCConfiguration(parsing: record.span)
    }

    /// Units behind lengths of four bytes.
    private static func picture(_ units: [[UInt8]]) -> [UInt8] {
        var bytes: [UInt8] = []
        for unit in units {
            let count = unit.count
            bytes += [UInt8(count >> 24 & 0xFF), UInt8(count >> 16 & 0xFF)]
            bytes += [UInt8(count >> 8 & 0xFF), UInt8(count & 0xFF)]
            bytes += unit
        }
        return bytes
    }

    private static func unit(_ head: [UInt8], size: Int) -> [UInt8] {
        head + (0..<max(size - head.count, 0)).map { UInt8(truncatingIfNeeded: $0 &* 7 &+ size) }
    }

    // MARK: H.264

    private func payloads(_ units: [[UInt8]], needsParameters: Bool = false) throws -> [[UInt8]] {
        let bytes = Self.picture(units)
        return try H264Payloads.payloads(of: bytes.span, h264, needsParameters: needsParameters)
    }

    /// The units of single packets, aggregates and fragments (RFC 6184 §5.6 to §5.8).
    private static func unitsOfH264(_ payloads: [[UInt8]]) -> [[UInt8]] {
        var units: [[UInt8]] = []
        var isOpen = false
        for payload in payloads {
            #expect((1...PicturePacketizer.maximumPayload).contains(payload.count))
            switch payload[0] & 0x1F {
            case 24:
                var place = 1
                while place + 2 <= payload.count {
                    let size = Int(payload[place]) << 8 | Int(payload[place + 1])
                    place += 2
                    guard size > 0, place + size <= payload.count else {
                        Issue.record("an aggregate has a wrong size")
                        break
                    }
                    units.append(Array(payload[place..<(place + size)]))
                    place += size
                }
                #expect(place == payload.count && !isOpen)
            case 28:
                let isFirst = payload[1] & 0x80 != 0
                let isLast = payload[1] & 0x40 != 0
                #expect(payload.count > 2 && isFirst != isOpen && !(isFirst && isLast))
                if isFirst { units.append([payload[0] & 0x60 | payload[1] & 0x1F]) }
                if units.isEmpty { return [] }
                units[units.count - 1] += payload[2...]
                isOpen = !isLast
            default:
                #expect(!isOpen)
                units.append(payload)
            }
        }
        #expect(!isOpen)
        return units
    }

    /// Sizes at which a slice stops to fit, and at which the number of fragments changes.
    @Test(arguments: [
        1, 2, 1_135, 1_136, 1_137, 1_138, 2_268, 2_269, 2_270, 3_403, 3_404, 100_000,
    ])
    func `of H.264 give slices of any size again`(size: Int) throws {
        let small = Self.unit([0x21], size: 5)
        let slices = [Self.unit([0x41], size: size), small, Self.unit([0x01], size: size)]
        let found = Self.unitsOfH264(try payloads(slices))
        #expect(found == slices)
    }

    @Test func `of H.264 are about equally long where a slice is split`() throws {
        let sizes = try payloads([Self.unit([0x41], size: 1_140)]).map(\.count)
        let (least, most) = (sizes.min() ?? 0, sizes.max() ?? 0)
        #expect(sizes.count == 2 && most - least <= 1)
    }

    @Test(arguments: ChosenSeed.or(1...40))
    func `of H.264 give everything again that decoders need, in order`(seed: UInt64) throws {
        var random = SeededGenerator(seed: seed)
        var (heads, slices, given): ([[UInt8]], [[UInt8]], [[UInt8]]) = ([], [], [])
        for _ in 0..<Int.random(in: 1...12, using: &random) {
            let isHuge = Int.random(in: 0..<6, using: &random) == 0
            let size = Int.random(in: isHuge ? 1_000...4_000 : 1...500, using: &random)
            // Delimiters, filler and ends of sequences say nothing.
            let type: UInt8 = [1, 1, 2, 6, 6, 8, 9, 10, 12].randomElement(using: &random) ?? 1
            let unit = Self.unit([UInt8.random(in: 0...3, using: &random) << 5 | type], size: size)
            given.append(unit)
            if type <= 5 { slices.append(unit) } else if type == 6 || type == 8 { heads.append(unit) }
        }
        let found = Self.unitsOfH264(try payloads(given))
        let expected = heads + slices
        #expect(found == expected)
    }

    @Test func `of H.264 begin with the parameters wherever decoders begin`() throws {
        let refresh = Self.unit([0x65], size: 50)
        let other = Self.unit([0x41], size: 50)
        let message = Self.unit([0x06], size: 9)
        let own = Self.unit([0x67], size: 12)
        let sets = [Self.sequenceSet, Self.pictureSet]
        let begun = Self.unitsOfH264(try payloads([message, refresh]))
        #expect(begun == sets + [message, refresh])
        let continued = Self.unitsOfH264(try payloads([message, other]))
        #expect(continued == [message, other])
        let wanted = Self.unitsOfH264(try payloads([other], needsParameters: true))
        #expect(wanted == sets + [other])
        let brought = Self.unitsOfH264(try payloads([own, Self.pictureSet, refresh], needsParameters: true))
        #expect(brought == [own, Self.pictureSet, refresh], "those of the picture count")
    }

    @Test func `of H.264 are none of what says nothing, and of half a unit`() throws {
        let nothing = try payloads([[0x09, 0xF0], [0x0C, 0xFF], []])
        #expect(nothing.isEmpty)
        let half = Array(Self.picture([Self.unit([0x41], size: 20)]).dropLast())
        #expect(throws: WireError.truncated) {
            try H264Payloads.payloads(of: half.span, h264, needsParameters: false)
        }
    }

    /// An aggregate is as important as its most important unit (RFC 6184 §5.7.1).
    @Test func `of H.264 tell how important an aggregate is`() throws {
        let units = [Self.unit([0x06], size: 9), Self.unit([0x48], size: 9), Self.unit([0x28], size: 9)]
        let first = try #require(try payloads(units + [Self.unit([0x41], size: 9)]).first)
        #expect(first[0] == 0x58)
    }

    // MARK: HEVC

    private func hevcPayloads(_ units: [[UInt8]], needsParameters: Bool = false) throws -> [[UInt8]] {
        let bytes = Self.picture(units)
        return try HEVCPayloads.payloads(of: bytes.span, hevc, needsParameters: needsParameters)
    }

    /// The units of single packets and fragments (RFC 7798 §4.4.1, §4.4.3).
    private static func unitsOfHEVC(_ payloads: [[UInt8]]) -> [[UInt8]] {
        var units: [[UInt8]] = []
        var isOpen = false
        for payload in payloads {
            #expect((3...PicturePacketizer.maximumPayload).contains(payload.count))
            guard payload[0] >> 1 & 0x3F == 49 else {
                #expect(!isOpen)
                units.append(payload)
                continue
            }
            let isFirst = payload[2] & 0x80 != 0
            let isLast = payload[2] & 0x40 != 0
            #expect(payload.count > 3 && isFirst != isOpen && !(isFirst && isLast))
            if isFirst { units.append([payload[0] & 0x81 | (payload[2] & 0x3F) << 1, payload[1]]) }
            if units.isEmpty { return [] }
            units[units.count - 1] += payload[3...]
            isOpen = !isLast
        }
        #expect(!isOpen)
        return units
    }

    @Test(arguments: [3, 4, 1_135, 1_136, 1_137, 1_138, 2_268, 2_269, 3_401, 3_402, 100_000])
    func `of HEVC give slices of any size again`(size: Int) throws {
        // A slice of another layer and with the last bit of its type set.
        let slices = [Self.unit([0x02, 0x01], size: size), Self.unit([0x27, 0x09], size: size)]
        let found = Self.unitsOfHEVC(try hevcPayloads(slices))
        #expect(found == slices)
    }

    @Test func `of HEVC leave out what decoders do not need`() throws {
        let slice = Self.unit([0x26, 0x01], size: 40)
        let delimiter = hexBytes("46 01 50")
        let message = Self.unit([0x4E, 0x01], size: 30)
        let found = Self.unitsOfHEVC(try hevcPayloads([delimiter, message, slice], needsParameters: true))
        #expect(found == Self.hevcSets + [slice])
        // Without a slice there is no picture, whatever else there is.
        let none = try hevcPayloads([delimiter, message] + Self.hevcSets, needsParameters: true)
        #expect(none.isEmpty)
        // Units that are no more than a header are none.
        let empty = try hevcPayloads([[0x26, 0x01], [0x26]], needsParameters: true)
        #expect(empty.isEmpty)
    }

    // MARK: VP9

    private static let vp9Key = hexBytes("824983420003f002f60638241c184200")
    private static let vp9Other = hexBytes("860040929c284940")

    @Test(arguments: [0, 1, 1_112, 1_113, 2_240, 2_241, 3_368, 3_369, 60_000])
    func `of VP9 give a picture of any size again`(size: Int) throws {
        for (head, isKey) in [(Self.vp9Key, true), (Self.vp9Other, false)] {
            let picture = head + (0..<size).map { UInt8(truncatingIfNeeded: $0 &* 11) }
            let header = try VP9FrameHeader(parsing: picture.span)
            let payloads = VP9Payloads.payloads(of: picture.span, header, number: 0xFFFF)
            var found: [UInt8] = []
            for (index, payload) in payloads.enumerated() {
                #expect(payload.count <= PicturePacketizer.maximumPayload)
                let descriptor = try VP9Descriptor(parsing: payload.span)
                #expect(descriptor.startsFrame == (index == 0))
                #expect(descriptor.endsFrame == (index == payloads.count - 1))
                #expect(descriptor.isInterPredicted == !isKey && descriptor.pictureID == 0x7FFF)
                #expect(descriptor.length < payload.count, "a packet without a byte of the picture")
                found += payload[descriptor.length...]
            }
            #expect(found == picture)
        }
    }

    // MARK: AV1

    private static let av1Header = hexBytes("0800000002aff79b5f2008")

    /// A unit as files have it, with its size, and as packets have it, without.
    private static func av1Unit(_ body: [UInt8]) -> (stored: [UInt8], sent: [UInt8]) {
        let size = body.count
        var stored: [UInt8] = [0x32, UInt8(size & 0x7F) | 0x80, UInt8(size >> 7 & 0x7F) | 0x80]
        stored.append(UInt8(size >> 14))
        return (stored + body, [0x30] + body)
    }

    /// The elements of packets, put together where one continues in the next (§4.3 and §4.4 of the format).
    private static func unitsOfAV1(_ payloads: [[UInt8]]) -> [[UInt8]] {
        var units: [[UInt8]] = []
        var isOpen = false
        for payload in payloads {
            #expect((2...PicturePacketizer.maximumPayload).contains(payload.count))
            var isContinued = payload[0] & 0x80 != 0
            #expect(isContinued == isOpen)
            var place = 1
            while place < payload.count {
                var size = Int(payload[place] & 0x7F)
                if payload[place] & 0x80 != 0, place + 1 < payload.count {
                    place += 1
                    size |= Int(payload[place]) << 7
                }
                place += 1
                guard size > 0, place + size <= payload.count else {
                    Issue.record("an element has a wrong size")
                    return units
                }
                let element = payload[place..<(place + size)]
                if isContinued, !units.isEmpty {
                    units[units.count - 1] += element
                } else {
                    units.append(Array(element))
                }
                isContinued = false
                place += size
            }
            isOpen = payload[0] & 0x40 != 0
        }
        #expect(!isOpen)
        return units
    }

    @Test(arguments: ChosenSeed.or(1...60))
    func `of AV1 give all units again, wherever packets end`(seed: UInt64) throws {
        var random = SeededGenerator(seed: seed)
        let isKey = seed % 2 == 0
        var (stored, sent): ([UInt8], [[UInt8]]) = ([], [])
        for index in 0..<Int.random(in: 1...9, using: &random) {
            let size =
                switch Int.random(in: 0..<4, using: &random) {
                case 0: Int.random(in: 1...3, using: &random)
                case 1: Int.random(in: 120...130, using: &random)
                case 2: Int.random(in: 1_120...1_140, using: &random)
                default: Int.random(in: 1...4_000, using: &random)
                }
            var body = (0..<size).map { UInt8(truncatingIfNeeded: $0 &* 3 &+ index) }
            // Only the first frame says whether a decoder can begin.
            body[0] = index == 0 && isKey ? 0x10 : 0x30
            let unit = Self.av1Unit(body)
            stored += unit.stored
            sent.append(unit.sent)
        }
        let units = try AV1Units(parsing: stored.span)
        let payloads = AV1Payloads.payloads(of: units, sequenceHeader: Self.av1Header)
        let found = Self.unitsOfAV1(payloads)
        let expected = isKey ? [Self.av1Header] + sent : sent
        #expect(found == expected)
        // Only the first packet of a sequence says that one begins.
        for (index, payload) in payloads.enumerated() {
            #expect((payload[0] & 0x08 != 0) == (isKey && index == 0), "packet \(index)")
        }
    }
}
