import Base
import Foundation
import Gateway
import Node
import Store
import Webhooks

/// What outlives a restart: the store, the delivery of the webhooks in its outbox, and the review webhook.
struct DataService: Sendable {
    /// SQLite in the data directory, or in memory if nothing is to be kept.
    let store: any StreamStore
    /// Nil without receivers.
    private let webhooks: WebhookSender?
    /// Nil if no receiver reviews comments.
    private let review: ReviewHook?
    /// One HTTP client for webhooks and one for reviews, so that a review never queues behind slow webhook receivers.
    private let posters: [HTTPPoster]
    /// Run until `stop`: purging expired answers, probing a failed store, and delivering webhooks.
    private let tasks: [Task<Void, Never>]

    /// A write that takes longer counts as a failure for readiness: nothing tells when the disk will finish it.
    private static let longestWrite = Duration.seconds(5)
    /// How often expired answers to repeated requests are removed.
    private static let cleaning = Duration.seconds(3_600)
    /// How often a store whose last transaction failed is probed.
    private static let retrial = Duration.seconds(1)

    /// Opens the store and starts delivering the webhooks that wait in it.
    /// - Throws: if the store cannot be opened, or refuses the receivers.
    static func open(_ configuration: Configuration, log: Log) async throws -> DataService {
        let store: any StreamStore
        if let directory = configuration.dataDirectory {
            store = try await SQLiteStore.open(SQLiteSettings(directory: directory), log: log)
        } else {
            store = MemoryStore()
            log.subsystem("store").info("store.none", ["why-it-matters": "each restart begins empty"])
        }
        do {
            return try await DataService(store: store, configuration, log: log)
        } catch {
            await store.close()
            throw error
        }
    }

    /// - Throws: if the store refuses the receivers; the caller closes the store then.
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
            // Before the first commit: the outbox keeps an event only for receivers that it knows.
            try await sender.prepare()
            tasks.append(Task { await sender.run() })
            posters.append(poster)
            webhooks = sender
        } else {
            // Without receivers nothing would ever take the events that an earlier run left behind.
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

    /// Submits comments to the review webhook before they are shown; nil if none is configured.
    var reviewer: CommentReviewer? {
        review.map { review in
            CommentReviewer { event, stream in await review.ask(event, of: stream.description) }
        }
    }

    /// In milliseconds since 1970, as the store counts.
    @Sendable private static func now() -> Int64 { Int64(Date().timeIntervalSince1970 * 1_000) }

    /// Removes expired answers once an hour.
    private static func purgeAnswers(of store: any StreamStore) async {
        while !Task.isCancelled {
            // A failure needs no action: the next round purges what this one left.
            try? await store.purgeAnswers(at: now())
            do { try await Task.sleep(for: cleaning) } catch { return }
        }
    }

    /// Probes a store whose last transaction failed.
    ///
    /// A server that is not ready gets no requests from a load balancer, so no commit would find out that the disk has
    /// recovered.
    private static func retry(_ store: any StreamStore) async {
        while !Task.isCancelled {
            do { try await Task.sleep(for: retrial) } catch { return }
            // The result is ignored because the store records it in its statistics.
            if store.statistics.failure != nil { _ = try? await store.probe() }
        }
    }

    /// Why nothing can be written, for `/readyz`; nil while writing works.
    var hindrance: String? { Self.hindrance(store.statistics) }

    /// - Returns: the last failure, or a message about a write that has taken too long; nil if neither applies.
    static func hindrance(_ statistics: StoreStatistics) -> String? {
        if let failure = statistics.failure { return failure }
        guard statistics.writing >= longestWrite else { return nil }
        return "the disk has not finished a write for \(statistics.writing.components.seconds) seconds"
    }

    /// Stops delivering and closes the store; undelivered webhooks stay in the outbox for the next start.
    ///
    /// Posters close first: that ends requests under way, which the tasks would otherwise wait for.
    func stop() async {
        for task in tasks { task.cancel() }
        for poster in posters { poster.close() }
        await store.close()
        for task in tasks { await task.value }
    }

    // MARK: Metrics

    /// Metrics of the store, of reviews and of webhooks; those of reviews and webhooks only where they are configured.
    var metrics: [Metric] {
        let store = store.statistics
        var metrics = [
            Metric("rostrum_store_commits_total", .counter, "Commits made durable.", Double(store.commits)),
            Metric(
                "rostrum_store_transactions_total", .counter,
                "Disk writes, each of which may include several commits.",
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
                "rostrum_store_waiting", .gauge, "Commits waiting to be written.", Double(store.waiting)),
            Metric(
                "rostrum_store_write_seconds", "Duration of disk writes.",
                [([], store.writeTimes)]),
            Metric(
                "rostrum_store_writing_seconds", .gauge,
                "Duration so far of the current disk write; 0 when there is none.",
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
                "rostrum_webhooks_waiting", .gauge, "Webhooks waiting to be delivered, counted per receiver.",
                Double(store.waitingEvents)),
            Metric(
                "rostrum_webhooks_dropped_total", .counter,
                "Webhooks dropped because the outbox was full or they waited too long.",
                Double(store.droppedEvents)),
        ]
        return metrics
    }

    /// Metrics of the review webhook; none without it.
    private var reviewMetrics: [Metric] {
        guard let counters = review?.counters else { return [] }
        return [
            Metric(
                "rostrum_reviews_total", .counter,
                "Comments for the review webhook, by outcome; late, failed and skipped get --review-default.",
                [
                    ("allowed", counters.allowed), ("denied", counters.denied), ("late", counters.late),
                    ("failed", counters.failed), ("skipped", counters.skipped),
                ].map { outcome, count in
                    Metric.Sample(Double(count), [Metric.Label("outcome", outcome)])
                }),
            Metric(
                "rostrum_reviews_under_way", .gauge, "Requests to the review webhook in progress.",
                Double(counters.underWay)),
        ]
    }
}
