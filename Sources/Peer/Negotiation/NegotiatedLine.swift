import Base
import Wire

/// One accepted audio or video m-line.
struct NegotiatedLine {
    let offered: OfferedMedia
    let kind: MediaKind
    /// In the order of our answer; never empty.
    let formats: [OfferedFormat]
    let publishes: Bool
    let receives: Bool
    /// As the client offered them; the answer reverses their directions.
    private(set) var extensions: [ExtensionMap] = []
    /// Ids of the extensions in what we send.
    private(set) var slotExtensions = ExtensionIDs()
    /// Feedback kinds of all formats together; of `transport-cc`, `ack ccfb` and `goog-remb` at most one remains.
    private(set) var feedback: OfferedFormat.FeedbackKinds
    private(set) var layers: [StreamRestriction] = []

    init(
        _ offered: OfferedMedia, _ kind: MediaKind, formats: [OfferedFormat], publishes: Bool, receives: Bool,
        registry: inout ExtensionRegistry
    ) {
        self.offered = offered
        self.kind = kind
        self.formats = formats
        self.publishes = publishes
        self.receives = receives
        feedback = formats.reduce(into: []) { $0.formUnion($1.feedback) }
        if publishes { layers = Self.layers(of: offered, formats) }
        chooseCongestionControl()
        for map in offered.extensions { accept(map, &registry) }
        // Packet feedback needs numbered packets; REMB needs their send times.
        if extensions.contains(where: { $0.uri == RTPExtensionURI.transportSequenceNumber.rawValue }) {
            feedback.remove(.receiverEstimate)
        } else {
            feedback.remove(.transportWide)
            let uri = RTPExtensionURI.absoluteSendTime.rawValue
            if let map = offered.extensions.first(where: { $0.uri == uri }) { accept(map, &registry) }
        }
    }

    /// Decides whether the client reports each packet by its sequence number (RFC 8888).
    ///
    /// Only where it does not report by transport-wide numbers. Those have a resolution of a quarter of a
    /// millisecond instead of one, need no table to look packets up, and are what browsers have used for years. A
    /// publisher gets transport-wide feedback or REMB from us, never RFC 8888 feedback.
    private mutating func chooseCongestionControl() {
        let uri = RTPExtensionURI.transportSequenceNumber.rawValue
        let isNumbered =
            feedback.contains(.transportWide) && offered.extensions.contains { $0.uri == uri }
        if publishes || !receives || isNumbered {
            feedback.remove(.congestionControl)
        } else if feedback.contains(.congestionControl) {
            feedback.remove([.transportWide, .receiverEstimate])
        }
    }

    /// Falls back to receiver reports only.
    ///
    /// Used where another m-line of the session has transport-wide numbers: two clocks must not measure one path.
    mutating func refuseCongestionControl() {
        feedback.remove(.congestionControl)
    }

    /// Whether media flows on the m-line in either direction.
    var isActive: Bool { publishes || receives }

    /// The direction from our side.
    var direction: MediaDirection { MediaDirection(sends: receives, receives: publishes) }

    /// Feedback in the answer for one format: the offered kinds that this m-line uses.
    func feedback(of format: OfferedFormat) -> OfferedFormat.FeedbackKinds {
        let common: OfferedFormat.FeedbackKinds = [.transportWide, .nack]
        return format.feedback.intersection(feedback).intersection(
            kind == .audio ? common : common.union([.pictureLoss, .fullIntraRequest, .receiverEstimate]))
    }

    /// The m-line as a source, for one that publishes.
    var source: SourcePlan {
        let kinds = formats.reduce(into: OfferedFormat.FeedbackKinds()) { $0.formUnion(feedback(of: $1)) }
        return SourcePlan(
            mid: offered.mid, kind: kind, formats: formats.map(\.format), rids: layers.map(\.id),
            announced: offered.announced, supportsNACK: kinds.contains(.nack),
            supportsPLI: kinds.contains(.pictureLoss), supportsFIR: kinds.contains(.fullIntraRequest),
            answersKeyFrameRequests: kinds.contains(.pictureLoss) || kinds.contains(.fullIntraRequest))
    }

    /// The m-line as a slot, for one that receives.
    /// - Parameter isMixed: whether one- and two-byte header extensions may be mixed.
    func slot(_ identifiers: SlotIdentifiers.Slot, isMixed: Bool) -> SlotPlan {
        var extensions = slotExtensions
        // A key frame's descriptor exceeds the 16 bytes of the one-byte form, and without it the others are
        // useless.
        if !isMixed { extensions.dependencyDescriptor = nil }
        return SlotPlan(
            mid: offered.mid, kind: kind, ssrc: identifiers.ssrc, repairSSRC: identifiers.repairSSRC,
            cname: identifiers.cname, formats: formats.map(\.format), extensions: extensions,
            allowsMixedExtensions: isMixed, reportsBySequenceNumber: feedback.contains(.congestionControl),
            supportsNACK: formats.contains { self.feedback(of: $0).contains(.nack) })
    }

