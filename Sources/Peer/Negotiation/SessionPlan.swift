import Base
import Wire

/// What one offer and its answer agreed on: all that the media path needs from the signalling.
///
/// Created by the negotiator, sent to the worker that will own the session, and never changed: there is no second
/// offer.
package struct SessionPlan: Equatable, Sendable {
    /// How the server reports arrivals, so that the publisher's rate control works.
    package enum CongestionFeedback: Equatable, Sendable {
        /// Arrival times of every packet (draft-holmer-rmcat-transport-wide-cc-extensions-01).
        case transportWide
        /// A bitrate estimated by the server (draft-alvestrand-rmcat-remb-03).
        case receiverEstimate
        /// Receiver reports only.
        case none
    }

    /// The client's ICE credentials.
    package var remoteCredentials: ICECredentials
    /// The client's certificate must have one of these fingerprints.
    package var fingerprints: [SDPFingerprint]
    /// Whether we begin the DTLS handshake, because the client offered only to wait for it (RFC 8842 §5.3).
    package var beginsHandshake = false
    /// m-lines that publish to us, in the order of the offer.
    package var sources: [SourcePlan]
    /// m-lines that receive from us, in the order of the offer.
    package var slots: [SlotPlan]
    /// Ids that the client uses in what it sends; the same for all m-lines of a BUNDLE (RFC 9143 §12).
    package var publishedExtensions: ExtensionIDs
    /// The feedback that the publisher's rate control gets.
    package var congestionFeedback: CongestionFeedback
    /// RFC 5506; if false, every RTCP datagram starts with a report.
    package var allowsReducedSizeRTCP: Bool
    /// Nil if no data channels were offered.
    package var dataChannel: DataChannelPlan?
    /// The accepted m-lines in the order of the answer's BUNDLE group.
    package var bundledMIDs: [String] = []
    /// Whether there is no peer connection: media arrives unencrypted from a publisher that uses another protocol,
    /// which is handled elsewhere.
    package private(set) var isIngested = false

    package init(
        remoteCredentials: ICECredentials, fingerprints: [SDPFingerprint], sources: [SourcePlan] = [],
        slots: [SlotPlan] = [], publishedExtensions: ExtensionIDs = ExtensionIDs(),
        congestionFeedback: CongestionFeedback = .none, allowsReducedSizeRTCP: Bool = true
    ) {
        self.remoteCredentials = remoteCredentials
        self.fingerprints = fingerprints
        self.sources = sources
        self.slots = slots
        self.publishedExtensions = publishedExtensions
        self.congestionFeedback = congestionFeedback
        self.allowsReducedSizeRTCP = allowsReducedSizeRTCP
    }

    /// The plan of a publisher without a peer connection.
    package init(ingesting sources: [SourcePlan]) {
        // Placeholders: no client uses these credentials, and no checks are answered.
        self.init(
            remoteCredentials: ICECredentials(ufrag: "none", password: Secret("none")), fingerprints: [],
            sources: sources)
        isIngested = true
    }
}

/// One m-line on which the client publishes.
package struct SourcePlan: Equatable, Sendable {
    /// The mid of the m-line.
    package var mid: String
    /// Audio or video.
    package var kind: MediaKind
    /// The formats that the client may send; it switches between them by payload type.
    package var formats: [MediaFormat]
    /// Simulcast layers by RID, in the order of the offer; empty without simulcast.
    package var rids: [String]
    /// SSRCs from `a=ssrc`, with their RTX SSRC from `a=ssrc-group:FID`; often empty.
    package var announced: [AnnouncedSSRC]
    /// Whether the client retransmits on NACKs.
    package var supportsNACK: Bool
    /// Whether the client answers PLIs with key frames.
    package var supportsPLI: Bool
    /// Whether the client answers FIRs with key frames; used only without PLI.
    package var supportsFIR: Bool
    /// Whether a request leads to a key frame: by RTCP, or from an encoder within the server.
    ///
    /// Encoders that publish by RTMP or SRT cannot be asked.
    package var answersKeyFrameRequests: Bool

    /// Ticks a second of the RTP clock.
    package var clockRate: UInt32 { kind == .video ? 90_000 : 48_000 }

    /// One RTP stream that the offer announces.
    package struct AnnouncedSSRC: Equatable, Sendable {
        /// SSRC of the media.
        package var ssrc: UInt32
        /// SSRC of its RTX; nil without RTX.
        package var repairSSRC: UInt32?

        package init(ssrc: UInt32, repairSSRC: UInt32? = nil) {
            self.ssrc = ssrc
            self.repairSSRC = repairSSRC
        }
    }

    package init(
        mid: String, kind: MediaKind, formats: [MediaFormat], rids: [String] = [],
        announced: [AnnouncedSSRC] = [],
        supportsNACK: Bool = false, supportsPLI: Bool = false, supportsFIR: Bool = false,
        answersKeyFrameRequests: Bool = true
    ) {
        self.mid = mid
        self.kind = kind
        self.formats = formats
        self.rids = rids
        self.announced = announced
        self.supportsNACK = supportsNACK
        self.supportsPLI = supportsPLI
        self.supportsFIR = supportsFIR
        self.answersKeyFrameRequests = answersKeyFrameRequests
    }
}

