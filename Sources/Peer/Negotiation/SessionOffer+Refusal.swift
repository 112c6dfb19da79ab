import Base
import Wire

extension SessionOffer {
    /// Why an offer is refused.
    package enum Refusal: Error, Equatable, Sendable {
        /// A required attribute does not have the form that its RFC prescribes.
        case malformed(WireError)
        /// There is no m-line, or none that may send or receive here.
        case noMedia
        case missingMID
        case invalidMID
        case duplicateMID(String)
        /// The BUNDLE group contains a mid that no m-line has.
        case unknownMID(String)
        case noICECredentials
        case invalidICECredentials
        case noFingerprint

        /// Several m-lines without BUNDLE: a session has one transport.
        case noBundle
        /// An m-line requires a transport of its own.
        case notBundled(String)
        /// An m-line requires a separate port for RTCP.
        case noRTCPMultiplexing(String)
        /// The client is ICE-lite as well: neither side would send checks.
        case iceLite
        case unsupportedFingerprint
        case unsupportedSetup(SetupRole)
        /// An m-line that is not RTP over DTLS.
        case unsupportedTransport(String)
        /// An m-line sends or receives where this endpoint does not allow it.
        case wrongDirection(String)
        /// More tracks of a kind than one session may publish.
        case tooManyTracks(MediaKind)
        /// More m-lines than the endpoint accepts; the value is the limit.
        case tooManyLines(Int)
        /// More session-level `a=extmap` lines than any client sends.
        case tooManyExtensions

        case noUsableCodec(String)
    }

    /// The kind of HTTP error for a refusal.
    package enum RefusalKind: Sendable {
        /// 400: not a valid offer.
        case malformed
        /// 422: a valid offer of something that is not supported (RFC 9725 §4.4).
        case unsupported
        /// 406: a valid offer without any codec in common.
        case notAcceptable
    }
}

extension SessionOffer.Refusal: CustomStringConvertible {
    /// Determines the HTTP status.
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

    /// A sentence for the author of the offer.
    package var description: String {
        switch self {
        case .malformed(.truncated): "The session description ends too early."
        case .malformed(.invalid(let field)): "The session description is malformed at \(field)."
        case .malformed(.noRoom): "The session description is too long."
        case .noMedia: "The offer has no audio or video that this endpoint accepts."
        case .missingMID: "An m-line has no a=mid."
        case .invalidMID: "An m-line has an a=mid that isn't a token of up to 64 bytes."
        case .duplicateMID(let mid): "Two m-lines have the a=mid \(mid)."
        case .unknownMID(let mid): "The BUNDLE group names \(mid), but no m-line has this a=mid."
        case .noICECredentials: "The offer is missing a=ice-ufrag or a=ice-pwd."
        case .invalidICECredentials: "a=ice-ufrag or a=ice-pwd has the wrong length or an invalid character."
        case .noFingerprint: "The offer has no a=fingerprint."
        case .noBundle: "The offer has no a=group:BUNDLE. Set the bundle policy to max-bundle."
        case .notBundled(let mid): "The m-line \(mid) isn't in the BUNDLE group."
        case .noRTCPMultiplexing(let mid): "The m-line \(mid) has no a=rtcp-mux."
        case .iceLite: "a=ice-lite isn't supported, because this server is ICE-lite itself."
        case .unsupportedFingerprint: "No a=fingerprint uses SHA-256, SHA-384 or SHA-512."
        case .unsupportedSetup(let role): "a=setup:\(role.rawValue) isn't supported. Offer actpass."
        case .unsupportedTransport(let mid): "The m-line \(mid) isn't RTP over DTLS-SRTP with feedback."
        case .wrongDirection(let mid): "The m-line \(mid) has a direction that this endpoint doesn't allow."
        case .tooManyLines(let limit):
            "The offer has more than \(limit) m-lines, which is the limit of this endpoint."
        case .tooManyExtensions:
            "The offer has more than \(SessionOffer.maximumExtensions) a=extmap lines before its first m-line."
        case .tooManyTracks(let kind): "The offer sends too many \(kind.rawValue) tracks."
        case .noUsableCodec(let mid): "The m-line \(mid) lists no codec that this server supports."
        }
    }
}
