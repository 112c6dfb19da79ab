import TestSupport
import Testing
import Wire

/// A sequence parameter set with random fields, and what it says.
/// - Source: ITU-T H.264 §7.3.2.1.1, annex E.1.1, E.1.2.
private struct H264Set {
    private(set) var bytes: [UInt8] = []
    let profile: Int
    private(set) var chromaFormat = 1
    private(set) var bitDepth = 8
    private(set) var width = 0
    private(set) var height = 0
    private(set) var mayHaveFields = false
    private(set) var reorderedPictures: Int?

    private static let profiles = [66, 77, 88, 100, 110, 122, 244, 44, 83, 86, 118, 128]

    init(seed: UInt64) {
        var writer = FieldWriter(seed: seed)
        profile = Self.profiles[writer.number(0...(Self.profiles.count - 1))]
        writer.bits(UInt64(profile), 8)
        writer.noise(16)
        writer.anyCode(0...31)
        if ![66, 77, 88].contains(profile) { writeSamples(&writer) }
        writer.anyCode(0...12)
        let order = Self.writeOrder(&writer)
        writer.anyCode(0...16)
        writer.noise(1)
        writeSize(&writer)
        let reordered = writer.anyFlag() ? Self.writeUsability(&writer) : nil
        reorderedPictures = profile == 66 || order == 2 ? 0 : reordered
        writer.end()
        bytes = writer.escaped
    }

    private mutating func writeSamples(_ writer: inout FieldWriter) {
        chromaFormat = writer.anyCode(0...3)
        if chromaFormat == 3 { writer.noise(1) }
        let luma = writer.anyCode(0...6)
        bitDepth = 8 + max(luma, writer.anyCode(0...6))
        writer.noise(1)
        guard writer.anyFlag() else { return }
        for list in 0..<(chromaFormat == 3 ? 12 : 8) where writer.anyFlag() {
            Self.writeScalingList(of: list < 6 ? 16 : 64, &writer)
        }
    }

    private static func writeScalingList(of size: Int, _ writer: inout FieldWriter) {
        var last = 8
        for _ in 0..<size {
            let ends = writer.number(0...15) == 0 && last <= 128
            let delta = ends ? -last : writer.number(-3...3)
            writer.signedCode(delta)
            let next = (last + delta + 256) % 256
            guard next != 0 else { return }
            last = next
        }
    }

    /// Returns the type of the picture order count.
    private static func writeOrder(_ writer: inout FieldWriter) -> Int {
        let type = writer.anyCode(0...2)
        if type == 0 { writer.anyCode(0...12) }
        if type == 1 {
            writer.noise(1)
            writer.anyCode(0...1_000)
            writer.anyCode(0...1_000)
            for _ in 0..<writer.anyCode(0...10) { writer.anyCode(0...1_000) }
        }
        return type
    }

    private mutating func writeSize(_ writer: inout FieldWriter) {
        width = 16 * (writer.anyCode(0...255) + 1)
        let units = writer.anyCode(0...255) + 1
        let isFrameCoded = writer.anyFlag()
        mayHaveFields = !isFrameCoded
        height = units * (isFrameCoded ? 16 : 32)
        if !isFrameCoded { writer.noise(1) }
        writer.noise(1)
        guard writer.anyFlag() else { return }
        let unitX = chromaFormat == 1 || chromaFormat == 2 ? 2 : 1
        let unitY = (chromaFormat == 1 ? 2 : 1) * (isFrameCoded ? 1 : 2)
        let (mostX, mostY) = ((width / unitX - 1) / 2, (height / unitY - 1) / 2)
        let left = writer.anyCode(0...mostX)
        width -= unitX * (left + writer.anyCode(0...mostX))
        let top = writer.anyCode(0...mostY)
        height -= unitY * (top + writer.anyCode(0...mostY))
    }

