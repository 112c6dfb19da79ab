import CCurl

/// What came of a GET.
struct FetchedAnswer: Equatable, Sendable {
    /// 0 where there was no answer; `error` says why.
    var status = 0
    /// Empty where they were only counted.
    var bytes: [UInt8] = []
    /// How many bytes came.
    var count = 0
    /// In seconds; nil where the server did not say.
    var retryAfter: Double?
    var error = ""
}

/// Sends GET requests of many clients at once, over connections that are kept, with libcurl.
///
/// By HTTP/1.1 each request under way has a connection; by HTTP/2 many share one. Belongs to one thread.
final class HTTPFetcher {
    private let handle: OpaquePointer
    /// Milliseconds for one request: longer than any server blocks.
    private static let timeout = 20_000

    /// - Parameter connections: so many are open at a time; requests beyond wait for one of them.
    init(connections: Int) throws {
        guard let handle = ccurl_fetcher_open(connections) else {
            throw RunFailure(description: "libcurl cannot begin: no memory, or no more open files")
        }
        self.handle = handle
    }

    deinit {
        ccurl_fetcher_close(handle)
    }

    /// Begins a request.
    /// - Parameters:
    ///   - header: a line `Name: value`.
    ///   - limit: of bytes; a longer answer is an error.
    ///   - keepsBytes: whether the answer has them.
    /// - Returns: false where it cannot be made.
    func get(_ url: String, number: UInt64, header: String?, limit: Int, keepsBytes: Bool) -> Bool {
        ccurl_fetcher_get(handle, number, url, header, Self.timeout, limit, keepsBytes ? 1 : 0) == 0
    }

    /// Sends and reads what there is, after waiting for it.
    /// - Parameter take: called with the number of each request that has ended.
    func wait(milliseconds: Int, _ take: (UInt64, FetchedAnswer) -> Void) {
        ccurl_fetcher_wait(handle, CInt(clamping: milliseconds))
        var fetched = ccurl_fetched()
        while ccurl_fetcher_next(handle, &fetched) == 1 {
            var answer = FetchedAnswer(status: fetched.status, count: fetched.count)
            if let body = fetched.body {
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
