import Testing
import TestSupport
import Wire

private func describe(_ payload: [UInt8]) throws -> VideoPacketInfo {
    try VideoPayload.describe(.av1, payload: payload.span, marker: false)
}

@Suite struct AV1Payloads {
    /// A sequence header OBU without size: reduced, 640x360 in 10 bits each.
    private let sequenceHeader: [UInt8] = [0x08, 0x18, 0x26, 0x67, 0xF5, 0x9C]

    @Test func `that start a sequence say so`() throws {
        let info = try describe([0x18] + sequenceHeader)
        #expect(info.isKeyFrame && info.startsKeyFrame && info.startsFrame)
        #expect(info.resolution == VideoResolution(width: 640, height: 360))
    }

    @Test func `have lengths before all elements, or before all but the last`() throws {
        let length = UInt8(sequenceHeader.count)
        let frame: [UInt8] = [0x30, 0x10]
        let counted = try describe([0x20, length] + sequenceHeader + frame)
        let uncounted = try describe([0x00, length] + sequenceHeader + [2] + frame)
        #expect(counted == uncounted)
        #expect(counted.startsKeyFrame)
    }

    @Test(
        arguments: [
            ([0x10, 0x30, 0x10], true, true),  // OBU_FRAME, key frame
            ([0x10, 0x30, 0x30], true, false),  // inter frame
            ([0x10, 0x18, 0x80], true, false),  // OBU_FRAME_HEADER that shows an existing frame
            ([0x10, 0x20, 0x00], false, false),  // OBU_TILE_GROUP
            ([0x90, 0x30, 0x10], false, false),  // the rest of a unit
            ([0x20, 2, 0x10, 0x00, 0x32, 1, 0x10], true, true),  // a temporal delimiter before, sizes inside
        ] as [([UInt8], Bool, Bool)])
    func `tell frames by their units`(payload: [UInt8], startsFrame: Bool, isKeyFrame: Bool) throws {
        let info = try describe(payload)
        #expect(info.startsFrame == startsFrame)
        #expect(info.isKeyFrame == isKeyFrame)
        #expect(!info.startsKeyFrame)
    }

    @Test func `tell layers in the unit's extension`() throws {
        let info = try describe([0x10, 0x34, 0x48, 0x30])
        #expect(info.temporalLayer == 2)
        #expect(info.spatialLayer == 1)
    }

    @Test func `cannot both continue a unit and start a sequence`() {
        #expect(throws: WireError.invalid(.av1AggregationHeader)) { try describe([0x98, 0x30, 0x10]) }
    }

    @Test(
        arguments: [[], [0x10], [0x20, 5, 0x30, 0x10], [0x00, 0x80], [0x00, 3, 0x30, 0x10]] as [[UInt8]])
    func `are refused when cut short`(payload: [UInt8]) {
        #expect(throws: WireError.truncated) { try describe(payload) }
    }

    @Test(
        arguments: [
            [0x00, 0x80, 0x80, 0x80, 0x80, 0x80, 0x80, 0x80, 0x80, 0x01],
            [0x00, 0xFF, 0xFF, 0xFF, 0xFF, 0x7F],
        ] as [[UInt8]]) func `with absurd lengths are refused`(payload: [UInt8])
    {
        #expect(throws: WireError.invalid(.leb128)) { try describe(payload) }
    }
}

@Suite struct OpusPayloads {
    @Test(
        arguments: [
            ([0x00], 480), ([0x08], 960), ([0x10], 1_920), ([0x18], 2_880),  // SILK 10 to 60 ms
            ([0x60], 480), ([0x68], 960),  // hybrid
            ([0x80], 120), ([0x88], 240), ([0x90], 480), ([0xFC], 960),  // CELT 2.5 to 20 ms
            ([0x79], 1_920), ([0x7A], 1_920), ([0x7B, 0x03], 2_880), ([0xFB, 0x86], 5_760),
        ] as [([UInt8], Int)]) func `tell their duration`(payload: [UInt8], ticks: Int) throws
    {
        let duration = try OpusPayload.duration(payload.span)
        #expect(duration == ticks)
    }

    @Test(arguments: [[0x7B, 0x00], [0x7B, 0x07], [0x1B, 0x3F]] as [[UInt8]])
    func `of no frames or more than 120 ms are refused`(payload: [UInt8]) {
        #expect(throws: WireError.invalid(.opusFrameCount)) { try OpusPayload.duration(payload.span) }
    }

    @Test(arguments: [[], [0x7B]] as [[UInt8]]) func `are refused when cut short`(payload: [UInt8]) {
        #expect(throws: WireError.truncated) { try OpusPayload.duration(payload.span) }
    }
}
