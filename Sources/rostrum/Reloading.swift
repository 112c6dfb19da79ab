import Base

/// Reads the configuration anew when it is told to, and takes over what can change while the server runs.
struct Reloading {
    /// What can change; all else waits for the next start.
    static let changeable: Set<String> = [
        "max-sessions", "max-sessions-per-address", "max-compositions", "max-renditions", "max-conversions",
        "tls-certificate", "tls-key", "key-id", "secret", "secret-file",
    ]

    /// With which the server was started.
    private let current: Configuration
    private let log: Log
    private let read: () throws(ConfigurationError) -> Configuration

    init(_ current: Configuration, log: Log, read: @escaping () throws(ConfigurationError) -> Configuration) {
        self.current = current
        self.log = log
        self.read = read
    }

    /// Where something makes no sense, all stays as it was.
    func reload(_ server: Server) async {
        let next: Configuration
        do throws(ConfigurationError) {
            next = try read()
        } catch {
            log.error("reload-refused", ["reason": error])
            return
        }
        if let reason = await server.reload(next) { log.error("certificate-kept", ["reason": reason]) }
        var waiting = Self.settings(of: next, unlike: current).filter { !Self.changeable.contains($0) }
        // A listener speaks TLS from its start or never.
        if (next.tls == nil) != (current.tls == nil) { waiting.append("tls-certificate") }
        if waiting.isEmpty {
            log.info("reloaded")
        } else {
            log.warning("reloaded", ["for-these-start-it-again": waiting.joined(separator: ",")])
        }
    }

    /// Names of those that differ.
    static func settings(of next: Configuration, unlike current: Configuration) -> [String] {
        var names = zip(next.settings, current.settings).filter { $0 != $1 }.map(\.0.name)
        // Which show the same.
        if !next.key.isSame(as: current.key), !names.contains("secret") { names.append("secret") }
        if next.webhooks?.secret.exposed != current.webhooks?.secret.exposed,
            !names.contains("webhook-secret")
        {
            names.append("webhook-secret")
        }
        return names
    }
}
