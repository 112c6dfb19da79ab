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
/// One thread serves all of its connections; one engine is enough for a program. Media goes by UDP, straight to the
/// server: there is neither ICE over TCP nor TURN.
public final class HeadlessEngine: MediaEngine, SocketTransport {
    private let thread: ClientThread<HeadlessHost>
    /// Of the certificate that all its connections show.
    private let fingerprint: SDPFingerprint
    private let lastID = Atomic(0)

    /// - Throws: `RostrumError.unusable` where the system has no threads or no randomness left.
    public init() throws(RostrumError) {
        do {
            let identity = try DTLSIdentity()
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

    /// Begins a connection.
    /// - Throws: `RostrumError.unusable` for a codec that is not known, or where the system has no sockets left.
    public func makeConnection(_ lines: [MediaLine]) async throws -> any MediaConnection {
        let requests = try lines.map { try Self.request($0) }
        let id = lastID.wrappingAdd(1, ordering: .relaxed).newValue
        var random = SystemRandomNumberGenerator()
        let offer = ClientOffer(
            requests, credentials: ICECredentials(using: &random), fingerprint: fingerprint, using: &random)
        return HeadlessConnection(id: id, offer: offer, post: { [thread] in thread.post($0) })
    }

    /// Connects a WebSocket, by TLS where the address begins with `wss:`.
    /// - Throws: `RostrumError.unreachable`, with the reason in words.
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

/// A WebSocket of libwebsockets'.
private final class HeadlessSocket: SocketConnection {
    private let link: WebSocketLink
    private let end = Mutex((code: 1_006, reason: ""))

    init(_ link: WebSocketLink) {
        self.link = link
    }

    /// Waits for the handshake.
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
