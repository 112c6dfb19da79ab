import Base
import Crypto
import Foundation
import Gateway
import Glibc
import HTTP
import Net
import Node
import Transcoder

/// The program: picks a command, assembles the configuration, and runs the command.
///
/// Commands for operators end with one of three exit statuses. 0 means success. 2 means that the arguments, the
/// environment or the configuration file make no sense, so that another try fails as well. 1 means any other failure.
@main enum Rostrum {
    /// The version of this build, as `--version`, backups and metrics report it.
    static let version = "0.1.0"

    static func main() async {
        // A write to a connection that the peer has closed then fails with EPIPE instead of ending the process.
        signal(SIGPIPE, SIG_IGN)
        // A limit on file sizes (RLIMIT_FSIZE) then fails the one write with EFBIG, which the store reports like a full
        // disk, instead of ending the process.
        signal(SIGXFSZ, SIG_IGN)
        var arguments = Array(CommandLine.arguments.dropFirst())
        switch arguments.first {
        case "serve":
            arguments.removeFirst()
            let status = await serve(arguments)
            // `_exit` rather than `exit`: exit handlers of libraries would free state that other threads still release.
            // It does not flush C streams, so that is done here.
            fflush(nil)
            _exit(status)
        case "token":
            arguments.removeFirst()
            exit(token(arguments))
        case "config":
            arguments.removeFirst()
            exit(config(arguments))
        case "backup":
            arguments.removeFirst()
            exit(backup(arguments))
        case "restore":
            arguments.removeFirst()
            exit(restore(arguments))
        case "doctor":
            arguments.removeFirst()
            exit(await doctor(arguments))
        case "transcoder":
            // `serve` and `doctor` start this command as a child process; its arguments are not for operators.
            exit(TranscoderProcess.run(Array(arguments.dropFirst())))
        case "--help", "-h", "help":
            print(Help.full, terminator: "")
        case "--version", "version":
            print(BuildInfo.text, terminator: "")
        case let other:
            complain(other.map { "unknown command \($0)" } ?? "no command given")
            FileHandle.standardError.write(Data((Help.usage + "\n").utf8))
            exit(2)
        }
    }

    /// Runs the server until a signal ends it.
    ///
    /// A configuration error ends with 2, a failed start with 1, and an end by signal with 0.
    /// - Returns: the exit status.
    private static func serve(_ arguments: [String]) async -> CInt {
        let configuration: Configuration
        let flags: OptionValues
        do throws(ConfigurationError) {
            let requests: Set<String>
            (flags, requests) = try OptionValues.parse(arguments: arguments)
            if requests.contains("--help") {
                print(Help.full, terminator: "")
                return 0
            }
            if requests.contains("--version") {
                print(BuildInfo.text, terminator: "")
                return 0
            }
            configuration = try Self.configuration(flags)
            if requests.contains("--check-config") { return check(configuration) }
        } catch {
            complain(error.description)
            return 2
        }
        // From here on problems are log lines; only a failed start prints a message of its own.
        let writer = LogWriter(format: configuration.logFormat)
        let log = writer.log(level: configuration.logLevel)
        defer { writer.flush() }
        // In development a debugger may attach to the process.
        if !configuration.isDevelopment, let reason = Confinement.hideMemory() {
            log.warning("memory-not-hidden", ["reason": reason])
        }
        // Signals are caught before the start, so that one that arrives during it is handled after it and not lost.
        let signals = Signals()
        let manager = ServiceManager(environment: ProcessInfo.processInfo.environment)
        do {
            let server = try await Server.start(configuration, log: log)
            // Not `print`, which buffers its output when standard output is not a terminal. Scripts wait for this line.
            FileHandle.standardOutput.write(Data((server.readyLine + "\n").utf8))
            manager.notify(.ready(server.readyLine))
            // Three signs of life in each watchdog timeout: one late sign does not end the process.
            let watchdog = Watchdog(
                every: manager.watchdogTimeout.map { $0 / 3 }, of: server, telling: manager, log: log)
            // Flags stay those of the start; the environment and the file are read again.
            let reloading = Reloading(configuration, log: log) { () throws(ConfigurationError) in
                try Self.configuration(flags)
            }
            for await request in signals.requests {
                guard request == .reload else { break }
                manager.notify(.reloading)
                await reloading.reload(server)
                // systemd waits for READY=1 after RELOADING=1, also when the new configuration was refused.
                manager.notify(.ready(server.readyLine))
            }
            manager.notify(.stopping)
            log.info("stopping")
            watchdog.stop()
            await server.stop()
            log.info("stopped")
            return 0
        } catch {
            // The log lines of the failed start belong before the message.
            writer.flush()
            complain("\(error)")
            return 1
        }
    }

    /// Signs a token with the server's key, and prints the token or a link that contains it.
    /// - Returns: the exit status.
    private static func token(_ arguments: [String]) -> CInt {
        do {
            let (flags, requests) = try OptionValues.parse(arguments: arguments, options: TokenCommand.flags)
            if requests.contains("--help") {
                print(Help.token, terminator: "")
                return 0
            }
            print(
                try TokenCommand(flags, server: try values(flags)).make(
                    now: Int(Date().timeIntervalSince1970)))
            return 0
        } catch let error as ConfigurationError {
            complain(error.description)
            return 2
        } catch {
            complain("\(error)")
            return 1
        }
    }

