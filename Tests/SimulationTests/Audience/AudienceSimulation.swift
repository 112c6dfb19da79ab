import Base
import Interaction
import Node
import Stage
import Store
import Synchronization
import TestSupport

/// Time that the simulation moves.
final class AudienceClock: Sendable {
    private let moment = Mutex(Moment(elapsed: .zero, wall: WallTime(milliseconds: 1_800_000_000_000)))

    var now: Moment { moment.withLock { $0 } }

    func move(milliseconds: Int) {
        moment.withLock { moment in
            moment = Moment(
                elapsed: moment.elapsed + .milliseconds(milliseconds),
                wall: WallTime(milliseconds: moment.wall.milliseconds + Int64(milliseconds)))
        }
    }
}

/// An audience on bad connections: what people ask for gets lost, late or repeated, and is asked for again until it is
/// answered; what they are told breaks off, and goes on from where it was.
final class AudienceSimulation {
    /// Milliseconds.
    private static let step = 50
    private static let retryAfter = Duration.milliseconds(1_500)

    /// Something that has to be answered, whatever becomes of it on the way.
    private struct Request {
        /// Of whom; nil for the shop and the host.
        let person: Int?
        let sender: Stage.Sender
        let command: Interaction.Command
        var retryAt = MonotonicTime.zero
        var isCarriedOut = false
    }

    private enum Arrival {
        case request(Int)
        case answer(Int, JSON?)
        case taps(person: Int, Int)
    }

    let host: StreamHost
    let ann: Stage.Sender
    private let shop: Stage.Sender
    private let clock = AudienceClock()
    private let messages = ToldMessages()
    private(set) var people: [SimulatedPerson] = []
    /// Not answered yet, by number.
    private var requests: [Int: Request] = [:]
    private var nextRequest = 0
    /// By the step in which it comes.
    private var arrivals: [Int: [Arrival]] = [:]
    private var steps = 0
    private var random: SeededGenerator
    private let seed: UInt64
    private let digest: RunDigest
    /// Of all that people were told, and when.
    private var told: UInt64 = 0
    private var nextGift = 0
    private var hasBadNetwork = true

    /// Taps that the server counted.
    private(set) var taps = 0
    /// Requests that were carried out once more, as nobody knew that they had been.
    private(set) var repetitions = 0
    private(set) var refusals: [String] = []

    static func sender(
        _ name: String, _ authority: Stage.Sender.Authority, isShop: Bool = false
    ) -> Stage.Sender {
        guard let id = ParticipantID(name) else { preconditionFailure("\(name) is no identity") }
        return Stage.Sender(id: id, name: name, authority: authority, mayGiveGifts: isShop)
    }

    init(seed: UInt64, people count: Int) async throws {
        self.seed = seed
        random = SeededGenerator(seed: seed)
        digest = RunDigest(seed: seed)
        (ann, shop) = (Self.sender("ann", .host), Self.sender("shop", .viewer, isShop: true))
        guard let id = StreamID("show") else { preconditionFailure("show is a stream") }
        host = StreamHost(
            id,
            StreamHost.Environment(
                store: MemoryStore(), log: .silent, directory: StreamDirectory(),
                now: { [clock] in clock.now }, runsTimer: false, perform: { _, _ in }))
        _ = try await host.create(host: ann.id, name: "Ann", edit: StageEdit())
        _ = try await host.perform(.goLive, from: ann)
        var edit = InteractionEdit()
        edit.gifts = GiftCatalogue(
            currency: "EUR", kinds: [GiftCatalogue.Kind(id: "rose", name: "Rose", picture: "🌹", price: 100)])
        _ = try await host.perform(.edit(edit), from: ann)
        _ = try await host.perform(
            .openPoll(Poll.Draft(question: "Tea?", options: ["Yes", "No", "Later"])), from: ann)
        for index in 0..<count {
            people.append(
                SimulatedPerson(index: index, sender: Self.sender("p\(index)", .viewer), seed: seed))
            try await connect(index)
        }
    }

    var value: UInt64 { digest.value }

    private var now: MonotonicTime { clock.now.elapsed }

    // MARK: Time

    /// Lets them talk on a bad network, and then listen on a good one until all is said.
    func run(talking: Duration, listening: Duration) async throws {
        let end = now + talking
        while now < end {
            try await advance()
            try await act()
        }
        hasBadNetwork = false
        let last = now + listening
        while now < last { try await advance() }
        digest.note("\(told)", at: now)
    }

    private func advance() async throws {
        clock.move(milliseconds: Self.step)
        steps += 1
        await host.tick()
        for arrival in arrivals.removeValue(forKey: steps) ?? [] { try await take(arrival) }
        for number in requests.keys.sorted() where requests[number].map({ $0.retryAt <= now }) ?? false {
            send(number)
        }
        for index in people.indices { try await look(after: index) }
    }

    // MARK: What people do

