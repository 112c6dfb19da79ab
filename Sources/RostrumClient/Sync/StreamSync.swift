import Foundation
import Synchronization

/// Follows a stream: its state, stage and viewers, hands, invitations, comments, and messages to the app's own
/// participant.
///
/// A snapshot comes first, then changes. After an interruption only the missed changes come, if the server still has
/// them. It ends with `close`, or when it is released.
public final class StreamSync: Sendable {
    /// Changes of state, for one reader; the latest 16 are buffered.
    public let states: AsyncStream<ConnectionState>
    /// Events for one reader; the latest 256 are buffered, and each `changed` contains the whole state.
    public let events: AsyncStream<SyncEvent>

    private let follower: Follower
    private let task: Task<Void, Never>

    init(_ http: HTTPClient, stream: String, tokens: TokenKeeper, transport: any SocketTransport) {
        let (states, stateContinuation) = AsyncStream<ConnectionState>.makeStream(
            bufferingPolicy: .bufferingNewest(16))
        let (events, eventContinuation) = AsyncStream<SyncEvent>.makeStream(
            bufferingPolicy: .bufferingNewest(256))
        let loop = SocketLoop(transport, tokens: tokens)
        let follower = Follower(
            http: http, stream: stream, tokens: tokens, loop: loop, states: stateContinuation,
            events: eventContinuation)
        self.states = states
        self.events = events
        self.follower = follower
        task = Task {
            await loop.run(follower)
            stateContinuation.finish()
            eventContinuation.finish()
        }
    }

    deinit {
        task.cancel()
    }

    /// The public state as of the latest message; nil before the first one.
    public var known: StageState? { follower.progress.withLock { $0.state } }

    /// The app's own participant; nil before the server has reported it, and without a token.
    public var me: Me? { follower.progress.withLock { $0.me } }

    /// Writes a comment; the result comes as a message `commented` or `refused` in `events`.
    ///
    /// - Parameters:
    ///   - text: 1 to 300 characters.
    ///   - id: a comment that is sent again with the same ID is not duplicated.
    /// - Throws: `RostrumError.notConnected` while there is no connection.
    public func comment(_ text: String, id: String = UUID().uuidString) async throws(RostrumError) {
        try await follower.loop.say(["type": "comment", "id": id, "text": text])
    }

    /// Sends a message to the sync socket, as described by `/v1/asyncapi.json` on the server.
    /// - Throws: `RostrumError.notConnected` while there is no connection.
    public func say(_ message: some Encodable & Sendable) async throws(RostrumError) {
        try await follower.loop.say(message)
    }

    /// Ends it, and waits until that is done; `states` reports it last.
    public func close() async {
        task.cancel()
        await task.value
    }
}

/// Handles the socket's messages.
private final class Follower: SocketOwner {
    let http: HTTPClient
    let stream: String
    let tokens: TokenKeeper
    let loop: SocketLoop
    let states: AsyncStream<ConnectionState>.Continuation
    let events: AsyncStream<SyncEvent>.Continuation
    let progress = Mutex(SyncProgress())

    init(
        http: HTTPClient, stream: String, tokens: TokenKeeper, loop: SocketLoop,
        states: AsyncStream<ConnectionState>.Continuation, events: AsyncStream<SyncEvent>.Continuation
    ) {
        self.http = http
        self.stream = stream
        self.tokens = tokens
        self.loop = loop
        self.states = states
        self.events = events
    }

    private var path: String { "/v1/streams/\(stream.pathPart)" }

    func address() throws(RostrumError) -> URL {
        // With the last version the server sends only what was missed.
        let since = progress.withLock { $0.version }
        return try http.url(
            "\(path)/sync", since.map { [URLQueryItem(name: "since", value: String($0))] } ?? [])
    }

    func become(_ state: ConnectionState) { states.yield(state) }

    func receive(_ message: Data) {
        // Messages that make no sense are ignored: a later server may have other kinds.
        let news = progress.withLock { (try? $0.receive(message)) ?? [] }
        for event in news { events.yield(event) }
    }

    func verdict(_ loss: SocketLoss) async -> DisconnectReason? {
        if let error = loss.error { return error.isTemporary ? nil : SessionRunner.reason(of: error) }
        if let reason = SyncVerdict.finalReason(loss) { return reason }
        // A WebSocket reports no reason for a refused handshake, so a plain request finds out whether the token is the
        // reason.
        guard loss.code == SyncVerdict.expired || !loss.wasTaken else { return nil }
        do throws(RostrumError) {
            _ = try await http.send(.init(path: "\(path)/participants", token: loss.token))
            return nil
        } catch {
            switch error {
            case .refused(401, _, _, _): return await tokens.verdict(on: loss.token)
            // The token is valid, but not for this stream, or its bearer may not enter.
            case .refused(403, _, _, _): return SessionRunner.reason(of: error)
            default: return nil
            }
        }
    }
}

extension TokenKeeper {
    /// The consequence of a refused token for a socket: nil if another token is worth a try.
    /// - Parameter refused: the token; nil if none was used.
    func verdict(on refused: String?) async -> DisconnectReason? {
        guard let refused else { return .expired }
        do throws(RostrumError) {
            return try await replacement(for: refused) == nil ? .expired : nil
        } catch {
            return error.isTemporary ? nil : .expired
        }
    }
}

/// The meaning of the server's close codes.
enum SyncVerdict {
    /// The token has expired or is invalid.
    static let expired = 4_401
    private static let removed = 4_403

    /// Nil if another attempt makes sense.
    static func finalReason(_ loss: SocketLoss) -> DisconnectReason? {
        guard loss.code == removed else { return nil }
        return switch loss.reason {
        case "banned": .banned
        case "link-revoked": .revoked
        default: .removed
        }
    }
}
