import Base
import ClientPeer
import Net
import RostrumClient
import Synchronization
import Wire

/// One peer connection of a `HeadlessEngine`, as apps hold it; its other side, `HeadlessPeer`, lives on the engine's
/// thread.
final class HeadlessConnection: MediaConnection {
    let events: AsyncStream<MediaEvent>
    let packets: AsyncStream<MediaPacket>
    private let outlet: HeadlessOutlet
    private let id: Int
    private let offer: ClientOffer
    /// Reaches the engine's thread; false where that has ended, or too much waits for it.
    private let post: @Sendable (HeadlessCommand) -> Bool

    /// Server addresses that are tried, at most.
    private static let mostCandidates = 8

    init(id: Int, offer: ClientOffer, post: @escaping @Sendable (HeadlessCommand) -> Bool) {
        self.id = id
        self.offer = offer
        self.post = post
        let (events, eventContinuation) = AsyncStream<MediaEvent>.makeStream(
            bufferingPolicy: .bufferingNewest(256))
        let (packets, packetContinuation) = AsyncStream<MediaPacket>.makeStream(
            bufferingPolicy: .bufferingNewest(1_024))
        self.events = events
        self.packets = packets
        outlet = HeadlessOutlet(events: eventContinuation, packets: packetContinuation)
    }

    deinit {
        _ = post(.remove(id, nil))
    }

    func makeOffer() async throws -> String { offer.description.text }

    func accept(answer: String) async throws {
        var plan: ClientPlan
        do {
            plan = try ClientPlan(try SessionDescription(parsing: answer), to: offer)
        } catch {
            throw RostrumError.unusable("the answer: \(error)")
        }
        let usable = plan.candidates.filter {
            $0.transport == .udp && $0.component == 1 && $0.transportAddress != nil
        }
        // All of one IP version, because there is one socket.
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

    func close() async {
        await withCheckedContinuation { done in
            // An engine that has ended has said goodbye for all.
            if !post(.remove(id, done)) { done.resume() }
        }
        outlet.finish()
    }
}

/// Where a connection's thread tells what comes.
final class HeadlessOutlet: Sendable {
    private let events: AsyncStream<MediaEvent>.Continuation
    private let packets: AsyncStream<MediaPacket>.Continuation
    let isControlOpen = Atomic(false)

    init(
        events: AsyncStream<MediaEvent>.Continuation, packets: AsyncStream<MediaPacket>.Continuation
    ) {
        self.events = events
        self.packets = packets
    }

    func tell(_ event: MediaEvent) { events.yield(event) }
    func tell(_ packet: MediaPacket) { packets.yield(packet) }

    func finish() {
        isControlOpen.store(false, ordering: .releasing)
        events.finish()
        packets.finish()
    }
}
