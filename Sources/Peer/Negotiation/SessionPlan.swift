import Base
import Wire

/// What one offer and its answer agreed on: all that the media path needs to know of the signalling.
///
/// Made by the negotiator, sent to the worker that will own the session, and never changed: there is no second
/// offer.
package struct SessionPlan: Equatable, Sendable {
    /// How the server reports what arrives, so that the publisher's rate control works.
    package enum CongestionFeedback: Equatable, Sendable {
        /// Arrival times of every packet (draft-holmer-rmcat-transport-wide-cc-extensions-01).
        case transportWide
        /// A bit rate estimated by the server (draft-alvestrand-rmcat-remb-03).
        case receiverEstimate
        /// Receiver reports only.
        case none
    }

    /// The client's ICE credentials.
    package var remoteCredentials: ICECredentials
    /// One of these must be the fingerprint of the client's certificate.
    package var fingerprints: [SDPFingerprint]
    /// m-lines that publish to us, in the order of the offer.
    package var sources: [SourcePlan]
    /// m-lines that receive from us, in the order of the offer.
    package var slots: [SlotPlan]
    /// Ids that the client uses in what it sends; the same for all m-lines of a BUNDLE (RFC 9143 §9.1).
    package var publishedExtensions: ExtensionIDs
    /// What the publisher's rate control is told by us.
    package var congestionFeedback: CongestionFeedback
    /// RFC 5506; without it every RTCP datagram starts with a report.
    package var allowsReducedSizeRTCP: Bool
    /// Nil if no data channels were offered.
    package var dataChannel: DataChannelPlan?
    /// The accepted m-lines in the order of the answer's BUNDLE group.
    package var bundledMIDs: [String] = []
    /// Whether there is no peer connection: what it publishes comes in the clear, from a publisher that speaks another
    /// protocol and is served elsewhere.
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

    /// That of a publisher without a peer connection.
    package init(ingesting sources: [SourcePlan]) {
        // Nobody knows these, and nobody may use them.
        self.init(
            remoteCredentials: ICECredentials(ufrag: "none", password: Secret("none")), fingerprints: [],
            sources: sources)
        isIngested = true
    }
}

/// One m-line that publishes to us.
package struct SourcePlan: Equatable, Sendable {
    /// Names the m-line.
    package var mid: String
    /// Audio or video.
    package var kind: MediaKind
    /// What the client may send; it changes between them by payload type.
    package var formats: [MediaFormat]
    /// Simulcast layers by RID, in the order of the offer; empty without simulcast.
    package var rids: [String]
    /// SSRCs from `a=ssrc`, with their RTX SSRC from `a=ssrc-group:FID`; often empty.
    package var announced: [AnnouncedSSRC]
    /// Whether the client sends packets again.
    package var supportsNACK: Bool
    /// Whether the client answers PLIs with key frames.
    package var supportsPLI: Bool
    /// Whether the client answers FIRs with key frames; asked for where PLI is not there.
    package var supportsFIR: Bool
    /// Whether a key frame comes when it is asked for: by RTCP, or of whoever makes the pictures in the server.
    ///
    /// Of an encoder that publishes by RTMP or SRT none does.
    package var answersKeyFrameRequests: Bool

    /// Ticks a second of the RTP clock.
    package var clockRate: UInt32 { kind == .video ? 90_000 : 48_000 }

    /// One RTP stream that the offer names.
    package struct AnnouncedSSRC: Equatable, Sendable {
        /// Of the media.
        package var ssrc: UInt32
        /// Of its RTX; nil without.
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

/// One m-line that receives from us: what a slot is called, and what it may carry.
package struct SlotPlan: Equatable, Sendable {
    /// Names the m-line.
    package var mid: String
    /// Audio or video.
    package var kind: MediaKind
    /// Ours, and the same for the life of the session.
    package var ssrc: UInt32
    /// Nil if no RTX was offered.
    package var repairSSRC: UInt32?
    /// Shared by slots that are to be played in lip sync.
    package var cname: String
    /// What the client can take, in its order of preference; the slot changes between them by payload type.
    package var formats: [MediaFormat]
    /// Ids for what we send on this m-line.
    package var extensions: ExtensionIDs
    /// Whether one- and two-byte extension elements may be mixed (RFC 8285 §6).
    package var allowsMixedExtensions: Bool
    /// Whether the client tells of each packet by its own sequence number (RFC 8888).
    package var reportsBySequenceNumber: Bool

    /// Whether the client tells of each packet of this m-line when it came, by whatever number.
    package var tellsOfPackets: Bool {
        reportsBySequenceNumber || extensions.transportSequenceNumber != nil
    }

    /// What `codec` is called on this m-line; nil if the client did not offer it.
    ///
    /// Profiles of H.264 and VP9 are matched loosely: a decoder takes what is close.
    package func format(for codec: MediaCodec) -> MediaFormat? {
        formats.first { $0.codec == codec }
            ?? formats.first { $0.codec.video != nil && $0.codec.video == codec.video }
    }

    package init(
        mid: String, kind: MediaKind, ssrc: UInt32, repairSSRC: UInt32?, cname: String,
        formats: [MediaFormat],
        extensions: ExtensionIDs, allowsMixedExtensions: Bool, reportsBySequenceNumber: Bool = false
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
    }
}

/// A codec under the payload types that one m-line gave it.
package struct MediaFormat: Equatable, Sendable {
    /// With what tells its profiles apart.
    package var codec: MediaCodec
    /// 0 to 127; the same codec may have others on other m-lines.
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
    /// `packetization-mode` 0 or 1; profiles are matched loosely, as decoders do.
    case h264(packetizationMode: UInt8)
    case av1

    /// Opus is the only one that is not.
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

/// The ids that header extensions go by in one direction of a session; nil where not negotiated.
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
