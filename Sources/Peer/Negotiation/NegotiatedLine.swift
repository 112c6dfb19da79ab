import Wire

/// One accepted audio or video m-line.
struct NegotiatedLine {
    let offered: OfferedMedia
    let kind: MediaKind
    /// In the order of our answer; never empty.
    let formats: [OfferedFormat]
    let publishes: Bool
    let receives: Bool
    /// As the client named them; the answer turns their directions round.
    private(set) var extensions: [ExtensionMap] = []
    /// Ids for what we send.
    private(set) var slotExtensions = ExtensionIDs()
    /// Of all formats; one of transport-wide, by sequence number, or receiver estimates at most.
    private(set) var feedback: OfferedFormat.FeedbackKinds
    private(set) var layers: [StreamRestriction] = []

    init(
        _ offered: OfferedMedia, formats: [OfferedFormat], publishes: Bool, receives: Bool,
        registry: inout ExtensionRegistry
    ) {
        self.offered = offered
        kind = offered.kind == .video ? .video : .audio
        self.formats = formats
        self.publishes = publishes
        self.receives = receives
        feedback = formats.reduce(into: []) { $0.formUnion($1.feedback) }
        if publishes { layers = Self.layers(of: offered, formats) }
        chooseCongestionControl()
        for map in offered.extensions { accept(map, &registry) }
        // Feedback on every packet needs packets that are numbered; estimates need their send times.
        if extensions.contains(where: { $0.uri == RTPExtensionURI.transportSequenceNumber.rawValue }) {
            feedback.remove(.receiverEstimate)
        } else {
            feedback.remove(.transportWide)
            let uri = RTPExtensionURI.absoluteSendTime.rawValue
            if let map = offered.extensions.first(where: { $0.uri == uri }) { accept(map, &registry) }
        }
    }

    /// Whether the client is to tell of each packet by its sequence number (RFC 8888).
    ///
    /// Only where it is not to tell by transport-wide numbers, which know a quarter of a millisecond where these know
    /// one, need no table to look packets up in, and are what browsers have measured with for years. A client that
    /// sends is told by those, or by receiver estimates: nothing is reported to it by sequence number.
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

    /// Leaves it at the receiver reports: other m-lines of the connection are told of by transport-wide numbers, and
    /// one path is not measured by two clocks.
    mutating func refuseCongestionControl() {
        feedback.remove(.congestionControl)
    }

    var isActive: Bool { publishes || receives }

    /// Our direction.
    var direction: MediaDirection { MediaDirection(sends: receives, receives: publishes) }

    /// What we answer for one format: the offered kinds that this m-line uses.
    func feedback(of format: OfferedFormat) -> OfferedFormat.FeedbackKinds {
        let common: OfferedFormat.FeedbackKinds = [.transportWide, .nack]
        return format.feedback.intersection(feedback).intersection(
            kind == .audio ? common : common.union([.pictureLoss, .fullIntraRequest, .receiverEstimate]))
    }

    var source: SourcePlan {
        let kinds = formats.reduce(into: OfferedFormat.FeedbackKinds()) { $0.formUnion(feedback(of: $1)) }
        return SourcePlan(
            mid: offered.mid, kind: kind, formats: formats.map(\.format), rids: layers.map(\.id),
            announced: offered.announced, supportsNACK: kinds.contains(.nack),
            supportsPLI: kinds.contains(.pictureLoss), supportsFIR: kinds.contains(.fullIntraRequest),
            answersKeyFrameRequests: kinds.contains(.pictureLoss) || kinds.contains(.fullIntraRequest))
    }

    func slot(_ identifiers: SlotIdentifiers.Slot, isMixed: Bool) -> SlotPlan {
        var extensions = slotExtensions
        // A key frame's takes more than the 16 bytes of the one-byte form, and without it the others say nothing.
        if !isMixed { extensions.dependencyDescriptor = nil }
        return SlotPlan(
            mid: offered.mid, kind: kind, ssrc: identifiers.ssrc, repairSSRC: identifiers.repairSSRC,
            cname: identifiers.cname, formats: formats.map(\.format), extensions: extensions,
            allowsMixedExtensions: isMixed, reportsBySequenceNumber: feedback.contains(.congestionControl))
    }

    /// Payload types of a layer that are looked at: there are no more in RTP.
    private static let maximumLayerFormats = 128

    /// The layers that some accepted format may carry, with their `pt=` cut down to accepted formats.
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

    /// Whether we do anything with an extension on this m-line.
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

/// Which publishers may send the dependency descriptor.
extension NegotiatedLine {
    /// Those that will send AV1, whose layers nothing else tells of each packet, in one encoding.
    ///
    /// Where Chrome may send it and VP8, it strips VP8's own descriptor of picture ids and layers; viewers that do not
    /// know the extension (Firefox, most libraries) would have neither.
    fileprivate var mayDescribe: Bool {
        layers.isEmpty && formats.first?.format.codec == .av1
            && !formats.contains { $0.format.codec == .vp8 }
    }
}

/// Keeps one id for one header extension over the m-lines of a session.
///
/// A receiver reads the MID before it knows the m-line, so ids must not differ within a BUNDLE (RFC 9143 §9.1); an
/// m-line that deviates from those before it goes without the extension.
struct ExtensionRegistry {
    private var ids: [RTPExtensionURI: UInt8] = [:]
    private(set) var published = ExtensionIDs()

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
    /// The id of an extension; nil where it was not negotiated or is none that we handle.
    package subscript(uri: RTPExtensionURI) -> UInt8? {
        get { Self.fields[uri].flatMap { self[keyPath: $0] } }
        set {
            guard let field = Self.fields[uri] else { return }
            self[keyPath: field] = newValue
        }
    }

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
