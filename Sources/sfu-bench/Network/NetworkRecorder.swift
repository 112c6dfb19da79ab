import Base
import Synchronization

/// What one viewer on an impaired network saw, from its thread to whoever reports.
final class NetworkRecorder: Sendable {
    /// Between two samples, in nanoseconds.
    static let interval: Int64 = 200_000_000

    /// One fifth of a second.
    struct Sample: Codable, Equatable, Sendable {
        /// From the beginning of the profile.
        var seconds: Double
        /// Bits a second.
        var capacity: Int
        var sent: Int
        var delivered: Int
        /// What the server believes that the path takes; nil where it does not say.
        var estimate: Int?
        /// Milliseconds that a packet took at most, the longest wait before the link included.
        var delay: Double
        /// Of the picture, in pixels; nil while there is none.
        var height: Int?
        /// Packets that found the queue full.
        var overflowed: Int
    }

    struct Record: Sendable {
        var samples: [Sample] = []
        /// When frames were shown.
        var frames: [MonotonicTime] = []
        var soundPackets = 0
        var soundExpected = 0
        /// Milliseconds that packets were read late by this tool, at most, in each sample.
        var lateness: [Double] = []
    }

    /// Frames and samples that are kept: of an hour.
    private static let most = 400_000

    let began: MonotonicTime
    private let profile: NetworkProfile
    private let record = Mutex(Record())
    private let estimate = Mutex<Int?>(nil)

    init(_ profile: NetworkProfile, at now: MonotonicTime) {
        self.profile = profile
        began = now
    }

    var all: Record { record.withLock { $0 } }

    func setEstimate(_ bitrate: Int?) { estimate.withLock { $0 = bitrate } }

    func noteFrame(at time: MonotonicTime) {
        record.withLock { if $0.frames.count < Self.most { $0.frames.append(time) } }
    }

    func noteLateness(_ nanoseconds: Int64) {
        record.withLock { record in
            guard let last = record.lateness.indices.last else { return }
            record.lateness[last] = max(record.lateness[last], Double(nanoseconds) / 1e6)
        }
    }

    func note(
        _ account: ImpairedLink.Account, seconds: Double, height: Int?, sound: (came: Int, expected: Int)
    ) {
        let estimate = estimate.withLock { $0 }
        record.withLock { record in
            guard record.samples.count < Self.most else { return }
            let span = seconds - (record.samples.last?.seconds ?? 0)
            func rate(_ bytes: Int) -> Int { span > 0.01 ? Int(Double(bytes) * 8 / span) : 0 }
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
