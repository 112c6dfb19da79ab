import Base
import Net

/// A message that came on one of many sockets.
struct SocketMessage {
    /// The token of its socket.
    let socket: Int
    let bytes: [UInt8]
    /// Where its text lies.
    let text: Range<Int>
    /// How long it had waited to be read, in nanoseconds; nil where the kernel does not say.
    let age: Int64?
    let readAt: MonotonicTime
}

/// What became of many sockets.
struct SocketNews {
    var connected = 0
    var failed = 0
    /// Closed by the server or broken after they were connected.
    var lost = 0
    var messages = 0
    /// Why, and how often.
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

/// WebSockets to one server that one thread reads: they connect some at a time, and are read frame by frame.
///
/// Says of each socket every five seconds that somebody is there, as the pages do, and answers pings.
final class SocketCrowd {
    private enum State {
        case none
        case shakingHands
        case open
    }

    private struct Socket {
        var state = State.none
        /// Of a frame that has not come whole.
        var rest: [UInt8] = []
    }

    /// Handshakes under way at a time: the server's queue of connections is not what is measured.
    private static let handshakesAtOnce = 64
    private static let helloInterval: Int64 = 5_000_000_000
    private static let hello = ServerFrames.clientFrame(.text, Array(#"{"type":"heartbeat"}"#.utf8))
    private static let switching = Array("HTTP/1.1 101".utf8)

    private let streams: ClientStreams
    private let address: TransportAddress
    /// By token, whole.
    private let handshake: (Int) -> [UInt8]
    private var sockets: [Socket]
    private var input = [UInt8](repeating: 0, count: 64 << 10)
    private var next = 0
    private var shaking = 0
    /// Who says next that they are there, and since when so many should have.
    private var helloNext = 0
    private var helloSince: MonotonicTime
    /// Since it was taken away.
    var news = SocketNews()

    /// - Parameter streams: of which it has the tokens from 0 to `count`.
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

    /// Whether every socket was at least tried to be connected.
    var isComplete: Bool { next == sockets.count }

    func isOpen(_ token: Int) -> Bool { sockets[token].state == .open }

    /// A handshake for a path (RFC 6455 §4.1).
    /// - Parameter token: a bearer's; nil for nobody.
    static func handshake(_ path: String, to address: TransportAddress, token: String? = nil) -> [UInt8] {
        var lines = [
            "GET \(path) HTTP/1.1", "Host: \(address)", "Upgrade: websocket", "Connection: Upgrade",
            "Sec-WebSocket-Key: AAAAAAAAAAAAAAAAAAAAAA==", "Sec-WebSocket-Version: 13",
        ]
        if let token { lines.append("Authorization: Bearer \(token)") }
        return Array((lines.joined(separator: "\r\n") + "\r\n\r\n").utf8)
    }

    // MARK: Connecting

    /// Begins to connect those whose turn it is.
    func connect() {
        while next < sockets.count, shaking < Self.handshakesAtOnce {
            let token = next
            next += 1
            do throws(NetError) {
                try streams.open(address, token: token)
                guard streams.send(handshake(token), token: token) else {
                    fail(token, "the handshake could not be sent")
                    continue
                }
                sockets[token].state = .shakingHands
                shaking += 1
            } catch {
                fail(token, "\(error)")
            }
        }
    }

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

    /// Sends a frame that `ServerFrames.clientFrame` made.
    /// - Returns: whether the kernel took it.
    @discardableResult
    func send(_ frame: [UInt8], token: Int) -> Bool {
        isOpen(token) && streams.send(frame, token: token)
    }

    /// Reads what has come on a socket.
    /// - Parameter take: called with each message.
    func read(_ token: Int, _ take: (SocketMessage) -> Void) {
        while true {
            switch streams.receive(token: token, into: &input) {
            case .nothing: return
            case .ended:
                if sockets[token].state != .none { fail(token, "closed without a word") }
                return
            case .bytes(let count, let age):
                let now = MonotonicClock.now()
                if sockets[token].rest.isEmpty {
                    let buffer = input
                    look(at: buffer, count, token, age, now, take)
                } else {
                    let bytes = sockets[token].rest + input[..<count]
                    sockets[token].rest = []
                    look(at: bytes, bytes.count, token, age, now, take)
                }
                guard count == input.count else { return }
            }
        }
    }

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
                let line = bytes[..<count].prefix { $0 != 13 }
                return fail(token, "refused: \(String(decoding: line, as: UTF8.self))")
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
            return fail(token, "a message that is too long")
        }
        if offset < count { sockets[token].rest = Array(bytes[offset..<count]) }
    }

    /// Where what follows a head begins; nil while it is not complete.
    static func endOfHead(_ bytes: [UInt8], _ count: Int) -> Int? {
        guard count >= 4 else { return nil }
        for index in 3..<count
        where bytes[index] == 10 && bytes[index - 1] == 13 && bytes[index - 2] == 10 && bytes[index - 3] == 13
        {
            return index + 1
        }
        return nil
    }

    /// - Returns: false if that was the end of it.
    private func control(_ frame: ServerFrames.Frame, _ bytes: [UInt8], _ token: Int) -> Bool {
        switch frame.kind {
        case .ping:
            _ = streams.send(ServerFrames.clientFrame(.pong, Array(bytes[frame.payload])), token: token)
        case .close:
            let code =
                frame.payload.count >= 2
                ? Int(bytes[frame.payload.lowerBound]) << 8 | Int(bytes[frame.payload.lowerBound + 1]) : 1_005
            fail(token, "closed with \(code)")
            return false
        case .text, .pong, nil: break
        }
        return true
    }

    // MARK: Heartbeats

    /// Spread over the interval, as those of people who came one after the other.
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
