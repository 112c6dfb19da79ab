import Foundation
import Net

/// Checks whether the kernel's settings and the process's limits suffice for many clients.
///
/// Each check reads a value of this machine and passes it to a `judge` function, which tests can call with any value.
enum MachineCheck {
    // MARK: Clock

    static func clock() -> Finding {
        judgeClock(isSynchronised: MachineTrial.isClockSynchronised, now: Date())
    }

    /// A wrong clock makes tokens and certificates invalid.
    /// - Parameter isSynchronised: nil if the kernel does not report it.
    static func judgeClock(isSynchronised: Bool?, now: Date) -> Finding {
        let time = now.formatted(Date.ISO8601FormatStyle())
        let remedy = "tokens and certificates depend on the clock; install systemd-timesyncd or chrony"
        switch isSynchronised {
        case true?: return .ok("clock", "\(time), synchronized over the network")
        case false?: return .warn("clock", "\(time), not synchronized", remedy: remedy)
        case nil:
            return .warn("clock", "\(time); cannot tell whether it is synchronized", remedy: remedy)
        }
    }

    // MARK: Socket buffers

    /// The size that the server requests for its sockets, in bytes.
    ///
    /// Without CAP_NET_ADMIN the kernel caps it at `rmem_max` and `wmem_max`.
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

    /// - Parameter limits: sysctls with their values; a value that cannot be read, as in some containers, is not
    ///   judged.
    static func judgeBuffers(_ limits: [(name: String, bytes: Int?)]) -> Finding {
        let small = limits.filter { $0.bytes.map { $0 < wantedBuffer } ?? false }
        guard !small.isEmpty else {
            return .ok("socket-buffers", "4 MB or more allowed, or limits unknown here")
        }
        let settings = small.map { "net.core.\($0.name)=\(wantedBuffer)" }.joined(separator: " ")
        let text = small.map { "net.core.\($0.name) is \($0.bytes ?? 0)" }.joined(separator: ", ")
        return .warn(
            "socket-buffers", text, remedy: "large audiences will lose packets; run: sysctl -w \(settings)")
    }

    // MARK: Open files

    /// Compares the limit on open files with the configured number of sessions.
    /// - Parameters:
    ///   - sessions: the configured limit, each session with a WebSocket in the worst case; nil for the default.
    ///   - process: the running server, whose limit counts; nil for this process, from which a server started here
    ///     would inherit it.
    static func openFiles(sessions: Int?, process: Int32?) -> Finding {
        judgeOpenFiles(limit: openFileLimit(of: process), sessions: sessions, isServers: process != nil)
    }

    /// The hard limit, which is the second number of the line; nil if it cannot be read.
    ///
    /// The server raises its soft limit to it when it starts.
    private static func openFileLimit(of process: Int32?) -> Int? {
        let limits = words(of: "Max open files", in: "limits", of: process)
        guard limits.count >= 2 else { return nil }
        return limits[1] == "unlimited" ? .max : Int(limits[1])
    }

    /// The words after a name in a file below `/proc`.
    /// - Parameter process: nil for this process.
    /// - Returns: empty if the file or the name is missing.
    /// - Source: proc_pid_limits(5), proc_pid_status(5).
    private static func words(of name: String, in file: String, of process: Int32?) -> [Substring] {
        let path = "/proc/\(process.map(String.init) ?? "self")/\(file)"
        let lines = (try? String(contentsOfFile: path, encoding: .utf8))?.split(separator: "\n") ?? []
        return lines.first { $0.hasPrefix(name) }?.dropFirst(name.count).split { $0 == " " || $0 == "\t" }
            ?? []
    }

    /// - Parameters:
    ///   - limit: nil if it cannot be read.
    ///   - isServers: whether it is the limit of a running server.
    static func judgeOpenFiles(limit: Int?, sessions: Int?, isServers: Bool) -> Finding {
        guard let limit else {
            return .warn(
                "open-files", "the limit cannot be read", remedy: "make sure that it is 65536 or more")
        }
        let owner = isServers ? "the running server" : "a server started here"
        let text = "\(owner) can open \(limit)"
        // A thousand more than sessions for sockets, files and connections without a session.
        let wanted = min(65_536, (sessions ?? 20_000) + 1_000)
        guard limit < wanted else { return .ok("open-files", text) }
        let remedy =
            "each open page needs one; set LimitNOFILE=\(wanted) or more for the service"
        return limit < 256
            ? .fail("open-files", text, remedy: remedy) : .warn("open-files", text, remedy: remedy)
    }

    // MARK: Priority

    /// Checks whether workers may run at a higher priority than other threads.
    /// - Parameter process: the running server; nil for this process, from which a server started here would inherit
    ///   it.
    static func workerPriority(process: Int32?) -> Finding {
        let limit = words(of: "Max nice priority", in: "limits", of: process).first.flatMap { Int($0) }
        let capabilities = words(of: "CapEff:", in: "status", of: process).first.flatMap {
            UInt64($0, radix: 16)
        }
        return judgePriority(niceLimit: limit, capabilities: capabilities)
    }

    /// - Parameters:
    ///   - niceLimit: `RLIMIT_NICE`, which is 20 minus the lowest niceness allowed; nil if it cannot be read.
    ///   - capabilities: the effective capabilities as bits.
    /// - Source: getrlimit(2), capabilities(7).
    static func judgePriority(niceLimit: Int?, capabilities: UInt64?) -> Finding {
        let subject = "worker-priority"
        let wanted = Int(WorkerConfiguration.wantedNiceness)
        // Bit 23 is CAP_SYS_NICE, which lifts the limit.
        if (niceLimit ?? 0) >= 20 - wanted || (capabilities ?? 0) & 1 << 23 != 0 {
            return .ok(subject, "packets have priority over other work on this machine")
        }
        // Not a warning: most machines do not allow it, and serve well.
        let text = "packets have the same priority as other work on this machine"
        return .ok(subject, "\(text); set LimitNICE=\(wanted) for the service to change that")
    }
}