    /// Returns the number of reordered pictures, if it is there.
    private static func writeUsability(_ writer: inout FieldWriter) -> Int? {
        if writer.anyFlag() {
            let isExtended = writer.anyFlag()
            // The flag was the highest bit of the aspect ratio's number.
            writer.bits(isExtended ? 127 : 1, 7)
            if isExtended { writer.noise(32) }
        }
        if writer.anyFlag() { writer.noise(1) }
        if writer.anyFlag() {
            writer.noise(4)
            if writer.anyFlag() { writer.noise(24) }
        }
        if writer.anyFlag() {
            writer.anyCode(0...5)
            writer.anyCode(0...5)
        }
        if writer.anyFlag() { writer.noise(65) }
        let hasNetworkBuffer = writer.anyFlag()
        if hasNetworkBuffer { writeBuffer(&writer) }
        let hasVideoBuffer = writer.anyFlag()
        if hasVideoBuffer { writeBuffer(&writer) }
        if hasNetworkBuffer || hasVideoBuffer { writer.noise(1) }
        writer.noise(1)
        guard writer.anyFlag() else { return nil }
        writer.noise(1)
        for _ in 0..<4 { writer.anyCode(0...16) }
        let reordered = writer.anyCode(0...16)
        writer.anyCode(0...16)
        return reordered
    }

    private static func writeBuffer(_ writer: inout FieldWriter) {
        let last = writer.anyCode(0...3)
        writer.noise(8)
        for _ in 0...last {
            writer.anyCode(0...1_000_000)
            writer.anyCode(0...1_000_000)
            writer.noise(1)
        }
        writer.noise(20)
    }
}

@Suite struct `A sequence parameter set of H.264` {
    @Test(arguments: 0..<300 as Range<UInt64>) func `is read whatever fields it has`(seed: UInt64) throws {
        let set = H264Set(seed: seed)
        // No more is read of one.
        try #require(set.bytes.count <= 512)
        let read = try H264SequenceParameters(parsing: set.bytes.span)
        #expect(Int(read.profile) == set.profile)
        #expect(Int(read.chromaFormat) == set.chromaFormat)
        #expect(read.bitDepth == set.bitDepth)
        #expect(read.resolution == VideoResolution(width: set.width, height: set.height))
        #expect(read.mayHaveFields == set.mayHaveFields)
        #expect(read.reorderedPictures == set.reorderedPictures)
    }

    /// What is there is read right, or nothing is.
    @Test(arguments: 0..<40 as Range<UInt64>) func `is cut off anywhere without harm`(seed: UInt64) throws {
        let set = H264Set(seed: seed)
        let whole = try H264SequenceParameters(parsing: set.bytes.span)
        for length in 0..<set.bytes.count {
            let part = Array(set.bytes.prefix(length))
            guard let read = try? H264SequenceParameters(parsing: part.span) else { continue }
            #expect(read.resolution == whole.resolution)
            #expect(read.bitDepth == whole.bitDepth)
            #expect(read.reorderedPictures == nil || read.reorderedPictures == whole.reorderedPictures)
        }
        #expect(throws: WireError.truncated) {
            try H264SequenceParameters(parsing: Array(set.bytes.prefix(3)).span)
        }
    }

    @Test(arguments: 0..<10 as Range<UInt64>) func `with any bit wrong says no absurd size`(seed: UInt64) {
        let set = H264Set(seed: seed)
        for bit in 0..<(set.bytes.count * 8) {
            var wrong = set.bytes
            wrong[bit / 8] ^= 0x80 >> UInt8(bit % 8)
            guard let read = try? H264SequenceParameters(parsing: wrong.span) else { continue }
            #expect((1...65_536).contains(read.resolution.width))
            #expect((1...65_536).contains(read.resolution.height))
            #expect((8...14).contains(read.bitDepth))
        }
    }
}

/// A sequence parameter set with random fields, and what it says.
/// - Source: ITU-T H.265 §7.3.2.2.1, §7.3.3.
private struct HEVCSet {
    private(set) var bytes: [UInt8] = []
    let isHighTier: Bool
    let profile: Int
    let level: Int
    let chromaFormat: Int
    let bitDepth: Int
    private(set) var width: Int
    private(set) var height: Int
    private(set) var reorderedPictures = 0

