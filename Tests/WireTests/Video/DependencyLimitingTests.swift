import TestSupport
import Testing
import Wire

/// Two spatial layers with two temporal ones each, as Chromium sends them.
@Suite struct `Descriptors of fewer spatial layers` {
    private func parse(
        _ bytes: [UInt8], _ structure: DependencyStructure? = nil
    ) throws -> DependencyDescriptor {
        try DependencyDescriptor(parsing: bytes.span, structure: structure)
    }

    /// The values of a capture's descriptors.
    private func values() throws -> [[UInt8]] {
        let capture = try PacketCapture("RTP/chromium-av1-l2t2.rtp.hex")
        let id = try #require(capture.extensionID(RTPExtensionURI.dependencyDescriptor.rawValue))
        return try capture.packets.compactMap { bytes in
            let header = try RTPHeader(parsing: bytes.span)
            return header.extensionRange(id: id, in: bytes.span).map { Array(bytes[$0]) }
        }
    }

    private func limit(_ value: [UInt8], to layer: UInt8) -> [UInt8]? {
        DependencyDescriptor.limiting(value.span, toSpatialLayer: layer)
    }

    @Test func `know the size of each layer, and which targets reach it`() throws {
        let structure = try #require(parse(values()[0]).attachedStructure)
        #expect(structure.spatialLayerCount == 2 && structure.decodeTargetCount == 4)
        #expect(
            structure.resolutions == [
                VideoResolution(width: 240, height: 135), VideoResolution(width: 480, height: 270),
            ])
        #expect(structure.decodeTargets(upTo: 0) == 0b0011)
        #expect(structure.decodeTargets(upTo: 1) == 0b1111)
    }

    @Test func `tell where higher frame rates of their layer begin`() throws {
        let values = try values()
        let structure = try #require(parse(values[0]).attachedStructure)
        for value in values {
            let descriptor = try parse(value, structure)
            #expect(descriptor.opensHigherTemporalLayers == (descriptor.temporalLayer == 0))
        }
    }

    @Test func `name the decode targets that are left, and nothing else anew`() throws {
        let value = try values()[0]
        let limited = try #require(limit(value, to: 0))
        let (before, after) = try (parse(value), parse(limited))
        #expect(before.activeDecodeTargets == 0b1111 && after.activeDecodeTargets == 0b0011)
        #expect(after.attachedStructure == before.attachedStructure)
        #expect(after.frameNumber == before.frameNumber && after.startsKeyFrame && after.isIndependent)
        #expect(limited.count <= value.count + 1)
        // It says all that is to be said already.
        #expect(limit(limited, to: 0) == nil)
        #expect(limit(value, to: 1) == nil)
    }

    @Test func `say nothing where there is no structure`() throws {
        for value in try values().dropFirst() { #expect(limit(value, to: 0) == nil) }
    }

    @Test func `never trap, whatever they hold`() throws {
        let value = try values()[0]
        for count in 0..<value.count { _ = limit(Array(value.prefix(count)), to: 0) }
        var random = SeededGenerator(seed: 5)
        var understood = 0
        for _ in 0..<20_000 {
            var bytes =
                value
                + (0..<Int.random(in: 0...8, using: &random)).map { _ in
                    UInt8.random(in: 0...255, using: &random)
                }
            for _ in 0..<Int.random(in: 0...3, using: &random) {
                bytes[Int.random(in: bytes.indices, using: &random)] = .random(in: 0...255, using: &random)
            }
            let layer = UInt8.random(in: 0...3, using: &random)
            guard let limited = limit(bytes, to: layer) else { continue }
            understood += 1
            let (before, after) = try (parse(bytes), parse(limited))
            let targets = try #require(after.attachedStructure).decodeTargets(upTo: layer)
            #expect(after.activeDecodeTargets == before.activeDecodeTargets.map { $0 & targets })
            #expect(after.attachedStructure == before.attachedStructure)
            #expect(after.isIndependent == before.isIndependent)
            #expect(after.opensHigherTemporalLayers == before.opensHigherTemporalLayers)
        }
        #expect(understood > 1_000)
    }
}
