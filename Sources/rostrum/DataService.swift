import Base
import Foundation
import Gateway
import Node
import Store
import Webhooks

/// What outlives a restart: the store, and the webhooks that wait in it.
struct DataService: Sendable {
    let store: any StreamStore
    private let webhooks: WebhookSender?
    private let review: ReviewHook?
    /// Of webhooks, and of questions about comments, which wait for nothing of the others.
    private let posters: [HTTPPoster]
    private let tasks: [Task<Void, Never>]

    /// A disk that takes longer for a write is as good as none: nobody can tell when it will be done.
    private static let longestWrite = Duration.seconds(5)
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
            return try await DataService(store: store, configuration, log: log)
        } catch {
            await store.close()
            throw error
        }
    }

    private init(
        store: any StreamStore, _ configuration: Configuration, log: Log
    ) async throws {
        self.store = store
        var posters: [HTTPPoster] = []
        var tasks = [Task { await Self.purgeAnswers(of: store) }, Task { await Self.retry(store) }]
        if let hooks = configuration.webhooks, !hooks.urls.isEmpty {
            let poster = HTTPPoster()
            let sender = WebhookSender(
                outbox: store.outbox, receivers: hooks.urls, secret: hooks.secret, transport: poster,
                log: log, now: Self.now)
            try await sender.prepare()
            tasks.append(Task { await sender.run() })
            posters.append(poster)
            webhooks = sender
        } else {
            // What waits for receivers of an earlier run waits in vain.
            try await store.outbox.setReceivers([])
            webhooks = nil
        }
        if let hooks = configuration.webhooks, let url = hooks.reviewer {
            let poster = HTTPPoster(timeout: ReviewHook.timeout)
            review = ReviewHook(
                url: url, secret: hooks.secret, fallback: configuration.reviewFallback, transport: poster,
                log: log, now: Self.now)
            posters.append(poster)
        } else {
            review = nil
        }
        self.posters = posters
        self.tasks = tasks
    }

    /// Asks about comments before anybody is shown them; nil where nobody is to be asked.
    var reviewer: CommentReviewer? {
        review.map { review in
            CommentReviewer { event, stream in await review.ask(event, of: stream.description) }
        }
    }

    @Sendable private static func now() -> Int64 { Int64(Date().timeIntervalSince1970 * 1_000) }

    private static func purgeAnswers(of store: any StreamStore) async {
        while !Task.isCancelled {
            // A store that refuses now is asked again in an hour.
            try? await store.purgeAnswers(at: now())
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
    var hindrance: String? { Self.hindrance(store.statistics) }

    static func hindrance(_ statistics: StoreStatistics) -> String? {
        if let failure = statistics.failure { return failure }
        guard statistics.writing >= longestWrite else { return nil }
        return "the disk has not finished a write for \(statistics.writing.components.seconds) seconds"
    }

    /// Stops delivering, and closes the store; what was not delivered waits for the next start.
    func stop() async {
        for task in tasks { task.cancel() }
        for poster in posters { poster.close() }
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
                "rostrum_store_write_seconds", "How long the disk took for what commits shared.",
                [([], store.writeTimes)]),
            Metric(
                "rostrum_store_writing_seconds", .gauge,
                "How long what is being written now has taken; 0 while nothing is.",
                Double(store.writing.components.seconds)
                    + Double(store.writing.components.attoseconds) / 1e18),
            Metric(
                "rostrum_store_failing", .gauge, "Whether the last transaction failed, as on a full disk.",
                store.failure == nil ? 0 : 1),
        ]
        metrics += reviewMetrics
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

    private var reviewMetrics: [Metric] {
        guard let counters = review?.counters else { return [] }
        return [
            Metric(
                "rostrum_reviews_total", .counter,
                "Comments that the review webhook was to be asked about, by outcome: late, failed and skipped count as the default.",
                [
                    ("allowed", counters.allowed), ("denied", counters.denied), ("late", counters.late),
                    ("failed", counters.failed), ("skipped", counters.skipped),
                ].map { outcome, count in
                    Metric.Sample(Double(count), [Metric.Label("outcome", outcome)])
                }),
            Metric(
                "rostrum_reviews_under_way", .gauge, "Questions about comments that are under way.",
                Double(counters.underWay)),
        ]
    }
}
