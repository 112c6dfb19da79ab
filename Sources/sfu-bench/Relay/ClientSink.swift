import Base
import Net
import Peer
import TURN

/// Sends a client's datagrams, directly or through a relay.
struct ClientSink: DatagramSink {
    private var direct: DirectSink
    /// Nil for a client that reaches the server directly.
    var relay: TURNClientAgent?

    init(_ direct: DirectSink, relay: TURNClientAgent?) {
        self.direct = direct
        self.relay = relay
    }

    /// Sends a datagram to the server.
    ///
    /// Through a relay that has no address yet it is dropped: connectivity checks and handshakes are repeated anyway.
    mutating func append<Failure: Error>(
        to destination: TransportAddress, capacity: Int,
        _ write: (inout MutableSpan<UInt8>) throws(Failure) -> Int
    ) throws(Failure) {
        guard let relay else { return try direct.append(to: destination, capacity: capacity, write) }
        // The datagram is written to memory first, because the relay's header precedes it.
        var memory = [UInt8](repeating: 0, count: capacity)
        var span = memory.mutableSpan
        let length = try write(&span)
        guard (1...max(capacity, 1)).contains(length),
            let wrapped = relay.wrapped(memory.span.extracting(first: length))
        else { return }
        direct.append(wrapped, to: relay.relay.address)
    }

    /// Sends the messages of the client to the relay itself, such as allocations and refreshes.
    mutating func sayToRelay() {
        guard let address = relay?.relay.address else { return }
        for message in relay?.takeMessages() ?? [] { direct.append(message, to: address) }
    }
}
