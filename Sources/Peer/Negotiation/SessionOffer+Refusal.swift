import Wire

extension SessionOffer {
    /// Why an offer gets no answer.
    package enum Refusal: Error, Equatable, Sendable {
        /// An attribute that matters is not written as its RFC demands.
        case malformed(WireError)
        /// No m-line, or none that sends or receives what it may.
        case noMedia
        case missingMID
        case invalidMID
        case duplicateMID(String)
        /// The BUNDLE group names an m-line that is not there.
        case unknownMID(String)
        case noICECredentials
        case invalidICECredentials
        case noFingerprint

        /// Several m-lines without BUNDLE: a session has one transport.
        case noBundle
        /// An m-line that wants a transport of its own.
        case notBundled(String)
        /// RTCP on a port of its own.
        case noRTCPMultiplexing(String)
        /// The client is ICE-lite too: nobody would send checks.
        case iceLite
        case unsupportedFingerprint
        case unsupportedSetup(SetupRole)
        /// An m-line that is not RTP over DTLS.
        case unsupportedTransport(String)
        case wrongDirection(String)
        case tooManyTracks(MediaKind)
        /// More m-lines than the endpoint has a use for; how many it takes.
        case tooManyLines(Int)
        /// More `a=extmap` for the whole session than anybody has.
        case tooManyExtensions

        case noUsableCodec(String)
    }

    /// What kind of answer over HTTP a refusal deserves.
    package enum RefusalKind: Sendable {
        /// 400: not a proper offer.
        case malformed
        /// 422: a proper offer of something we do not do (RFC 9725 §4.5).
        case unsupported
        /// 406: a proper offer, with which we have nothing in common.
        case notAcceptable
    }
}

extension SessionOffer.Refusal: CustomStringConvertible {
    /// What the HTTP status is made of.
    package var kind: SessionOffer.RefusalKind {
        switch self {
        case .malformed, .noMedia, .missingMID, .invalidMID, .duplicateMID, .unknownMID, .noICECredentials,
            .invalidICECredentials, .noFingerprint:
            .malformed
        case .noBundle, .notBundled, .noRTCPMultiplexing, .iceLite, .unsupportedFingerprint,
            .unsupportedSetup,
            .unsupportedTransport, .wrongDirection, .tooManyTracks, .tooManyLines, .tooManyExtensions:
            .unsupported
        case .noUsableCodec: .notAcceptable
        }
    }

    /// A sentence for whoever sent the offer.
    package var description: String {
        switch self {
        case .malformed(.truncated): "The session description ends too early."
        case .malformed(.invalid(let field)): "The session description is malformed at \(field)."
        case .malformed(.noRoom): "The session description is too long."
        case .noMedia: "The offer has no audio or video that this endpoint could take."
        case .missingMID: "An m-line has no a=mid."
        case .invalidMID: "An m-line has an a=mid that is not a token of at most 64 bytes."
        case .duplicateMID(let mid): "Two m-lines have the a=mid \(mid)."
        case .unknownMID(let mid): "The BUNDLE group names \(mid), but no m-line does."
        case .noICECredentials: "The offer has no a=ice-ufrag and a=ice-pwd."
        case .invalidICECredentials: "a=ice-ufrag or a=ice-pwd has a wrong length or a forbidden character."
        case .noFingerprint: "The offer has no a=fingerprint."
        case .noBundle: "The offer has no a=group:BUNDLE; set the bundle policy to max-bundle."
        case .notBundled(let mid): "The m-line \(mid) is not in the BUNDLE group."
        case .noRTCPMultiplexing(let mid): "The m-line \(mid) has no a=rtcp-mux."
        case .iceLite: "The offer says a=ice-lite; this server is ICE-lite itself."
        case .unsupportedFingerprint: "No a=fingerprint uses SHA-256, SHA-384 or SHA-512."
        case .unsupportedSetup(let role): "a=setup:\(role.rawValue) is not supported; offer actpass."
        case .unsupportedTransport(let mid): "The m-line \(mid) is not RTP over DTLS-SRTP with feedback."
        case .wrongDirection(let mid): "The m-line \(mid) has a direction that this endpoint does not allow."
        case .tooManyLines(let limit):
            "The offer has more than the \(limit) m-lines that this endpoint takes."
        case .tooManyExtensions:
            "The offer has more than \(SessionOffer.maximumExtensions) a=extmap lines before its first m-line."
        case .tooManyTracks(let kind): "The offer sends too many \(kind.rawValue) tracks."
        case .noUsableCodec(let mid): "The m-line \(mid) lists no codec that this server forwards."
        }
    }
}
