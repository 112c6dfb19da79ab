import ClientPeer
import Peer
import Wire

/// RTCP of simulated clients.
extension ClientConnection {
    private static let packer = ControlPacker(localSSRC: 1, canonicalName: "simulated", reducedSize: true)

    func sendReports(
        senders: [SenderReport], receptions: [ReportBlock], into sink: inout CollectingSink
    ) {
        for bytes in Self.packer.reports(senders: senders, receptions: receptions) {
            sendControl(bytes, into: &sink)
        }
    }

    func sendFeedback(_ packets: [RTCPPacket], into sink: inout CollectingSink) {
        guard !packets.isEmpty else { return }
        for bytes in Self.packer.feedback(packets) { sendControl(bytes, into: &sink) }
    }

    /// What a datagram says; nothing where it cannot be read.
    func controlPackets(in datagram: [UInt8]) -> [RTCPPacket] {
        var bytes = datagram
        var span = bytes.mutableSpan
        guard let length = try? unprotectControl(&span) else { return [] }
        return (try? RTCPPacket.parseCompound(Array(bytes[..<length]).span)) ?? []
    }
}
