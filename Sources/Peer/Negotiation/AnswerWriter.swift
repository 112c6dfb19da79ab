import Base
import Wire

/// Writes an SDP answer, one m-line after the other.
///
/// - Source: RFC 9429 §5.3.1.
struct AnswerWriter {
    private let offer: SessionOffer
    private let transport: LocalTransport
    private let policy: NegotiationPolicy
    /// The mids of accepted m-lines.
    private let bundle: [String]
    private var media: [MediaDescription] = []

    init(offer: SessionOffer, transport: LocalTransport, policy: NegotiationPolicy, bundle: [String]) {
        self.offer = offer
        self.transport = transport
        self.policy = policy
        self.bundle = bundle
    }

    /// Repeats the m-line with port 0; Firefox requires a `c=` line even there.
    mutating func appendRejected(_ offered: OfferedMedia) {
        var section = MediaDescription(
            media: offered.description.media, port: 0, transport: offered.description.transport,
            formats: offered.description.formats)
        section.fields = [.noAddress]
        section.append(.mid, offered.mid)
        section.append(.init(MediaDirection.inactive.rawValue))
        media.append(section)
    }

    /// Appends an accepted audio or video m-line.
    /// - Parameter slot: the identifiers under which we send on it; nil if it only publishes.
    mutating func append(_ line: NegotiatedLine, _ slot: SlotIdentifiers.Slot?) {
        let formats = line.formats.flatMap { $0.payloadTypes.map(String.init) }
        var section = MediaDescription(
            media: line.offered.description.media, port: 9, transport: line.offered.description.transport,
            formats: formats)
        section.fields = [.noAddress] + (line.publishes && line.kind == .video ? policy.bandwidthFields : [])
        appendTransport(to: &section)
        section.append(.mid, line.offered.mid)
        for map in line.extensions {
            let answered = ExtensionMap(id: map.id, direction: map.direction?.reversed, uri: map.uri)
            section.append(.extmap, answered.text)
        }
        section.append(.init(line.direction.rawValue))
        if let slot { section.append(.msid, slot.msid.text) }
        section.append(.rtcpMux)
        if line.offered.description.allowsReducedSizeRTCP { section.append(.rtcpReducedSize) }
        // Reference times are answered, and requested, where the client offers them (RFC 3611 §5.1).
        if line.offered.description.first(.rtcpXR) == Self.roundTripTimes {
            section.append(.rtcpXR, Self.roundTripTimes)
        }
        for format in line.formats { append(format, of: line, to: &section) }
        if line.feedback.contains(.congestionControl) {
            let kind = OfferedFormat.FeedbackKinds.congestionControlName
            section.append(.rtcpFeedback, RTCPFeedback(payloadType: nil, kind: kind).text)
        }
        if let slot { append(slot, to: &section) }
        append(line.layers, to: &section)
        media.append(section)
    }

    /// Appends the m-line of data channels.
    /// - Source: RFC 8841 §10.3.
    mutating func appendDataChannels(_ offered: OfferedMedia) {
        var section = DataChannelPlan.section(answering: offered.description)
        appendTransport(to: &section)
        section.append(.mid, offered.mid)
        DataChannelPlan.appendLimits(to: &section)
        media.append(section)
    }

    private static let roundTripTimes = "rcvr-rtt=all"

    /// Repeats the transport attributes and the candidates in every m-line.
    ///
    /// Deviates from RFC 9143 §7.3.1, which has candidates only in the first m-line of a BUNDLE, because aiortc
    /// uses those of the last one; clients that follow the RFC ignore the copies.
    private func appendTransport(to section: inout MediaDescription) {
        for candidate in transport.candidates { section.append(.candidate, candidate.text) }
        section.append(.endOfCandidates)
        section.append(transport.credentials)
        section.append(.fingerprint, transport.fingerprint.text)
        section.append(.setup, (offer.isPassive ? SetupRole.active : .passive).rawValue)
    }

    private func append(_ item: OfferedFormat, of line: NegotiatedLine, to section: inout MediaDescription) {
        section.append(.rtpmap, item.map.text)
        let feedback = line.feedback(of: item)
        for (kind, name) in OfferedFormat.FeedbackKinds.names where feedback.contains(kind) {
            section.append(.rtcpFeedback, RTCPFeedback(payloadType: item.format.payloadType, kind: name).text)
        }
        var parameters = item.answeredParameters(sends: line.receives)
        if line.publishes && line.kind == .video { parameters += policy.bitrateParameters }
        if !parameters.isEmpty {
            let text = FormatParameters(payloadType: item.format.payloadType, parameters: parameters).text
            section.append(.fmtp, text)
        }
        if let redundancy = item.format.redundancyPayloadType {
            var map = item.map
            map.payloadType = redundancy
            map.encoding = "red"
            section.append(.rtpmap, map.text)
            section.append(.fmtp, "\(redundancy) \(item.format.payloadType)/\(item.format.payloadType)")
        }
        guard let repair = item.format.repairPayloadType else { return }
        let map = RTPMap(payloadType: repair, encoding: "rtx", clockRate: item.map.clockRate)
        section.append(.rtpmap, map.text)
        section.append(.fmtp, "\(repair) apt=\(item.format.payloadType)")
    }

    /// Appends the SSRCs of a slot: Firefox drops packets of an RTX SSRC that the answer does not contain.
    private func append(_ slot: SlotIdentifiers.Slot, to section: inout MediaDescription) {
        let ssrcs = [slot.ssrc] + (slot.repairSSRC.map { [$0] } ?? [])
        if ssrcs.count == 2 { section.append(.ssrcGroup, SourceGroup(semantics: "FID", ssrcs: ssrcs).text) }
        for ssrc in ssrcs {
            section.append(.ssrc, SourceAttribute(ssrc: ssrc, name: "cname", value: slot.cname).text)
            section.append(.ssrc, SourceAttribute(ssrc: ssrc, name: "msid", value: slot.msid.text).text)
        }
    }

    private func append(_ layers: [StreamRestriction], to section: inout MediaDescription) {
        guard !layers.isEmpty else { return }
        for layer in layers { section.append(.rid, layer.text) }
        section.append(.simulcast, Simulcast(receive: layers.map { [.init($0.id)] }).text)
    }

    /// Completes the description with its session-level attributes.
    /// - Parameter isMixed: whether `a=extmap-allow-mixed` was offered.
    func finish(sessionID: UInt64, isMixed: Bool) -> SessionDescription {
        var description = SessionDescription(origin: "- \(sessionID) 1 IN IP4 0.0.0.0", media: media)
        if offer.bundle != nil {
            description.append(.group, MediaGroup(semantics: "BUNDLE", mids: bundle).text)
        }
        if isMixed { description.append(.extmapAllowMixed) }
        description.append(.msidSemantic, "WMS *")
        description.append(.iceLite)
        let options = ["ice2", "trickle"].filter(offer.iceOptions.contains)
        if !options.isEmpty { description.append(.iceOptions, options.joined(separator: " ")) }
        return description
    }
}

extension SDPField {
    /// The placeholder for addresses, which ICE provides.
    static var noAddress: SDPField { SDPField(UInt8(ascii: "c"), "IN IP4 0.0.0.0") }
}

extension SDPAttribute.Name {
    static var rtcpXR: Self { .init("rtcp-xr") }
}
