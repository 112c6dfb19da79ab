import Net
import Node

// TCP connections for media, of clients whose network blocks UDP.

extension MetricsOfNode {
    /// Connections, frames and drops of media over TCP.
    /// - Source: RFC 4571 (framing), RFC 6544 (ICE over TCP).
    static func streamTransportMetrics(_ workers: [WorkerReportCopy]) -> [Metric] {
        [
            perWorker(
                workers, "rostrum_tcp_connections", .gauge, "TCP connections for media that there are now."
            ) {
                Double($0.network.tcp.connections)
            },
            perWorker(
                workers, "rostrum_tcp_connections_opened_total", .counter,
                "TCP connections for media that workers took."
            ) {
                Double($0.network.tcp.adopted)
            },
            labelled(
                workers, "rostrum_tcp_connections_closed_total",
                "TCP connections that ended: closed by the client or broken, of no session, without framing, or with a "
                    + "reader who took nothing for half a minute.",
                "reason",
                counts([
                    ("peer", \.closedByPeer), ("no_session", \.closedStrange), ("framing", \.closedMalformed),
                    ("stalled", \.closedStalled),
                ])),
            labelled(
                workers, "rostrum_tcp_frames_total", "Datagrams in frames over TCP (RFC 4571).", "direction",
                counts([("in", \.framesIn), ("out", \.framesOut)])),
            labelled(
                workers, "rostrum_tcp_bytes_total", "Bytes of frames over TCP.", "direction",
                counts([("in", \.bytesIn), ("out", \.bytesOut)])),
            labelled(
                workers, "rostrum_tcp_frames_dropped_total",
                "Datagrams that did not leave over TCP: pictures left out whole for a slow reader, anything else for "
                    + "one, or a connection that is gone.",
                "reason",
                counts([
                    ("slow_reader_video", \.droppedVideo), ("slow_reader_other", \.droppedOther),
                    ("closed", \.droppedClosed),
                ])),
        ]
    }

    /// Label values with the counters they stand for.
    private static func counts(
        _ values: [(String, KeyPath<TCPCounters, UInt64>)]
    ) -> [(String, (WorkerReportCopy) -> Double)] {
        values.map { text, path in (text, { Double($0.network.tcp[keyPath: path]) }) }
    }
}
