import Base
import Net

/// A text message that arrived on one of many sockets.
struct SocketMessage {
    /// The token of the socket.
    let socket: Int
    /// What was read from the socket, of which the message is a part.
    let bytes: [UInt8]
    /// Where the text lies in `bytes`.
    let text: Range<Int>
    /// How long it had waited in the kernel to be read, in nanoseconds; nil if the kernel does not report that.
    let age: Int64?
    let readAt: MonotonicTime
}

/// Events of many sockets since the last report.
struct SocketNews {
    var connected = 0
    /// Sockets that could not be connected.
    var failed = 0
    /// Sockets that were closed by the server, or broke, after they were connected.
    var lost = 0
    var messages = 0
    /// Why sockets failed or were lost, and how often.
    var reasons: [String: Int] = [:]

    var isEmpty: Bool { connected + failed + lost + messages == 0 && reasons.isEmpty }

    mutating func merge(_ other: SocketNews) {
        connected += other.connected
        failed += other.failed
        lost += other.lost
        messages += other.messages
        reasons.merge(other.reasons, uniquingKeysWith: +)
    }
}

/// WebSockets to one server, which one thread reads; some connect at a time, and they are read frame by frame.
///
/// Sends a heartbeat on each socket every five seconds, as pages do, and answers pings.
final class SocketCrowd {
    private enum State {
        /// Not connected.
        case none
        case shakingHands
        case open
    }

    private struct Socket {
        var state = State.none
        /// The beginning of a frame, or of the response to the handshake, that is incomplete.
        var rest: [UInt8] = []
    }

