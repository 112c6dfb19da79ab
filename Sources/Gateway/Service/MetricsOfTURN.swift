import Net
import Node
import TURN

/// Metrics of the server's own TURN.
extension Node {
    /// Empty if TURN is off; read from counters without waiting for the node's actor.
    package nonisolated var turnMetrics: [Metric] {
        guard let statistics = turnStatistics else { return [] }
        let totals = statistics.totals
        func total(_ name: String, _ help: String, _ value: UInt64) -> Metric {
            Metric("rostrum_turn_\(name)_total", .counter, help, Double(value))
        }
        return [
            Metric(
                "rostrum_turn_allocations", .gauge, "Clients by TURN that there are now.",
                Double(statistics.allocations)),
            Metric(
                "rostrum_turn_connections", .gauge,
                "Connections to TURN ports by TCP and TLS that there are now.",
                Double(statistics.connections.connections)),
            total("allocations_made", "Clients by TURN that were taken.", totals.allocations),
            total("allocations_refused", "Clients by TURN beyond what may be.", totals.refusedQuota),
            total(
                "connections_refused", "Connections to TURN ports beyond what may be.",
                statistics.connections.refused &+ statistics.connections.displaced),
            total(
                "credentials_refused", "TURN requests with a password or nonce that is not good.",
                totals.refusedCredentials),
            total(
                "peers_refused", "TURN requests and datagrams to others than this server's sessions.",
                totals.refusedPeers),
            total("malformed", "TURN messages that cannot be read.", totals.malformed),
            total("rate_refused", "TURN messages beyond what one client may send.", totals.refusedRate),
            total("received_packets", "Packets by TURN from clients to sessions.", totals.datagramsIn),
            total("received_bytes", "Bytes by TURN from clients to sessions.", totals.bytesIn),
            total("sent_packets", "Packets by TURN from sessions to clients.", totals.datagramsOut),
            total("sent_bytes", "Bytes by TURN from sessions to clients.", totals.bytesOut),
            total(
                "dropped_packets", "Packets by TURN that clients did not read in time.", totals.droppedSlow),
        ]
    }
}
