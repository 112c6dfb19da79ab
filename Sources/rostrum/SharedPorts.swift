import Base
import Crypto
import Gateway
import HTTP
import Net
import Node

/// Who may take connections of a TCP port that several share.
enum PortUse: String, Sendable, CaseIterable {
    case http, tcp
    case turnTLS = "turn-tls"
    case turnTCP = "turn-tcp"

    /// As the option is called.
    var option: String { "--\(rawValue)" }
}

extension Configuration {
    /// By whom each port is used that can be shared, also where one alone does.
    private var portUses: [(use: PortUse, address: TransportAddress)] {
        let wanted: [(PortUse, TransportAddress?)] = [
            (.http, http), (.tcp, tcp), (.turnTLS, turn.tls), (.turnTCP, turn.tcp),
        ]
        return wanted.compactMap { use, address in
            // What the system chooses is another one each time.
            address.flatMap { $0.port == 0 ? nil : (use, $0.over(.tcp)) }
        }
    }

    /// Who shares a TCP port with somebody, by the port.
    var sharedPorts: [(address: TransportAddress, uses: [PortUse])] {
        let groups = Dictionary(grouping: portUses, by: \.address)
        return groups.filter { $0.value.count > 1 }.map { ($0.key, $0.value.map(\.use)) }
            .sorted { "\($0.address)" < "\($1.address)" }
    }

    /// Refuses that a port is named twice which has only one owner.
    func checkPorts() throws(ConfigurationError) {
        let alone: [(String, TransportAddress?)] = [("admin", admin), ("rtmp", rtmp), ("rtmps", rtmps)]
        var owners = Dictionary(portUses.map { ($0.address, $0.use.option) }) { first, _ in first }
        for (option, address) in alone {
            guard let address = address?.over(.tcp), address.port != 0 else { continue }
            guard let other = owners.updateValue("--\(option)", forKey: address) else { continue }
            throw ConfigurationError(
                "\(other) and --\(option) both name \(address): --http, --tcp, --turn-tls and --turn-tcp may share "
                    + "a port, no others")
        }
    }
}

/// The TCP ports that several share, each of which is opened once.
struct SharedPorts: Sendable {
    struct Failure: Error, CustomStringConvertible {
        let description: String
    }

    private let ports: [(port: MixedPort, inboxes: [PortUse: ConnectionInbox], uses: [PortUse])]

    /// Opens the ports; nobody is served before `start`.
    /// - Parameter identity: of the certificate; nil where there is none.
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

    /// What a node gets of them.
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

    /// Whether one of them takes the connections of the HTTP server.
    var includeHTTP: Bool { ports.contains { $0.uses.contains(.http) } }

    /// Lets connections in, once all are there who serve them.
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

    /// By what TLS is ended from now on.
    func renew(_ identity: TLSIdentity) {
        for each in ports { each.port.renew(identity) }
    }

    func stop() {
        for each in ports { each.port.stop() }
    }

    /// For monitoring; nothing where no port is shared.
    var metrics: [Metric] { MixedPortCounters.metrics(of: ports.map(\.port.counters)) }

    /// For the log: who shares which port.
    var descriptions: [(address: TransportAddress, uses: String)] {
        ports.map { ($0.port.localAddress, $0.uses.map(\.rawValue).joined(separator: ",")) }
    }
}
