import Base
import ClientPeer
import Forwarding
import Peer
import Stage
import TestSupport
import TestTraits
import Wire

@testable import Node

/// A stage with its workers, its speakers and a bad network, in virtual time and from one seed.
///
/// Goes by steps of 5 ms, because with so many speakers something happens at every moment.
final class StageSimulation: SteppedSimulation {
    private static let step = Duration.milliseconds(5)

    private(set) var now = MonotonicTime(nanoseconds: 1_000_000_000)
    private(set) var clients: [SessionID: StageClient] = [:]
    /// In the order in which they came.
    private(set) var order: [SessionID] = []
    /// Sessions whose control channel the server knows of.
    private var reached: Set<SessionID> = []
    private(set) var controlMessages: [(session: SessionID, message: DataChannelMessage)] = []
    /// Whose uplink was said to be weak, each time.
    private(set) var weakUplinks: [SessionID] = []
    private let server: SimulatedServer
    private let control: SimulatedControl
    private var sessionsByAddress: [TransportAddress: SessionID] = [:]
    private let stream: StreamID
    private var count = 0

    init(seed: UInt64, conditions: SimulatedNetwork.Conditions = .perfect, workers count: Int = 2) throws {
        // usrsctp has one clock for the process.
        guard SCTPTurn.isTaken, let stream = StreamID("show") else { throw SimulatedServer.NotPossible() }
        self.stream = stream
        server = try SimulatedServer(seed: seed, conditions: conditions, workers: count)
        control = SimulatedControl(over: server)
        control.onNotice = { [unowned self] notice in
            if case .weakUplink(let id) = notice { weakUplinks.append(id) }
        }
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

    /// A speaker who came to host a stream that has a host.
    func addSecondHost() throws -> SessionID {
        try add(audio: 3, video: 9, publishes: true, isHost: false, isSecondHost: true)
    }

    /// Nobody made the stream: it is live because somebody publishes under its name.
    func beginByPublishing() {
        var snapshot = StreamSnapshot(waitingFor: stream)
        (snapshot.state, snapshot.isPublished) = (.live, true)
        control.directory.update(snapshot)
    }

    /// Somebody who watches the programme.
    /// - Parameter hasChannels: whether they come by the stage's endpoint, with data channels.
    func addViewer(hasChannels: Bool = false) throws -> SessionID {
        try add(audio: 1, video: 1, publishes: false, isHost: false, hasChannels: hasChannels)
    }

    /// Viewers may send on the stage's data tracks.
    func letViewersSend() {
        for index in workers.indices { server.perform(.setDataAccess(stream, .send), on: index, at: now) }
    }

    private func add(
        audio: Int, video: Int, publishes: Bool, isHost: Bool, isSecondHost: Bool = false,
        hasChannels: Bool = true
    ) throws -> SessionID {
        let number = count
        count += 1
        guard let name = ParticipantID("p\(number)") else { throw SimulatedServer.NotPossible() }
        let seed = server.random.next()
        let client = try server.run(at: now) {
            try StageClient(
                number: number, name: name, address: SimulatedServer.address(ofClient: number),
                identity: server.clientIdentity, seed: seed, audio: audio, video: video,
                publishes: publishes, hasChannels: hasChannels)
        }
        let worker = number % workers.count
        let authority: Stage.Sender.Authority =
            isHost || isSecondHost ? .host : publishes ? .speaker : .viewer
        let sender = Stage.Sender(id: name, authority: authority)
        var request = SessionRequest(
            purpose: hasChannels ? .stage : .play, stream: stream, sender: sender,
            offer: client.offer.description.text, patience: .seconds(3_600))
        if isSecondHost { request.isHost = false }
        let (id, answer) = try control.open(request, on: worker, at: now)
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

    /// A client's message on its control channel arrives.
    func say(_ text: String, by id: SessionID) {
        control.change(at: now) { $0.receive(.controlMessage(id, DataChannelMessage(text)), at: now) }
    }

    func pin(_ name: ParticipantID, in mid: String, of id: SessionID, maximumHeight: Int? = nil) {
        let height = maximumHeight.map { #","maxHeight":\#($0)"# } ?? ""
        say(#"{"type":"pin","mid":"\#(mid)","participant":"\#(name)"\#(height)}"#, by: id)
    }

    /// The host chooses whose picture viewers get.
    func setProgramme(_ programme: StageDetails.Programme) {
        control.change(at: now) { $0.perform(.setProgramme(programme), in: stream, at: now) }
    }

    private var layout: StageLayout { control.live[stream]?.room?.layout ?? StageLayout() }

    // MARK: Time

    func step() {
        now = now + Self.step
        while let datagram = server.network.receive(at: now) { deliver(datagram) }
        for index in workers.indices {
            server.advance(index, to: now)
            settle(index)
        }
        control.advance(to: Moment(elapsed: now, wall: WallTime(milliseconds: 1_700_000_000_000)))
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
            control.change(at: now) { $0.receive(event, at: now) }
        }
    }

    // MARK: What it has come to

    /// Slots of a client in which something else comes than the room says; empty slots must stay silent.
    func wrongSlots(of id: SessionID, within age: Duration = .milliseconds(900)) -> [String] {
        guard let client = clients[id] else { return [] }
        return layout.slots(of: id).compactMap { slot in
            guard let track = client.slots.first(where: { $0.mid == slot.mid }) else { return slot.mid }
            let isFresh = track.heard + age >= now
            let wanted = slot.source.flatMap { clients[$0.session]?.number }
            return (isFresh ? track.source : nil) == wanted ? nil : slot.mid
        }
    }

    /// Whom a client gets in its slots of one kind, by the room's choice.
    func shown(to id: SessionID, _ kind: MediaKind) -> [SessionID] {
        layout.slots(of: id).filter { $0.kind == kind }.compactMap { $0.source?.session }
    }
}
