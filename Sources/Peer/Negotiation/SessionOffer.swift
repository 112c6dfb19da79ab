import Base
import Wire

/// A client's offer, verified and brought into the terms of the negotiator.
///
/// - Source: RFC 9429 §5.8 (parsing an offer); RFC 9725 §4.2 and §4.4 (what a WHIP offer must contain).
package struct SessionOffer: Sendable {
    /// What the session is for; decides which directions are allowed.
    package enum Purpose: Sendable {
        /// WHIP: one audio, one video or both, all sent by the client.
        case publish
        /// WHEP: every m-line is a slot.
        case play
        /// The feed: like WHEP, with data channels.
        case feed
        /// The stage: m-lines publish, receive or both.
        case stage
        /// The audience of a stage, with the same offer: m-lines only receive, even if they are offered to send.
        case audience

        /// Most sources of one kind in a session; a speaker may share a screen in addition to the camera.
        var maximumSources: Int { self == .stage ? 4 : 1 }

        /// Most m-lines in an offer.
        ///
        /// A stage allows as many as a description may have; the others allow those that can be used, and the few
        /// that browsers add.
        var maximumLines: Int {
            switch self {
            case .publish, .play: 5
            case .feed: 6
            case .stage, .audience: SessionDescription.maximumMediaCount
            }
        }

        /// Whether the client sends no media.
        var isPlaying: Bool { self == .play || self == .feed || self == .audience }

        /// Whether an `m=application` is accepted.
        var hasDataChannels: Bool { self == .feed || self == .stage || self == .audience }
    }

    /// Determines which directions are allowed.
    package let purpose: Purpose
    /// In the offer's order, including rejected ones.
    package let media: [OfferedMedia]
    /// The mids of the BUNDLE group in its order; nil for an offer of one m-line without a group.
    package let bundle: [String]?
    /// The client's credentials; the same for all m-lines of a BUNDLE.
    package let credentials: ICECredentials
    /// The fingerprints with supported algorithms; never empty.
    package let fingerprints: [SDPFingerprint]
    /// Whether the client waits for our ClientHello, instead of leaving the choice to us.
    package let isPassive: Bool
    /// Such as `trickle`; unknown options are ignored.
    package let iceOptions: [String]
    /// Whether one- and two-byte header extensions may be mixed in one stream (RFC 8285 §6).
    package let allowsMixedExtensions: Bool

    /// Most session-level header extensions; browsers list them in each m-line instead.
    static let maximumExtensions = 32

    /// Verifies an offer.
    /// - Throws: a `Refusal` for the first problem found.
    package init(_ description: SessionDescription, for purpose: Purpose) throws(Refusal) {
        self.purpose = purpose
        guard !description.media.isEmpty else { throw .noMedia }
        guard description.media.count <= purpose.maximumLines else {
            throw .tooManyLines(purpose.maximumLines)
        }
        let defaults = try Self.defaults(of: description)
        bundle = defaults.bundle

        var media: [OfferedMedia] = []
        for (index, section) in description.media.enumerated() {
            let offered = try OfferedMedia(section, at: index, defaults: defaults)
            guard !media.contains(where: { $0.mid == offered.mid }) else { throw .duplicateMID(offered.mid) }
            media.append(offered)
        }
        for mid in defaults.bundle ?? [] where !media.contains(where: { $0.mid == mid }) {
            throw .unknownMID(mid)
        }
        self.media = media

        let order = Self.transportOrder(media, defaults.bundle)
        let transport = try OfferedTransport(of: description, first: order)
        credentials = transport.credentials
        fingerprints = transport.fingerprints
        isPassive = transport.isPassive
        iceOptions = description.iceOptions + description.media.flatMap(\.iceOptions)
        allowsMixedExtensions =
            description.allowsMixedExtensions || description.media.contains(where: \.allowsMixedExtensions)
        try checkDirections()
    }

    /// Reads the session-level values, and requires a BUNDLE group for more than one m-line.
    private static func defaults(of description: SessionDescription) throws(Refusal) -> OfferedMedia.Defaults
    {
        let groups: [MediaGroup]
        let extensions: [ExtensionMap]
        do throws(WireError) {
            groups = try description.groups()
            extensions = try description.extensionMaps()
        } catch {
            throw .malformed(error)
        }
        guard extensions.count <= maximumExtensions else { throw .tooManyExtensions }
        let bundle = groups.first { $0.semantics == "BUNDLE" && !$0.mids.isEmpty }?.mids
        if let bundle {
            guard Set(bundle).count == bundle.count else { throw .duplicateMID(bundle.first ?? "") }
            guard bundle.count <= description.media.count else { throw .unknownMID(bundle.last ?? "") }
        } else {
            // A single m-line needs no group.
            guard description.media.count(where: { $0.port != 0 || $0.has(.bundleOnly) }) < 2 else {
                throw .noBundle
            }
        }
        return OfferedMedia.Defaults(
            direction: description.direction ?? .sendrecv, extensions: extensions.distinct, bundle: bundle)
    }

    /// The indices of m-lines in the order in which transport attributes are looked for.
    ///
    /// RFC 9143 §7.3 uses the first m-line of the group that the answer accepts: audio and video come first.
    private static func transportOrder(_ media: [OfferedMedia], _ bundle: [String]?) -> [Int] {
        let order = bundle.map { mids in mids.compactMap { mid in media.first { $0.mid == mid } } } ?? media
        let live = order.filter { !$0.isRejected }
        return (live.filter(\.isMedia) + live.filter { !$0.isMedia }).map(\.index)
    }

    /// Verifies that each m-line's direction suits the purpose, and that not too many publish.
    private func checkDirections() throws(Refusal) {
        var sources: [MediaKind: Int] = [:]
        for line in media where line.isMedia && !line.isRejected && line.direction != .inactive {
            guard let kind = line.kind else { continue }
            switch purpose {
            case .publish where !line.direction.sends, .play where !line.direction.receives,
                .feed where !line.direction.receives:
                throw .wrongDirection(line.mid)
            default: break
            }
            guard publishes(line) else { continue }
            sources[kind, default: 0] += 1
            guard sources[kind, default: 0] <= purpose.maximumSources else { throw .tooManyTracks(kind) }
        }
    }

    /// Whether this m-line will publish.
    package func publishes(_ line: OfferedMedia) -> Bool {
        !purpose.isPlaying && line.direction.sends
    }

    /// Whether this m-line will be a slot.
    package func receives(_ line: OfferedMedia) -> Bool {
        purpose != .publish && line.direction.receives
    }
}

