import Foundation
import Synchronization

/// Follows a stream: its state, who is on stage and who watches, hands, invitations, comments, and what only the
/// app's own user is told.
///
/// First comes all of it, then changes. After an interruption only what was missed comes, as far as the server still
/// knows it. It ends with `close`, or with the last owner.
public final class StreamSync: Sendable {
    /// How it stands, for one reader; the latest 16 wait for it.
    public let states: AsyncStream<ConnectionState>
    /// What it tells, for one reader; the latest 256 wait for it, and each `changed` holds everything.
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

    /// What everybody may know, as of the latest message; nil before the first.
    public var known: StageState? { follower.progress.withLock { $0.state } }

    /// What the app's own user is; nil before it was told, and for those without a token.
    public var me: Me? { follower.progress.withLock { $0.me } }

    /// Writes a comment; `commented` or `refused` comes as a message of `events`.
    ///
    /// - Parameters:
    ///   - text: 1 to 300 characters.
    ///   - id: one that is sent again under its id is the same comment.
    /// - Throws: `RostrumError.notConnected` while the socket does not work.
    public func comment(_ text: String, id: String = UUID().uuidString) async throws(RostrumError) {
        try await follower.loop.say(["type": "comment", "id": id, "text": text])
    }

    /// Says something that `/v1/asyncapi.json` on the server has for its sync sockets.
    /// - Throws: `RostrumError.notConnected` while the socket does not work.
    public func say(_ message: some Encodable & Sendable) async throws(RostrumError) {
        try await follower.loop.say(message)
    }

    /// Ends it, and waits until it has: `states` tells so last.
    public func close() async {
        task.cancel()
        await task.value
    }
}

/// What the socket is for.
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
        let since = progress.withLock { $0.version }
        return try http.url(
            "\(path)/sync", since.map { [URLQueryItem(name: "since", value: String($0))] } ?? [])
    }

    func become(_ state: ConnectionState) { states.yield(state) }

    func receive(_ message: Data) {
        // What makes no sense is left out: a later server may say more.
        let news = progress.withLock { (try? $0.receive(message)) ?? [] }
        for event in news { events.yield(event) }
    }

    func verdict(_ loss: SocketLoss) async -> DisconnectReason? {
        if let error = loss.error { return error.isTemporary ? nil : SessionRunner.reason(of: error) }
        if let reason = SyncVerdict.finalReason(loss) { return reason }
        // Nothing tells why a WebSocket was refused. Where the token was the reason, it would be so for ever.
        guard loss.code == SyncVerdict.expired || !loss.wasTaken else { return nil }
        do throws(RostrumError) {
            _ = try await http.send(.init(path: "\(path)/participants", token: loss.token))
            return nil
        } catch {
            guard case .refused(401, _, _, _) = error else { return nil }
            return await tokens.verdict(on: loss.token)
        }
    }
}

extension TokenKeeper {
    /// What the refusal of a token means for a socket: nil where another one is worth a try.
    /// - Parameter refused: nil where none was shown.
    func verdict(on refused: String?) async -> DisconnectReason? {
        guard let refused else { return .expired }
        do throws(RostrumError) {
            return try await replacement(for: refused) == nil ? .expired : nil
        } catch {
            return error.isTemporary ? nil : .expired
        }
    }
}

/// What the server's close codes mean.
enum SyncVerdict {
    /// The token has ended, or is not good.
    static let expired = 4_401
    private static let removed = 4_403

    /// Nil where another try makes sense.
    static func finalReason(_ loss: SocketLoss) -> DisconnectReason? {
        guard loss.code == removed else { return nil }
        return switch loss.reason {
        case "banned": .banned
        case "link-revoked": .revoked
        default: .removed
        }
    }
}
