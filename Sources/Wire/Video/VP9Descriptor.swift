/// The payload descriptor before the VP9 data of each packet.
/// - Source: RFC 9628 §4.2.
package struct VP9Descriptor: Equatable, Sendable {
    /// Length of the parsed descriptor in bytes.
    package private(set) var length = 1
    /// Counts pictures; the same for all spatial layers of a picture.
    package private(set) var pictureID: UInt16?
    /// 7 or 15: the width at which the picture id wraps.
    package private(set) var pictureIDBits = 15
    /// P: depends on earlier pictures.
    package let isInterPredicted: Bool
    /// F: each packet lists the pictures it depends on.
    package let isFlexible: Bool
    /// B: a layer frame begins with this packet.
    package let startsFrame: Bool
    /// E: a layer frame ends with this packet.
    package let endsFrame: Bool
    /// Z: no higher spatial layer of this picture depends on this one.
    package let isNotReferenceForHigherLayers: Bool
    /// Whether layer indices are present.
    package let hasLayers: Bool
    /// 0 is the lowest frame rate.
    package private(set) var temporalLayer: UInt8 = 0
    /// 0 is the smallest picture.
    package private(set) var spatialLayer: UInt8 = 0
    /// U: later pictures in higher temporal layers depend on none of those layers' pictures before this one.
    package private(set) var isSwitchingPoint = false
    /// D: depends on the next lower spatial layer of this picture.
    package private(set) var isInterLayerPredicted = false
    /// Counts pictures of temporal layer 0; present only in non-flexible mode with layers.
    package private(set) var tl0PictureIndex: UInt8?
    /// Offset of `tl0PictureIndex` in the payload.
    private var tl0PictureIndexOffset = 0
    /// Number of spatial layers; nil if the packet does not contain it.
    package private(set) var spatialLayerCount: Int?
    /// Size of the highest spatial layer; nil if the packet does not contain it.
    package private(set) var resolution: VideoResolution?
    /// Offset of the sizes of spatial layers in the payload; 0 if there are none.
    private var sizesOffset: UInt8 = 0

    /// - Throws: `.truncated`, or `.invalid(.vp9References)`.
    package init(parsing payload: Span<UInt8>) throws(WireError) {
        let first = try payload.uint8(at: 0)
        isInterPredicted = first & 0x40 != 0
        hasLayers = first & 0x20 != 0
        isFlexible = first & 0x10 != 0
        startsFrame = first & 0x08 != 0
        endsFrame = first & 0x04 != 0
        isNotReferenceForHigherLayers = first & 0x01 != 0
        if first & 0x80 != 0 { try parsePictureID(payload) }
        if hasLayers { try parseLayers(payload) }
        if isFlexible, isInterPredicted { try parseReferences(payload) }
        if first & 0x02 != 0 { try parseScalabilityStructure(payload) }
        try payload.require(length &+ 1)
    }

    private mutating func parsePictureID(_ payload: Span<UInt8>) throws(WireError) {
        let byte = try payload.uint8(at: length)
        if byte & 0x80 == 0 {
            pictureID = UInt16(byte)
            pictureIDBits = 7
            length &+= 1
        } else {
            pictureID = try payload.uint16(at: length) & 0x7FFF
            length &+= 2
        }
    }

    private mutating func parseLayers(_ payload: Span<UInt8>) throws(WireError) {
        let byte = try payload.uint8(at: length)
        temporalLayer = byte >> 5
        isSwitchingPoint = byte & 0x10 != 0
        spatialLayer = byte >> 1 & 0x07
        isInterLayerPredicted = byte & 0x01 != 0
        length &+= 1
        guard !isFlexible else { return }
        tl0PictureIndex = try payload.uint8(at: length)
        tl0PictureIndexOffset = length
        length &+= 1
    }

    /// Skips up to three differences of picture ids; the lowest bit of each is set if another follows.
    private mutating func parseReferences(_ payload: Span<UInt8>) throws(WireError) {
        for count in 1... {
            let byte = try payload.uint8(at: length)
            length &+= 1
            guard byte & 0x01 != 0 else { return }
            guard count < 3 else { throw .invalid(.vp9References) }
        }
    }

    /// - Source: RFC 9628 §4.2.1.
    private mutating func parseScalabilityStructure(_ payload: Span<UInt8>) throws(WireError) {
        let byte = try payload.uint8(at: length)
        let layers = Int(byte >> 5) &+ 1
        spatialLayerCount = layers
        length &+= 1
        if byte & 0x10 != 0 {
            sizesOffset = UInt8(clamping: length)
            let last = length &+ (layers &- 1) &* 4
            resolution = try VideoResolution(
                width: Int(payload.uint16(at: last)), height: Int(payload.uint16(at: last &+ 2)))
            length &+= layers &* 4
        }
        guard byte & 0x08 != 0 else { return }
        let pictures = try Int(payload.uint8(at: length))
        length &+= 1
        for _ in 0..<pictures {
            let references = try payload.uint8(at: length) >> 2 & 0x03
            length &+= 1 &+ Int(references)
        }
    }

    /// The size of each spatial layer, the smallest first; nil if the packet does not contain them.
    ///
    /// Parsed on demand: a list in each descriptor would be reference-counted for each viewer of a packet.
    /// - Parameter payload: the payload this was parsed from.
    /// - Throws: `.truncated` for another payload.
    /// - Source: RFC 9628 §4.2.1 (Y, WIDTH, HEIGHT).
    package func spatialResolutions(in payload: Span<UInt8>) throws(WireError) -> [VideoResolution]? {
        guard sizesOffset > 0, let spatialLayerCount else { return nil }
        var resolutions: [VideoResolution] = []
        for layer in 0..<spatialLayerCount {
            let place = Int(sizesOffset) &+ layer &* 4
            try resolutions.append(
                VideoResolution(
                    width: Int(payload.uint16(at: place)), height: Int(payload.uint16(at: place &+ 2))))
        }
        return resolutions
    }

    /// Writes the descriptor with other counters.
    ///
    /// The picture id gets 15 bits, and is inserted if it was missing, so up to two bytes more than `length` are
    /// needed.
    /// - Parameters:
    ///   - payload: the payload this was parsed from.
    ///   - tl0PictureIndex: ignored if the descriptor has none.
    /// - Returns: how many bytes were written; they replace the first `length` bytes of the payload.
    package func write(
        pictureID: UInt16, tl0PictureIndex: UInt8?, copying payload: Span<UInt8>,
        into packet: inout MutableSpan<UInt8>, at offset: Int
    ) throws(WireError) -> Int {
        let oldWidth = self.pictureID == nil ? 0 : (pictureIDBits &+ 1) / 8
        let rest = (1 &+ oldWidth)..<length
        guard rest.lowerBound <= rest.upperBound else { throw .truncated }
        try packet.store(payload.uint8(at: 0) | 0x80, at: offset)
        try packet.store(pictureID | 0x8000, at: offset &+ 1)
        try packet.store(payload, rest, at: offset &+ 3)
        if let tl0PictureIndex, self.tl0PictureIndex != nil {
            try packet.store(tl0PictureIndex, at: offset &+ 2 &+ tl0PictureIndexOffset &- oldWidth)
        }
        return 3 &+ rest.count
    }

    func describe(_ payload: Span<UInt8>, marker: Bool) throws(WireError) -> VideoPacketInfo {
        var info = VideoPacketInfo()
        info.startsFrame = startsFrame
        info.endsFrame = endsFrame || marker
        info.spatialLayer = spatialLayer
        info.temporalLayer = temporalLayer
        info.opensHigherTemporalLayers = isSwitchingPoint
        info.resolution = resolution
        guard !isInterPredicted, !isInterLayerPredicted, spatialLayer == 0 else { return info }
        guard startsFrame else {
            info.isKeyFrame = true
            return info
        }
        // Intra-only frames are not predicted either, but a decoder cannot start there.
        let header = try? VP9FrameHeader(parsing: payload.extracting(droppingFirst: length))
        info.isKeyFrame = header?.isKeyFrame ?? true
        info.startsKeyFrame = info.isKeyFrame
        info.resolution = resolution ?? header?.resolution
        return info
    }
}

extension WireError.Field {
    /// More than three references to pictures.
    package static var vp9References: Self { .init("vp9.references") }
    /// No frame marker, or a key frame without its sync code.
    package static var vp9FrameHeader: Self { .init("vp9.frameHeader") }
}
