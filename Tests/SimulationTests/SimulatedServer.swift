import Base
import ClientPeer
import Crypto
import Forwarding
import Peer
import SCTP
import TestSupport
import Wire

@testable import Net
@testable import Node

/// A server's workers with the network before them, in virtual time and from one seed: what all simulations have in
/// common.
///
/// Who its clients are, and what follows from what workers tell, is theirs.
final class SimulatedServer {
    struct NotPossible: Error {}

    /// The server's and the clients' keys, the same in every run: the lengths of signatures depend on them.
    private static let identities: [DTLSIdentity] = {
        let lines = (try? Fixtures.text("Identities/identities.hex"))?.split(separator: "\n") ?? []
        return lines.filter { !$0.hasPrefix("#") }.compactMap { line in
            let parts = line.split(separator: " ").map { hexBytes(String($0)) }
            guard parts.count == 2 else { return nil }
            return try? DTLSIdentity(certificate: parts[0], privateKey: Secret(parts[1]))
        }
    }()

    let clientIdentity: DTLSIdentity
    let timeline = SCTPTimeline()
    let world: SimulatedWorld
    let digest: RunDigest
    private(set) var workers: [Worker] = []
    var network: SimulatedNetwork
    var random: SeededGenerator
    private let identity: DTLSIdentity
    private var sinks: [CollectingSink] = []
    /// Of workers that have one port; none where each has its own.
    private var sharers: [PortSharer] = []
    private let port: SharedPort?
    /// Datagrams that came to another worker than that of their session.
    private(set) var handedOver = 0

    /// - Parameter sharesPort: whether all workers have one port, as they do unless an operator says otherwise.
    init(
        seed: UInt64, conditions: SimulatedNetwork.Conditions, workers count: Int, sharesPort: Bool = false
    ) throws {
        guard Self.identities.count == 2 else { throw NotPossible() }
        (identity, clientIdentity) = (Self.identities[0], Self.identities[1])
        let seed = ChosenSeed.or(seed)
        world = SimulatedWorld(seed: ~seed)
        digest = RunDigest(seed: seed)
        random = SeededGenerator(seed: seed)
        network = SimulatedNetwork(
            conditions: conditions, random: SeededGenerator(seed: seed ^ 0xABCD), digest: digest)
        let dtls = try (0..<count).map { [identity, world] _ in
            try world.run(at: .zero) { try DTLSContext(identity: identity) }
        }
        let exchange = count > 1 ? RelayExchange(workers: count) : nil
        port = sharesPort ? SharedPort(workers: count) : nil
        sharers = port.map { port in (0..<count).map { PortSharer(port, index: $0) } } ?? []
        for index in 0..<count {
            let environment = WorkerEnvironment(
                clock: WallClock(unixNanoseconds: 1_700_000_000_000_000_000, at: .zero),
                random: SeededGenerator(seed: seed &+ UInt64(index)),
                connection: .init(dtls: dtls[index], timeline: timeline))
            workers.append(
                Worker(
                    environment: environment, index: index, exchange: exchange,
                    neighbours: sharesPort ? sharers[index] : nil))
            sinks.append(CollectingSink(source: Self.address(ofWorker: sharesPort ? 0 : index)))
        }
    }

    private static func address(ofWorker index: Int) -> TransportAddress {
        TransportAddress(ip: .loopback, port: 7_000 + UInt16(index))
    }

    /// Where a client is.
    static func address(ofClient number: Int) -> TransportAddress {
        TransportAddress(ip: IPAddress(ipv4: 0xC000_0201), port: 10_000 + UInt16(number))
    }

    // MARK: Sessions

    /// Calls something of a client.
    func run<Result, Failure: Error>(
        at now: MonotonicTime, _ body: () throws(Failure) -> Result
    ) throws(Failure) -> Result {
        try world.run(at: now, body)
    }

