import Base
import Foundation
import Recordings
import Stage
import Store
import Synchronization

/// Where segments are kept that viewers can go back to.
package struct DVRSettings: Sendable {
    /// Made when it is missing; what an earlier server left in it is removed.
    package var directory: String
    /// No stream keeps more, in seconds, whatever its host wants.
    package var secondsLimit: Int
    /// Bytes of the disk that stay free: without them nothing more is written.
    package var reserve: Int64 = RecordingSettings(directory: "").reserve

    /// What a host may want, in seconds.
    package static let secondsRange = StageDetails.dvrRange

    package init(directory: String, secondsLimit: Int) {
        self.directory = directory
        self.secondsLimit = secondsLimit
    }
}

/// Segments on the disk, a folder for each stream: written and removed on a queue of their own, so that nothing waits.
///
/// They need not outlive the server: nothing is made durable.
final class SegmentShelf: Sendable {
    /// What is counted.
    struct Counters: Equatable, Sendable {
        /// In files now.
        var bytes = 0
        /// Segments that were not written, because the disk is full, too slow, or gone.
        var failed: UInt64 = 0
    }

    private struct State {
        var counters = Counters()
        /// Bytes that were not written yet.
        var waiting = 0
        /// Files that no playlist names any more, and when they go; the first goes first.
        var leaving: [(path: String, time: MonotonicTime)] = []
        /// By path.
        var sizes: [String: Int] = [:]
        var hasComplained = false
    }

    /// A disk that is so far behind is as good as none, in bytes.
    private static let waitingLimit = 32 << 20
    /// How long a file is there yet for those whose playlist names it.
    private static let leavingTime = Duration.seconds(30)

    let settings: DVRSettings
    private let log: Log
    private let queue = DispatchQueue(label: "hls-segments", qos: .utility)
    private let state = Mutex(State())

    init(_ settings: DVRSettings, log: Log) {
        self.settings = settings
        self.log = log
        queue.async { [settings] in
            // Nobody knows any more what they belong to. The folder itself may be a link to another disk.
            let left = (try? FileManager.default.contentsOfDirectory(atPath: settings.directory)) ?? []
            for name in left { try? FileManager.default.removeItem(atPath: "\(settings.directory)/\(name)") }
        }
    }

    var counters: Counters { state.withLock { $0.counters } }

    /// - Parameter name: of a segment, as playlists name it.
    func path(of name: String, in stream: StreamID) -> String { "\(settings.directory)/\(stream)/\(name)" }

    /// Writes a segment.
    /// - Parameter done: hears that it is on the disk, on some thread; of a failure, nothing.
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

    /// - Returns: what went wrong; nil for nothing.
    private func write(_ bytes: [UInt8], to path: String, in stream: StreamID) -> String? {
        do {
            try FileManager.default.createDirectory(
                atPath: "\(settings.directory)/\(stream)", withIntermediateDirectories: true,
                attributes: [.posixPermissions: 0o700])
            guard DiskSpace.room(at: settings.directory).map({ $0 >= settings.reserve }) ?? true else {
                return "the disk is full but for its reserve"
            }
            try Data(bytes).write(to: URL(fileURLWithPath: path))
            return nil
        } catch {
            try? FileManager.default.removeItem(atPath: path)
            return error.localizedDescription
        }
    }

    private func fail(_ reason: String) {
        let isFirst = state.withLock { state in
            state.counters.failed &+= 1
            defer { state.hasComplained = true }
            return !state.hasComplained
        }
        if isFirst { log.warning("hls.segment-not-kept", ["reason": reason]) }
    }

    /// Removes segments soon: who has an older playlist asks for them yet.
    func remove(_ names: [String], of stream: StreamID, at now: MonotonicTime) {
        guard !names.isEmpty else { return }
        state.withLock { state in
            state.leaving += names.map { (path(of: $0, in: stream), now + Self.leavingTime) }
        }
    }

    /// Removes what is due; called every second.
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
                // Only an empty folder goes.
                rmdir((path as NSString).deletingLastPathComponent)
                state.withLock { $0.counters.bytes -= $0.sizes.removeValue(forKey: path) ?? 0 }
            }
        }
    }

    /// Returns when what was said so far is done.
    func settled() async {
        await withCheckedContinuation { continuation in queue.async { continuation.resume() } }
    }
}
