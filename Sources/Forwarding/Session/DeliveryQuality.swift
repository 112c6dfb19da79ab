import Base
import Peer
import Synchronization

/// What a client is sent of what it wants, and why not more.
package struct DeliveryQuality: Equatable, Sendable {
    /// Why the pictures are not better.
    package enum Cause: String, Equatable, Sendable {
        /// The path's queue grows when more is sent.
        case delay
        /// The path loses too much of what is sent.
        case loss
        /// Nothing was sent yet that would show more, or the client shows the picture smaller than it could be.
        case application
        /// There is nothing better.
        case publisher
        /// The viewer chose so.
        case pinned
    }

    /// One of the sizes that a picture is to be had in.
    package struct Layer: Equatable, Sendable {
        /// As the publisher names it; nil where there is only one, or it came from another worker.
        package var rid: String?
        /// In pixels; nil until a key frame has told.
        package var width: Int?
        package var height: Int?
        /// In bits a second, as it comes from the publisher.
        package var bitrate: Int

        package init(rid: String?, width: Int?, height: Int?, bitrate: Int) {
            self.rid = rid
            self.width = width
            self.height = height
            self.bitrate = bitrate
        }
    }

    /// One m-line that can carry pictures, while something is to be seen on it.
    package struct Picture: Equatable, Sendable {
        package var mid: String
        /// The best that the client may have.
        package var wanted: Layer?
        /// What is sent; nil while nothing is.
        package var served: Layer?
        /// Whether pictures are held back: sound alone is sent.
        package var isPaused: Bool
        /// Whether nobody looks at it yet: of the feed's next story, which gets what the others leave.
        package var isPreview: Bool

        package init(mid: String, wanted: Layer?, served: Layer?, isPaused: Bool, isPreview: Bool = false) {
            self.mid = mid
            self.wanted = wanted
            self.served = served
            self.isPaused = isPaused
            self.isPreview = isPreview
        }
    }

    /// Bits a second that the path takes; nil where the client neither tells of each packet nor is
    /// connected by TCP.
    package var estimate: Int?
    package var roundTrip: Duration?
    /// Of what is looked at; nil while there is nothing to be seen.
    package var cause: Cause?
    /// In the order of the m-lines.
    package var pictures: [Picture]

    package init(estimate: Int?, roundTrip: Duration?, cause: Cause?, pictures: [Picture]) {
        self.estimate = estimate
        self.roundTrip = roundTrip
        self.cause = cause
        self.pictures = pictures
    }

    /// Whether a client should hear of it that knows `other`: rates and times differ a little all the time.
    func isNews(after other: DeliveryQuality?) -> Bool {
        guard let other, cause == other.cause, pictures.count == other.pictures.count else { return true }
        for (new, old) in zip(pictures, other.pictures) {
            guard new.mid == old.mid, new.isPaused == old.isPaused,
                new.isPreview == old.isPreview,
                Self.isSame(new.wanted, old.wanted), Self.isSame(new.served, old.served)
            else { return true }
        }
        guard let estimate, let old = other.estimate else {
            return (estimate == nil) != (other.estimate == nil)
        }
        return abs(estimate - old) > old / 4
    }

    private static func isSame(_ one: Layer?, _ other: Layer?) -> Bool {
        one?.rid == other?.rid && one?.height == other?.height && (one == nil) == (other == nil)
    }
}

/// Where a worker leaves what it serves to one client, for control to read at any time.
package final class QualityGauge: Sendable {
    private let latest = Mutex<DeliveryQuality?>(nil)
    private let ending = Mutex(Ending.none)

    /// Out of line: most sessions live, and need no room for it.
    private indirect enum Ending {
        case none
        case measured(SessionMeasurements)
    }

    package init() {}

    /// At most about a second old while anything is sent; nil until the client has told of anything.
    package var quality: DeliveryQuality? { latest.withLock { $0 } }

    func set(_ quality: DeliveryQuality) { latest.withLock { $0 = quality } }

    /// How the session was when it ended; nil while it lives.
    package var measurements: SessionMeasurements? {
        ending.withLock { if case .measured(let measurements) = $0 { measurements } else { nil } }
    }

    func close(with measurements: SessionMeasurements) { ending.withLock { $0 = .measured(measurements) } }
}
