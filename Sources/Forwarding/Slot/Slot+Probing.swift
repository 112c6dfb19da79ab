import Base
import Crypto
import Peer
import Wire

/// Probing: sends more than the receiver needs, to find out whether its path can carry more.
extension Slot {
    /// Number of recent packets that one probe repeats; this also repairs those that were lost.
    private static let latest = 64
    /// Length of a padding packet's payload, in bytes; its last byte contains this count (RFC 3550 §5.1).
    private static let padding = 255

    /// Whether it can send packets that the receiver does not mistake for media, which takes RTX.
    var canProbe: Bool {
        session.path != nil && plan.kind == .video && plan.repairSSRC != nil && repairFormat != nil
            && connection.remoteAddress != nil
    }

    private var repairFormat: UInt8? {
        (format ?? plan.formats.first)?.repairPayloadType
    }

    /// Sends one packet of a probe: recent packets again, from the newest back, then padding.
    /// - Parameter index: number of the probe's packets sent so far.
    /// - Returns: number of bytes sent; 0 if none could be.
    func sendProbePacket(
        _ index: Int, of probe: UInt8, at now: MonotonicTime, into sink: inout some DatagramSink & ~Copyable
    ) -> Int {
        let number = UInt16(truncatingIfNeeded: timeline.nextSequence &- 1 &- Int64(index))
        if index < Self.latest, !isStopped,
            let (segment, sequence, outgoing) = timeline.origin(of: number),
            segment.mapping.epoch == segment.source.epoch,
            let range = segment.source.history.range(of: sequence)
        {
            let length = resend(segment, sequence, outgoing, range, probe: probe, at: now, into: &sink)
            if length > 0 { return length }
        }
        return sendPadding(of: probe, at: now, into: &sink)
    }

    /// Sends an RTX packet of padding alone, which repeats nothing.
    private func sendPadding(
        of probe: UInt8, at now: MonotonicTime, into sink: inout some DatagramSink & ~Copyable
    ) -> Int {
        guard let address = connection.remoteAddress, let ssrc = plan.repairSSRC,
            let payloadType = repairFormat
        else { return 0 }
        let index = repairIndex
        repairIndex &+= 1
        var length = 0
        do {
            try sink.append(to: address, capacity: Self.maximumDatagram) { buffer throws(SlotError) in
                do {
                    var writer = try RTPHeaderWriter(
                        marker: false, hasPadding: true, payloadType: payloadType,
                        sequenceNumber: UInt16(truncatingIfNeeded: index), timestamp: 0, ssrc: ssrc,
                        into: &buffer)
                    if let path, let id = plan.extensions.transportSequenceNumber {
                        try writer.append(
                            id: id, UInt64(path.packets.nextNumber), length: 2, into: &buffer)
                    }
                    if let id = plan.extensions.absoluteSendTime {
                        try writer.append(
                            id: id, UInt64(AbsoluteSendTime.value(at: now)), length: AbsoluteSendTime.length,
                            into: &buffer)
                    }
                    if let id = plan.extensions.mid {
                        let mid = mid
                        try writer.append(id: id, copying: mid.span, 0..<mid.count, into: &buffer)
                    }
                    let headerLength = try writer.finish(into: &buffer)
                    let end = headerLength + Self.padding
                    for place in headerLength..<(end - 1) { try buffer.store(UInt8(0), at: place) }
                    try buffer.store(UInt8(Self.padding), at: end - 1)
                    let nothing: [UInt8] = []
                    length = try connection.encrypt(
                        &buffer, headerLength: headerLength, prefixLength: Self.padding, body: nothing.span,
                        index: UInt64(bitPattern: index)
                    ).complete(&buffer)
                    return length
                } catch {
                    throw SlotError()
                }
            }
        } catch {
            return 0
        }
        noteRepair(index, of: length, probe: probe, at: now)
        return length
    }
}
