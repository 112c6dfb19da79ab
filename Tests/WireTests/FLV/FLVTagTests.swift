import TestSupport
import Testing
import Wire

@Suite struct FLVVideoTagTests {
    @Test func `tells a configuration, key frames and others of H.264`() throws {
        let configuration = try FLVVideoTag(parsing: hexBytes("17 00 000000 01").span)
        #expect(configuration.codec == .h264 && configuration.content == .configuration)
        #expect(configuration.body == 5..<6)
        let key = try FLVVideoTag(parsing: hexBytes("17 01 000021 aabb").span)
        #expect(key.isKeyFrame && key.content == .frame && key.compositionTime == 33 && key.body == 5..<7)
        let other = try FLVVideoTag(parsing: hexBytes("27 01 ffffdf aa").span)
        #expect(!other.isKeyFrame && other.compositionTime == -33)
        #expect(try FLVVideoTag(parsing: hexBytes("17 02 000000").span).content == .other)
        #expect(try FLVVideoTag(parsing: hexBytes("57 00").span).content == .other)
    }

    @Test func `knows codecs by their FourCC`() throws {
        let codecs: [(String, FLVVideoTag.Codec)] = [
            ("avc1", .h264), ("hvc1", .hevc), ("av01", .av1), ("vp09", .vp9), ("vp08", .vp8),
        ]
        for (name, codec) in codecs {
            let tag = try FLVVideoTag(parsing: ([0x90] + Array(name.utf8) + [1]).span)
            #expect(tag.codec == codec && tag.content == .configuration && tag.isKeyFrame)
            #expect(tag.body == 5..<6)
        }
        // Only some have a composition time, and not in every kind of packet.
        let withTime = try FLVVideoTag(parsing: ([0x91] + Array("avc1".utf8) + [0, 0, 40, 1]).span)
        #expect(withTime.compositionTime == 40 && withTime.body == 8..<9 && withTime.content == .frame)
        let without = try FLVVideoTag(parsing: ([0xA3] + Array("avc1".utf8) + [9]).span)
        #expect(without.compositionTime == 0 && without.body == 5..<6 && !without.isKeyFrame)
        #expect(try FLVVideoTag(parsing: ([0x91] + Array("av01".utf8) + [9]).span).body == 5..<6)
    }

    @Test func `names what it does not know`() throws {
        #expect(try FLVVideoTag(parsing: [0x12].span).codec == .numbered(2))
        #expect(try FLVVideoTag(parsing: [0x1C, 1, 0, 0, 0].span).codec == .hevc)
        #expect(try FLVVideoTag(parsing: hexBytes("90 61626364").span).codec == .named(0x6162_6364))
    }

    @Test(arguments: ["17 01 000000", "90 61766331", "91 68766331 000000"])
    func `refuses every prefix of its header`(text: String) throws {
        let header = hexBytes(text)
        #expect(throws: Never.self) { try FLVVideoTag(parsing: header.span) }
        for length in 0..<header.count {
            #expect(throws: WireError.truncated) {
                try FLVVideoTag(parsing: Array(header.prefix(length)).span)
            }
        }
    }
}

@Suite struct FLVAudioTagTests {
    @Test func `tells configuration and frames of AAC`() throws {
        let configuration = try FLVAudioTag(parsing: hexBytes("af 00 1190").span)
        #expect(configuration.codec == .aac && configuration.content == .configuration)
        #expect(configuration.body == 2..<4)
        #expect(try FLVAudioTag(parsing: hexBytes("af 01 2110").span).content == .frame)
        let enhanced = try FLVAudioTag(parsing: ([0x91] + Array("mp4a".utf8) + [1]).span)
        #expect(enhanced.codec == .aac && enhanced.content == .frame && enhanced.body == 5..<6)
        #expect(try FLVAudioTag(parsing: ([0x90] + Array("Opus".utf8)).span).codec == .opus)
    }

    @Test func `names what it does not know`() throws {
        #expect(try "\(FLVAudioTag(parsing: [0x2F].span).codec)" == "MP3")
        #expect(try "\(FLVAudioTag(parsing: [0x7F].span).codec)" == "G.711")
        #expect(try FLVAudioTag(parsing: hexBytes("90 61626364").span).codec == .named(0x6162_6364))
        for bytes: [UInt8] in [[], [0xAF], [0x90], [0x90, 1, 2, 3]] {
            #expect(throws: WireError.truncated) { try FLVAudioTag(parsing: bytes.span) }
        }
    }
}

