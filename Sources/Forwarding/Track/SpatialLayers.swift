import Base
import Peer
import Wire

/// The spatial layers (SVC) of a source: their sizes, and what each of them takes.
///
/// Known where the source tells the size of each, as VP9 does with key frames, and AV1 where it has dependency
/// descriptors; of other sources there are none. At most eight, by the format.
/// - Source: RFC 9628 §4.2.1 (scalability structure); RTP Payload Format for AV1, appendix A.8.3 (`resolutions`).
struct SpatialLayers {
    /// Without a packet for so long, while others come, a layer is not sent.
    private static let silence = Duration.seconds(1)

    private struct Layer {
        var rate = RateMeter()
        var lastArrival = MonotonicTime.zero
    }

    /// The smallest first; none where there is nothing to choose.
    private(set) var sizes: [VideoResolution] = []
    /// Whether dependency descriptors tell of them, as of AV1's.
    private(set) var areDescribed = false
    private var layers: [Layer] = []
    /// The packet that told the sizes: one that comes late tells nothing of what is sent now.
    private var toldBy = Int64.min

    var isEmpty: Bool { sizes.isEmpty }

    /// The highest of which packets come.
    ///
    /// The others are left out by the source, which tells nobody where its own link takes no more.
    var top: Int {
        guard let newest = layers.map(\.lastArrival).max() else { return 0 }
        return layers.lastIndex { newest < $0.lastArrival + Self.silence } ?? 0
    }

    /// Takes notice of a packet, for the first time.
    ///
    /// - Parameter bytes: all of the packet.
    /// - Returns: whether there are others to choose from than before.
    mutating func note(_ packet: MediaPacket, _ bytes: Span<UInt8>, at now: MonotonicTime) -> Bool {
        if case .vp9(let descriptor) = packet.descriptor {
            areDescribed = false
            var isNew = false
            if descriptor.spatialLayerCount != nil {
                let payload = bytes.extracting(packet.header.payloadRange)
                let told = try? descriptor.spatialResolutions(in: payload)
                isNew = setSizes(told ?? [], by: packet)
            }
            count(bytes.count, of: descriptor.spatialLayer, at: now)
            return isNew
        }
        guard packet.codec == .av1, let dependency = packet.dependency, dependency.hasLayers else {
            return false
        }
        if dependency.attachedStructure != nil { areDescribed = true }
        let isNew = dependency.attachedStructure.map { setSizes($0.resolutions, by: packet) } ?? false
        count(bytes.count, of: dependency.spatialLayer, at: now)
        return isNew
    }

    private mutating func count(_ size: Int, of layer: UInt8, at now: MonotonicTime) {
        let index = Int(layer)
        guard layers.indices.contains(index) else { return }
        layers[index].rate.add(size, at: now)
        layers[index].lastArrival = now
    }

    private mutating func setSizes(_ told: [VideoResolution], by packet: MediaPacket) -> Bool {
        guard packet.sequenceNumber >= toldBy else { return false }
        toldBy = packet.sequenceNumber
        let new = told.count > 1 ? told : []
        guard new != sizes else { return false }
        sizes = new
        while layers.count > new.count { layers.removeLast() }
        while layers.count < new.count { layers.append(Layer()) }
        return true
    }

    /// The best that is not higher than somebody shows; where all are, the least.
    /// - Parameter isThinned: whether the least will do.
    func best(_ choice: LayerChoice, isThinned: Bool) -> Int {
        guard !choice.isLeast, !isThinned else { return 0 }
        guard let maximum = choice.maximumHeight else { return max(sizes.count - 1, 0) }
        // A picture on its side is as high as it is wide.
        return sizes.lastIndex { min($0.width, $0.height) <= maximum } ?? 0
    }

    /// Of a layer with all below it, in bits a second over about the last second.
    mutating func bitrate(upTo layer: Int, at now: MonotonicTime) -> Int {
        var sum = 0
        for index in layers.indices where index <= layer { sum += layers[index].rate.bitrate(at: now) }
        return sum
    }
}

extension TrackLayer {
    /// In pixels, of what is sent to those who get no higher spatial layer.
    /// - Parameter spatial: nil where there is nothing to choose.
    func resolution(upTo spatial: Int?) -> VideoResolution? {
        guard let spatial, self.spatial.sizes.indices.contains(spatial) else { return resolution }
        return self.spatial.sizes[spatial]
    }

    /// The same in bits a second.
    func bitrate(upTo spatial: Int?, at now: MonotonicTime) -> Int {
        guard let spatial, spatial < self.spatial.top else { return bitrate(at: now) }
        return self.spatial.bitrate(upTo: spatial, at: now)
    }

    /// Of what a slot is to be sent of it.
    func bitrate(for slot: Slot, at now: MonotonicTime) -> Int {
        let target = slot.spatialTarget(of: self)
        return bitrate(upTo: target == .max ? nil : Int(target), at: now)
    }
}
