import Foundation

/// Validation and display of receivers' URLs.
package enum WebhookURL {
    /// Checks a URL from the configuration: `http` or `https` with a host, printable ASCII, at most 2,000 bytes;
    /// a port that exists.
    /// - Returns: the text, unchanged; nil if webhooks cannot be posted to it.
    package static func checked(_ text: String) -> String? {
        let isPlain = text.utf8.allSatisfy { $0 > 0x20 && $0 < 0x7F }
        guard isPlain, text.utf8.count <= 2_000, let url = URLComponents(string: text) else { return nil }
        guard ["http", "https"].contains(url.scheme?.lowercased()), url.host?.isEmpty == false else {
            return nil
        }
        // No connection can be made to any other port: each event would wait for days and then be dropped.
        if let port = url.port, !(1...65_535).contains(port) { return nil }
        return text
    }

    /// The URL for logs and answers, without the parts that may be secret: user, password, query and fragment.
    package static func shown(_ text: String) -> String {
        guard var url = URLComponents(string: text) else { return "?" }
        url.user = nil
        url.password = nil
        url.query = nil
        url.fragment = nil
        return url.string ?? "?"
    }
}
