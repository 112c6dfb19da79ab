/// The video codecs that can be forwarded, and one that is only decoded.
package enum VideoCodec: Sendable {
    case vp8, vp9, h264, av1
    /// Of encoders alone, and made anew for viewers.
    case hevc
}

/// In pixels.
package struct VideoResolution: Equatable, Sendable {
    /// As coded, before any orientation.
    package var width: Int
    /// As coded, before any orientation.
    package var height: Int

    package init(width: Int, height: Int) {
        self.width = width
        self.height = height
    }
}

/// What forwarding needs to know of one video packet; read from this packet alone.
package struct VideoPacketInfo: Equatable, Sendable {
    /// Whether this packet is known to belong to a key frame.
    ///
    /// VP8 and AV1 say so in the first packet only, and spatial layers above 0 never: they belong to the key
    /// frame that has the same timestamp.
    package var isKeyFrame = false
    /// Whether a decoder can start with this packet.
    ///
    /// H.264 may say so of several packets at the head of one frame (parameter sets, then the picture): the
    /// first one counts.
    package var startsKeyFrame = false
    /// Whether what a decoder needs to start here may lie in packets before this one: H.264's parameter sets.
    package var mayFollowHead = false
    /// Whether a frame, or with spatial layers one layer of it, begins here.
    ///
    /// H.264 may say so of several packets at the head of one frame.
    package var startsFrame = false
    /// Whether a frame, or with spatial layers one layer of it, ends here.
    ///
    /// The last layer has the marker bit.
    package var endsFrame = false
    /// 0 is the smallest picture.
    package var spatialLayer: UInt8 = 0
    /// 0 is the lowest frame rate.
    package var temporalLayer: UInt8 = 0
    /// Whether a receiver of lower temporal layers may begin to receive this one here.
    package var isTemporalSwitchingPoint = false
    /// Whether what follows in higher temporal layers than this needs nothing of them from before this.
    package var opensHigherTemporalLayers = false
    /// Of the whole picture, where the packet tells: in key frames.
    package var resolution: VideoResolution?
}

/// Reads as much of a video payload as forwarding needs.
package enum VideoPayload {
    /// - Parameters:
    ///   - payload: without padding; an empty one (a probe) is refused.
    ///   - marker: of the RTP header.
    ///   - dependencyDescriptor: of the RTP header extension, if there is one. It knows the layers better:
    ///     Chromium leaves all but the first byte out of VP8's own descriptor when it sends this one.
    package static func describe(
        _ codec: VideoCodec, payload: Span<UInt8>, marker: Bool,
        dependencyDescriptor: DependencyDescriptor? = nil
    ) throws(WireError) -> VideoPacketInfo {
        var info =
            switch codec {
            case .vp8: try VP8Descriptor(parsing: payload).describe(payload, marker: marker)
            case .vp9: try VP9Descriptor(parsing: payload).describe(payload, marker: marker)
            case .h264: try H264Payload.describe(payload, marker: marker)
            case .av1: try AV1Payload.describe(payload, marker: marker)
            case .hevc: throw .invalid(.unforwardedCodec)
            }
        guard let dependencyDescriptor else { return info }
        if codec == .av1 {
            // The payload tells only of units that begin in this packet.
            info.startsFrame = dependencyDescriptor.startsFrame
            info.endsFrame = dependencyDescriptor.endsFrame || marker
            info.isKeyFrame = dependencyDescriptor.isKeyFrame
            info.startsKeyFrame = dependencyDescriptor.startsKeyFrame
        }
        guard dependencyDescriptor.hasLayers else { return info }
        info.spatialLayer = dependencyDescriptor.spatialLayer
        info.temporalLayer = dependencyDescriptor.temporalLayer
        if codec == .av1 {
            // In modes with spatial layers those of one picture may differ in their temporal layer (`L2T2_KEY_SHIFT`).
            info.opensHigherTemporalLayers =
                dependencyDescriptor.spatialLayerCount == 1
                && dependencyDescriptor.opensHigherTemporalLayers
        } else {
            info.isTemporalSwitchingPoint = dependencyDescriptor.isSwitchingPoint
        }
        info.resolution = info.resolution ?? dependencyDescriptor.attachedStructure?.resolution
        return info
    }
}

extension WireError.Field {
    /// What is decoded here, and forwarded to nobody.
    package static var unforwardedCodec: Self { .init("video.unforwardedCodec") }
}
