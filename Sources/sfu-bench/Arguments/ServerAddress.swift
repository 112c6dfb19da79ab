import Base
import Foundation

/// The base URL of the server under test.
struct ServerAddress: Equatable, Sendable {
    let url: URL

    static let standard = ServerAddress(fixed: "http://127.0.0.1:8080")

    private init(fixed text: String) {
        url = URL(string: text) ?? URL(fileURLWithPath: "/")
    }

    /// Takes `http://host:port`, with or without a path; the scheme may be left out.
    init(parsing text: String) throws(UsageError) {
        let whole = text.contains("://") ? text : "http://" + text
        guard let url = URL(string: whole), let host = url.host, !host.isEmpty,
            url.scheme == "http" || url.scheme == "https"
        else {
            throw UsageError("\"\(text)\" is no server: write it like http://127.0.0.1:8080")
        }
        self.url = url
    }

    /// Whether the host names this machine by a loopback address.
    var isLoopback: Bool { Self.isLoopback(host: url.host ?? "") }

    static func isLoopback(host: String) -> Bool {
        let bare = host.hasPrefix("[") && host.hasSuffix("]") ? String(host.dropFirst().dropLast()) : host
        if bare.lowercased() == "localhost" { return true }
        return IPAddress(bare)?.isLoopback ?? false
    }

    /// The endpoint for a stream: a path on this server, or a URL of its own.
    func endpoint(_ template: String, stream: String) throws(UsageError) -> URL {
        let path = template.replacingOccurrences(of: "{stream}", with: stream)
        guard let endpoint = URL(string: path, relativeTo: url)?.absoluteURL, endpoint.host != nil,
            endpoint.scheme == "http" || endpoint.scheme == "https"
        else {
            throw UsageError("\"\(template)\" is no path and no URL")
        }
        return endpoint
    }

    /// Where requests to an endpoint go.
    func host(of template: String) throws(UsageError) -> String {
        try endpoint(template, stream: "x").host ?? ""
    }

    /// Where many sockets connect; names are not looked up, TLS is not spoken.
    func plainAddress(for command: Command) throws(UsageError) -> TransportAddress {
        let host = url.host == "localhost" ? "127.0.0.1" : url.host ?? ""
        guard url.scheme == "http", let ip = IPAddress(host), let port = UInt16(exactly: url.port ?? 80)
        else {
            throw UsageError(
                "\(command.rawValue) wants a server without TLS, by its IP address, like http://127.0.0.1:8080"
            )
        }
        return TransportAddress(ip: ip, port: port)
    }
}
