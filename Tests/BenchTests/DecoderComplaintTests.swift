import Base
import ClientPeer
import Testing
import Wire

/// What the model of a decoder makes of single packets; `DecoderModelTests` has whole streams.
@Suite struct `A decoder's complaints` {
    private var decoder = DecoderModel()

    private func header(timestamp: UInt32, marker: Bool) throws -> RTPHeader {
        var bytes: [UInt8] = [0x80, (marker ? 0x80 : 0) | 96, 0, 0]
        bytes.append(bigEndian: timestamp)
        bytes.append(bigEndian: UInt32(7))
        return try RTPHeader(parsing: bytes.span)
    }

    /// Delivers a packet of VP8: by itself a whole picture, unless the arguments say otherwise.
    private mutating func receive(
        _ number: Int64, picture: UInt16, at timestamp: UInt32, isKey: Bool = false, isFirst: Bool = true,
        isLast: Bool = true
    ) throws {
        var payload: [UInt8] = [isFirst ? 0x90 : 0x80, 0x80]
        payload.append(bigEndian: picture | 0x8000)
        if isFirst { payload += [isKey ? 0x10 : 0x11, 0, 0] }
        payload += [1, 2, 3]
        decoder.receive(
            try header(timestamp: timestamp, marker: isLast), payload: payload, sequenceNumber: number)
    }

    /// Delivers a packet of padding alone.
    private mutating func receivePadding(_ number: Int64, at timestamp: UInt32) throws {
        decoder.receive(
            try header(timestamp: timestamp, marker: false), payload: [], sequenceNumber: number)
    }

    @Test mutating func `are none where pictures follow each other, also where their numbers wrap`() throws {
        try receive(1, picture: 0x7FFE, at: .max - 2_999, isKey: true)
        #expect(decoder.shownTicks == nil && !decoder.isWaitingForKeyFrame)
        try receive(2, picture: 0x7FFF, at: 0)
        try receive(3, picture: 0, at: 3_000)
        #expect(decoder.complaints.isEmpty && decoder.framesDecoded == 3 && decoder.keyFramesDecoded == 1)
        #expect(decoder.shownTicks == 6_000)
    }

    @Test mutating func `name a picture that was left out although no packet is missing`() throws {
        try receive(1, picture: 10, at: 0, isKey: true)
        try receive(2, picture: 11, at: 3_000)
        try receive(3, picture: 14, at: 12_000)
        #expect(decoder.complaints == [.pictureIDJump(from: 11, to: 14)])
        #expect(decoder.framesDecoded == 3)
    }

    @Test mutating func `allow a packet of padding in the place of a picture`() throws {
        try receive(1, picture: 10, at: 0, isKey: true)
        try receivePadding(2, at: 3_000)
        try receivePadding(3, at: 6_000)
        try receive(4, picture: 13, at: 9_000)
        #expect(decoder.complaints.isEmpty && decoder.framesDecoded == 2)
        // Padding counts for the next picture only.
        try receive(5, picture: 15, at: 15_000)
        #expect(decoder.complaints == [.pictureIDJump(from: 13, to: 15)])
    }

    @Test(arguments: [2_000, 3_000] as [UInt32])
    mutating func `name a picture that is not later than the one before`(timestamp: UInt32) throws {
        try receive(1, picture: 10, at: 3_000, isKey: true)
        try receive(2, picture: 11, at: timestamp)
        #expect(decoder.complaints == [.timestampBackwards])
    }

    @Test mutating func `name packets of two pictures in one`() throws {
        try receive(1, picture: 10, at: 0, isKey: true)
        try receive(2, picture: 11, at: 3_000, isLast: false)
        try receive(3, picture: 12, at: 6_000)
        #expect(decoder.complaints.first == .mixedFrame)
        #expect(decoder.keyFramesDecoded == 1)
    }

    @Test mutating func `allow a key frame to cut off the picture before it`() throws {
        try receive(1, picture: 10, at: 0, isKey: true)
        try receive(2, picture: 11, at: 3_000, isLast: false)
        try receive(3, picture: 12, at: 6_000, isKey: true)
        try receive(4, picture: 13, at: 9_000)
        #expect(decoder.complaints.isEmpty)
        #expect(decoder.framesDecoded == 3 && decoder.keyFramesDecoded == 2)
    }

    @Test mutating func `name what cannot be read`() throws {
        try receive(1, picture: 10, at: 0, isKey: true)
        decoder.receive(
            try header(timestamp: 3_000, marker: true), payload: [0x90], sequenceNumber: 2)
        try receive(3, picture: 11, at: 6_000)
        #expect(decoder.complaints == [.unreadable] && decoder.framesDecoded == 2)
    }

    @Test mutating func `are none for a packet that comes twice, or after its picture was given up`() throws {
        try receive(1, picture: 10, at: 0, isKey: true)
        try receive(1, picture: 10, at: 0, isKey: true)
        try receive(3, picture: 12, at: 6_000)
        #expect(decoder.framesDecoded == 1)
        try receive(4, picture: 13, at: 9_000, isKey: true)
        #expect(decoder.framesDecoded == 2 && !decoder.isWaitingForKeyFrame)
        try receive(2, picture: 11, at: 3_000)
        #expect(decoder.framesDecoded == 2 && decoder.complaints.isEmpty)
    }

    @Test mutating func `wait until all packets of a picture are there`() throws {
        try receive(1, picture: 10, at: 0, isKey: true, isLast: false)
        try receive(3, picture: 10, at: 0, isFirst: false)
        try receive(4, picture: 11, at: 3_000)
        #expect(decoder.framesDecoded == 0)
        try receive(2, picture: 10, at: 0, isFirst: false, isLast: false)
        #expect(decoder.framesDecoded == 2 && decoder.complaints.isEmpty)
    }

    @Test mutating func `end with two thousand packets behind a gap, where a key frame is needed`() throws {
        try receive(1, picture: 0, at: 0, isKey: true)
        for number in 3...2_002 {
            try receive(Int64(number), picture: UInt16(number), at: UInt32(number) * 3_000)
        }
        #expect(!decoder.isWaitingForKeyFrame)
        try receive(2_003, picture: 2_003, at: 6_009_000)
        #expect(decoder.isWaitingForKeyFrame && decoder.framesDecoded == 1)
        try receive(2_004, picture: 2_004, at: 6_012_000)
        #expect(decoder.framesDecoded == 1)
        try receive(2_005, picture: 2_005, at: 6_015_000, isKey: true)
        #expect(!decoder.isWaitingForKeyFrame && decoder.framesDecoded == 2)
        #expect(decoder.complaints.isEmpty)
    }

    @Test mutating func `are none for a stream that begins with padding`() throws {
        decoder.firstSent = 1
        try receivePadding(1, at: 0)
        try receive(2, picture: 10, at: 3_000, isKey: true)
        #expect(decoder.complaints.isEmpty && decoder.framesDecoded == 1)
    }

    @Test mutating func `are none while no key frame comes, however long that takes`() throws {
        for number in 1...5_000 { try receive(Int64(number), picture: 1, at: UInt32(number) * 3_000) }
        #expect(decoder.isWaitingForKeyFrame && decoder.framesDecoded == 0)
        try receive(5_001, picture: 2, at: 15_003_000, isKey: true)
        #expect(decoder.framesDecoded == 1 && decoder.complaints.isEmpty)
    }
}
