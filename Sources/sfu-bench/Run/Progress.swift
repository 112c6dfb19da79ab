import Foundation
import Synchronization

/// Tells on standard error how a run goes: a line that changes on a terminal, single lines elsewhere.
final class Progress: Sendable {
    private let isQuiet: Bool
    private let isTerminal = isatty(STDERR_FILENO) == 1
    private let hasLine = Mutex(false)

    init(isQuiet: Bool) {
        self.isQuiet = isQuiet
    }

    /// A step of the run, which stays.
    func step(_ text: String) {
        guard !isQuiet else { return }
        clear()
        write(text + "\n")
    }

    /// The last second of the run, which the next one overwrites.
    func show(_ point: Report.SeriesPoint) {
        guard !isQuiet, isTerminal else { return }
        hasLine.withLock { $0 = true }
        write("\r\u{1B}[K" + Self.line(for: point))
    }

    func clear() {
        guard
            hasLine.withLock({ hasLine in
                defer { hasLine = false }
                return hasLine
            })
        else { return }
        write("\r\u{1B}[K")
    }

    static func line(for point: Report.SeriesPoint) -> String {
        var parts = [
            "\(Int(point.seconds)) s", "\(point.viewers) viewers",
            "\(Format.count(point.packetsPerSecond)) packets/s",
            "\(Format.short(point.megabitsPerSecond)) Mbit/s",
            "loss \(Format.short(point.lossPercent)) %",
        ]
        if let p99 = point.latencyP99 { parts.append("p99 \(Format.short(p99)) ms") }
        if let cores = point.serverCores { parts.append("server \(Format.short(cores * 100)) % CPU") }
        parts.append("own \(Format.short(point.generatorBusy * 100)) %")
        return parts.joined(separator: " · ")
    }

    private func write(_ text: String) {
        FileHandle.standardError.write(Data(text.utf8))
    }
}
