import CCurl

/// What this target runs on, as it is found on this machine.
package enum WebhookLibraries {
    /// Names and versions.
    package static var versions: [(name: String, version: String)] {
        [("libcurl", String(cString: ccurl_version()))]
    }
}
