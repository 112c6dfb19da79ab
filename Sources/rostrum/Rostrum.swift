import Base
import Crypto
import Foundation
import Gateway
import Glibc
import HTTP
import Net
import Node
import Transcoder

/// The program: reads what it is told, and runs the server until it is told to end.
@main enum Rostrum {
    static let version = "0.1.0"

    static func main() async {
        signal(SIGPIPE, SIG_IGN)
        // A limit on the size of files is an error of the store, not the end of everything.
        signal(SIGXFSZ, SIG_IGN)
        var arguments = Array(CommandLine.arguments.dropFirst())
        switch arguments.first {
        case "serve":
            arguments.removeFirst()
            let status = await serve(arguments)
            // Not exit: what libraries do at the end would take away what other threads are still letting go of.
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
            // Started by `serve` and by nobody else.
            exit(TranscoderProcess.run(Array(arguments.dropFirst())))
        case "--help", "-h", "help":
            print(Help.full, terminator: "")
        case "--version", "version":
            print(BuildInfo.text, terminator: "")
        case let other:
            complain(other.map { "there is no command \($0)" } ?? "say what to do")
            FileHandle.standardError.write(Data((Help.usage + "\n").utf8))
            exit(2)
        }
    }

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
        let writer = LogWriter(format: configuration.logFormat)
        let log = writer.log(level: configuration.logLevel)
        defer { writer.flush() }
        // A debugger may look at what is tried out.
        if !configuration.isDevelopment, let reason = Confinement.hideMemory() {
            log.warning("memory-not-hidden", ["reason": reason])
        }
        let signals = Signals()
        let manager = ServiceManager(environment: ProcessInfo.processInfo.environment)
        do {
            let server = try await Server.start(configuration, log: log)
            // Not print: it keeps lines back when nobody looks at a terminal.
            FileHandle.standardOutput.write(Data((server.readyLine + "\n").utf8))
            manager.notify(.ready(server.readyLine))
            // Three signs in each timeout.
            let watchdog = Watchdog(
                every: manager.watchdogTimeout.map { $0 / 3 }, of: server, telling: manager, log: log)
            let reloading = Reloading(configuration, log: log) { () throws(ConfigurationError) in
                try Self.configuration(flags)
            }
            for await request in signals.requests {
                guard request == .reload else { break }
                manager.notify(.reloading)
                await reloading.reload(server)
                manager.notify(.ready(server.readyLine))
            }
            manager.notify(.stopping)
            log.info("stopping")
            watchdog.stop()
            await server.stop()
            log.info("stopped")
            return 0
        } catch {
            writer.flush()
            complain("\(error)")
            return 1
        }
    }

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

    /// - Returns: the exit status.
    private static func backup(_ arguments: [String]) -> CInt {
        copy(Help.backup) { () throws in
            let (flags, requests) = try OptionValues.parse(
                arguments: arguments, options: BackupCommand.flags, operand: BackupCommand.operand)
            guard !requests.contains("--help") else { return nil }
            let (server, file) = try told(flags)
            return try BackupCommand(flags, server: server, file: file).run(now: Moment.now().wall)
        }
    }

    /// - Returns: the exit status.
    private static func restore(_ arguments: [String]) -> CInt {
        copy(Help.restore) { () throws in
            let (flags, requests) = try OptionValues.parse(
                arguments: arguments, options: RestoreCommand.flags, operand: RestoreCommand.operand)
            guard !requests.contains("--help") else { return nil }
            return try RestoreCommand(flags, server: try told(flags).values).run()
        }
    }

    /// - Parameter body: does it, and says what was done; nil where help is wanted.
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

    /// - Returns: the exit status.
    private static func config(_ arguments: [String]) -> CInt {
        var arguments = arguments
        do throws(ConfigurationError) {
            guard arguments.first == "show" || ["--help", "-h"].contains(arguments.first) else {
                throw ConfigurationError("say what to do with the configuration: rostrum config show")
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

    /// - Returns: the exit status.
    private static func doctor(_ arguments: [String]) async -> CInt {
        let flags: OptionValues
        do throws(ConfigurationError) {
            let requests: Set<String>
            (flags, requests) = try OptionValues.parse(arguments: arguments, options: Doctor.options)
            if requests.contains("--help") {
                print(Help.doctor, terminator: "")
                return 0
            }
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
        let isJSON = flags["json"]?.texts.first == "true"
        print(isJSON ? findings.json.text : findings.map(\.line).joined(separator: "\n"))
        return findings.hasFailed ? 1 : 0
    }

    private static func configuration(_ flags: OptionValues) throws(ConfigurationError) -> Configuration {
        try Configuration(try values(flags), processors: processors)
    }

    /// Flags over the environment, and that over the file.
    private static func values(_ flags: OptionValues) throws(ConfigurationError) -> OptionValues {
        try told(flags).values.withSecretFile()
    }

    /// Without the secret, which may lie in a file of its own.
    /// - Returns: also the file that was read; nil for none.
    private static func told(
        _ flags: OptionValues
    ) throws(ConfigurationError) -> (values: OptionValues, file: String?) {
        let environment = try OptionValues.parse(environment: ProcessInfo.processInfo.environment)
        let values = environment.overridden(by: flags)
        guard let file = try ConfigurationFile.read(for: values) else { return (values, nil) }
        return (file.values.overridden(by: values), file.path)
    }

    private static var processors: Int { ProcessInfo.processInfo.activeProcessorCount }

    /// Looks at what can be looked at without starting.
    private static func check(_ configuration: Configuration) -> CInt {
        for path in [configuration.tls?.certificate, configuration.tls?.key].compactMap({ $0 })
        where access(path, R_OK) != 0 {
            complain("cannot read \(path): \(String(cString: strerror(errno)))")
            return 1
        }
        print(configuration.summary, terminator: "")
        return 0
    }

    private static func complain(_ text: String) {
        FileHandle.standardError.write(Data("rostrum: \(text)\n".utf8))
    }
}
