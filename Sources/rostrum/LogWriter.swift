import Base
import Dispatch
import Foundation
import Glibc
import Synchronization

/// Writes log lines to standard error, from a queue of its own: whoever logs never waits for a terminal.
final class LogWriter: Sendable {
    /// More lines than this are dropped while the reader is too slow.
    private static let maximumPending = 10_000

    private let format: Configuration.LogFormat
    private let queue = DispatchQueue(label: "log")
    private let pending = Atomic<Int>(0)
    private let dropped = Atomic<Int>(0)

    init(format: Configuration.LogFormat) {
        self.format = format
    }

    func log(level: Log.Level) -> Log {
        Log(level: level) { [self] entry in write(entry) }
    }

    private func write(_ entry: Log.Entry) {
        guard pending.wrappingAdd(1, ordering: .relaxed).newValue <= Self.maximumPending else {
            pending.wrappingSubtract(1, ordering: .relaxed)
            dropped.wrappingAdd(1, ordering: .relaxed)
            return
        }
        let time = Date()
        queue.async { [self] in
            pending.wrappingSubtract(1, ordering: .relaxed)
            let lost = dropped.exchange(0, ordering: .relaxed)
            if lost > 0 { Self.put("rostrum: \(lost) log lines were lost\n") }
            Self.put(line(entry, time))
        }
    }

    private func line(_ entry: Log.Entry, _ time: Date) -> String {
        let stamp = time.formatted(Date.ISO8601FormatStyle(includingFractionalSeconds: true))
        return switch format {
        case .text: "\(stamp) \(entry.text)\n"
        case .json: "{\"time\":\"\(stamp)\",\(entry.json.dropFirst())\n"
        }
    }

    /// Returns when all lines are written.
    func flush() {
        queue.sync {}
    }

    private static func put(_ text: String) {
        var rest = Array(text.utf8)[...]
        while !rest.isEmpty {
            let count = rest.withUnsafeBytes { Glibc.write(STDERR_FILENO, $0.baseAddress, $0.count) }
            guard count > 0 else { return }
            rest = rest.dropFirst(count)
        }
    }
}
