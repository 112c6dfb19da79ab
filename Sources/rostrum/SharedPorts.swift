import Base
import Crypto
import Gateway
import HTTP
import Net
import Node

/// The protocols that may share a TCP port.
enum PortUse: String, Sendable, CaseIterable {
    case http, tcp
    case turnTLS = "turn-tls"
    case turnTCP = "turn-tcp"

    /// The flag that names the port of this protocol.
    var option: String { "--\(rawValue)" }
}

extension Configuration {
    /// The ports of all protocols that can share one, including ports that are not shared.
    private var portUses: [(use: PortUse, address: TransportAddress)] {
        let wanted: [(PortUse, TransportAddress?)] = [
            (.http, http), (.tcp, tcp), (.turnTLS, turn.tls), (.turnTCP, turn.tcp),
        ]
        return wanted.compactMap { use, address in
            // With port 0 the system chooses a different port each time, so such addresses are never the same.
            address.flatMap { $0.port == 0 ? nil : (use, $0.over(.tcp)) }
        }
    }

    /// TCP ports that more than one protocol uses, ordered by their address.
    var sharedPorts: [(address: TransportAddress, uses: [PortUse])] {
        let groups = Dictionary(grouping: portUses, by: \.address)
        return groups.filter { $0.value.count > 1 }.map { ($0.key, $0.value.map(\.use)) }
            .sorted { "\($0.address)" < "\($1.address)" }
    }

    /// Refuses a TCP port that is named twice if one of its users cannot share it.
    ///
    /// SRT and the workers are not compared: they use UDP, for which there is `checkUDPPorts`.
    func checkPorts() throws(ConfigurationError) {
        let alone: [(String, TransportAddress?)] = [("admin", admin), ("rtmp", rtmp), ("rtmps", rtmps)]
        var owners = Dictionary(portUses.map { ($0.address, $0.use.option) }) { first, _ in first }
        var ports = portUses.map { (option: $0.use.option, address: $0.address) }
        for (option, address) in alone {
            guard let address = address?.over(.tcp), address.port != 0 else { continue }
            ports.append(("--\(option)", address))
            guard let other = owners.updateValue("--\(option)", forKey: address) else { continue }
            throw ConfigurationError(
                "\(other) and --\(option) both name \(address): only --http, --tcp, --turn-tls and --turn-tcp may "
                    + "share a port")
        }
        try Self.checkOverlaps(ports)
    }

    /// Refuses two addresses of which one includes the other: the kernel opens only the first of them.
    ///
    /// Each port by itself is free, so nothing else would name the second one's rival: the start would fail, after a
    /// `rostrum doctor` without complaint.
    private static func checkOverlaps(
        _ ports: [(option: String, address: TransportAddress)]
    ) throws(ConfigurationError) {
        for (index, port) in ports.enumerated() {
            let rival = ports.prefix(index).first {
                $0.address.includes(port.address) || port.address.includes($0.address)
            }
            guard let rival else { continue }
            let isWide = rival.address.includes(port.address)
            let (wide, narrow) = isWide ? (rival, port) : (port, rival)
            throw ConfigurationError(
                "\(wide.option) \(wide.address) and \(narrow.option) \(narrow.address) cannot both be open, "
                    + "because the first includes the second: write the same address for both where they may "
                    + "share a port, or give one of them another port")
        }
    }

    /// Refuses a UDP port that is named twice: unlike TCP ports, none is shared.
    func checkUDPPorts() throws(ConfigurationError) {
        let last = lastUDPPort == nil ? udp.port : udp.port + UInt16(workers - 1)
        let media = (udp.port...last).map { (TransportAddress(ip: udp.ip, port: $0), "--udp") }
        var owners = Dictionary(media) { first, _ in first }
        var ports = media.map { (option: $0.1, address: $0.0) }
        for (option, address) in [("srt", srt), ("turn-udp", turn.udp)] {
            guard let address, address.port != 0 else { continue }
            ports.append(("--\(option)", address))
            guard let other = owners.updateValue("--\(option)", forKey: address) else { continue }
            throw ConfigurationError(
                "\(other) and --\(option) both name \(address): each needs a UDP port of its own")
        }
        try Self.checkOverlaps(ports)
    }
}

