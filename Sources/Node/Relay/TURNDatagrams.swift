import Base
import Net
import Peer
import TURN

/// A TURN port's clients by UDP, on the port's thread.
struct TURNDatagrams: DatagramHandler, ~Copyable {
    /// A client to whose address something came.
    typealias Command = TransportAddress

    /// Requests of those without an allocation that are answered in a second, of all together: who forges an address
    /// has not much sent there.
    private static let answersToStrangers = 500
    private static let lookInterval = Duration.seconds(1)

    private let relay: TURNRelay
    private let notify: @Sendable (TransportAddress) -> Void
    /// Those with an allocation.
    private var clients: [TransportAddress: TURNClient] = [:]
    private var strangers = PerSecondLimit(answersToStrangers)
    private var nextLook = MonotonicTime.zero
    private var output: [UInt8] = []

    /// - Parameter notify: called by another thread when something came to a client's address.
    init(_ relay: TURNRelay, notify: @escaping @Sendable (TransportAddress) -> Void) {
        self.relay = relay
        self.notify = notify
    }

    mutating func receive(
        _ datagram: inout MutableSpan<UInt8>, from source: TransportAddress, at now: MonotonicTime,
        into sink: inout SendBatch
    ) {
        let known = clients[source]
        guard known != nil || strangers.take(at: now) else { return }
        let client = known ?? TURNClient(source, by: .udp, of: relay) { [notify] in notify(source) }
        client.receive(datagram.span, at: now) { Self.send($0, to: source, into: &sink) }
        if client.hasAllocation != (known != nil) {
            if clients.isEmpty { nextLook = now + Self.lookInterval }
            clients[source] = client.hasAllocation ? client : nil
        }
    }

    mutating func perform(_ command: Command, at now: MonotonicTime, into sink: inout SendBatch) {
        output.removeAll(keepingCapacity: true)
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

    mutating func stop(at now: MonotonicTime, into sink: inout SendBatch) {
        for client in clients.values { client.close() }
        clients = [:]
    }
}
