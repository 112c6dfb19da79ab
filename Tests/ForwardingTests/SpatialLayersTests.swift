import Base
import Peer
import TestSupport
import Testing
import Wire

@testable import Forwarding

@Suite struct `Spatial layers of a source` {
    private func note(
        _ layers: inout SpatialLayers, _ payload: [UInt8], _ sequence: Int64, at milliseconds: Int64 = 0
    ) throws -> Bool {
        var bytes: [UInt8] = [0x80, 96]
        bytes.append(bigEndian: UInt16(truncatingIfNeeded: sequence))
        bytes += [0, 0, 0, 0, 0, 0, 0, 7] + payload
        let reader = PacketReader(
            formats: [MediaFormat(codec: .vp9(profile: 0), payloadType: 96)], ids: ExtensionIDs())
        var packet = try reader.read(bytes.span, RTPHeader(parsing: bytes.span), structure: nil)
        packet.sequenceNumber = sequence
        return layers.note(packet, bytes.span, at: .zero + .milliseconds(milliseconds))
    }

    /// L, B, E and V; a structure of layers that are half as high as they are wide, and filler.
    private func structure(_ heights: [UInt16], size: Int = 0) -> [UInt8] {
        var payload: [UInt8] = [0x2E, 0, 0, UInt8(heights.count - 1) << 5 | 0x10]
        for height in heights {
            payload.append(bigEndian: height * 2)
            payload.append(bigEndian: height)
        }
        return payload + [UInt8](repeating: 0x82, count: size + 1)
    }

    private func part(of layer: UInt8, size: Int) -> [UInt8] {
        [0x6C, layer << 1, 0] + [UInt8](repeating: 0x86, count: size + 1)
    }

    @Test func `are chosen by height, of which the neighbour of a story gets the least`() throws {
        var layers = SpatialLayers()
        #expect(layers.isEmpty)
        #expect(try note(&layers, structure([180, 360, 720]), 10))
        #expect(layers.sizes.map(\.height) == [180, 360, 720])
        for (choice, best) in [
            (LayerChoice(), 2), (LayerChoice(maximumHeight: 719), 1), (LayerChoice(maximumHeight: 360), 1),
            (LayerChoice(maximumHeight: 1), 0), (LayerChoice(isLeast: true), 0),
        ] {
            #expect(layers.best(choice, isThinned: false) == best, "\(choice)")
            #expect(layers.best(choice, isThinned: true) == 0)
        }
    }

    @Test func `follow what the source tells, but not what comes late`() throws {
        var layers = SpatialLayers()
        #expect(try note(&layers, structure([180, 360]), 10))
        #expect(try !note(&layers, structure([180, 360]), 11))
        #expect(try !note(&layers, structure([90, 180]), 9))
        #expect(try note(&layers, structure([90, 180, 360]), 12))
        // A structure without sizes, and one of a single layer.
        #expect(try note(&layers, [0x2E, 0, 0, 0x40, 0x82], 13))
        #expect(layers.isEmpty)
        #expect(try !note(&layers, structure([720]), 14))
        #expect(layers.isEmpty)
    }

    @Test func `of AV1 are those of the descriptors' structure`() throws {
        var layers = SpatialLayers()
        func note(
            _ source: AV1Layers, _ layer: Int, _ sequence: Int64, isKey: Bool, at milliseconds: Int64 = 0
        ) throws -> Bool {
            let descriptor = source.descriptor(
                of: layer, frame: Int(sequence), isKey: isKey, isFirst: true, isLast: true)
            let bytes = AV1Layers.bytes(
                descriptor, sequence, timestamp: 0, marker: false, isFirst: true, size: 300 << layer)
            let packet = try AV1Layers.packet(bytes, sequence, source.structure())
            return layers.note(packet, bytes.span, at: .zero + .milliseconds(milliseconds))
        }
        let two = AV1Layers(heights: [180, 360])
        #expect(try !note(two, 0, 10, isKey: false))
        #expect(layers.isEmpty)
        #expect(try note(two, 0, 11, isKey: true))
        #expect(layers.sizes.map(\.height) == [180, 360])
        #expect(try !note(two, 0, 12, isKey: true))
        // A late packet says nothing about the layers that are sent now.
        #expect(try !note(AV1Layers(heights: [90, 180, 360]), 0, 5, isKey: true))
        #expect(try note(AV1Layers(heights: [90, 180, 360]), 0, 20, isKey: true))
        #expect(layers.sizes.map(\.height) == [90, 180, 360])
        for picture in 0..<30 {
            for layer in 0..<3 {
                _ = try note(
                    AV1Layers(heights: [90, 180, 360]), layer, Int64(30 + picture * 3 + layer), isKey: false,
                    at: Int64(picture) * 33)
            }
        }
        #expect(layers.top == 2)
        let rates = (0..<3).map { layers.bitrate(upTo: $0, at: .zero + .milliseconds(960)) / 10_000 }
        #expect((7...10).contains(rates[0]) && (22...28).contains(rates[1]), "\(rates)")
        // A structure of one layer leaves nothing to choose.
        #expect(try note(AV1Layers(heights: [360]), 0, 200, isKey: true))
        #expect(layers.isEmpty)
    }

    @Test func `the bitrate of a layer includes the layers below it`() throws {
        var layers = SpatialLayers()
        _ = try note(&layers, structure([180, 360, 720]), 0)
        for picture in 0..<60 {
            for layer in 0..<UInt8(picture < 30 ? 3 : 2) {
                _ = try note(
                    &layers, part(of: layer, size: 300 << Int(layer)), Int64(picture * 3) + Int64(layer) + 1,
                    at: Int64(picture) * 33)
            }
            if picture == 29 {
                #expect(layers.top == 2)
                let rates = (0..<3).map {
                    layers.bitrate(upTo: $0, at: .zero + .milliseconds(960)) / 10_000
                }
                #expect((7...9).contains(rates[0]), "\(rates)")
                #expect((22...26).contains(rates[1]), "\(rates)")
                #expect((51...58).contains(rates[2]), "\(rates)")
            }
        }
        _ = try note(&layers, part(of: 0, size: 1), 200, at: 2_100)
        #expect(layers.top == 1)
        // Nothing is known of a layer that the structure does not name.
        #expect(try !note(&layers, part(of: 5, size: 1), 201, at: 2_110))
    }
}
