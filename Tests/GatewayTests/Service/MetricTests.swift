import Base
import Forwarding
import HTTP
import Net
@testable import Node
import Testing

@testable import Gateway

@Suite struct Metrics {
    /// Two workers in which every counter has a value of its own.
    private static var workers: [WorkerReportCopy] {
        (0..<2).map { index in
            var counters = WorkerCounters()
            counters.media.received = .init(packets: 100, bytes: 90_000)
            counters.media.audioReceived = .init(packets: 30, bytes: 3_000)
            counters.media.videoReceived = .init(packets: 60, bytes: 80_000)
            counters.media.audioSent = .init(packets: 300, bytes: 31_000)
            counters.media.videoSent = .init(packets: 600, bytes: 810_000)
            counters.media.drops.replayed = 3
            counters.media.drops.noRoute = 4
            counters.media.packetsResent = 17
            counters.media.refusals.tooSoon = 12
            counters.strangers = 5
            counters.afterTheEnd = 9
            counters.slots = 20
            counters.slotsAttached = 18
            counters.viewers.connected.add(40_000_000)
            counters.publishers.firstMedia.add(90_000_000)
            var network = WorkerStatistics()
            network.traffic.droppedBufferFull = 6
            network.latency.add(300_000, times: 12)
            network.busyNanoseconds = 1_500_000_000
            network.tcp.connections = 8
            network.tcp.bytesOut = 9_000
            network.tcp.droppedVideo = 10
            network.tcp.closedStalled = 11
            return WorkerReportCopy(
                index: index, counters: counters, network: network, relayOverflow: 7, handoverOverflow: 3)
        }
    }

    private static func exposition(_ workers: [WorkerReportCopy]) throws -> Exposition {
        var answered = DurationHistogram(.joins)
        answered.add(2_000_000)
        let metrics =
            MetricsOfNode.collect(workers, [])
            + [MetricsOfNode.joins(workers, published: answered, played: DurationHistogram(.joins))]
            + HTTPCounters().copy.metrics + ProcessMetrics.collect()
        return try Exposition(metrics.text)
    }

    @Test func `a strict parser accepts the metrics`() throws {
        _ = try Self.exposition(Self.workers)
        _ = try Self.exposition([])
    }

    /// The alert compares them: a fixed number would be above the limit of a container.
    @Test func `tell how many files are open, and how many may be`() throws {
        let text = try Exposition(ProcessMetrics.collect().text)
        let open = try #require(text["process_open_fds"])
        let limit = try #require(text["process_max_fds"])
        #expect(open > 0 && open < limit)
    }

