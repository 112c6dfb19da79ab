import Base
import Synchronization

/// Which recordings are being played, so that retention deletes none under a player.
///
/// A player requests one piece at a time and may pause, so the time of the latest request decides.
final class RecordingReaders: Sendable {
    /// How long after its latest request a recording counts as being read.
    static let pause = Duration.seconds(600)
    /// Recordings that are remembered; beyond that, further ones may be deleted while they are read.
    private static let limit = 10_000

    private let latest = Mutex<[String: MonotonicTime]>([:])

    /// Records a request for a piece of a recording.
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
