import TestSupport
import Testing
import Wire

/// - Source: ITU-T H.264 annex B; ISO/IEC 14496-15 §5.3.3.1.2.
@Suite struct `An H.264 picture in Annex B` {
    private func picture(_ text: String) -> AnnexBPicture {
        let bytes = hexBytes(text)
        return AnnexBPicture(parsing: bytes.span)
    }

    private func picture(of units: [[UInt8]]) -> AnnexBPicture {
        let bytes = units.flatMap { unit -> [UInt8] in [0, 0, 0, 1] + unit }
        return AnnexBPicture(parsing: bytes.span)
    }

    @Test(arguments: [
        // Start codes of three and four bytes.
        ("000001 6588 00000001 41aa", "00000002 6588 00000002 41aa"),
        // Zeros before a start code and at the end are padding.
        ("000001 6588 0000 00000001 41 000000", "00000002 6588 00000001 41"),
        // What comes before the first start code belongs to no unit.
        ("ffee00 000001 65", "00000001 65"),
        // Start codes that follow one another, and one at the end.
        ("000001 000001 65 000001", "00000001 65"),
        ("000001 00000001 0000000001 65", "00000001 65"),
        // Bytes within a unit that are like a start code, but none.
        ("000001 65 000003 01 22", "00000006 650000030122"),
        ("000001 65 0001 aa", "00000004 650001aa"),
        ("000001 65 000002 01", "00000005 6500000201"),
        // Nothing but zeros, no start code at all, and nothing.
        ("000001 000000", ""), ("6588 41aa", ""), ("000000", ""), ("0001", ""), ("", ""),
    ])
    func `has its units behind their lengths`(text: String, expected: String) {
        let units = picture(text).units
        #expect(units == hexBytes(expected))
    }

    @Test(
        arguments: [
            (0x65, true), (0x45, true), (0x25, true), (0x41, false), (0x01, false), (0x06, false),
            (0x09, false), (0x67, false), (0x68, false),
        ] as [(UInt8, Bool)])
    func `is one to start with if a slice says so, whatever its importance`(header: UInt8, isRefresh: Bool) {
        let found = picture(of: [[header, 0x88]])
        #expect(found.isRefresh == isRefresh)
    }

    @Test func `is one to start with whichever of its units is`() {
        let found = picture(of: [[0x09, 0xF0], [0x06, 5], [0x41, 1], [0x65, 2], [0x41, 3]])
        #expect(found.isRefresh)
    }

    @Test func `holds parameter sets apart, and in their place as well`() {
        let found = picture("000001 6742c01ed9 000001 68cb83 000001 6888 000001 65aa")
        #expect(found.sequenceParameters == [[0x67, 0x42, 0xC0, 0x1E, 0xD9]])
        #expect(found.pictureParameters == [[0x68, 0xCB, 0x83], [0x68, 0x88]])
        #expect(
            found.units
                == hexBytes("00000005 6742c01ed9 00000003 68cb83 00000002 6888 00000002 65aa"))
    }

    @Test(arguments: 0..<20 as Range<UInt64>)
    func `comes back however its start codes are padded`(seed: UInt64) {
        var random = SeededGenerator(seed: seed)
        var bytes: [UInt8] = []
        var expected: [UInt8] = []
        for _ in 0..<Int.random(in: 1...12, using: &random) {
            bytes += [UInt8](repeating: 0, count: Int.random(in: 2...6, using: &random)) + [1]
            // Zeros within, but never two in a row, and none at the end.
            var unit: [UInt8] = []
            for place in 0..<Int.random(in: 1...40, using: &random) {
                let isZero = place % 3 == 1 && Bool.random(using: &random)
                unit.append(isZero ? 0 : UInt8.random(in: 1...255, using: &random))
            }
            unit.append(7)
            bytes += unit
            expected.append(bigEndian: UInt32(unit.count))
            expected += unit
        }
        let found = AnnexBPicture(parsing: bytes.span)
        #expect(found.units == expected)
    }
}

@Suite struct `The configuration record of an H.264 picture` {
    private static let sequence: [UInt8] = [0x67, 0x42, 0xC0, 0x1E, 0xD9]
    private static let parameters: [UInt8] = [0x68, 0xCB, 0x83]

    private func record(of units: [[UInt8]]) -> [UInt8]? {
        let bytes = units.flatMap { unit -> [UInt8] in [0, 0, 0, 1] + unit }
        return AnnexBPicture(parsing: bytes.span).configurationRecord
    }

    @Test func `says what the parameter sets say`() throws {
        let other: [UInt8] = [0x27, 0x64, 0x00, 0x28, 0xAC]
        let found = record(of: [Self.sequence, other, Self.parameters, [0x68, 0x88], [0x65, 1]])
        let bytes = try #require(found)
        let configuration = try AVCConfiguration(parsing: bytes.span)
        // Of the first one.
        #expect(configuration.profile == 0x42 && configuration.level == 0x1E)
        #expect(configuration.lengthSize == 4)
        #expect(configuration.sequenceParameters == [Self.sequence, other])
        #expect(configuration.pictureParameters == [Self.parameters, [0x68, 0x88]])
    }

    @Test func `is none without both kinds of sets, nor of a set that is cut short`() {
        #expect(record(of: []) == nil)
        #expect(record(of: [Self.sequence, [0x65, 1]]) == nil)
        #expect(record(of: [Self.parameters, [0x65, 1]]) == nil)
        // Without a level.
        #expect(record(of: [[0x67, 0x42, 0xC0], Self.parameters]) == nil)
        #expect(record(of: [Self.sequence, Self.parameters]) != nil)
    }

    @Test(arguments: [(31, 255, true), (32, 255, false), (31, 256, false)])
    func `holds as many sets as its fields can count`(sequences: Int, pictures: Int, isPossible: Bool)
        throws
    {
        let units =
            [[UInt8]](repeating: Self.sequence, count: sequences)
            + [[UInt8]](repeating: Self.parameters, count: pictures)
        guard let bytes = record(of: units) else {
            #expect(!isPossible)
            return
        }
        #expect(isPossible)
        let configuration = try AVCConfiguration(parsing: bytes.span)
        #expect(configuration.sequenceParameters.count == sequences)
        #expect(configuration.pictureParameters.count == pictures)
    }

    @Test(arguments: [(0xFFFF, true), (0x1_0000, false)])
    func `holds no set that is longer than its field can say`(length: Int, isPossible: Bool) throws {
        let long = Self.parameters + [UInt8](repeating: 0x55, count: length - Self.parameters.count)
        guard let bytes = record(of: [Self.sequence, long]) else {
            #expect(!isPossible)
            return
        }
        #expect(isPossible)
        let configuration = try AVCConfiguration(parsing: bytes.span)
        #expect(configuration.pictureParameters == [long])
    }
}
