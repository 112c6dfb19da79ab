/// Decides whether this tool itself limited a run.
enum VoidRule {
    /// A thread with a larger share of busy time queues datagrams, and measures its own queue.
    static let busiest = 0.85
    /// A thread that waits for a CPU for a larger share of the time cannot tell late packets from its own lateness.
    static let longestWait = 0.25
    /// A smaller share is not worth a note.
    static let noteworthyWait = 0.05

    /// Reasons not to trust the numbers; empty if there are none.
    static func reasons(_ use: Report.GeneratorUse) -> [String] {
        pressure(use) + losses(use)
    }

    /// Why the tool was too slow; empty if it was not.
    static func pressure(_ use: Report.GeneratorUse) -> [String] {
        let reasons = use.threads.compactMap { thread -> String? in
            if thread.busy > busiest {
                return
                    "\(thread.name) was busy \(percent(thread.busy)) of the time: use more --threads or "
                    + "faster CPUs"
            }
            guard thread.waiting > longestWait else { return nil }
            return "\(thread.name) waited \(percent(thread.waiting)) of the time for a CPU used by others"
        }
        // Signalling runs outside these threads, and may use the CPUs that they need.
        guard reasons.isEmpty, use.processorShare > busiest else { return reasons }
        return ["this tool used \(percent(use.processorShare)) of the CPUs that it can run on"]
    }

    /// Datagrams that the tool itself lost, in words; empty if there are none.
    static func losses(_ use: Report.GeneratorUse) -> [String] {
        var reasons: [String] = []
        if use.overflowed > 0 {
            reasons.append("\(use.overflowed) datagrams overflowed the tool's own receive buffers")
        }
        if use.unsent > 0 {
            reasons.append("the kernel did not accept \(use.unsent) datagrams from the tool")
        }
        return reasons
    }

    /// What does not make a run void, but should be known.
    static func notes(_ use: Report.GeneratorUse) -> [String] {
        use.threads.filter { $0.waiting > noteworthyWait && $0.waiting <= longestWait }.map {
            "\($0.name) waited \(percent($0.waiting)) of the time for a CPU; latencies include that"
        }
    }

    private static func percent(_ share: Double) -> String { "\(Int((share * 100).rounded())) %" }
}
