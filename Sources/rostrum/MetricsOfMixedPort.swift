import Gateway
import Net

/// Metrics of the TCP ports that several protocols share.
extension MixedPortCounters {
    /// Sums of the counters of all shared ports.
    /// - Parameter ports: one element for each port; without any there are no metrics.
    static func metrics(of ports: [MixedPortCounters]) -> [Metric] {
        guard !ports.isEmpty else { return [] }
        func sum(_ path: KeyPath<MixedPortCounters, UInt64>) -> Double {
            Double(ports.reduce(0) { $0 &+ $1[keyPath: path] })
        }
        func labelled(
            _ name: String, _ help: String, _ label: String,
            _ values: [(String, KeyPath<MixedPortCounters, UInt64>)]
        ) -> Metric {
            Metric(
                name, .counter, help,
                values.map { text, path in Metric.Sample(sum(path), [Metric.Label(label, text)]) })
        }
        return [
            Metric(
                "rostrum_shared_port_undecided", .gauge,
                "Connections to shared ports whose protocol is not known yet.",
                Double(ports.reduce(0) { $0 + $1.undecided })),
            Metric(
                "rostrum_shared_port_pipes", .gauge,
                "TLS connections to shared ports that did not announce HTTP and are passed on to it.",
                Double(ports.reduce(0) { $0 + $1.pipes })),
            labelled(
                "rostrum_shared_port_connections_total", "Connections to shared ports, by protocol.",
                "protocol",
                [
                    ("https", \.https), ("https_unnamed", \.pipedHTTPS), ("http", \.http),
                    ("turn_tls", \.turnTLS), ("turn_tcp", \.turnTCP), ("ice_tcp", \.iceTCP),
                ]),
            labelled(
                "rostrum_shared_port_closed_total",
                "Connections to shared ports that were closed: unknown protocol or failed TLS, protocol not served "
                    + "there, silent, closed by the client, too many, or displaced by newer ones.",
                "reason",
                [
                    ("unknown", \.strange), ("unserved", \.unserved), ("silent", \.expired), ("gone", \.gone),
                    ("refused", \.refused), ("displaced", \.displaced),
                ]),
        ]
    }
}
