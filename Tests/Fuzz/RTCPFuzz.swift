// Fuzz entry of RTCP: what parses is bounded by its length and means the same when written and read again.
// Seeds: RTP/*.rtcp.hex

import Wire

func fuzzRTCP(_ datagram: Span<UInt8>) {
    guard let packets = try? RTCPPacket.parseCompound(datagram) else { return }
    guard packets.count <= RTCPPacket.maximumPerCompound else { fatalError("too many packets") }
    for packet in packets {
        if case .transportFeedback(let feedback) = packet {
            guard feedback.arrivals.count <= min(datagram.count, feedback.statusCount) else {
                fatalError("more arrivals than bytes")
            }
        }
        if case .congestionControlFeedback(let feedback) = packet {
            let metrics = feedback.streams.reduce(0) { $0 + $1.metrics.count }
            guard 8 * feedback.streams.count + 2 * metrics <= datagram.count else {
                fatalError("more packets than bytes")
            }
        }
        guard let once = rewritten(packet) else { continue }
        guard isComparable(packet) else { continue }
        guard once == packet else { fatalError("\(packet) becomes \(once)") }
    }
}

/// Written and read again; `nil` for what is never written.
private func rewritten(_ packet: RTCPPacket) -> RTCPPacket? {
    var bytes: [UInt8] = []
    packet.append(to: &bytes)
    if case .unknown = packet { return nil }
    guard let packets = try? RTCPPacket.parseCompound(bytes.span), packets.count == 1 else {
        fatalError("\(packet) does not survive being written")
    }
    return packets[0]
}

/// Whether nothing in the packet is mended on the way: text that is no UTF-8, unknown blocks, no limit, and
/// sequence numbers that a NACK names twice.
private func isComparable(_ packet: RTCPPacket) -> Bool {
    switch packet {
    case .sourceDescription, .nack: false
    case .bye(let goodbye): goodbye.reason == nil
    case .receiverEstimatedMaximumBitrate(let estimate): estimate.bitrate != .max
    case .extendedReport(let report):
        report.blocks.allSatisfy { if case .unknown = $0 { false } else { true } }
    default: true
    }
}
