import Base
import Wire

/// One codec of an m-line that is forwarded, as the client offers it.
package struct OfferedFormat: Sendable {
    /// With the payload types of the offer, which an answer keeps.
    package let format: MediaFormat
    /// The offered `a=rtpmap`; an answer repeats it.
    package let map: RTPMap
    /// Nil if the offer has no `a=fmtp` for it.
    package let parameters: FormatParameters?
    /// Feedback kinds that both the client and the server support.
    package let feedback: FeedbackKinds
    /// Whether RED precedes the codec in the offer.
    ///
    /// libwebrtc then sends RED, if the answer keeps that order (`WebRtcVoiceSendChannel::SetSendCodecs`).
    let prefersRedundancy: Bool

    /// Payload types in the order of the answer, which is the offer's (RFC 3264 §6.1).
    var payloadTypes: [UInt8] {
        let redundancy = format.redundancyPayloadType
        let bare = [format.payloadType, format.repairPayloadType]
        return (prefersRedundancy ? [redundancy] + bare : bare + [redundancy]).compactMap(\.self)
    }

    /// Kinds of RTCP feedback that the server sends or processes.
    package struct FeedbackKinds: OptionSet, Sendable {
        /// A bit for each kind.
        package let rawValue: UInt8

        package init(rawValue: UInt8) {
            self.rawValue = rawValue
        }

        /// `nack`: RFC 4585 §6.2.1.
        package static let nack = FeedbackKinds(rawValue: 1)
        /// `nack pli`: RFC 4585 §6.3.1.
        package static let pictureLoss = FeedbackKinds(rawValue: 2)
        /// `ccm fir`: RFC 5104 §4.3.1.
        package static let fullIntraRequest = FeedbackKinds(rawValue: 4)
        /// `transport-cc`: draft-holmer-rmcat-transport-wide-cc-extensions-01.
        package static let transportWide = FeedbackKinds(rawValue: 8)
        /// `goog-remb`: draft-alvestrand-rmcat-remb-03.
        package static let receiverEstimate = FeedbackKinds(rawValue: 16)
        /// `ack ccfb`, for a whole m-line only: RFC 8888 §6.
        package static let congestionControl = FeedbackKinds(rawValue: 32)

        /// Spelled as in `a=rtcp-fb`, in the order of our answer.
        static let names: [(kind: FeedbackKinds, name: String)] = [
            (.receiverEstimate, "goog-remb"), (.transportWide, "transport-cc"),
            (.fullIntraRequest, "ccm fir"),
            (.nack, "nack"), (.pictureLoss, "nack pli"), (.congestionControl, congestionControlName),
        ]
        static let congestionControlName = "ack ccfb"
    }

    /// The formats of an m-line that are forwarded, in the order of its payload types.
    package static func formats(of description: MediaDescription) throws(WireError) -> [OfferedFormat] {
        let table = try PayloadTypeTable(description)
        var formats: [OfferedFormat] = []
        var passed = Set<UInt8>()
        for payloadType in try description.payloadTypes() {
            passed.insert(payloadType)
            guard let map = table.maps[payloadType] else { continue }
            let parameters = table.parameters[payloadType]
            guard let codec = MediaCodec(map, parameters, kind: description.kind) else { continue }
            formats.append(
                OfferedFormat(
                    format: MediaFormat(
                        codec: codec, payloadType: payloadType, repairPayloadType: table.repairs[payloadType],
                        redundancyPayloadType: table.redundancies[payloadType]),
                    map: map, parameters: parameters,
                    feedback: table.feedback[payloadType, default: []].union(table.commonFeedback),
                    prefersRedundancy: table.redundancies[payloadType].map(passed.contains) ?? false))
        }
        return formats.withoutSingleUnitModeWherePossible
    }

    /// The parameters for `a=fmtp` in our answer.
    ///
    /// - Parameter sends: whether we send on this m-line; then what the client offers for its own decoder applies
    ///   to us.
    func answeredParameters(sends: Bool) -> [FormatParameters.Parameter] {
        switch format.codec {
        case .opus:
            var answered: [FormatParameters.Parameter] = [
                .init("minptime", "10"), .init("useinbandfec", "1"),
            ]
            let isStereo = parameters?[name: "stereo"] == "1" || parameters?[name: "sprop-stereo"] == "1"
            if isStereo { answered.append(.init("stereo", "1")) }
            if isStereo && sends { answered.append(.init("sprop-stereo", "1")) }
            return answered
        case .vp8: return []
        case .vp9: return echoed(["profile-id"])
        case .h264:
            return [.init("level-asymmetry-allowed", "1")]
                + echoed(["packetization-mode", "profile-level-id"])
        case .av1: return echoed(["level-idx", "profile", "tier"])
        }
    }

    private func echoed(_ names: [String]) -> [FormatParameters.Parameter] {
        names.compactMap { name in parameters?[name: name].map { .init(name, $0) } }
    }
}

