/// The video codecs that can be forwarded, and one that can only be decoded.
package enum VideoCodec: Sendable {
    case vp8, vp9, h264, av1
    /// Published by encoders only, and transcoded for viewers.
    case hevc
}

/// A size in pixels.
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

/// The properties of one video packet that forwarding needs, from this packet alone.
package struct VideoPacketInfo: Equatable, Sendable {
    /// Whether this packet is known to belong to a key frame.
    ///
    /// In VP8 and AV1 only the first packet of a key frame shows it, and spatial layers above 0 never do: they
    /// belong to the key frame with the same timestamp.
    package var isKeyFrame = false
    /// Whether a decoder can start with this packet.
    ///
    /// In H.264 this may be true for several packets at the head of one frame (parameter sets, then the picture):
    /// the first one counts.
    package var startsKeyFrame = false
    /// Whether a decoder that starts here may also need packets before this one: H.264's parameter sets.
    package var mayFollowHead = false
    /// Whether a frame, or with spatial layers one layer of it, begins here.
    ///
    /// In H.264 this may be true for several packets at the head of one frame.
    package var startsFrame = false
    /// Whether a frame, or with spatial layers one layer of it, ends here.
    ///
    /// The last layer has the marker bit.
    package var endsFrame = false
    /// 0 is the smallest picture.
    package var spatialLayer: UInt8 = 0
    /// 0 is the lowest frame rate.
    package var temporalLayer: UInt8 = 0
    /// Whether a receiver of lower temporal layers can switch to this layer here.
    package var isTemporalSwitchingPoint = false
    /// Whether later pictures in higher temporal layers depend on none of those layers' pictures before this one.
    package var opensHigherTemporalLayers = false
    /// Size of the whole picture, if the packet contains it: in key frames.
    package var resolution: VideoResolution?
}

/// Parses video payloads as far as forwarding needs it.
package enum VideoPayload {
    /// Describes one packet.
    /// - Parameters:
    ///   - payload: without padding; an empty one (a probe) is refused.
    ///   - marker: the marker bit of the RTP header.
    ///   - dependencyDescriptor: from the header extension, if there is one. It takes precedence for layers: when
    ///     Chromium sends it, VP8's own descriptor has only its first byte.
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
            // The payload shows only OBUs that begin in this packet.
            info.startsFrame = dependencyDescriptor.startsFrame
            info.endsFrame = dependencyDescriptor.endsFrame || marker
            info.isKeyFrame = dependencyDescriptor.isKeyFrame
            info.startsKeyFrame = dependencyDescriptor.startsKeyFrame
        }
        guard dependencyDescriptor.hasLayers else { return info }
        info.spatialLayer = dependencyDescriptor.spatialLayer
        info.temporalLayer = dependencyDescriptor.temporalLayer
        if codec == .av1 {
            // In modes with spatial layers, those of one picture may be in different temporal layers
            // (`L2T2_KEY_SHIFT`).
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
    /// A codec that is decoded here but never forwarded.
    package static var unforwardedCodec: Self { .init("video.unforwardedCodec") }
}
