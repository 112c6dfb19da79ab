import Base
import Dispatch
import Glibc
import Store
import Synchronization
import Transcoder

/// One file that is being recorded: what the transcoder says is written here, and made durable after each second or
/// less.
///
/// Writing happens on a queue of its own; whoever has something to write is never held up.
final class RecordingFile: Sendable {
    struct Status: Equatable, Sendable {
        /// As far as it is durable.
        var milliseconds: Int64 = 0
        var size: Int64 = 0
        /// Written, durable or not.
        var written: Int64 = 0
        /// When what it begins with was shown, in milliseconds since 1970; nil before something is durable.
        var filmedAt: Int64?
        /// Its end is as it should be.
        var isComplete = false
    }

    private struct State {
        var status = Status()
        var path: String?
        var container = ""
        var descriptor: CInt = -1
        var waitingBytes = 0
        var hasFailed = false
        /// Since the disk's room was looked at.
        var unseenBytes = 0
    }

    /// Written before the disk's room is looked at again; much less than what is to stay free.
    private static let lookInterval = 4 << 20

    /// A disk that is so far behind is as good as none.
    private static let waitingLimit = 16 << 20

    private let queue = DispatchQueue(label: "recording-file", qos: .utility)
    private let state = Mutex(State())
    private let reserve: Int64
    private let fail: @Sendable (FileError) -> Void

    /// - Parameters:
    ///   - reserve: bytes of the disk that stay free.
    ///   - fail: hears of the failure after which nothing is written any more.
    init(reserve: Int64, fail: @escaping @Sendable (FileError) -> Void) {
        self.reserve = reserve
        self.fail = fail
    }

    var status: Status { state.withLock { $0.status } }

    // MARK: What the transcoder says

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
            // A gap would be the doing of somebody who took the transcoder over.
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
            // Not only when the transcoder says that it is a good moment.
            if let path, let room = DiskSpace.room(at: path), room < reserve { failed(ENOSPC) }
        }
    }

    /// What is flushed next ends about now: the first time tells when it began.
    /// - Parameter milliseconds: how long it plays.
    func note(_ milliseconds: UInt64, at time: WallTime) {
        state.withLock { state in
            guard state.status.filmedAt == nil, milliseconds > 0 else { return }
            state.status.filmedAt = time.milliseconds - Int64(clamping: milliseconds)
        }
    }

    /// What was written so far plays for so long.
    func flush(_ milliseconds: UInt64, isEnd: Bool = false) {
        queue.async { [self] in
            let (descriptor, path) = state.withLock { ($0.hasFailed ? -1 : $0.descriptor, $0.path) }
            guard descriptor >= 0, let path else { return }
            guard fdatasync(descriptor) == 0 else { return failed(errno) }
            state.withLock { state in
                state.status.milliseconds = Int64(clamping: milliseconds)
                state.status.size = state.status.written
                state.status.isComplete = isEnd
            }
            if !isEnd, let room = DiskSpace.room(at: path), room < reserve { failed(ENOSPC) }
        }
    }

    /// Returns when what was said so far is done.
    func settled() async {
        await withCheckedContinuation { continuation in queue.async { continuation.resume() } }
    }

    /// Ends it, and mends its end where that is missing.
    func close() async -> Status {
        await withCheckedContinuation { continuation in
            queue.async { [self] in
                shut()
                continuation.resume(returning: status)
            }
        }
    }

    // MARK: The end; on the queue

    private func failed(_ code: CInt) {
        let isFirst = state.withLock { state in
            defer { state.hasFailed = true }
            return !state.hasFailed
        }
        if isFirst { fail(FileError(code: code)) }
    }

    private func shut() {
        let (path, container, status) = state.withLock { state in
            if state.descriptor >= 0 { Glibc.close(state.descriptor) }
            state.descriptor = -1
            state.hasFailed = true
            return (state.path, state.container, state.status)
        }
        // An MP4 file has tables once it is complete, and not before.
        guard let path, !status.isComplete || container == "mp4",
            let length = RecordingRepair.repair(path, container)
        else { return }
        state.withLock { state in
            // What the muxer said is exact, as far as it goes.
            state.status.milliseconds = max(state.status.milliseconds, length.milliseconds)
            state.status.size = length.size
            state.status.isComplete = true
        }
    }
}