/// The attributes of an m-line by payload type, gathered in one pass because an offer may have 2,000 lines.
private struct PayloadTypeTable {
    var maps: [UInt8: RTPMap] = [:]
    var parameters: [UInt8: FormatParameters] = [:]
    /// RTX payload types by the payload type they repair.
    var repairs: [UInt8: UInt8] = [:]
    /// RED payload types of audio by the one payload type of all their blocks.
    var redundancies: [UInt8: UInt8] = [:]
    var feedback: [UInt8: OfferedFormat.FeedbackKinds] = [:]
    /// From `a=rtcp-fb:*`.
    var commonFeedback: OfferedFormat.FeedbackKinds = []

    init(_ description: MediaDescription) throws(WireError) {
        // If a payload type is described twice, the first description counts.
        for map in try description.rtpMaps() where maps[map.payloadType] == nil {
            maps[map.payloadType] = map
        }
        for item in try description.formatParameters() where parameters[item.payloadType] == nil {
            parameters[item.payloadType] = item
        }
        for payloadType in try description.payloadTypes() {
            // RFC 4588 §8.1: an RTX stream has the clock of what it repairs.
            guard let map = maps[payloadType], map.encoding.matchesIgnoringCase("rtx"),
                let repaired = parameters[payloadType]?[name: "apt"].flatMap({ UInt8($0) }),
                repairs[repaired] == nil, maps[repaired]?.clockRate == map.clockRate
            else { continue }
            repairs[repaired] = payloadType
        }
        for payloadType in try description.payloadTypes() where description.kind == .audio {
            guard let map = maps[payloadType], map.encoding.matchesIgnoringCase("red"),
                let blocks = parameters[payloadType]?.parameters.first,
                let block = Self.onlyBlock(of: blocks.name),
                redundancies[block] == nil, maps[block]?.clockRate == map.clockRate
            else { continue }
            redundancies[block] = payloadType
        }
        for item in try description.feedback() {
            guard let known = OfferedFormat.FeedbackKinds.names.first(where: { $0.name == item.kind }) else {
                continue
            }
            if let payloadType = item.payloadType {
                // This feedback concerns sequence numbers, which all payload types of a stream share (RFC 8888 §6).
                guard known.kind != .congestionControl else { continue }
                feedback[payloadType, default: []].insert(known.kind)
            } else {
                commonFeedback.insert(known.kind)
            }
        }
    }

    /// The payload type in a list such as `111/111`; nil if blocks have several payload types.
    private static func onlyBlock(of text: String) -> UInt8? {
        let blocks = text.utf8.split(separator: UInt8(ascii: "/"), maxSplits: 8).map { UInt8(Substring($0)) }
        guard let first = blocks.first, let first, blocks.count > 1, blocks.allSatisfy({ $0 == first }) else {
            return nil
        }
        return first
    }
}

extension [OfferedFormat] {
    /// The formats without H.264 in packetization mode 0, unless there is no other H.264.
    ///
    /// Mode 1 permits all that mode 0 does (RFC 6184 §6.3), and each further format makes the answer longer.
    fileprivate var withoutSingleUnitModeWherePossible: [OfferedFormat] {
        guard contains(where: { $0.format.codec == .h264(packetizationMode: 1) }) else { return self }
        return filter { $0.format.codec != .h264(packetizationMode: 0) }
    }
}

extension MediaCodec {
    /// A codec without its parameters, for configuration and metrics.
    package enum Family: String, Hashable, Sendable, CaseIterable {
        case opus, vp8, vp9, h264, av1
    }

    /// The codec without its profile.
    package var family: Family {
        switch self {
        case .opus: .opus
        case .vp8: .vp8
        case .vp9: .vp9
        case .h264: .h264
        case .av1: .av1
        }
    }

    /// Recognizes a codec.
    /// - Returns: nil for a codec, or a variant of one, that is not forwarded.
    init?(_ map: RTPMap, _ parameters: FormatParameters?, kind: MediaKind?) {
        switch (kind, map.encoding.lowercased(), map.clockRate) {
        case (.audio, "opus", 48_000): self = .opus
        case (.video, "vp8", 90_000): self = .vp8
        case (.video, "vp9", 90_000):
            // Profiles 1 and 3 have other chroma formats than 4:2:0, which browsers do not encode.
            switch parameters?[name: "profile-id"] ?? "0" {
            case "0": self = .vp9(profile: 0)
            case "2": self = .vp9(profile: 2)
            default: return nil
            }
        case (.video, "h264", 90_000):
            switch parameters?[name: "packetization-mode"] ?? "0" {
            case "0": self = .h264(packetizationMode: 0)
            case "1": self = .h264(packetizationMode: 1)
            default: return nil
            }
        case (.video, "av1", 90_000):
            guard parameters?[name: "profile"] ?? "0" == "0" else { return nil }
            self = .av1
        default: return nil
        }
    }
}
