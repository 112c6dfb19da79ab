import Foundation

/// Reads what `/proc` reports about processes and sockets.
/// - Source: proc(5); Linux Documentation/scheduler/sched-stats.rst.
enum ProcessFiles {
    /// What a process has used since its start.
    struct Usage: Equatable, Sendable {
        /// User and system time, in seconds, accurate to 10 ms.
        var processorSeconds: Double
        var residentBytes: Int
    }

    /// How long a thread has run, and how long it was ready to run but had to wait for a CPU; in nanoseconds.
    struct ThreadTime: Equatable, Sendable {
        var ran: Int64
        var waited: Int64
    }

    /// Clock ticks of `stat` in a second; fixed for user space on all of Linux's architectures.
    private static let ticks = 100.0

    /// - Returns: nil if the process does not exist or may not be read.
    static func usage(pid: Int) -> Usage? {
        guard let stat = read("/proc/\(pid)/stat"), let status = read("/proc/\(pid)/status") else {
            return nil
        }
        return usage(stat: stat, status: status)
    }

    /// Parses the contents of `stat` and `status`.
    static func usage(stat: String, status: String) -> Usage? {
        // The name in parentheses may contain anything, even spaces and parentheses, so fields count from the last of
        // them.
        guard let end = stat.lastIndex(of: ")") else { return nil }
        let fields = stat[stat.index(after: end)...].split(separator: " ")
        // utime and stime are fields 14 and 15 of `stat`.
        guard fields.count > 12, let user = Double(fields[11]), let system = Double(fields[12]) else {
            return nil
        }
        let line = status.split(separator: "\n").first { $0.hasPrefix("VmRSS:") }
        guard let kilobytes = line?.split(whereSeparator: { $0 == " " || $0 == "\t" }).dropFirst().first,
            let resident = Int(kilobytes)
        else { return nil }
        return Usage(processorSeconds: (user + system) / ticks, residentBytes: resident * 1_024)
    }

    /// The times of this process's threads whose names start with `prefix`, by name.
    static func ownThreads(prefix: String) -> [String: ThreadTime] {
        var times: [String: ThreadTime] = [:]
        for task in (try? FileManager.default.contentsOfDirectory(atPath: "/proc/self/task")) ?? [] {
            guard let name = read("/proc/self/task/\(task)/comm")?.trimmingCharacters(in: .newlines),
                name.hasPrefix(prefix), let text = read("/proc/self/task/\(task)/schedstat"),
                let time = threadTime(schedstat: text)
            else { continue }
            times[name] = time
        }
        return times
    }

    /// Parses the contents of `schedstat`; its third field, the number of time slices, is not needed.
    static func threadTime(schedstat: String) -> ThreadTime? {
        let fields = schedstat.split(whereSeparator: { $0 == " " || $0 == "\n" }).compactMap { Int64($0) }
        guard fields.count >= 2 else { return nil }
        return ThreadTime(ran: fields[0], waited: fields[1])
    }

    /// The process that listens on a TCP port of this machine.
    ///
    /// Nil if there is none, or if its descriptors may not be read, as with another user's process.
    static func listener(port: Int) -> Int? {
        let tables = ["/proc/net/tcp", "/proc/net/tcp6"].compactMap(read)
        let inodes = Set(tables.flatMap { listeningInodes(table: $0, port: port) })
        guard !inodes.isEmpty else { return nil }
        let links = Set(inodes.map { "socket:[\($0)]" })
        let files = FileManager.default
        for process in (try? files.contentsOfDirectory(atPath: "/proc")) ?? [] {
            guard let pid = Int(process) else { continue }
            let directory = "/proc/\(pid)/fd"
            for descriptor in (try? files.contentsOfDirectory(atPath: directory)) ?? [] {
                let link = try? files.destinationOfSymbolicLink(atPath: "\(directory)/\(descriptor)")
                if let link, links.contains(link) { return pid }
            }
        }
        return nil
    }

    /// Inodes of the sockets in a `/proc/net/tcp` table that listen on a port.
    static func listeningInodes(table: String, port: Int) -> [Int] {
        table.split(separator: "\n").dropFirst().compactMap { line in
            let fields = line.split(separator: " ", omittingEmptySubsequences: true)
            // 0A is TCP_LISTEN. The address is hexadecimal, and its port follows the last colon.
            guard fields.count > 9, fields[3] == "0A", let hexadecimal = fields[1].split(separator: ":").last,
                Int(hexadecimal, radix: 16) == port
            else { return nil }
            return Int(fields[9])
        }
    }

    private static func read(_ path: String) -> String? {
        guard let data = FileManager.default.contents(atPath: path) else { return nil }
        return String(decoding: data, as: UTF8.self)
    }
}
