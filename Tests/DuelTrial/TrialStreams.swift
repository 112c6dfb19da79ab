import Base
import Foundation
import Interaction
import Node
import Stage
import Store
import Synchronization

/// Time that is moved by hand, and by nothing else.
final class TrialClock: Sendable {
    private let moment: Mutex<Moment>

    init(_ wall: WallTime) {
        moment = Mutex(Moment(elapsed: .zero, wall: wall))
    }

    var now: Moment { moment.withLock { $0 } }

    func move(milliseconds: Int) {
        moment.withLock { moment in
            moment = Moment(
                elapsed: moment.elapsed + .milliseconds(milliseconds),
                wall: WallTime(milliseconds: moment.wall.milliseconds + Int64(milliseconds)))
        }
    }
}

/// Two live streams of one server, over one file of SQLite, with what passes between them.
struct TrialStreams: Sendable {
    /// One of the two.
    enum Side: String, CaseIterable, Sendable {
        case talk, quiz

        var other: Side { self == .talk ? .quiz : .talk }
    }

    static let catalogue = GiftCatalogue(
        currency: "EUR", kinds: [GiftCatalogue.Kind(id: "rose", name: "Rose", picture: "🌹", price: 100)])
    /// A page of the ledger.
    private static let page = 500

    let clock: TrialClock
    private let store: SQLiteStore
    private let hosts: [Side: StreamHost]
    private let post = Post()
    private let people: [String: Stage.Sender]

    /// What the two streams have said to each other, and nobody has heard yet.
    private final class Post: Sendable {
        let messages = Mutex<[DuelMessage]>([])
    }

    /// What the trial itself did wrong.
    struct Fault: Error, CustomStringConvertible {
        let description: String
    }

    /// Takes up what the directory holds, or makes both streams and has them go live.
    init(directory: String, at wall: WallTime) async throws {
        let (clock, post) = (TrialClock(wall), post)
        let store = try await SQLiteStore.open(SQLiteSettings(directory: directory), log: .silent)
        var hosts: [Side: StreamHost] = [:]
        var people: [String: Stage.Sender] = [:]
        for (name, authority) in [("ann", Stage.Sender.Authority.host), ("cleo", .host), ("bob", .viewer)] {
            guard let id = ParticipantID(name) else { throw Fault(description: "\(name) is no identity") }
            people[name] = Stage.Sender(id: id, name: name, authority: authority)
        }
        guard let shop = ParticipantID("shop") else { throw Fault(description: "there is no shop") }
        people["shop"] = Stage.Sender(id: shop, authority: .viewer, mayGiveGifts: true)
        let environment = StreamHost.Environment(
            store: store, log: .silent, directory: StreamDirectory(), now: { clock.now }, runsTimer: false,
            duels: { order in
                if case .message(let message) = order { post.messages.withLock { $0.append(message) } }
            }, perform: { _, _ in })
        for side in Side.allCases {
            guard let id = StreamID(side.rawValue), let host = people[side == .talk ? "ann" : "cleo"] else {
                throw Fault(description: "\(side) is no stream")
            }
            hosts[side] = try await Self.open(id, store, environment, host: host)
        }
        (self.clock, self.store, self.hosts, self.people) = (clock, store, hosts, people)
    }

    /// A crash may have come between any two of its steps.
    private static func open(
        _ id: StreamID, _ store: SQLiteStore, _ environment: StreamHost.Environment, host sender: Stage.Sender
    ) async throws -> StreamHost {
        let host: StreamHost
        if let stored = try await store.load(.one(id)).first {
            host = try StreamHost(stored, environment)
        } else {
            host = StreamHost(id, environment)
            _ = try await host.create(host: sender.id, name: sender.name, edit: StageEdit())
        }
        await host.connect(sender, by: .socket(1_000))
        if await host.snapshot.state != .live { _ = try await host.perform(.goLive, from: sender) }
        var edit = InteractionEdit()
        edit.gifts = catalogue
        _ = try await host.perform(.edit(edit), from: sender)
        return host
    }

    func close() async {
        for host in hosts.values { await host.close(.goingAway) }
        await store.close()
    }

    func host(_ side: Side) throws -> StreamHost {
        guard let host = hosts[side] else { throw Fault(description: "there is no \(side)") }
        return host
    }

    func person(_ name: String) throws -> Stage.Sender {
        guard let person = people[name] else { throw Fault(description: "there is no \(name)") }
        return person
    }

    func hostOf(_ side: Side) throws -> Stage.Sender { try person(side == .talk ? "ann" : "cleo") }

    // MARK: Time

