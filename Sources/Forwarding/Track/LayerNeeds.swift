import Base
import Wire

/// A set of a track's simulcast layers, by index.
struct LayerSet: OptionSet, Sendable {
    let rawValue: UInt8

    init(rawValue: UInt8) {
        self.rawValue = rawValue
    }

    /// A set with one layer; empty if the index is not that of a simulcast layer.
    init(_ index: Int) {
        rawValue = (0..<min(Track.layerLimit, UInt8.bitWidth)).contains(index) ? 1 << UInt8(index) : 0
    }
}

/// Tracks which simulcast layers of a track are used, so that the publisher can stop sending the others.
///
/// It lives on the publisher's worker. Every worker repeats what it uses while it does, so that a viewer who leaves
/// needs no message.
struct LayerNeeds {
    /// Time without use after which a layer rests.
    static let timeout = Duration.seconds(5)
    /// Interval at which a worker repeats the layers it uses.
    static let interval = Duration.seconds(1)

    /// The latest use of each layer, by index; nil before the first evaluation.
    private var lastTaken = [MonotonicTime?](repeating: nil, count: Track.layerLimit)
    /// The layers that the publisher need not send.
    private(set) var resting = LayerSet()

    /// Notes that these layers are used.
    mutating func note(_ layers: LayerSet, at now: MonotonicTime) {
        for index in lastTaken.indices where layers.contains(LayerSet(index)) { lastTaken[index] = now }
    }

    /// Lets unused layers rest, and calls back those that are used again.
    /// - Parameters:
    ///   - sent: layers that arrive from the publisher now; of others it is unknown whether they could.
    ///   - least: index of the lowest layer, which never rests, so that something is there for a new viewer.
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
