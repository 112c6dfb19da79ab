import Base
import Synchronization

/// Records what one viewer on an emulated network sees.
///
/// The viewer's thread writes to it; the task that polls the server's estimate and the report use it as well.
final class NetworkRecorder: Sendable {
    /// Between two samples, in nanoseconds.
    static let interval: Int64 = 200_000_000

    /// The network and the picture over one fifth of a second.
    struct Sample: Codable, Equatable, Sendable {
        /// From the beginning of the profile, at the sample's end.
        var seconds: Double
        /// In bits a second: of the link, sent by the server, and delivered to the viewer.
        var capacity: Int
        var sent: Int
        var delivered: Int
        /// The server's own estimate of the path, in bits a second; nil if it reports none.
        var estimate: Int?
        /// Round trip plus the longest wait in the queue, in milliseconds.
        var delay: Double
        /// Of the picture shown, in pixels; nil while there is none.
        var height: Int?
        /// Packets dropped because the queue was full.
        var overflowed: Int
    }

    struct Record: Sendable {
        var samples: [Sample] = []
        /// When each frame was complete and could be decoded.
        var frames: [MonotonicTime] = []
        /// Since the start, as `soundExpected` is.
        var soundPackets = 0
        var soundExpected = 0
        /// For each sample, how late this tool read a packet at most, in milliseconds.
        var lateness: [Double] = []
    }

    /// The most frames, and the most samples, that are kept: those of an hour and more.
    private static let most = 400_000

    let began: MonotonicTime
    private let profile: NetworkProfile
    private let record = Mutex(Record())
    private let estimate = Mutex<Int?>(nil)

    init(_ profile: NetworkProfile, at now: MonotonicTime) {
        self.profile = profile
        began = now
    }

    /// A copy of all that was recorded so far.
    var all: Record { record.withLock { $0 } }

    func setEstimate(_ bitrate: Int?) { estimate.withLock { $0 = bitrate } }

    /// Called on the viewer's thread, like the functions below.
    func noteFrame(at time: MonotonicTime) {
        record.withLock { if $0.frames.count < Self.most { $0.frames.append(time) } }
    }

    /// Notes that the link's delivery was processed late; counts for the latest sample.
    func noteLateness(_ nanoseconds: Int64) {
        record.withLock { record in
            guard let last = record.lateness.indices.last else { return }
            record.lateness[last] = max(record.lateness[last], Double(nanoseconds) / 1e6)
        }
    }

    /// Adds a sample.
    /// - Parameters:
    ///   - account: of the link since the previous sample.
    ///   - sound: packets that arrived and packets that were expected, since the start.
    func note(
        _ account: ImpairedLink.Account, seconds: Double, height: Int?, sound: (came: Int, expected: Int)
    ) {
        let estimate = estimate.withLock { $0 }
        record.withLock { record in
            guard record.samples.count < Self.most else { return }
            let span = seconds - (record.samples.last?.seconds ?? 0)
            // A sample that is too short would give an arbitrary rate.
            func rate(_ bytes: Int) -> Int { span > 0.01 ? Int((Double(bytes) * 8 / span).rounded()) : 0 }
            record.samples.append(
                Sample(
                    seconds: seconds, capacity: profile.capacity(at: seconds), sent: rate(account.offered),
                    delivered: rate(account.delivered), estimate: estimate,
                    delay: profile.roundTrip + account.longestWait, height: height,
                    overflowed: account.overflowed))
            (record.soundPackets, record.soundExpected) = sound
            record.lateness.append(0)
        }
    }
}
