/// A report that can be written where the user wants it, with the verdict that decides the exit code.
protocol WritableReport: Sendable {
    var verdict: Report.Verdict { get }
    func write(_ options: ReportOptions) throws
}

/// A run without generator threads, which returns a report also when it is interrupted.
protocol ReportingRun: Interruptible {
    associatedtype Outcome: WritableReport

    func run() async throws -> Outcome
}
