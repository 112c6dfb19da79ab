import Base
import Crypto
import Peer
import Wire

/// One RTP stream that a client sends: numbers its packets, keeps the last of them, and answers NACKs by RTX.
package struct SendingTrack {
    /// Of the media; RTX has its own.
    package let ssrc: UInt32
    /// The m-line, as it was agreed.
    package let line: ClientPlan.Line
    private let encoding: ClientOffer.Encoding
    private let format: MediaFormat
    /// 48-bit packet indices of media and of RTX.
    private var nextIndex: UInt64
    private var nextRepairIndex: UInt64
    private var kept: [Kept]
    private var stream: SendStream

    private struct Kept {
        var index: UInt64 = .max
        var payload: [UInt8] = []
        var timestamp: UInt32 = 0
        var marker = false
        var dependencyDescriptor: [UInt8] = []
    }

    private static let keptPackets = 512
    /// Packets that carry MID and RID, until the server knows the SSRC.
    private static let introductions = 60

    /// - Returns: nil if the server took no codec of this m-line.
    package init?(
        line: ClientPlan.Line, encoding: ClientOffer.Encoding, using random: inout some RandomNumberGenerator
    ) {
        guard let format = line.formats.first else { return nil }
        self.line = line
        self.encoding = encoding
        self.format = format
        ssrc = encoding.ssrc
        // Below 2^15, as RFC 3711 §3.3.1 advises.
        nextIndex = UInt64.random(in: 1...0x7FFF, using: &random)
        nextRepairIndex = UInt64.random(in: 1...0x7FFF, using: &random)
        kept = Array(repeating: Kept(), count: Self.keptPackets)
        stream = SendStream(ssrc: encoding.ssrc, clockRate: format.codec.clockRate)
    }

    /// What blocks of earlier sound are called (RFC 2198); nil where the server does not take them.
    package var redundantBlocks: UInt8? { format.redundancyPayloadType.map { _ in format.payloadType } }

    /// Of media, without retransmissions.
    package var packetsSent: UInt64 { stream.packetCount }

    /// Sends one packet.
    ///
    /// - Parameters:
    ///   - transport: the connection's transport-wide counter (RFC draft-holmer-rmcat-transport-wide-cc).
    ///   - audioLevel: -dBov of RFC 6464; nil to say nothing.
    ///   - dependencyDescriptor: of the packet; sent where the server takes it.
    ///   - captured: when the media was; nil for now.
    ///   - isRedundant: the payload has blocks of earlier sound in it (RFC 2198), which the server has to take.
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

    /// Answers a NACK as far as the packets are kept.
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
            // Longest first: one that needs the two-byte form moves all that stand before it.
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

    /// The sender report that is due; nil before the first packet.
    package func report(at now: MonotonicTime, clock: WallClock) -> SenderReport? {
        stream.senderReport(at: now, clock: clock)
    }
}
