import CCurl

/// The outcome of a GET request.
struct FetchedAnswer: Equatable, Sendable {
    /// The HTTP status; 0 if there was no response, and `error` has the reason.
    var status = 0
    /// The body; empty if it was only counted.
    var bytes: [UInt8] = []
    /// Length of the body in bytes.
    var count = 0
    /// The server's `Retry-After` in seconds; nil if there was none.
    var retryAfter: Double?
    var error = ""
}

/// Sends the GET requests of many clients concurrently, with libcurl over persistent connections.
///
/// With HTTP/1.1 each request under way occupies a connection; with HTTP/2 many share one. Belongs to one thread.
final class HTTPFetcher {
    private let handle: OpaquePointer
    /// For one request, in milliseconds: longer than any server blocks.
    private static let timeout = 20_000

    /// - Parameter connections: the most that are open at a time; further requests wait for one of them.
    init(connections: Int) throws {
        guard let handle = ccurl_fetcher_open(connections) else {
            throw RunFailure(description: "libcurl cannot start: out of memory or open files")
        }
        self.handle = handle
    }

    deinit {
        ccurl_fetcher_close(handle)
    }

    /// Starts a request.
    /// - Parameters:
    ///   - number: identifies the request in `wait`.
    ///   - header: a line `Name: value`; nil for none.
    ///   - limit: of the body, in bytes; a longer one is an error.
    ///   - keepsBytes: whether the answer contains the body, or only its length.
    /// - Returns: false if the request cannot be made.
    func get(_ url: String, number: UInt64, header: String?, limit: Int, keepsBytes: Bool) -> Bool {
        ccurl_fetcher_get(handle, number, url, header, Self.timeout, limit, keepsBytes ? 1 : 0) == 0
    }

    /// Waits for network activity, then sends and reads what is possible.
    /// - Parameter take: called for each request that has ended, with its number.
    func wait(milliseconds: Int, _ take: (UInt64, FetchedAnswer) -> Void) {
        ccurl_fetcher_wait(handle, CInt(clamping: milliseconds))
        var fetched = ccurl_fetched()
        while ccurl_fetcher_next(handle, &fetched) == 1 {
            var answer = FetchedAnswer(status: fetched.status, count: fetched.count)
            if let body = fetched.body {
                // The bytes belong to libcurl's side until the next call, so they are copied.
                answer.bytes = Array(UnsafeBufferPointer(start: body, count: fetched.count))
            }
            if fetched.retry_after > 0 { answer.retryAfter = Double(fetched.retry_after) }
            if fetched.status == 0 {
                answer.error = withUnsafeBytes(of: fetched.error) { bytes in
                    String(decoding: bytes.prefix { $0 != 0 }, as: UTF8.self)
                }
            }
            take(fetched.token, answer)
        }
    }
}
