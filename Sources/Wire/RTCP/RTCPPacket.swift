/// One packet of a compound RTCP datagram.
/// - Source: RFC 3550 §6, RFC 4585 §6, RFC 5104 §4.3, RFC 3611, RFC 8888 §3; draft-alvestrand-rmcat-remb-03;
///   draft-holmer-rmcat-transport-wide-cc-extensions-01.
package enum RTCPPacket: Equatable, Sendable {
    case senderReport(SenderReport)
    case receiverReport(ReceiverReport)
    case sourceDescription(SourceDescription)
    case bye(Goodbye)
    case nack(NegativeAcknowledgement)
    case pictureLossIndication(PictureLossIndication)
    case fullIntraRequest(FullIntraRequest)
    case receiverEstimatedMaximumBitrate(ReceiverEstimatedMaximumBitrate)
    case transportFeedback(TransportFeedback)
    case congestionControlFeedback(CongestionControlFeedback)
    case extendedReport(ExtendedReport)
    /// A packet that is not understood.
    case unknown(UnknownRTCPPacket)

    /// Most packets read from one datagram; the rest is ignored.
    package static let maximumPerCompound = 64

    /// Parses a decrypted compound or reduced-size datagram.
    ///
    /// The framing must be valid for the whole datagram; a packet of an unknown type or with a malformed body
    /// becomes `.unknown`, and the others still count. Deviates from RFC 3550 §A.2, as receivers of reduced-size
    /// RTCP must (RFC 5506 §3.4.2): the first packet may be of any type, and padding may occur in any packet.
    package static func parseCompound(_ datagram: Span<UInt8>) throws(WireError) -> [RTCPPacket] {
        try datagram.require(RTCPFrame.headerLength)
        var packets: [RTCPPacket] = []
        var offset = 0
        while offset < datagram.count {
            let frame = try RTCPFrame(in: datagram, at: offset)
            if packets.count < maximumPerCompound { packets.append(RTCPPacket(frame, in: datagram)) }
            offset = frame.end
        }
        return packets
    }

    private init(_ frame: RTCPFrame, in datagram: Span<UInt8>) {
        do throws(WireError) {
            let body = datagram.extracting(frame.body)
            self = try Self.known(frame, body) ?? .unknown(UnknownRTCPPacket(frame, error: nil))
        } catch {
            self = .unknown(UnknownRTCPPacket(frame, error: error))
        }
    }

    private static func known(_ frame: RTCPFrame, _ body: Span<UInt8>) throws(WireError) -> RTCPPacket? {
        let count = Int(frame.countOrFormat)
        switch (frame.packetType, frame.countOrFormat) {
        case (RTCPFrame.senderReport, _): return .senderReport(try SenderReport(body, count: count))
        case (RTCPFrame.receiverReport, _): return .receiverReport(try ReceiverReport(body, count: count))
        case (RTCPFrame.sourceDescription, _):
            return .sourceDescription(try SourceDescription(body, count: count))
        case (RTCPFrame.goodbye, _): return .bye(try Goodbye(body, count: count))
        case (RTCPFrame.transportSpecificFeedback, NegativeAcknowledgement.format):
            return .nack(try NegativeAcknowledgement(body))
        case (RTCPFrame.transportSpecificFeedback, TransportFeedback.format):
            return .transportFeedback(try TransportFeedback(body))
        case (RTCPFrame.transportSpecificFeedback, CongestionControlFeedback.format):
            return .congestionControlFeedback(try CongestionControlFeedback(body))
        case (RTCPFrame.payloadSpecificFeedback, PictureLossIndication.format):
            return .pictureLossIndication(try PictureLossIndication(body))
        case (RTCPFrame.payloadSpecificFeedback, FullIntraRequest.format):
            return .fullIntraRequest(try FullIntraRequest(body))
        case (RTCPFrame.payloadSpecificFeedback, ReceiverEstimatedMaximumBitrate.format):
            return try ReceiverEstimatedMaximumBitrate(body).map { .receiverEstimatedMaximumBitrate($0) }
        case (RTCPFrame.extendedReport, _): return .extendedReport(try ExtendedReport(body))
        default: return nil
        }
    }

    /// Appends the RTCP packet; several in a row form a compound packet.
    ///
    /// `.unknown` appends nothing.
    package func append(to bytes: inout [UInt8]) {
        switch self {
        case .senderReport(let packet): packet.append(to: &bytes)
        case .receiverReport(let packet): packet.append(to: &bytes)
        case .sourceDescription(let packet): packet.append(to: &bytes)
        case .bye(let packet): packet.append(to: &bytes)
        case .nack(let packet): packet.append(to: &bytes)
        case .pictureLossIndication(let packet): packet.append(to: &bytes)
        case .fullIntraRequest(let packet): packet.append(to: &bytes)
        case .receiverEstimatedMaximumBitrate(let packet): packet.append(to: &bytes)
        case .transportFeedback(let packet): packet.append(to: &bytes)
        case .congestionControlFeedback(let packet): packet.append(to: &bytes)
        case .extendedReport(let packet): packet.append(to: &bytes)
        case .unknown: break
        }
    }
}

/// What remains of a packet that was not understood.
package struct UnknownRTCPPacket: Equatable, Sendable {
    /// As registered for RTCP, such as 204 (APP).
    package var packetType: UInt8
    /// The feedback message type, or the count, depending on the packet type; 5 bits.
    package var countOrFormat: UInt8
    /// Why a packet of a known type could not be parsed; `nil` if the type is unknown.
    package var error: WireError?

    fileprivate init(_ frame: RTCPFrame, error: WireError?) {
        packetType = frame.packetType
        countOrFormat = frame.countOrFormat
        self.error = error
    }
}
