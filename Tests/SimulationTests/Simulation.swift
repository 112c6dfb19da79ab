import Base
import ClientPeer
import Crypto
import Forwarding
import Peer
import TestSupport
import Wire

/// A server, its clients and the network between them, in virtual time and from one seed.
final class Simulation {
    static let stream: StreamID = {
        guard let stream = StreamID("show") else { preconditionFailure("a valid name") }
        return stream
    }()
    /// Making certificates costs more than a whole simulation; all of them share two.
    private static let identities: (server: DTLSIdentity, client: DTLSIdentity)? = {
        guard let server = try? DTLSIdentity(), let client = try? DTLSIdentity() else { return nil }
        return (server, client)
    }()

    private(set) var now = MonotonicTime(nanoseconds: 1_000_000_000)
    private(set) var network: SimulatedNetwork
    private(set) var workers: [Worker] = []
    private(set) var events: [WorkerEvent] = []
    private var clients: [SimulatedClient] = []
    private var sinks: [CollectingSink] = []
    private let serverIdentity: DTLSIdentity
    private let clientIdentity: DTLSIdentity
    private var random: SeededGenerator
    private var nextPort: UInt16 = 10_000
    private var nextOrder: UInt64 = 1
    /// Clients whose datagrams come over TCP, by their addresses.
    var readers: [TransportAddress: SlowReader] = [:]

    struct NoIdentity: Error {}

    init(seed: UInt64, conditions: SimulatedNetwork.Conditions = .perfect, workers count: Int = 1) throws {
        guard let identities = Self.identities else { throw NoIdentity() }
        (serverIdentity, clientIdentity) = identities
        random = SeededGenerator(seed: seed)
        network = SimulatedNetwork(conditions: conditions, random: SeededGenerator(seed: seed ^ 0xABCD))
        let exchange = count > 1 ? RelayExchange(workers: count) : nil
        for index in 0..<count {
            let environment = WorkerEnvironment(
                clock: WallClock(unixNanoseconds: 1_700_000_000_000_000_000, at: .zero),
                random: SeededGenerator(seed: seed &+ UInt64(index)),
                connection: .init(dtls: try DTLSContext(identity: serverIdentity)))
            workers.append(Worker(environment: environment, index: index, exchange: exchange))
            sinks.append(CollectingSink(source: Self.address(ofWorker: index)))
        }
    }

    static func address(ofWorker index: Int) -> TransportAddress {
        TransportAddress(ip: .loopback, port: 7_000 + UInt16(index))
    }

    var conditions: SimulatedNetwork.Conditions {
        get { network.conditions }
        set { network.conditions = newValue }
    }

    // MARK: Clients

    /// A client whose offer the server has answered; it connects as time goes on.
    func add(
        _ role: SimulatedClient.Role, worker: Int = 0, rids: [String] = [], hasRTX: Bool = true
    ) throws -> (client: SimulatedClient, session: SessionID) {
        nextPort += 1
        let address = TransportAddress(ip: IPAddress(ipv4: 0xC000_0201), port: nextPort)
        let client = try SimulatedClient(
            role: role, address: address, identity: clientIdentity, seed: random.next(), rids: rids)
        let text = client.offer.description.text
        let offer = try SessionOffer(
            SessionDescription(parsing: hasRTX ? text : Self.withoutRTX(text)),
            for: role == .publisher ? .publish : .play)
        let credentials = ICECredentials(using: &random)
        let fingerprint = serverIdentity.fingerprint
        let transport = LocalTransport(
            credentials: credentials,
            fingerprint: SDPFingerprint(algorithm: fingerprint.algorithm.rawValue, bytes: fingerprint.bytes),
            udp: [Self.address(ofWorker: worker)])
        let (plan, answer) = try Negotiator().answer(to: offer, as: transport, using: &random)
        let id = SessionID(using: &random)
        let opening = SessionOpening(
            id: id, plan: plan, localCredentials: credentials,
            publishes: role == .publisher ? Self.stream : nil,
            follows: role == .viewer ? Self.stream : nil, order: nextOrder)
        nextOrder += 1
        workers[worker].perform(.open(opening), at: now, into: &sinks[worker])
        try client.start(SessionDescription(parsing: answer.text), at: now)
        let slots = workers[worker].sessions[id]?.slots ?? []
        client.decoder.firstSent = slots.first { $0.plan.kind == .video }?.nextSequence
        clients.append(client)
        return (client, id)
    }

