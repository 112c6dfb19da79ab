import ClientPeer
import Peer
import Wire

/// Watches a VP9 or AV1 stream with spatial layers as a decoder would, and complains of what would freeze or break a
/// picture.
///
/// A picture counts when all its packets are there, in the order of their numbers, back to a key frame.
/// - Source: RFC 9628 §4.1 (marker), §4.2; RTP Payload Format for AV1 §4.2, appendix A.
struct SpatialDecoder {
    /// What no decoder should ever see.
    enum Complaint: Equatable {
        /// A picture goes on behind the marker bit, or another begins without it.
        case wrongMarker
        /// A layer begins or ends somewhere within itself, or one between is not there.
        case brokenLayer(Int)
        /// A layer needs pictures of it that were left out.
        case layerWithoutPast(Int)
        /// A picture needs others that were left out; for AV1, pictures are counted by layer.
        case pictureIDJump(from: UInt16, to: UInt16)
        /// A key frame of AV1 promises layers that do not come, or does not tell of those that do.
        case wrongDecodeTargets(UInt32)
        case unreadable
    }

    /// What a decoder needs to know of a packet.
    private struct Part {
        var marker: Bool
        var timestamp: UInt32
        var layer = 0
        var startsLayer = false
        var endsLayer = false
        var isKeyFrame = false
        /// The number of the picture, or with AV1 of its layer.
        var number: UInt16?
        /// By how much the number grows from a picture to the next one.
        var step: UInt16 = 1
        /// Of AV1's key frames.
        var activeTargets: UInt32?
    }

    private(set) var framesDecoded = 0
    private(set) var keyFramesDecoded = 0
    private(set) var complaints: [Complaint] = []
    /// Size of the latest picture, in pixels.
    private(set) var height: Int?
    /// Whether there has to be a key frame before anything more is shown.
    private(set) var isWaitingForKeyFrame = true

    private var parts: [Int64: Part] = [:]
    private var next: Int64?
    private var picture: [Part] = []
    private var sizes: [VideoResolution] = []
    private var structure: DependencyStructure?
    private var lastTop = 0
    private var lastNumber: UInt16?

    /// - Parameters:
    ///   - header: of the packet as it came, perhaps as RTX.
    ///   - bytes: all of it.
    mutating func receive(
        _ packet: ReceivingTrack.Packet, _ header: RTPHeader, in bytes: [UInt8], _ ids: ExtensionIDs
    ) {
        let sequenceNumber = packet.sequenceNumber
        if let next, sequenceNumber < next { return }
        guard !packet.payload.isEmpty else {
            // It fills a place.
            if next == sequenceNumber { next = sequenceNumber + 1 }
            return advance()
        }
        var part = Part(marker: packet.header.marker, timestamp: packet.header.timestamp)
        do {
            if packet.codec == .av1 {
                guard let id = ids.dependencyDescriptor,
                    let range = header.extensionRange(id: id, in: bytes.span)
                else { throw WireError.truncated }
                try read(DependencyDescriptor(parsing: Array(bytes[range]).span, structure: structure), &part)
            } else {
                try read(VP9Descriptor(parsing: packet.payload.span), packet.payload, &part)
            }
        } catch {
            complaints.append(.unreadable)
            return
        }
        parts[sequenceNumber] = part
        if next == nil, part.isKeyFrame, part.startsLayer { next = sequenceNumber }
        advance()
        skipIfStuck()
    }

    private mutating func read(_ descriptor: VP9Descriptor, _ payload: [UInt8], _ part: inout Part) throws {
        if let told = try descriptor.spatialResolutions(in: payload.span) { sizes = told }
        (part.layer, part.number) = (Int(descriptor.spatialLayer), descriptor.pictureID)
        (part.startsLayer, part.endsLayer) = (descriptor.startsFrame, descriptor.endsFrame)
        part.isKeyFrame = descriptor.spatialLayer == 0 && !descriptor.isInterPredicted
    }

    private mutating func read(_ descriptor: DependencyDescriptor, _ part: inout Part) throws {
        if let attached = descriptor.attachedStructure {
            structure = attached
            sizes = attached.resolutions
            part.activeTargets = descriptor.activeDecodeTargets
        }
        guard descriptor.hasLayers else { throw WireError.truncated }
        (part.layer, part.number) = (Int(descriptor.spatialLayer), descriptor.frameNumber)
        (part.startsLayer, part.endsLayer) = (descriptor.startsFrame, descriptor.endsFrame)
        part.isKeyFrame = descriptor.isKeyFrame
        part.step = UInt16(descriptor.spatialLayerCount)
    }

    /// A later key picture that is there is better than an earlier picture that is not.
    private mutating func skipIfStuck() {
        guard let first = next, parts.count > 1 else { return }
        let later = parts.filter { $0.key > first && $0.value.isKeyFrame && $0.value.startsLayer }.keys.max()
        guard let later, isWhole(from: later) else { return }
        parts = parts.filter { $0.key >= later }
        picture = []
        isWaitingForKeyFrame = true
        next = later
        advance()
    }

    /// Whether a picture that begins with a packet is there up to its marker bit.
    private func isWhole(from first: Int64) -> Bool {
        var number = first
        while let part = parts[number] {
            if part.marker { return true }
            number += 1
        }
        return false
    }

    private mutating func advance() {
        while let number = next, let part = parts.removeValue(forKey: number) {
            next = number + 1
            if let first = picture.first, first.timestamp != part.timestamp {
                complaints.append(.wrongMarker)
                picture = []
            }
            picture.append(part)
            guard part.marker else { continue }
            show()
            picture = []
        }
    }

    private mutating func show() {
        guard let first = picture.first, let top = picture.last?.layer, let number = first.number else {
            return
        }
        let isKeyFrame = first.isKeyFrame && first.startsLayer
        guard isKeyFrame || !isWaitingForKeyFrame else { return }
        for layer in 0...top {
            let own = picture.filter { $0.layer == layer }
            guard own.first?.startsLayer == true, own.last?.endsLayer == true,
                own.dropFirst().allSatisfy({ !$0.startsLayer })
            else {
                // Its beginning may have been shown already.
                complaints.append(number == lastNumber ? .wrongMarker : .brokenLayer(layer))
                return
            }
        }
        if !isKeyFrame, top > lastTop { complaints.append(.layerWithoutPast(top)) }
        if !isKeyFrame, let lastNumber, (number &- lastNumber &- first.step) & 0x7FFF != 0 {
            complaints.append(.pictureIDJump(from: lastNumber, to: number))
        }
        // No mode has decode targets here but one for each spatial layer.
        if let active = first.activeTargets, active != (1 << UInt32(top + 1)) - 1 {
            complaints.append(.wrongDecodeTargets(active))
        }
        isWaitingForKeyFrame = false
        framesDecoded += 1
        if isKeyFrame { keyFramesDecoded += 1 }
        (lastTop, lastNumber) = (top, number)
        height = sizes.indices.contains(top) ? sizes[top].height : nil
    }
}