@Suite struct AVCConfigurationTests {
    /// Of x264: baseline, level 3, 640x360.
    private static let record = hexBytes(
        """
        01 42c01e ff e1 0019 6742c01ed900a02ff970110000030001000003003c8f162e48 01 0005 68cb83cb20
        """)

    @Test func `says how units are told apart, and holds the parameter sets`() throws {
        let configuration = try AVCConfiguration(parsing: Self.record.span)
        #expect(configuration.profile == 66 && configuration.level == 30 && configuration.lengthSize == 4)
        #expect(configuration.sequenceParameters.map(\.count) == [25])
        #expect(configuration.pictureParameters == [[0x68, 0xCB, 0x83, 0xCB, 0x20]])
        #expect(configuration.pictures?.resolution == VideoResolution(width: 640, height: 360))
        #expect(configuration.pictures?.reorderedPictures == 0)
    }

    @Test func `is refused wherever it ends`() {
        for length in 0..<Self.record.count {
            #expect(throws: WireError.truncated) {
                try AVCConfiguration(parsing: Array(Self.record.prefix(length)).span)
            }
        }
    }

    @Test func `is refused with another version, odd lengths, or no parameter set`() {
        var other = Self.record
        other[0] = 2
        #expect(throws: WireError.invalid(.avcVersion)) { try AVCConfiguration(parsing: other.span) }
        other = Self.record
        other[4] = 0xFE
        #expect(throws: WireError.invalid(.avcLengthSize)) { try AVCConfiguration(parsing: other.span) }
        #expect(throws: WireError.invalid(.avcParameterSets)) {
            try AVCConfiguration(parsing: hexBytes("01 42c01f ff e0 00").span)
        }
        #expect(throws: WireError.invalid(.avcParameterSets)) {
            try AVCConfiguration(parsing: hexBytes("01 42c01f ff e1 0000 00").span)
        }
    }

    @Test func `finds the units of a picture`() throws {
        let configuration = try AVCConfiguration(parsing: Self.record.span)
        let picture = hexBytes("00000002 6588 00000000 00000001 41")
        #expect(try configuration.units(in: picture.span) == [4..<6, 14..<15])
        for length in 1..<picture.count where ![6, 10].contains(length) {
            #expect(throws: WireError.truncated) {
                try configuration.units(in: Array(picture.prefix(length)).span)
            }
        }
        #expect(throws: WireError.truncated) { try configuration.units(in: hexBytes("ffffffff 65").span) }
        let many = [UInt8](repeating: 0, count: AVCConfiguration.unitLimit + 1).flatMap { _ in
            hexBytes("00000001 41")
        }
        #expect(throws: WireError.invalid(.avcUnits)) { try configuration.units(in: many.span) }
    }
}

@Suite struct AACConfigurationTests {
    @Test(arguments: [
        ("1190", 2, 48_000, 2), ("1210", 2, 44_100, 2), ("1188", 2, 48_000, 1), ("2b920800", 5, 22_050, 2),
        ("17800000 10", 2, 0, 0),
    ]) func `says what it is of`(text: String, type: UInt8, rate: Int, channels: Int) throws {
        let bytes = hexBytes(text)
        guard rate > 0 else {
            #expect(throws: WireError.invalid(.aacSampleRate)) { try AACConfiguration(parsing: bytes.span) }
            return
        }
        let configuration = try AACConfiguration(parsing: bytes.span)
        #expect(configuration.objectType == type && configuration.sampleRate == rate)
        #expect(configuration.channels == channels && configuration.isCommon)
    }

    @Test func `is refused where it ends too early or says what is reserved`() {
        #expect(throws: WireError.truncated) { try AACConfiguration(parsing: [UInt8]().span) }
        #expect(throws: WireError.truncated) { try AACConfiguration(parsing: [0x11].span) }
        #expect(throws: WireError.invalid(.aacSampleRate)) {
            try AACConfiguration(parsing: hexBytes("1690").span)
        }
        #expect(throws: WireError.invalid(.aacChannels)) {
            try AACConfiguration(parsing: hexBytes("11c0").span)
        }
    }
}
