import Base
import Peer
import Wire

/// The spatial layers (SVC) of a source: their sizes and bit rates.
///
/// They are known for sources that send the size of each layer: VP9 with key frames, and AV1 with dependency
/// descriptors. Other sources have none. The formats allow at most eight.
/// - Source: RFC 9628 §4.2.1 (scalability structure); RTP Payload Format for AV1, appendix A.8.3 (`resolutions`).
struct SpatialLayers {
    /// Time without a packet after which a layer counts as not sent, while packets of others arrive.
    private static let silence = Duration.seconds(1)

    private struct Layer {
        var rate = RateMeter()
        var lastArrival = MonotonicTime.zero
    }

    /// Sizes in ascending order; empty if there is nothing to choose.
    private(set) var sizes: [VideoResolution] = []
    /// Whether they come from dependency descriptors, as for AV1.
    private(set) var areDescribed = false
    private var layers: [Layer] = []
    /// Sequence number of the packet with the sizes; an older one that arrives late is ignored.
    private var toldBy = Int64.min

    var isEmpty: Bool { sizes.isEmpty }

    /// The highest layer that is being received.
    ///
    /// A source drops higher layers without notice when its own link cannot carry more.
    var top: Int {
        guard let newest = layers.map(\.lastArrival).max() else { return 0 }
        return layers.lastIndex { newest < $0.lastArrival + Self.silence } ?? 0
    }

    /// Processes a packet that arrived for the first time.
    ///
    /// - Parameter bytes: the whole packet.
    /// - Returns: whether the choice of layers has changed.
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

    /// The best layer within the allowed height; if all are higher, the lowest.
    /// - Parameter isThinned: whether the lowest layer suffices.
    func best(_ choice: LayerChoice, isThinned: Bool) -> Int {
        guard !choice.isLeast, !isThinned else { return 0 }
        guard let maximum = choice.maximumHeight else { return max(sizes.count - 1, 0) }
        // The shorter side counts, so that a rotated picture is treated like an upright one.
        return sizes.lastIndex { min($0.width, $0.height) <= maximum } ?? 0
    }

    /// Bit rate of a layer with all below it, in bits a second over about the last second.
    mutating func bitrate(upTo layer: Int, at now: MonotonicTime) -> Int {
        var sum = 0
        for index in layers.indices where index <= layer { sum += layers[index].rate.bitrate(at: now) }
        return sum
    }
}

extension TrackLayer {
    /// The size of what is sent up to a spatial layer, in pixels.
    /// - Parameter spatial: nil where there is nothing to choose.
    func resolution(upTo spatial: Int?) -> VideoResolution? {
        guard let spatial, self.spatial.sizes.indices.contains(spatial) else { return resolution }
        return self.spatial.sizes[spatial]
    }

    /// The bit rate of what is sent up to a spatial layer, in bits a second.
    func bitrate(upTo spatial: Int?, at now: MonotonicTime) -> Int {
        guard let spatial, spatial < self.spatial.top else { return bitrate(at: now) }
        return self.spatial.bitrate(upTo: spatial, at: now)
    }

    /// The bit rate of what a slot should be sent, in bits a second.
    func bitrate(for slot: Slot, at now: MonotonicTime) -> Int {
        let target = slot.spatialTarget(of: self)
        return bitrate(upTo: target == .max ? nil : Int(target), at: now)
    }
}
