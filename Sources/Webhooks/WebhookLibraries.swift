import CCurl

/// The library that this target is linked with, as installed on this machine.
package enum WebhookLibraries {
    /// Name and version.
    package static var versions: [(name: String, version: String)] {
        [("libcurl", String(cString: ccurl_version()))]
    }
}
