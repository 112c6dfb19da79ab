// Fuzz entry of video payloads: every codec reads every packet, and descriptors survive being written.
// Seeds: RTP/*.rtp.hex

import Wire

func fuzzVideo(_ packet: Span<UInt8>) {
    guard let header = try? RTPHeader(parsing: packet) else { return }
    let payload = packet.extracting(header.payloadRange)
    _ = try? OpusPayload.duration(payload)
    rewriteVP8(payload)
    rewriteVP9(payload)
    readAV1(payload)

    var descriptors: [DependencyDescriptor?] = [nil]
    var structure: DependencyStructure?
    var cursor = RTPExtensionCursor(header)
    while let element = cursor.next(in: packet) {
        let value = packet.extracting(element.range)
        guard let descriptor = try? DependencyDescriptor(parsing: value, structure: structure) else {
            continue
        }
        structure = descriptor.attachedStructure ?? structure
        descriptors.append(descriptor)
        limit(value, descriptor)
    }
    for codec in [VideoCodec.vp8, .vp9, .h264, .av1] {
        for descriptor in descriptors {
            guard
                let info = try? VideoPayload.describe(
                    codec, payload: payload, marker: header.marker, dependencyDescriptor: descriptor)
            else { continue }
            guard info.isKeyFrame || !info.startsKeyFrame, info.startsFrame || !info.startsKeyFrame,
                info.endsFrame || !header.marker, info.spatialLayer < 8, info.temporalLayer < 8
            else { fatalError("\(codec) contradicts itself: \(info)") }
        }
    }
}

private func limit(_ value: Span<UInt8>, _ descriptor: DependencyDescriptor) {
    guard let limited = DependencyDescriptor.limiting(value, toSpatialLayer: 1) else { return }
    guard let again = try? DependencyDescriptor(parsing: limited.span, structure: nil),
        again.attachedStructure == descriptor.attachedStructure,
        again.frameNumber == descriptor.frameNumber, again.isIndependent == descriptor.isIndependent
    else { fatalError("\(descriptor) does not survive being limited") }
}

private func readAV1(_ payload: Span<UInt8>) {
    guard let header = try? AV1SequenceHeader(parsing: payload) else { return }
    let (size, depth) = (header.resolution, header.samples?.bitDepth ?? 8)
    guard header.profile < 8, header.level < 32, header.level > 7 || !header.isHighTier,
        (1...65_536).contains(size.width), (1...65_536).contains(size.height), [8, 10, 12].contains(depth),
        depth < 12 || header.profile == 2
    else { fatalError("no sequence header says so: \(header)") }
}

private func rewriteVP8(_ payload: Span<UInt8>) {
    guard var descriptor = try? VP8Descriptor(parsing: payload) else { return }
    descriptor.pictureID = 0x1234
    var buffer = [UInt8](repeating: 0, count: VP8Descriptor.maximumLength + 1)
    var span = buffer.mutableSpan
    guard let length = try? descriptor.write(into: &span, at: 0),
        let again = try? VP8Descriptor(parsing: buffer.span), again.length == length,
        again.pictureID == 0x1234, again.tl0PictureIndex == descriptor.tl0PictureIndex,
        again.temporalLayer == descriptor.temporalLayer, again.keyIndex == descriptor.keyIndex,
        again.startsFrame == descriptor.startsFrame
    else { fatalError("\(descriptor) does not survive being written") }
}

private func rewriteVP9(_ payload: Span<UInt8>) {
    guard let descriptor = try? VP9Descriptor(parsing: payload) else { return }
    guard let sizes = try? descriptor.spatialResolutions(in: payload) ?? [],
        sizes.isEmpty || sizes.count == descriptor.spatialLayerCount && sizes.last == descriptor.resolution
    else { fatalError("\(descriptor) does not know its sizes") }
    var buffer = [UInt8](repeating: 0, count: descriptor.length + 3)
    var span = buffer.mutableSpan
    guard
        let length = try? descriptor.write(
            pictureID: 0x1234, tl0PictureIndex: 7, copying: payload, into: &span, at: 0),
        let again = try? VP9Descriptor(parsing: buffer.span), again.length == length,
        again.pictureID == 0x1234, again.tl0PictureIndex == (descriptor.tl0PictureIndex == nil ? nil : 7),
        again.spatialLayer == descriptor.spatialLayer, again.temporalLayer == descriptor.temporalLayer,
        again.resolution == descriptor.resolution, again.startsFrame == descriptor.startsFrame
    else { fatalError("\(descriptor) does not survive being written") }
}
