import Base
import Foundation

/// `rostrum doctor`: looks at everything that a server here needs, and says what is wrong and what to do.
///
/// Works beside a server that runs, and changes nothing.
struct Doctor: Sendable {
    /// Beside the server's own options.
    static let options =
        Option.all + [
            Option("json", .toggle, "", "Print one JSON object instead of lines.")
        ]

    /// Nil where it makes no sense, for the reason given.
    let configuration: Configuration?
    let complaint: String?

    /// - Parameter values: nil where they could not even be read.
    init(_ values: OptionValues?, complaint: String?, processors: Int) {
        guard let values else {
            configuration = nil
            self.complaint = complaint
            return
        }
        do throws(ConfigurationError) {
            configuration = try Configuration(values, processors: processors)
            self.complaint = nil
        } catch {
            configuration = nil
            self.complaint = error.description
        }
    }

    /// In the order in which things should be mended.
    func examine() async -> [Finding] {
        guard let configuration else {
            let problem = Finding.fail(
                "config", complaint ?? "it cannot be read", remedy: "the other checks need a configuration")
            return [problem] + machine(sessions: nil)
        }
        let server = RunningServer(dataDirectory: configuration.dataDirectory)
        var findings = [
            Finding.ok("config", "it makes sense; `rostrum config show` tells each value"),
            SecretCheck.examine(configuration.key, file: configuration.secretFile),
        ]
        findings += CertificateCheck.examine(configuration, now: Int(Date().timeIntervalSince1970))
        findings += PortCheck.examine(configuration, server)
        findings.append(AddressCheck.examine(configuration))
        findings += machine(sessions: configuration.maximumSessions, of: server)
        findings += DiskCheck.examine(configuration.dataDirectory, isInUse: server.process != nil)
        findings += await TranscoderCheck.examine(configuration)
        return findings
    }

    private func machine(sessions: Int?, of server: RunningServer = RunningServer(dataDirectory: nil))
        -> [Finding]
    {
        [
            MachineCheck.clock(), MachineCheck.socketBuffers(),
            MachineCheck.openFiles(sessions: sessions, process: server.process),
            MachineCheck.workerPriority(process: server.process),
        ]
    }
}

/// The server that runs here already, if one does.
struct RunningServer: Equatable, Sendable {
    /// Nil if none runs on this data.
    let process: Int32?

    /// - Parameter dataDirectory: whose lock names the process; nil where nothing is kept.
    init(dataDirectory: String?) {
        process = dataDirectory.flatMap(Self.holder)
    }

    init(process: Int32?) {
        self.process = process
    }

    /// Nobody knows whether a lock is held who does not take it: the process that it names must be the program.
    private static func holder(of directory: String) -> Int32? {
        guard let text = try? String(contentsOfFile: directory + "/rostrum.lock", encoding: .utf8),
            let process = Int32(text.trimmingBlanks.prefix { $0 != "\n" }), process != getpid(),
            let name = try? String(contentsOfFile: "/proc/\(process)/comm", encoding: .utf8),
            name.hasPrefix("rostrum")
        else { return nil }
        return process
    }
}