/// One m-line on which the client receives: a slot's identifiers, and the formats it may carry.
package struct SlotPlan: Equatable, Sendable {
    /// The mid of the m-line.
    package var mid: String
    /// Audio or video.
    package var kind: MediaKind
    /// Our SSRC, the same for the life of the session.
    package var ssrc: UInt32
    /// Nil if no RTX was offered.
    package var repairSSRC: UInt32?
    /// Shared by slots that are played in lip sync.
    package var cname: String
    /// The formats that the client can decode, in its order of preference; the slot switches by payload type.
    package var formats: [MediaFormat]
    /// Ids of the extensions in what we send on this m-line.
    package var extensions: ExtensionIDs
    /// Whether one- and two-byte extension elements may be mixed (RFC 8285 §6).
    package var allowsMixedExtensions: Bool
    /// Whether the client reports each packet by its sequence number (RFC 8888).
    package var reportsBySequenceNumber: Bool
    /// Whether the client asks for lost packets by NACKs, as browsers do for video alone.
    package var supportsNACK: Bool

    /// Whether the client reports the arrival of each packet of this m-line, by either kind of number.
    package var tellsOfPackets: Bool {
        reportsBySequenceNumber || extensions.transportSequenceNumber != nil
    }

    /// The format of a codec on this m-line; nil if the client did not offer it.
    ///
    /// Profiles of H.264 and VP9 need not match exactly: a decoder accepts related ones.
    package func format(for codec: MediaCodec) -> MediaFormat? {
        formats.first { $0.codec == codec }
            ?? formats.first { $0.codec.video != nil && $0.codec.video == codec.video }
    }

    package init(
        mid: String, kind: MediaKind, ssrc: UInt32, repairSSRC: UInt32?, cname: String,
        formats: [MediaFormat],
        extensions: ExtensionIDs, allowsMixedExtensions: Bool, reportsBySequenceNumber: Bool = false,
        supportsNACK: Bool = false
    ) {
        self.mid = mid
        self.kind = kind
        self.ssrc = ssrc
        self.repairSSRC = repairSSRC
        self.cname = cname
        self.formats = formats
        self.extensions = extensions
        self.allowsMixedExtensions = allowsMixedExtensions
        self.reportsBySequenceNumber = reportsBySequenceNumber
        self.supportsNACK = supportsNACK
    }
}

/// A codec with the payload types of one m-line.
package struct MediaFormat: Equatable, Sendable {
    /// Includes what distinguishes its profiles.
    package var codec: MediaCodec
    /// 0 to 127; other m-lines may use other values for the same codec.
    package var payloadType: UInt8
    /// RTX for this format (RFC 4588 §8.6, `apt`); nil if it was not offered.
    package var repairPayloadType: UInt8?
    /// RED whose blocks are all of this format (RFC 2198 §5); nil if it was not offered.
    package var redundancyPayloadType: UInt8?

    package init(
        codec: MediaCodec, payloadType: UInt8, repairPayloadType: UInt8? = nil,
        redundancyPayloadType: UInt8? = nil
    ) {
        self.codec = codec
        self.payloadType = payloadType
        self.repairPayloadType = repairPayloadType
        self.redundancyPayloadType = redundancyPayloadType
    }
}

/// The codecs that are forwarded.
package enum MediaCodec: Hashable, Sendable {
    case opus
    case vp8
    /// By `profile-id`: 0 (8 bit 4:2:0) or 2 (10 bit).
    case vp9(profile: UInt8)
    /// `packetization-mode` 0 or 1; profiles need not match exactly.
    case h264(packetizationMode: UInt8)
    case av1

    /// False for Opus only.
    package var isVideo: Bool { video != nil }

    /// The payload format; nil for audio.
    package var video: VideoCodec? {
        switch self {
        case .opus: nil
        case .vp8: .vp8
        case .vp9: .vp9
        case .h264: .h264
        case .av1: .av1
        }
    }

    /// Ticks a second of the RTP clock (RFC 7587 §4.1; 90 kHz for every video format).
    package var clockRate: UInt32 { isVideo ? 90_000 : 48_000 }
}

/// The ids of header extensions in one direction of a session; nil if not negotiated.
/// - Source: RFC 8285 §5.
package struct ExtensionIDs: Equatable, Sendable {
    /// RFC 9143 §15.
    package var mid: UInt8?
    /// RFC 8852 §3.1.
    package var rtpStreamID: UInt8?
    /// RFC 8852 §3.2.
    package var repairedRTPStreamID: UInt8?
    /// draft-holmer-rmcat-transport-wide-cc-extensions-01 §2.
    package var transportSequenceNumber: UInt8?
    /// webrtc.org/experiments/rtp-hdrext/abs-send-time.
    package var absoluteSendTime: UInt8?
    /// webrtc.org/experiments/rtp-hdrext/abs-capture-time.
    package var absoluteCaptureTime: UInt8?
    /// webrtc.org/experiments/rtp-hdrext/playout-delay.
    package var playoutDelay: UInt8?
    /// RFC 6464 §3.
    package var audioLevel: UInt8?
    /// 3GPP TS 26.114 §7.4.5.
    package var videoOrientation: UInt8?
    /// RTP Payload Format for AV1, appendix A.
    package var dependencyDescriptor: UInt8?

    package init() {}
}
