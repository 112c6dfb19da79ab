import Base
import ClientPeer
import Forwarding
import Peer
import Stage
import StoryFeed
import TestSupport
import TestTraits
import Wire

@testable import Node

/// Live streams and people who swipe through them, in virtual time and from one seed.
///
/// Each stream has one publisher, whose packets name it; so what comes in a viewer's slot tells the stream.
final class FeedSimulation: SteppedSimulation {
    /// A tenth of a frame of 30 a second is as exact as it gets.
    private static let step = Duration.milliseconds(3)
    /// What was under way when a stream was released, and its repairs, may still come for so long.
    static let farewell = Duration.milliseconds(200)

    final class Viewer {
        let id: SessionID
        let worker: Int
        let client: StageClient
        /// When each stream was last seen to be held.
        var held: [StreamID: MonotonicTime] = [:]
        /// Where streams' pictures began, as the server says.
        var beginnings: [(pair: Int, stream: StreamID, timestamp: UInt32)] = []

        init(id: SessionID, worker: Int, client: StageClient) {
            (self.id, self.worker, self.client) = (id, worker, client)
        }
    }

    private struct Publisher {
        let stream: StreamID
        let session: SessionID
        let worker: Int
        let client: StageClient
    }

    private(set) var now = MonotonicTime(nanoseconds: 1_000_000_000)
    private let control: SimulatedControl
    private(set) var viewers: [SessionID: Viewer] = [:]
    private(set) var order: [SessionID] = []
    /// What should not have been.
    private(set) var faults: [String] = []
    /// In the order in which they came.
    private var publishers: [Publisher] = []
    private var streamsByNumber: [Int: StreamID] = [:]
    private let server: SimulatedServer
    private var clientsByAddress: [TransportAddress: StageClient] = [:]
    private var count = 0

    init(seed: UInt64, conditions: SimulatedNetwork.Conditions = .perfect, workers count: Int = 2) throws {
        // usrsctp has one clock for the process.
        guard SCTPTurn.isTaken else { throw SimulatedServer.NotPossible() }
        server = try SimulatedServer(seed: seed, conditions: conditions, workers: count)
        control = SimulatedControl(over: server)
        control.onCommand = { [weak self] in self?.note($0) }
    }

    var workers: [Worker] { server.workers }

    private var moment: Moment {
        Moment(elapsed: now, wall: WallTime(milliseconds: 1_700_000_000_000 + now.nanoseconds / 1_000_000))
    }

    var digest: RunDigest { server.digest }

    var conditions: SimulatedNetwork.Conditions {
        get { server.network.conditions }
        set { server.network.conditions = newValue }
    }

    // MARK: Streams

    /// A stream that goes live at once.
    @discardableResult
    func publish(
        _ name: String, on worker: Int? = nil, keyFrameInterval: Duration? = .seconds(2),
        _ change: (inout SyntheticVideo.Settings) -> Void = { _ in }
    ) throws -> StreamID {
        guard let stream = StreamID(name) else { throw SimulatedServer.NotPossible() }
        let (client, session, worker) = try open(on: worker, audio: 0, video: 0, publishes: true, change) {
            SessionRequest(
                purpose: .publish, stream: stream, sender: Stage.Sender(id: $0, authority: .host), offer: $1)
        }
        client.keyFrameInterval = keyFrameInterval
        publishers.append(Publisher(stream: stream, session: session, worker: worker, client: client))
        streamsByNumber[client.number] = stream
        var snapshot = StreamSnapshot(waitingFor: stream)
        snapshot.state = .live
        snapshot.createdAt = WallTime(milliseconds: 1_700_000_000_000 + Int64(client.number))
        snapshot.startedAt = snapshot.createdAt
        control.directory.update(snapshot)
        takeNews()
        return stream
    }

    func end(_ stream: StreamID) {
        guard let index = publishers.firstIndex(where: { $0.stream == stream }) else { return }
        let publisher = publishers.remove(at: index)
        with(publisher.client) { $0.close(into: &$1) }
        control.directory.remove(stream)
        takeNews()
    }

