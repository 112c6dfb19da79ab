/// What a client is told about a limit that it has reached.
/// - Source: RFC 9110 §10.2.3 (`Retry-After`); draft-ietf-httpapi-ratelimit-headers-10 (`RateLimit`,
///   `RateLimit-Policy`).
package struct RateLimit: Sendable, Equatable {
    /// So many, in so many seconds.
    package struct Quota: Sendable, Equatable {
        let count: Int
        /// In seconds.
        let window: Int

        /// - Parameters:
        ///   - burst: how many may come at once.
        ///   - rate: how many more a second.
        package init(burst: Double, rate: Double) {
            count = Int(clamping: Int64(min(burst, 1e9)))
            window = max(1, Int(clamping: Int64(min(burst / max(rate, 1e-9), 1e9))))
        }
    }

    private let name: String
    private let wait: Int
    private let quota: Quota?

    /// - Parameters:
    ///   - name: of the limit; other characters than those of names are left out.
    ///   - wait: seconds until it is worth trying again.
    ///   - quota: nil where it is not the same for everybody.
    package init(_ name: String, wait: Int, quota: Quota? = nil) {
        self.name = name.filter { $0.isASCII && ($0.isLetter || $0.isNumber || $0 == "-") }
        self.wait = wait
        self.quota = quota
    }

    /// Of the answer that refuses.
    package var headers: HTTPHeaders {
        var headers: HTTPHeaders = ["Retry-After": "\(wait)", "RateLimit": "\"\(name)\";r=0;t=\(wait)"]
        if let quota { headers.add("RateLimit-Policy", "\"\(name)\";q=\(quota.count);w=\(quota.window)") }
        return headers
    }
}
