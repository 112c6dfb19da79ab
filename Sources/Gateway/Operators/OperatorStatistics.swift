import Base
import Forwarding
import Net
import Node

/// The numbers behind the operators' page: totals since the start, from which the page computes rates.
enum OperatorStatistics {
    /// The JSON of `GET /v1/admin/statistics`.
    /// - Parameters: `published` and `played`: how long requests for sessions took to be answered.
    static func json(
        _ workers: [WorkerReportCopy], _ sessions: SessionCounts, _ streams: [StreamSnapshot], at now: Moment,
        published: DurationHistogram, played: DurationHistogram
    ) -> JSON {
        var media = MediaCounters()
        for worker in workers { media.add(worker.counters.media) }
        return .object([
            // Monotonic, for rates; `time` is for display.
            "seconds": .number(Double(now.elapsed.nanoseconds / 1_000_000) / 1_000),
            "time": .time(now.wall),
            "sessions": sessions.json,
            "streams": .object(
                Dictionary(
                    uniqueKeysWithValues: [StreamState.backstage, .live, .waiting, .ended].map { state in
                        (state.rawValue, .integer(streams.count { $0.state == state }))
                    })),
            "viewers": .integer(streams.reduce(0) { $0 + $1.viewers }),
            // From publishers: packets requested again by NACK, and those of them that arrived.
            "received": .object([
                "packets": .integer(media.received.packets), "bytes": .integer(media.received.bytes),
                "requestedAgain": .integer(media.repairsRequested),
                "repaired": .integer(media.packetsRepaired),
            ]),
            // To viewers: packets they requested again, and those that were sent again.
            "sent": .object([
                "packets": .integer(media.packetsSent), "bytes": .integer(media.bytesSent),
                "requestedAgain": .integer(media.resendsRequested), "repaired": .integer(media.packetsResent),
            ]),
            // Changes of viewers' layers, up and down.
            "steps": .object(["up": .integer(media.stepsUp), "down": .integer(media.stepsDown)]),
            "joins": joins(workers, published: published, played: played),
            "latency": latency(workers).json,
            "workers": .array(workers.map(\.json)),
        ])
    }

    /// Phases of joining, over all workers.
    private static func joins(
        _ workers: [WorkerReportCopy], published: DurationHistogram, played: DurationHistogram
    ) -> JSON {
        let (publishers, viewers) = MetricsOfNode.joins(of: workers)
        return .object([
            "publisher": publishers.json(answered: published), "viewer": viewers.json(answered: played),
        ])
    }

    /// Forwarding latency over all workers.
    private static func latency(_ workers: [WorkerReportCopy]) -> DurationHistogram {
        var latency = DurationHistogram(.packets)
        for worker in workers { latency.add(worker.network.latency) }
        return latency
    }
}

extension SessionCounts {
    fileprivate var json: JSON {
        .object([
            "publish": .integer(publishing), "stage": .integer(onStage), "watch": .integer(playing),
            "audience": .integer(inAudience), "feed": .integer(inFeed), "total": .integer(total),
        ])
    }
}

extension JoinPhases {
    fileprivate func json(answered: DurationHistogram) -> JSON {
        .object([
            "answer": answered.json, "check": checked.json, "dtls": connected.json, "media": firstMedia.json,
        ])
    }
}

extension DurationHistogram {
    /// Count, sum in seconds, and cumulative buckets: upper bound in seconds, and how many were at most that.
    fileprivate var json: JSON {
        .object([
            "count": .integer(count),
            "seconds": .number(Double(nanoseconds / 1_000) / 1_000_000),
            "buckets": .array(cumulative.map { .array([.number($0.seconds), .integer($0.count)]) }),
        ])
    }
}

extension WorkerReportCopy {
    fileprivate var json: JSON {
        let traffic = network.traffic
        // Losses of any cause in one number; `rostrum_drops_total` distinguishes them.
        let drops =
            traffic.droppedByKernel &+ traffic.droppedTruncated &+ traffic.droppedBufferFull
            &+ traffic.droppedTooLarge &+ traffic.droppedUnreachable &+ traffic.droppedOther &+ relayOverflow
            &+ handoverOverflow
        return .object([
            "index": .integer(index), "load": .number((network.load * 1_000).rounded() / 1_000),
            "sessions": .integer(counters.sessions), "slots": .integer(counters.slotsAttached),
            "bytesReceived": .integer(traffic.bytesIn), "bytesSent": .integer(traffic.bytesOut),
            "drops": .integer(drops),
        ])
    }
}
