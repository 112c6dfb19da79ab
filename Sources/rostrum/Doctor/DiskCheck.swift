import Base
import Foundation

/// Checks whether the data directory can be written, how much space is left, and how fast the disk is.
enum DiskCheck {
    private static let subject = "disk"
    /// In bytes; less is a warning, because recordings stop before the disk is full.
    private static let littleSpace: Int64 = 2 << 30
    /// In bytes; less is a failure.
    private static let noSpace: Int64 = 64 << 20
    /// A durable write that takes longer is a warning: every command that changes a stream waits for one.
    private static let slow = Duration.milliseconds(50)
    /// Writes that are timed; their median counts.
    private static let trials = 5

    /// Examines the data directory, or the directory that it would be created in.
    /// - Parameter directory: nil if nothing is kept.
    static func examine(_ directory: String?) -> [Finding] {
        guard let directory else {
            return [.ok(subject, "nothing is kept: each restart begins empty")]
        }
        guard let place = existing(directory) else {
            return [
                .fail(subject, "cannot create \(directory)", remedy: "set another directory with --data")
            ]
        }
        guard access(place, W_OK | X_OK) == 0 else {
            let error = errno
            let remedy =
                error == EROFS
                ? "mount the file system for writing" : "give it to the server's user (chown)"
            return [
                .fail(
                    subject,
                    "user \(geteuid()) cannot write to \(place): \(String(cString: strerror(error)))",
                    remedy: "\(remedy), or set another directory with --data")
            ]
        }
        var space = statvfs()
        guard statvfs(place, &space) == 0 else {
            return [
                .fail(
                    subject, "\(place): \(String(cString: strerror(errno)))", remedy: "repair the file system"
                )
            ]
        }
        // Blocks for unprivileged processes, so without the file system's reserve for root.
        let free = Int64(clamping: UInt64(space.f_bavail) &* UInt64(space.f_frsize))
        // A directory that does not exist yet is not created for a trial, and its speed is not known.
        return [judge(place, free: free, durableAfter: place == directory ? writeTime(in: place) : .zero)]
    }

    /// The directory, or its nearest ancestor that exists; nil if that is not a directory.
    private static func existing(_ path: String) -> String? {
        var isDirectory: ObjCBool = false
        var candidate = path
        while !FileManager.default.fileExists(atPath: candidate, isDirectory: &isDirectory) {
            let parent = FileCopy.folder(of: candidate)
            guard parent != candidate else { return nil }
            candidate = parent
        }
        return isDirectory.boolValue ? candidate : nil
    }

    /// - Parameters:
    ///   - free: bytes that the server may still write.
    ///   - durableAfter: the median time of a durable write; zero if not measured, nil if nothing could be written.
    static func judge(_ place: String, free: Int64, durableAfter time: Duration?) -> Finding {
        guard let time else {
            return .fail(
                subject, "cannot write to \(place)",
                remedy: "check whether the disk is full or the file system is read-only")
        }
        let milliseconds = Double(time.wholeNanoseconds / 1_000) / 1_000
        let speed = time == .zero ? "" : ", durable writes take \(milliseconds) ms"
        let text = "\(place) has \(free >> 20) MB free\(speed)"
        if free < noSpace { return .fail(subject, text, remedy: "delete recordings, or use a larger disk") }
        if free < littleSpace {
            return .warn(
                subject, text,
                remedy: "an hour of recording takes 1 GB; delete some recordings, or use a larger disk")
        }
        if time > slow {
            return .warn(
                subject, text, remedy: "every command waits that long; move --data to a faster, local disk")
        }
        return .ok(subject, text)
    }

    /// Times durable writes of one block each, and returns the median; nil if one fails.
    private static func writeTime(in directory: String) -> Duration? {
        // The process ID keeps two doctors apart. O_EXCL never opens a file that exists.
        let path = directory + "/.rostrum-doctor-\(getpid())"
        let descriptor = open(path, O_CREAT | O_EXCL | O_WRONLY | O_CLOEXEC, 0o600)
        guard descriptor >= 0 else { return nil }
        defer {
            close(descriptor)
            unlink(path)
        }
        let block = [UInt8](repeating: 0x5A, count: 4_096)
        var times: [Duration] = []
        // `fdatasync` returns once the disk has the block, which is what a commit of the store waits for.
        for _ in 0..<trials {
            let start = ContinuousClock.now
            guard write(descriptor, block, block.count) == block.count, fdatasync(descriptor) == 0 else {
                return nil
            }
            times.append(ContinuousClock.now - start)
        }
        return times.sorted()[trials / 2]
    }
}
