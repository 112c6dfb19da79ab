import Base

/// Sends the service manager regular signs that the server is alive, and stops sending them when a part is stuck.
///
/// The server is alive while the node's actor answers, the HTTP threads run their loops, and every worker runs its own.
/// Without signs the service manager ends the process after its timeout and starts it again.
/// - Source: sd_watchdog_enabled(3).
struct Watchdog: Sendable {
    /// Nil if the service manager wants no signs.
    private let task: Task<Void, Never>?

    /// Begins to send signs.
    /// - Parameter interval: between two signs; nil to send none.
    init(every interval: Duration?, of server: Server, telling manager: ServiceManager, log: Log) {
        guard let interval else {
            task = nil
            return
        }
        task = Task {
            // One log line for each time that something is stuck, not one per interval.
            var hasComplained = false
            while !Task.isCancelled {
                // If the node or HTTP is stuck, this call does not return, and no sign is sent. Workers only receive a
                // request here; they have the whole interval to answer it.
                await server.askForSigns()
                do { try await Task.sleep(for: interval) } catch { return }
                let silent = server.silentParts
                guard !silent.isEmpty else {
                    hasComplained = false
                    manager.notify(.alive)
                    continue
                }
                if !hasComplained { log.error("stuck", ["parts": silent.joined(separator: ",")]) }
                hasComplained = true
            }
        }
    }

    /// Stops sending signs; the service manager has been notified of the end by then.
    func stop() { task?.cancel() }
}
