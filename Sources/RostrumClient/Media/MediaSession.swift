import Foundation
import Synchronization

/// Media to or from the server: a WHIP, WHEP, stage or feed session, with the connection under it.
///
/// A connection that breaks is replaced by another one, under a session of its own; the streams here go on. It ends
/// with `close`, or with the last owner.
public final class MediaSession: Sendable {
    /// How it stands, for one reader; the latest 16 wait for it.
    public let states: AsyncStream<ConnectionState>
    /// What is received, as it comes, for one reader; the latest 1,024 packets wait for it.
    public let packets: AsyncStream<MediaPacket>
    /// What the server says on the control channel, for one reader; the latest 256 wait for it.
    public let messages: AsyncStream<ServerMessage>
    /// Mids of which a key frame is wanted, for one reader; the latest 16 wait for it.
    public let keyFrameRequests: AsyncStream<String>

    private let runner: SessionRunner
    private let task: Task<Void, Never>

    /// - Throws: what the server says to the first offer.
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

    /// The session's address on the server; another one after each interruption.
    public var resource: URL? { runner.present.withLock { $0?.resource } }

    /// Sends media on an m-line that sends; what cannot be sent now is lost.
    public func send(_ packet: MediaPacket) async {
        await runner.present.withLock { $0 }?.connection.send(packet)
    }

    /// Says something that `/v1/asyncapi.json` on the server has for control channels.
    /// - Throws: `RostrumError.notConnected` where there is no control channel, or it is not open.
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

    /// Turns a feed session to another stream.
    /// - Parameter ahead: what the app shows next, which is preloaded; nil leaves it to the server.
    /// - Throws: `RostrumError.notConnected` while the control channel is not open.
    public func focus(_ stream: String, ahead: String? = nil) async throws(RostrumError) {
        var message = ["type": "focus", "stream": stream]
        message["ahead"] = ahead
        try await say(message)
    }

    /// Says what is wanted of the pictures, until the next interruption.
    ///
    /// - Parameters:
    ///   - maxHeight: in pixels; nil leaves it to the server.
    ///   - audioOnly: whether no pictures are wanted at all.
    public func prefer(maxHeight: Int?, audioOnly: Bool = false) async throws(RostrumError) {
        let height = maxHeight.map(String.init) ?? "null"
        let body = Data(#"{"maxHeight":\#(height),"audioOnly":\#(audioOnly)}"#.utf8)
        try await runner.patch(body)
    }

    /// Ends the session here and on the server, and waits until it has: `states` tells so last.
    public func close() async {
        task.cancel()
        await task.value
    }
}

/// What a session is made of, whenever it is made.
struct SessionPlan: Sendable {
    let http: HTTPClient
    let tokens: TokenKeeper
    let engine: any MediaEngine
    /// What takes the offer.
    let endpoint: String
    var query: [URLQueryItem] = []
    let lines: [MediaLine]
}
