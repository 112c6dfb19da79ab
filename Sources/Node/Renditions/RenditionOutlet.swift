import Base
import Forwarding
import Transcoder

/// Stands between the transcoder's thread and the worker that has the track.
final class RenditionOutlet: Sendable {
    private let inlet: InjectionInlet
    private let tell: @Sendable (RenditionDesk.Event) -> Void

    init(_ inlet: InjectionInlet, tell: @escaping @Sendable (RenditionDesk.Event) -> Void) {
        self.inlet = inlet
        self.tell = tell
    }

    func take(_ event: TranscoderSupervisor.JobEvent) {
        switch event {
        case .packet(let packet):
            var packets = InjectedPackets()
            packets.append(
                packet.bytes.span, source: 0, layer: Int(packet.layer), captured: packet.captured)
            inlet.send(packets)
        case .report(let bytes): if let status = RenditionStatus(bytes) { tell(.status(status)) }
        case .keyFrameWanted(let input): tell(.keyFrameWanted(input))
        case .lost, .ended: tell(.lost)
        }
    }
}

extension RenditionSettings {
    /// As workers count on it when they choose among layers.
    static let usual = RenditionSettings(
        bitrate: RenditionLayer.low.bitrate, lowerLayerShare: RenditionLayer.lowerShare,
        stillsBitrate: RenditionLayer.stills.bitrate)
}
