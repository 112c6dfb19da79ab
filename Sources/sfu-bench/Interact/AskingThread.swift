import Base
import Foundation
import Net
import Synchronization

/// What a shop and voters were answered.
struct AskTally: Sendable {
    /// Numbers of gifts by the shop's key, once they were acknowledged.
    var gifts: [String: Int] = [:]
    /// Gifts that were sent once more under the same key, and those that became another gift by it.
    var repeated = 0
    var doubled = 0
    var votes = 0
    /// Until a gift was acknowledged.
    var giftTimes = LogHistogram()
    /// What was answered otherwise, by status or reason.
    var refused: [String: Int] = [:]
    /// Sent, and not answered yet.
    var open = 0
}

/// Gifts and votes on a few connections that stay open: each sends its next request when the last was answered.
///
/// Lives on its thread. What gets lost with its connection is sent again, as gifts and votes may be.
final class AskingLine {
    struct Setup: Sendable {
        let address: TransportAddress
        /// Of the stream.
        let path: String
        let poll: Int
        /// The shop's token.
        let shop: String
        let giftsPerSecond: Double
        /// Their tokens.
        let voters: [String]
        let votesPerSecond: Double
    }

    private enum Ask {
        /// The same again to the byte, which is what makes it the same gift.
        case gift(Int, sentAt: Int64, isRepeated: Bool)
        case vote(Int)
    }

    private struct Connection {
        var asked: (ask: Ask, at: MonotonicTime)?
        var answer: [UInt8] = []
        var isOpen = false
    }

    private struct Answer: Decodable {
        let number: Int
    }

    /// As a busy shop has.
    private static let connectionCount = 32
    /// One gift in so many is sent twice.
    private static let repeatEvery = 16
    private static let givers = 500
    static let currency = "EUR"
    static let kind = "rose"
    static let price = 100

    private let setup: Setup
    private let shared: AudienceShared
    private let streams: ClientStreams
    private var connections = [Connection](repeating: Connection(), count: connectionCount)
    private var input = [UInt8](repeating: 0, count: 16 << 10)
    private var gifts: Cadence
    private var giftsDue = 0
    private var nextGift = 0
    private var votes: Cadence
    private var votesDue = 0
    private var nextVote = 0
    private var again: [Ask] = []

    init(_ setup: Setup, shared: AudienceShared, waker: Waker) throws(NetError) {
        self.setup = setup
        self.shared = shared
        streams = try ClientStreams(waker: waker)
        gifts = Cadence(rate: setup.giftsPerSecond)
        votes = Cadence(rate: setup.votesPerSecond)
    }

    /// One turn: what was answered, and what is due.
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

    private static func key(_ number: Int) -> String { "order-\(number)" }

    // MARK: Answers

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

    private func take(_ answer: HTTPAnswer, _ token: Int) {
        guard let (ask, at) = connections[token].asked.take() else { return }
        connections[token].answer = []
        guard answer.status == 200 else { return refuse("HTTP \(answer.status)") }
        let passed = MonotonicClock.now().nanoseconds(since: at)
        switch ask {
        case .vote: shared.asked.withLock { $0.votes += 1 }
        case .gift(let number, let sentAt, let isRepeated):
            guard let gift = try? JSONDecoder().decode(Answer.self, from: Data(answer.body)) else {
                return refuse("a gift without a number")
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

    /// Its connection is gone.
    private func lose(_ token: Int) {
        streams.close(token: token)
        if let (ask, _) = connections[token].asked { again.append(ask) }
        connections[token] = Connection()
    }

    private func refuse(_ reason: String) {
        shared.asked.withLock { $0.refused[reason, default: 0] += 1 }
    }
}

/// A whole answer, with a body of a length that was said.
/// - Source: RFC 9112 §6.2.
struct HTTPAnswer {
    let status: Int
    let body: ArraySlice<UInt8>

    private static let lengthName = "content-length:"

    /// - Returns: nil while it is not complete.
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

/// The thread of a shop and of those who vote.
final class AskingThread: Sendable {
    private let waker: Waker
    private let shared: AudienceShared
    private let thread: NativeThread

    init(name: String, cpu: Int?, _ setup: AskingLine.Setup, shared: AudienceShared) throws(NetError) {
        let waker = try Waker()
        self.waker = waker
        self.shared = shared
        thread = try NativeThread(name: name, cpu: cpu) {
            guard let line = try? AskingLine(setup, shared: shared, waker: waker) else { return }
            while !shared.isStopped.load(ordering: .acquiring) {
                waker.clear()
                line.turn()
            }
        }
    }

    /// Ends the thread.
    func stop() {
        shared.isStopped.store(true, ordering: .releasing)
        waker.wake()
        thread.join()
    }
}
