import TestSupport
import Testing
import Wire

@Suite struct `A command in FLV video` {
    private func tag(_ text: String) throws(WireError) -> FLVVideoTag {
        let bytes = hexBytes(text)
        return try FLVVideoTag(parsing: bytes.span)
    }

    @Test(arguments: ["57 00", "57", "5c 01", "d0 01", "d0 61766331", "d1 68766331 000000 aa", "d3"])
    func `is no picture, and has nothing to decode`(text: String) throws {
        let found = try tag(text)
        #expect(found.isCommand && !found.isKeyFrame)
        #expect(found.content == .other && found.body.isEmpty && found.compositionTime == 0)
    }

    @Test func `names a codec only if there is room for its name`() throws {
        #expect(try tag("d0 61766331").codec == .h264)
        #expect(try tag("d0 01").codec == .named(0))
    }

    @Test func `is none where metadata has the type of a command`() throws {
        let found = try tag("d4 68766331 0102")
        #expect(!found.isCommand && found.codec == .hevc)
        #expect(found.content == .other && found.body == 5..<7)
    }
}

@Suite struct `An FLV tag` {
    private func video(_ bytes: [UInt8]) throws(WireError) -> FLVVideoTag {
        try FLVVideoTag(parsing: bytes.span)
    }

    private func audio(_ bytes: [UInt8]) throws(WireError) -> FLVAudioTag {
        try FLVAudioTag(parsing: bytes.span)
    }

    @Test(
        arguments: [
            ("27 01 7fffff", 8_388_607), ("27 01 800000", -8_388_608), ("27 01 ffffff", -1),
            ("91 61766331 800000", -8_388_608), ("91 68766331 000001", 1),
        ] as [(String, Int32)])
    func `has a composition time of 24 bits with a sign`(text: String, time: Int32) throws {
        let found = try video(hexBytes(text))
        #expect(found.compositionTime == time && found.content == .frame)
    }

    @Test(arguments: [
        ("27 01 000000", false), ("37 01 000000", false), ("47 01 000000", false), ("17 01 000000", true),
        ("a1 61763031", false), ("b1 61763031", false), ("c1 61763031", false), ("91 61763031", true),
    ]) func `is a key frame by its frame type alone`(text: String, isKeyFrame: Bool) throws {
        let found = try video(hexBytes(text))
        #expect(found.isKeyFrame == isKeyFrame && found.content == .frame && !found.isCommand)
    }

    @Test(
        arguments: [
            "92 61766331", "94 61766331", "95 61766331", "9f 61766331", "17 02 000000", "17 ff 000000",
        ])
    func `is neither configuration nor picture with another type of packet`(text: String) throws {
        #expect(try video(hexBytes(text)).content == .other)
    }

    @Test func `is read as it was written`() throws {
        let configuration = FLVVideoTag.h264(configuration: [1, 2, 3])
        let first = try video(configuration)
        #expect(first.codec == .h264 && first.content == .configuration)
        #expect(Array(configuration[first.body]) == [1, 2, 3])
        for isKeyFrame in [true, false] {
            let picture = FLVVideoTag.h264(units: [4, 5], isKeyFrame: isKeyFrame)
            let found = try video(picture)
            #expect(found.content == .frame && found.isKeyFrame == isKeyFrame && found.compositionTime == 0)
            #expect(Array(picture[found.body]) == [4, 5])
        }
        let (sound, frame) = (FLVAudioTag.aac(configuration: [6]), FLVAudioTag.aac(frame: [7, 8]))
        let (soundTag, frameTag) = (try audio(sound), try audio(frame))
        #expect(soundTag.codec == .aac && soundTag.content == .configuration)
        #expect(frameTag.codec == .aac && frameTag.content == .frame)
        #expect(Array(sound[soundTag.body]) == [6] && Array(frame[frameTag.body]) == [7, 8])
    }

    @Test func `of sound is neither configuration nor frame with another type of packet`() throws {
        #expect(try audio([0xAF, 2]).content == .other)
        #expect(try audio(hexBytes("92 6d703461")).content == .other)
        #expect(try audio(hexBytes("95 4f707573")).content == .other)
    }

    @Test func `names an unknown codec in a way that is safe to print`() throws {
        let (text, control) = (try video(hexBytes("90 61623132")), try video(hexBytes("90 0a0d1b00")))
        #expect("\(text.codec)" == "codec ab12")
        #expect("\(control.codec)" == "codec 0xa0d1b00")
        let sound = try audio(hexBytes("90 61620a64"))
        #expect("\(sound.codec)" == "codec 0x61620a64")
    }
}
