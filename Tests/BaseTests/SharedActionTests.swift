import Base
import Foundation
import Synchronization
import Testing

@Suite struct SharedActionTests {
    /// A closure in a mutex got two thunks deeper at each call, 32 to 80 bytes of the stack, until there was none left.
    ///
    /// Frames are counted, because under AddressSanitizer variables have places that say nothing of the stack.
    @Test func `is called as straight the thousandth time as the first`() {
        let depths = Mutex<[Int]>([])
        let note: @Sendable () -> Void = {
            depths.withLock { $0.append(Thread.callStackReturnAddresses.count) }
        }
        let silent = SharedAction<Int, Void> { _ in note() }
        let answering = SharedAction<Int, Int?> { _ in
            note()
            return nil
        }
        for _ in 0..<1_000 { silent(1) }
        let afterSilence = depths.withLock { $0 }
        #expect(afterSilence.count == 1_000 && afterSilence.first == afterSilence.last)
        for _ in 0..<1_000 { _ = answering(1) }
        let afterAnswers = depths.withLock { $0.dropFirst(1_000) }
        #expect(afterAnswers.count == 1_000 && afterAnswers.first == afterAnswers.last)
    }

    @Test func `is nothing before it is set and after it is taken away`() {
        let action = SharedAction<Int, Int>()
        #expect(action(1) == nil)
        action.set { $0 + 1 }
        #expect(action(1) == 2)
        action.set(nil)
        #expect(action(1) == nil)
    }
}