extension TransportAddress {
    /// Whether this address stands for all of the machine's, and `other`, with the same port, is one of them.
    ///
    /// `::` includes IPv4, because all listeners accept both there.
    /// - Source: ip(7), ipv6(7) (IPV6_V6ONLY).
    fileprivate func includes(_ other: TransportAddress) -> Bool {
        guard port == other.port, port != 0, ip != other.ip, ip.isUnspecified else { return false }
        return ip.ipv4 == nil || other.ip.ipv4 != nil
    }
}

/// The TCP ports that several protocols share, each of which is opened once.
///
/// One port per protocol is the simpler setup, but networks that let only HTTPS through need TURN on port 443 as well.
struct SharedPorts: Sendable {
    /// A port could not be opened.
    struct Failure: Error, CustomStringConvertible {
        let description: String
    }

    /// Each port with the inboxes of its users; HTTP has none, because its server adopts connections directly.
    private let ports: [(port: MixedPort, inboxes: [PortUse: ConnectionInbox], uses: [PortUse])]

    /// Opens the ports; the kernel queues connections until `start`.
    /// - Parameter identity: ends TLS connections that do not name their protocol; nil if no certificate is configured.
    /// - Throws: if a port is in use, or may not be opened by this user.
    init(_ configuration: Configuration, identity: TLSIdentity?) throws(Failure) {
        var ports: [(MixedPort, [PortUse: ConnectionInbox], [PortUse])] = []
        for (address, uses) in configuration.sharedPorts {
            let port: MixedPort
            do throws(NetError) {
                port = try MixedPort(bind: address, identity: identity)
            } catch {
                let options = uses.map(\.option).joined(separator: ", ")
                throw Failure(description: "cannot open the port of \(options): \(error)")
            }
            let inboxes = uses.filter { $0 != .http }.map { ($0, ConnectionInbox(of: port.localAddress)) }
            ports.append((port, Dictionary(inboxes) { first, _ in first }, uses))
        }
        self.ports = ports
    }

    /// The inboxes from which the node takes its connections; nil for protocols that do not share a port.
    var inboxes: ConnectionInboxes {
        var inboxes = ConnectionInboxes()
        inboxes.iceTCP = inbox(of: .tcp)
        inboxes.turnTLS = inbox(of: .turnTLS)
        inboxes.turnTCP = inbox(of: .turnTCP)
        return inboxes
    }

    private func inbox(of use: PortUse) -> ConnectionInbox? {
        ports.lazy.compactMap { $0.inboxes[use] }.first
    }

    /// Whether the HTTP server gets its connections from a shared port.
    var includeHTTP: Bool { ports.contains { $0.uses.contains(.http) } }

    /// Begins to accept connections; call it once all servers that take them are running.
    /// - Parameters:
    ///   - http: the public listener.
    ///   - isSecure: whether HTTP is served by TLS.
    func start(_ http: HTTPServer?, isSecure: Bool) throws(NetError) {
        for (port, inboxes, uses) in ports {
            var routes = MixedPort.Routes()
            routes.iceTCP = inboxes[.tcp]
            routes.turnTLS = inboxes[.turnTLS]
            routes.turnTCP = inboxes[.turnTCP]
            if uses.contains(.http), let http {
                routes.isHTTPSecure = isSecure
                routes.http = { descriptor, client, isDecrypted in
                    http.adopt(descriptor, from: client, isDecrypted: isDecrypted)
                }
            }
            try port.start(routes)
        }
    }

    /// Ends TLS by another certificate from now on; connections that exist keep theirs.
    func renew(_ identity: TLSIdentity) {
        for each in ports { each.port.renew(identity) }
    }

    /// Closes the ports, and connections that were not handed over yet.
    func stop() {
        for each in ports { each.port.stop() }
    }

    /// Sums over all shared ports; empty if no port is shared.
    var metrics: [Metric] { MixedPortCounters.metrics(of: ports.map(\.port.counters)) }

    /// Which protocols share which port, for the log.
    var descriptions: [(address: TransportAddress, uses: String)] {
        ports.map { ($0.port.localAddress, $0.uses.map(\.rawValue).joined(separator: ",")) }
    }
}
