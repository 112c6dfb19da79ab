import Foundation
import Synchronization

/// Shows on standard error how a run proceeds: a line that is updated on a terminal, plain lines elsewhere.
final class Progress: Sendable {
    private let isQuiet: Bool
    private let isTerminal = isatty(STDERR_FILENO) == 1
    /// Whether the terminal shows an updatable line, which must be erased before anything else is written.
    private let hasLine = Mutex(false)

    init(isQuiet: Bool) {
        self.isQuiet = isQuiet
    }

    /// Writes a line that stays.
    func step(_ text: String) {
        guard !isQuiet else { return }
        clear()
        write(text + "\n")
    }

    /// Shows the latest second of the run, until the next one replaces it; only on a terminal.
    func show(_ point: Report.SeriesPoint) {
        guard !isQuiet, isTerminal else { return }
        hasLine.withLock { $0 = true }
        write("\r\u{1B}[K" + Self.line(for: point))
    }

    /// Erases the updatable line, if there is one.
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
