import Foundation

#if canImport(FoundationNetworking)
    import FoundationNetworking
#endif

/// A request that is sent again because the server has named another address.
///
/// `URLSession` does not do it: on Linux it leaves the body out, and sends the token to whatever host is named.
/// - Source: RFC 9110 §15.4.
struct Redirect {
    let request: URLRequest

    /// - Returns: nil if the response does not redirect the request to an address of HTTP.
    init?(of former: URLRequest, by response: HTTPURLResponse) {
        guard let from = former.url, let location = response.value(forHTTPHeaderField: "Location"),
            let target = URL(string: location, relativeTo: from)?.absoluteURL,
            let scheme = target.scheme?.lowercased(), ["http", "https"].contains(scheme)
        else { return nil }
        var next = former
        switch (response.statusCode, former.httpMethod ?? "GET") {
        case (307, _), (308, _): break
        case (301, "POST"), (302, "POST"), (303, _):
            if former.httpMethod != "HEAD" { next.httpMethod = "GET" }
            next.httpBody = nil
            next.setValue(nil, forHTTPHeaderField: "Content-Type")
        case (301, _), (302, _): break
        default: return nil
        }
        next.url = target
        // The token is meant for the server that it was given for.
        if !Self.isSame(from, target, scheme) { next.setValue(nil, forHTTPHeaderField: "Authorization") }
        request = next
    }

    /// Whether the target is the same server, at the same port unless it is the one with encryption.
    private static func isSame(_ from: URL, _ target: URL, _ scheme: String) -> Bool {
        guard from.host?.lowercased() == target.host?.lowercased() else { return false }
        let former = from.scheme?.lowercased()
        return former == scheme ? from.port == target.port : scheme == "https"
    }
}

/// Has `URLSession` return redirects as they are.
final class NoRedirects: NSObject, URLSessionTaskDelegate {
    func urlSession(
        _ session: URLSession, task: URLSessionTask, willPerformHTTPRedirection response: HTTPURLResponse,
        newRequest request: URLRequest, completionHandler: @escaping @Sendable (URLRequest?) -> Void
    ) {
        completionHandler(nil)
    }
}
