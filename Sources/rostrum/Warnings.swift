import Base
import Gateway

/// A condition that may surprise an operator although the server runs.
struct Warning: Equatable, Sendable {
    /// The event of the log line.
    let event: String
    /// Why it matters, and what to do where that is not obvious.
    let reason: String
}

extension Configuration {
    /// Warnings to log once at the start.
    /// - Parameter announced: the addresses in the server's ICE candidates.
    func warnings(announced: [IPAddress]) -> [Warning] {
        var warnings: [Warning] = []
        // A reverse proxy on this machine, the usual place where TLS ends, connects to a loopback address.
        if tls == nil, !http.ip.isLoopback {
            warnings.append(
                Warning(
                    event: "no-tls", reason: "browsers allow cameras only on HTTPS pages and on localhost"))
        }
        if isDevelopment, !http.ip.isLoopback {
            warnings.append(
                Warning(event: "development", reason: "anyone on this machine can get any token"))
        }
        if transcoding == .on, confinement == .off {
            warnings.append(
                Warning(
                    event: "transcoder-unconfined",
                    reason:
                        "a malicious picture may reach whatever this server can, unless the kernel confines it"
                )
            )
        }
        if let admin, !admin.ip.isLoopback {
            warnings.append(
                Warning(
                    event: "admin-open", reason: "anyone who can reach \(admin) can read the server's metrics"
                ))
        }
        let open = iceServers.filter { $0.url.hasPrefix("turn") && $0.credential == nil }
        if let server = open.first, iceServerSecret == nil {
            warnings.append(
                Warning(
                    event: "turn-without-password",
                    reason:
                        "browsers use no TURN server without a password; give \(server.url),USER,PASSWORD "
                        + "or set --ice-server-secret"))
        }
        if announced.allSatisfy(\.isLoopback) {
            warnings.append(Warning(event: "only-loopback", reason: onlyLoopback))
        }
        return warnings
    }

    /// The command that prints a host's first link; nil in development, where tokens are handed out on request.
    var firstLink: String? {
        guard !isDevelopment else { return nil }
        // `HOST` where the address does not tell by which name clients reach the server.
        let host = http.ip.isUnspecified || http.ip.isLoopback ? "HOST" : http.description
        return "rostrum token --role host --stream NAME --link https://\(host)"
    }

    /// Why candidates with loopback addresses alone are not enough.
    ///
    /// Firefox gathers no loopback candidate, unless `media.peerconnection.ice.loopback` is set, and pairs none of its
    /// other candidates with a loopback address. Without a pair to check, its ICE fails before it sends a single
    /// packet.
    private var onlyLoopback: String {
        let browsers = "Firefox cannot connect to a loopback address, only Chromium can"
        guard !udp.ip.isUnspecified else {
            return "\(browsers); this machine has no other address"
        }
        let any = TransportAddress(ip: udp.ip.ipv4 == nil ? IPAddress(high: 0, low: 0) : .any, port: udp.port)
        return "\(browsers); set --udp \(any)"
    }
}
