import Base
import Foundation

/// The base URL of the server under test.
struct ServerAddress: Equatable, Sendable {
    let url: URL

    /// Used if the command line names no server.
    static let standard = ServerAddress(fixed: "http://127.0.0.1:8080")

    private init(fixed text: String) {
        url = URL(string: text) ?? URL(fileURLWithPath: "/")
    }

    /// Parses `http://host:port`, with or without a path; the scheme defaults to `http`.
    init(parsing text: String) throws(UsageError) {
        let whole = text.contains("://") ? text : "http://" + text
        guard let url = URL(string: whole), let host = url.host, !host.isEmpty,
            url.scheme == "http" || url.scheme == "https"
        else {
            throw UsageError("\"\(text)\" is not a server; use the form http://127.0.0.1:8080")
        }
        self.url = url
    }

    /// Whether the host is `localhost` or a loopback address.
    var isLoopback: Bool { Self.isLoopback(host: url.host ?? "") }

    /// Whether a host is loopback; an IPv6 address may be in brackets.
    ///
    /// Names other than `localhost` are not resolved, and count as remote.
    static func isLoopback(host: String) -> Bool {
        let bare = host.hasPrefix("[") && host.hasSuffix("]") ? String(host.dropFirst().dropLast()) : host
        if bare.lowercased() == "localhost" { return true }
        return IPAddress(bare)?.isLoopback ?? false
    }

    /// Checks a host that the server's answer names: an endpoint on loopback may be a tunnel to another machine.
    /// - Parameters:
    ///   - isOwned: whether the user said `--i-own-this-server`.
    ///   - own: this machine's addresses.
    static func checkNamed(_ host: String, isOwned: Bool, own: [IPAddress]) throws(RunFailure) {
        guard !isOwned, !isLoopback(host: host), !own.contains(where: { $0 == IPAddress(host) }) else {
            return
        }
        throw RunFailure(
            description: """
                the server names \(host), which is not this machine. Load hurts: if that server is yours, say \
                --i-own-this-server
                """)
    }

    /// The endpoint of a stream: a path on this server, or an absolute URL.
    func endpoint(_ template: String, stream: String) throws(UsageError) -> URL {
        let path = template.replacingOccurrences(of: "{stream}", with: stream)
        guard let endpoint = URL(string: path, relativeTo: url)?.absoluteURL, endpoint.host != nil,
            endpoint.scheme == "http" || endpoint.scheme == "https"
        else {
            throw UsageError("\"\(template)\" is neither a path nor a URL")
        }
        return endpoint
    }

    /// The host that requests to an endpoint go to.
    func host(of template: String) throws(UsageError) -> String {
        try endpoint(template, stream: "x").host ?? ""
    }

    /// The address for clients that open plain TCP sockets themselves.
    ///
    /// Names are not resolved, and TLS is not supported.
    func plainAddress(for command: Command) throws(UsageError) -> TransportAddress {
        let host = url.host == "localhost" ? "127.0.0.1" : url.host ?? ""
        guard url.scheme == "http", let ip = IPAddress(host), let port = UInt16(exactly: url.port ?? 80)
        else {
            throw UsageError(
                "\(command.rawValue) needs a server without TLS, given by IP address, such as http://127.0.0.1:8080"
            )
        }
        return TransportAddress(ip: ip, port: port)
    }
}