    /// Answers an offer, and opens its session.
    /// - Parameter opening: what the session is, beyond its name, what was agreed on and its credentials.
    func open(
        _ offer: String, for purpose: SessionOffer.Purpose, on worker: Int, at now: MonotonicTime,
        as opening: (SessionID, SessionPlan, ICECredentials) throws -> SessionOpening
    ) throws -> (id: SessionID, plan: SessionPlan, answer: SessionDescription) {
        let offer = try SessionOffer(SessionDescription(parsing: offer), for: purpose)
        let credentials = ICECredentials(worker: worker, using: &random)
        let fingerprint = identity.fingerprint
        let transport = LocalTransport(
            credentials: credentials,
            fingerprint: SDPFingerprint(algorithm: fingerprint.algorithm.rawValue, bytes: fingerprint.bytes),
            udp: [Self.address(ofWorker: port == nil ? worker : 0)])
        let (plan, answer) = try Negotiator().answer(to: offer, as: transport, using: &random)
        let id = SessionID(using: &random)
        perform(.open(try opening(id, plan, credentials)), on: worker, at: now)
        return (id, plan, try SessionDescription(parsing: answer.text))
    }

    /// Sends a command to a worker, as control would.
    func perform(_ command: WorkerCommand, on worker: Int, at now: MonotonicTime) {
        digest.note(command, of: worker, at: now)
        world.run(at: now) { workers[worker].perform(command, at: now, into: &sinks[worker]) }
    }

    // MARK: Time

    /// - Returns: which worker a datagram was for; nil if for none.
    func receive(_ datagram: SimulatedNetwork.Datagram, at now: MonotonicTime) -> Int? {
        let named = workers.indices.first { Self.address(ofWorker: $0) == datagram.destination }
        guard let named else { return nil }
        // The kernel chooses by the source.
        let index = port == nil ? named : Int(datagram.source.port) % workers.count
        world.run(at: now) {
            var bytes = datagram.bytes
            var span = bytes.mutableSpan
            workers[index].receive(&span, from: datagram.source, at: now, into: &sinks[index])
            if let port { handOver(from: index, by: port, at: now) }
        }
        return index
    }

    private func handOver(from index: Int, by port: SharedPort, at now: MonotonicTime) {
        sharers[index].flush(at: now)
        for other in workers.indices {
            var bundle = DatagramBundle()
            port.mailboxes[other].swapContents(with: &bundle)
            handedOver += bundle.count
            bundle.forEach { datagram, source in
                workers[other].receive(
                    &datagram, from: source, isHandedOver: true, at: now, into: &sinks[other])
            }
        }
    }

    /// Tells a worker how far the TCP connection to a client has come.
    /// - Returns: which worker it was; nil for none.
    func note(
        _ backlog: StreamBacklog, of client: TransportAddress, from source: TransportAddress?,
        at now: MonotonicTime
    ) -> Int? {
        guard let index = workers.indices.first(where: { Self.address(ofWorker: $0) == source }) else {
            return nil
        }
        world.run(at: now) { workers[index].note(backlog, of: client, at: now) }
        return index
    }

    /// Does what is due on a worker.
    func advance(_ index: Int, to now: MonotonicTime) {
        guard let due = workers[index].deadline, due <= now else { return }
        world.run(at: now) { workers[index].advance(to: now, into: &sinks[index]) }
    }

    /// Ends a batch of a worker, and sends what it has to say.
    /// - Parameter take: is given what the worker tells.
    func settle(_ index: Int, at now: MonotonicTime, _ take: (WorkerEvent) -> Void) {
        for datagram in finish(index, at: now, take) { network.send(datagram, at: now) }
    }

    /// The same for whoever sends by themselves.
    func finish(
        _ index: Int, at now: MonotonicTime, _ take: (WorkerEvent) -> Void
    ) -> [SimulatedNetwork.Datagram] {
        world.run(at: now) { workers[index].endOfBatch(at: now, into: &sinks[index]) }
        for event in workers[index].takeEvents() {
            digest.note(event, of: index, at: now)
            take(event)
        }
        return sinks[index].takeAll()
    }
}
