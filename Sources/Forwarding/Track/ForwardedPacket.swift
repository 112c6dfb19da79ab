import Base
import Peer
import Wire

/// What slots need of a packet that is sent on: a `MediaPacket` without what only its layer needs.
///
/// Holds no reference, so that reading it for a viewer counts none.
struct ForwardedPacket {
    /// Extended, as the source counts.
    let sequenceNumber: Int64
    let timestamp: UInt32
    let marker: Bool
    let codec: MediaCodec
    let startsKeyFrame: Bool
    let layers: LayerPlace
    /// Within the packet.
    let payload: Range<Int>
    let passedOn: PassedExtensions
    let descriptor: PayloadDescriptor
    let pictures: PictureNumbers
    /// Whether the payload can be sent as it is where picture numbers stay as they are.
    let isVerbatim: Bool
    /// When the media was captured, on our clock, if that is known.
    var captured: MonotonicTime?
    /// When the packet came.
    var arrival: MonotonicTime
    /// Where it lies in the layer's history, which may move it; empty if it is no longer there.
    var place = 0..<0
    /// Bytes behind the payload that the history holds for it, so that packets are equally long (RFC 3550 §5.1).
    var padding = 0
    /// Whether it may get any: the publisher's own is taken off, and what lies there is no longer needed.
    let isPaddable: Bool

    /// - Parameter layers: as they were known when the packet came; nil for what it tells now.
    init(_ packet: MediaPacket, layers: LayerPlace? = nil, at now: MonotonicTime) {
        sequenceNumber = packet.sequenceNumber
        timestamp = packet.header.timestamp
        marker = packet.header.marker
        codec = packet.codec
        startsKeyFrame = packet.codec.isVideo && packet.isEntryPoint
        self.layers = layers ?? LayerPlace(packet)
        payload = packet.header.payloadRange
        passedOn = packet.passedOn
        descriptor = packet.descriptor
        pictures = packet.pictures
        isVerbatim = !packet.descriptor.hasShortPictureID
        captured = packet.captured
        arrival = now
        isPaddable = packet.header.paddingLength == 0 && !packet.header.payloadRange.isEmpty
    }
}

/// Where a packet stands among the temporal and spatial layers of its source; in the lowest, if it has none.
struct LayerPlace: Equatable {
    /// 0 is the lowest frame rate.
    var temporal: UInt8 = 0
    /// 0 is the smallest picture; 0 for all packets of a codec whose spatial layers cannot be left out.
    var spatial: UInt8 = 0
    /// Whether what there is of the picture in this spatial layer ends with this packet.
    var endsSpatialLayer = false
    /// Whether a picture begins with this packet, with all its spatial layers.
    var startsPicture = false
    /// Whether who got only lower layers may get this one from here on.
    var isSwitchingPoint = false
    /// Whether who got no higher layers than this one may get all that follow.
    var opensHigherLayers = false

    init() {}

    init(_ packet: MediaPacket) {
        guard let video = packet.video else { return }
        temporal = video.temporalLayer
        if case .vp9(let descriptor) = packet.descriptor {
            spatial = descriptor.spatialLayer
            endsSpatialLayer = descriptor.endsFrame
        } else if packet.codec == .av1, packet.dependency?.hasLayers == true {
            // Without the dependency descriptor a packet tells its layer only where a unit begins in it.
            spatial = video.spatialLayer
            endsSpatialLayer = video.endsFrame
        }
        startsPicture = video.startsFrame && video.spatialLayer == 0
        isSwitchingPoint = video.isTemporalSwitchingPoint && video.temporalLayer > 0
        opensHigherLayers = video.opensHigherTemporalLayers
    }

    /// As it was kept with a packet.
    init(code: UInt16) {
        spatial = UInt8(code & 0x07)
        temporal = UInt8(code >> 3 & 0x07)
        endsSpatialLayer = code & 0x40 != 0
        startsPicture = code & 0x80 != 0
        isSwitchingPoint = code & 0x100 != 0
        opensHigherLayers = code & 0x200 != 0
    }

    /// All of it in little, to be kept with the packet: what tells it may be another by the time it is sent again.
    var code: UInt16 {
        UInt16(spatial & 0x07) | UInt16(temporal & 0x07) << 3 | (endsSpatialLayer ? 0x40 : 0)
            | (startsPicture ? 0x80 : 0) | (isSwitchingPoint ? 0x100 : 0) | (opensHigherLayers ? 0x200 : 0)
    }

    /// Whether higher temporal layers can be left out and later be taken in again.
    var tellsWhereToSwitch: Bool { isSwitchingPoint || opensHigherLayers }
}

extension ForwardedPacket {
    /// Bytes of payload and of the header extensions that are passed on, as most viewers get them.
    fileprivate var size: Int {
        let elements =
            Self.length(passedOn.dependencyDescriptor) + Self.length(passedOn.absoluteCaptureTime)
            + Self.length(passedOn.playoutDelay) + Self.length(passedOn.videoOrientation)
            + Self.length(passedOn.audioLevel)
        return payload.count + (elements > 0 ? 4 + (elements + 3) & ~3 : 0)
    }

    /// Of an element with its header.
    private static func length(_ value: Range<Int>?) -> Int { value.map { $0.count + 1 } ?? 0 }
}

/// Makes packets that leave together equally long, where little is missing.
///
/// The kernel cuts a message into pieces of one size, of which only the last may be smaller. An encoder splits a frame
/// into packets that differ by a byte, or by the header extensions of the first and the last.
/// - Source: RFC 3550 §5.1 (padding); udp(7), UDP_SEGMENT.
enum Equalizer {
    /// Calls `pad` with the number of each packet that needs padding, and notes what it decides.
    static func equalize(_ packets: inout [ForwardedPacket], _ pad: (Int64, Int) -> Int) {
        var start = 0
        while start < packets.count {
            var (low, high) = (packets[start].size, packets[start].size)
            var end = start + 1
            while end < packets.count {
                let size = packets[end].size
                guard max(high, size) - min(low, size) <= PacketHistory.spare else { break }
                (low, high) = (min(low, size), max(high, size))
                end += 1
            }
            for index in start..<end {
                let wanted = packets[index].isPaddable && end - start > 1 ? high - packets[index].size : 0
                packets[index].padding = pad(packets[index].sequenceNumber, wanted)
            }
            start = end
        }
    }
}
