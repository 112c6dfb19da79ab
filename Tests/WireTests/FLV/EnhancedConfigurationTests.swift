import TestSupport
import Testing
import Wire

/// Records as ffmpeg writes them of pictures that x265, libaom and libvpx made.
@Suite struct HEVCConfigurationTests {
    /// Main, 64x48.
    private static let record = hexBytes(
        """
        01 01 60000000 900000000000 3c f000 fc fd f8 f8 0000 0f 03
        20 0001 0018 40010c01ffff01600000030090000003000003003c959009
        21 0001 0029 42010101600000030090000003000003003ca0208316595912930bc05a020000030002000003003c10
        22 0001 0006 4401c073c089
        """)

    @Test func `says what pictures are like, and holds the parameter sets`() throws {
        let configuration = try HEVCConfiguration(parsing: Self.record.span)
        #expect(configuration.profile == 1 && configuration.bitDepth == 8 && configuration.chromaFormat == 1)
        #expect(configuration.lengthSize == 4 && configuration.parameterSets.map(\.count) == [24, 41, 6])
        #expect(configuration.resolution == VideoResolution(width: 64, height: 48))
        // In this order, whatever that of the record is.
        let turned = Self.record[..<23] + Self.record[52...] + Self.record[23..<52]
        #expect(try HEVCConfiguration(parsing: Array(turned).span) == configuration)
    }

    @Test func `has a set that names profile, tier, level and constraints, and the order of pictures`() throws
    {
        let set = try HEVCConfiguration(parsing: Self.record.span).parameterSets[1]
        let sequence = try HEVCSequenceParameters(parsing: Array(set.dropFirst(2)).span)
        #expect(sequence.profileSpace == 0 && !sequence.isHighTier && sequence.profile == 1)
        #expect(sequence.compatibility == 0x6000_0000 && sequence.constraints == [0x90, 0, 0, 0, 0, 0])
        #expect(sequence.level == 60 && sequence.chromaFormat == 1 && sequence.bitDepth == 8)
        #expect(sequence.resolution == VideoResolution(width: 64, height: 48))
        #expect(sequence.reorderedPictures == 2)
        for length in 2..<20 {
            #expect(throws: WireError.truncated) {
                try HEVCSequenceParameters(parsing: Array(set[2..<length]).span)
            }
        }
    }

    @Test func `says a size that is cropped, and ten bits`() throws {
        let cropped = hexBytes(
            """
            01 01 60000000 900000000000 3f f000 fc fd f8 f8 0000 0f 03
            20 0001 0018 40010c01ffff01600000030090000003000003003f959409
            21 0001 002b 42010101600000030090000003000003003fa005220171c449965654a4c2f0168080000003008000000f04
            22 0001 0006 4401c073c189
            """)
        let configuration = try HEVCConfiguration(parsing: cropped.span)
        #expect(configuration.resolution == VideoResolution(width: 642, height: 362))
        var deep = Self.record
        deep[18] = 0xFA
        #expect(try HEVCConfiguration(parsing: deep.span).bitDepth == 10)
    }

    @Test func `is refused wherever it ends`() {
        for length in 0..<Self.record.count {
            #expect(throws: WireError.truncated) {
                try HEVCConfiguration(parsing: Array(Self.record.prefix(length)).span)
            }
        }
    }

    @Test func `is refused with another version, odd lengths, or a set missing`() {
        var other = Self.record
        other[0] = 0
        #expect(throws: WireError.invalid(.hevcVersion)) { try HEVCConfiguration(parsing: other.span) }
        other = Self.record
        other[21] = 0x0E
        #expect(throws: WireError.invalid(.hevcLengthSize)) { try HEVCConfiguration(parsing: other.span) }
        other = Self.record
        other[22] = 2
        #expect(throws: WireError.invalid(.hevcParameterSets)) { try HEVCConfiguration(parsing: other.span) }
        // More bytes than anybody needs.
        other = Array(Self.record[..<22]) + [1, 0x20, 0, 2, 0x30, 0] + [UInt8](repeating: 1, count: 0x3000)
        other += [0x30, 0] + [UInt8](repeating: 1, count: 0x3000)
        #expect(throws: WireError.invalid(.hevcParameterSets)) { try HEVCConfiguration(parsing: other.span) }
    }

    @Test func `finds the units of a picture`() throws {
        let configuration = try HEVCConfiguration(parsing: Self.record.span)
        let picture = hexBytes("00000003 260101 00000002 4601 00000004 02010203")
        #expect(try configuration.units(in: picture.span) == [4..<7, 17..<21])
        #expect(throws: WireError.truncated) { try configuration.units(in: hexBytes("000000ff 26").span) }
    }
}

