import Base
import Foundation
import Net
import Peer
import RostrumClient
import Synchronization

/// A run of `sfu-bench demo`: hosts, viewers and their activity on a server with `--dev`, until it is interrupted.
final class DemoRun: Interruptible {
    private let options: Options
    private let client: SignallingClient
    private let tokens: TokenSource
    private let server: RostrumServer
    private let generator: Generator
    private let entrance: Entrance
    private let log = JoinLog()
    private let progress: Progress
    private let interrupted = Atomic(false)

    private static let tick = Duration.milliseconds(100)
    private static let shows = DemoShow.all
    /// For the first show; the seeds of the others follow.
    private static let seed: UInt64 = 2_024

    /// Checks the server, and encodes the films.
    /// - Throws: `RunFailure` if the server does not run with `--dev` on this machine.
    init(_ options: Options) async throws {
        var options = options
        options.target.liveStreams = Self.shows.map(\.stream)
        self.options = options
        client = SignallingClient(timeout: max(options.timing.connect, 10))
        tokens = await TokenSource(options, client: client)
        guard case .development = tokens else {
            throw RunFailure(
                description: "demo needs a server on this machine that was started with --dev; "
                    + "\(options.server.url.absoluteString) is not one, or does not answer")
        }
        server = RostrumServer(options.server.url)
        progress = Progress(isQuiet: options.report.isQuiet)
        progress.step("drawing \(Self.shows.count) streams")
        var recordings = Recordings()
        for show in Self.shows {
            let film = try DemoFilm(show)
            recordings.ofStream[show.stream] = (film.video, film.audio)
        }
        generator = try Generator(options)
        entrance = Entrance(
            options, client: client, tokens: tokens, generator: generator, log: log, recordings: recordings)
    }

    func interrupt() { interrupted.store(true, ordering: .relaxed) }

    var isInterrupted: Bool { interrupted.load(ordering: .relaxed) }

    /// Starts the streams, plays the shows until the end or an interrupt, and ends the streams.
    func run() async throws {
        // The ticker stands in for that of `Bench`: without it no milestone would reach the log.
        let ticker = Task {
            while !Task.isCancelled {
                log.take(generator.shared.takeNotices())
                try? await Task.sleep(for: Self.tick)
            }
        }
        defer {
            ticker.cancel()
            generator.stop()
        }
        var casts: [Cast] = []
        for show in Self.shows { casts.append(try await begin(show)) }
        progress.step("live: " + Self.shows.map(\.title).joined(separator: " · "))
        let end = MonotonicClock.now().advanced(byNanoseconds: Int64(options.timing.duration * 1e9))
        await withTaskGroup(of: Void.self) { group in
            for (index, cast) in casts.enumerated() {
                group.addTask { await self.play(cast, seed: Self.seed &+ UInt64(index), until: end) }
            }
        }
        for cast in casts { await finish(cast) }
    }

    // MARK: One show

    /// The participants of a show.
    private struct Cast: Sendable {
        let show: DemoShow
        /// API clients: of the host, of the shop that sells gifts, and of the viewers in their order.
        let host: StreamClient
        let shop: StreamClient
        let people: [StreamClient]
        let publisher: Participant
        let viewers: [Participant]
    }

    /// Publishes a show, names it, opens its shop, and lets its viewers join.
    /// - Throws: `RunFailure` if the publisher cannot connect.
    private func begin(_ show: DemoShow) async throws -> Cast {
        let ticket = try await ticket(show.host, .host, of: show)
        guard let publisher = await entrance.publish(ticket), let token = ticket.token else {
            throw RunFailure(description: "\(show.stream) did not start: \(log.reason ?? "no answer")")
        }
        try await connect(publisher, show)
        // Its first publisher creates the stream, so that each demo can create it again; the title is set afterwards.
        let host = server.stream(show.stream, as: token)
        try await host.call("PATCH", "", ["title": show.title])
        try await host.sell(Self.catalogue)
        let shop = try await self.ticket("Shop", .admin, of: show)
        var (people, viewers) = ([StreamClient](), [Participant]())
        for person in DemoShow.people {
            let viewer = try await self.ticket(person, .viewer, of: show)
            if let token = viewer.token { people.append(server.stream(show.stream, as: token)) }
            if let participant = await entrance.view(viewer) { viewers.append(participant) }
        }
        return Cast(
            show: show, host: host, shop: server.stream(show.stream, as: shop.token), people: people,
            publisher: publisher, viewers: viewers)
    }

