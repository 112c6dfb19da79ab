import Wire

/// One m-line of an offer, with what we understand of it.
package struct OfferedMedia: Sendable {
    /// The m-line's place, which the answer keeps (RFC 3264 §6).
    package let index: Int
    /// Unique in the offer.
    package let mid: String
    /// The m-line as it was offered.
    package let description: MediaDescription
    /// As the client sees it.
    package let direction: MediaDirection
    /// Whether the client itself offers it as unused: port 0, and not because of `a=bundle-only`.
    package let isRejected: Bool
    /// Whether it is in the BUNDLE group, or alone.
    package let isBundled: Bool
    /// The formats we forward, in the client's order.
    package let formats: [OfferedFormat]
    /// Those of the session included, which come first.
    package let extensions: [ExtensionMap]
    /// Simulcast layers that the client can send, in its order of preference.
    package let layers: [StreamRestriction]
    /// Empty where the client names no SSRCs, as with RIDs.
    package let announced: [SourcePlan.AnnouncedSSRC]
    /// The browser's MediaStream and track that it sends, if it says so.
    package let msid: MediaStreamIdentifier?

    /// Longest `a=mid` accepted, in bytes.
    static let maximumMIDLength = 64
    /// Most simulcast layers taken from one m-line.
    static let maximumLayers = 8
    /// Most SSRCs taken from one m-line.
    static let maximumAnnounced = 16

    /// Nil for a kind that we do not know, which is rejected.
    package var kind: MediaKind? { description.kind }

    /// Whether it is audio or video.
    package var isMedia: Bool { kind == .audio || kind == .video }

    /// What a session says for all its m-lines.
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
        guard !isRejected, description.kind == .audio || description.kind == .video else {
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

    /// Whether it is RTP over DTLS-SRTP; RFC 9429 §5.1.2 wants every spelling accepted.
    package var hasSupportedTransport: Bool {
        switch description.transport {
        case "UDP/TLS/RTP/SAVPF", "UDP/TLS/RTP/SAVP", "TCP/DTLS/RTP/SAVPF", "TCP/DTLS/RTP/SAVP", "RTP/SAVPF",
            "RTP/SAVP":
            true
        default: false
        }
    }

    /// The layers of `a=simulcast:send` that have an `a=rid`, each once.
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

    private static func announced(
        by description: MediaDescription
    ) throws(WireError) -> [SourcePlan.AnnouncedSSRC] {
        // By dictionary: an offer may have thousands of both.
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
