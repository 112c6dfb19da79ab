import Base
import Net
import Synchronization

/// The viewers of one thread: counts what they receive, and makes them tap and write.
///
/// Belongs to its thread.
final class AudienceReader {
    /// What a thread is to do.
    struct Setup: Sendable {
        /// Index of the thread.
        let index: Int
        let address: TransportAddress
        let path: String
        /// Of the viewers, in the order of their sockets.
        let tokens: [String]
        /// Of this thread's viewers together.
        let commentsPerSecond: Double
        /// Taps of each viewer in a second.
        let hearts: Int
        /// Between two messages with taps of a viewer, in seconds.
        let tapInterval: Double
    }

    /// Between two reports of the counters, in nanoseconds.
    private static let tellInterval: Int64 = 200_000_000
    /// Messages of a kind in one turn, so that incoming ones are read in between.
    private static let sendLimit = 256

    private let setup: Setup
    private let shared: AudienceShared
    private let streams: ClientStreams
    private let crowd: SocketCrowd
    private var memory = MessageMemory()
    /// What each viewer has received, by socket.
    private var hearings: [Hearing]
    private var tally = AudienceTally()
    private var mood = AudienceMood.arriving
    /// When the counters were last reported.
    private var toldAt: MonotonicTime
    /// Messages with taps: how many are due, the next viewer, and how many rounds through all viewers are complete.
    private var taps: Cadence
    private var tapsDue = 0
    private var tapsNext = 0
    private var tapRound = 0
    private var comments: Cadence
    private var commentsDue = 0
    private var commentsNext = 0
    private var commentNumber = 0
    /// By viewer: when the latest comment was sent, in nanoseconds of the clock.
    private var writtenAt: [Int64]

    init(_ setup: Setup, shared: AudienceShared, waker: Waker) throws(NetError) {
        self.setup = setup
        self.shared = shared
        streams = try ClientStreams(waker: waker)
        crowd = SocketCrowd(streams, to: setup.address, count: setup.tokens.count) { token in
            SocketCrowd.handshake(setup.path, to: setup.address, token: setup.tokens[token])
        }
        hearings = Array(repeating: Hearing(), count: setup.tokens.count)
        writtenAt = Array(repeating: 0, count: setup.tokens.count)
        toldAt = MonotonicClock.now()
        taps = Cadence(rate: Double(setup.tokens.count) / setup.tapInterval)
        comments = Cadence(rate: setup.commentsPerSecond)
    }

    /// One turn of the thread: new connections, incoming messages, and what is due.
    func turn() {
        crowd.connect()
        let isBusy = mood == .busy || !crowd.isComplete
        streams.wait(nanoseconds: isBusy ? 1_000_000 : 20_000_000) { crowd.read($0, take) }
        crowd.sayHello()
        mood = shared.mood.load(ordering: .acquiring)
        let now = MonotonicClock.now()
        if mood == .busy { act(at: now) }
        guard now.nanoseconds(since: toldAt) > Self.tellInterval else { return }
        tell()
        toldAt = now
    }

    /// Reports the counters; what each viewer received is reported at the end only, as that is much.
    func tell() {
        tally.sockets = crowd.news
        crowd.news = SocketNews()
        shared.tally.withLock { $0.merge(tally) }
        tally = AudienceTally()
        guard mood == .listening else { return }
        let open = hearings.indices.filter(crowd.isOpen).map { hearings[$0] }
        shared.hearings.withLock { $0[setup.index] = open }
    }

    // MARK: Hearing

    /// Evaluates a message to a viewer.
    private func take(_ message: SocketMessage) {
        // Snapshots for arriving viewers are long, differ for each viewer, and contain nothing that is counted.
        guard mood != .arriving else { return }
        guard let heard = memory.message(message.bytes[message.text]) else {
            tally.unknown += 1
            return
        }
        hearings[message.socket].take(heard)
        let now = message.readAt.nanoseconds
        switch heard.type {
        case "interaction":
            for sentAt in (heard.comments ?? []).lazy.compactMap({ AudienceMessage.sentAt($0.text) }) {
                tally.seen.add(now - sentAt)
                guard let age = message.age else { continue }
                tally.arrived.add(now - sentAt - age)
                tally.waited.add(age)
            }
            for name in (heard.gifts ?? []).lazy.compactMap(\.name) {
                guard let sentAt = AudienceMessage.sentAt(name) else { continue }
                tally.gifts.add(now - sentAt - (message.age ?? 0))
            }
        case "commented":
            tally.accepted += 1
            tally.answered.add(now - writtenAt[message.socket])
        case "refused": tally.refused[heard.rule.map { Format.line($0) } ?? "?", default: 0] += 1
        default: break
        }
    }

    // MARK: Doing

    /// Sends the taps and comments that are due.
    private func act(at now: MonotonicTime) {
        if setup.hearts > 0 { tapsDue += taps.due(at: now) }
        for _ in 0..<min(tapsDue, Self.sendLimit) {
            tapsDue -= 1
            tap()
        }
        commentsDue += comments.due(at: now)
        for _ in 0..<min(commentsDue, Self.sendLimit) {
            commentsDue -= 1
            write(at: now.nanoseconds)
        }
    }

    /// Sends the taps of the next viewer.
    private func tap() {
        // Taps are whole numbers, which add up to the wanted rate over several rounds.
        let perRound = Double(setup.hearts) * setup.tapInterval
        let count = Int(Double(tapRound + 1) * perRound) - Int(Double(tapRound) * perRound)
        let token = tapsNext
        tapsNext += 1
        if tapsNext == hearings.count { (tapsNext, tapRound) = (0, tapRound + 1) }
        guard count > 0 else { return }
        let text = #"{"type":"react","reactions":{"heart":\#(count)}}"#
        if crowd.send(ServerFrames.clientFrame(.text, Array(text.utf8)), token: token) {
            tally.hearts += count
        }
    }

    /// Sends a comment of the next viewer.
    private func write(at now: Int64) {
        let token = commentsNext
        commentsNext = (commentsNext + 1) % hearings.count
        commentNumber += 1
        let text = AudienceMessage.text(sentAt: now)
        let message = #"{"type":"comment","id":"c\#(commentNumber)","text":"\#(text)"}"#
        guard crowd.send(ServerFrames.clientFrame(.text, Array(message.utf8)), token: token) else { return }
        tally.comments += 1
        writtenAt[token] = now
    }
}

/// A thread with the viewers that it reads.
final class AudienceThread: Sendable {
    private let waker: Waker
    private let shared: AudienceShared
    private let thread: NativeThread

    init(
        name: String, cpu: Int?, _ setup: AudienceReader.Setup, shared: AudienceShared
    ) throws(NetError) {
        let waker = try Waker()
        self.waker = waker
        self.shared = shared
        thread = try NativeThread(name: name, cpu: cpu) {
            guard let reader = try? AudienceReader(setup, shared: shared, waker: waker) else {
                return shared.tally.withLock { $0.sockets.failed += setup.tokens.count }
            }
            while !shared.isStopped.load(ordering: .acquiring) {
                waker.clear()
                reader.turn()
            }
        }
    }

    /// Stops the threads of the run, and waits for this one, which closes its connections.
    func stop() {
        shared.isStopped.store(true, ordering: .releasing)
        waker.wake()
        thread.join()
    }
}
