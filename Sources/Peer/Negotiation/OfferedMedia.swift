import Base
import Wire

/// One m-line of an offer, with the attributes that are supported.
///
/// Lists are limited in length, because an offer comes from an untrusted client.
package struct OfferedMedia: Sendable {
    /// The position of the m-line, which the answer keeps (RFC 3264 §6).
    package let index: Int
    /// Unique in the offer.
    package let mid: String
    /// The m-line as it was offered.
    package let description: MediaDescription
    /// From the client's side.
    package let direction: MediaDirection
    /// Whether the client offers the m-line as unused: port 0 without `a=bundle-only`.
    package let isRejected: Bool
    /// Whether it is in the BUNDLE group, or the only m-line.
    package let isBundled: Bool
    /// The formats that are forwarded, in the client's order.
    package let formats: [OfferedFormat]
    /// Header extensions, with those of the session level first.
    package let extensions: [ExtensionMap]
    /// Simulcast layers that the client can send, in its order of preference.
    package let layers: [StreamRestriction]
    /// SSRCs from `a=ssrc`; empty if the client announces none, as with RIDs.
    package let announced: [SourcePlan.AnnouncedSSRC]
    /// The browser's MediaStream and track, if the offer has them.
    package let msid: MediaStreamIdentifier?

    /// Longest `a=mid` accepted, in bytes.
    static let maximumMIDLength = 64
    /// Most simulcast layers accepted from one m-line.
    static let maximumLayers = 8
    /// Most SSRCs accepted from one m-line.
    static let maximumAnnounced = 16

    /// Nil for data channels, and for an unknown media type, which is rejected.
    package var kind: MediaKind? { description.kind }

    /// Whether it is audio or video.
    package var isMedia: Bool { kind != nil }

    /// Session-level values that apply to all m-lines.
    struct Defaults {
        var direction: MediaDirection
        var extensions: [ExtensionMap]
        var bundle: [String]?
    }

    init(
        _ description: MediaDescription, at index: Int, defaults: Defaults
    ) throws(SessionOffer.Refusal) {
        guard let mid = description.mid else { throw .missingMID }
        guard mid.isSDPToken(limit: Self.maximumMIDLength) else { throw .invalidMID }
        self.index = index
        self.mid = mid
        self.description = description
        direction = description.direction ?? defaults.direction
        isRejected = description.port == 0 && !description.has(.bundleOnly)
        isBundled = defaults.bundle?.contains(mid) ?? true
        guard !isRejected, description.kind != nil else {
            (formats, extensions, layers, announced, msid) = ([], [], [], [], nil)
            return
        }
        guard description.isRTCPMultiplexed else { throw .noRTCPMultiplexing(mid) }
        do throws(WireError) {
            formats = try OfferedFormat.formats(of: description)
            extensions = try defaults.extensions + description.extensionMaps().distinct
            layers = try Self.layers(of: description)
            announced = try Self.announced(by: description)
            msid = try description.msids().first
        } catch {
            throw .malformed(error)
        }
    }

    /// Whether it is RTP over DTLS-SRTP; RFC 9429 §5.1.2 requires every spelling to be accepted.
    package var hasSupportedTransport: Bool {
        switch description.transport {
        case "UDP/TLS/RTP/SAVPF", "UDP/TLS/RTP/SAVP", "TCP/DTLS/RTP/SAVPF", "TCP/DTLS/RTP/SAVP", "RTP/SAVPF",
            "RTP/SAVP":
            true
        default: false
        }
    }

    /// The layers in `a=simulcast:send` that have an `a=rid`, without duplicates.
    private static func layers(of description: MediaDescription) throws(WireError) -> [StreamRestriction] {
        guard let simulcast = try description.simulcast() else { return [] }
        let restrictions = Dictionary(
            try description.streamRestrictions().filter { $0.direction == .send }.map { ($0.id, $0) },
            uniquingKeysWith: { first, _ in first })
        var layers: [StreamRestriction] = []
        for alternative in simulcast.send.joined().prefix(8 * maximumLayers)
        where layers.count < maximumLayers {
            guard !layers.contains(where: { $0.id == alternative.rid }),
                let layer = restrictions[alternative.rid]
            else { continue }
            layers.append(layer)
        }
        return layers
    }

    /// The announced SSRCs, each with its RTX SSRC from the `FID` group.
    private static func announced(
        by description: MediaDescription
    ) throws(WireError) -> [SourcePlan.AnnouncedSSRC] {
        // Dictionaries instead of searches: an offer may have thousands of both.
        var repairs: [UInt32: UInt32] = [:]
        var repairing: Set<UInt32> = []
        for group in try description.sourceGroups() where group.semantics == "FID" && group.ssrcs.count == 2 {
            if repairs[group.ssrcs[0]] == nil { repairs[group.ssrcs[0]] = group.ssrcs[1] }
            repairing.insert(group.ssrcs[1])
        }
        var announced: [SourcePlan.AnnouncedSSRC] = []
        for ssrc in try description.sourceAttributes().map(\.ssrc) where announced.count < maximumAnnounced {
            guard !announced.contains(where: { $0.ssrc == ssrc }), !repairing.contains(ssrc) else { continue }
            announced.append(.init(ssrc: ssrc, repairSSRC: repairs[ssrc]))
        }
        return announced
    }
}
