import Foundation
import Net

/// Whether the system is set up for many clients.
enum MachineCheck {
    // MARK: Clock

    static func clock() -> Finding {
        judgeClock(isSynchronised: MachineTrial.isClockSynchronised, now: Date())
    }

    static func judgeClock(isSynchronised: Bool?, now: Date) -> Finding {
        let time = now.formatted(Date.ISO8601FormatStyle())
        let remedy = "tokens and certificates depend on it; install systemd-timesyncd or chrony"
        switch isSynchronised {
        case true?: return .ok("clock", "\(time), kept right by the network")
        case false?: return .warn("clock", "\(time), and nothing keeps it right", remedy: remedy)
        case nil:
            return .warn("clock", "\(time); the kernel does not tell what keeps it right", remedy: remedy)
        }
    }

    // MARK: Socket buffers

    /// What the server asks for, in bytes.
    private static let wantedBuffer = 4 << 20

    static func socketBuffers() -> Finding {
        judgeBuffers(
            ["rmem_max", "wmem_max"].map { name in
                (
                    name,
                    (try? String(contentsOfFile: "/proc/sys/net/core/\(name)", encoding: .utf8))
                        .flatMap { Int($0.trimmingBlanks.prefix { $0 != "\n" }) }
                )
            })
    }

    static func judgeBuffers(_ limits: [(name: String, bytes: Int?)]) -> Finding {
        let small = limits.filter { $0.bytes.map { $0 < wantedBuffer } ?? false }
        guard !small.isEmpty else { return .ok("socket-buffers", "up to 4 MB or more, or not told here") }
        let settings = small.map { "net.core.\($0.name)=\(wantedBuffer)" }.joined(separator: " ")
        let text = small.map { "net.core.\($0.name) is \($0.bytes ?? 0)" }.joined(separator: ", ")
        return .warn("socket-buffers", text, remedy: "large audiences lose packets: sysctl -w \(settings)")
    }

    // MARK: Open files

    /// - Parameters:
    ///   - sessions: as many may be there at once, each with a WebSocket perhaps.
    ///   - process: the server's, whose limit counts; nil for this one's, which a server started here has too.
    static func openFiles(sessions: Int?, process: Int32?) -> Finding {
        judgeOpenFiles(limit: openFileLimit(of: process), sessions: sessions, isServers: process != nil)
    }

    private static func openFileLimit(of process: Int32?) -> Int? {
        let limits = words(of: "Max open files", in: "limits", of: process)
        guard limits.count >= 2 else { return nil }
        return limits[1] == "unlimited" ? .max : Int(limits[1])
    }

    /// What follows a name in a file of a process; nil for this one.
    /// - Source: proc_pid_limits(5), proc_pid_status(5).
    private static func words(of name: String, in file: String, of process: Int32?) -> [Substring] {
        let path = "/proc/\(process.map(String.init) ?? "self")/\(file)"
        let lines = (try? String(contentsOfFile: path, encoding: .utf8))?.split(separator: "\n") ?? []
        return lines.first { $0.hasPrefix(name) }?.dropFirst(name.count).split { $0 == " " || $0 == "\t" }
            ?? []
    }

    static func judgeOpenFiles(limit: Int?, sessions: Int?, isServers: Bool) -> Finding {
        guard let limit else {
            return .warn("open-files", "the limit is not told here", remedy: "see that it is 65536 or more")
        }
        let owner = isServers ? "the server that runs" : "a server started here"
        let text = "\(owner) may open \(limit)"
        let wanted = min(65_536, (sessions ?? 20_000) + 1_000)
        guard limit < wanted else { return .ok("open-files", text) }
        let remedy =
            "each page that is open takes one; raise it to \(wanted) or more: LimitNOFILE= of the service"
        return limit < 256
            ? .fail("open-files", text, remedy: remedy) : .warn("open-files", text, remedy: remedy)
    }

    // MARK: Priority

    /// - Parameter process: the server's; nil for this one's, as a server started here would have it.
    static func workerPriority(process: Int32?) -> Finding {
        let limit = words(of: "Max nice priority", in: "limits", of: process).first.flatMap { Int($0) }
        let capabilities = words(of: "CapEff:", in: "status", of: process).first.flatMap {
            UInt64($0, radix: 16)
        }
        return judgePriority(niceLimit: limit, capabilities: capabilities)
    }

    /// - Parameters:
    ///   - niceLimit: `RLIMIT_NICE`, 20 less the lowest niceness; nil where it is not told.
    ///   - capabilities: those in force, as bits.
    /// - Source: getrlimit(2), capabilities(7).
    static func judgePriority(niceLimit: Int?, capabilities: UInt64?) -> Finding {
        let subject = "worker-priority"
        let wanted = Int(WorkerConfiguration.wantedNiceness)
        if (niceLimit ?? 0) >= 20 - wanted || (capabilities ?? 0) & 1 << 23 != 0 {
            return .ok(subject, "packets go before what else the machine does")
        }
        // Most machines allow nobody to, and serve well.
        let text = "packets take turns with what else the machine does"
        return .ok(subject, "\(text), unless the service has LimitNICE=\(wanted)")
    }
}
