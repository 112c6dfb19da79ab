import Foundation
import Synchronization

/// Makes a session's connections, one after the other, and passes on what comes of them.
final class SessionRunner: Sendable {
    struct Opened: Sendable {
        let connection: any MediaConnection
        /// Nil where the server named none.
        let resource: URL?
    }

    /// Longest time from an answer to a connection.
    private static let patience = Duration.seconds(10)

    private let plan: SessionPlan
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

    /// Offers, and goes on with the answer.
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

    /// - Source: RFC 9725 §4.2 (WHIP), draft-ietf-wish-whep §4.2.
    private func open(_ token: String?) async throws(RostrumError) -> Opened {
        let connection: any MediaConnection
        let offer: String
        do {
            connection = try await plan.engine.makeConnection(plan.lines)
            offer = try await connection.makeOffer()
        } catch {
            throw .unusable("the media engine: \(error)")
        }
        do {
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

    /// Says goodbye in both ways: first the connection, as what came after the session's end would be nobody's.
    private func end(_ opened: Opened) async {
        present.withLock { $0 = nil }
        await opened.connection.close()
        guard let resource = opened.resource else { return }
        let token = (try? await plan.tokens.current()) ?? nil
        // The closed connection says the same.
        _ = try? await plan.http.send(.init(method: "DELETE", path: "", token: token), to: resource)
    }

    func patch(_ body: Data) async throws(RostrumError) {
        guard let resource = present.withLock({ $0?.resource }) else { throw .notConnected }
        var request = HTTPClient.Request(method: "PATCH", path: "", token: try await plan.tokens.current())
        request.body = body
        request.contentType = "application/merge-patch+json"
        _ = try await plan.http.send(request, to: resource)
    }

    // MARK: One after the other

    /// Runs until it is lost for good, or the task is cancelled.
    func run(_ first: Opened) async {
        var backoff = Backoff()
        var opened = first
        while true {
            if await watch(opened) { backoff.reset() }
            // The goodbye is said also by a task that was cancelled.
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

    private struct Final: Error {
        let reason: DisconnectReason
    }

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
                if case .refused(_, _, _, let after) = error { least = after ?? .zero }
            }
        }
    }

    static func reason(of error: RostrumError) -> DisconnectReason {
        switch error {
        case .refused(401, _, _, _): .expired
        case .refused(_, "banned", _, _): .banned
        case .refused(_, "link-revoked", _, _): .revoked
        default: .refused(error)
        }
    }

    private func finish(_ reason: DisconnectReason) {
        states.yield(.disconnected(reason))
        states.finish()
        packets.finish()
        messages.finish()
        keyFrameRequests.finish()
    }

    /// Passes on what comes until the connection is lost, or the task is cancelled.
    /// - Returns: whether it ever was connected.
    private func watch(_ opened: Opened) async -> Bool {
        let connection = opened.connection
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

    /// - Returns: false if that was the end.
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
