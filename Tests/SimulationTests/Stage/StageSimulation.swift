import Base
import ClientPeer
import Forwarding
import Peer
import TestSupport
import TestTraits
import Wire

/// A stage with its workers, its speakers and a bad network, in virtual time and from one seed.
///
/// Goes by steps of 5 ms, because with so many speakers something happens at every moment.
final class StageSimulation {
    private static let step = Duration.milliseconds(5)

    private(set) var now = MonotonicTime(nanoseconds: 1_000_000_000)
    private(set) var room = StageRoom()
    private(set) var clients: [SessionID: StageClient] = [:]
    /// In the order in which they came.
    private(set) var order: [SessionID] = []
    private(set) var announced: [SessionID] = []
    /// Sessions whose control channel the server knows of.
    private var reached: Set<SessionID> = []
    /// As last told.
    private(set) var wants: [SessionID: Int] = [:]
    private(set) var controlMessages: [(session: SessionID, message: DataChannelMessage)] = []
    private let server: SimulatedServer
    private var sessionsByAddress: [TransportAddress: SessionID] = [:]
    private let stream: StreamID
    private var nextChoice = MonotonicTime.zero
    private var count = 0

    init(seed: UInt64, conditions: SimulatedNetwork.Conditions = .perfect, workers count: Int = 2) throws {
        // usrsctp has one clock for the process.
        guard SCTPTurn.isTaken, let stream = StreamID("show") else { throw SimulatedServer.NotPossible() }
        self.stream = stream
        server = try SimulatedServer(seed: seed, conditions: conditions, workers: count)
    }

    var workers: [Worker] { server.workers }
    var digest: RunDigest { server.digest }

    var conditions: SimulatedNetwork.Conditions {
        get { server.network.conditions }
        set { server.network.conditions = newValue }
    }

    // MARK: Speakers

    /// A speaker; the host's tracks are the programme.
    func add(audio: Int = 3, video: Int = 9, isHost: Bool = false) throws -> SessionID {
        try add(audio: audio, video: video, publishes: true, isHost: isHost)
    }

    /// Somebody who watches the programme.
    func addViewer() throws -> SessionID {
        try add(audio: 1, video: 1, publishes: false, isHost: false)
    }

    private func add(audio: Int, video: Int, publishes: Bool, isHost: Bool) throws -> SessionID {
        let number = count
        count += 1
        guard let name = ParticipantID("p\(number)") else { throw SimulatedServer.NotPossible() }
        let seed = server.random.next()
        let client = try server.run(at: now) {
            try StageClient(
                number: number, name: name, address: SimulatedServer.address(ofClient: number),
                identity: server.clientIdentity, seed: seed, audio: audio, video: video,
                publishes: publishes)
        }
        let worker = number % workers.count
        let (id, plan, answer) = try server.open(
            client.offer.description.text, for: publishes ? .stage : .play, on: worker, at: now
        ) { id, plan, credentials in
            SessionOpening(
                id: id, plan: plan, localCredentials: credentials, publishes: isHost ? stream : nil,
                follows: publishes ? nil : stream, stage: publishes ? stream : nil, participant: name,
                order: UInt64(number + 1))
        }
        if publishes { room.join(id, of: name, on: worker, with: plan, isHost: isHost) }
        try server.run(at: now) { try client.start(answer, timeline: server.timeline, at: now) }
        clients[id] = client
        order.append(id)
        sessionsByAddress[client.address] = id
        return id
    }

    /// Somebody says goodbye.
    func leave(_ id: SessionID) {
        with(id) { client, sink in client.close(into: &sink) }
        clients[id] = nil
        order.removeAll { $0 == id }
    }

    func with<Result, Failure: Error>(
        _ id: SessionID, _ body: (StageClient, inout CollectingSink) throws(Failure) -> Result
    ) throws(Failure) -> Result? {
        guard let client = clients[id] else { return nil }
        var sink = CollectingSink(source: client.address)
        defer { for datagram in sink.takeAll() { server.network.send(datagram, at: now) } }
        return try server.run(at: now) { () throws(Failure) in try body(client, &sink) }
    }

    func change(_ body: (inout StageRoom) -> [StageRoom.Effect]) {
        perform(body(&room))
    }

    // MARK: Time

    @discardableResult
    func run(for limit: Duration, until condition: () -> Bool = { false }) -> Bool {
        let end = now + limit
        while !condition() {
            guard now < end else { return false }
            now = now + Self.step
            step()
        }
        return true
    }

    private func step() {
        while let datagram = server.network.receive(at: now) { deliver(datagram) }
        for index in workers.indices {
            server.advance(index, to: now)
            settle(index)
        }
        if now >= nextChoice {
            nextChoice = now + StageRoom.interval
            perform(room.advance(to: now))
        }
        for id in order { with(id) { $0.advance(to: now, into: &$1) } }
    }

    /// Whether both ends know of a session's control channel: the network decides which does first.
    func hasControl(_ id: SessionID) -> Bool {
        clients[id]?.hasControl == true && reached.contains(id)
    }

    private func deliver(_ datagram: SimulatedNetwork.Datagram) {
        guard server.receive(datagram, at: now) == nil else { return }
        guard let id = sessionsByAddress[datagram.destination] else { return }
        with(id) { $0.receive(datagram.bytes, from: datagram.source, at: now, into: &$1) }
    }

    private func settle(_ index: Int) {
        server.settle(index, at: now) { event in
            if case .controlMessage(let id, let message) = event { controlMessages.append((id, message)) }
            if case .controlOpened(let id) = event { reached.insert(id) }
            if case .closed(let id, _) = event { perform(room.leave(id)) }
            perform(room.receive(event))
        }
    }

    private func perform(_ effects: [StageRoom.Effect]) {
        for effect in effects {
            switch effect {
            case .command(let command, let worker):
                server.perform(command, on: worker, at: now)
            case .announce(let id): announced.append(id)
            case .want(let source, let height): wants[source.session] = height
            case .compose, .refresh, .announceProgramme: break
            case .programme(let tracks):
                for index in workers.indices {
                    server.perform(.setProgramme(stream, tracks), on: index, at: now)
                }
            }
        }
    }

    // MARK: What it has come to

    /// Slots of a client in which something else comes than the room says; empty slots must stay silent.
    func wrongSlots(of id: SessionID, within age: Duration = .milliseconds(900)) -> [String] {
        guard let client = clients[id] else { return [] }
        return room.layout.slots(of: id).compactMap { slot in
            guard let track = client.slots.first(where: { $0.mid == slot.mid }) else { return slot.mid }
            let isFresh = track.heard + age >= now
            let wanted = slot.source.flatMap { clients[$0.session]?.number }
            return (isFresh ? track.source : nil) == wanted ? nil : slot.mid
        }
    }

    /// Whom a client gets in its slots of one kind, by the room's choice.
    func shown(to id: SessionID, _ kind: MediaKind) -> [SessionID] {
        room.layout.slots(of: id).filter { $0.kind == kind }.compactMap { $0.source?.session }
    }
}
