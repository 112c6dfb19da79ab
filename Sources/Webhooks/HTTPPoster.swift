import Base
import CCurl
import Foundation
import Synchronization

/// Posts webhooks by HTTP, many at once on one thread, with libcurl.
///
/// Certificates are verified; redirects are not followed, as a webhook is for the receiver that was configured.
package final class HTTPPoster: WebhookTransport {
    private struct Request: Sendable {
        let token: UInt64
        let url: String
        let headers: [String]
        let body: [UInt8]
    }

    private struct State {
        var waiting: [Request] = []
        var answers: [UInt64: CheckedContinuation<WebhookAnswer, Never>] = [:]
        var next: UInt64 = 1
        var isClosed = false
    }

    /// Wakes the thread; valid as long as the thread runs.
    private struct Waker: Sendable {
        /// A pointer as a number: it is only handed back to libcurl, which allows that from any thread.
        let address: UInt

        func wake() {
            ccurl_wake(OpaquePointer(bitPattern: address))
        }
    }

    private final class Shared: Sendable {
        let state = Mutex(State())
        /// Nil before the thread has begun, and after it has ended.
        let waker = Mutex<Waker?>(nil)
    }

    private let shared = Shared()
    private static let limits = ccurl_limits(connect_timeout: 5_000, timeout: 15_000)
    /// Milliseconds; only a bound, as the thread is woken when there is something to do.
    private static let longestWait: CInt = 60_000

    /// Starts the thread, which ends with `close()` or the poster.
    /// - Parameter timeout: of a request, from the connection to the answer; nil for 15 seconds.
    package init(timeout: Duration? = nil) {
        let shared = shared
        let limits =
            timeout.map { timeout in
                let milliseconds = Int(clamping: timeout.wholeNanoseconds / 1_000_000)
                return ccurl_limits(connect_timeout: milliseconds, timeout: milliseconds)
            } ?? Self.limits
        let thread = Thread {
            Self.run(shared, limits)
        }
        thread.name = "webhooks"
        thread.start()
    }

    deinit {
        close()
    }

    package func post(to url: String, headers: [String], body: [UInt8]) async -> WebhookAnswer {
        await withCheckedContinuation { continuation in
            let isTaken = shared.state.withLock { state in
                guard !state.isClosed else { return false }
                state.waiting.append(
                    Request(token: state.next, url: url, headers: headers, body: body))
                state.answers[state.next] = continuation
                state.next += 1
                return true
            }
            if isTaken {
                shared.waker.withLock { $0?.wake() }
            } else {
                continuation.resume(returning: .unreachable("the server is ending"))
            }
        }
    }

    /// Abandons what is under way, and refuses what comes.
    package func close() {
        shared.state.withLock { $0.isClosed = true }
        shared.waker.withLock { $0?.wake() }
    }

    // MARK: The thread

    private static func run(_ shared: Shared, _ limits: ccurl_limits) {
        if let client = ccurl_open() {
            shared.waker.withLock { $0 = Waker(address: UInt(bitPattern: client)) }
            serve(shared, client, limits)
            shared.waker.withLock { $0 = nil }
            ccurl_close(client)
        }
        let left = shared.state.withLock { state in
            state.isClosed = true
            state.waiting = []
            defer { state.answers = [:] }
            return Array(state.answers.values)
        }
        for continuation in left { continuation.resume(returning: .unreachable("the server is ending")) }
    }

    private static func serve(_ shared: Shared, _ client: OpaquePointer, _ limits: ccurl_limits) {
        var answers = [ccurl_answer](repeating: ccurl_answer(), count: 16)
        while true {
            let (requests, isClosed) = shared.state.withLock { state in
                defer { state.waiting = [] }
                return (state.waiting, state.isClosed)
            }
            guard !isClosed else { return }
            for request in requests where !begin(request, client, limits) {
                resume(shared, request.token, .unreachable("cannot make a request for this URL"))
            }
            let count = ccurl_wait(client, longestWait, &answers, CInt(answers.count))
            for answer in answers.prefix(Int(count)) { resume(shared, answer.token, meaning(of: answer)) }
        }
    }

    private static func begin(_ request: Request, _ client: OpaquePointer, _ limits: ccurl_limits) -> Bool {
        // Copies that live until the call is over; libcurl makes its own.
        let lines = request.headers.map { strdup($0) }
        defer { for line in lines { free(line) } }
        let pointers = lines.map { UnsafePointer<CChar>($0) }
        return request.body.withUnsafeBytes { body in
            ccurl_post(
                client, request.token, request.url, pointers, CInt(clamping: pointers.count),
                body.baseAddress, Int64(body.count), limits) == 0
        }
    }

    private static func meaning(of answer: ccurl_answer) -> WebhookAnswer {
        guard answer.status == 0 else {
            let seconds = min(max(answer.retry_after, 0), 86_400)
            return .status(Int(answer.status), retryAfter: seconds == 0 ? nil : seconds * 1_000)
        }
        let text = withUnsafeBytes(of: answer.error) { bytes in
            String(decoding: bytes.prefix { $0 != 0 }, as: UTF8.self)
        }
        return .unreachable(text)
    }

    private static func resume(_ shared: Shared, _ token: UInt64, _ answer: WebhookAnswer) {
        let continuation = shared.state.withLock { $0.answers.removeValue(forKey: token) }
        continuation?.resume(returning: answer)
    }
}
