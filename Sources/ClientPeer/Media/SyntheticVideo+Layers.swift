import Wire

/// VP9 or AV1 pictures in several spatial layers.
///
/// - Source: RFC 9628 §4.2, §4.2.1.
extension SyntheticVideo.Settings {
    /// Size of a spatial layer in pixels.
    package func size(ofLayer layer: Int) -> VideoResolution {
        let shift = max(spatialLayers - 1 - layer, 0)
        return VideoResolution(width: width >> shift, height: height >> shift)
    }

    /// The share of one spatial layer in a picture's bytes: each layer has three times as many as the one below.
    fileprivate func share(_ size: Int, ofLayer layer: Int) -> Int {
        var (weight, sum) = (1, 0)
        var own = 1
        for index in 0..<spatialLayers {
            if index == layer { own = weight }
            sum += weight
            weight *= 3
        }
        return size * own / sum
    }
}

extension SyntheticVideo {
    /// The packets of all layers of the current picture, the smallest layer first.
    func layeredPackets(size: Int, isKeyFrame: Bool, stamp: UInt64) -> [Packet] {
        var packets: [Packet] = []
        for layer in 0..<settings.spatialLayers {
            let size = settings.share(size, ofLayer: layer)
            let count = max((size + settings.maximumPayload - 1) / settings.maximumPayload, 1)
            for index in 0..<count {
                let (isFirst, isLast) = (index == 0, index == count - 1)
                var payload: [UInt8]
                var dependencies: [UInt8] = []
                if settings.layeredCodec == .av1 {
                    payload = av1Payload(
                        ofLayer: layer, isKeyFrame: isKeyFrame, isFirst: isFirst, isLast: isLast)
                    dependencies = dependencyDescriptor(
                        ofLayer: layer, isKeyFrame: isKeyFrame, isFirst: isFirst, isLast: isLast)
                } else {
                    payload = descriptor(
                        ofLayer: layer, isKeyFrame: isKeyFrame, isFirst: isFirst, isLast: isLast)
                    // The header of a VP9 key frame with its sync code, or the first byte of another frame's.
                    if isFirst { payload += isKeyFrame ? [0x82, 0x49, 0x83, 0x42] : [0x86] }
                }
                payload.append(bigEndian: stamp)
                payload.append(bigEndian: frameNumber)
                payload.append(bigEndian: UInt16(truncatingIfNeeded: index))
                let length = max(size / count, payload.count)
                payload.append(repeating: UInt8(layer), count: length - payload.count)
                packets.append(
                    Packet(
                        payload: payload, dependencyDescriptor: dependencies,
                        marker: layer == settings.spatialLayers - 1 && isLast, isKeyFrame: isKeyFrame,
                        timestamp: timestamp))
            }
        }
        return packets
    }

    /// A VP9 payload descriptor, with the scalability structure in the first packet of a key picture.
    private func descriptor(ofLayer layer: Int, isKeyFrame: Bool, isFirst: Bool, isLast: Bool) -> [UInt8] {
        let tellsSizes = isKeyFrame && isFirst && layer == 0
        // The bits I, P, L, B, E and V; picture ID; SID and D; TL0PICIDX.
        var bytes: [UInt8] = [
            0xA0 | (isKeyFrame ? 0 : 0x40) | (isFirst ? 0x08 : 0) | (isLast ? 0x04 : 0)
                | (tellsSizes ? 0x02 : 0)
        ]
        bytes.append(bigEndian: pictureID | 0x8000)
        bytes += [UInt8(layer) << 1 | (isKeyFrame && layer > 0 ? 1 : 0), lowestIndex]
        guard tellsSizes else { return bytes }
        bytes.append(UInt8(settings.spatialLayers - 1) << 5 | 0x10)
        for layer in 0..<settings.spatialLayers {
            let size = settings.size(ofLayer: layer)
            bytes.append(bigEndian: UInt16(truncatingIfNeeded: size.width))
            bytes.append(bigEndian: UInt16(truncatingIfNeeded: size.height))
        }
        return bytes
    }
}
