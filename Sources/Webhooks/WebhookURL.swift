import Foundation

/// Where webhooks go.
package enum WebhookURL {
    /// - Returns: nil if `text` is no URL that webhooks can be posted to.
    package static func checked(_ text: String) -> String? {
        let isPlain = text.utf8.allSatisfy { $0 > 0x20 && $0 < 0x7F }
        guard isPlain, text.utf8.count <= 2_000, let url = URLComponents(string: text) else { return nil }
        guard ["http", "https"].contains(url.scheme?.lowercased()), url.host?.isEmpty == false else {
            return nil
        }
        return text
    }

    /// Without what may be secret: user, password and query.
    package static func shown(_ text: String) -> String {
        guard var url = URLComponents(string: text) else { return "?" }
        url.user = nil
        url.password = nil
        url.query = nil
        url.fragment = nil
        return url.string ?? "?"
    }
}