    /// Concurrent handshakes: the server's accept queue is not to be measured.
    private static let handshakesAtOnce = 64
    /// In nanoseconds.
    private static let helloInterval: Int64 = 5_000_000_000
    private static let hello = ServerFrames.clientFrame(.text, Array(#"{"type":"heartbeat"}"#.utf8))
    private static let switching = Array("HTTP/1.1 101".utf8)

    private let streams: ClientStreams
    private let address: TransportAddress
    /// The complete HTTP request for the socket of a token.
    private let handshake: (Int) -> [UInt8]
    /// By token.
    private var sockets: [Socket]
    /// Reused for every read.
    private var input = [UInt8](repeating: 0, count: 64 << 10)
    /// The first socket that was not tried yet.
    private var next = 0
    /// Handshakes in progress.
    private var shaking = 0
    /// The socket of the next heartbeat, and the time since which heartbeats are due.
    private var helloNext = 0
    private var helloSince: MonotonicTime
    /// Events since the owner last took them.
    var news = SocketNews()

    /// - Parameters:
    ///   - streams: where this crowd uses the tokens from 0 to `count - 1`.
    ///   - count: of the sockets.
    ///   - handshake: makes the HTTP request of a socket.
    init(
        _ streams: ClientStreams, to address: TransportAddress, count: Int,
        handshake: @escaping (Int) -> [UInt8]
    ) {
        self.streams = streams
        self.address = address
        self.handshake = handshake
        sockets = [Socket](repeating: Socket(), count: count)
        helloSince = MonotonicClock.now()
    }

    var count: Int { sockets.count }

    /// Whether every socket was connected, or at least tried.
    var isComplete: Bool { next == sockets.count }

    func isOpen(_ token: Int) -> Bool { sockets[token].state == .open }

    /// The request of a WebSocket handshake (RFC 6455 §4.1).
    ///
    /// The key is constant, because the server's proof of having read it is not checked.
    /// - Parameter token: of the bearer; nil for an anonymous client.
    static func handshake(_ path: String, to address: TransportAddress, token: String? = nil) -> [UInt8] {
        var lines = [
            "GET \(path) HTTP/1.1", "Host: \(address)", "Upgrade: websocket", "Connection: Upgrade",
            "Sec-WebSocket-Key: AAAAAAAAAAAAAAAAAAAAAA==", "Sec-WebSocket-Version: 13",
        ]
        if let token { lines.append("Authorization: Bearer \(token)") }
        return Array((lines.joined(separator: "\r\n") + "\r\n\r\n").utf8)
    }

    // MARK: Connecting

    /// Starts handshakes, as many as are allowed at a time.
    func connect() {
        while next < sockets.count, shaking < Self.handshakesAtOnce {
            let token = next
            next += 1
            do throws(NetError) {
                try streams.open(address, token: token)
                guard streams.send(handshake(token), token: token) else {
                    fail(token, "could not send the handshake")
                    continue
                }
                sockets[token].state = .shakingHands
                shaking += 1
            } catch {
                fail(token, "\(error)")
            }
        }
    }

    /// Closes a socket, and counts it as failed or as lost.
    private func fail(_ token: Int, _ reason: String) {
        streams.close(token: token)
        switch sockets[token].state {
        case .open: news.lost += 1
        case .shakingHands:
            shaking -= 1
            news.failed += 1
        case .none: news.failed += 1
        }
        sockets[token] = Socket()
        news.reasons[reason, default: 0] += 1
    }

    // MARK: Talking

    /// Sends a frame made by `ServerFrames.clientFrame`, if the socket is open.
    /// - Returns: whether the kernel accepted it.
    @discardableResult
    func send(_ frame: [UInt8], token: Int) -> Bool {
        isOpen(token) && streams.send(frame, token: token)
    }

    /// Reads all that has arrived on a socket.
    /// - Parameter take: called for each text message, in order.
    func read(_ token: Int, _ take: (SocketMessage) -> Void) {
        while true {
            switch streams.receive(token: token, into: &input) {
            case .nothing: return
            case .ended:
                if sockets[token].state != .none { fail(token, "closed without a reason") }
                return
            case .bytes(let count, let age):
                let now = MonotonicClock.now()
                // What is left of the previous read comes first.
                if sockets[token].rest.isEmpty {
                    let buffer = input
                    look(at: buffer, count, token, age, now, take)
                } else {
                    let bytes = sockets[token].rest + input[..<count]
                    sockets[token].rest = []
                    look(at: bytes, bytes.count, token, age, now, take)
                }
                // A buffer that was not filled has emptied the socket.
                guard count == input.count else { return }
            }
        }
    }

    /// Processes what was read: the response to the handshake, then frames; keeps an incomplete rest.
    private func look(
        at bytes: [UInt8], _ count: Int, _ token: Int, _ age: Int64?, _ now: MonotonicTime,
        _ take: (SocketMessage) -> Void
    ) {
        var offset = 0
        if sockets[token].state == .shakingHands {
            guard let end = Self.endOfHead(bytes, count) else {
                sockets[token].rest = Array(bytes[..<count])
                return
            }
            guard bytes.starts(with: Self.switching) else {
                // The status line explains the refusal.
                let line = bytes[..<count].prefix { $0 != 13 }
                return fail(token, "refused: \(Format.line(String(decoding: line, as: UTF8.self)))")
            }
            sockets[token].state = .open
            shaking -= 1
            news.connected += 1
            offset = end
        }
        guard sockets[token].state == .open else { return }
        do throws(ServerFrames.Failure) {
            while let frame = try ServerFrames.frame(in: bytes.span.extracting(..<count), at: offset) {
                offset = frame.payload.upperBound
                if frame.kind == .text {
                    news.messages += 1
                    take(
                        SocketMessage(socket: token, bytes: bytes, text: frame.payload, age: age, readAt: now)
                    )
                } else if !control(frame, bytes, token) {
                    return
                }
            }
        } catch {
            return fail(token, "message too long")
        }
        if offset < count { sockets[token].rest = Array(bytes[offset..<count]) }
    }

    /// Where the body begins after the head of an HTTP message; nil if the head is incomplete.
    static func endOfHead(_ bytes: [UInt8], _ count: Int) -> Int? {
        guard count >= 4 else { return nil }
        for index in 3..<count
        where bytes[index] == 10 && bytes[index - 1] == 13 && bytes[index - 2] == 10 && bytes[index - 3] == 13
        {
            return index + 1
        }
        return nil
    }

    /// Processes a frame that is not text.
    /// - Returns: false if the server has closed the connection.
    private func control(_ frame: ServerFrames.Frame, _ bytes: [UInt8], _ token: Int) -> Bool {
        switch frame.kind {
        case .ping:
            _ = streams.send(ServerFrames.clientFrame(.pong, Array(bytes[frame.payload])), token: token)
        case .close:
            let code =
                frame.payload.count >= 2
                // 1005 stands for a close frame without a code (RFC 6455 §7.4.1).
                ? Int(bytes[frame.payload.lowerBound]) << 8 | Int(bytes[frame.payload.lowerBound + 1]) : 1_005
            fail(token, "closed with code \(code)")
            return false
        case .text, .pong, nil: break
        }
        return true
    }

    // MARK: Heartbeats

    /// Sends the heartbeats that are due.
    ///
    /// They are spread over the interval, as those of viewers who joined one after the other.
    func sayHello() {
        let now = MonotonicClock.now()
        guard !sockets.isEmpty, isComplete else {
            helloSince = now
            return
        }
        let share = Double(now.nanoseconds(since: helloSince)) / Double(Self.helloInterval)
        let count = Int(share * Double(sockets.count))
        guard count > 0 else { return }
        helloSince = now
        for _ in 0..<min(count, sockets.count) {
            send(Self.hello, token: helloNext)
            helloNext = (helloNext + 1) % sockets.count
        }
    }
}
