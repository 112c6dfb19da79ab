import Base
import Crypto
import Peer
import Wire

/// One RTP stream that a client sends: numbers its packets, keeps the latest, and answers NACKs by RTX.
package struct SendingTrack {
    /// SSRC of the media; RTX has its own.
    package let ssrc: UInt32
    /// The negotiated m-line.
    package let line: ClientPlan.Line
    private let encoding: ClientOffer.Encoding
    private let format: MediaFormat
    /// 48-bit index of the next media packet, whose low 16 bits are its sequence number.
    private var nextIndex: UInt64
    /// The same for RTX, which is an RTP stream of its own.
    private var nextRepairIndex: UInt64
    /// A ring, indexed by packet index.
    private var kept: [Kept]
    private var stream: SendStream

    /// A packet that can be sent again.
    private struct Kept {
        var index: UInt64 = .max
        var payload: [UInt8] = []
        var timestamp: UInt32 = 0
        var marker = false
        var dependencyDescriptor: [UInt8] = []
    }

    private static let keptPackets = 512
    /// Packets at the start that carry MID and RID, by which the server learns the SSRC.
    private static let introductions = 60

    /// - Returns: nil if the server accepts no codec of this m-line.
    package init?(
        line: ClientPlan.Line, encoding: ClientOffer.Encoding, using random: inout some RandomNumberGenerator
    ) {
        guard let format = line.formats.first else { return nil }
        self.line = line
        self.encoding = encoding
        self.format = format
        ssrc = encoding.ssrc
        // Below 2^15, as RFC 3711 §3.3.1 recommends.
        nextIndex = UInt64.random(in: 1...0x7FFF, using: &random)
        nextRepairIndex = UInt64.random(in: 1...0x7FFF, using: &random)
        kept = Array(repeating: Kept(), count: Self.keptPackets)
        stream = SendStream(ssrc: encoding.ssrc, clockRate: format.codec.clockRate)
    }

    /// The payload type of redundant blocks (RFC 2198); nil if the server does not accept RED.
    package var redundantBlocks: UInt8? { format.redundancyPayloadType.map { _ in format.payloadType } }

    /// Media packets, without retransmissions.
    package var packetsSent: UInt64 { stream.packetCount }

    /// Sends one packet.
    ///
    /// - Parameters:
    ///   - transport: the connection's transport-wide counter (draft-holmer-rmcat-transport-wide-cc).
    ///   - audioLevel: -dBov of RFC 6464; nil to send none.
    ///   - dependencyDescriptor: of the packet; sent if the server accepts the extension.
    ///   - captured: the capture time of the media; nil for now.
    ///   - isRedundant: whether the payload contains blocks of earlier audio (RFC 2198), which the server must accept.
    package mutating func send(
        _ payload: [UInt8], timestamp: UInt32, marker: Bool, audioLevel: UInt8? = nil,
        dependencyDescriptor: [UInt8] = [], captured: MonotonicTime? = nil, isRedundant: Bool = false,
        transport: inout UInt16,
        at now: MonotonicTime, over connection: ClientConnection,
        into sink: inout some DatagramSink & ~Copyable
    ) throws(SRTPError) {
        let index = nextIndex
        nextIndex += 1
        kept[Int(index % UInt64(Self.keptPackets))] = Kept(
            index: index, payload: payload, timestamp: timestamp, marker: marker,
            dependencyDescriptor: dependencyDescriptor)
        stream.sent(payloadSize: payload.count, timestamp: timestamp, captured: captured ?? now, at: now)
        let introduces = stream.packetCount <= UInt64(Self.introductions)
        try write(
            payload, index: index,
            payloadType: (isRedundant ? format.redundancyPayloadType : nil) ?? format.payloadType, ssrc: ssrc,
            timestamp: timestamp,
            marker: marker, audioLevel: audioLevel, dependencyDescriptor: dependencyDescriptor,
            rid: introduces ? (line.extensions.rtpStreamID, encoding.rid) : nil, introduces: introduces,
            transport: &transport, over: connection, into: &sink)
    }

    /// Answers a NACK with the packets that are still kept.
    package mutating func resend(
        _ lost: [UInt16], transport: inout UInt16, over connection: ClientConnection,
        into sink: inout some DatagramSink & ~Copyable
    ) throws(SRTPError) {
        guard let repairSSRC = encoding.repairSSRC, let payloadType = format.repairPayloadType else { return }
        for number in lost {
            let behind = UInt64(UInt16(truncatingIfNeeded: nextIndex &- 1) &- number)
            guard behind < nextIndex else { continue }
            let original = nextIndex &- 1 &- behind
            let packet = kept[Int(original % UInt64(Self.keptPackets))]
            guard packet.index == original else { continue }
            var payload: [UInt8] = []
            payload.append(bigEndian: number)
            payload += packet.payload
            let index = nextRepairIndex
            nextRepairIndex += 1
            try write(
                payload, index: index, payloadType: payloadType, ssrc: repairSSRC,
                timestamp: packet.timestamp,
                marker: packet.marker, dependencyDescriptor: packet.dependencyDescriptor,
                rid: (line.extensions.repairedRTPStreamID, encoding.rid),
                introduces: true,
                transport: &transport, over: connection, into: &sink)
        }
    }

    private func write(
        _ payload: [UInt8], index: UInt64, payloadType: UInt8, ssrc: UInt32, timestamp: UInt32, marker: Bool,
        audioLevel: UInt8? = nil, dependencyDescriptor: [UInt8] = [], rid: (id: UInt8?, name: String?)?,
        introduces: Bool,
        transport: inout UInt16,
        over connection: ClientConnection, into sink: inout some DatagramSink & ~Copyable
    ) throws(SRTPError) {
        let number = transport
        transport &+= 1
        try connection.send(payload: payload.span, index: index, into: &sink) { buffer throws(WireError) in
            var writer = try RTPHeaderWriter(
                marker: marker, payloadType: payloadType, sequenceNumber: UInt16(truncatingIfNeeded: index),
                timestamp: timestamp, ssrc: ssrc, into: &buffer)
            // The longest first: an extension that needs the two-byte form makes the writer convert all extensions
            // before it.
            if !dependencyDescriptor.isEmpty, let id = line.extensions.dependencyDescriptor {
                try writer.append(
                    id: id, copying: dependencyDescriptor.span, 0..<dependencyDescriptor.count, into: &buffer)
            }
            if let id = line.extensions.transportSequenceNumber {
                try writer.append(id: id, UInt64(number), length: 2, into: &buffer)
            }
            if let audioLevel, let id = line.extensions.audioLevel {
                try writer.append(id: id, UInt64(audioLevel & 0x7F), length: 1, into: &buffer)
            }
            if introduces, let id = line.extensions.mid {
                let mid = Array(line.mid.utf8)
                try writer.append(id: id, copying: mid.span, 0..<mid.count, into: &buffer)
            }
            if let id = rid?.id, let name = rid?.name {
                let rid = Array(name.utf8)
                try writer.append(id: id, copying: rid.span, 0..<rid.count, into: &buffer)
            }
            return try writer.finish(into: &buffer)
        }
    }

    /// A sender report; nil before the first packet.
    package func report(at now: MonotonicTime, clock: WallClock) -> SenderReport? {
        stream.senderReport(at: now, clock: clock)
    }
}
