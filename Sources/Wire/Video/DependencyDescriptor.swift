/// The properties of a frame in a header extension, so that its payload need not be parsed.
/// - Source: RTP Payload Format for AV1, appendix A.
package struct DependencyDescriptor: Equatable, Sendable {
    /// Byte offset of the 16-bit frame number in the extension's value, where a rewriter replaces it.
    package static let frameNumberOffset = 1

    /// Whether this is the frame's first packet.
    package let startsFrame: Bool
    /// Whether this is the frame's last packet.
    package let endsFrame: Bool
    /// 6 bits.
    package let templateID: UInt8
    /// Counts frames; each spatial layer of a picture is a frame of its own.
    package let frameNumber: UInt16
    /// In the first packet of a key frame: the structure that later descriptors refer to.
    ///
    /// The receiver must keep it.
    package private(set) var attachedStructure: DependencyStructure?
    /// One bit for each decode target that is still sent; nil if the packet does not contain them.
    package private(set) var activeDecodeTargets: UInt32?
    /// Bit position where an attached structure ends and active decode targets follow, or would follow.
    private(set) var structureEnd = 0
    /// Whether the packet contains a bit for each decode target.
    private(set) var tellsActiveDecodeTargets = false
    /// Whether the layer ids and all properties that depend on them are known.
    package private(set) var hasLayers = false
    /// 0 is the smallest picture; meaningless unless `hasLayers`.
    package private(set) var spatialLayer: UInt8 = 0
    /// 0 is the lowest frame rate; meaningless unless `hasLayers`.
    package private(set) var temporalLayer: UInt8 = 0
    /// Whether the frame depends on no other.
    package private(set) var isIndependent = false
    /// Whether a receiver of lower layers can switch to this layer here.
    package private(set) var isSwitchingPoint = false
    /// Whether later frames in higher temporal layers of this spatial layer depend on none of those before this
    /// frame.
    package private(set) var opensHigherTemporalLayers = false
    /// Number of spatial layers; 1 if it is not known.
    package private(set) var spatialLayerCount = 1
    /// Whether a decoder can start with this frame, as far as its spatial layer determines that.
    private var isLowest = true

    /// - Parameters:
    ///   - value: the value of the extension element.
    ///   - structure: the one attached last in this stream; without one only the mandatory fields are parsed.
    package init(parsing value: Span<UInt8>, structure: DependencyStructure?) throws(WireError) {
        let first = try value.uint8(at: 0)
        startsFrame = first & 0x80 != 0
        endsFrame = first & 0x40 != 0
        templateID = first & 0x3F
        frameNumber = try value.uint16(at: Self.frameNumberOffset)

        var reader = BitReader(3..<value.count)
        var custom = CustomFields()
        if value.count > 3 {
            let flags = try reader.bits(5, in: value)
            custom.hasIndications = flags & 0x04 != 0
            custom.hasDifferences = flags & 0x02 != 0
            custom.hasChains = flags & 0x01 != 0
            if flags & 0x10 != 0 {
                let attached = try DependencyStructure(&reader, value)
                attachedStructure = attached
                activeDecodeTargets = attached.everyDecodeTarget
                structureEnd = reader.position
            }
            if flags & 0x08 != 0 {
                guard let current = attachedStructure ?? structure else { return }
                activeDecodeTargets = try reader.bits(current.decodeTargetCount, in: value)
                tellsActiveDecodeTargets = true
            }
        }
        guard let current = attachedStructure ?? structure else { return }
        try applyTemplate(of: current, custom, &reader, value)
    }

    /// Which properties of the template this frame overrides.
    private struct CustomFields {
        var hasIndications = false
        var hasDifferences = false
        var hasChains = false
    }

    private mutating func applyTemplate(
        of structure: DependencyStructure, _ custom: CustomFields, _ reader: inout BitReader,
        _ value: Span<UInt8>
    ) throws(WireError) {
        guard let template = structure.template(id: templateID) else {
            throw .invalid(.dependencyTemplate)
        }
        var indications = template.indications
        if custom.hasIndications {
            indications = try DecodeTargetIndications(
                count: structure.decodeTargetCount, &reader, value)
        }
        var differences = template.differenceCount
        if custom.hasDifferences {
            differences = 0
            while true {
                let size = try Int(reader.bits(2, in: value))
                guard size > 0 else { break }
                try reader.skip(4 &* size)
                differences &+= 1
            }
        }
        if custom.hasChains { try reader.skip(8 &* structure.chainCount) }

        hasLayers = true
        spatialLayer = template.spatialLayer
        temporalLayer = template.temporalLayer
        isIndependent = differences == 0
        isSwitchingPoint = indications.hasSwitch
        opensHigherTemporalLayers = structure.opensHigherTemporalLayers(template, indications)
        spatialLayerCount = structure.spatialLayerCount
        if attachedStructure != nil, let activeDecodeTargets {
            isLowest = spatialLayer <= structure.lowestSpatialLayer(of: activeDecodeTargets)
        }
    }

    /// Whether the frame depends on no earlier picture and a decoder can start with it.
    package var isKeyFrame: Bool {
        attachedStructure != nil || (hasLayers && isIndependent && spatialLayer == 0)
    }

    /// Whether this is the first packet of a key picture.
    ///
    /// If spatial layers are independent of each other (`S2T1`), each of them has the structure.
    package var startsKeyFrame: Bool { startsFrame && attachedStructure != nil && isLowest }
}

extension WireError.Field {
    /// A template id that the structure does not contain.
    package static var dependencyTemplate: Self { .init("dependencyDescriptor.template") }
    /// An impossible structure of layers.
    package static var dependencyStructure: Self { .init("dependencyDescriptor.structure") }
}
