import Base
import Net
import Synchronization

/// The viewers of one thread: what they hear is counted, and they tap and write.
///
/// Lives on its thread.
final class AudienceReader {
    struct Setup: Sendable {
        /// Among the threads.
        let index: Int
        let address: TransportAddress
        let path: String
        /// One for each viewer.
        let tokens: [String]
        /// Of these viewers.
        let commentsPerSecond: Double
        let hearts: Int
        /// In seconds.
        let tapInterval: Double
    }

    /// What each viewer heard is told so often.
    private static let tellInterval: Int64 = 200_000_000
    /// Sent in one turn, so that what comes is read in between.
    private static let sendLimit = 256

    private let setup: Setup
    private let shared: AudienceShared
    private let streams: ClientStreams
    private let crowd: SocketCrowd
    private var memory = MessageMemory()
    private var hearings: [Hearing]
    private var tally = AudienceTally()
    private var mood = AudienceMood.arriving
    private var toldAt: MonotonicTime
    /// Messages with taps: those that are due, the next viewer, and how often all have had their turn.
    private var taps: Cadence
    private var tapsDue = 0
    private var tapsNext = 0
    private var tapRound = 0
    private var comments: Cadence
    private var commentsDue = 0
    private var commentsNext = 0
    private var commentNumber = 0
    /// By viewer: when the comment left that they wait for an answer to, in the clock's nanoseconds.
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

    /// One turn: new connections, what has come, and what is due.
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

    /// Hands over what was counted.
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

    private func take(_ message: SocketMessage) {
        // What those are told who come is long, different for each of them, and tells of nothing that is counted.
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
        case "refused": tally.refused[heard.rule ?? "?", default: 0] += 1
        default: break
        }
    }

    // MARK: Doing

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

    private func tap() {
        // Whole taps, so many that they come to what was asked for over the rounds.
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

/// One thread and the viewers that it reads.
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

    /// Ends the thread, and with it its connections.
    func stop() {
        shared.isStopped.store(true, ordering: .releasing)
        waker.wake()
        thread.join()
    }
}
