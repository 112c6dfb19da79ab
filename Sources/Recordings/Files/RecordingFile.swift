import Base
import Dispatch
import Glibc
import Store
import Synchronization
import Transcoder

/// A file that is being recorded: the bytes from the transcoder are written here, and made durable every second or
/// sooner.
///
/// Writing happens on a queue of its own, so no caller waits for the disk.
final class RecordingFile: Sendable {
    /// How far the file is.
    struct Status: Equatable, Sendable {
        /// Playing time of what is durable.
        var milliseconds: Int64 = 0
        /// Bytes that are durable.
        var size: Int64 = 0
        /// Bytes that are written, whether durable or not.
        var written: Int64 = 0
        /// When viewers saw the beginning, in milliseconds since 1970; nil until something is durable.
        var filmedAt: Int64?
        /// Whether the end of the file is as it should be.
        var isComplete = false
    }

    private struct State {
        var status = Status()
        var path: String?
        var container = ""
        /// -1 before the file is opened and after it is closed.
        var descriptor: CInt = -1
        /// Bytes on the queue that are not written yet.
        var waitingBytes = 0
        var hasFailed = false
        /// Bytes written since the disk's free space was last checked.
        var unseenBytes = 0
    }

    /// Bytes between two checks of the disk's free space; much fewer than must stay free.
    private static let lookInterval = 4 << 20

    /// Bytes that may wait: a disk that is further behind counts as failed.
    private static let waitingLimit = 16 << 20

    /// Longest playing time in milliseconds, 34 years: within it no arithmetic overflows.
    ///
    /// A transcoder that has been taken over may report anything.
    private static let longest: UInt64 = 1 << 40

    private let queue = DispatchQueue(label: "recording-file", qos: .utility)
    private let state = Mutex(State())
    private let reserve: Int64
    private let fail: @Sendable (FileError) -> Void

    /// - Parameters:
    ///   - reserve: bytes of the disk that stay free.
    ///   - fail: called once, with the error after which nothing more is written.
    init(reserve: Int64, fail: @escaping @Sendable (FileError) -> Void) {
        self.reserve = reserve
        self.fail = fail
    }

    var status: Status { state.withLock { $0.status } }

    // MARK: What the transcoder says

    /// Creates the file; a second call does nothing.
    /// - Parameter container: the file's extension, `webm` or `mp4`.
    func begin(_ path: String, _ container: String) {
        queue.async { [self] in
            guard state.withLock({ $0.descriptor < 0 && $0.path == nil }) else { return }
            let descriptor = open(path, O_CREAT | O_EXCL | O_WRONLY | O_CLOEXEC, 0o600)
            guard descriptor >= 0 else { return failed(errno) }
            state.withLock { state in
                (state.path, state.container, state.descriptor) = (path, container, descriptor)
            }
        }
    }

    /// Writes bytes at an offset, which may overwrite earlier ones.
    func write(_ bytes: [UInt8], at offset: UInt64) {
        let hasRoom = state.withLock { state in
            guard state.waitingBytes + bytes.count <= Self.waitingLimit else { return false }
            state.waitingBytes += bytes.count
            return true
        }
        guard hasRoom else { return queue.async { [self] in failed(EBUSY) } }
        queue.async { [self] in
            let (descriptor, written) = state.withLock { state in
                state.waitingBytes -= bytes.count
                return (state.hasFailed ? -1 : state.descriptor, state.status.written)
            }
            guard descriptor >= 0 else { return }
            // A muxer leaves no gaps, so a gap means that the transcoder has been taken over.
            guard offset <= UInt64(written) else { return failed(EINVAL) }
            var place = 0
            while place < bytes.count {
                let count = bytes.withUnsafeBytes { buffer in
                    pwrite(
                        descriptor, buffer.baseAddress.map { $0 + place }, bytes.count - place,
                        off_t(offset) + off_t(place))
                }
                guard count > 0 else { return failed(count == 0 ? ENOSPC : errno) }
                place += count
            }
            let path = state.withLock { state -> String? in
                state.status.written = max(written, Int64(offset) + Int64(bytes.count))
                state.unseenBytes += bytes.count
                guard state.unseenBytes >= Self.lookInterval else { return nil }
                state.unseenBytes = 0
                return state.path
            }
            // Checked here as well as in `flush`, because `flush` is called when the transcoder chooses.
            if let path, let room = DiskSpace.room(at: path), room < reserve { failed(ENOSPC) }
        }
    }

    /// Records when the file's content was shown; only the first call counts.
    /// - Parameters:
    ///   - milliseconds: playing time of what will be flushed next.
    ///   - time: about when that ended.
    func note(_ milliseconds: UInt64, at time: WallTime) {
        state.withLock { state in
            guard state.status.filmedAt == nil, milliseconds > 0 else { return }
            state.status.filmedAt = time.milliseconds - Int64(min(milliseconds, Self.longest))
        }
    }

    /// Makes durable what was written so far.
    /// - Parameters:
    ///   - milliseconds: its playing time.
    ///   - isEnd: whether the file is complete.
    func flush(_ milliseconds: UInt64, isEnd: Bool = false) {
        queue.async { [self] in
            let (descriptor, path) = state.withLock { ($0.hasFailed ? -1 : $0.descriptor, $0.path) }
            guard descriptor >= 0, let path else { return }
            guard fdatasync(descriptor) == 0 else { return failed(errno) }
            state.withLock { state in
                state.status.milliseconds = Int64(min(milliseconds, Self.longest))
                state.status.size = state.status.written
                state.status.isComplete = isEnd
            }
            if !isEnd, let room = DiskSpace.room(at: path), room < reserve { failed(ENOSPC) }
        }
    }

    /// Returns once all earlier calls have taken effect.
    func settled() async {
        await withCheckedContinuation { continuation in queue.async { continuation.resume() } }
    }

    /// Closes the file, and repairs its end if it is incomplete.
    func close() async -> Status {
        await withCheckedContinuation { continuation in
            queue.async { [self] in
                shut()
                continuation.resume(returning: status)
            }
        }
    }

    // MARK: The end; on the queue

    /// Stops writing; only the first error is reported.
    private func failed(_ code: CInt) {
        let isFirst = state.withLock { state in
            defer { state.hasFailed = true }
            return !state.hasFailed
        }
        if isFirst { fail(FileError(code: code)) }
    }

    private func shut() {
        let (path, container, status, hadFailed) = state.withLock { state in
            defer { state.hasFailed = true }
            if state.descriptor >= 0 { Glibc.close(state.descriptor) }
            state.descriptor = -1
            return (state.path, state.container, state.status, state.hasFailed)
        }
        // An MP4 file also gets its tables now, which must not exist while it grows.
        guard let path, !status.isComplete || container == "mp4",
            let length = RecordingRepair.repair(path, container)
        else { return }
        state.withLock { state in
            // The muxer's time is exact, but the file may contain more than the muxer has reported.
            state.status.milliseconds = max(state.status.milliseconds, length.milliseconds)
            state.status.size = length.size
            // What was written before an error plays, too, but is not all.
            state.status.isComplete = !hadFailed
        }
    }
}
