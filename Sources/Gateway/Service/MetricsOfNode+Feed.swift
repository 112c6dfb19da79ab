import Base
import Forwarding
import Node

extension MetricsOfNode {
    /// Use of the feed: sessions, messages, attached streams, and how long a switch takes.
    static func feed(_ workers: [WorkerReportCopy], _ counters: FeedCounters) -> [Metric] {
        // Measured by workers, which see the first packet leave.
        var switches = SwitchTimes()
        for worker in workers { switches.add(worker.counters.switches) }
        let messages: [(String, UInt64)] = [
            ("peek", counters.peeks), ("focus", counters.focuses), ("release", counters.releases),
            ("refused", counters.refused),
        ]
        return [
            Metric("rostrum_feed_streams", .gauge, "Live streams in the feed.", Double(counters.streams)),
            Metric(
                "rostrum_feed_sessions", .gauge, "Feed sessions that live now.", Double(counters.sessions)),
            Metric(
                "rostrum_feed_followers", .gauge, "WebSockets that follow the feed's list.",
                Double(counters.followers)),
            Metric(
                "rostrum_feed_messages_total", .counter,
                "What feed viewers asked for, by kind; those that were refused once more.",
                messages.map { Metric.Sample(Double($1), [Metric.Label("message", $0)]) }),
            Metric(
                "rostrum_feed_attachments_total", .counter,
                "Streams that slots of feed sessions were put on, previews included.",
                workers.map {
                    Metric.Sample(
                        Double($0.counters.seatsTaken), [Metric.Label("worker", "\($0.index)")])
                }),
            Metric(
                "rostrum_feed_switch_seconds",
                "From a viewer's message to the first packet of the stream's best layer, by whether it was preloaded.",
                [
                    ([Metric.Label("preloaded", "true")], switches.preloaded),
                    ([Metric.Label("preloaded", "false")], switches.cold),
                ]),
        ]
    }
}
