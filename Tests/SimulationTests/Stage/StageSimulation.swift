import Base
import ClientPeer
import Crypto
import Forwarding
import Peer
import SCTP
import TestSupport
import Wire

/// A stage with its workers, its speakers and a bad network, in virtual time and from one seed.
///
/// Goes by steps of 5 ms, because with so many speakers something happens at every moment.
final class StageSimulation {
    private static let identities: (server: DTLSIdentity, client: DTLSIdentity)? = {
        guard let server = try? DTLSIdentity(), let client = try? DTLSIdentity() else { return nil }
        return (server, client)
    }()
    private static let step = Duration.milliseconds(5)

    private(set) var now = MonotonicTime(nanoseconds: 1_000_000_000)
    private(set) var room = StageRoom()
    private(set) var clients: [SessionID: StageClient] = [:]
    /// In the order in which they came.
    private(set) var order: [SessionID] = []
    private(set) var announced: [SessionID] = []
    /// As last told.
    private(set) var wants: [SessionID: Int] = [:]
    private(set) var controlMessages: [(session: SessionID, message: DataChannelMessage)] = []
    private(set) var workers: [Worker] = []
    private var network: SimulatedNetwork
    private var sinks: [CollectingSink] = []
    private var sessionsByAddress: [TransportAddress: SessionID] = [:]
    private var random: SeededGenerator
    private let timeline = SCTPTimeline()
    private let serverIdentity: DTLSIdentity
    private let clientIdentity: DTLSIdentity
    private let stream: StreamID
    private var nextChoice = MonotonicTime.zero
    private var count = 0

    struct NotPossible: Error {}

    init(seed: UInt64, conditions: SimulatedNetwork.Conditions = .perfect, workers count: Int = 2) throws {
        guard let identities = Self.identities, let stream = StreamID("show") else { throw NotPossible() }
        (serverIdentity, clientIdentity) = identities
        self.stream = stream
        random = SeededGenerator(seed: seed)
        network = SimulatedNetwork(conditions: conditions, random: SeededGenerator(seed: seed ^ 0xABCD))
        let exchange = count > 1 ? RelayExchange(workers: count) : nil
        for index in 0..<count {
            let environment = WorkerEnvironment(
                clock: WallClock(unixNanoseconds: 1_700_000_000_000_000_000, at: .zero),
                random: SeededGenerator(seed: seed &+ UInt64(index)),
                connection: .init(dtls: try DTLSContext(identity: serverIdentity), timeline: timeline))
            workers.append(Worker(environment: environment, index: index, exchange: exchange))
            sinks.append(CollectingSink(source: Simulation.address(ofWorker: index)))
        }
    }

    var conditions: SimulatedNetwork.Conditions {
        get { network.conditions }
        set { network.conditions = newValue }
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
        guard let name = ParticipantID("p\(number)") else { throw NotPossible() }
        let address = TransportAddress(ip: IPAddress(ipv4: 0xC000_0201), port: 10_000 + UInt16(number))
        let client = try StageClient(
            number: number, name: name, address: address, identity: clientIdentity, seed: random.next(),
            audio: audio, video: video, publishes: publishes)
        let worker = number % workers.count
        let offer = try SessionOffer(
            SessionDescription(parsing: client.offer.description.text), for: publishes ? .stage : .play)
        let credentials = ICECredentials(using: &random)
        let fingerprint = serverIdentity.fingerprint
        let transport = LocalTransport(
            credentials: credentials,
            fingerprint: SDPFingerprint(algorithm: fingerprint.algorithm.rawValue, bytes: fingerprint.bytes),
            udp: [Simulation.address(ofWorker: worker)])
        let (plan, answer) = try Negotiator().answer(to: offer, as: transport, using: &random)
        let id = SessionID(using: &random)
        workers[worker].perform(
            .open(
                SessionOpening(
                    id: id, plan: plan, localCredentials: credentials, publishes: isHost ? stream : nil,
                    follows: publishes ? nil : stream, stage: publishes ? stream : nil, participant: name,
                    order: UInt64(number + 1))), at: now, into: &sinks[worker])
        if publishes { room.join(id, of: name, on: worker, with: plan, isHost: isHost) }
        try client.start(SessionDescription(parsing: answer.text), timeline: timeline, at: now)
        clients[id] = client
        order.append(id)
        sessionsByAddress[address] = id
        return id
    }

    /// Somebody says goodbye.
    func leave(_ id: SessionID) {
        with(id) { client, sink in client.close(into: &sink) }
        clients[id] = nil
        order.removeAll { $0 == id }
    }

    func with<Result>(_ id: SessionID, _ body: (StageClient, inout CollectingSink) throws -> Result) rethrows
        -> Result?
    {
        guard let client = clients[id] else { return nil }
        var sink = CollectingSink(source: client.address)
        defer { for datagram in sink.takeAll() { network.send(datagram, at: now) } }
        return try body(client, &sink)
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
        while let datagram = network.receive(at: now) { deliver(datagram) }
        for index in workers.indices {
            if let due = workers[index].deadline, due <= now {
                workers[index].advance(to: now, into: &sinks[index])
            }
            settle(index)
        }
        if now >= nextChoice {
            nextChoice = now + StageRoom.interval
            perform(room.advance(to: now))
        }
        for id in order { with(id) { $0.advance(to: now, into: &$1) } }
    }

    private func deliver(_ datagram: SimulatedNetwork.Datagram) {
        var bytes = datagram.bytes
        for index in workers.indices where Simulation.address(ofWorker: index) == datagram.destination {
            var span = bytes.mutableSpan
            workers[index].receive(&span, from: datagram.source, at: now, into: &sinks[index])
            return
        }
        guard let id = sessionsByAddress[datagram.destination] else { return }
        with(id) { $0.receive(bytes, from: datagram.source, at: now, into: &$1) }
    }

    private func settle(_ index: Int) {
        workers[index].endOfBatch(at: now, into: &sinks[index])
        for event in workers[index].takeEvents() {
            if case .controlMessage(let id, let message) = event { controlMessages.append((id, message)) }
            if case .closed(let id, _) = event { perform(room.leave(id)) }
            perform(room.receive(event))
        }
        for datagram in sinks[index].takeAll() { network.send(datagram, at: now) }
    }

    private func perform(_ effects: [StageRoom.Effect]) {
        for effect in effects {
            switch effect {
            case .command(let command, let worker):
                workers[worker].perform(command, at: now, into: &sinks[worker])
            case .announce(let id): announced.append(id)
            case .want(let source, let height): wants[source.session] = height
            case .compose, .refresh, .announceProgramme: break
            case .programme(let tracks):
                for index in workers.indices {
                    workers[index].perform(.setProgramme(stream, tracks), at: now, into: &sinks[index])
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
