import Foundation
import Synchronization

/// Creates a session's connections, one after another, and forwards what they deliver.
final class SessionRunner: Sendable {
    /// A connection with its session on the server.
    struct Opened: Sendable {
        let connection: any MediaConnection
        /// The session's address; nil if the server named none.
        let resource: URL?
    }

    /// The longest time from the answer to an established connection.
    private static let patience = Duration.seconds(10)

    private let plan: SessionPlan
    /// The connection in use; nil during an interruption.
    let present = Mutex<Opened?>(nil)
    private let states: AsyncStream<ConnectionState>.Continuation
    private let packets: AsyncStream<MediaPacket>.Continuation
    private let messages: AsyncStream<ServerMessage>.Continuation
    private let keyFrameRequests: AsyncStream<String>.Continuation

    init(
        _ plan: SessionPlan, states: AsyncStream<ConnectionState>.Continuation,
        packets: AsyncStream<MediaPacket>.Continuation, messages: AsyncStream<ServerMessage>.Continuation,
        keyFrameRequests: AsyncStream<String>.Continuation
    ) {
        self.plan = plan
        self.states = states
        self.packets = packets
        self.messages = messages
        self.keyFrameRequests = keyFrameRequests
    }

    // MARK: One session

    /// Creates a session, and once more with another token if the server refuses the first one.
    func open() async throws(RostrumError) -> Opened {
        let token = try await plan.tokens.current()
        do throws(RostrumError) {
            return try await open(token)
        } catch {
            guard case .refused(401, _, _, _) = error, let token,
                let other = try await plan.tokens.replacement(for: token)
            else { throw error }
            return try await open(other)
        }
    }

    /// Posts the offer and applies the answer.
    /// - Source: RFC 9725 §4.2 (WHIP), draft-ietf-wish-whep §4.2.
    private func open(_ token: String?) async throws(RostrumError) -> Opened {
        let connection: any MediaConnection
        do {
            connection = try await plan.engine.makeConnection(plan.lines)
        } catch {
            throw .unusable("the media engine: \(error)")
        }
        do {
            let offer: String
            do {
                offer = try await connection.makeOffer()
            } catch {
                throw RostrumError.unusable("the media engine: \(error)")
            }
            var request = HTTPClient.Request(
                method: "POST", path: plan.endpoint, query: plan.query, token: token)
            request.body = Data(offer.utf8)
            request.contentType = "application/sdp"
            let answer = try await plan.http.send(request)
            let opened = Opened(connection: connection, resource: answer.location)
            present.withLock { $0 = opened }
            do {
                try await connection.accept(answer: String(decoding: answer.body, as: UTF8.self))
            } catch {
                await end(opened)
                throw RostrumError.unusable("the media engine: \(error)")
            }
            return opened
        } catch {
            await connection.close()
            throw error as? RostrumError ?? .unusable("\(error)")
        }
    }

    /// Ends a session on both ways.
    ///
    /// The connection is closed first, because what it sends after the session's end would not be accepted.
    private func end(_ opened: Opened) async {
        present.withLock { $0 = nil }
        await opened.connection.close()
        guard let resource = opened.resource else { return }
        let token = (try? await plan.tokens.current()) ?? nil
        // A failure is ignored: closing the connection has notified the server as well.
        _ = try? await plan.http.send(.init(method: "DELETE", path: "", token: token), to: resource)
    }

    /// Changes the session on the server by a JSON merge patch.
    /// - Source: RFC 7396.
    func patch(_ body: Data) async throws(RostrumError) {
        guard let resource = present.withLock({ $0?.resource }) else { throw .notConnected }
        var request = HTTPClient.Request(method: "PATCH", path: "", token: try await plan.tokens.current())
        request.body = body
        request.contentType = "application/merge-patch+json"
        _ = try await plan.http.send(request, to: resource)
    }

    // MARK: One after the other

    /// Runs until the session is lost for good, or the task is cancelled.
    /// - Parameter first: the connection that `open` has created.
    func run(_ first: Opened) async {
        var backoff = Backoff()
        var opened = first
        while true {
            if await watch(opened) { backoff.reset() }
            // In a task of its own, because requests of a cancelled task would fail.
            let last = opened
            await Task { await end(last) }.value
            guard !Task.isCancelled else { return finish(.closed) }
            states.yield(.reconnecting)
            switch await reopen(&backoff) {
            case .success(let next): opened = next
            case .failure(let reason): return finish(reason.reason)
            }
        }
    }

    /// Why no further connection is tried.
    private struct Final: Error {
        let reason: DisconnectReason
    }

    /// Tries to create a session until that succeeds or can never succeed.
    private func reopen(_ backoff: inout Backoff) async -> Result<Opened, Final> {
        var random = SystemRandomNumberGenerator()
        var least = Duration.zero
        while true {
            try? await Task.sleep(for: backoff.next(atLeast: least, using: &random))
            guard !Task.isCancelled else { return .failure(Final(reason: .closed)) }
            do throws(RostrumError) {
                return .success(try await open())
            } catch {
                guard error.isTemporary else { return .failure(Final(reason: Self.reason(of: error))) }
                // What an earlier refusal asked for no longer counts.
                least = error.pauseAsked
            }
        }
    }

    /// The reason that a permanent error means for an app.
    static func reason(of error: RostrumError) -> DisconnectReason {
        switch error {
        case .refused(401, _, _, _): .expired
        case .refused(_, "banned", _, _): .banned
        case .refused(_, "link-revoked", _, _): .revoked
        default: .refused(error)
        }
    }

    /// Reports the end, and ends all sequences.
    private func finish(_ reason: DisconnectReason) {
        states.yield(.disconnected(reason))
        states.finish()
        packets.finish()
        messages.finish()
        keyFrameRequests.finish()
    }

    /// Forwards what a connection delivers until it is lost, or the task is cancelled.
    /// - Returns: whether it was ever established.
    private func watch(_ opened: Opened) async -> Bool {
        let connection = opened.connection
        // A connection that is not established in time is closed, which ends its events.
        let deadline = Task {
            guard (try? await Task.sleep(for: Self.patience)) != nil else { return }
            await connection.close()
        }
        let pump = Task {
            for await packet in connection.packets { self.packets.yield(packet) }
        }
        defer {
            deadline.cancel()
            pump.cancel()
        }
        var wasConnected = false
        for await event in connection.events {
            if event == .connected {
                wasConnected = true
                deadline.cancel()
            }
            guard take(event) else { break }
        }
        return wasConnected
    }

    /// - Returns: false if the connection has ended.
    private func take(_ event: MediaEvent) -> Bool {
        switch event {
        case .connected: states.yield(.connected)
        case .controlOpened: break
        case .message(let text):
            if let message = try? ServerMessage(parsing: Data(text.utf8)) { messages.yield(message) }
        case .keyFrameWanted(let mid): keyFrameRequests.yield(mid)
        case .lost: return false
        }
        return true
    }
}