/// The client's transport: the ICE and DTLS attributes of the first m-lines, or else of the session.
private struct OfferedTransport {
    var credentials: ICECredentials
    var fingerprints: [SDPFingerprint]
    var isPassive: Bool

    /// - Parameter order: indices of m-lines. What the first one lacks is taken from the next, because Firefox
    ///   leaves `a=setup` out of some.
    init(of description: SessionDescription, first order: [Int]) throws(SessionOffer.Refusal) {
        guard !description.isICELite else { throw .iceLite }
        let sections = order.compactMap { index in
            description.media.indices.contains(index) ? description.media[index] : nil
        }
        guard let credentials = sections.firstValue(\.iceCredentials) ?? description.iceCredentials else {
            throw .noICECredentials
        }
        guard credentials.isValid else { throw .invalidICECredentials }
        self.credentials = credentials

        var offered: [SDPFingerprint] = []
        var role: SetupRole?
        do throws(WireError) {
            for section in sections where offered.isEmpty { offered = try section.fingerprints() }
            if offered.isEmpty { offered = try description.fingerprints() }
            for section in sections where role == nil { role = try section.setup() }
            if role == nil { role = try description.setup() }
        } catch {
            throw .malformed(error)
        }
        guard !offered.isEmpty else { throw .noFingerprint }
        fingerprints = Array(
            offered.filter { SDPFingerprint.length(of: $0.algorithm) != nil }.prefix(Self.maximumFingerprints)
        )
        guard !fingerprints.isEmpty else { throw .unsupportedFingerprint }
        // RFC 4145 §4: an offer without a=setup means active. With the choice, the server waits for the ClientHello.
        guard role != .holdconn else { throw .unsupportedSetup(.holdconn) }
        isPassive = role == .passive
    }

    private static let maximumFingerprints = 8
}

extension Sequence {
    /// The first value of the property that is not nil.
    fileprivate func firstValue<Value>(_ property: KeyPath<Element, Value?>) -> Value? {
        for element in self {
            if let value = element[keyPath: property] { return value }
        }
        return nil
    }
}

extension [ExtensionMap] {
    /// The maps without repeated ids and URIs; the first of each counts.
    /// - Source: RFC 8285 §5: both are unique within a session or an m-line.
    var distinct: [ExtensionMap] {
        var ids: Set<UInt16> = []
        var uris: Set<String> = []
        return filter { map in
            guard !ids.contains(map.id), uris.insert(map.uri).inserted else { return false }
            return ids.insert(map.id).inserted
        }
    }
}
