import Base
import Glibc
import Net
import Node

/// Whether the ports are the server's, or free for it.
enum PortCheck {
    private struct Port {
        let subject: String
        let option: String
        let address: TransportAddress
    }

    static func examine(_ configuration: Configuration, _ server: RunningServer) -> [Finding] {
        let shared = Dictionary(configuration.sharedPorts.map { ($0.address, $0.uses) }) { first, _ in first }
        return ports(of: configuration).map { port in
            var finding = judge(
                port.subject, port.option, port.address, refusal: MachineTrial.refusal(of: port.address),
                server)
            if let others = shared[port.address]?.filter({ $0.rawValue != port.option }) {
                finding.text += ", and shared with \(others.map(\.option).joined(separator: ", "))"
            }
            return finding
        }
    }

    private static func ports(of configuration: Configuration) -> [Port] {
        var ports = [Port(subject: "http", option: "http", address: configuration.http.over(.tcp))]
        if let admin = configuration.admin {
            ports.append(Port(subject: "admin", option: "admin", address: admin.over(.tcp)))
        }
        for worker in 0..<(configuration.lastUDPPort == nil ? 1 : configuration.workers) {
            let first = configuration.udp
            guard first.port != 0, let port = UInt16(exactly: Int(first.port) + worker) else { continue }
            ports.append(
                Port(
                    subject: "udp", option: "udp",
                    address: TransportAddress(ip: first.ip, port: port, transport: .udp)))
        }
        if let tcp = configuration.tcp {
            ports.append(Port(subject: "ice-tcp", option: "tcp", address: tcp.over(.tcp)))
        }
        let others: [(String, TransportAddress?)] = [
            ("turn-tls", configuration.turn.tls?.over(.tcp)),
            ("turn-tcp", configuration.turn.tcp?.over(.tcp)),
            ("turn-udp", configuration.turn.udp),
            ("rtmp", configuration.rtmp?.over(.tcp)), ("rtmps", configuration.rtmps?.over(.tcp)),
            ("srt", configuration.srt?.over(.udp)),
        ]
        for (name, address) in others {
            if let address { ports.append(Port(subject: name, option: name, address: address)) }
        }
        return ports
    }

    /// - Parameter refusal: why the port could not be taken.
    static func judge(
        _ subject: String, _ option: String, _ address: TransportAddress, refusal: Int32?,
        _ server: RunningServer
    ) -> Finding {
        let kind = address.transport == .udp ? "UDP" : "TCP"
        switch refusal {
        case nil where server.process == nil: return .ok(subject, "\(kind) \(address) is free")
        case nil:
            return .warn(
                subject, "\(kind) \(address) is free, though a server runs here",
                remedy: "it was started with other options; restart it: systemctl restart rostrum")
        case EADDRINUSE:
            if let process = server.process {
                return .ok(
                    subject, "\(kind) \(address) is in use, by the server that runs (process \(process))")
            }
            let listing = address.transport == .udp ? "ss -lunp" : "ss -ltnp"
            return .fail(
                subject, "\(kind) \(address) is in use by another program",
                remedy:
                    "\(listing) 'sport = :\(address.port)' names it; end it, or choose another by --\(option)"
            )
        case EACCES:
            return .warn(
                subject, "\(kind) \(address) could not be tried: this user may not use ports below 1024",
                remedy: "run this as root; the packaged service may use them")
        case EADDRNOTAVAIL:
            return .fail(
                subject, "this machine has no address \(address.ip)",
                remedy: "give one of its own, or 0.0.0.0 for all, by --\(option)")
        case let code?:
            return .fail(
                subject, "\(kind) \(address): \(String(cString: strerror(code)))",
                remedy: "choose another by --\(option)")
        }
    }
}
