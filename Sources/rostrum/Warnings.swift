import Base

/// What may surprise an operator though the server runs: an event of the log, and why it matters.
struct Warning: Equatable, Sendable {
    let event: String
    let reason: String
}

extension Configuration {
    /// What to say once at the start.
    ///
    /// - Parameter announced: what the server's ICE candidates name.
    func warnings(announced: [IPAddress]) -> [Warning] {
        var warnings: [Warning] = []
        if tls == nil, !http.ip.isLoopback {
            warnings.append(
                Warning(
                    event: "no-tls", reason: "browsers open cameras only on HTTPS pages, or on localhost"))
        }
        if isDevelopment, !http.ip.isLoopback {
            warnings.append(
                Warning(event: "development", reason: "anyone on this machine gets any token"))
        }
        if transcoding == .on, confinement == .off {
            warnings.append(
                Warning(
                    event: "transcoder-unconfined",
                    reason:
                        "a hostile picture may reach what this server can, where the kernel confines nothing")
            )
        }
        if let admin, !admin.ip.isLoopback {
            warnings.append(
                Warning(
                    event: "admin-open", reason: "anyone who reaches \(admin) may read the server's numbers"))
        }
        if announced.allSatisfy(\.isLoopback) {
            warnings.append(Warning(event: "only-loopback", reason: onlyLoopback))
        }
        return warnings
    }

    /// How people come in, where no tokens are handed out.
    var firstLink: String? {
        guard !isDevelopment else { return nil }
        let host = http.ip.isUnspecified || http.ip.isLoopback ? "HOST" : http.description
        return "rostrum token --role host --stream NAME --link https://\(host)"
    }

    /// Firefox neither makes a loopback candidate, unless `media.peerconnection.ice.loopback` is set, nor pairs any
    /// other one of its own with a loopback address: with no pair to check its ICE fails without a single packet.
    private var onlyLoopback: String {
        let browsers = "Firefox connects to no loopback address, only Chromium does"
        guard !udp.ip.isUnspecified else {
            return "\(browsers); this machine has no other address that is up"
        }
        let any = TransportAddress(ip: udp.ip.ipv4 == nil ? IPAddress(high: 0, low: 0) : .any, port: udp.port)
        return "\(browsers); give --udp \(any)"
    }
}
