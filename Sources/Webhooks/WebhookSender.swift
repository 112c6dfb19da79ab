import Base
import Store

/// Delivers the outbox to all receivers until its task is cancelled.
package struct WebhookSender: Sendable {
    /// Counters over all receivers.
    package let counters = WebhookCounters()
    private let outbox: any Outbox
    private let receivers: [WebhookReceiver]
    private let urls: [String]
    private let settings: WebhookSchedule.Settings
    private let now: @Sendable () -> Int64

    /// How often events older than `patience` are removed from the outbox.
    private static let cleaning = Duration.seconds(3_600)

    /// - Parameter now: milliseconds since 1970.
    /// Creates one receiver per URL; all share the secret and the transport.
    package init(
        outbox: any Outbox, receivers urls: [String], secret: Secret<String>,
        transport: any WebhookTransport, settings: WebhookSchedule.Settings = WebhookSchedule.Settings(),
        log: Log, now: @escaping @Sendable () -> Int64
    ) {
        self.outbox = outbox
        self.urls = urls
        self.settings = settings
        self.now = now
        let log = log.subsystem("webhooks")
        let counters = counters
        receivers = urls.map { url in
            WebhookReceiver(
                url: url, outbox: outbox, transport: transport, signature: WebhookSignature(secret: secret),
                settings: settings, counters: counters, log: log, now: now)
        }
    }

    /// Registers the receivers with the outbox; must be called before the first commit, whose events would be lost.
    /// - Throws: if the store cannot write.
    package func prepare() async throws(StoreError) {
        try await outbox.setReceivers(urls)
    }

    /// Delivers until the task is cancelled.
    package func run() async {
        await withDiscardingTaskGroup { group in
            for receiver in receivers { group.addTask { await receiver.run() } }
            group.addTask {
                // A commit does not name the receivers of its events; a wake-up without new events costs one query.
                for await _ in outbox.changes {
                    for receiver in receivers { receiver.wake() }
                }
            }
            group.addTask {
                while !Task.isCancelled {
                    do { try await Task.sleep(for: Self.cleaning) } catch { return }
                    // After an error the next attempt is in an hour: the events only take space.
                    _ = try? await outbox.drop(committedBefore: now() - settings.patience)
                }
            }
        }
    }
}
