import Base

/// Reads the configuration again on request, and applies the options that can change while the server runs.
struct Reloading {
    /// Options that a reload applies; all others need a restart.
    static let changeable: Set<String> = [
        "max-sessions", "max-sessions-per-address", "max-compositions", "max-renditions", "max-conversions",
        "tls-certificate", "tls-key", "key-id", "secret", "secret-file",
    ]

    /// The configuration that the server was started with; what differs from it needs a restart.
    private let current: Configuration
    private let log: Log
    /// Reads flags, environment and file again.
    private let read: () throws(ConfigurationError) -> Configuration

    init(_ current: Configuration, log: Log, read: @escaping () throws(ConfigurationError) -> Configuration) {
        self.current = current
        self.log = log
        self.read = read
    }

    /// Applies the configuration as it is now, or nothing if it makes no sense.
    ///
    /// Options that need a restart are named in the log, so that an operator does not wait for their effect.
    func reload(_ server: Server) async {
        let next: Configuration
        do throws(ConfigurationError) {
            next = try read()
        } catch {
            log.error("reload-refused", ["reason": error])
            return
        }
        // Keys and limits have been applied even if the new certificate could not be read.
        if let reason = await server.reload(next) { log.error("certificate-kept", ["reason": reason]) }
        var waiting = Self.settings(of: next, unlike: current).filter { !Self.changeable.contains($0) }
        // A listener speaks TLS from its start or never, so TLS cannot be turned on or off by a reload.
        if (next.tls == nil) != (current.tls == nil) { waiting.append("tls-certificate") }
        if waiting.isEmpty {
            log.info("reloaded")
        } else {
            log.warning("reloaded", ["needs-restart": waiting.joined(separator: ",")])
        }
    }

    /// Names of the settings that differ.
    static func settings(of next: Configuration, unlike current: Configuration) -> [String] {
        var names = zip(next.settings, current.settings).filter { $0 != $1 }.map(\.0.name)
        // Their values are shown as placeholders, which are equal.
        let secrets = [
            ("secret", !next.key.isSame(as: current.key)),
            // Shown without what may be a secret in them.
            ("webhook", next.webhooks?.urls != current.webhooks?.urls),
            ("review-webhook", next.webhooks?.reviewer != current.webhooks?.reviewer),
            ("webhook-secret", next.webhooks?.secret.exposed != current.webhooks?.secret.exposed),
            ("srt-passphrase", next.srtPassphrase?.exposed != current.srtPassphrase?.exposed),
            ("ice-server", next.iceServers != current.iceServers),
            ("ice-server-secret", next.iceServerSecret?.exposed != current.iceServerSecret?.exposed),
        ]
        for (name, hasChanged) in secrets where hasChanged && !names.contains(name) { names.append(name) }
        return names
    }
}
