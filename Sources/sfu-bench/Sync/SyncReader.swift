import Base
import Net
import Synchronization

/// The followers of one thread: WebSockets that are read as far as the change that is waited for.
///
/// Lives on its thread. Says of each follower every five seconds that it is there, as the pages do, and answers
/// pings.
final class SyncReader {
    struct Setup: Sendable {
        let address: TransportAddress
        /// A WebSocket handshake, whole.
        let handshake: [UInt8]
        let followers: Int
        /// Whether their times count apart.
        let isSample: Bool
        /// Whether commands leave from here.
        let commands: Bool
    }

    private enum State {
        case none
        case shakingHands
        case open
    }

    private struct Follower {
        var state = State.none
        /// Of a frame that has not come whole.
        var rest: [UInt8] = []
        /// The last command whose change it saw.
        var seen = 0
    }

    /// Handshakes under way at a time: the server's queue of connections is not what is measured.
    private static let handshakesAtOnce = 64
    private static let helloInterval: Int64 = 5_000_000_000
    private static let hello = ServerFrames.clientFrame(.text, Array(#"{"type":"heartbeat"}"#.utf8))
    private static let switching = Array("HTTP/1.1 101".utf8)
    private static let snapshot = Array(#""type":"snapshot""#.utf8)

    private let setup: Setup
    private let shared: SyncShared
    private let streams: ClientStreams
    private var followers: [Follower]
    private var input = [UInt8](repeating: 0, count: 64 << 10)
    private var next = 0
    private var shaking = 0
    /// Who says next that they are there, and since when so many should have.
    private var helloNext = 0
    private var helloSince: MonotonicTime
    private var answer: [UInt8] = []
    /// Gathered over one look at the sockets.
    private var news = SyncNews()

    init(_ setup: Setup, shared: SyncShared, waker: Waker) throws(NetError) {
        self.setup = setup
        self.shared = shared
        streams = try ClientStreams(waker: waker)
        followers = [Follower](repeating: Follower(), count: setup.followers)
        helloSince = MonotonicClock.now()
    }

    /// After the followers': the connection that commands leave by.
    private var commandToken: Int { setup.followers }

    /// One turn: new connections, what has come, and heartbeats.
    func turn() {
        connect()
        streams.wait(nanoseconds: next < followers.count ? 1_000_000 : 20_000_000) { token in
            if token == commandToken { readAnswer() } else { read(token) }
        }
        sayHello()
        guard !news.isEmpty else { return }
        shared.tally.withLock { $0.merge(news, isSample: setup.isSample) }
        news.clear()
    }

    // MARK: Commands

    func send(_ command: SyncCommand) {
        streams.close(token: commandToken)
        answer = []
        do throws(NetError) {
            try streams.open(setup.address, token: commandToken)
        } catch {
            news.reasons["command: \(error)", default: 0] += 1
        }
        shared.begin(command, at: MonotonicClock.now())
        _ = streams.send(command.request, token: commandToken)
    }

    private func readAnswer() {
        guard case .bytes(let count, _) = streams.receive(token: commandToken, into: &input),
            news.answer == nil, let began = shared.command?.began
        else { return }
        answer += input[..<count]
        guard answer.count >= 12 else { return }
        let status = Int(String(decoding: answer[9..<12], as: UTF8.self)) ?? 0
        news.answer = (status, MonotonicClock.now().nanoseconds(since: began))
    }

    // MARK: Connecting

    private func connect() {
        while next < followers.count, shaking < Self.handshakesAtOnce {
            let token = next
            next += 1
            do throws(NetError) {
                try streams.open(setup.address, token: token)
                guard streams.send(setup.handshake, token: token) else {
                    fail(token, "the handshake could not be sent")
                    continue
                }
                followers[token].state = .shakingHands
                shaking += 1
            } catch {
                fail(token, "\(error)")
            }
        }
    }

    private func fail(_ token: Int, _ reason: String) {
        streams.close(token: token)
        switch followers[token].state {
        case .open: news.lost += 1
        case .shakingHands:
            shaking -= 1
            news.failed += 1
        case .none: news.failed += 1
        }
        followers[token] = Follower()
        news.reasons[reason, default: 0] += 1
    }

    // MARK: Reading

    private func read(_ token: Int) {
        while true {
            switch streams.receive(token: token, into: &input) {
            case .nothing: return
            case .ended:
                if followers[token].state != .none { fail(token, "closed without a word") }
                return
            case .bytes(let count, let age):
                let now = MonotonicClock.now()
                if followers[token].rest.isEmpty {
                    let buffer = input
                    take(buffer, count, token, age, now)
                } else {
                    let bytes = followers[token].rest + input[..<count]
                    followers[token].rest = []
                    take(bytes, bytes.count, token, age, now)
                }
                guard count == input.count else { return }
            }
        }
    }

    private func take(_ bytes: [UInt8], _ count: Int, _ token: Int, _ age: Int64?, _ now: MonotonicTime) {
        var offset = 0
        if followers[token].state == .shakingHands {
            guard let end = endOfHead(bytes, count) else {
                followers[token].rest = Array(bytes[..<count])
                return
            }
            guard bytes.starts(with: Self.switching) else {
                let line = bytes[..<count].prefix { $0 != 13 }
                return fail(token, "refused: \(String(decoding: line, as: UTF8.self))")
            }
            followers[token].state = .open
            shaking -= 1
            news.connected += 1
            offset = end
        }
        guard followers[token].state == .open else { return }
        do throws(ServerFrames.Failure) {
            while let frame = try ServerFrames.frame(in: bytes.span.extracting(..<count), at: offset) {
                offset = frame.payload.upperBound
                guard take(frame, bytes, token, age, now) else { return }
            }
        } catch {
            return fail(token, "a message that is too long")
        }
        if offset < count { followers[token].rest = Array(bytes[offset..<count]) }
    }

    private func endOfHead(_ bytes: [UInt8], _ count: Int) -> Int? {
        guard count >= 4 else { return nil }
        for index in 3..<count
        where bytes[index] == 10 && bytes[index - 1] == 13 && bytes[index - 2] == 10 && bytes[index - 3] == 13
        {
            return index + 1
        }
        return nil
    }

    /// - Returns: false if that was the end of it.
    private func take(
        _ frame: ServerFrames.Frame, _ bytes: [UInt8], _ token: Int, _ age: Int64?, _ now: MonotonicTime
    ) -> Bool {
        switch frame.kind {
        case .text:
            news.messages += 1
            look(at: frame.payload, of: bytes, token, age, now)
        case .ping:
            _ = streams.send(ServerFrames.clientFrame(.pong, Array(bytes[frame.payload])), token: token)
        case .close:
            let code =
                frame.payload.count >= 2
                ? Int(bytes[frame.payload.lowerBound]) << 8 | Int(bytes[frame.payload.lowerBound + 1]) : 1_005
            fail(token, "closed with \(code)")
            return false
        case .pong, nil: break
        }
        return true
    }

    private func look(
        at payload: Range<Int>, of bytes: [UInt8], _ token: Int, _ age: Int64?, _ now: MonotonicTime
    ) {
        guard let (command, began) = shared.command, followers[token].seen < command.number else { return }
        let span = bytes.span
        guard
            span.contains(command.marker, in: payload)
                || span.contains(Self.snapshot, in: payload)
                    && span.contains(command.snapshotMarker, in: payload)
        else { return }
        followers[token].seen = command.number
        news.seen.append((now.nanoseconds(since: began), age))
    }

    // MARK: Heartbeats

    /// Spread over the interval, as those of people who came one after the other.
    private func sayHello() {
        let now = MonotonicClock.now()
        guard !followers.isEmpty, next == followers.count else {
            helloSince = now
            return
        }
        let share = Double(now.nanoseconds(since: helloSince)) / Double(Self.helloInterval)
        let count = Int(share * Double(followers.count))
        guard count > 0 else { return }
        helloSince = now
        for _ in 0..<min(count, followers.count) {
            if followers[helloNext].state == .open { _ = streams.send(Self.hello, token: helloNext) }
            helloNext = (helloNext + 1) % followers.count
        }
    }
}