    /// A ticket for a person of this show alone, because an identity may watch two streams at most.
    private func ticket(
        _ name: String, _ role: TokenSource.Role, of show: DemoShow
    ) async throws -> Entrance.Ticket {
        try await entrance.ticket(
            role, stream: show.stream, identity: Self.identity(name, show), name: name)
    }

    /// Waits until a participant is connected.
    private func connect(_ participant: Participant, _ show: DemoShow) async throws {
        let end = MonotonicClock.now().advanced(byNanoseconds: Int64(options.timing.connect * 1e9))
        while log[participant.id]?.outcome == .joining, MonotonicClock.now() < end, !isInterrupted {
            try? await Task.sleep(for: Self.tick)
        }
        guard log[participant.id]?.outcome == .joined else {
            throw RunFailure(description: "\(show.stream) did not connect: \(log.reason ?? "no handshake")")
        }
    }

    private func finish(_ cast: Cast) async {
        // If the server is gone, there is nothing to end.
        try? await cast.host.end()
        for participant in [cast.publisher] + cast.viewers { await entrance.leave(participant) }
    }

    // MARK: What people do

    /// Performs acts of the audience until the show ends.
    private func play(_ cast: Cast, seed: UInt64, until end: MonotonicTime) async {
        var crowd = DemoCrowd(
            people: cast.people.count, remarks: cast.show.remarks, answers: cast.show.answers.count,
            gifts: DemoShow.gifts.count,
            seed: seed)
        var poll: Int?
        while true {
            let (pause, act) = crowd.next()
            guard await isOn(after: pause, until: end) else { return }
            // An operator may have ended the host's session, or the server may have stopped.
            guard log[cast.publisher.id]?.outcome == .joined else {
                return progress.step("\(cast.show.stream) has ended")
            }
            // A refused act does not matter: the next one may succeed.
            poll = (try? await perform(act, in: cast, poll: poll)) ?? poll
        }
    }

    /// Waits for a number of seconds.
    /// - Returns: false if the run is over.
    private func isOn(after pause: Double, until end: MonotonicTime) async -> Bool {
        let due = MonotonicClock.now().advanced(byNanoseconds: Int64(pause * 1e9))
        while MonotonicClock.now() < due {
            guard !isInterrupted, MonotonicClock.now() < end else { return false }
            try? await Task.sleep(for: Self.tick)
        }
        return !isInterrupted
    }

    /// Performs an act through the API.
    /// - Returns: the number of the poll if this act opened one.
    private func perform(_ act: DemoCrowd.Act, in cast: Cast, poll: Int?) async throws -> Int? {
        let show = cast.show
        func viewer(_ person: Int) -> StreamClient? {
            cast.people.indices.contains(person) ? cast.people[person] : nil
        }
        switch act {
        case .comment(let person, let text): try await viewer(person)?.comment(text)
        case .hearts(let person, let count): try await viewer(person)?.react(["heart": count])
        case .gift(let person, let number, let count): try await give(number, count, person, in: cast)
        case .openPoll:
            return try await cast.host.openPoll(PollQuestion(question: show.question, options: show.answers))
        case .vote(let person, let answer):
            guard let poll else { return nil }
            try await viewer(person)?.call("PUT", "/polls/\(poll)/vote", ["options": [answer]])
        case .closePoll:
            guard let poll else { return nil }
            try await cast.host.call("POST", "/polls/\(poll)/close")
        }
        return nil
    }

    /// Reports a gift to the server, as a shop does after a payment.
    private func give(_ number: Int, _ count: Int, _ person: Int, in cast: Cast) async throws {
        guard DemoShow.gifts.indices.contains(number), DemoShow.people.indices.contains(person) else {
            return
        }
        let (gift, name) = (DemoShow.gifts[number], DemoShow.people[person])
        let sold = SoldGift(
            giver: Self.identity(name, cast.show), name: name, gift: gift.id, count: count,
            price: SoldGift.Price(amount: gift.price, currency: DemoShow.currency))
        // A new key for each purchase, by which the server recognizes repetitions.
        try await cast.shop.call("PUT", "/gifts/\(UUID().uuidString)", sold)
    }

    private static var catalogue: GiftCatalogue {
        GiftCatalogue(
            currency: DemoShow.currency,
            kinds: DemoShow.gifts.map { gift in
                GiftCatalogue.Kind(id: gift.id, name: gift.name, picture: gift.picture, price: gift.price)
            })
    }

    private static func identity(_ name: String, _ show: DemoShow) -> String {
        "demo-\(show.stream)-\(name.lowercased())"
    }
}
