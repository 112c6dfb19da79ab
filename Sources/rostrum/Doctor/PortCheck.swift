import Base
import Glibc
import Net
import Node

/// Checks whether each configured port is free, or in use by this server.
enum PortCheck {
    /// A port that the server opens.
    private struct Port {
        /// Of the finding; differs from the option for ICE-TCP.
        let subject: String
        /// The flag that chooses the port, without its dashes.
        let option: String
        let address: TransportAddress
    }

    /// Tries to open each port, and closes it again.
    static func examine(_ configuration: Configuration, _ server: RunningServer) -> [Finding] {
        let shared = Dictionary(configuration.sharedPorts.map { ($0.address, $0.uses) }) { first, _ in first }
        return ports(of: configuration).map { port in
            var finding = judge(
                port.subject, port.option, port.address, refusal: MachineTrial.refusal(of: port.address),
                server)
            // A shared port has one finding for each of its protocols.
            if let others = shared[port.address]?.filter({ $0.rawValue != port.option }) {
                finding.text += ", and shared with \(others.map(\.option).joined(separator: ", "))"
            }
            return finding
        }
    }

    /// Every port of the configuration, with one UDP port per worker if a range is configured.
    private static func ports(of configuration: Configuration) -> [Port] {
        var ports = [Port(subject: "http", option: "http", address: configuration.http.over(.tcp))]
        if let admin = configuration.admin {
            ports.append(Port(subject: "admin", option: "admin", address: admin.over(.tcp)))
        }
        for worker in 0..<(configuration.lastUDPPort == nil ? 1 : configuration.workers) {
            let first = configuration.udp
            // Port 0 is always free, and beyond 65535 there is no port.
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

    /// - Parameters:
    ///   - refusal: the `errno` with which the kernel refused the port; nil if the port is free.
    ///   - server: with a running server a port in use is expected, and a free one means other options.
    static func judge(
        _ subject: String, _ option: String, _ address: TransportAddress, refusal: Int32?,
        _ server: RunningServer
    ) -> Finding {
        let kind = address.transport == .udp ? "UDP" : "TCP"
        switch refusal {
        case nil where server.process == nil: return .ok(subject, "\(kind) \(address) is free")
        case nil:
            return .warn(
                subject, "\(kind) \(address) is free, although the server is running",
                remedy: "it was started with other options; to apply these: systemctl restart rostrum")
        case EADDRINUSE:
            if let process = server.process {
                return .ok(
                    subject, "\(kind) \(address) is in use by the running server (process \(process))")
            }
            let listing = address.transport == .udp ? "ss -lunp" : "ss -ltnp"
            return .fail(
                subject, "\(kind) \(address) is in use by another program",
                remedy:
                    "\(listing) 'sport = :\(address.port)' shows which; stop it, or set another port with --\(option)"
            )
        // The packaged service runs with CAP_NET_BIND_SERVICE, which this user may lack.
        case EACCES:
            return .warn(
                subject, "\(kind) \(address) was not checked: this user cannot use ports below 1024",
                remedy: "run this as root to check it; the packaged service can use them")
        case EADDRNOTAVAIL:
            return .fail(
                subject, "this machine has no address \(address.ip)",
                remedy: "set one that it has, or 0.0.0.0 for all, with --\(option)")
        case let code?:
            return .fail(
                subject, "\(kind) \(address): \(String(cString: strerror(code)))",
                remedy: "set another address with --\(option)")
        }
    }
}
