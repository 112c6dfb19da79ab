import CWebSockets

/// The libraries that this target is linked with, as installed on this machine.
package enum HTTPLibraries {
    /// Names and versions.
    package static var versions: [(name: String, version: String)] {
        // Both are static strings of the libraries. In `4.1.6-…` the part after the hyphen is the distribution's build.
        let library = unsafe lws_get_library_version().map { unsafe String(cString: $0) }
        let loop = unsafe uv_version_string().map { unsafe String(cString: $0) }
        return [
            ("libwebsockets", library?.prefix { $0 != "-" }.description ?? "unknown"),
            ("libuv", loop ?? "unknown"),
        ]
    }
}
