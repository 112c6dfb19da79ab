import Base
import Synchronization
import Testing

/// Where the stack of the calling thread is.
@inline(never) private func stackPosition() -> UInt {
    var here: UInt8 = 0
    return withUnsafeMutablePointer(to: &here) { UInt(bitPattern: $0) }
}

@Suite struct SharedActionTests {
    /// A closure in a mutex got two thunks deeper at each call, 32 to 80 bytes of the stack, until there was none left.
    @Test func `is called as straight the thousandth time as the first`() {
        let positions = Mutex<[UInt]>([])
        let note: @Sendable () -> Void = { positions.withLock { $0.append(stackPosition()) } }
        let silent = SharedAction<Int, Void> { _ in note() }
        let answering = SharedAction<Int, Int?> { _ in
            note()
            return nil
        }
        for _ in 0..<1_000 { silent(1) }
        let afterSilence = positions.withLock { $0 }
        #expect(afterSilence.count == 1_000 && afterSilence.first == afterSilence.last)
        for _ in 0..<1_000 { _ = answering(1) }
        let afterAnswers = positions.withLock { $0.dropFirst(1_000) }
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