    private func act() async throws {
        // A thousand people: some sixty comments, two hundred messages with taps, eight gifts and sixty votes a second.
        let share = Double(people.count) / 1_000
        for _ in 0..<count(3 * share) { ask(.comment(key: "c\(nextRequest)", text: "hello \(nextRequest)")) }
        for _ in 0..<count(3 * share) {
            let person = Int.random(in: people.indices, using: &random)
            ask(.vote(1, options: [person % 3]), of: person)
        }
        for _ in 0..<count(10 * share) {
            let person = Int.random(in: people.indices, using: &random)
            // Once, and lost with the connection that it is said on.
            if people[person].brokenUntil == nil {
                come(.taps(person: person, Int.random(in: 1...9, using: &random)), within: 200)
            }
        }
        for _ in 0..<count(0.4) {
            nextGift += 1
            let giver = people[Int.random(in: people.indices, using: &random)].sender
            let draft = Gift.Draft(
                key: "g\(nextGift)", giver: giver.id, name: giver.name, kind: "rose",
                count: 1 + nextGift % 3, price: 100, currency: "EUR")
            add(Request(person: nil, sender: shop, command: .give(draft)))
        }
        if Int.random(in: 0..<40, using: &random) == 0, let number = people[0].comments.keys.max() {
            add(Request(person: nil, sender: ann, command: steps % 2 == 0 ? .pin(number) : .delete(number)))
        }
    }

    /// So many on average.
    private func count(_ mean: Double) -> Int {
        let whole = Int(mean)
        return whole + (Double.random(in: 0..<1, using: &random) < mean - Double(whole) ? 1 : 0)
    }

    private func ask(_ command: Interaction.Command, of person: Int? = nil) {
        let person = person ?? Int.random(in: people.indices, using: &random)
        add(Request(person: person, sender: people[person].sender, command: command))
    }

    private func add(_ request: Request) {
        requests[nextRequest] = request
        nextRequest += 1
        send(nextRequest - 1)
    }

    // MARK: The way to the server and back

    /// Sends a request, maybe once more, of which nothing may come.
    private func send(_ number: Int) {
        requests[number]?.retryAt = now + Self.retryAfter
        for _ in 0..<copies() { come(.request(number), within: isLate() ? 3_000 : 300) }
    }

    private func copies() -> Int {
        guard hasBadNetwork else { return 1 }
        return [0, 1, 1, 1, 1, 1, 1, 1, 1, 2].randomElement(using: &random) ?? 1
    }

    private func isLate() -> Bool { hasBadNetwork && Int.random(in: 0..<20, using: &random) == 0 }

    private func come(_ arrival: Arrival, within milliseconds: Int) {
        let later = 1 + Int.random(in: 0..<milliseconds, using: &random) / Self.step
        arrivals[steps + later, default: []].append(arrival)
    }

    private func take(_ arrival: Arrival) async throws {
        switch arrival {
        case .request(let number): try await carryOut(number)
        case .answer(let number, let comment):
            guard let request = requests.removeValue(forKey: number) else { return }
            if let person = request.person, let comment { people[person].noteAnswer(comment) }
        case .taps(let person, let count):
            guard
                case .counted(let counted) = try await host.perform(
                    .react(["heart": count]), from: people[person].sender)
            else { return }
            taps += counted
        }
    }

    /// A copy may come long after the answer: it is remembered as one that was carried out.
    private func carryOut(_ number: Int) async throws {
        guard let request = requests[number] else { return }
        if request.isCarriedOut { repetitions += 1 }
        requests[number]?.isCarriedOut = true
        let answer = try await answer(to: request)
        for _ in 0..<copies() { come(.answer(number, answer), within: isLate() ? 3_000 : 300) }
    }

    /// What the server says to a request; nil for nothing that is shown.
    private func answer(to request: Request) async throws -> JSON? {
        let outcome = await outcome(of: request)
        switch outcome {
        case .success(.comment(let comment)): return comment.json
        case .success: return nil
        case .failure(.interaction(let refusal)):
            // They write more than they may, vote twice, or what was to be deleted is not there any more.
            refusals.append("\(refusal)")
            return nil
        case .failure(let error): throw error
        }
    }

    private func outcome(of request: Request) async -> Result<Interaction.Reply, StageRefusal> {
        do throws(StageRefusal) {
            return .success(try await host.perform(request.command, from: request.sender))
        } catch {
            return .failure(error)
        }
    }

    // MARK: The way from the server

    private func connect(_ index: Int) async throws {
        let linkSeed = seed &* 1_000_003 &+ UInt64(index) &* 1_009 &+ UInt64(people[index].interruptions)
        // One in fifty reads slowly.
        let link = SimulatedLink(seed: linkSeed, isSlow: index % 50 == 7, messages) { [clock] in
            clock.now.elapsed
        }
        people[index].number = try await host.follow(
            as: people[index].sender, since: people[index].version, link)
        people[index].link = link
    }

    private func look(after index: Int) async throws {
        if let (noticed, back) = people[index].brokenUntil {
            if let number = people[index].number, noticed <= now || back <= now {
                await host.unfollow(number)
                people[index].number = nil
            }
            guard back <= now else { return }
            people[index].brokenUntil = nil
            try await connect(index)
            return
        }
        for message in people[index].link?.receive(at: now) ?? [] {
            people[index].receive(message.json)
            told = (told ^ (UInt64(index) << 32 ^ message.number ^ UInt64(steps) << 48)) &* 0x100_0000_01B3
        }
        // Each connection breaks every twenty seconds or so.
        guard hasBadNetwork, Int.random(in: 0..<400, using: &people[index].random) == 0 else { return }
        people[index].link?.breakDown()
        let noticed = Int.random(in: 0..<2_000, using: &people[index].random)
        let back = Int.random(in: 100..<3_000, using: &people[index].random)
        people[index].brokenUntil = (now + .milliseconds(noticed), now + .milliseconds(back))
        people[index].noteInterruption()
    }
}
