import Base
import Wire

/// Some of the simulcast layers of a track, by their places.
struct LayerSet: OptionSet, Sendable {
    let rawValue: UInt8

    init(rawValue: UInt8) {
        self.rawValue = rawValue
    }

    /// One layer; none where the place is not that of a simulcast layer.
    init(_ index: Int) {
        rawValue = (0..<min(Track.layerLimit, UInt8.bitWidth)).contains(index) ? 1 << UInt8(index) : 0
    }
}

/// Which simulcast layers of a track somebody takes, so that its publisher can let the others rest.
///
/// On the worker of the publisher. Every worker says again and again what it takes for as long as it does: who has gone
/// need not say anything.
struct LayerNeeds {
    /// A layer that nobody has taken for so long is to rest.
    static let timeout = Duration.seconds(5)
    /// Between two times that a worker says what it takes.
    static let interval = Duration.seconds(1)

    /// By the places of layers; nil before the first look.
    private var lastTaken = [MonotonicTime?](repeating: nil, count: Track.layerLimit)
    /// What the publisher need not send.
    private(set) var resting = LayerSet()

    /// Somebody takes these layers.
    mutating func note(_ layers: LayerSet, at now: MonotonicTime) {
        for index in lastTaken.indices where layers.contains(LayerSet(index)) { lastTaken[index] = now }
    }

    /// Lets rest what nobody has taken for long, and calls back what somebody takes.
    /// - Parameters:
    ///   - sent: layers that come from the publisher now; of others it is not known whether they would.
    ///   - least: the layer that goes on always, so that there is something when somebody looks.
    /// - Returns: whether `resting` has changed.
    mutating func advance(sent: LayerSet, least: Int, at now: MonotonicTime) -> Bool {
        let before = resting
        for index in lastTaken.indices {
            let layer = LayerSet(index)
            if index == least || lastTaken[index] == nil { lastTaken[index] = now }
            guard let last = lastTaken[index], now >= last + Self.timeout else {
                resting.remove(layer)
                continue
            }
            if sent.contains(layer) { resting.insert(layer) }
        }
        return resting != before
    }
}
