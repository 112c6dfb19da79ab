import Base
import Peer
import Wire

/// One slot from the client's point of view: requests lost packets by NACK, and returns media in the original packets'
/// form.
package struct ReceivingTrack {
    /// The slot's RTP stream, which never changes.
    package let source: ClientPlan.RemoteSource
    /// The slot's negotiated m-line.
    package let line: ClientPlan.Line
    /// Statistics of losses and jitter, and the source of reports.
    package private(set) var stream: ReceiveStream
    /// Relates the slot's time stamps to the server's clock; nil before the first sender report.
    package private(set) var lastReport: SenderReport?

    /// A packet in its original form, whether it arrived as itself or as RTX.
    package struct Packet {
        /// The original packet's header, even if it arrived as RTX.
        package let header: RTPHeader
        /// Of this packet; a slot may change its codec.
        package let codec: MediaCodec
        /// Without padding.
        package let payload: [UInt8]
        /// Extended beyond 16 bits.
        package let sequenceNumber: Int64
        /// Whether it arrived as RTX.
        package let isRepaired: Bool
    }

    /// - Returns: nil for an m-line on which the server sends nothing.
    package init?(line: ClientPlan.Line) {
        guard let source = line.remote else { return nil }
        self.line = line
        self.source = source
        stream = ReceiveStream(
            ssrc: source.ssrc, clockRate: line.kind == .video ? 90_000 : 48_000,
            repair: line.kind == .video ? .packetsAndKeyFrames : .packets)
    }

    /// Whether an SSRC is that of the slot's media or of its retransmissions.
    package func takes(ssrc: UInt32) -> Bool {
        ssrc == source.ssrc || ssrc == source.repairSSRC
    }

    /// Handles a decrypted packet of this slot.
    /// - Returns: nil for duplicates, for RTX packets with padding alone, and for payload types that were not
    ///   negotiated.
    package mutating func receive(_ bytes: Span<UInt8>, at now: MonotonicTime) throws(WireError) -> Packet? {
        var header = try RTPHeader(parsing: bytes)
        let isRepair = header.ssrc == source.repairSSRC
        if isRepair {
            guard let format = line.formats.first(where: { $0.repairPayloadType == header.payloadType }),
                let original = try Retransmission.original(
                    of: header, in: bytes, payloadType: format.payloadType, ssrc: source.ssrc)
            else { return nil }
            header = original
        }
        guard let format = line.formats.first(where: { $0.payloadType == header.payloadType }) else {
            return nil
        }
        let payload = try bytes.bytes(header.payloadRange)
        var startsKeyFrame = false
        if let video = format.codec.video, !payload.isEmpty {
            let info = try? VideoPayload.describe(video, payload: payload.span, marker: header.marker)
            startsKeyFrame = info?.startsKeyFrame ?? false
        }
        let arrival = stream.receive(
            sequenceNumber: header.sequenceNumber, timestamp: header.timestamp, size: bytes.count,
            origin: isRepair ? .retransmission : .original, startsKeyFrame: startsKeyFrame, at: now)
        switch arrival {
        case .new(let index):
            return Packet(
                header: header, codec: format.codec, payload: payload, sequenceNumber: index,
                isRepaired: false)
        case .repaired(let index):
            return Packet(
                header: header, codec: format.codec, payload: payload, sequenceNumber: index, isRepaired: true
            )
        case .duplicate, .tooOld: return nil
        }
    }

    /// Records the relation to the sender's clock, for reports and lip sync.
    package mutating func receive(_ report: SenderReport, at now: MonotonicTime) {
        guard report.ssrc == source.ssrc, stream.receive(report, at: now) else { return }
        lastReport = report
    }

    /// NACKs and requests for key frames that are due.
    package mutating func feedback(from sender: UInt32, rtt: Duration?, at now: MonotonicTime) -> [RTCPPacket]
    {
        var packets: [RTCPPacket] = []
        var lost: [UInt16] = []
        stream.nacksDue(at: now, rtt: rtt, into: &lost)
        if !lost.isEmpty {
            packets.append(.nack(.init(senderSSRC: sender, mediaSSRC: source.ssrc, lost: lost)))
        }
        if stream.takeKeyFrameDemand() {
            packets.append(.pictureLossIndication(.init(senderSSRC: sender, mediaSSRC: source.ssrc)))
        }
        return packets
    }

    /// The block for the next receiver report; nil before the first packet.
    package mutating func reportBlock(at now: MonotonicTime) -> ReportBlock? {
        stream.reportBlock(at: now)
    }

    /// When `feedback` must be called next.
    package var deadline: MonotonicTime? { stream.deadline }
}
