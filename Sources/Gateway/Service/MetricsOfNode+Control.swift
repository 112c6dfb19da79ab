import Base
import Node

extension MetricsOfNode {
    /// Queues between workers, stages, transcoder jobs and the control actor: waiting, dropped and refused events.
    /// - Parameter queues: counters by the queue's name, which becomes a label.
    static func control(_ queues: [String: InboxCounters]) -> [Metric] {
        let inOrder = queues.sorted { $0.key < $1.key }
        func samples(_ value: (InboxCounters) -> Double) -> [Metric.Sample] {
            inOrder.map { Metric.Sample(value($1), [Metric.Label("queue", $0)]) }
        }
        return [
            Metric(
                "rostrum_control_events_waiting", .gauge,
                "Events that wait for control: of workers, of stages, of feed viewers who came or went (presence), and of "
                    + "the jobs of the transcoder.",
                samples { Double($0.waiting) }),
            Metric(
                "rostrum_control_events_dropped_total", .counter,
                "Events that were left out because too many waited; only such as are told anew soon.",
                samples { Double($0.dropped) }),
            Metric(
                "rostrum_stage_commands_refused_total", .counter,
                "Commands to stages that were refused because what earlier ones led to waited.",
                queues.values.reduce(0) { $0 + Double($1.refused) }),
        ]
    }
}
