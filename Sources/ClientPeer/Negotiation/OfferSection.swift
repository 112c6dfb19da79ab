import Base
import Peer
import Wire

/// Writes one m-line of a client's offer.
struct OfferSection {
    private(set) var media: MediaDescription
    private let line: ClientOffer.Line

    /// A codec with Chrome's payload types.
    private struct Codec {
        var family: MediaCodec.Family
        var map: RTPMap
        var repair: UInt8?
        var parameters: String?

        static let opus = Codec(
            family: .opus, map: RTPMap(payloadType: 111, encoding: "opus", clockRate: 48_000, channels: 2),
            parameters: "minptime=10;useinbandfec=1")

        static let video = [
            Codec(family: .vp8, map: RTPMap(payloadType: 96, encoding: "VP8", clockRate: 90_000), repair: 97),
            Codec(
                family: .h264, map: RTPMap(payloadType: 108, encoding: "H264", clockRate: 90_000),
                repair: 109,
                parameters: "level-asymmetry-allowed=1;packetization-mode=1;profile-level-id=42e01f"),
            Codec(
                family: .av1, map: RTPMap(payloadType: 45, encoding: "AV1", clockRate: 90_000), repair: 46,
                parameters: "level-idx=5;profile=0;tier=0"),
            Codec(
                family: .vp9, map: RTPMap(payloadType: 98, encoding: "VP9", clockRate: 90_000), repair: 99,
                parameters: "profile-id=0"),
        ]
    }

    /// - Parameter feedback: the congestion feedback to offer.
    init(_ request: ClientOffer.Request, _ line: ClientOffer.Line, feedback: ClientOffer.Feedback) {
        self.line = line
        guard request != .dataChannels else {
            media = DataChannelPlan.section(answering: nil)
            media.append(.mid, line.mid)
            DataChannelPlan.appendLimits(to: &media)
            return
        }
        let codecs: [Codec]
        switch request {
        case .publishAudio, .playAudio: codecs = [.opus]
        case .publishVideo(let family, _): codecs = Codec.video.filter { $0.family == family }
        case .playVideo: codecs = Codec.video
        case .dataChannels: codecs = []
        }
        let formats = codecs.flatMap { codec in
            [String(codec.map.payloadType)] + (codec.repair.map { [String($0)] } ?? [])
        }
        media = MediaDescription(
            media: line.type.rawValue, port: 9, transport: "UDP/TLS/RTP/SAVPF", formats: formats)
        media.fields = [SDPField(UInt8(ascii: "c"), "IN IP4 0.0.0.0")]
        media.append(.mid, line.mid)
        appendExtensions(feedback)
        media.append(.init(line.direction.rawValue))
        media.append(.rtcpMux)
        media.append(.rtcpReducedSize)
        for codec in codecs { append(codec, feedback) }
        guard feedback == .congestionControl else { return }
        media.append(.rtcpFeedback, RTCPFeedback(payloadType: nil, kind: "ack ccfb").text)
    }

    private mutating func append(_ codec: Codec, _ feedback: ClientOffer.Feedback) {
        media.append(.rtpmap, codec.map.text)
        var kinds: [String] = []
        switch feedback {
        case .transportWide: kinds = ["transport-cc"]
        case .receiverEstimate: kinds = ["goog-remb"]
        case .congestionControl: break
        }
        if line.type == .video { kinds += ["ccm fir", "nack", "nack pli"] }
        for kind in kinds {
            media.append(.rtcpFeedback, RTCPFeedback(payloadType: codec.map.payloadType, kind: kind).text)
        }
        if let parameters = codec.parameters { media.append(.fmtp, "\(codec.map.payloadType) \(parameters)") }
        guard let repair = codec.repair else { return }
        media.append(.rtpmap, RTPMap(payloadType: repair, encoding: "rtx", clockRate: 90_000).text)
        media.append(.fmtp, "\(repair) apt=\(codec.map.payloadType)")
    }

    private mutating func appendExtensions(_ feedback: ClientOffer.Feedback) {
        var extensions: [(UInt16, RTPExtensionURI)] = [
            (2, .absoluteSendTime), (4, .mid), (6, .absoluteCaptureTime),
        ]
        if feedback == .transportWide { extensions.append((3, .transportSequenceNumber)) }
        if line.type == .audio {
            extensions.append((1, .audioLevel))
        } else {
            extensions += [(13, .videoOrientation), (5, .playoutDelay), (12, .dependencyDescriptor)]
            extensions += [(10, .rtpStreamID), (11, .repairedRTPStreamID)]
        }
        for (id, uri) in extensions { media.append(.extmap, ExtensionMap(id: id, uri: uri.rawValue).text) }
    }

    /// Adds candidates, ICE credentials, and DTLS fingerprint and role.
    mutating func appendTransport(
        _ credentials: ICECredentials, _ fingerprint: SDPFingerprint, candidates: [TransportAddress]
    ) {
        for (index, address) in candidates.enumerated() {
            media.append(.candidate, ICECandidate(host: address, index: index).text)
        }
        media.append(credentials)
        media.append(.iceOptions, "trickle")
        media.append(.fingerprint, fingerprint.text)
        media.append(.setup, SetupRole.actpass.rawValue)
    }

    /// Identifies what is sent, as Chrome does: without simulcast by SSRCs, with simulcast by RIDs alone.
    mutating func appendSources(cname: String, stream: String) {
        guard line.direction.sends, line.type != .application else { return }
        media.append(.msid, MediaStreamIdentifier(stream: stream, track: "track\(line.mid)").text)
        let rids = line.encodings.compactMap(\.rid)
        guard rids.isEmpty else {
            for rid in rids { media.append(.rid, StreamRestriction(id: rid, direction: .send).text) }
            media.append(.simulcast, Simulcast(send: rids.map { [.init($0)] }).text)
            return
        }
        for encoding in line.encodings {
            let ssrcs = [encoding.ssrc] + (encoding.repairSSRC.map { [$0] } ?? [])
            if ssrcs.count == 2 { media.append(.ssrcGroup, SourceGroup(semantics: "FID", ssrcs: ssrcs).text) }
            for ssrc in ssrcs {
                media.append(.ssrc, SourceAttribute(ssrc: ssrc, name: "cname", value: cname).text)
            }
        }
    }
}
