import Base
import Foundation
import Glibc

/// Memory, descriptors and CPU time of this process, as the kernel reports them.
enum ProcessMetrics {
    /// The metrics, under the names that Prometheus' own client libraries use; those that cannot be read are missing.
    static func collect() -> [Metric] {
        var metrics: [Metric] = []
        if let residentBytes {
            metrics.append(
                Metric("process_resident_memory_bytes", .gauge, "Resident memory.", residentBytes))
        }
        // Includes the descriptor with which the directory is read.
        if let files = try? FileManager.default.contentsOfDirectory(atPath: "/proc/self/fd").count {
            metrics.append(Metric("process_open_fds", .gauge, "Open file descriptors.", Double(files)))
        }
        if let fileLimit {
            metrics.append(
                Metric("process_max_fds", .gauge, "Limit of open file descriptors.", fileLimit))
        }
        if let processorSeconds {
            metrics.append(
                Metric("process_cpu_seconds_total", .counter, "User and system CPU time.", processorSeconds))
        }
        if let start {
            metrics.append(
                Metric(
                    "process_start_time_seconds", .gauge, "When the process started, in seconds since 1970.",
                    start))
        }
        return metrics
    }

    /// The same for the operators' page, without counting descriptors, which lists a directory.
    static var json: JSON {
        .object([
            "residentBytes": residentBytes.map { .number($0) } ?? .null,
            "cpuSeconds": processorSeconds.map { .number($0) } ?? .null,
            "startedAt": start.map { .string(Timestamp.text($0)) } ?? .null,
        ])
    }

    /// Resident memory in bytes.
    /// - Source: proc_pid_statm(5): the second field, in pages.
    private static var residentBytes: Double? {
        let pages = read("/proc/self/statm")?.split(separator: " ").dropFirst().first
        return pages.flatMap { Double($0) }.map { $0 * Double(sysconf(CInt(_SC_PAGESIZE))) }
    }

    /// The soft limit, which the kernel enforces; the server raises it at its start as far as it may.
    private static var fileLimit: Double? {
        var limit = rlimit()
        guard getrlimit(__rlimit_resource_t(RLIMIT_NOFILE.rawValue), &limit) == 0 else { return nil }
        return Double(limit.rlim_cur)
    }

    /// User and system time of all threads, in seconds.
    private static var processorSeconds: Double? {
        var usage = rusage()
        guard getrusage(__rusage_who_t(RUSAGE_SELF.rawValue), &usage) == 0 else { return nil }
        let seconds = Double(usage.ru_utime.tv_sec + usage.ru_stime.tv_sec)
        return seconds + Double(usage.ru_utime.tv_usec + usage.ru_stime.tv_usec) / 1e6
    }

    /// Start of the process, in seconds since 1970; read once.
    ///
    /// - Source: proc_pid_stat(5), field 22, in ticks since the boot; proc_stat(5), `btime`.
    private static let start: Double? = {
        // The second field, the program's name, may contain blanks; it ends with the last parenthesis.
        guard let own = read("/proc/self/stat"), let end = own.lastIndex(of: ")"),
            let ticks = own[end...].split(separator: " ").dropFirst(20).first.flatMap({ Double($0) }),
            let boot = read("/proc/stat")?.split(separator: "\n").first(where: { $0.hasPrefix("btime ") })?
                .split(separator: " ").last.flatMap({ Double($0) })
        else { return nil }
        return boot + ticks / Double(sysconf(CInt(_SC_CLK_TCK)))
    }()

    private static func read(_ path: String) -> String? {
        try? String(contentsOfFile: path, encoding: .utf8)
    }
}
