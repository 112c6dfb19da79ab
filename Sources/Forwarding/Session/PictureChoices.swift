import Base
import Wire

/// The available pictures for a slot, the lowest first, and their bit rates.
struct PictureChoices {
    private(set) var grants: [Slot.Grant] = []
    /// Bit rate of each choice, in bits a second including headers.
    private(set) var steps: [Int] = []
    /// Index of the first choice that the publisher sends; those before are renditions.
    private(set) var own = 0
    /// Bit rates of the publisher's lowest and best choices.
    private let ownSteps: (least: Int, best: Int)
    /// Layers made by the server.
    private let renditions: [TrackLayer]
    /// The viewer's pin: `high` excludes renditions, `low` allows only them if there are any.
    private let pin: DeliveryPreferences.Pin?

    /// Percentage that the headers of all protocols add to the payload.
    private static let headers = 5
    /// Approximate share of a picture's bit rate in its lowest temporal layer, in percent, for two layers.
    private static let thinnedShare = 60

    init(of slot: Slot, _ track: Track, at now: MonotonicTime) {
        let layers = track.choices(for: slot, at: now)
        let only = layers.count == 1 && layers[0].isOnly ? layers[0] : nil
        pin = slot.session.preferences.pin
        renditions = pin == .high ? [] : track.renditions(for: slot, at: now)
        grants = layers.map { Slot.Grant.layer($0.index) }
        steps = layers.map { Self.withHeaders($0.bitrate(at: now)) }
        if let only, let best = slot.bestSpatialLayer(of: only) {
            let best = min(best, only.spatial.top)
            let spatial = (pin == nil ? 0 : best)...best
            grants = spatial.map { .spatial($0) }
            steps = spatial.map { Self.withHeaders(only.bitrate(upTo: $0, at: now)) }
        }
        if let only, only.tellsWhereToSwitch(at: now), !slot.isThinned, pin != .high {
            grants.insert(.thinned(only.index), at: 0)
            steps.insert(steps[0] * Self.thinnedShare / 100, at: 0)
        }
        ownSteps = (steps.first ?? 0, steps.last ?? 0)
        if only != nil { addRenditions() }
        // A larger picture may take less at the moment; its usual rate is what counts.
        for index in steps.indices.dropFirst() { steps[index] = max(steps[index], steps[index - 1]) }
    }

    /// Adds the renditions that take less than the publisher's lowest choice.
    private mutating func addRenditions() {
        var lower: [(grant: Slot.Grant, step: Int)] = []
        for layer in renditions {
            guard let rendition = layer.rendition else { continue }
            let cost = Self.withHeaders(rendition.bitrate)
            if rendition == .low {
                lower.append((.thinned(layer.index), cost * RenditionLayer.lowerShare / 100))
            }
            lower.append((.layer(layer.index), cost))
        }
        lower.removeAll { $0.step >= ownSteps.least }
        // A viewer pinned to the lowest layer gets only renditions.
        if pin == .low, !lower.isEmpty { (grants, steps) = ([], []) }
        grants.insert(contentsOf: lower.map(\.grant), at: 0)
        steps.insert(contentsOf: lower.map(\.step), at: 0)
        own = lower.count
    }

    /// A bit rate including headers.
    static func withHeaders(_ bitrate: Int) -> Int { bitrate + bitrate * headers / 100 }

    /// Whether there are renditions among the choices.
    var hasRenditions: Bool { own > 0 }

    /// Whether a grant is one of the publisher's own layers.
    func isOwn(_ grant: Slot.Grant) -> Bool { index(of: grant).map { $0 >= own } ?? false }

    /// The index of the choice that a grant stands for; nil for none.
    func index(of grant: Slot.Grant) -> Int? {
        if let known = grants.firstIndex(of: grant) { return known }
        switch grant {
        case .best: return steps.count - 1
        case .nothing: return nil
        case .layer(let layer), .thinned(let layer):
            // A rendition that has ended is not sent; any other layer that is gone counts as the publisher's lowest.
            let isOver = RenditionLayer(index: layer) != nil && !renditions.contains { $0.index == layer }
            return isOver ? nil : min(own, steps.count - 1)
        case .spatial(let layer):
            // The granted layer is no longer available or allowed, so the best one below it counts.
            let lower = grants.lastIndex { if case .spatial(let other) = $0 { other < layer } else { false } }
            return lower ?? min(own, steps.count - 1)
        }
    }

    /// Whether a rendition would help a viewer with this much room for pictures.
    /// - Parameters:
    ///   - grant: index of the choice that is sent; nil for none.
    ///   - room: in bits a second; nil if nothing limits what may be sent.
    func needRendition(at grant: Int?, in room: Int?) -> Bool {
        guard pin != .high, ownSteps.best >= RenditionLayer.worthwhileBitrate else { return false }
        if pin == .low || grant.map({ $0 < own }) ?? true { return true }
        return room.map { ownSteps.least > $0 + $0 / 8 } ?? false
    }
}
