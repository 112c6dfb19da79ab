import Base
import Synchronization

/// Which recordings somebody reads now, so that none goes away under a player, which asks for a part at a time.
final class RecordingReaders: Sendable {
    /// How long after the last request somebody counts as reading.
    static let pause = Duration.seconds(600)
    /// Recordings that are remembered; nobody waits for more.
    private static let limit = 10_000

    private let latest = Mutex<[String: MonotonicTime]>([:])

    /// Somebody asked for a part of it.
    func note(_ recording: String, at now: MonotonicTime) {
        latest.withLock { latest in
            if latest.count >= Self.limit { latest = latest.filter { $0.value + Self.pause > now } }
            if latest.count < Self.limit || latest[recording] != nil { latest[recording] = now }
        }
    }

    func isRead(_ recording: String, at now: MonotonicTime) -> Bool {
        latest.withLock { $0[recording].map { $0 + Self.pause > now } ?? false }
    }
}
