import Testing

/// Has each failure in a simulation tell the seed with which it comes again.
struct SimulationTrait: SuiteTrait, TestTrait, TestScoping {
    var isRecursive: Bool { true }

    func scopeProvider(for test: Test, testCase: Test.Case?) -> Self? {
        testCase == nil ? nil : self
    }

    func provideScope(
        for test: Test, testCase: Test.Case?, performing function: @Sendable () async throws -> Void
    ) async throws {
        let log = SimulationLog()
        let naming: IssueHandlingTrait = .compactMapIssues { issue in
            var issue = issue
            issue.comments += log.all.map { (digest: RunDigest) -> Comment in
                "\(digest.description): Tools/test --seed \(digest.seed) repeats it"
            }
            return issue
        }
        try await SimulationLog.$current.withValue(log) {
            try await naming.provideScope(for: test, testCase: testCase) {
                do {
                    try await function()
                } catch let failure as ExpectationFailedError {
                    // The failure was reported already.
                    throw failure
                } catch {
                    // Out there nobody would name the seed.
                    Issue.record(error, sourceLocation: test.sourceLocation)
                }
            }
        }
    }
}

extension Trait where Self == SimulationTrait {
    /// The test is decided by its seed, and tells it where it fails.
    static var simulated: SimulationTrait { SimulationTrait() }
}
