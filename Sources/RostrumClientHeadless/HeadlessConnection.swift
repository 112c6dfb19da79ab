import Base
import ClientPeer
import Net
import RostrumClient
import Synchronization
import Wire

/// An app's handle of one peer connection; the connection itself, a `HeadlessPeer`, runs on the engine's thread.
final class HeadlessConnection: MediaConnection {
    let events: AsyncStream<MediaEvent>
    let packets: AsyncStream<MediaPacket>
    /// Carries events and packets from the engine's thread to the two streams above.
    private let outlet: HeadlessOutlet
    /// Identifies the connection within the engine.
    private let id: Int
    private let offer: ClientOffer
    /// Sends a command to the engine's thread; false if the thread has ended or its mailbox is full.
    private let post: @Sendable (HeadlessCommand) -> Bool

    /// Server addresses that are checked at most.
    private static let mostCandidates = 8

    init(id: Int, offer: ClientOffer, post: @escaping @Sendable (HeadlessCommand) -> Bool) {
        self.id = id
        self.offer = offer
        self.post = post
        // Bounded, so that an app that does not read cannot make them grow; the oldest elements are dropped.
        let (events, eventContinuation) = AsyncStream<MediaEvent>.makeStream(
            bufferingPolicy: .bufferingNewest(256))
        let (packets, packetContinuation) = AsyncStream<MediaPacket>.makeStream(
            bufferingPolicy: .bufferingNewest(1_024))
        self.events = events
        self.packets = packets
        outlet = HeadlessOutlet(events: eventContinuation, packets: packetContinuation)
    }

    deinit {
        // Without `close` the server is notified as well, but nothing waits for that.
        _ = post(.remove(id, nil))
    }

    func makeOffer() async throws -> String { offer.description.text }

    /// Checks the answer, opens a socket, and starts the connection on the engine's thread.
    /// - Throws: `RostrumError.unusable` for an answer that makes no sense or offers no UDP address.
    func accept(answer: String) async throws {
        var plan: ClientPlan
        do {
            plan = try ClientPlan(try SessionDescription(parsing: answer), to: offer)
        } catch {
            throw RostrumError.unusable("the answer: \(error)")
        }
        // UDP only, and only component 1: RTCP shares the port of RTP.
        let usable = plan.candidates.filter {
            $0.transport == .udp && $0.component == 1 && $0.transportAddress != nil
        }
        // One socket serves one IP version, so all addresses are of the same one; IPv4 is preferred.
        let ipv4 = usable.filter { $0.transportAddress?.ip.ipv4 != nil }
        plan.candidates = Array((ipv4.isEmpty ? usable : ipv4).prefix(Self.mostCandidates))
        guard !plan.candidates.isEmpty else { throw RostrumError.unusable("no address by UDP in the answer") }
        let any = ipv4.isEmpty ? IPAddress(high: 0, low: 0) : .any
        let socket = try DatagramSocket(
            bind: TransportAddress(ip: any, port: 0), bufferBytes: 1 << 20, coalescing: false)
        let setup = HeadlessSetup(
            id: id, credentials: offer.credentials, plan: plan, socket: socket, outlet: outlet)
        guard post(.add(setup)) else { throw RostrumError.notConnected }
    }

    func send(_ packet: MediaPacket) async { _ = post(.send(id, packet)) }

    func say(_ message: String) async throws {
        guard outlet.isControlOpen.load(ordering: .acquiring), post(.say(id, message)) else {
            throw RostrumError.notConnected
        }
    }

    /// Waits until the goodbye has been sent.
    func close() async {
        await withCheckedContinuation { done in
            // The engine has ended, and has closed all of its connections.
            if !post(.remove(id, done)) { done.resume() }
        }
        outlet.finish()
    }
}

/// Where the engine's thread delivers a connection's events and packets.
final class HeadlessOutlet: Sendable {
    private let events: AsyncStream<MediaEvent>.Continuation
    private let packets: AsyncStream<MediaPacket>.Continuation
    /// Set by the engine's thread; read by `say` on any thread.
    let isControlOpen = Atomic(false)

    init(
        events: AsyncStream<MediaEvent>.Continuation, packets: AsyncStream<MediaPacket>.Continuation
    ) {
        self.events = events
        self.packets = packets
    }

    func tell(_ event: MediaEvent) { events.yield(event) }
    func tell(_ packet: MediaPacket) { packets.yield(packet) }

    /// Ends both streams.
    func finish() {
        isControlOpen.store(false, ordering: .releasing)
        events.finish()
        packets.finish()
    }
}
