import Base
import CSandbox
import Glibc
import Testing

@testable import Transcoder

@Suite struct `A watchdog` {
    private let stuck = DecodingRegister.Entry(source: SourceKey(number: 1), count: 5)

    @Test func `tells a decoder that is stuck from one that is busy`() {
        var watchdog = Watchdog(limit: .seconds(10))
        // It never rests.
        func isStuck(_ entries: [Int: DecodingRegister.Entry], at second: Int) -> Bool {
            watchdog.isStuck(entries, at: .zero + .seconds(second), used: .seconds(second))
        }
        for second in 0..<30 {
            let busy = DecodingRegister.Entry(source: SourceKey(number: 2), count: UInt64(second))
            #expect(!isStuck([1: busy], at: second))
        }
        #expect(!isStuck([0: stuck], at: 30))
        #expect(!isStuck([0: stuck], at: 39))
        #expect(isStuck([0: stuck], at: 40))
    }

    @Test func `lets a decoder wait for its turn, but not for ever`() {
        var watchdog = Watchdog(limit: .seconds(10))
        // It gets a tenth of a processor.
        func isStuck(at second: Int) -> Bool {
            watchdog.isStuck([0: stuck], at: .zero + .seconds(second), used: .milliseconds(second * 100))
        }
        for second in 0..<60 {
            #expect(!isStuck(at: second))
        }
        #expect(isStuck(at: 60))
    }

    @Test func `knows how much time a process has had`() {
        let before = csandbox_cpu_nanoseconds(getpid())
        var random = SystemRandomNumberGenerator()
        var sum: UInt64 = 0
        while csandbox_cpu_nanoseconds(getpid()) < before + 5_000_000 { sum &+= random.next() }
        #expect(before > 0)
        #expect(csandbox_cpu_nanoseconds(0x03FF_FFFF) == 0)
    }
}

@Suite struct `A death register` {
    private let source = SourceKey(number: 4)

    @Test func `refuses what killed the process three times`() {
        var deaths = DeathRegister()
        for index in 0..<3 {
            #expect(!deaths.refuses(source))
            deaths.note([source, source], at: .zero + .seconds(index))
        }
        #expect(deaths.refuses(source))
        #expect(!deaths.refuses(SourceKey(number: 5)))
        deaths.note([], at: .zero + .seconds(5_000))
        #expect(deaths.refuses(source))
    }

    @Test func `forgets what was long ago`() {
        var deaths = DeathRegister()
        for index in 0..<10 {
            deaths.note([source], at: .zero + .seconds(700 * index))
            #expect(!deaths.refuses(source))
        }
    }
}
