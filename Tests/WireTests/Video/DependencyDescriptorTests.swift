import Testing
import TestSupport
import Wire

/// Puts values of some bits each together, the highest bit first, and zeros up to a whole byte.
private func pack(_ fields: [(value: UInt32, bits: Int)]) -> [UInt8] {
    var bits: [UInt8] = []
    for (value, count) in fields {
        for shift in (0..<count).reversed() { bits.append(UInt8(value >> UInt32(shift) & 1)) }
    }
    while !bits.count.isMultiple(of: 8) { bits.append(0) }
    return stride(from: 0, to: bits.count, by: 8).map { start in
        bits[start..<(start + 8)].reduce(0) { $0 << 1 | $1 }
    }
}

/// Start and end of a frame, template and frame number.
private func mandatory(template: UInt32, frame: UInt32) -> [(value: UInt32, bits: Int)] {
    [(1, 1), (1, 1), (template, 6), (frame, 16)]
}

/// Two temporal layers, two decode targets, one chain, template ids from 60 on, a size.
///
/// Template 0: T0, key. Template 1: T0, needs one. Template 2: T1, needs one.
private let structure: [(value: UInt32, bits: Int)] =
    [(60, 6), (1, 5)]
    + [(0, 2), (1, 2), (3, 2)]  // the next template: same layers, next temporal layer, none
    + [(2, 2), (2, 2), (3, 2), (3, 2), (0, 2), (1, 2)]  // indications
    + [(0, 1), (1, 1), (1, 4), (0, 1), (1, 1), (0, 4), (0, 1)]  // differences
    + [(2, 2)]  // one chain: 1 of 3 values, by ns(3) in two bits
    + [(0, 4), (2, 4), (1, 4)]  // chain differences; which chain protects a target takes no bits
    + [(1, 1), (639, 16), (359, 16)]

private let key = pack(mandatory(template: 60, frame: 7) + [(0b10000, 5)] + structure)

private func parse(_ bytes: [UInt8], _ structure: DependencyStructure? = nil) throws -> DependencyDescriptor {
    try DependencyDescriptor(parsing: bytes.span, structure: structure)
}

@Suite struct DependencyDescriptors {
    @Test func `of a key frame bring the structure`() throws {
        let descriptor = try parse(key)
        #expect(descriptor.startsKeyFrame && descriptor.isKeyFrame)
        #expect(descriptor.frameNumber == 7)
        #expect(descriptor.activeDecodeTargets == 0b11)
        #expect(descriptor.isIndependent)
        #expect(descriptor.isSwitchingPoint)
        let attached = try #require(descriptor.attachedStructure)
        #expect(attached.decodeTargetCount == 2)
        #expect(attached.temporalLayerCount == 2)
        #expect(attached.spatialLayerCount == 1)
        #expect(attached.resolution == VideoResolution(width: 640, height: 360))
    }

    @Test func `name the frame number where a rewriter finds it`() {
        let offset = DependencyDescriptor.frameNumberOffset
        #expect(Array(key[offset..<(offset + 2)]) == [0, 7])
    }

    @Test func `refer to templates by an id that wraps`() throws {
        let structure = try parse(key).attachedStructure
        for (id, temporalLayer, isIndependent) in [(60, 0, true), (61, 0, false), (62, 1, false)]
            as [(UInt32, UInt8, Bool)]
        {
            let descriptor = try parse(pack(mandatory(template: id, frame: 8)), structure)
            #expect(descriptor.hasLayers)
            #expect(descriptor.temporalLayer == temporalLayer)
            #expect(descriptor.isIndependent == isIndependent)
            #expect(!descriptor.startsKeyFrame)
        }
        for id in [63, 0, 59] as [UInt32] {
            #expect(throws: WireError.invalid(.dependencyTemplate)) {
                try parse(pack(mandatory(template: id, frame: 8)), structure)
            }
        }
    }

    @Test func `without a structure tell the mandatory fields`() throws {
        let descriptor = try parse(pack(mandatory(template: 61, frame: 0xABCD)))
        #expect(descriptor.startsFrame && descriptor.endsFrame)
        #expect(descriptor.frameNumber == 0xABCD)
        #expect(!descriptor.hasLayers && !descriptor.isKeyFrame)
    }

    @Test func `may replace every part of the template`() throws {
        let structure = try parse(key).attachedStructure
        // All custom: active targets 01, indications 2 and 0, differences of 4, 8 and 12 bits, a chain.
        let custom = pack(
            mandatory(template: 62, frame: 9) + [(0b01111, 5), (0b01, 2), (2, 2), (0, 2)]
                + [(1, 2), (3, 4), (2, 2), (40, 8), (3, 2), (400, 12), (0, 2), (9, 8)])
        let descriptor = try parse(custom, structure)
        #expect(descriptor.activeDecodeTargets == 1)
        #expect(descriptor.isSwitchingPoint)
        #expect(!descriptor.isIndependent)
        // Template 61 needs a frame; this one says that it needs none.
        let none = try parse(
            pack(mandatory(template: 61, frame: 9) + [(0b00010, 5), (0, 2)]), structure)
        #expect(none.isIndependent && none.isKeyFrame && !none.startsKeyFrame)
        for length in 4..<custom.count {
            #expect(throws: WireError.truncated) { try parse(Array(custom.prefix(length)), structure) }
        }
    }

    @Test func `are refused when cut short`() {
        for length in [0, 1, 2] + Array(4..<key.count) {
            #expect(throws: WireError.truncated) { try parse(Array(key.prefix(length))) }
        }
    }

    @Test(arguments: [(2, 4), (1, 8), (0, 64)] as [(UInt32, Int)])
    func `with more layers or templates than there can be are refused`(next: UInt32, count: Int) {
        let endless = Array(repeating: (value: next, bits: 2), count: count)
        let bytes = pack(
            mandatory(template: 0, frame: 0) + [(0b10000, 5), (0, 6), (0, 5)] + endless + [(3, 2), (0, 32)])
        #expect(throws: WireError.invalid(.dependencyStructure)) { try parse(bytes) }
    }

    @Test func `of noise never trap`() throws {
        var random = SeededGenerator(seed: 8)
        let structure = try parse(key).attachedStructure
        var understood = 0
        for _ in 0..<20_000 {
            var bytes = Bool.random(using: &random) ? key : []
            for _ in 0..<Int.random(in: 0...20, using: &random) {
                bytes.append(.random(in: 0...255, using: &random))
            }
            for _ in 0..<Int.random(in: 0...3, using: &random) where !bytes.isEmpty {
                bytes[Int.random(in: bytes.indices, using: &random)] = .random(in: 0...255, using: &random)
            }
            if (try? parse(bytes, structure)) != nil { understood += 1 }
        }
        #expect(understood > 1_000)
    }
}
