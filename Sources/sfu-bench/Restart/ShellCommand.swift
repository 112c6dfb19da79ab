import Foundation

/// The operator's command, run once by `/bin/sh`.
///
/// It has its own process group and the default signal dispositions. What the command starts may outlive this tool, and
/// must not inherit that SIGTERM is ignored. Its output goes to standard error, because standard output may be the
/// report. It is never killed: it may be the server itself.
struct ShellCommand {
    /// Also the id of its process group.
    let process: pid_t
    /// Like a shell's `$?`: the exit status, or 128 plus the number of the signal that ended it; nil while it runs.
    private(set) var status: Int?

    /// Signals that this process or its parent may ignore, which a child would inherit.
    private static let signals = [SIGHUP, SIGINT, SIGQUIT, SIGPIPE, SIGTERM, SIGCHLD]

    /// - Throws: `RunFailure` if the shell cannot be started.
    init(_ text: String) throws {
        var attributes = posix_spawnattr_t()
        var actions = posix_spawn_file_actions_t()
        posix_spawnattr_init(&attributes)
        posix_spawn_file_actions_init(&actions)
        defer {
            posix_spawnattr_destroy(&attributes)
            posix_spawn_file_actions_destroy(&actions)
        }
        var (usual, none) = (sigset_t(), sigset_t())
        sigemptyset(&usual)
        sigemptyset(&none)
        for signal in Self.signals { sigaddset(&usual, signal) }
        posix_spawnattr_setsigdefault(&attributes, &usual)
        posix_spawnattr_setsigmask(&attributes, &none)
        posix_spawnattr_setpgroup(&attributes, 0)
        let flags = POSIX_SPAWN_SETSIGDEF | POSIX_SPAWN_SETSIGMASK | POSIX_SPAWN_SETPGROUP
        posix_spawnattr_setflags(&attributes, Int16(flags))
        // The command must not read from the terminal.
        posix_spawn_file_actions_addopen(&actions, STDIN_FILENO, "/dev/null", O_RDONLY, 0)
        posix_spawn_file_actions_adddup2(&actions, STDERR_FILENO, STDOUT_FILENO)
        // The command must not inherit this tool's connections. A descriptor that is closed by then does no harm.
        for name in (try? FileManager.default.contentsOfDirectory(atPath: "/proc/self/fd")) ?? [] {
            guard let file = Int32(name), file > STDERR_FILENO else { continue }
            posix_spawn_file_actions_addclose(&actions, file)
        }
        var arguments: [UnsafeMutablePointer<CChar>?] = ["/bin/sh", "-c", text].map { (word: String) in
            strdup(word)
        }
        defer { for argument in arguments { free(argument) } }
        arguments.append(nil)
        var process = pid_t()
        let error = posix_spawn(&process, "/bin/sh", &actions, &attributes, &arguments, environ)
        guard error == 0 else {
            throw RunFailure(description: "cannot run /bin/sh: \(String(cString: strerror(error)))")
        }
        self.process = process
    }

    /// Checks, without waiting, whether it has ended.
    mutating func look() {
        guard status == nil else { return }
        var raw: Int32 = 0
        guard waitpid(process, &raw, WNOHANG) == process else { return }
        status = Int(raw & 0x7F == 0 ? (raw >> 8) & 0xFF : 128 + raw & 0x7F)
    }
}
