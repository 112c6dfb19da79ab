/// The structure to which the dependency descriptors of one coded video sequence refer.
///
/// Its fields bound its size: 64 templates, 32 decode targets, 4 spatial and 8 temporal layers.
/// - Source: RTP Payload Format for AV1, appendix A.8.3 (syntax), A.8.4 (semantics).
package struct DependencyStructure: Equatable, Sendable {
    /// The properties that frames of one kind have in common.
    struct Template: Equatable, Sendable {
        var spatialLayer: UInt8
        var temporalLayer: UInt8
        var indications = DecodeTargetIndications()
        /// How many frames such a frame depends on directly.
        var differenceCount = 0
    }

    /// The highest layers of a decode target.
    /// - Source: appendix A.8.4 (`DecodeTargetSpatialId`, `DecodeTargetTemporalId`).
    private struct Reach: Equatable {
        var spatialLayer: UInt8 = 0
        var temporalLayer: UInt8 = 0

        init(of target: Int, _ templates: [Template]) {
            for template in templates where template.indications[target] != .notPresent {
                spatialLayer = max(spatialLayer, template.spatialLayer)
                temporalLayer = max(temporalLayer, template.temporalLayer)
            }
        }
    }

    private let templateIDOffset: UInt8
    private var templates: [Template] = []
    /// 1 to 32.
    package let decodeTargetCount: Int
    let chainCount: Int
    /// 1 to 4.
    package private(set) var spatialLayerCount = 1
    /// 1 to 8.
    package private(set) var temporalLayerCount = 1
    /// For each spatial layer, the smallest first; empty if the structure does not contain them.
    package private(set) var resolutions: [VideoResolution] = []
    /// For each decode target.
    private var targets: [Reach] = []

    /// Size of the highest spatial layer, if known.
    package var resolution: VideoResolution? { resolutions.last }

    init(_ reader: inout BitReader, _ value: Span<UInt8>) throws(WireError) {
        templateIDOffset = try UInt8(truncatingIfNeeded: reader.bits(6, in: value))
        decodeTargetCount = try Int(reader.bits(5, in: value)) &+ 1
        templates = try Self.layers(&reader, value)
        for template in templates {
            spatialLayerCount = max(spatialLayerCount, Int(template.spatialLayer) &+ 1)
            temporalLayerCount = max(temporalLayerCount, Int(template.temporalLayer) &+ 1)
        }
        for index in templates.indices {
            templates[index].indications = try DecodeTargetIndications(
                count: decodeTargetCount, &reader, value)
        }
        for target in 0..<decodeTargetCount { targets.append(Reach(of: target, templates)) }
        for index in templates.indices {
            while try reader.flag(in: value) {
                try reader.skip(4)
                templates[index].differenceCount &+= 1
            }
        }
        let chains = try reader.nonSymmetric(
            below: UInt32(truncatingIfNeeded: decodeTargetCount &+ 1), in: value)
        chainCount = Int(chains)
        if chains > 0 {
            for _ in 0..<decodeTargetCount { _ = try reader.nonSymmetric(below: chains, in: value) }
            try reader.skip(4 &* chainCount &* templates.count)
        }
        guard try reader.flag(in: value) else { return }
        for _ in 0..<spatialLayerCount {
            let width = try Int(reader.bits(16, in: value)) &+ 1
            let height = try Int(reader.bits(16, in: value)) &+ 1
            resolutions.append(VideoResolution(width: width, height: height))
        }
    }

    /// Reads the layers of each template, which are coded as the difference from the previous template.
    private static func layers(
        _ reader: inout BitReader, _ value: Span<UInt8>
    ) throws(WireError) -> [Template] {
        var templates: [Template] = []
        var spatialLayer: UInt8 = 0
        var temporalLayer: UInt8 = 0
        while true {
            guard templates.count < 64, spatialLayer < 4, temporalLayer < 8 else {
                throw .invalid(.dependencyStructure)
            }
            templates.append(Template(spatialLayer: spatialLayer, temporalLayer: temporalLayer))
            switch try reader.bits(2, in: value) {
            case 0: break
            case 1: temporalLayer &+= 1
            case 2:
                temporalLayer = 0
                spatialLayer &+= 1
            default: return templates
            }
        }
    }

    func template(id: UInt8) -> Template? {
        let index = Int((id &- templateIDOffset) & 0x3F)
        return index < templates.count ? templates[index] : nil
    }

    /// The lowest spatial layer with frames in any active decode target.
    func lowestSpatialLayer(of active: UInt32) -> UInt8 {
        var lowest = UInt8.max
        for template in templates {
            let isActive = (0..<decodeTargetCount).contains {
                active >> UInt32(truncatingIfNeeded: $0) & 1 != 0
                    && template.indications[$0] != .notPresent
            }
            if isActive { lowest = min(lowest, template.spatialLayer) }
        }
        return lowest
    }

    /// Whether a receiver can continue after a frame with every higher frame rate of its spatial layer.
    func opensHigherTemporalLayers(_ template: Template, _ indications: DecodeTargetIndications) -> Bool {
        let higher = targets.indices.filter {
            targets[$0].spatialLayer == template.spatialLayer
                && targets[$0].temporalLayer > template.temporalLayer
        }
        return !higher.isEmpty && higher.allSatisfy { indications[$0] == .switch }
    }

    /// One bit for each decode target that includes no spatial layer above this one.
    package func decodeTargets(upTo spatialLayer: UInt8) -> UInt32 {
        var bits: UInt32 = 0
        for index in targets.indices where targets[index].spatialLayer <= spatialLayer {
            bits |= 1 << UInt32(truncatingIfNeeded: index)
        }
        return bits
    }

    /// A bit mask of all decode targets.
    var everyDecodeTarget: UInt32 {
        UInt32.max >> UInt32(truncatingIfNeeded: 32 &- decodeTargetCount)
    }
}

/// The role of a frame in each decode target: two bits each, in one word.
struct DecodeTargetIndications: Equatable, Sendable {
    /// The role of a frame in one decode target.
    enum Indication: UInt8 {
        case notPresent, discardable, `switch`, required
    }

    private var bits: UInt64 = 0
    private var count = 0

    init() {}

    init(count: Int, _ reader: inout BitReader, _ value: Span<UInt8>) throws(WireError) {
        self.count = count
        for _ in 0..<count { bits = try bits << 2 | UInt64(reader.bits(2, in: value)) }
    }

    /// The first decode target is in the highest bits.
    subscript(target: Int) -> Indication {
        let shift = UInt64(truncatingIfNeeded: (count &- 1 &- target) &* 2)
        return Indication(rawValue: UInt8(truncatingIfNeeded: bits >> shift & 0x03)) ?? .notPresent
    }

    /// Whether the frame is a switching point for any decode target.
    var hasSwitch: Bool { (0..<count).contains { self[$0] == .switch } }
}