    func ban(_ participant: ParticipantID, from stream: StreamID) {
        guard var snapshot = control.directory[stream] else { return }
        snapshot.banned[participant] = WallTime(milliseconds: 1)
        control.directory.update(snapshot)
        takeNews()
    }

    /// What was shown of a stream until now is not for those who come from now on.
    func flush(_ stream: StreamID) {
        for index in workers.indices { server.perform(.flush(stream), on: index, at: now) }
    }

    private func takeNews() {
        control.takeNews(at: now)
    }

    /// The time of the latest frame's capture, as good as the steps are.
    func keyFrameRequests(of stream: StreamID) -> Int { publisher(of: stream)?.client.keyFrameRequests ?? 0 }

    private func publisher(of stream: StreamID) -> Publisher? { publishers.first { $0.stream == stream } }

    // MARK: Viewers

    func watch(
        _ name: String? = nil, on wish: StreamID? = nil, preload: FeedPreload = .eager, worker: Int? = nil
    ) throws -> Viewer {
        let participant = name.flatMap { ParticipantID($0) }
        let reader = FeedReader(
            scope: .all, sender: participant.map { Stage.Sender(id: $0, authority: .viewer) },
            standing: .all)
        let (client, id, worker) = try open(on: worker, audio: 2, video: 2, publishes: false) {
            SessionRequest(feed: FeedWish(reader: reader, stream: wish, preload: preload), offer: $1)
        }
        let viewer = Viewer(id: id, worker: worker, client: client)
        viewers[id] = viewer
        order.append(id)
        for state in slots(viewer) { viewer.held[state.stream] = now }
        return viewer
    }

    private func open(
        on worker: Int?, audio: Int, video: Int, publishes: Bool,
        _ change: (inout SyntheticVideo.Settings) -> Void = { _ in },
        for request: (ParticipantID, String) -> SessionRequest
    ) throws -> (StageClient, SessionID, worker: Int) {
        let number = count
        count += 1
        guard let name = ParticipantID("p\(number)") else { throw SimulatedServer.NotPossible() }
        let seed = server.random.next()
        let client = try server.run(at: now) {
            try StageClient(
                number: number, name: name, address: SimulatedServer.address(ofClient: number),
                identity: server.clientIdentity, seed: seed, audio: audio, video: video,
                publishes: publishes, hasChannels: !publishes
            ) { settings in
                settings.framesPerSecond = 30
                settings.bitrate = 120_000
                change(&settings)
            }
        }
        let worker = worker ?? number % workers.count
        let (id, answer) = try control.open(
            request(name, client.offer.description.text), on: worker, at: now)
        try server.run(at: now) { try client.start(answer, timeline: server.timeline, at: now) }
        clientsByAddress[client.address] = client
        return (client, id, worker)
    }

    /// Sends a text on a viewer's control channel.
    func say(_ text: String, _ viewer: Viewer) {
        let time = now
        with(viewer.client) { client, sink in
            try? client.send(.string(Array(text.utf8)), on: 0, at: time, into: &sink)
        }
    }

