/// A report that can be written where the user wants it.
protocol WritableReport: Sendable {
    var verdict: Report.Verdict { get }
    func write(_ options: ReportOptions) throws
}

/// A run of its own that ends with a report, also when it is interrupted.
protocol ReportingRun: Interruptible {
    associatedtype Outcome: WritableReport

    func run() async throws -> Outcome
}