    @Test func `count streams by each state that there is`() throws {
        var streams: [StreamSnapshot] = []
        for (count, state) in StreamState.allCases.enumerated() {
            var stream = StreamSnapshot(waitingFor: try #require(StreamID("show")))
            (stream.state, stream.viewers) = (state, 2)
            streams += Array(repeating: stream, count: count + 1)
        }
        let text = try Exposition(MetricsOfNode.collect([], streams).text)
        for (count, state) in StreamState.allCases.enumerated() {
            #expect(text["rostrum_streams{state=\"\(state.rawValue)\"}"] == Double(count + 1), "\(state)")
        }
        #expect(text["rostrum_viewers"] == 20)
    }

    @Test func `tell TCP connections, and why frames and connections ended`() throws {
        let text = try Self.exposition(Self.workers)
        #expect(text["rostrum_tcp_connections{worker=\"1\"}"] == 8)
        #expect(text["rostrum_tcp_bytes_total{worker=\"0\",direction=\"out\"}"] == 9_000)
        #expect(text["rostrum_tcp_frames_dropped_total{worker=\"0\",reason=\"slow_reader_video\"}"] == 10)
        #expect(text["rostrum_tcp_connections_closed_total{worker=\"1\",reason=\"stalled\"}"] == 11)
        #expect(text["rostrum_tcp_connections_closed_total{worker=\"1\",reason=\"peer\"}"] == 0)
    }

    @Test func `tell packets by kind and drops by reason, for each worker`() throws {
        let text = try Self.exposition(Self.workers)
        #expect(text["rostrum_rtp_packets_received_total{worker=\"1\",kind=\"video\"}"] == 60)
        #expect(text["rostrum_rtp_packets_received_total{worker=\"1\",kind=\"other\"}"] == 10)
        #expect(text["rostrum_rtp_bytes_received_total{worker=\"0\",kind=\"other\"}"] == 7_000)
        #expect(text["rostrum_rtp_bytes_sent_total{worker=\"0\",kind=\"audio\"}"] == 31_000)
        #expect(text["rostrum_retransmissions_sent_total{worker=\"0\"}"] == 17)
        #expect(text["rostrum_retransmissions_refused_total{worker=\"0\",reason=\"too_soon\"}"] == 12)
        #expect(text["rostrum_retransmissions_refused_total{worker=\"0\",reason=\"unknown\"}"] == 0)
        for (reason, count) in [
            ("replay", 3.0), ("no_route", 4), ("no_session", 5), ("session_ended", 9),
            ("send_buffer_full", 6), ("relay_overflow", 7), ("oversize", 0),
        ] {
            #expect(text["rostrum_drops_total{worker=\"0\",reason=\"\(reason)\"}"] == count)
        }
        #expect(text["rostrum_slots{worker=\"0\"}"] == 20)
        #expect(text["rostrum_slots_attached{worker=\"1\"}"] == 18)
    }

    @Test func `tell what waits for control, and what was left out`() throws {
        let queues = [
            "workers": InboxCounters(waiting: 3, dropped: 4), "stages": InboxCounters(waiting: 5, refused: 6),
        ]
        let text = try Exposition(MetricsOfNode.control(queues).text)
        #expect(text["rostrum_control_events_waiting{queue=\"workers\"}"] == 3)
        #expect(text["rostrum_control_events_dropped_total{queue=\"workers\"}"] == 4)
        #expect(text["rostrum_control_events_waiting{queue=\"stages\"}"] == 5)
        #expect(text["rostrum_stage_commands_refused_total"] == 6)
    }

    @Test func `tell distributions of durations in seconds`() throws {
        let text = try Self.exposition(Self.workers)
        let latency = "rostrum_forwarding_latency_seconds"
        #expect(text["\(latency)_bucket{worker=\"0\",le=\"0.00025\"}"] == 0)
        #expect(text["\(latency)_bucket{worker=\"0\",le=\"0.0005\"}"] == 12)
        #expect(text["\(latency)_sum{worker=\"1\"}"] == 0.0036)
        #expect(text["rostrum_worker_busy_seconds_total{worker=\"0\"}"] == 1.5)
    }

    @Test func `tell how long joining took, over all workers`() throws {
        let text = try Self.exposition(Self.workers)
        func count(_ role: String, _ phase: String) -> Double? {
            text["rostrum_join_seconds_count{role=\"\(role)\",phase=\"\(phase)\"}"]
        }
        #expect(count("publisher", "answered") == 1)
        #expect(count("viewer", "answered") == 0)
        #expect(count("viewer", "dtls") == 2)
        #expect(count("publisher", "first_media") == 2)
        #expect(
            text["rostrum_join_seconds_bucket{role=\"viewer\",phase=\"dtls\",le=\"0.05\"}"] == 2)
        #expect(
            text["rostrum_join_seconds_bucket{role=\"viewer\",phase=\"dtls\",le=\"0.025\"}"] == 0)
    }

    @Test(arguments: [
        "m 1\n", "# HELP m H.\n# TYPE m gauge\nn 1\n", "# HELP m H.\n# TYPE m counter\nm 1\n",
        "# HELP m H.\n# TYPE m gauge\nm 1\nm 1\n", "# HELP m H.\n# TYPE m gauge\nm x\n",
        "# HELP m H.\n# TYPE m histogram\nm_bucket{le=\"1\"} 2\nm_bucket{le=\"+Inf\"} 1\nm_sum 1\nm_count 1\n",
        "# HELP m H.\n# TYPE m gauge\nm 1",
    ])
    func `the parser refuses malformed metrics`(_ text: String) {
        #expect(throws: Exposition.Complaint.self) { try Exposition(text) }
    }
}
