import TestSupport
import Testing
import Wire

@Suite struct `The header of Enhanced RTMP` {
    private func video(_ text: String) throws(WireError) -> FLVVideoTag {
        let bytes = hexBytes(text)
        return try FLVVideoTag(parsing: bytes.span)
    }

    private func audio(_ text: String) throws(WireError) -> FLVAudioTag {
        let bytes = hexBytes(text)
        return try FLVAudioTag(parsing: bytes.span)
    }

    @Test(
        arguments: [
            // Modifiers: one of three bytes, one with a long length, and two.
            ("97 02 aabbcc 01 61766331 000021 aa", 13..<14),
            ("97 ff 0003 aabbccdd 01 61766331 000021 aa", 16..<17),
            ("97 00 aa 07 00 bb 01 61766331 000021 aa", 14..<15),
            // The first track alone, after another one, and with a codec of its own.
            ("96 01 61766331 00 000021 aa", 10..<11),
            ("96 11 61766331 01 000004 000000bb 00 000004 000021 aa", 21..<22),
            ("96 11 61766331 00 000004 000021 aa 01 000004 000000bb", 13..<14),
            ("96 21 68766331 01 000001 bb 61766331 00 000004 000021 aa", 22..<23),
        ] as [(String, Range<Int>)])
    func `may have modifiers and tracks in front of a picture`(text: String, body: Range<Int>) throws {
        let found = try video(text)
        #expect(found.codec == .h264 && found.content == .frame && found.isKeyFrame && !found.isOtherTrack)
        #expect(found.compositionTime == 33 && found.body == body)
    }

    @Test func `may have them in front of sound`() throws {
        let first = try audio("95 01 6d703461 00 2110")
        #expect(first.codec == .aac && first.content == .frame && first.body == 7..<9)
        let modified = try audio("97 00 ff 00 6d703461 1190")
        #expect(modified.codec == .aac && modified.content == .configuration && modified.body == 8..<10)
        #expect(!first.isOtherTrack && !modified.isOtherTrack)
    }

    @Test(arguments: [
        "96 01 61766331 01 000021 aa", "96 00 68766331 02 01", "96 11 61766331 01 000001 bb", "96 31 00",
    ]) func `tells of pictures that belong to another track`(text: String) throws {
        let found = try video(text)
        #expect(found.isOtherTrack && found.content == .other && found.body.isEmpty)
    }

    @Test(arguments: ["95 01 6d703461 01 2110", "95 00 4f707573 03 01", "95 41"])
    func `tells of sound that belongs to another track`(text: String) throws {
        let found = try audio(text)
        #expect(found.isOtherTrack && found.content == .other && found.body.isEmpty)
    }

    @Test(arguments: [
        "97 02 aabbcc 01 61766331 000021", "97 ff 0003 aabbccdd 01 61766331 000021",
        "96 01 61766331 00 000021", "96 21 68766331 01 000001 bb 61766331 00 000003 000021",
    ]) func `is refused wherever it ends`(text: String) throws {
        let header = hexBytes(text)
        #expect(throws: Never.self) { try FLVVideoTag(parsing: header.span) }
        // Between two tracks it may end: then there is only the other one.
        let end = text.hasPrefix("96 21") ? 11 : header.count
        for length in 0..<header.count where length != end {
            #expect(throws: WireError.truncated) {
                try FLVVideoTag(parsing: Array(header.prefix(length)).span)
            }
        }
    }
}
