import Forwarding
import Net
import Node

// Sockets, traffic between workers, and CPU time.

extension MetricsOfNode {
    /// RTP packets handed from the publisher's worker to viewers' workers.
    static func relayMetrics(_ workers: [WorkerReportCopy]) -> [Metric] {
        [
            labelled(
                workers, "rostrum_relay_packets_total",
                "RTP packets that crossed between workers, once for each worker with viewers.", "direction",
                [
                    ("in", { Double($0.counters.packetsRelayed) }),
                    ("out", { Double($0.counters.packetsToWorkers) }),
                ]),
            labelled(
                workers, "rostrum_relay_bytes_total", "Bytes of RTP packets that crossed between workers.",
                "direction",
                [
                    ("in", { Double($0.counters.bytesRelayed) }),
                    ("out", { Double($0.counters.bytesToWorkers) }),
                ]),
        ]
    }

    /// UDP traffic, system calls and segmentation offload of each worker.
    static func networkMetrics(_ workers: [WorkerReportCopy]) -> [Metric] {
        let counters: [(String, String, KeyPath<TrafficCounters, UInt64>)] = [
            ("datagrams_received", "Datagrams received.", \.datagramsIn),
            ("bytes_received", "Bytes of datagrams received.", \.bytesIn),
            ("datagrams_sent", "Datagrams sent.", \.datagramsOut),
            ("messages_sent", "Messages the kernel took, of one or more datagrams.", \.messagesOut),
            ("bytes_sent", "Bytes of datagrams sent.", \.bytesOut),
            ("receive_calls", "System calls that receive.", \.receiveCalls),
            ("send_calls", "System calls that send.", \.sendCalls),
            (
                "segmented_messages_sent", "Messages that the kernel cut into datagrams (UDP_SEGMENT).",
                \.segmentedMessagesOut
            ),
            ("segmentation_refused", "Messages that the kernel would not cut.", \.segmentationRefused),
            (
                "coalesced_messages_received", "Messages with more than one datagram (UDP_GRO).",
                \.coalescedMessagesIn
            ),
            ("datagrams_delayed", "Datagrams that waited for room in the send buffer.", \.delayed),
        ]
        let traffic = counters.map { name, help, path in
            perWorker(workers, "rostrum_udp_\(name)_total", .counter, help) {
                Double($0.network.traffic[keyPath: path])
            }
        }
        return traffic + [
            perWorker(
                workers, "rostrum_udp_datagrams_handed_over_total", .counter,
                "Datagrams for the worker's sessions that came to other workers, which share its port."
            ) {
                Double($0.network.handedOver)
            },
            labelled(
                workers, "rostrum_datagrams_received_total", "Datagrams of known sessions by protocol.",
                "protocol",
                [
                    ("stun", { Double($0.counters.checks) }), ("dtls", { Double($0.counters.handshakes) }),
                    ("rtp", { Double($0.counters.mediaDatagrams) }),
                    ("rtcp", { Double($0.counters.controlDatagrams) }),
                ]),
        ]
    }

    /// CPU time and load of each worker's thread.
    static func workerMetrics(_ workers: [WorkerReportCopy]) -> [Metric] {
        [
            perWorker(
                workers, "rostrum_worker_cpu_seconds_total", .counter, "CPU time of the worker's thread."
            ) {
                Double($0.network.processorNanoseconds) / 1e9
            },
            perWorker(
                workers, "rostrum_worker_busy_seconds_total", .counter,
                "Time the worker spent with batches, not waiting for events."
            ) {
                Double($0.network.busyNanoseconds) / 1e9
            },
            perWorker(
                workers, "rostrum_worker_load", .gauge, "Share of one CPU the worker used lately, 0 to 1."
            ) {
                $0.network.load
            },
            perWorker(workers, "rostrum_worker_batches_total", .counter, "Turns of the worker's loop.") {
                Double($0.network.batches)
            },
        ]
    }

    // MARK: Samples

    /// A metric with one sample per worker.
    static func perWorker(
        _ workers: [WorkerReportCopy], _ name: String, _ kind: Metric.Kind, _ help: String,
        _ value: (WorkerReportCopy) -> Double
    ) -> Metric {
        Metric(
            name, kind, help,
            workers.map { Metric.Sample(value($0), [Metric.Label("worker", "\($0.index)")]) })
    }

    /// A metric with one sample per worker and value of a second label.
    static func labelled(
        _ workers: [WorkerReportCopy], _ name: String, _ help: String, _ label: String,
        _ values: [(String, (WorkerReportCopy) -> Double)], kind: Metric.Kind = .counter
    ) -> Metric {
        Metric(
            name, kind, help,
            workers.flatMap { worker in
                values.map { text, value in
                    Metric.Sample(
                        value(worker), [Metric.Label("worker", "\(worker.index)"), Metric.Label(label, text)])
                }
            })
    }
}

extension MediaCounters {
    /// Packets from publishers that are neither new audio nor new video, such as probes and duplicates.
    var otherReceived: Volume {
        func rest(_ path: KeyPath<Volume, UInt64>) -> UInt64 {
            let known = audioReceived[keyPath: path] &+ videoReceived[keyPath: path]
            let all = received[keyPath: path]
            // The counters are copied one by one and may differ by a few packets.
            return all > known ? all - known : 0
        }
        var volume = Volume()
        volume.packets = rest(\.packets)
        volume.bytes = rest(\.bytes)
        return volume
    }
}
