import Peer
import Wire

/// What the viewers of a worker are sent now, and what their paths are estimated to take: numbers of living sessions.
package struct DeliveryCensus: Equatable, Sendable {
    /// Heights of pictures, in pixels, each standing for all up to it that the one before does not cover.
    package static let heights = [180, 360, 480, 720, 1_080]
    /// The same for what paths take, in bits a second.
    package static let estimates = [150_000, 300_000, 600_000, 1_200_000, 2_500_000, 5_000_000, 10_000_000]

    /// Pictures by `heights`, with one place more for larger ones.
    package private(set) var pictures = [Int](repeating: 0, count: heights.count + 1)
    /// Pictures whose size no key frame has told.
    package private(set) var picturesOfUnknownSize = 0
    /// Wanted pictures in whose place nothing is sent, because the path takes none.
    package private(set) var picturesPaused = 0
    /// Paths by `estimates`, with one place more for those that take more: all that an estimate is
    /// known of.
    package private(set) var paths = [Int](repeating: 0, count: estimates.count + 1)

    package init() {}

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
            // A picture on its side is as high as it is wide.
            guard let height = slot.servedResolution.map({ Int(min($0.width, $0.height)) }) else {
                picturesOfUnknownSize += 1
                continue
            }
            pictures[Self.heights.firstIndex { height <= $0 } ?? Self.heights.count] += 1
        }
    }
}
