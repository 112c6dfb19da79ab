import Base
import Peer
import Wire

/// Counts what the living sessions of a worker are sent now, and the estimated capacities of their paths.
package struct DeliveryCensus: Equatable, Sendable {
    /// Upper bounds of the classes of picture heights, in pixels.
    package static let heights = [180, 360, 480, 720, 1_080]
    /// Upper bounds of the classes of path capacities, in bits a second.
    package static let estimates = [150_000, 300_000, 600_000, 1_200_000, 2_500_000, 5_000_000, 10_000_000]

    /// Number of pictures per class of `heights`, with one more class for larger ones.
    package private(set) var pictures = [Int](repeating: 0, count: heights.count + 1)
    /// Number of pictures whose size no key frame contained.
    package private(set) var picturesOfUnknownSize = 0
    /// Number of wanted pictures that are not sent, because the path can carry none.
    package private(set) var picturesPaused = 0
    /// Number of paths per class of `estimates`, with one more class for faster ones; only paths with an estimate.
    package private(set) var paths = [Int](repeating: 0, count: estimates.count + 1)

    package init() {}

    /// Adds a session's video slots and its path.
    mutating func count(_ session: Session) {
        if let path = session.path, path.isKnown {
            let estimate = path.bitrate
            paths[Self.estimates.firstIndex { estimate <= $0 } ?? Self.estimates.count] += 1
        }
        guard !session.preferences.isAudioOnly else { return }
        for slot in session.slots where slot.plan.kind == .video && slot.track != nil {
            guard slot.grant != .nothing, session.sendsPictures else {
                picturesPaused += 1
                continue
            }
            guard slot.current != nil, !slot.isStopped else { continue }
            // The shorter side counts, so that a rotated picture is treated like an upright one.
            guard let height = slot.servedResolution.map({ Int(min($0.width, $0.height)) }) else {
                picturesOfUnknownSize += 1
                continue
            }
            pictures[Self.heights.firstIndex { height <= $0 } ?? Self.heights.count] += 1
        }
    }
}
