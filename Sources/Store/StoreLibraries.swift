import CSQLite

/// The libraries that this target uses, as installed on this machine.
package enum StoreLibraries {
    /// Names and versions, for diagnostics.
    package static var versions: [(name: String, version: String)] {
        // The string is a constant of the library, so it is not freed.
        [("sqlite", unsafe String(cString: sqlite3_libversion()))]
    }
}
