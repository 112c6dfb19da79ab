import Base
import Forwarding
import Transcoder

/// Passes a rendition's packets from the transcoder's thread to the worker of the track, without the node's actor.
final class RenditionOutlet: Sendable {
    private let inlet: InjectionInlet
    /// Receives all other events of the job, on the transcoder's thread; must not block.
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
    /// The bitrates that workers assume when they choose among layers.
    static let usual = RenditionSettings(
        bitrate: RenditionLayer.low.bitrate, lowerLayerShare: RenditionLayer.lowerShare,
        stillsBitrate: RenditionLayer.stills.bitrate)
}
