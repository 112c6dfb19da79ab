/// The header fields that describe a limit to a client that has reached it.
/// - Source: RFC 9110 §10.2.3 (`Retry-After`); draft-ietf-httpapi-ratelimit-headers-10 (`RateLimit`,
///   `RateLimit-Policy`).
package struct RateLimit: Sendable, Equatable {
    /// How many requests are allowed in which time.
    package struct Quota: Sendable, Equatable {
        /// Requests per window.
        let count: Int
        /// Length of the window in seconds: the time in which an empty bucket refills; at least 1.
        let window: Int

        /// - Parameters:
        ///   - burst: requests that may come in one moment.
        ///   - rate: further requests per second.
        package init(burst: Double, rate: Double) {
            count = Int(clamping: Int64(min(burst, 1e9)))
            window = max(1, Int(clamping: Int64(min(burst / max(rate, 1e-9), 1e9))))
        }
    }

    private let name: String
    private let wait: Int
    private let quota: Quota?

    /// - Parameters:
    ///   - name: of the limit; characters other than ASCII letters, digits and `-` are removed.
    ///   - wait: seconds until a retry can succeed.
    ///   - quota: nil if it differs between clients.
    package init(_ name: String, wait: Int, quota: Quota? = nil) {
        self.name = name.filter { $0.isASCII && ($0.isLetter || $0.isNumber || $0 == "-") }
        self.wait = wait
        self.quota = quota
    }

    /// The fields of the refusing response.
    package var headers: HTTPHeaders {
        var headers: HTTPHeaders = ["Retry-After": "\(wait)", "RateLimit": "\"\(name)\";r=0;t=\(wait)"]
        if let quota { headers.add("RateLimit-Policy", "\"\(name)\";q=\(quota.count);w=\(quota.window)") }
        return headers
    }
}