    /// Lets time pass, and both streams do what is due.
    func pass(milliseconds: Int) async {
        clock.move(milliseconds: milliseconds)
        for side in Side.allCases { await hosts[side]?.tick() }
    }

    /// Hands over what the streams say to each other, and what follows from it.
    /// - Parameter fate: how often each message comes; 1 for a network that loses and repeats nothing.
    /// - Returns: the duels that were spoken of.
    @discardableResult
    func deliver(_ fate: () -> Int = { 1 }) async -> [DuelID] {
        var ids: [DuelID] = []
        // What never ends would be a fault of its own.
        for _ in 0..<200 {
            let message = post.messages.withLock { $0.isEmpty ? nil : $0.removeFirst() }
            guard let message, let side = Side(rawValue: message.to.description) else { break }
            ids.append(message.id)
            for _ in 0..<fate() { await hosts[side]?.receive(message) }
        }
        return ids
    }

    /// Waits until all that was decided is durable, and told.
    func settle() async throws {
        for side in Side.allCases { try await host(side).settled() }
    }

    // MARK: What is asked for

    /// - Returns: what became of it; nil where it was refused.
    func perform(_ command: DuelSide.Command, on side: Side) async throws -> JSON? {
        do {
            return try await host(side).perform(command, from: hostOf(side), isOpponentLive: true)
        } catch StageRefusal.interaction {
            return nil
        }
    }

    /// A duel as one side knows it; nil where it does not.
    func duel(_ id: DuelID, of side: Side) async throws -> JSON? {
        try? await host(side).duel(id, as: hostOf(side))
    }

    func give(_ gift: TrialGift, on side: Side) async throws -> Gift {
        guard case .gift(let gift) = try await host(side).perform(.give(gift.draft), from: person("shop"))
        else { throw Fault(description: "a gift was answered with something else") }
        return gift
    }

    /// - Returns: taps that count.
    func tap(_ count: Int, on side: Side) async throws -> Int {
        guard
            case .counted(let counted) = try await host(side).perform(
                .react(["heart": count]), from: person("bob"))
        else { throw Fault(description: "taps were answered with something else") }
        return counted
    }

    /// Taps since the stream was made, as those who come are told.
    func taps(on side: Side) async throws -> Int {
        let newcomer = Newcomer()
        let host = try host(side)
        await host.unfollow(try host.follow(as: nil, since: nil, newcomer))
        let told = try JSONDecoder().decode(JSON.self, from: Data(newcomer.first.utf8))
        guard case .number(let total) = told["interaction"]?["reactions"]?["heart"]?["total"] else {
            return 0
        }
        return Int(total)
    }

    /// Somebody who comes and reads the snapshot.
    private final class Newcomer: SyncFollower {
        private let text = Mutex<String?>(nil)

        var first: String { text.withLock { $0 } ?? "" }

        func send(_ text: String) -> SyncDelivery {
            self.text.withLock { $0 = $0 ?? text }
            return .queued
        }

        var isDrained: Bool { true }
        func close(_ reason: SyncClose) {}
    }

    /// The whole ledger, as the host reads it, and its sums.
    func ledger(of side: Side) async throws -> (gifts: [JSON], totals: JSON) {
        var found: [JSON] = []
        while true {
            let page = try await host(side).gifts(
                after: found.count, limit: Self.page, as: hostOf(side))
            guard case .array(let gifts) = page["gifts"], let totals = page["totals"] else {
                throw Fault(description: "a page of the ledger without gifts")
            }
            found += gifts
            guard page["more"] == .bool(true), !gifts.isEmpty else { return (found, totals) }
        }
    }
}

/// A gift that is the same for the same key, so that anybody may repeat it.
struct TrialGift: Hashable, Sendable {
    /// In which life of the process it was asked for first, and which one it was.
    let round: Int
    let number: Int

    init(round: Int, number: Int) {
        (self.round, self.number) = (round, number)
    }

    /// - Returns: nil for what is no key of the trial's.
    init?(key: some StringProtocol) {
        let parts = key.split(separator: "-").compactMap { Int($0) }
        guard parts.count == 2 else { return nil }
        self.init(round: parts[0], number: parts[1])
    }

    var key: String { "\(round)-\(number)" }
    var count: Int { 1 + number % 3 }
    var value: Int { count * TrialGift.price }
    static let price = 100

    var draft: Gift.Draft {
        let name = "giver-\(number % 7)"
        guard let giver = ParticipantID(name) else { preconditionFailure("\(name) is no identity") }
        return Gift.Draft(
            key: key, giver: giver, name: "Giver", kind: "rose", count: count, price: Self.price,
            currency: "EUR")
    }
}
