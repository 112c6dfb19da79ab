import Testing

/// Lets one test at a time use usrsctp.
///
/// The library has one clock and one list of timers for the whole process: where two tests in virtual time drive it at
/// once, time passes twice as fast for both of them.
package struct SCTPTurn: SuiteTrait, TestTrait, TestScoping {
    /// Whether the running test has usrsctp to itself.
    @TaskLocal package static var isTaken = false

    private static let queue = TurnQueue()

    package var isRecursive: Bool { true }

    package func scopeProvider(for test: Test, testCase: Test.Case?) -> Self? {
        testCase == nil ? nil : self
    }

    package func provideScope(
        for test: Test, testCase: Test.Case?, performing function: @Sendable () async throws -> Void
    ) async throws {
        guard !Self.isTaken else { return try await function() }
        await Self.queue.take()
        do {
            try await Self.$isTaken.withValue(true) { try await function() }
        } catch {
            await Self.queue.giveBack()
            throw error
        }
        await Self.queue.giveBack()
    }
}

extension Trait where Self == SCTPTurn {
    /// The test drives usrsctp by a clock of its own, so that no other may do so meanwhile.
    package static var sctpTurn: SCTPTurn { SCTPTurn() }
}

/// Who waits suspends, so that its thread is free for other tests.
private actor TurnQueue {
    private var isTaken = false
    private var waiting: [CheckedContinuation<Void, Never>] = []

    func take() async {
        guard isTaken else { return isTaken = true }
        await withCheckedContinuation { waiting.append($0) }
    }

    func giveBack() {
        guard !waiting.isEmpty else { return isTaken = false }
        waiting.removeFirst().resume()
    }
}