    func peek(_ stream: StreamID, _ viewer: Viewer) { say(#"{"type":"peek","stream":"\#(stream)"}"#, viewer) }
    func focus(_ stream: StreamID, _ viewer: Viewer) {
        say(#"{"type":"focus","stream":"\#(stream)"}"#, viewer)
    }

    func leave(_ viewer: Viewer) {
        with(viewer.client) { $0.close(into: &$1) }
        viewers[viewer.id] = nil
        order.removeAll { $0 == viewer.id }
        control.change(at: now) { $0.end(viewer.id, because: "deleted", at: now) }
    }

    private func with(_ client: StageClient, _ body: (StageClient, inout CollectingSink) -> Void) {
        var sink = CollectingSink(source: client.address)
        server.run(at: now) { body(client, &sink) }
        for datagram in sink.takeAll() { server.network.send(datagram, at: now) }
    }

    // MARK: What it has come to

    /// The stream whose publisher's packets bear this mark.
    func stream(of source: Int) -> StreamID? { streamsByNumber[source] }

    /// What a pair of slots shows now.
    func shown(_ viewer: Viewer, _ slot: FeedSlot, within age: Duration = .milliseconds(100)) -> StreamID? {
        shown(viewer, .video, slot, within: age)
    }

    func heard(_ viewer: Viewer, _ slot: FeedSlot, within age: Duration = .milliseconds(150)) -> StreamID? {
        shown(viewer, .audio, slot, within: age)
    }

    private func shown(
        _ viewer: Viewer, _ kind: MediaKind, _ slot: FeedSlot, within age: Duration
    ) -> StreamID? {
        let slots = viewer.client.slots.filter { $0.kind == kind }
        guard slots.indices.contains(slot.rawValue), slots[slot.rawValue].heard + age >= now else {
            return nil
        }
        return slots[slot.rawValue].source.flatMap { streamsByNumber[$0] }
    }

    func slots(_ viewer: Viewer) -> [FeedNotice.SlotState] {
        control.live.feed.slots(of: viewer.id)
    }

    /// The slot of the focus.
    func focus(of viewer: Viewer) -> FeedNotice.SlotState? { slots(viewer).first { $0.quality == .full } }

    /// Whether a viewer sees and hears what is in focus.
    func isPlaying(_ viewer: Viewer) -> Bool {
        guard let focus = focus(of: viewer) else { return false }
        return shown(viewer, focus.slot) == focus.stream && heard(viewer, focus.slot) == focus.stream
    }

    // MARK: Time

    func step() {
        now = now + Self.step
        while let datagram = server.network.receive(at: now) { deliver(datagram) }
        for index in workers.indices {
            server.advance(index, to: now)
            settle(index)
        }
        control.advance(to: moment)
        for publisher in publishers { advance(publisher.client) }
        for id in order {
            guard let viewer = viewers[id] else { continue }
            advance(viewer.client)
            check(viewer)
        }
    }

    private func advance(_ client: StageClient) {
        let time = now
        with(client) { $0.advance(to: time, into: &$1) }
    }

    private func deliver(_ datagram: SimulatedNetwork.Datagram) {
        if let index = server.receive(datagram, at: now) { return settle(index) }
        guard let client = clientsByAddress[datagram.destination] else { return }
        let time = now
        with(client) { $0.receive(datagram.bytes, from: datagram.source, at: time, into: &$1) }
    }

    private func settle(_ index: Int) {
        server.settle(index, at: now) { take($0) }
    }

    private func take(_ event: WorkerEvent) {
        switch event {
        case .closed(let id, _):
            viewers[id] = nil
            order.removeAll { $0 == id }
        case .begun(let id, let pair, let stream, let timestamp):
            viewers[id]?.beginnings.append((pair, stream, timestamp))
        default: break
        }
        control.change(at: now) { $0.receive(event, at: now) }
    }

    private func note(_ command: WorkerCommand) {
        // Messages that come together may attach a stream and let it go again within a step.
        if case .seat(let session, _, let stream?, _, _) = command { viewers[session]?.held[stream] = now }
    }

    /// What has to hold at every moment, by what comes over the wire.
    private func check(_ viewer: Viewer) {
        for state in slots(viewer) { viewer.held[state.stream] = now }
        if slots(viewer).count > 2 { faults.append("more than two streams attached") }
        for slot in viewer.client.slots {
            guard slot.heard == now, let stream = slot.source.flatMap({ streamsByNumber[$0] }) else {
                continue
            }
            guard let held = viewer.held[stream], held + Self.farewell + conditions.delay * 2 >= now else {
                let age = viewer.held[stream].map { "\(now.nanoseconds(since: $0) / 1_000_000) ms" } ?? "ever"
                faults.append(
                    "\(viewer.client.name) gets \(stream), not held for \(age), in \(slot.mid) at \(now)")
                continue
            }
        }
        for slot in viewer.client.slots where !slot.decoder.complaints.isEmpty {
            faults.append("\(viewer.client.name) \(slot.mid): \(slot.decoder.complaints)")
        }
    }
}

extension ClientOffer {
    /// The m-lines of media in the order of the offer.
    var mids: (audio: [String], video: [String]) {
        let lines = description.media.map { (kind: $0.kind, mid: $0.mid ?? "") }
        return (
            lines.filter { $0.kind == .audio }.map(\.mid), lines.filter { $0.kind == .video }.map(\.mid)
        )
    }
}
