import Glibc

/// The free space of a file system.
package enum DiskSpace {
    /// Bytes that this process may still write at a path; nil if unknown.
    ///
    /// Without the blocks that the file system reserves for root.
    /// - Source: statvfs(3), `f_bavail`.
    package static func room(at path: String) -> Int64? {
        var status = statvfs()
        guard unsafe statvfs(path, &status) == 0 else { return nil }
        return Int64(clamping: UInt64(status.f_bavail) &* UInt64(status.f_frsize))
    }
}
