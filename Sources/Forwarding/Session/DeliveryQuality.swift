import Base
import Peer
import Synchronization

/// What a client receives of the pictures it wants, and why not more.
package struct DeliveryQuality: Equatable, Sendable {
    /// Why the pictures are not better.
    package enum Cause: String, Equatable, Sendable {
        /// The path's queue grows when more is sent.
        case delay
        /// The path loses too much of what is sent.
        case loss
        /// Too little has been sent so far to measure more, or the client shows the picture smaller than it could be.
        case application
        /// The publisher sends nothing better.
        case publisher
        /// The viewer's preferences limit the picture.
        case pinned
    }

    /// One of the available encodings of a picture.
    package struct Layer: Equatable, Sendable {
        /// The publisher's RID; nil for a single layer, and for a track relayed from another worker.
        package var rid: String?
        /// In pixels; nil until a key frame has contained it.
        package var width: Int?
        /// In pixels; nil until a key frame has contained it.
        package var height: Int?
        /// In bits a second, as received from the publisher.
        package var bitrate: Int

        package init(rid: String?, width: Int?, height: Int?, bitrate: Int) {
            self.rid = rid
            self.width = width
            self.height = height
            self.bitrate = bitrate
        }
    }

    /// One video m-line that a track is attached to.
    package struct Picture: Equatable, Sendable {
        /// The MID of the m-line.
        package var mid: String
        /// The best layer that the client may get.
        package var wanted: Layer?
        /// The layer that is sent; nil while none is.
        package var served: Layer?
        /// Whether pictures are withheld, so that audio alone is sent.
        package var isPaused: Bool
        /// Whether it is the preview of the feed's next stream, which gets the bandwidth that the others leave.
        package var isPreview: Bool

        package init(mid: String, wanted: Layer?, served: Layer?, isPaused: Bool, isPreview: Bool = false) {
            self.mid = mid
            self.wanted = wanted
            self.served = served
            self.isPaused = isPaused
            self.isPreview = isPreview
        }
    }

    /// Estimated capacity of the path, in bits a second.
    ///
    /// Nil until the path is known: by feedback on each packet or a receiver's estimate, over TCP, or by heavy
    /// reported loss.
    package var estimate: Int?
    /// Smoothed round-trip time; nil before the first measurement.
    package var roundTrip: Duration?
    /// Why the focused picture is not better; nil while there is none.
    package var cause: Cause?
    /// In the order of the m-lines.
    package var pictures: [Picture]

    package init(estimate: Int?, roundTrip: Duration?, cause: Cause?, pictures: [Picture]) {
        self.estimate = estimate
        self.roundTrip = roundTrip
        self.cause = cause
        self.pictures = pictures
    }

    /// Whether it differs enough from `other` to notify the client, because rates and times always vary a little.
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

/// Where a worker publishes what it sends to one client, for control to read on any thread.
package final class QualityGauge: Sendable {
    private let latest = Mutex<DeliveryQuality?>(nil)
    private let ending = Mutex(Ending.none)

    /// Stored out of line, because most sessions have not ended and need no room for it.
    private indirect enum Ending {
        case none
        case measured(SessionMeasurements)
    }

    package init() {}

    /// At most about a second old while anything is sent; nil until the worker has first looked.
    package var quality: DeliveryQuality? { latest.withLock { $0 } }

    func set(_ quality: DeliveryQuality) { latest.withLock { $0 = quality } }

    /// The measurements at the end of the session; nil before.
    package var measurements: SessionMeasurements? {
        ending.withLock { if case .measured(let measurements) = $0 { measurements } else { nil } }
    }

    func close(with measurements: SessionMeasurements) { ending.withLock { $0 = .measured(measurements) } }
}
