/// Says whether a run was limited by the tool itself.
enum VoidRule {
    /// A thread busier than this queues what comes, and then measures its own queue.
    static let busiest = 0.85
    /// A thread that waits longer for a CPU than this cannot tell a late packet from its own lateness.
    static let longestWait = 0.25
    static let noteworthyWait = 0.05

    /// Reasons not to believe the numbers; empty if there are none.
    static func reasons(_ use: Report.GeneratorUse) -> [String] {
        pressure(use) + losses(use)
    }

    /// What kept the tool from being fast enough.
    static func pressure(_ use: Report.GeneratorUse) -> [String] {
        let reasons = use.threads.compactMap { thread -> String? in
            if thread.busy > busiest {
                return
                    "\(thread.name) was busy \(percent(thread.busy)) of the time: give the tool more --threads or "
                    + "faster CPUs"
            }
            guard thread.waiting > longestWait else { return nil }
            return "\(thread.name) waited \(percent(thread.waiting)) of the time for a CPU that others used"
        }
        // Signalling runs beside the threads, and may take the CPU that they need.
        guard reasons.isEmpty, use.processorShare > busiest else { return reasons }
        return ["this tool used \(percent(use.processorShare)) of the CPUs that it may run on"]
    }

    /// What the tool itself lost.
    static func losses(_ use: Report.GeneratorUse) -> [String] {
        var reasons: [String] = []
        if use.overflowed > 0 {
            reasons.append("\(use.overflowed) datagrams overflowed the tool's own receive buffers")
        }
        if use.unsent > 0 {
            reasons.append("the kernel did not take \(use.unsent) datagrams from the tool")
        }
        return reasons
    }

    /// What does not void a run but should be known.
    static func notes(_ use: Report.GeneratorUse) -> [String] {
        use.threads.filter { $0.waiting > noteworthyWait && $0.waiting <= longestWait }.map {
            "\($0.name) waited \(percent($0.waiting)) of the time for a CPU: latencies include that"
        }
    }

    private static func percent(_ share: Double) -> String { "\(Int((share * 100).rounded())) %" }
}
