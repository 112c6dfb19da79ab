import Base
import Foundation
import Net
import Synchronization

/// Results of the shop's and the voters' requests.
struct AskTally: Sendable {
    /// The number of each acknowledged gift, by the shop's key for it.
    var gifts: [String: Int] = [:]
    /// Gifts that were sent twice under the same key, and those that the server counted as two.
    var repeated = 0
    var doubled = 0
    var votes = 0
    /// Nanoseconds until a gift was acknowledged.
    var giftTimes = LogHistogram()
    /// Requests that were not acknowledged, by status or reason.
    var refused: [String: Int] = [:]
    /// Requests that were sent and are not answered yet.
    var open = 0
}

/// Sends gifts and votes over a few persistent connections, each with one request at a time.
///
/// Belongs to its thread. A request that is lost with its connection is repeated, which the API allows for both.
final class AskingLine {
    /// What the thread is to do.
    struct Setup: Sendable {
        let address: TransportAddress
        /// The stream's path in the API.
        let path: String
        /// Number of the poll.
        let poll: Int
        /// The shop's token.
        let shop: String
        let giftsPerSecond: Double
        /// The voters' tokens; each votes once.
        let voters: [String]
        let votesPerSecond: Double
    }

    /// A request.
    private enum Ask {
        /// A repetition has the same key and the same bytes, so it must remain the same gift.
        case gift(Int, sentAt: Int64, isRepeated: Bool)
        case vote(Int)
    }

    /// A connection with the request that waits for its response.
    private struct Connection {
        var asked: (ask: Ask, at: MonotonicTime)?
        var answer: [UInt8] = []
        var isOpen = false
    }

    /// The part of the response to a gift that matters.
    private struct Answer: Decodable {
        let number: Int
    }

    /// As many as a busy shop has.
    private static let connectionCount = 32
    /// One gift in this many is sent twice, to check that the server counts it once.
    private static let repeatEvery = 16
    /// Identities that give in turn.
    private static let givers = 500
    static let currency = "EUR"
    static let kind = "rose"
    static let price = 100

    private let setup: Setup
    private let shared: AudienceShared
    private let streams: ClientStreams
    private var connections = [Connection](repeating: Connection(), count: connectionCount)
    private var input = [UInt8](repeating: 0, count: 16 << 10)
    /// When gifts are due, how many are, and the number of the next.
    private var gifts: Cadence
    private var giftsDue = 0
    private var nextGift = 0
    /// The same for votes.
    private var votes: Cadence
    private var votesDue = 0
    private var nextVote = 0
    /// Requests to repeat.
    private var again: [Ask] = []

    init(_ setup: Setup, shared: AudienceShared, waker: Waker) throws(NetError) {
        self.setup = setup
        self.shared = shared
        streams = try ClientStreams(waker: waker)
        gifts = Cadence(rate: setup.giftsPerSecond)
        votes = Cadence(rate: setup.votesPerSecond)
    }

    /// One turn of the thread: reads responses, and sends what is due on idle connections.
    func turn() {
        let mood = shared.mood.load(ordering: .acquiring)
        streams.wait(nanoseconds: mood == .busy ? 1_000_000 : 20_000_000) { read($0) }
        if mood == .busy {
            let now = MonotonicClock.now()
            giftsDue += gifts.due(at: now)
            votesDue += votes.due(at: now)
        }
        for token in connections.indices where connections[token].asked == nil {
            guard let ask = next(isBusy: mood == .busy) else { break }
            send(ask, on: token)
        }
        let open = connections.count { $0.asked != nil } + again.count
        shared.asked.withLock { $0.open = open }
    }

    /// The next request: repetitions first, then votes, then gifts; nil if none is due.
    private func next(isBusy: Bool) -> Ask? {
        if let ask = again.popLast() { return ask }
        guard isBusy else { return nil }
        if votesDue > 0, nextVote < setup.voters.count {
            votesDue -= 1
            nextVote += 1
            return .vote(nextVote - 1)
        }
        guard giftsDue > 0 else { return nil }
        giftsDue -= 1
        nextGift += 1
        return .gift(nextGift - 1, sentAt: MonotonicClock.now().nanoseconds, isRepeated: false)
    }

    // MARK: Asking

    /// Sends a request, on a new connection if there is none.
    private func send(_ ask: Ask, on token: Int) {
        let now = MonotonicClock.now()
        if !connections[token].isOpen {
            do throws(NetError) {
                try streams.open(setup.address, token: token)
                connections[token].isOpen = true
            } catch {
                again.append(ask)
                return refuse("\(error)")
            }
        }
        connections[token].asked = (ask, now)
        connections[token].answer = []
        if !streams.send(request(ask), token: token) { lose(token) }
    }

