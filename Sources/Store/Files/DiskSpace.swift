import Glibc

/// What a disk has left.
package enum DiskSpace {
    /// Bytes that this process may write yet where a file or folder is; nil where that is not known.
    package static func room(at path: String) -> Int64? {
        var status = statvfs()
        guard unsafe statvfs(path, &status) == 0 else { return nil }
        return Int64(clamping: UInt64(status.f_bavail) &* UInt64(status.f_frsize))
    }
}
