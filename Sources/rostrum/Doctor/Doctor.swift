import Base
import Foundation

/// `rostrum doctor`: checks everything that a server on this machine needs, and says what is wrong and what to do.
///
/// May run beside a server. It changes nothing, apart from a file of its own in the data directory that it removes
/// again.
struct Doctor: Sendable {
    /// The server's own options, and one for the form of the output.
    static let options =
        Option.all + [
            Option("json", .toggle, "", "Print one JSON object instead of lines.")
        ]

    /// Nil if the options make no sense; `complaint` is the reason then.
    let configuration: Configuration?
    let complaint: String?

    /// Never fails: a configuration that makes no sense becomes a finding.
    /// - Parameters:
    ///   - values: nil if the options could not even be read.
    ///   - complaint: why they could not be read.
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

    /// Runs all checks.
    /// - Returns: findings in the order in which problems should be solved.
    func examine() async -> [Finding] {
        guard let configuration else {
            let problem = Finding.fail(
                "config", complaint ?? "cannot be read", remedy: "fix this first; other checks depend on it")
            // Checks of the machine need no configuration.
            return [problem] + machine(sessions: nil)
        }
        let server = RunningServer(dataDirectory: configuration.dataDirectory)
        var findings = [
            Finding.ok("config", "valid; `rostrum config show` prints each value"),
            SecretCheck.examine(configuration.key, file: configuration.secretFile),
        ]
        findings += CertificateCheck.examine(configuration, now: Int(Date().timeIntervalSince1970))
        findings += PortCheck.examine(configuration, server)
        findings.append(AddressCheck.examine(configuration))
        findings += machine(sessions: configuration.maximumSessions, of: server)
        findings += DiskCheck.examine(configuration.dataDirectory)
        findings += await TranscoderCheck.examine(configuration)
        return findings
    }

    /// Checks of the kernel's settings and limits.
    /// - Parameter sessions: the configured limit; nil for the default.
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

/// The server that already runs on this data, if one does.
///
/// With one, a port in use is no problem, and limits are those of its process.
struct RunningServer: Equatable, Sendable {
    /// Its process ID; nil if no server runs on this data.
    let process: Int32?

    /// - Parameter dataDirectory: contains the lock file that names the process; nil if nothing is kept, so no server
    ///   can be found.
    init(dataDirectory: String?) {
        process = dataDirectory.flatMap(Self.holder)
    }

    /// For tests.
    init(process: Int32?) {
        self.process = process
    }

    /// The process that the lock file names, if it is a server.
    ///
    /// Only taking the lock would show whether it is held, and that would disturb a server that starts. So the process
    /// must exist under the program's name: the file outlives its server, and process IDs are reused.
    private static func holder(of directory: String) -> Int32? {
        guard let text = try? String(contentsOfFile: directory + "/rostrum.lock", encoding: .utf8),
            let process = Int32(text.trimmingBlanks.prefix { $0 != "\n" }), process != getpid(),
            let name = try? String(contentsOfFile: "/proc/\(process)/comm", encoding: .utf8),
            name.hasPrefix("rostrum")
        else { return nil }
        return process
    }
}
