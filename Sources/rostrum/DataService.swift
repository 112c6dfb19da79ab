import Base
import Foundation
import Gateway
import Store
import Webhooks

/// What outlives a restart: the store, and the webhooks that wait in it.
struct DataService: Sendable {
    let store: any StreamStore
    private let webhooks: WebhookSender?
    private let poster: HTTPPoster?
    private let tasks: [Task<Void, Never>]

    /// In milliseconds: how long streams that have ended are remembered.
    private static let retention: Int64 = 30 * 24 * 3_600_000
    private static let cleaning = Duration.seconds(3_600)
    private static let retrial = Duration.seconds(1)

    /// Opens the data, and begins to deliver what waits.
    static func open(_ configuration: Configuration, log: Log) async throws -> DataService {
        let store: any StreamStore
        if let directory = configuration.dataDirectory {
            store = try await SQLiteStore.open(SQLiteSettings(directory: directory), log: log)
        } else {
            store = MemoryStore()
            log.subsystem("store").info("store.none", ["why-it-matters": "a restart begins with nothing"])
        }
        do {
            return try await DataService(store: store, webhooks: configuration.webhooks, log: log)
        } catch {
            await store.close()
            throw error
        }
    }

    private init(
        store: any StreamStore, webhooks configuration: Configuration.Webhooks?, log: Log
    ) async throws {
        self.store = store
        var tasks = [Task { await Self.forgetOld(in: store) }, Task { await Self.retry(store) }]
        if let configuration {
            let poster = HTTPPoster()
            let sender = WebhookSender(
                outbox: store.outbox, receivers: configuration.urls, secret: configuration.secret,
                transport: poster, log: log, now: Self.now)
            try await sender.prepare()
            tasks.append(Task { await sender.run() })
            self.poster = poster
            webhooks = sender
        } else {
            // What waits for receivers of an earlier run waits in vain.
            try await store.outbox.setReceivers([])
            poster = nil
            webhooks = nil
        }
        self.tasks = tasks
    }

    @Sendable private static func now() -> Int64 { Int64(Date().timeIntervalSince1970 * 1_000) }

    private static func forgetOld(in store: any StreamStore) async {
        while !Task.isCancelled {
            let time = now()
            // A store that refuses now is asked again in an hour.
            _ = try? await store.purge(endedBefore: time - retention, now: time)
            do { try await Task.sleep(for: cleaning) } catch { return }
        }
    }

    /// Lets a store that refuses try again: while this server is not ready, nobody else may ask it to write.
    private static func retry(_ store: any StreamStore) async {
        while !Task.isCancelled {
            do { try await Task.sleep(for: retrial) } catch { return }
            // What it says of this is in its statistics.
            if store.statistics.failure != nil { _ = try? await store.probe() }
        }
    }

    /// Why nothing can be written; nil while it can.
    var hindrance: String? { store.statistics.failure }

    /// Stops delivering, and closes the store; what was not delivered waits for the next start.
    func stop() async {
        for task in tasks { task.cancel() }
        poster?.close()
        await store.close()
        for task in tasks { await task.value }
    }

    // MARK: Metrics

    var metrics: [Metric] {
        let store = store.statistics
        var metrics = [
            Metric("rostrum_store_commits_total", .counter, "Commits made durable.", Double(store.commits)),
            Metric(
                "rostrum_store_transactions_total", .counter, "Waits for the disk that commits shared.",
                Double(store.transactions)),
            Metric(
                "rostrum_store_refused_total", .counter, "Commits refused, by reason.",
                [
                    ("busy", store.refusedBusy), ("unavailable", store.refusedUnavailable),
                    ("conflict", store.refusedConflict),
                ].map { reason, count in
                    Metric.Sample(Double(count), [Metric.Label("reason", reason)])
                }),
            Metric(
                "rostrum_store_waiting", .gauge, "Commits that wait to be written.", Double(store.waiting)),
            Metric(
                "rostrum_store_failing", .gauge, "Whether the last transaction failed, as on a full disk.",
                store.failure == nil ? 0 : 1),
        ]
        guard let counters = webhooks?.counters.copy else { return metrics }
        metrics += [
            Metric(
                "rostrum_webhook_attempts_total", .counter, "Attempts to deliver a webhook, by outcome.",
                [
                    ("delivered", counters.delivered), ("failed", counters.failed),
                    ("dropped", counters.dropped),
                    ("gone", counters.gone),
                ].map { outcome, count in
                    Metric.Sample(Double(count), [Metric.Label("outcome", outcome)])
                }),
            Metric(
                "rostrum_webhooks_waiting", .gauge, "Webhooks to be delivered, one for each receiver.",
                Double(store.waitingEvents)),
            Metric(
                "rostrum_webhooks_dropped_total", .counter,
                "Webhooks given up: the outbox was full, or they waited for too long.",
                Double(store.droppedEvents)),
        ]
        return metrics
    }
}