@Suite struct AV1ConfigurationTests {
    private static let record = hexBytes("81 00 0c 00 0a0a00000002aff79b5f2008")

    @Test func `says what pictures are like, and holds the sequence header`() throws {
        let configuration = try AV1Configuration(parsing: Self.record.span)
        #expect(configuration.profile == 0 && configuration.bitDepth == 8 && !configuration.isMonochrome)
        // Without its size.
        #expect(configuration.sequenceHeader == hexBytes("08 00000002aff79b5f2008"))
        #expect(configuration.resolution == VideoResolution(width: 64, height: 48))
        let alone = try AV1Configuration(parsing: hexBytes("81 20 4c 00").span)
        #expect(alone.profile == 1 && alone.bitDepth == 10 && alone.resolution == nil)
        #expect(try AV1Configuration(parsing: hexBytes("81 40 7c 00").span).bitDepth == 12)
    }

    @Test func `is refused where it is cut off or says what there is not`() {
        for length in [0, 1, 2, 3, 5, 6, 15] {
            #expect(throws: WireError.truncated) {
                try AV1Configuration(parsing: Array(Self.record.prefix(length)).span)
            }
        }
        #expect(throws: WireError.invalid(.av1Version)) {
            try AV1Configuration(parsing: hexBytes("01 00 0c 00").span)
        }
        // A reserved profile, and twelve bits that are not even ten.
        for text in ["81 60 0c 00", "81 40 2c 00"] {
            #expect(throws: WireError.invalid(.av1Profile)) {
                try AV1Configuration(parsing: hexBytes(text).span)
            }
        }
        #expect(throws: WireError.invalid(.av1Units)) {
            try AV1Configuration(parsing: hexBytes("81 00 0c 00 8a01aa").span)
        }
    }

    @Test func `leaves out of a picture what transports leave out`() throws {
        // A delimiter, a sequence header, a key frame, padding, nothing, and one without a size.
        let units = try AV1Units(parsing: hexBytes("1200 0a02aabb 32021011 7a01ff 3200 34 08 30 22").span)
        #expect(units.all.map(\.kind) == [.sequenceHeader, .frame, .frame] && units.isKeyFrame)
        #expect(units.all.map(\.bytes) == [hexBytes("08aabb"), hexBytes("301011"), hexBytes("34083022")])
        #expect(try !AV1Units(parsing: hexBytes("32023011").span).isKeyFrame)
        #expect(try !AV1Units(parsing: hexBytes("0a02aabb").span).isKeyFrame)
        #expect(throws: WireError.truncated) { try AV1Units(parsing: hexBytes("320310").span) }
        #expect(throws: WireError.invalid(.av1Units)) { try AV1Units(parsing: hexBytes("b20110").span) }
        let many = [UInt8](repeating: 0, count: AV1Units.limit + 1).flatMap { _ in hexBytes("320130") }
        #expect(throws: WireError.invalid(.av1Units)) { try AV1Units(parsing: many.span) }
    }
}

@Suite struct VP9ConfigurationTests {
    @Test func `says what pictures are like`() throws {
        let configuration = try VP9Configuration(parsing: hexBytes("00 0a 82 020202 0000").span)
        #expect(configuration.profile == 0 && configuration.bitDepth == 8)
        // Behind the version and flags of its box, as some write it.
        #expect(try VP9Configuration(parsing: hexBytes("01000000 02 0a a2 020202 0000").span).bitDepth == 10)
    }

    @Test func `is refused where it is cut off or says what there is not`() {
        for text in ["", "000a82", "000a8202020200", "01000000 000a82"] {
            #expect(throws: WireError.truncated) { try VP9Configuration(parsing: hexBytes(text).span) }
        }
        // Ten bits in profile 0, eight in profile 2, and a profile 4.
        for text in ["000aa202020200 00", "020a82 0202020000", "040a820202020000"] {
            #expect(throws: WireError.invalid(.vp9Profile)) {
                try VP9Configuration(parsing: hexBytes(text).span)
            }
        }
        #expect(throws: WireError.invalid(.vp9Configuration)) {
            try VP9Configuration(parsing: hexBytes("000a820202020001 00").span)
        }
    }
}
