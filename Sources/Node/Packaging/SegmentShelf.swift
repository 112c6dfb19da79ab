import Base
import Foundation
import Recordings
import Stage
import Store
import Synchronization

/// Where segments are kept for viewers who go back, and how much of them.
package struct DVRSettings: Sendable {
    /// The folder of the segments; created if it is missing, and emptied at the start.
    package var directory: String
    /// The longest window of any stream, in seconds, whatever its host wants.
    package var secondsLimit: Int
    /// Bytes that stay free on the disk; no segment is written when less is free.
    package var reserve: Int64 = RecordingSettings(directory: "").reserve

    /// The windows that a host may choose, in seconds.
    package static let secondsRange = StageDetails.dvrRange

    package init(directory: String, secondsLimit: Int) {
        self.directory = directory
        self.secondsLimit = secondsLimit
    }
}

/// Segments on disk, in one folder for each stream.
///
/// All file operations run on a queue of their own, so that a slow disk delays no caller. Nothing is synced to the
/// disk: segments need not survive the server.
final class SegmentShelf: Sendable {
    /// Counts for monitoring.
    struct Counters: Equatable, Sendable {
        /// Bytes of all files on disk now.
        var bytes = 0
        /// Segments that were not written because the disk is full, too slow, or broken.
        var failed: UInt64 = 0
    }

    private struct State {
        var counters = Counters()
        /// Bytes that are queued but not written yet.
        var waiting = 0
        /// Files that no playlist lists any more, with the time when each is deleted, in order of time.
        var leaving: [(path: String, time: MonotonicTime)] = []
        /// Bytes of each file on disk, by path.
        var sizes: [String: Int] = [:]
        /// Whether the log already reports the present failure; cleared by a successful write.
        var hasComplained = false
    }

    /// Bytes that may wait for the disk; beyond that the disk counts as too slow and segments are dropped.
    private static let waitingLimit = 32 << 20
    /// How long a file remains for players whose playlist still lists it.
    private static let leavingTime = Duration.seconds(30)

    let settings: DVRSettings
    private let log: Log
    private let queue = DispatchQueue(label: "hls-segments", qos: .utility)
    private let state = Mutex(State())

    init(_ settings: DVRSettings, log: Log) {
        self.settings = settings
        self.log = log
        queue.async { [settings] in
            // Segments of an earlier process belong to no playlist. The folder itself stays: it may be a link to
            // another disk.
            let left = (try? FileManager.default.contentsOfDirectory(atPath: settings.directory)) ?? []
            for name in left { try? FileManager.default.removeItem(atPath: "\(settings.directory)/\(name)") }
        }
    }

    var counters: Counters { state.withLock { $0.counters } }

    /// The path of a segment's file, whether it exists or not.
    /// - Parameter name: of a segment, as playlists list it.
    func path(of name: String, in stream: StreamID) -> String { "\(settings.directory)/\(stream)/\(name)" }

    /// Queues a segment to be written.
    /// - Parameter done: called on the shelf's queue once the segment is on disk; not called after a failure.
    func write(_ name: String, _ bytes: [UInt8], of stream: StreamID, _ done: @escaping @Sendable () -> Void)
    {
        let hasRoom = state.withLock { state in
            guard state.waiting + bytes.count <= Self.waitingLimit else { return false }
            state.waiting += bytes.count
            return true
        }
        guard hasRoom else { return fail("the disk is too slow") }
        let path = path(of: name, in: stream)
        queue.async { [self] in
            let failure = write(bytes, to: path, in: stream)
            state.withLock { $0.waiting -= bytes.count }
            guard failure == nil else { return fail(failure ?? "") }
            state.withLock { state in
                state.hasComplained = false
                state.counters.bytes += bytes.count
                state.sizes[path] = bytes.count
            }
            done()
        }
    }

    /// Writes a segment's file, on the shelf's queue.
    /// - Returns: the reason of a failure; nil after success.
    private func write(_ bytes: [UInt8], to path: String, in stream: StreamID) -> String? {
        do {
            try FileManager.default.createDirectory(
                atPath: "\(settings.directory)/\(stream)", withIntermediateDirectories: true,
                attributes: [.posixPermissions: 0o700])
            // Where the free space cannot be read, the write itself has to show whether there is any.
            guard DiskSpace.room(at: settings.directory).map({ $0 >= settings.reserve }) ?? true else {
                return "the disk is full but for its reserve"
            }
            try Data(bytes).write(to: URL(fileURLWithPath: path))
            return nil
        } catch {
            // A partial file must not be served.
            try? FileManager.default.removeItem(atPath: path)
            return error.localizedDescription
        }
    }

    /// Counts a failure, and logs only the first of a row.
    private func fail(_ reason: String) {
        let isFirst = state.withLock { state in
            state.counters.failed &+= 1
            defer { state.hasComplained = true }
            return !state.hasComplained
        }
        if isFirst { log.warning("hls.segment-not-kept", ["reason": reason]) }
    }

    /// Schedules segments for deletion after `leavingTime`, because players with an older playlist still request
    /// them.
    func remove(_ names: [String], of stream: StreamID, at now: MonotonicTime) {
        guard !names.isEmpty else { return }
        state.withLock { state in
            state.leaving += names.map { (path(of: $0, in: stream), now + Self.leavingTime) }
        }
    }

    /// Deletes the files that are due; called every second.
    func advance(at now: MonotonicTime) {
        let due = state.withLock { state in
            let due = state.leaving.prefix { $0.time <= now }.map(\.path)
            state.leaving.removeFirst(due.count)
            return due
        }
        guard !due.isEmpty else { return }
        queue.async { [self] in
            for path in due {
                unlink(path)
                // `rmdir` fails, as it should, while the folder holds other segments.
                rmdir((path as NSString).deletingLastPathComponent)
                state.withLock { $0.counters.bytes -= $0.sizes.removeValue(forKey: path) ?? 0 }
            }
        }
    }

    /// Returns once all file operations that were queued so far are done.
    func settled() async {
        await withCheckedContinuation { continuation in queue.async { continuation.resume() } }
    }
}
