import Base
import Store

/// Delivers what the outbox holds to all receivers, until it is told to stop.
package struct WebhookSender: Sendable {
    /// Of all receivers together.
    package let counters = WebhookCounters()
    private let outbox: any Outbox
    private let receivers: [WebhookReceiver]
    private let urls: [String]
    private let settings: WebhookSchedule.Settings
    private let now: @Sendable () -> Int64

    /// How often events that waited for too long are looked for.
    private static let cleaning = Duration.seconds(3_600)

    /// - Parameter now: milliseconds since 1970.
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

    /// Tells the outbox for whom to keep events; to be called before the first commit.
    package func prepare() async throws(StoreError) {
        try await outbox.setReceivers(urls)
    }

    /// Delivers until the task is cancelled.
    package func run() async {
        await withDiscardingTaskGroup { group in
            for receiver in receivers { group.addTask { await receiver.run() } }
            group.addTask {
                for await _ in outbox.changes {
                    for receiver in receivers { receiver.wake() }
                }
            }
            group.addTask {
                while !Task.isCancelled {
                    do { try await Task.sleep(for: Self.cleaning) } catch { return }
                    // A store that refuses now is asked again in an hour.
                    _ = try? await outbox.drop(committedBefore: now() - settings.patience)
                }
            }
        }
    }
}