    /// Payload types of a layer that are read; RTP has no more.
    private static let maximumLayerFormats = 128

    /// The layers that some accepted format may carry, with `pt=` reduced to accepted formats.
    private static func layers(of offered: OfferedMedia, _ formats: [OfferedFormat]) -> [StreamRestriction] {
        let known = Set(formats.map { String($0.format.payloadType) })
        return offered.layers.compactMap { layer in
            var layer = layer
            layer.direction = .recv
            guard let index = layer.parameters.firstIndex(where: { $0.name == "pt" }) else { return layer }
            let accepted = (layer.parameters[index].value ?? "").utf8.split(separator: UInt8(ascii: ","))
                .prefix(Self.maximumLayerFormats).map { String(Substring($0)) }.filter(known.contains)
            guard !accepted.isEmpty else { return nil }
            layer.parameters[index].value = accepted.joined(separator: ",")
            return layer
        }
    }

    /// Accepts an extension that is useful in a direction in which media flows, if its id is consistent.
    private mutating func accept(_ map: ExtensionMap, _ registry: inout ExtensionRegistry) {
        guard let uri = RTPExtensionURI(rawValue: map.uri), let id = UInt8(exactly: map.id), isUseful(uri),
            !extensions.contains(where: { $0.uri == map.uri })
        else { return }
        let direction = map.direction ?? offered.direction
        let isSentToUs = publishes && direction.sends
        let isSentByUs = receives && direction.receives && uri != .rtpStreamID && uri != .repairedRTPStreamID
        guard isSentToUs || isSentByUs, registry.take(id, for: uri, isPublished: isSentToUs) else { return }
        extensions.append(map)
        if isSentByUs { slotExtensions[uri] = id }
    }

    /// Whether the server uses an extension on this m-line.
    private func isUseful(_ uri: RTPExtensionURI) -> Bool {
        switch uri {
        // The one-byte form has room for 16 bytes.
        case .mid: offered.mid.utf8.count <= 16
        case .rtpStreamID, .repairedRTPStreamID: !layers.isEmpty
        case .transportSequenceNumber: feedback.contains(.transportWide)
        case .absoluteSendTime: feedback.contains(.receiverEstimate) && !feedback.contains(.transportWide)
        case .absoluteCaptureTime: true
        case .audioLevel: kind == .audio
        case .playoutDelay, .videoOrientation: kind == .video
        case .dependencyDescriptor: kind == .video && (!publishes || mayDescribe)
        default: false
        }
    }
}

/// Limits which publishers may send the dependency descriptor.
extension NegotiatedLine {
    /// Whether the publisher sends AV1 without simulcast; only the descriptor marks the layers of AV1 packets.
    ///
    /// If Chrome may send it together with VP8, it strips picture ids and layers from VP8's own descriptor; viewers
    /// that do not support the extension (Firefox, most libraries) would then have neither.
    fileprivate var mayDescribe: Bool {
        layers.isEmpty && formats.first?.format.codec == .av1
            && !formats.contains { $0.format.codec == .vp8 }
    }
}

/// Ensures that each header extension has one id in all m-lines of a session.
///
/// A receiver reads the MID before it knows the m-line, so ids must not differ within a BUNDLE (RFC 9143 §12). An
/// m-line that deviates from those before it goes without the extension.
struct ExtensionRegistry {
    private var ids: [RTPExtensionURI: UInt8] = [:]
    private(set) var published = ExtensionIDs()

    /// Reserves an id for an extension.
    /// - Returns: false if the extension has another id, or the id belongs to another extension.
    mutating func take(_ id: UInt8, for uri: RTPExtensionURI, isPublished: Bool) -> Bool {
        if let known = ids[uri] {
            guard known == id else { return false }
        } else {
            guard !ids.values.contains(id) else { return false }
            ids[uri] = id
        }
        if isPublished { published[uri] = id }
        return true
    }
}

extension ExtensionIDs {
    /// The id of an extension; nil if it was not negotiated or is not supported.
    package subscript(uri: RTPExtensionURI) -> UInt8? {
        get { Self.fields[uri].flatMap { self[keyPath: $0] } }
        set {
            guard let field = Self.fields[uri] else { return }
            self[keyPath: field] = newValue
        }
    }

    /// The extensions that are supported, each with its property.
    private static var fields: [RTPExtensionURI: WritableKeyPath<ExtensionIDs, UInt8?>] {
        [
            .mid: \.mid, .rtpStreamID: \.rtpStreamID, .repairedRTPStreamID: \.repairedRTPStreamID,
            .transportSequenceNumber: \.transportSequenceNumber, .absoluteSendTime: \.absoluteSendTime,
            .absoluteCaptureTime: \.absoluteCaptureTime, .playoutDelay: \.playoutDelay,
            .audioLevel: \.audioLevel,
            .videoOrientation: \.videoOrientation, .dependencyDescriptor: \.dependencyDescriptor,
        ]
    }
}
