import Forwarding
import Net
import Node

/// A node's counters under the names that monitoring knows.
enum MetricsOfNode {
    static func collect(_ workers: [WorkerReportCopy], _ streams: [StreamSnapshot]) -> [Metric] {
        streamMetrics(streams) + sessionMetrics(workers) + mediaMetrics(workers) + networkMetrics(workers)
    }

    private static func streamMetrics(_ streams: [StreamSnapshot]) -> [Metric] {
        let states: [StreamState] = [.waiting, .live, .ended]
        return [
            Metric(
                "rostrum_streams", .gauge, "Streams by state.",
                states.map { state in
                    Metric.Sample(
                        Double(streams.count { $0.state == state }), [Metric.Label("state", state.rawValue)])
                }),
            Metric(
                "rostrum_viewers", .gauge, "Connected viewers of all streams.",
                Double(streams.reduce(0) { $0 + $1.viewers })),
        ]
    }

    private static func sessionMetrics(_ workers: [WorkerReportCopy]) -> [Metric] {
        [
            perWorker(workers, "rostrum_sessions", .gauge, "Sessions that live now.") {
                Double($0.counters.sessions)
            },
            perWorker(workers, "rostrum_sessions_opened_total", .counter, "Sessions made.") {
                Double($0.counters.sessionsOpened)
            },
            perWorker(
                workers, "rostrum_sessions_connected_total", .counter, "Sessions whose handshake succeeded."
            ) {
                Double($0.counters.sessionsConnected)
            },
            perWorker(
                workers, "rostrum_strange_datagrams_total", .counter, "Datagrams that belong to no session."
            ) {
                Double($0.counters.strangers)
            },
            perWorker(
                workers, "rostrum_packets_relayed_total", .counter, "RTP packets taken from other workers."
            ) {
                Double($0.counters.packetsRelayed)
            },
        ]
    }

    private static func mediaMetrics(_ workers: [WorkerReportCopy]) -> [Metric] {
        let counters: [(String, String, KeyPath<MediaCounters, UInt64>)] = [
            ("rtp_packets_received", "RTP packets from publishers.", \.packetsReceived),
            ("rtp_bytes_received", "Bytes of decrypted RTP packets from publishers.", \.bytesReceived),
            ("rtp_packets_sent", "RTP packets to viewers, retransmissions left out.", \.packetsSent),
            ("rtp_bytes_sent", "Bytes of SRTP packets to viewers.", \.bytesSent),
            ("rtp_packets_resent", "RTP packets sent again on request.", \.packetsResent),
            ("rtp_packets_dropped", "RTP packets that could not be sent on.", \.packetsDropped),
            ("packets_undecodable", "Packets that failed authentication or parsing.", \.undecodable),
            ("packets_unroutable", "RTP packets that belong to no m-line.", \.unroutable),
            ("key_frame_demands", "Occasions on which a viewer needed a key frame.", \.keyFrameDemands),
            ("key_frame_requests", "Key-frame requests sent to publishers.", \.keyFrameRequests),
            ("key_frames", "Key frames received.", \.keyFrames),
        ]
        return counters.map { name, help, path in
            perWorker(workers, "rostrum_\(name)_total", .counter, help) {
                Double($0.counters.media[keyPath: path])
            }
        }
    }

    private static func networkMetrics(_ workers: [WorkerReportCopy]) -> [Metric] {
        let counters: [(String, String, KeyPath<TrafficCounters, UInt64>)] = [
            ("udp_datagrams_received", "Datagrams received.", \.datagramsIn),
            ("udp_bytes_received", "Bytes of datagrams received.", \.bytesIn),
            ("udp_datagrams_sent", "Datagrams sent.", \.datagramsOut),
            ("udp_messages_sent", "Messages the kernel took, of one or more datagrams.", \.messagesOut),
            ("udp_bytes_sent", "Bytes of datagrams sent.", \.bytesOut),
            ("udp_receive_calls", "System calls that receive.", \.receiveCalls),
            ("udp_send_calls", "System calls that send.", \.sendCalls),
        ]
        let traffic = counters.map { name, help, path in
            perWorker(workers, "rostrum_\(name)_total", .counter, help) {
                Double($0.network.traffic[keyPath: path])
            }
        }
        return traffic + [
            perWorker(
                workers, "rostrum_worker_cpu_seconds_total", .counter, "CPU time of the worker's thread."
            ) {
                Double($0.network.processorNanoseconds) / 1e9
            },
            perWorker(
                workers, "rostrum_worker_load", .gauge, "Share of one CPU the worker used lately, 0 to 1."
            ) {
                $0.network.load
            },
        ]
    }

    private static func perWorker(
        _ workers: [WorkerReportCopy], _ name: String, _ kind: Metric.Kind, _ help: String,
        _ value: (WorkerReportCopy) -> Double
    ) -> Metric {
        Metric(
            name, kind, help,
            workers.map { Metric.Sample(value($0), [Metric.Label("worker", "\($0.index)")]) })
    }
}
