import Base
import Net
import Peer
import Wire

/// A node's TCP port for media, for clients whose network blocks UDP.
///
/// One port for all workers; which one a connection belongs to stands in the ufrag of its first connectivity check.
/// - Source: RFC 6544 §3 (passive candidates).
struct TCPEntrance: Sendable {
    private let listener: ConnectionListener
    /// What candidates say.
    let advertised: [TransportAddress]

    /// Opens the port.
    init(at address: TransportAddress, of workers: [WorkerHandle], configuration: NodeConfiguration)
        throws(NetError)
    {
        let source = ConnectionSource(address, or: configuration.inboxes.iceTCP)
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

/// The two characters in front of each of our ufrags, which name a session's worker.
///
/// No secret: which of a few threads it is helps nobody.
enum WorkerTag {
    static func text(_ worker: Int) -> String {
        let digits = String(worker & 0xFF, radix: 16)
        return digits.utf8.count == 1 ? "0" + digits : digits
    }

    static func worker(ofUfrag ufrag: String) -> Int? {
        // `UInt8` also takes signs.
        guard ufrag.count > 2, ufrag.prefix(2).allSatisfy(\.isHexDigit) else { return nil }
        return UInt8(ufrag.prefix(2), radix: 16).map(Int.init)
    }
}

extension ICECredentials {
    /// Fresh ones whose ufrag names the worker of their session.
    init(worker: Int, using random: inout some RandomNumberGenerator) {
        let fresh = ICECredentials(using: &random)
        self.init(ufrag: WorkerTag.text(worker) + fresh.ufrag, password: fresh.password)
    }
}