    /// Makes a backup of the data that the server's configuration names.
    /// - Returns: the exit status.
    private static func backup(_ arguments: [String]) -> CInt {
        copy(Help.backup) { () throws in
            let (flags, requests) = try OptionValues.parse(
                arguments: arguments, options: BackupCommand.flags, operand: BackupCommand.operand)
            guard !requests.contains("--help") else { return nil }
            // Without the secret's own file: the backup copies the file itself, not the value that was read from it.
            let (server, file) = try told(flags)
            return try BackupCommand(flags, server: server, file: file).run(now: Moment.now().wall)
        }
    }

    /// Restores a backup into the data directory that the server's configuration names.
    /// - Returns: the exit status.
    private static func restore(_ arguments: [String]) -> CInt {
        copy(Help.restore) { () throws in
            let (flags, requests) = try OptionValues.parse(
                arguments: arguments, options: RestoreCommand.flags, operand: RestoreCommand.operand)
            guard !requests.contains("--help") else { return nil }
            return try RestoreCommand(flags, server: try told(flags).values).run()
        }
    }

    /// Runs a backup or restore, and prints its result.
    /// - Parameters:
    ///   - help: printed when `body` returns nil.
    ///   - body: does the work and returns its summary; nil if `--help` was given.
    /// - Returns: the exit status.
    private static func copy(_ help: String, _ body: () throws -> String?) -> CInt {
        do {
            print(try body() ?? help, terminator: "")
            return 0
        } catch let error as ConfigurationError {
            complain(error.description)
            return 2
        } catch {
            complain("\(error)")
            return 1
        }
    }

    /// Prints every option with its effective value and its source.
    /// - Returns: the exit status.
    private static func config(_ arguments: [String]) -> CInt {
        var arguments = arguments
        do throws(ConfigurationError) {
            guard arguments.first == "show" || ["--help", "-h"].contains(arguments.first) else {
                throw ConfigurationError("no command given: rostrum config show")
            }
            if arguments.first == "show" { arguments.removeFirst() }
            let (flags, requests) = try OptionValues.parse(arguments: arguments)
            if requests.contains("--help") {
                print(Help.full, terminator: "")
                return 0
            }
            print(try ConfigCommand(try values(flags), processors: processors).text, terminator: "")
            return 0
        } catch {
            complain(error.description)
            return 2
        }
    }

    /// Runs all checks of this machine and prints the findings.
    ///
    /// A configuration that makes no sense is one of the findings, so that the other checks still run. Only malformed
    /// flags end with 2.
    /// - Returns: the exit status: 1 if any check has failed.
    private static func doctor(_ arguments: [String]) async -> CInt {
        let flags: OptionValues
        let isJSON: Bool
        do throws(ConfigurationError) {
            let requests: Set<String>
            (flags, requests) = try OptionValues.parse(arguments: arguments, options: Doctor.options)
            if requests.contains("--help") {
                print(Help.doctor, terminator: "")
                return 0
            }
            isJSON = try flags.toggle("json") ?? false
        } catch {
            complain(error.description)
            return 2
        }
        let doctor: Doctor
        do throws(ConfigurationError) {
            doctor = Doctor(try values(flags), complaint: nil, processors: processors)
        } catch {
            doctor = Doctor(nil, complaint: error.description, processors: processors)
        }
        let findings = await doctor.examine()
        print(isJSON ? findings.json.text : findings.map(\.line).joined(separator: "\n"))
        return findings.hasFailed ? 1 : 0
    }

    /// The server's complete configuration, checked.
    private static func configuration(_ flags: OptionValues) throws(ConfigurationError) -> Configuration {
        try Configuration(try values(flags), processors: processors)
    }

    /// Options of all sources: flags override the environment, and the environment overrides the file.
    private static func values(_ flags: OptionValues) throws(ConfigurationError) -> OptionValues {
        try told(flags).values.withSecretFile()
    }

    /// The same, but without the secret that `secret-file` names.
    /// - Returns: the options, and the path of the configuration file that was read; nil if none was.
    private static func told(
        _ flags: OptionValues
    ) throws(ConfigurationError) -> (values: OptionValues, file: String?) {
        // Merged first, because flags and environment decide which file is read.
        let environment = try OptionValues.parse(environment: ProcessInfo.processInfo.environment)
        let values = environment.overridden(by: flags)
        guard let file = try ConfigurationFile.read(for: values) else { return (values, nil) }
        return (file.values.overridden(by: values), file.path)
    }

    /// How many processors are online; defaults for workers and encoders follow from it.
    private static var processors: Int { ProcessInfo.processInfo.activeProcessorCount }

    /// Checks the certificate and prints the effective configuration, without starting anything.
    /// - Returns: the exit status.
    private static func check(_ configuration: Configuration) -> CInt {
        if let reason = CertificateCheck.refusal(of: configuration.tls) {
            complain(reason)
            return 1
        }
        print(configuration.summary, terminator: "")
        return 0
    }

    /// Writes one line to standard error, for failures before there is a log or after it has ended.
    private static func complain(_ text: String) {
        FileHandle.standardError.write(Data("rostrum: \(text)\n".utf8))
    }
}
