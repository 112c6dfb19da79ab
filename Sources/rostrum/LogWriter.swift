import Base
import Dispatch
import Foundation
import Glibc
import Synchronization

/// Writes log lines to standard error on a queue of its own, so that no thread that logs waits for a slow reader.
final class LogWriter: Sendable {
    /// Lines in the queue; beyond that, new lines are dropped and counted.
    private static let maximumPending = 10_000

    private let format: Configuration.LogFormat
    private let queue = DispatchQueue(label: "log")
    /// Lines that are in the queue now.
    private let pending = Atomic<Int>(0)
    /// Lines dropped since the last message about it.
    private let dropped = Atomic<Int>(0)

    init(format: Configuration.LogFormat) {
        self.format = format
    }

    /// A log that writes here; may be used on any thread.
    func log(level: Log.Level) -> Log {
        Log(level: level) { [self] entry in write(entry) }
    }

    /// Queues an entry, or drops it while the queue is full.
    private func write(_ entry: Log.Entry) {
        guard pending.wrappingAdd(1, ordering: .relaxed).newValue <= Self.maximumPending else {
            pending.wrappingSubtract(1, ordering: .relaxed)
            dropped.wrappingAdd(1, ordering: .relaxed)
            return
        }
        // The time of the event, not that of writing.
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
        // The entry's own JSON object without its opening brace follows the time.
        case .json: "{\"time\":\"\(stamp)\",\(entry.json.dropFirst())\n"
        }
    }

    /// Returns once all lines queued so far are written.
    func flush() {
        queue.sync {}
    }

    /// Writes all of a text; gives up if standard error cannot be written.
    private static func put(_ text: String) {
        var rest = Array(text.utf8)[...]
        while !rest.isEmpty {
            let count = rest.withUnsafeBytes { Glibc.write(STDERR_FILENO, $0.baseAddress, $0.count) }
            guard count > 0 else { return }
            rest = rest.dropFirst(count)
        }
    }
}