    init(seed: UInt64) {
        var writer = FieldWriter(seed: seed)
        writer.noise(4)
        let layers = writer.number(0...6)
        writer.bits(UInt64(layers), 3)
        writer.noise(1)
        writer.bits(0, 2)
        isHighTier = writer.anyFlag()
        profile = writer.number(1...11)
        writer.bits(UInt64(profile), 5)
        writer.noise(32 + 48)
        level = 30 * writer.number(1...6)
        writer.bits(UInt64(level), 8)
        Self.writeLayers(layers, &writer)
        writer.anyCode(0...15)
        chromaFormat = writer.anyCode(0...3)
        if chromaFormat == 3 { writer.noise(1) }
        width = writer.anyCode(8...8_192)
        height = writer.anyCode(8...8_192)
        if writer.anyFlag() {
            let unitX = chromaFormat == 1 || chromaFormat == 2 ? 2 : 1
            let unitY = chromaFormat == 1 ? 2 : 1
            let (mostX, mostY) = ((width / unitX - 1) / 2, (height / unitY - 1) / 2)
            let left = writer.anyCode(0...mostX)
            width -= unitX * (left + writer.anyCode(0...mostX))
            let top = writer.anyCode(0...mostY)
            height -= unitY * (top + writer.anyCode(0...mostY))
        }
        let luma = writer.anyCode(0...8)
        bitDepth = 8 + max(luma, writer.anyCode(0...8))
        writer.anyCode(0...12)
        for _ in 0...(writer.anyFlag() ? layers : 0) {
            writer.anyCode(0...15)
            reorderedPictures = writer.anyCode(reorderedPictures...16)
            writer.anyCode(0...100)
        }
        writer.end()
        bytes = writer.escaped
    }

    private static func writeLayers(_ layers: Int, _ writer: inout FieldWriter) {
        guard layers > 0 else { return }
        var length = 0
        for layer in 0..<8 {
            guard layer < layers else {
                writer.bits(0, 2)
                continue
            }
            length += writer.anyFlag() ? 88 : 0
            length += writer.anyFlag() ? 8 : 0
        }
        writer.noise(length)
    }
}

@Suite struct `A sequence parameter set of HEVC` {
    @Test(arguments: 0..<300 as Range<UInt64>) func `is read whatever fields it has`(seed: UInt64) throws {
        let set = HEVCSet(seed: seed)
        let read = try HEVCSequenceParameters(parsing: set.bytes.span)
        #expect(read.profileSpace == 0)
        #expect(read.isHighTier == set.isHighTier)
        #expect(Int(read.profile) == set.profile)
        #expect(Int(read.level) == set.level)
        #expect(Int(read.chromaFormat) == set.chromaFormat)
        #expect(read.bitDepth == set.bitDepth)
        #expect(read.resolution == VideoResolution(width: set.width, height: set.height))
        #expect(read.reorderedPictures == set.reorderedPictures)
    }

    @Test(arguments: 0..<40 as Range<UInt64>) func `is cut off anywhere without harm`(seed: UInt64) throws {
        let set = HEVCSet(seed: seed)
        let whole = try HEVCSequenceParameters(parsing: set.bytes.span)
        for length in 0..<set.bytes.count {
            let part = Array(set.bytes.prefix(length))
            guard let read = try? HEVCSequenceParameters(parsing: part.span) else { continue }
            #expect(read.resolution == whole.resolution)
            #expect(read.bitDepth == whole.bitDepth)
            #expect(read.reorderedPictures == nil || read.reorderedPictures == whole.reorderedPictures)
        }
        #expect(throws: WireError.truncated) {
            try HEVCSequenceParameters(parsing: Array(set.bytes.prefix(12)).span)
        }
    }

    @Test(arguments: 0..<10 as Range<UInt64>) func `with any bit wrong says no absurd size`(seed: UInt64) {
        let set = HEVCSet(seed: seed)
        for bit in 0..<(set.bytes.count * 8) {
            var wrong = set.bytes
            wrong[bit / 8] ^= 0x80 >> UInt8(bit % 8)
            guard let read = try? HEVCSequenceParameters(parsing: wrong.span) else { continue }
            #expect((1...65_536).contains(read.resolution.width))
            #expect((1...65_536).contains(read.resolution.height))
            #expect((8...16).contains(read.bitDepth))
            #expect((0...16).contains(read.reorderedPictures ?? 0))
        }
    }
}

/// A sequence header with random fields, and what it says.
/// - Source: AV1 bitstream specification §5.5.1 to §5.5.5.
private struct AV1Header {
    private(set) var bytes: [UInt8] = []
    let profile: Int
    private(set) var level = 0
    private(set) var isHighTier = false
    private(set) var width = 0
    private(set) var height = 0
    private(set) var bitDepth = 8
    private(set) var isMonochrome = false

