import Foundation
import Synchronization

/// Media to or from the server: a WHIP, WHEP, stage or feed session, with its connection.
///
/// A connection that is lost is replaced by another one in a new session; the sequences here continue. The session ends
/// with `close`, or when it is released.
public final class MediaSession: Sendable {
    /// Changes of state, for one reader; the latest 16 are buffered.
    public let states: AsyncStream<ConnectionState>
    /// Received packets, for one reader; the latest 1,024 are buffered.
    public let packets: AsyncStream<MediaPacket>
    /// The server's messages on the control channel, for one reader; the latest 256 are buffered.
    public let messages: AsyncStream<ServerMessage>
    /// Mids of m-lines for which a key frame is requested, for one reader; the latest 16 are buffered.
    public let keyFrameRequests: AsyncStream<String>

    private let runner: SessionRunner
    private let task: Task<Void, Never>

    /// - Throws: the server's refusal of the first offer.
    init(_ plan: SessionPlan) async throws(RostrumError) {
        let (states, stateContinuation) = AsyncStream<ConnectionState>.makeStream(
            bufferingPolicy: .bufferingNewest(16))
        let (packets, packetContinuation) = AsyncStream<MediaPacket>.makeStream(
            bufferingPolicy: .bufferingNewest(1_024))
        let (messages, messageContinuation) = AsyncStream<ServerMessage>.makeStream(
            bufferingPolicy: .bufferingNewest(256))
        let (keyFrameRequests, requestContinuation) = AsyncStream<String>.makeStream(
            bufferingPolicy: .bufferingNewest(16))
        let runner = SessionRunner(
            plan, states: stateContinuation, packets: packetContinuation, messages: messageContinuation,
            keyFrameRequests: requestContinuation)
        self.states = states
        self.packets = packets
        self.messages = messages
        self.keyFrameRequests = keyFrameRequests
        self.runner = runner
        stateContinuation.yield(.connecting)
        let first = try await runner.open()
        task = Task { await runner.run(first) }
    }

    deinit {
        task.cancel()
    }

    /// The session's address on the server; it changes with each interruption.
    public var resource: URL? { runner.present.withLock { $0?.resource } }

    /// Sends media on an m-line that sends; what cannot be sent now is dropped.
    public func send(_ packet: MediaPacket) async {
        await runner.present.withLock { $0 }?.connection.send(packet)
    }

    /// Sends a message to the control channel, as described by `/v1/asyncapi.json` on the server.
    /// - Throws: `RostrumError.notConnected` if there is no control channel, or it is not open.
    public func say(_ message: some Encodable & Sendable) async throws(RostrumError) {
        guard let connection = runner.present.withLock({ $0 })?.connection,
            let data = try? JSONEncoder().encode(message)
        else { throw .notConnected }
        do {
            try await connection.say(String(decoding: data, as: UTF8.self))
        } catch {
            throw .notConnected
        }
    }

    /// Moves a feed session to another stream.
    /// - Parameter ahead: the stream that the app shows next, to be preloaded; nil to let the server choose.
    /// - Throws: `RostrumError.notConnected` while the control channel is not open.
    public func focus(_ stream: String, ahead: String? = nil) async throws(RostrumError) {
        var message = ["type": "focus", "stream": stream]
        message["ahead"] = ahead
        try await say(message)
    }

    /// Limits the video that the server sends, until the next interruption.
    ///
    /// - Parameters:
    ///   - maxHeight: in pixels; nil to let the server choose.
    ///   - audioOnly: whether to receive no video at all.
    public func prefer(maxHeight: Int?, audioOnly: Bool = false) async throws(RostrumError) {
        let height = maxHeight.map(String.init) ?? "null"
        let body = Data(#"{"maxHeight":\#(height),"audioOnly":\#(audioOnly)}"#.utf8)
        try await runner.patch(body)
    }

    /// Ends the session here and on the server, and waits until that is done; `states` reports it last.
    public func close() async {
        task.cancel()
        await task.value
    }
}

/// Everything that is needed to create a session, the first time and after each interruption.
struct SessionPlan: Sendable {
    let http: HTTPClient
    let tokens: TokenKeeper
    let engine: any MediaEngine
    /// The path to which the offer is posted.
    let endpoint: String
    var query: [URLQueryItem] = []
    let lines: [MediaLine]
}