    private func request(_ ask: Ask) -> [UInt8] {
        let (path, bearer, body): (String, String, String)
        switch ask {
        // The name has the time at which the gift was sent, by which viewers measure how late it comes.
        case .gift(let number, let sentAt, _):
            let price = #"{"amount":\#(Self.price),"currency":"\#(Self.currency)"}"#
            (path, bearer) = ("/gifts/" + Self.key(number), setup.shop)
            body =
                #"{"giver":"giver-\#(number % Self.givers)","name":"\#(sentAt)","gift":"\#(Self.kind)","price":"#
                + price + "}"
        case .vote(let number):
            (path, bearer) = ("/polls/\(setup.poll)/vote", setup.voters[number])
            body = #"{"options":[\#(number % 2)]}"#
        }
        let lines = [
            "PUT \(setup.path)\(path) HTTP/1.1", "Host: \(setup.address)", "Authorization: Bearer \(bearer)",
            "Content-Type: application/json", "Content-Length: \(body.utf8.count)", "", body,
        ]
        return Array(lines.joined(separator: "\r\n").utf8)
    }

    /// The shop's key for a gift, which makes a repetition recognizable.
    private static func key(_ number: Int) -> String { "order-\(number)" }

    // MARK: Answers

    /// Reads all that has arrived on a connection.
    private func read(_ token: Int) {
        while true {
            switch streams.receive(token: token, into: &input) {
            case .nothing: return
            case .ended: return lose(token)
            case .bytes(let count, _):
                connections[token].answer += input[..<count]
                if let answer = HTTPAnswer(connections[token].answer) { take(answer, token) }
                guard count == input.count else { return }
            }
        }
    }

    /// Counts a response, and frees its connection.
    private func take(_ answer: HTTPAnswer, _ token: Int) {
        guard let (ask, at) = connections[token].asked.take() else { return }
        connections[token].answer = []
        guard answer.status == 200 else { return refuse("HTTP \(answer.status)") }
        let passed = MonotonicClock.now().nanoseconds(since: at)
        switch ask {
        case .vote: shared.asked.withLock { $0.votes += 1 }
        case .gift(let number, let sentAt, let isRepeated):
            guard let gift = try? JSONDecoder().decode(Answer.self, from: Data(answer.body)) else {
                return refuse("gift without a number")
            }
            shared.asked.withLock { tally in
                if isRepeated {
                    tally.repeated += 1
                    if tally.gifts[Self.key(number)] != gift.number { tally.doubled += 1 }
                } else {
                    tally.gifts[Self.key(number)] = gift.number
                    tally.giftTimes.add(passed)
                }
            }
            guard !isRepeated, number % Self.repeatEvery == 0 else { return }
            again.append(.gift(number, sentAt: sentAt, isRepeated: true))
        }
    }

    /// Closes a connection that broke, and queues its request again.
    private func lose(_ token: Int) {
        streams.close(token: token)
        if let (ask, _) = connections[token].asked { again.append(ask) }
        connections[token] = Connection()
    }

    private func refuse(_ reason: String) {
        shared.asked.withLock { $0.refused[reason, default: 0] += 1 }
    }
}

/// A complete HTTP response with a Content-Length.
/// - Source: RFC 9112 §6.2.
struct HTTPAnswer {
    let status: Int
    let body: ArraySlice<UInt8>

    private static let lengthName = "content-length:"

    /// - Returns: nil if the response is incomplete, or has no Content-Length.
    init?(_ bytes: [UInt8]) {
        guard let end = SocketCrowd.endOfHead(bytes, bytes.count) else { return nil }
        let lines = String(decoding: bytes[..<end], as: UTF8.self).split(separator: "\r\n")
        let length = lines.dropFirst().lazy.compactMap { line -> Int? in
            guard line.lowercased().hasPrefix(Self.lengthName) else { return nil }
            return Int(line.dropFirst(Self.lengthName.count).trimmingCharacters(in: .whitespaces))
        }.first
        guard let length, length >= 0, bytes.count - end >= length else { return nil }
        status = lines.first?.split(separator: " ").dropFirst().first.flatMap { Int($0) } ?? 0
        body = bytes[end..<end + length]
    }
}

/// The thread of the shop and the voters.
final class AskingThread: Sendable {
    private let waker: Waker
    private let shared: AudienceShared
    private let thread: NativeThread

    init(name: String, cpu: Int?, _ setup: AskingLine.Setup, shared: AudienceShared) throws(NetError) {
        let waker = try Waker()
        self.waker = waker
        self.shared = shared
        thread = try NativeThread(name: name, cpu: cpu) {
            let line: AskingLine
            do throws(NetError) {
                line = try AskingLine(setup, shared: shared, waker: waker)
            } catch {
                // Without this count a run that sent no gift would pass: none was expected.
                shared.asked.withLock { $0.refused["\(error)", default: 0] += 1 }
                return
            }
            while !shared.isStopped.load(ordering: .acquiring) {
                waker.clear()
                line.turn()
            }
        }
    }

    /// Stops the threads of the run, and waits for this one.
    func stop() {
        shared.isStopped.store(true, ordering: .releasing)
        waker.wake()
        thread.join()
    }
}
