/// How the server is restarted, and how long that may take.
struct RestartOptions: Equatable, Sendable {
    /// Run by `/bin/sh`; nil if the user restarts the server by hand.
    var command: String?
    /// Path of the readiness check, which is answered with 200 when the server is ready.
    var ready = "/readyz"
    /// Seconds until the restart must be noticed and the server be ready again.
    var within = 120.0
    /// Seconds for all clients to return once the server is ready.
    var comeBack = 30.0

    /// The WHEP endpoint as Rostrum's pages use it: it creates a session even if the publisher is not back yet.
    static let whep = "/whep/{stream}?wait=60"
}

/// The options of `restart`.
extension OptionDefinition {
    static let restartOptions = [
        OptionDefinition(
            "--command", "COMMAND", .restart, for: [.restart],
            "command that restarts the server, such as 'systemctl restart rostrum', run once with /bin/sh, its "
                + "output on standard error (default: none; you are prompted to restart it)"
        ) { options, text throws(UsageError) in
            guard !text.isEmpty, text.utf8.count <= 4_096 else {
                throw UsageError("--command must be a command of 1 to 4096 bytes")
            }
            options.restart.command = text
        },
        OptionDefinition(
            "--ready", "PATH", .restart, for: [.restart],
            "path that answers 200 while the server is ready, requested 50 times per second (default /readyz)"
        ) { options, text in options.restart.ready = text },
        OptionDefinition(
            "--restart-timeout", "TIME", .restart, for: [.restart],
            "time for the restart to be noticed and the server to be ready again (default 2m)"
        ) { options, text throws(UsageError) in
            options.restart.within = try OptionValue.seconds(text, "--restart-timeout", 1...3_600)
        },
        OptionDefinition(
            "--return-timeout", "TIME", .restart, for: [.restart],
            "time after that for clients to have media again; if any do not, the run fails (default 30s)"
        ) { options, text throws(UsageError) in
            options.restart.comeBack = try OptionValue.seconds(text, "--return-timeout", 1...600)
        },
    ]
}
