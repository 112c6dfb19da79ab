import Base

/// Tells the service manager again and again that the server is alive, as long as it is.
///
/// It is when the node's actor answers, the HTTP thread turns, and so does every worker. Where one does not, nothing is
/// told, and after its timeout the service manager ends the program, and starts it again.
struct Watchdog: Sendable {
    private let task: Task<Void, Never>?

    /// - Parameter interval: between two signs; nil for none at all.
    init(every interval: Duration?, of server: Server, telling manager: ServiceManager, log: Log) {
        guard let interval else {
            task = nil
            return
        }
        task = Task {
            var hasComplained = false
            while !Task.isCancelled {
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

    func stop() { task?.cancel() }
}
