import Base
import Net
import Peer
import Wire

/// A node's TCP port for media, for clients whose network blocks UDP.
///
/// All workers share the port. The ufrag in a connection's first connectivity check names the worker that it belongs
/// to.
/// - Source: RFC 6544 §3 (passive candidates).
struct TCPEntrance: Sendable {
    private let listener: ConnectionListener
    /// The addresses in the candidates of every session.
    let advertised: [TransportAddress]

    /// Opens the port, or accepts connections from the configured inbox instead.
    init(at address: TransportAddress, of workers: [WorkerHandle], configuration: NodeConfiguration)
        throws(NetError)
    {
        let source = ConnectionSource(address, or: configuration.inboxes.iceTCP)
        // Called with the first frame of a connection; returning false closes the connection.
        listener = try ConnectionListener(from: source) { handover, check in
            guard let ufrag = STUNMessage.localUfrag(ofRequest: check.span),
                let worker = WorkerTag.worker(ofUfrag: ufrag), worker < workers.count
            else { return false }
            return workers[worker].adopt(handover)
        }
        let local = listener.localAddress
        advertised = configuration.advertised(for: local.ip).map {
            TransportAddress(ip: $0, port: local.port, transport: .tcp)
        }
    }

    var address: TransportAddress { listener.localAddress }
    var counters: ListenerCounters { listener.counters }

    func stop() {
        listener.stop()
    }
}

/// The two hexadecimal digits at the beginning of each of the server's ufrags, which name a session's worker.
///
/// They are not secret: knowing the worker of a session does not help an attacker. Two digits limit a node to 256
/// workers.
enum WorkerTag {
    static func text(_ worker: Int) -> String {
        let digits = String(worker & 0xFF, radix: 16)
        return digits.utf8.count == 1 ? "0" + digits : digits
    }

    /// - Returns: nil for a ufrag that is not one of the server's; the number may exceed that of the workers.
    static func worker(ofUfrag ufrag: String) -> Int? {
        // Checked first, because `UInt8` also accepts a sign.
        guard ufrag.count > 2, ufrag.prefix(2).allSatisfy(\.isHexDigit) else { return nil }
        return UInt8(ufrag.prefix(2), radix: 16).map(Int.init)
    }
}

extension ICECredentials {
    /// New credentials, with a ufrag that names the worker of their session.
    init(worker: Int, using random: inout some RandomNumberGenerator) {
        let fresh = ICECredentials(using: &random)
        self.init(ufrag: WorkerTag.text(worker) + fresh.ufrag, password: fresh.password)
    }
}
