import Testing
import TestSupport
import Wire

private func describe(_ payload: [UInt8]) throws -> VideoPacketInfo {
    try VideoPayload.describe(.h264, payload: payload.span, marker: false)
}

@Suite struct H264Payloads {
    /// Baseline, 1280x720, out of libx264.
    private let parameters: [UInt8] = [
        0x67, 0x42, 0xC0, 0x1F, 0xD9, 0x00, 0x50, 0x05, 0xBA, 0x10, 0x00, 0x00, 0x03, 0x00, 0x10, 0x00, 0x00,
        0x03, 0x03, 0xC0, 0xF1, 0x83, 0x24, 0x80,
    ]

    @Test func `of a lone parameter set start a key frame`() throws {
        let info = try describe(parameters)
        #expect(info.isKeyFrame && info.startsKeyFrame && info.startsFrame)
        #expect(info.resolution == VideoResolution(width: 1_280, height: 720))
    }

    @Test func `of aggregated units are all looked at`() throws {
        let aggregate: [UInt8] =
            [0x78, 0, 2, 0x09, 0x10, 0, UInt8(parameters.count)] + parameters + [
                0, 4, 0x68, 0xCE, 0x3C, 0x80,
            ]
        let info = try describe(aggregate)
        #expect(info.isKeyFrame && info.startsKeyFrame && info.startsFrame)
        #expect(info.resolution == VideoResolution(width: 1_280, height: 720))
        for length in 1..<aggregate.count where ![5, 7 + parameters.count].contains(length) {
            #expect(throws: WireError.truncated) { try describe(Array(aggregate.prefix(length))) }
        }
    }

    /// Parameter sets come first, and may be lost.
    @Test func `of a picture without parameter sets say that it may not be the first packet`() throws {
        for picture: [UInt8] in [
            [0x65, 0x88], [0x7C, 0x85, 0x88], [0x78, 0, 2, 0x65, 0x88, 0, 2, 0x65, 0x88],
        ] {
            #expect(try describe(picture).mayFollowHead)
        }
        let whole = [0x78, 0, UInt8(parameters.count)] + parameters + [0, 2, 0x65, 0x88]
        for other in [whole, parameters, [0x7C, 0x05, 0x88], [0x65, 0x08], [0x41, 0x9A]] {
            #expect(try !describe(other).mayFollowHead)
        }
    }

    @Test func `with an empty aggregated unit are refused`() {
        #expect(throws: WireError.invalid(.h264Aggregation)) { try describe([0x78, 0, 0]) }
    }

    @Test(
        arguments: [
            ([0x7C, 0x85, 0x88], true, true, true),  // first fragment of an IDR picture
            ([0x7C, 0x05, 0x88], true, false, false),  // a later one
            ([0x7C, 0x45, 0x88], true, false, false),  // the last one
            ([0x7C, 0x85, 0x08], true, false, false),  // the first of its second slice
            ([0x5C, 0x81, 0x9A], false, false, true),
            ([0x5C, 0x01, 0x9A], false, false, false),
            ([0x65, 0x88], true, true, true),
            ([0x65, 0x08], true, false, false),
            ([0x41, 0x9A], false, false, true),
            ([0x41, 0x1A], false, false, false),
            ([0x68, 0xCE], false, false, true),
            ([0x06, 0x05], false, false, true),
            ([0x09, 0x10], false, false, true),
            ([0x0C, 0x10], false, false, false),
            ([0x1E, 0x10], false, false, false),
        ] as [([UInt8], Bool, Bool, Bool)])
    func `tell key frames and starts`(
        payload: [UInt8], isKeyFrame: Bool, startsKeyFrame: Bool, startsFrame: Bool
    ) throws {
        let info = try describe(payload)
        #expect(info.isKeyFrame == isKeyFrame)
        #expect(info.startsKeyFrame == startsKeyFrame)
        #expect(info.startsFrame == startsFrame)
    }

    @Test(arguments: [[], [0x7C], [0x7C, 0x85], [0x7C, 0x05], [0x78], [0x78, 0]] as [[UInt8]])
    func `are refused when cut short`(payload: [UInt8]) {
        #expect(throws: WireError.truncated) { try describe(payload) }
    }

    @Test func `with a broken parameter set have no size`() throws {
        for length in 1..<9 {
            let info = try describe(Array(parameters.prefix(length)))
            #expect(info.resolution == nil)
            #expect(info.startsKeyFrame)
        }
    }

    @Test func `with a parameter set of noise never trap`() throws {
        var random = SeededGenerator(seed: 7)
        for _ in 0..<20_000 {
            var noise: [UInt8] = [0x67, [66, 100, 244].randomElement(using: &random) ?? 66, 0, 31]
            for _ in 0..<Int.random(in: 0...40, using: &random) {
                noise.append(.random(in: 0...255, using: &random))
            }
            if let size = try describe(noise).resolution {
                #expect((1...65_536).contains(size.width) && (1...65_536).contains(size.height))
            }
        }
    }
}