    init(seed: UInt64) {
        var writer = FieldWriter(seed: seed)
        // The header of the unit, which has no extension and no size.
        writer.bits(0x08, 8)
        profile = writer.number(0...2)
        writer.bits(UInt64(profile), 3)
        writer.noise(1)
        let isReduced = writer.anyFlag()
        if isReduced {
            level = writer.number(0...31)
            writer.bits(UInt64(level), 5)
        } else {
            writePoints(&writer)
        }
        writeSize(&writer)
        if !isReduced, writer.anyFlag() { writer.noise(7) }
        writer.noise(3)
        if !isReduced { Self.writeTools(&writer) }
        writer.noise(3)
        writeColors(&writer)
        writer.noise(5)
        writer.end()
        bytes = writer.bytes
    }

    private mutating func writePoints(_ writer: inout FieldWriter) {
        var delayBits: Int?
        if writer.anyFlag() {
            writer.noise(64)
            if writer.anyFlag() { writer.anyCode(0...100_000) }
            if writer.anyFlag() {
                let length = writer.number(1...32)
                delayBits = length
                writer.bits(UInt64(length - 1), 5)
                writer.noise(42)
            }
        }
        let hasDisplayDelay = writer.anyFlag()
        let last = writer.number(0...31)
        writer.bits(UInt64(last), 5)
        for point in 0...last {
            writer.noise(12)
            let value = writer.number(0...31)
            writer.bits(UInt64(value), 5)
            let isHigh = value > 7 && writer.anyFlag()
            if point == 0 { (level, isHighTier) = (value, isHigh) }
            if let delayBits, writer.anyFlag() { writer.noise(2 * delayBits + 1) }
            if hasDisplayDelay, writer.anyFlag() { writer.noise(4) }
        }
    }

    private mutating func writeSize(_ writer: inout FieldWriter) {
        let (widthBits, heightBits) = (writer.number(1...16), writer.number(1...16))
        width = writer.number(1...(1 << widthBits))
        height = writer.number(1...(1 << heightBits))
        writer.bits(UInt64(widthBits - 1), 4)
        writer.bits(UInt64(heightBits - 1), 4)
        writer.bits(UInt64(width - 1), widthBits)
        writer.bits(UInt64(height - 1), heightBits)
    }

    private static func writeTools(_ writer: inout FieldWriter) {
        writer.noise(4)
        let hasOrderHint = writer.anyFlag()
        if hasOrderHint { writer.noise(2) }
        let isChosen = writer.anyFlag()
        let mayBeScreen = isChosen || writer.anyFlag()
        if mayBeScreen, !writer.anyFlag() { writer.noise(1) }
        if hasOrderHint { writer.noise(3) }
    }

    private mutating func writeColors(_ writer: inout FieldWriter) {
        let isHigh = writer.anyFlag()
        let isTwelve = profile == 2 && isHigh && writer.anyFlag()
        bitDepth = isTwelve ? 12 : isHigh ? 10 : 8
        isMonochrome = profile != 1 && writer.anyFlag()
    }
}

@Suite struct `A sequence header of AV1` {
    @Test(arguments: 0..<300 as Range<UInt64>) func `is read whatever fields it has`(seed: UInt64) throws {
        let header = AV1Header(seed: seed)
        let read = try AV1SequenceHeader(parsing: header.bytes.span)
        #expect(Int(read.profile) == header.profile)
        #expect(Int(read.level) == header.level)
        #expect(read.isHighTier == header.isHighTier)
        #expect(read.resolution == VideoResolution(width: header.width, height: header.height))
        #expect(read.samples?.bitDepth == header.bitDepth)
        #expect(read.samples?.isMonochrome == header.isMonochrome)
    }

    @Test(arguments: 0..<40 as Range<UInt64>) func `is cut off anywhere without harm`(seed: UInt64) throws {
        let header = AV1Header(seed: seed)
        let whole = try AV1SequenceHeader(parsing: header.bytes.span)
        for length in 0..<header.bytes.count {
            let part = Array(header.bytes.prefix(length))
            guard let read = try? AV1SequenceHeader(parsing: part.span) else { continue }
            #expect(read.resolution == whole.resolution)
            #expect(read.samples == nil || read.samples == whole.samples)
        }
        #expect(throws: WireError.truncated) {
            try AV1SequenceHeader(parsing: Array(header.bytes.prefix(2)).span)
        }
    }
}
