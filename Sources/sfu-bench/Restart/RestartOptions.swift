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
            "restarts the server, run once by /bin/sh, its output to standard error, like 'systemctl restart rostrum' "
                + "(default: none, you are told when to restart it)"
        ) { options, text throws(UsageError) in
            guard !text.isEmpty, text.utf8.count <= 4_096 else {
                throw UsageError("--command wants a command of 4096 bytes at most")
            }
            options.restart.command = text
        },
        OptionDefinition(
            "--ready", "PATH", .restart, for: [.restart],
            "answered with 200 while the server is ready, and asked 50 times a second (default /readyz)"
        ) { options, text in options.restart.ready = text },
        OptionDefinition(
            "--restart-timeout", "TIME", .restart, for: [.restart],
            "until the restart is noticed and the server is ready again (default 2m)"
        ) { options, text throws(UsageError) in
            options.restart.within = try OptionValue.seconds(text, "--restart-timeout", 1...3_600)
        },
        OptionDefinition(
            "--return-timeout", "TIME", .restart, for: [.restart],
            "from then on: who has no media again after that is lost, and the run has failed (default 30s)"
        ) { options, text throws(UsageError) in
            options.restart.comeBack = try OptionValue.seconds(text, "--return-timeout", 1...600)
        },
    ]
}
