import Wire

/// Watches a VP9 stream with spatial layers as a decoder would, and complains of what would freeze or break a picture.
///
/// A picture counts when all its packets are there, in the order of their numbers, back to a key frame.
/// - Source: RFC 9628 §4.1 (marker), §4.2.
struct SpatialDecoder {
    /// What no decoder should ever see.
    enum Complaint: Equatable {
        /// A picture goes on behind the marker bit, or another begins without it.
        case wrongMarker
        /// A layer begins or ends somewhere within itself, or one between is not there.
        case brokenLayer(Int)
        /// A layer needs pictures of it that were left out.
        case layerWithoutPast(Int)
        /// What needs earlier pictures follows on pictures that were left out.
        case pictureIDJump(from: UInt16, to: UInt16)
        case unreadable
    }

    private(set) var framesDecoded = 0
    private(set) var keyFramesDecoded = 0
    private(set) var complaints: [Complaint] = []
    /// Of the latest picture, in pixels.
    private(set) var height: Int?
    /// Whether there has to be a key frame before anything more is shown.
    private(set) var isWaitingForKeyFrame = true

    private var packets: [Int64: (header: RTPHeader, descriptor: VP9Descriptor)] = [:]
    private var next: Int64?
    private var picture: [(header: RTPHeader, descriptor: VP9Descriptor)] = []
    private var sizes: [VideoResolution] = []
    private var lastTop = 0
    private var lastID: UInt16?

    mutating func receive(_ header: RTPHeader, payload: [UInt8], sequenceNumber: Int64) {
        if let next, sequenceNumber < next { return }
        guard !payload.isEmpty else {
            // It fills a place.
            if next == sequenceNumber { next = sequenceNumber + 1 }
            return advance()
        }
        guard let descriptor = try? VP9Descriptor(parsing: payload.span) else {
            complaints.append(.unreadable)
            return
        }
        if let told = try? descriptor.spatialResolutions(in: payload.span) { sizes = told }
        packets[sequenceNumber] = (header, descriptor)
        if next == nil, beginsKeyFrame(descriptor) { next = sequenceNumber }
        advance()
        skipIfStuck()
    }

    /// A later key picture that is there is better than an earlier picture that is not.
    private mutating func skipIfStuck() {
        guard let first = next, packets.count > 1 else { return }
        let later = packets.filter { $0.key > first && beginsKeyFrame($0.value.descriptor) }.keys.max()
        guard let later, isWhole(from: later) else { return }
        packets = packets.filter { $0.key >= later }
        picture = []
        isWaitingForKeyFrame = true
        next = later
        advance()
    }

    /// Whether a picture that begins with a packet is there up to its marker bit.
    private func isWhole(from first: Int64) -> Bool {
        var number = first
        while let packet = packets[number] {
            if packet.header.marker { return true }
            number += 1
        }
        return false
    }

    private func beginsKeyFrame(_ descriptor: VP9Descriptor) -> Bool {
        descriptor.startsFrame && descriptor.spatialLayer == 0 && !descriptor.isInterPredicted
    }

    private mutating func advance() {
        while let number = next, let packet = packets.removeValue(forKey: number) {
            next = number + 1
            if let first = picture.first, first.header.timestamp != packet.header.timestamp {
                complaints.append(.wrongMarker)
                picture = []
            }
            picture.append(packet)
            guard packet.header.marker else { continue }
            show()
            picture = []
        }
    }

    private mutating func show() {
        guard let first = picture.first, let top = picture.last.map({ Int($0.descriptor.spatialLayer) }),
            let pictureID = first.descriptor.pictureID
        else { return }
        let isKeyFrame = beginsKeyFrame(first.descriptor)
        guard isKeyFrame || !isWaitingForKeyFrame else { return }
        for layer in 0...top {
            let own = picture.filter { $0.descriptor.spatialLayer == layer }
            guard own.first?.descriptor.startsFrame == true, own.last?.descriptor.endsFrame == true,
                own.dropFirst().allSatisfy({ !$0.descriptor.startsFrame })
            else {
                // Its beginning may have been shown already.
                complaints.append(pictureID == lastID ? .wrongMarker : .brokenLayer(layer))
                return
            }
        }
        if !isKeyFrame, top > lastTop { complaints.append(.layerWithoutPast(top)) }
        if !isKeyFrame, let lastID, (pictureID &- lastID) & 0x7FFF != 1 {
            complaints.append(.pictureIDJump(from: lastID, to: pictureID))
        }
        isWaitingForKeyFrame = false
        framesDecoded += 1
        if isKeyFrame { keyFramesDecoded += 1 }
        (lastTop, lastID) = (top, pictureID)
        height = sizes.indices.contains(top) ? sizes[top].height : nil
    }
}
