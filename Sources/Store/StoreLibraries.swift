import CSQLite

/// What this target runs on, as it is found on this machine.
package enum StoreLibraries {
    /// Names and versions.
    package static var versions: [(name: String, version: String)] {
        // The library's own string, which lasts.
        [("sqlite", unsafe String(cString: sqlite3_libversion()))]
    }
}
