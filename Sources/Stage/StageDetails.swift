import Base

/// What a host decides about a stream, and may change.
package struct StageDetails: Equatable, Sendable, Codable {
    /// What viewers see and hear.
    package enum Programme: String, Sendable, Codable, CaseIterable {
        case host
        /// Whoever speaks.
        case activeSpeaker = "active-speaker"
        /// Everybody on stage in one picture.
        case composed
    }

    /// Parts of the web client's pages that can be switched off.
    package enum Layer: String, Sendable, Codable, CaseIterable {
        case background, player, movable, lite, float
    }

    package var title: String?
    /// When viewers expect it to begin.
    package var startsAt: WallTime?
    /// So long before `startsAt` everybody may come in.
    package var joinAheadSeconds = 0
    /// How long a host may be away from a live stream.
    package var hostGraceSeconds = 30
    package var programme = Programme.host
    package var layers: [Layer] = Layer.allCases

    package init() {}

    package static let titleLength = 200
    package static let joinAheadRange = 0...86_400
    package static let hostGraceRange = 0...3_600

    /// From when on everybody may come in; nil if only going live opens the doors.
    package var admissionTime: WallTime? {
        startsAt?.advanced(bySeconds: -joinAheadSeconds)
    }

    /// - Throws: `.invalid`, naming the first field that is out of its range.
    func validate(at now: WallTime, startsAtIsNew: Bool) throws(Rejection) {
        if let title {
            let isPrintable = title.unicodeScalars.allSatisfy { $0.properties.generalCategory != .control }
            guard (1...Self.titleLength).contains(title.count), title.utf8.count <= 4 * Self.titleLength,
                isPrintable
            else { throw .invalid("title") }
        }
        guard Self.joinAheadRange.contains(joinAheadSeconds) else { throw .invalid("joinAheadSeconds") }
        guard Self.hostGraceRange.contains(hostGraceSeconds) else { throw .invalid("hostGraceSeconds") }
        guard layers.count <= Layer.allCases.count, Set(layers).count == layers.count else {
            throw .invalid("layers")
        }
        if startsAtIsNew, let startsAt {
            // A minute for slow forms and clocks that differ.
            guard startsAt.advanced(bySeconds: 60) >= now, startsAt <= .latest else {
                throw .invalid("startsAt")
            }
        }
    }
}

/// What somebody wants changed of the details; what is nil stays.
package struct StageEdit: Equatable, Sendable {
    package enum Field<Value: Equatable & Sendable>: Equatable, Sendable {
        case keep
        case clear
        case set(Value)

        func apply(to value: inout Value?) {
            switch self {
            case .keep: break
            case .clear: value = nil
            case .set(let new): value = new
            }
        }
    }

    package var title = Field<String>.keep
    package var startsAt = Field<WallTime>.keep
    package var joinAheadSeconds: Int?
    package var hostGraceSeconds: Int?
    package var programme: StageDetails.Programme?
    package var layers: [StageDetails.Layer]?

    package init() {}

    func applied(to details: StageDetails) -> StageDetails {
        var details = details
        title.apply(to: &details.title)
        startsAt.apply(to: &details.startsAt)
        if let joinAheadSeconds { details.joinAheadSeconds = joinAheadSeconds }
        if let hostGraceSeconds { details.hostGraceSeconds = hostGraceSeconds }
        if let programme { details.programme = programme }
        if let layers { details.layers = layers }
        return details
    }
}
