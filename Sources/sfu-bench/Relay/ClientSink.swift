import Base
import Net
import Peer
import TURN

/// Where a client's datagrams go: to the server, or to it through a relay.
struct ClientSink: DatagramSink {
    private var direct: DirectSink
    /// Nil for who goes to the server itself.
    var relay: TURNClientAgent?

    init(_ direct: DirectSink, relay: TURNClientAgent?) {
        self.direct = direct
        self.relay = relay
    }

    /// What comes before the relay has an address is left out: checks and handshakes are repeated.
    mutating func append<Failure: Error>(
        to destination: TransportAddress, capacity: Int,
        _ write: (inout MutableSpan<UInt8>) throws(Failure) -> Int
    ) throws(Failure) {
        guard let relay else { return try direct.append(to: destination, capacity: capacity, write) }
        var memory = [UInt8](repeating: 0, count: capacity)
        var span = memory.mutableSpan
        let length = try write(&span)
        guard (1...max(capacity, 1)).contains(length),
            let wrapped = relay.wrapped(memory.span.extracting(first: length))
        else { return }
        direct.append(wrapped, to: relay.relay.address)
    }

    /// What the client says to its relay itself.
    mutating func sayToRelay() {
        guard let address = relay?.relay.address else { return }
        for message in relay?.takeMessages() ?? [] { direct.append(message, to: address) }
    }
}
