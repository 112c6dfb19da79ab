import Base
import Net
import Synchronization

/// The followers of one thread: WebSockets whose messages are searched for the change of the current command.
///
/// Belongs to its thread.
final class SyncReader {
    /// What a thread is to do.
    struct Setup: Sendable {
        let address: TransportAddress
        /// The complete request of a WebSocket handshake.
        let handshake: [UInt8]
        /// The same for the thread's first follower.
        let firstHandshake: [UInt8]
        let followers: Int
        /// Whether its followers' times are also counted separately.
        let isSample: Bool
        /// Whether it sends the commands.
        let commands: Bool
    }

    private static let snapshot = Array(#""type":"snapshot""#.utf8)

    private let setup: Setup
    private let shared: SyncShared
    private let streams: ClientStreams
    private let crowd: SocketCrowd
    /// By follower: the number of the latest command whose change it has seen.
    private var seen: [Int]
    private var input = [UInt8](repeating: 0, count: 64 << 10)
    /// The response to the command.
    private var answer = SyncAnswer()
    /// Collected over one turn, so that the shared tally is locked once.
    private var news = SyncNews()

    init(_ setup: Setup, shared: SyncShared, waker: Waker) throws(NetError) {
        self.setup = setup
        self.shared = shared
        streams = try ClientStreams(waker: waker)
        let (first, others) = (setup.firstHandshake, setup.handshake)
        crowd = SocketCrowd(streams, to: setup.address, count: setup.followers) { $0 == 0 ? first : others }
        seen = [Int](repeating: 0, count: setup.followers)
    }

    /// The token of the connection for commands, which follows those of the followers.
    private var commandToken: Int { setup.followers }

    /// One turn of the thread: new connections, incoming messages, heartbeats, and the report to the shared tally.
    func turn() {
        crowd.connect()
        streams.wait(nanoseconds: crowd.isComplete ? 20_000_000 : 1_000_000) { token in
            if token == commandToken { readAnswer() } else { crowd.read(token, look) }
        }
        crowd.sayHello()
        news.sockets = crowd.news
        crowd.news = SocketNews()
        guard !news.isEmpty else { return }
        shared.tally.withLock { $0.merge(news, isSample: setup.isSample) }
        news.clear()
    }

    // MARK: Commands

    /// Sends a command on a new connection; its time starts when the request is handed to the kernel.
    func send(_ command: SyncCommand) {
        streams.close(token: commandToken)
        answer = SyncAnswer()
        do throws(NetError) {
            try streams.open(setup.address, token: commandToken)
        } catch {
            crowd.news.reasons["command: \(error)", default: 0] += 1
        }
        shared.begin(command, at: MonotonicClock.now())
        _ = streams.send(command.request, token: commandToken)
    }

    /// Reads the status of the response to the command; the rest does not matter.
    private func readAnswer() {
        guard case .bytes(let count, _) = streams.receive(token: commandToken, into: &input),
            let status = answer.receive(input[..<count]), let began = shared.command?.began
        else { return }
        news.answer = (status, MonotonicClock.now().nanoseconds(since: began))
    }

    // MARK: Reading

    /// Notes when a message with the current change arrived; each follower counts once.
    private func look(at message: SocketMessage) {
        guard let (command, began) = shared.command, seen[message.socket] < command.number else { return }
        let span = message.bytes.span
        guard
            span.contains(command.marker, in: message.text)
                || span.contains(Self.snapshot, in: message.text)
                    && span.contains(command.snapshotMarker, in: message.text)
        else { return }
        seen[message.socket] = command.number
        news.seen.append((message.readAt.nanoseconds(since: began), message.age))
    }
}

/// The response to a command, as far as its status is known.
struct SyncAnswer {
    /// The beginning of the response; empty once the status is known.
    private var bytes: [UInt8] = []
    private var isKnown = false

    /// Notes more bytes of the response.
    /// - Returns: the status when the last byte of it has arrived, and only then: what follows is not another answer.
    mutating func receive(_ more: ArraySlice<UInt8>) -> Int? {
        guard !isKnown else { return nil }
        bytes += more
        // "HTTP/1.1 200".
        guard bytes.count >= 12 else { return nil }
        isKnown = true
        defer { bytes = [] }
        return Int(String(decoding: bytes[9..<12], as: UTF8.self)) ?? 0
    }
}
