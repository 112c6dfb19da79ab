import Base
import ClientPeer
import Crypto
import Foundation
import HTTP
import Net
import Peer
import RostrumClient
import Synchronization
import Wire

/// WebRTC and WebSockets without cameras and loudspeakers, for programs on Linux: RTP packets in and out.
///
/// One thread serves all connections of an engine, and one engine is enough for a program. Media uses UDP directly to
/// the server; ICE over TCP and TURN are not supported.
public final class HeadlessEngine: MediaEngine, SocketTransport {
    /// Owns all connections.
    private let thread: ClientThread<HeadlessHost>
    /// Of the certificate that all connections use.
    private let fingerprint: SDPFingerprint
    /// The ID of the latest connection.
    private let lastID = Atomic(0)

    /// Starts the engine's thread.
    /// - Throws: `RostrumError.unusable` if the system provides no thread or no random numbers.
    public init() throws(RostrumError) {
        do {
            let identity = try DTLSIdentity()
            // Relates the monotonic clock to UTC, for the NTP times in sender reports.
            let clock = WallClock(
                unixNanoseconds: Int64(Date().timeIntervalSince1970 * 1e9), at: MonotonicClock.now())
            fingerprint = SDPFingerprint(
                algorithm: identity.fingerprint.algorithm.rawValue, bytes: identity.fingerprint.bytes)
            thread = try ClientThread<HeadlessHost>(name: "headless", cpu: nil, coalesces: false) { start in
                HeadlessHost(start, dtls: try? DTLSContext(identity: identity), clock: clock)
            }
        } catch {
            throw .unusable("\(error)")
        }
    }

    deinit {
        thread.requestStop()
    }

    /// Creates a connection; nothing is sent before the answer is applied.
    /// - Throws: `RostrumError.unusable` for an unknown codec.
    public func makeConnection(_ lines: [MediaLine]) async throws -> any MediaConnection {
        let requests = try lines.map { try Self.request($0) }
        let id = lastID.wrappingAdd(1, ordering: .relaxed).newValue
        var random = SystemRandomNumberGenerator()
        let offer = ClientOffer(
            requests, credentials: ICECredentials(using: &random), fingerprint: fingerprint, using: &random)
        return HeadlessConnection(
            id: id, offer: offer, post: { [thread] in thread.post($0, isEssential: $0.isEssential) })
    }

    /// Connects a WebSocket, by TLS if the address begins with `wss:`.
    /// - Throws: `RostrumError.unusable` for an address that is none, `RostrumError.unreachable` with the reason
    ///   otherwise.
    public func connect(to url: URL) async throws -> any SocketConnection {
        let isSecure = url.scheme == "wss"
        guard let host = url.host, let port = UInt16(exactly: url.port ?? (isSecure ? 443 : 80)),
            let parts = URLComponents(url: url, resolvingAgainstBaseURL: true)
        else { throw RostrumError.unusable("\(url) is no address of a WebSocket") }
        let query = parts.percentEncodedQuery.map { "?\($0)" } ?? ""
        let link = WebSocketClient.shared.connect(
            .init(host: host, port: port, path: parts.percentEncodedPath + query, isSecure: isSecure))
        let socket = HeadlessSocket(link)
        try await socket.opened()
        return socket
    }

    /// Translates an m-line for the offer.
    private static func request(_ line: MediaLine) throws(RostrumError) -> ClientOffer.Request {
        switch line {
        case .sendAudio: return .publishAudio
        case .receiveAudio: return .playAudio
        case .receiveVideo: return .playVideo
        case .control: return .dataChannels
        case .sendVideo(let codec):
            guard let family = MediaCodec.Family(rawValue: codec.lowercased()), family != .opus else {
                throw .unusable("\(codec) is none of VP8, VP9, H264 and AV1")
            }
            return .publishVideo(family)
        }
    }
}

/// A WebSocket by libwebsockets.
private final class HeadlessSocket: SocketConnection {
    private let link: WebSocketLink
    /// Code and reason of the other side's close frame; 1006 without one.
    private let end = Mutex((code: 1_006, reason: ""))

    init(_ link: WebSocketLink) {
        self.link = link
    }

    /// Waits for the handshake; a cancelled task closes the connection.
    func opened() async throws(RostrumError) {
        let event = await withTaskCancellationHandler {
            await link.next()
        } onCancel: {
            link.close()
        }
        switch event {
        case .opened: return
        case .failed(let reason): throw .unreachable(reason)
        case .message, .closed, nil:
            link.close()
            throw .unreachable("closed before it was open")
        }
    }

    func receive() async -> Data? {
        switch await link.next() {
        case .message(let bytes): return Data(bytes)
        case .closed(let code, let reason):
            end.withLock { $0 = (Int(code), reason) }
            return nil
        case .opened, .failed, nil: return nil
        }
    }

    func send(_ text: String) async throws {
        guard link.send(text) else { throw RostrumError.notConnected }
    }

    func close() { link.close() }

    var closing: (code: Int, reason: String) {
        get async { end.withLock { $0 } }
    }
}
