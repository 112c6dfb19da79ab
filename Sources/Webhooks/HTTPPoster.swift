import Base
import CCurl
import Foundation
import Synchronization

/// Posts webhooks over HTTP with libcurl, many at a time on one thread.
///
/// Certificates are verified. Redirects are not followed, because the signed event is meant for the configured
/// receiver alone. Tasks wait in continuations; only the thread touches libcurl, except for waking it.
package final class HTTPPoster: WebhookTransport {
    private struct Request: Sendable {
        /// Identifies the request to libcurl; unique within the poster.
        let token: UInt64
        let url: String
        /// Lines `Name: value`.
        let headers: [String]
        let body: [UInt8]
    }

    private struct State {
        /// Requests that the thread has not started yet.
        var waiting: [Request] = []
        /// Callers that wait for an answer, by token; each is resumed exactly once.
        var answers: [UInt64: CheckedContinuation<WebhookAnswer, Never>] = [:]
        var next: UInt64 = 1
        /// Set by `close()` and when the thread ends: further requests fail immediately.
        var isClosed = false
    }

    /// Wakes the thread from its wait for sockets; valid while the thread runs.
    private struct Waker: Sendable {
        /// The client's pointer as a number; waking is the one call that libcurl allows from any thread.
        let address: UInt

        func wake() {
            ccurl_wake(OpaquePointer(bitPattern: address))
        }
    }

    /// State shared by the poster and its thread, which may outlive the poster.
    private final class Shared: Sendable {
        let state = Mutex(State())
        /// Nil before the thread has started and after it has ended; used under the lock, so that it cannot end
        /// meanwhile.
        let waker = Mutex<Waker?>(nil)
    }

    private let shared = Shared()
    /// Timeouts in milliseconds: 5 s to connect, 15 s for the whole request.
    private static let limits = ccurl_limits(connect_timeout: 5_000, timeout: 15_000)
    /// Milliseconds that the thread sleeps at most; it is woken earlier when there is something to do.
    private static let longestWait: CInt = 60_000

    /// Starts the thread, which ends with `close()` or when the poster is released.
    /// - Parameter timeout: for a whole request, connecting included; nil for 15 s, of which 5 s for connecting.
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

    /// Sends a request and waits for its answer.
    /// - Returns: a status, or `unreachable` if there was no response in time or the poster is closed.
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

    /// Aborts requests under way, which then count as unreachable, and refuses new ones.
    package func close() {
        shared.state.withLock { $0.isClosed = true }
        shared.waker.withLock { $0?.wake() }
    }

    // MARK: The thread

    /// The thread's main function; without libcurl, all requests fail.
    private static func run(_ shared: Shared, _ limits: ccurl_limits) {
        if let client = ccurl_open() {
            shared.waker.withLock { $0 = Waker(address: UInt(bitPattern: client)) }
            serve(shared, client, limits)
            shared.waker.withLock { $0 = nil }
            ccurl_close(client)
        }
        // No continuation may be left unresumed.
        let left = shared.state.withLock { state in
            state.isClosed = true
            state.waiting = []
            defer { state.answers = [:] }
            return Array(state.answers.values)
        }
        for continuation in left { continuation.resume(returning: .unreachable("the server is ending")) }
    }

    /// Starts queued requests and reports finished ones until the poster is closed.
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

    /// Gives a request to libcurl.
    /// - Returns: false if libcurl does not accept it, such as for a malformed URL.
    private static func begin(_ request: Request, _ client: OpaquePointer, _ limits: ccurl_limits) -> Bool {
        // C strings that live until the call returns; libcurl copies them.
        let lines = request.headers.map { strdup($0) }
        defer { for line in lines { free(line) } }
        let pointers = lines.map { UnsafePointer<CChar>($0) }
        return request.body.withUnsafeBytes { body in
            ccurl_post(
                client, request.token, request.url, pointers, CInt(clamping: pointers.count),
                body.baseAddress, Int64(body.count), limits) == 0
        }
    }

    /// Translates libcurl's result; `Retry-After` is capped at a day.
    /// - Source: RFC 9110 §10.2.3.
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

    /// Resumes the task that waits for a token; does nothing if that has happened before.
    private static func resume(_ shared: Shared, _ token: UInt64, _ answer: WebhookAnswer) {
        let continuation = shared.state.withLock { $0.answers.removeValue(forKey: token) }
        continuation?.resume(returning: answer)
    }
}
