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

    init(_ packet: MediaPacket, at now: MonotonicTime) {
        sequenceNumber = packet.sequenceNumber
        timestamp = packet.header.timestamp
        marker = packet.header.marker
        codec = packet.codec
        startsKeyFrame = packet.codec.isVideo && packet.isEntryPoint
        payload = packet.header.payloadRange
        passedOn = packet.passedOn
        descriptor = packet.descriptor
        pictures = packet.pictures
        isVerbatim = !packet.descriptor.hasShortPictureID
        captured = packet.captured
        arrival = now
    }
}
