import Base
import Wire

/// What could be sent in a slot, the least first and the best last, and what it costs.
struct PictureChoices {
    private(set) var grants: [Slot.Grant] = []
    /// In bits a second, with headers.
    private(set) var steps: [Int] = []
    /// The first that the publisher sends itself: what comes before are renditions.
    private(set) var own = 0
    /// Bit rates of the least and of the best that the publisher sends.
    private let ownSteps: (least: Int, best: Int)
    /// Layers that the server makes itself.
    private let renditions: [TrackLayer]
    /// Whether renditions are for this viewer at all, and whether nothing else is where there is one.
    private let pin: DeliveryPreferences.Pin?

    /// Percent that headers of all protocols add to the payload of media.
    private static let headers = 5
    /// Share of a picture's bit rate that its lowest temporal layer takes, in percent: of two layers about so much.
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
        // A larger picture may for once take less: what it will take is what counts.
        for index in steps.indices.dropFirst() { steps[index] = max(steps[index], steps[index - 1]) }
    }

    /// Those that take less than the least that the publisher sends.
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
        // Who wants the least there is gets no more than that.
        if pin == .low, !lower.isEmpty { (grants, steps) = ([], []) }
        grants.insert(contentsOf: lower.map(\.grant), at: 0)
        steps.insert(contentsOf: lower.map(\.step), at: 0)
        own = lower.count
    }

    static func withHeaders(_ bitrate: Int) -> Int { bitrate + bitrate * headers / 100 }

    /// Whether there are renditions to choose.
    var hasRenditions: Bool { own > 0 }

    /// Whether something is sent that the publisher sends itself.
    func isOwn(_ grant: Slot.Grant) -> Bool { index(of: grant).map { $0 >= own } ?? false }

    /// Which of them is sent; nil for none.
    func index(of grant: Slot.Grant) -> Int? {
        if let known = grants.firstIndex(of: grant) { return known }
        switch grant {
        case .best: return steps.count - 1
        case .nothing: return nil
        case .layer(let layer), .thinned(let layer):
            // A rendition that has ended is not sent; of others, what is not to be had any more counts as the least.
            let isOver = RenditionLayer(index: layer) != nil && !renditions.contains { $0.index == layer }
            return isOver ? nil : min(own, steps.count - 1)
        case .spatial(let layer):
            // Layers above are not to be had any more, or not to be chosen.
            let lower = grants.lastIndex { if case .spatial(let other) = $0 { other < layer } else { false } }
            return lower ?? min(own, steps.count - 1)
        }
    }

    /// Whether a rendition would help who has so much room for pictures.
    /// - Parameters:
    ///   - grant: what is sent, by its place; nil for nothing.
    ///   - room: bits a second; nil where nothing limits what may be sent.
    func needRendition(at grant: Int?, in room: Int?) -> Bool {
        guard pin != .high, ownSteps.best >= RenditionLayer.worthwhileBitrate else { return false }
        if pin == .low || grant.map({ $0 < own }) ?? true { return true }
        return room.map { ownSteps.least > $0 + $0 / 8 } ?? false
    }
}