    /// An offer of a client that has packets repeated under their own numbers.
    private static func withoutRTX(_ offer: String) -> String {
        offer.split(separator: "\r\n").filter { !$0.contains(" rtx/90000") && !$0.contains("apt=") }
            .map { $0 + "\r\n" }.joined()
    }

    /// Sends a command to a worker, as control would.
    func perform(_ command: WorkerCommand, worker: Int = 0) {
        workers[worker].perform(command, at: now, into: &sinks[worker])
        settle(worker)
    }

    /// Makes a viewer say that its decoder cannot go on.
    func askForKeyFrame(_ client: SimulatedClient) {
        var sink = CollectingSink(source: client.outerAddress)
        client.askForKeyFrame(into: &sink)
        send(sink.takeAll())
    }

    /// Makes a client say goodbye.
    func close(_ client: SimulatedClient) {
        var sink = CollectingSink(source: client.outerAddress)
        client.close(into: &sink)
        send(sink.takeAll())
    }

    // MARK: Time

    /// Lets `duration` pass.
    func run(for duration: Duration) {
        _ = run(for: duration) { false }
    }

    /// Lets time pass until `condition` holds, at most `limit`.
    /// - Returns: whether it came to hold.
    func run(for limit: Duration, until condition: () -> Bool) -> Bool {
        let end = now + limit
        while !condition() {
            let next = nextEvent
            guard next <= end else {
                now = end
                return condition()
            }
            now = max(now, next)
            step()
        }
        return true
    }

    private var nextEvent: MonotonicTime {
        var next = network.next ?? .distantFuture
        for worker in workers { next = min(next, worker.deadline ?? .distantFuture) }
        for client in clients { next = min(next, client.deadline) }
        for reader in readers.values { next = min(next, reader.next) }
        return next
    }

    private func step() {
        while let datagram = network.receive(at: now) { deliver(datagram) }
        for reader in readers.values {
            for datagram in reader.read(at: now) { deliver(datagram) }
        }
        for index in workers.indices {
            if let due = workers[index].deadline, due <= now {
                workers[index].advance(to: now, into: &sinks[index])
            }
            settle(index)
        }
        for client in clients where client.deadline <= now {
            var sink = CollectingSink(source: client.outerAddress)
            client.advance(to: now, into: &sink)
            send(sink.takeAll())
        }
    }

    private func deliver(_ datagram: SimulatedNetwork.Datagram) {
        var bytes = datagram.bytes
        for index in workers.indices where Self.address(ofWorker: index) == datagram.destination {
            var span = bytes.mutableSpan
            workers[index].receive(&span, from: datagram.source, at: now, into: &sinks[index])
            settle(index)
            return
        }
        for client in clients where client.outerAddress == datagram.destination {
            var sink = CollectingSink(source: client.outerAddress)
            client.receive(bytes, from: datagram.source, at: now, into: &sink)
            send(sink.takeAll())
        }
    }

    private func settle(_ index: Int) {
        workers[index].endOfBatch(at: now, into: &sinks[index])
        events += workers[index].takeEvents()
        send(sinks[index].takeAll())
    }

    private func send(_ datagrams: [SimulatedNetwork.Datagram]) {
        for datagram in datagrams {
            if let reader = readers[datagram.destination] {
                reader.append(datagram, at: now)
            } else {
                network.send(datagram, at: now)
            }
        }
    }
}
