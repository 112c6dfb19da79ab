import CWebSockets

/// What this target runs on, as it is found on this machine.
package enum HTTPLibraries {
    /// Names and versions.
    package static var versions: [(name: String, version: String)] {
        // Both are the libraries' own strings, which last. `4.1.6-…` names the distribution's build.
        let library = unsafe lws_get_library_version().map { unsafe String(cString: $0) }
        let loop = unsafe uv_version_string().map { unsafe String(cString: $0) }
        return [
            ("libwebsockets", library?.prefix { $0 != "-" }.description ?? "unknown"),
            ("libuv", loop ?? "unknown"),
        ]
    }
}
