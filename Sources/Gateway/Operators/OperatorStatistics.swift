import Base
import Forwarding
import Net
import Node

/// The numbers that the operators' page draws: totals since the start, of which it makes rates.
enum OperatorStatistics {
    /// - Parameters: `published` and `played`: how long requests for sessions took to be answered.
    static func json(
        _ workers: [WorkerReportCopy], _ sessions: SessionCounts, _ streams: [StreamSnapshot], at now: Moment,
        published: DurationHistogram, played: DurationHistogram
    ) -> JSON {
        var media = MediaCounters()
        for worker in workers { media.add(worker.counters.media) }
        return .object([
            "seconds": .number(Double(now.elapsed.nanoseconds / 1_000_000) / 1_000),
            "time": .time(now.wall),
            "sessions": sessions.json,
            "streams": .object(
                Dictionary(
                    uniqueKeysWithValues: [StreamState.backstage, .live, .waiting, .ended].map { state in
                        (state.rawValue, .integer(streams.count { $0.state == state }))
                    })),
            "viewers": .integer(streams.reduce(0) { $0 + $1.viewers }),
            "received": .object([
                "packets": .integer(media.received.packets), "bytes": .integer(media.received.bytes),
                "requestedAgain": .integer(media.repairsRequested),
                "repaired": .integer(media.packetsRepaired),
            ]),
            "sent": .object([
                "packets": .integer(media.packetsSent), "bytes": .integer(media.bytesSent),
                "requestedAgain": .integer(media.resendsRequested), "repaired": .integer(media.packetsResent),
            ]),
            "steps": .object(["up": .integer(media.stepsUp), "down": .integer(media.stepsDown)]),
            "joins": joins(workers, published: published, played: played),
            "latency": latency(workers).json,
            "workers": .array(workers.map(\.json)),
        ])
    }

    private static func joins(
        _ workers: [WorkerReportCopy], published: DurationHistogram, played: DurationHistogram
    ) -> JSON {
        let (publishers, viewers) = MetricsOfNode.joins(of: workers)
        return .object([
            "publisher": publishers.json(answered: published), "viewer": viewers.json(answered: played),
        ])
    }

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
    /// How many took at most so many seconds, for growing bounds, and how many there were.
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
