import Foundation
import Glibc

/// What the kernel says about this process.
enum ProcessMetrics {
    static func collect() -> [Metric] {
        var metrics: [Metric] = []
        if let pages = read("/proc/self/statm")?.split(separator: " ").dropFirst().first.flatMap({
            Double($0)
        }) {
            metrics.append(
                Metric(
                    "process_resident_memory_bytes", .gauge, "Resident memory.",
                    pages * Double(sysconf(CInt(_SC_PAGESIZE)))))
        }
        if let files = try? FileManager.default.contentsOfDirectory(atPath: "/proc/self/fd").count {
            metrics.append(Metric("process_open_fds", .gauge, "Open file descriptors.", Double(files)))
        }
        var usage = rusage()
        if getrusage(__rusage_who_t(RUSAGE_SELF.rawValue), &usage) == 0 {
            let seconds = Double(usage.ru_utime.tv_sec + usage.ru_stime.tv_sec)
            let rest = Double(usage.ru_utime.tv_usec + usage.ru_stime.tv_usec) / 1e6
            metrics.append(
                Metric("process_cpu_seconds_total", .counter, "User and system CPU time.", seconds + rest))
        }
        return metrics
    }

    private static func read(_ path: String) -> String? {
        try? String(contentsOfFile: path, encoding: .utf8)
    }
}
