import Base
import Peer
import Wire

/// What slots need to know of a forwarded packet: a `MediaPacket` without what only its layer needs.
///
/// It holds no reference, so that reading it for a viewer does no reference counting.
struct ForwardedPacket {
    /// The source's sequence number, extended beyond 16 bits.
    let sequenceNumber: Int64
    let timestamp: UInt32
    let marker: Bool
    let codec: MediaCodec
    let startsKeyFrame: Bool
    let layers: LayerPlace
    /// The payload's place in the packet.
    let payload: Range<Int>
    let passedOn: PassedExtensions
    let descriptor: PayloadDescriptor
    let pictures: PictureNumbers
    /// Whether the payload can be copied unchanged if its picture numbers stay the same.
    let isVerbatim: Bool
    /// When the media was captured, on the server's clock; nil while unknown.
    var captured: MonotonicTime?
    /// When the packet arrived.
    var arrival: MonotonicTime
    /// Its place in the layer's history, which may move it; empty if it is no longer there.
    var place = 0..<0
    /// Number of padding bytes behind the payload in the history, which make packets equally long (RFC 3550 §5.1).
    var padding = 0
    /// Whether it may be padded: only packets with a payload, and without padding by the publisher, which was
    /// removed.
    let isPaddable: Bool

    /// - Parameter layers: the layers determined when the packet arrived; nil to derive them from the packet now.
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

/// A packet's temporal and spatial layer; the lowest if its source has none.
struct LayerPlace: Equatable {
    /// 0 is the lowest frame rate.
    var temporal: UInt8 = 0
    /// 0 is the smallest picture; 0 for all packets of a codec whose spatial layers cannot be dropped.
    var spatial: UInt8 = 0
    /// Whether the picture's part in this spatial layer ends with this packet.
    var endsSpatialLayer = false
    /// Whether a picture, with all its spatial layers, begins with this packet.
    var startsPicture = false
    /// Whether a receiver of only lower temporal layers may get this one from here on.
    var isSwitchingPoint = false
    /// Whether a receiver of this temporal layer may get all higher ones from here on.
    var opensHigherLayers = false

    init() {}

    init(_ packet: MediaPacket) {
        guard let video = packet.video else { return }
        temporal = video.temporalLayer
        if case .vp9(let descriptor) = packet.descriptor {
            spatial = descriptor.spatialLayer
            endsSpatialLayer = descriptor.endsFrame
        } else if packet.codec == .av1, packet.dependency?.hasLayers == true {
            // Without the dependency descriptor a packet contains its layer only if a unit begins in it.
            spatial = video.spatialLayer
            endsSpatialLayer = video.endsFrame
        }
        startsPicture = video.startsFrame && video.spatialLayer == 0
        isSwitchingPoint = video.isTemporalSwitchingPoint && video.temporalLayer > 0
        opensHigherLayers = video.opensHigherTemporalLayers
    }

    /// Decodes the value stored with a packet.
    init(code: UInt16) {
        spatial = UInt8(code & 0x07)
        temporal = UInt8(code >> 3 & 0x07)
        endsSpatialLayer = code & 0x40 != 0
        startsPicture = code & 0x80 != 0
        isSwitchingPoint = code & 0x100 != 0
        opensHigherLayers = code & 0x200 != 0
    }

    /// A compact form that is stored with the packet, because the structure it was derived from may have changed by
    /// the time the packet is sent again.
    var code: UInt16 {
        UInt16(spatial & 0x07) | UInt16(temporal & 0x07) << 3 | (endsSpatialLayer ? 0x40 : 0)
            | (startsPicture ? 0x80 : 0) | (isSwitchingPoint ? 0x100 : 0) | (opensHigherLayers ? 0x200 : 0)
    }

    /// Whether it marks where higher temporal layers can be resumed.
    var tellsWhereToSwitch: Bool { isSwitchingPoint || opensHigherLayers }
}

extension ForwardedPacket {
    /// Size of payload and forwarded header extensions in bytes, as most viewers get them.
    fileprivate var size: Int {
        let elements =
            Self.length(passedOn.dependencyDescriptor) + Self.length(passedOn.absoluteCaptureTime)
            + Self.length(passedOn.playoutDelay) + Self.length(passedOn.videoOrientation)
            + Self.length(passedOn.audioLevel)
        return payload.count + (elements > 0 ? 4 + (elements + 3) & ~3 : 0)
    }

    /// Length of an extension element with its header.
    private static func length(_ value: Range<Int>?) -> Int { value.map { $0.count + 1 } ?? 0 }
}

/// Pads packets that are sent together to one length, if they differ by little.
///
/// The kernel splits a message into datagrams of one size, of which only the last may be shorter. But an encoder
/// splits a frame into packets that differ by a byte, or by the header extensions of the first and the last.
/// - Source: RFC 3550 §5.1 (padding); udp(7), UDP_SEGMENT.
enum Equalizer {
    /// Calls `pad` with each packet's sequence number and wanted padding, and stores the padding that `pad` returns.
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
