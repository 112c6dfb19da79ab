import Base
import Net
import TURN

/// The clients of a TURN port over UDP, on the port's thread.
struct TURNDatagrams: DatagramHandler, ~Copyable {
    /// The client at whose relayed address datagrams have arrived.
    typealias Command = TransportAddress

    /// Requests a second that are answered to clients without an allocation, all together.
    ///
    /// UDP sources can be forged. This bounds what a forger can have sent to a victim.
    static let answersToStrangers = 500
    /// Requests a second that are answered to clients without an allocation from one network: half of all.
    ///
    /// Each client sends two or three, and an office behind one address has hundreds, who join when an event begins.
    /// With 64 the last of 200 would get an address after 25 s, because a client waits twice as long before each try.
    static let answersToNetwork = 250
    /// The time between two searches for allocations that have expired.
    private static let lookInterval = Duration.seconds(1)

    private let relay: TURNRelay
    private let notify: @Sendable (TransportAddress) -> Void
    /// The clients with an allocation; all others leave no state.
    private var clients: [TransportAddress: TURNClient] = [:]
    private var strangers = StrangerLimit(ofEach: answersToNetwork, ofAll: answersToStrangers)
    private var nextLook = MonotonicTime.zero
    /// Keeps its memory from message to message.
    private var output: [UInt8] = []

    /// - Parameter notify: called on another thread when datagrams have arrived at a client's relayed address.
    init(_ relay: TURNRelay, notify: @escaping @Sendable (TransportAddress) -> Void) {
        self.relay = relay
        self.notify = notify
    }

    mutating func receive(
        _ datagram: inout MutableSpan<UInt8>, from source: TransportAddress, at now: MonotonicTime,
        into sink: inout SendBatch
    ) {
        let known = clients[source]
        guard known != nil || strangers.take(source.ip, at: now) else { return }
        let client = known ?? TURNClient(source, by: .udp, of: relay) { [notify] in notify(source) }
        client.receive(datagram.span, at: now) { Self.send($0, to: source, into: &sink) }
        // The message created or ended the allocation.
        if client.hasAllocation != (known != nil) {
            if clients.isEmpty { nextLook = now + Self.lookInterval }
            clients[source] = client.hasAllocation ? client : nil
        }
    }

    /// Sends a client what has arrived at its relayed address.
    mutating func perform(_ command: Command, at now: MonotonicTime, into sink: inout SendBatch) {
        output.removeAll(keepingCapacity: true)
        // Each message is a datagram of its own, so the buffer is sent and emptied after each one. Nothing queues
        // here, so there is always room.
        clients[command]?.deliver(into: &output, isStream: false, at: now, hasRoom: { _, _ in true }) {
            output in
            Self.send(output, to: command, into: &sink)
            output.removeAll(keepingCapacity: true)
        }
    }

    private static func send(_ bytes: [UInt8], to client: TransportAddress, into sink: inout SendBatch) {
        guard !bytes.isEmpty else { return }
        sink.append(to: client, capacity: bytes.count) { room in
            for index in bytes.indices { room[index] = bytes[index] }
            return bytes.count
        }
    }

    mutating func endOfBatch(at now: MonotonicTime, into sink: inout SendBatch) {}

    var deadline: MonotonicTime? { clients.isEmpty ? nil : nextLook }

    mutating func advance(to now: MonotonicTime, into sink: inout SendBatch) {
        nextLook = now + Self.lookInterval
        for (address, client) in clients where client.deadline.map({ $0 <= now }) ?? true {
            client.advance(to: now)
            if !client.hasAllocation { clients[address] = nil }
        }
    }

    /// Gives all relayed addresses back.
    mutating func stop(at now: MonotonicTime, into sink: inout SendBatch) {
        for client in clients.values { client.close() }
        clients = [:]
    }
}
